"""The audit of the Coq development: nothing is believed because a command exited with 0.

1. The sources are scanned, comments and strings aside, for every way to assume something or to switch a check off.
2. They are compiled from scratch in a temporary folder, in the order of `_CoqProject`.
3. `Main.v` restates the main theorems without using any definition of the development; the hash of each statement is
   compared with the committed `THEOREMS.json`, so that a weaker statement is seen as well as a weaker definition.
4. `Print Assumptions` over all of them may name the axioms of Coq's classical reals and no other.
5. `coqchk`, an independent checker of compiled proofs, checks our modules.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..theory import DraftcertError

FOLDER = Path(__file__).resolve().with_name("coq")
STATEMENTS = "THEOREMS.json"
INSTALL = (
    "apt-get install --no-install-recommends coq libcoq-interval (Debian, Ubuntu) or opam install coq coq-interval"
)

AXIOMS = frozenset(
    {
        "ClassicalDedekindReals.sig_not_dec",
        "ClassicalDedekindReals.sig_forall_dec",
        "FunctionalExtensionality.functional_extensionality_dep",
        "Classical_Prop.classic",
    }
)
"""The axioms of the standard library's classical real numbers."""

_ASSUMES = ("Axiom", "Axioms", "Parameter", "Parameters", "Conjecture", "Conjectures", "Primitive", "Register")
_IN_SECTIONS_ONLY = ("Variable", "Variables", "Hypothesis", "Hypotheses", "Context")
_GIVES_UP = ("Admitted", "admit", "give_up", "Abort", "Undo", "Drop", "Load", "Cd", "ML")
_SWITCHES_OFF = (
    r"Unset\s+(Guard|Positivity|Universe)\s+Checking",
    r"Set\s+Type\s+In\s+Type",
    r"bypass_check",
    r"Add\s+(Rec\s+)?(LoadPath|ML\s+Path)",
    r"Declare\s+(Module|ML)",
)


@dataclass(frozen=True)
class FormalAudit:
    """What the audit found. `theorems` maps every main statement to whether this run confirms it."""

    theorems: Mapping[str, bool]
    problems: tuple[str, ...]
    version: str
    seconds: float


def coq_version() -> str | None:
    """The installed Coq, or `None` when `coqc` or `coqchk` is missing."""
    if not (shutil.which("coqc") and shutil.which("coqchk")):
        return None
    return run(["coqc", "--print-version"], Path.cwd()).stdout.split()[0]


def audit_coq(
    folder: Path = FOLDER,
    progress: Callable[[str, int, int], None] | None = None,
    compiled: Path | None = None,
) -> FormalAudit:
    """Check the Coq development in `folder`. `progress(what, done, total)` is called after each part.

    It is compiled in `compiled`, an empty folder, for who wants to use it afterwards (`bridge`); else in a temporary
    one. One problem anywhere leaves no theorem confirmed: the statements rest on each other.

    Raises:
        DraftcertError: Coq is not installed.
    """
    version = coq_version()
    if version is None:
        raise DraftcertError(f"Coq is not installed: {INSTALL}")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        problems = list(_check(folder, compiled or Path(temporary), progress or (lambda what, done, total: None)))
    confirmed = not problems
    return FormalAudit(
        dict.fromkeys(statements(folder), confirmed), tuple(problems), version, time.perf_counter() - start
    )


def source_names(folder: Path = FOLDER) -> list[str]:
    """The development's files in the order they are compiled."""
    return [line for line in (folder / "_CoqProject").read_text().split("\n") if line.endswith(".v")]


def _compile(folder: Path, work: Path) -> Iterator[tuple[str, subprocess.CompletedProcess[str]]]:
    """Copy the development into `work` and compile it file by file; stops after the first failure."""
    for name in source_names(folder):
        shutil.copy(folder / name, work)
        compiled = run(["coqc", "-q", "-Q", ".", "Draftcert", name], work)
        yield name, compiled
        if compiled.returncode:
            return


def _check(folder: Path, work: Path, progress: Callable[[str, int, int], None]) -> Iterator[str]:
    names = source_names(folder)
    total = len(names) + 1
    progress("sources", 0, total)
    unlisted = sorted({file.name for file in folder.glob("*.v")} - set(names))
    yield from (f"{name} is not listed in _CoqProject" for name in unlisted)
    for name in names:
        yield from (f"{name}: {problem}" for problem in scan((folder / name).read_text()))
    yield from _statement_problems(folder)
    assumptions = ""
    for done, (name, compiled) in enumerate(_compile(folder, work), 1):
        progress(name, done, total)
        if compiled.returncode:
            yield f"{name} does not compile: {' '.join(compiled.stderr.split())[-400:]}"
            return
        if name == "Assumptions.v":
            assumptions = compiled.stdout
    yield from _assumption_problems(assumptions, folder)
    # Up to Main: the bridge's numbers are computed by Coq's virtual machine, which coqchk does not have.
    modules = [f"Draftcert.{name.removesuffix('.v')}" for name in names[: names.index("Main.v") + 1]]
    checked = run(
        ["coqchk", "-silent", "-o", "-Q", ".", "Draftcert", *(w for m in modules for w in ("-norec", m))], work
    )
    if checked.returncode:
        yield f"coqchk refuses the compiled proofs: {' '.join((checked.stdout + checked.stderr).split())[-400:]}"
    progress("coqchk", total, total)


def scan(source: str) -> Iterator[str]:
    """Ways to assume something or to switch a check off that a Coq source uses."""
    text = _without_comments(source)
    depth = 0
    for sentence in _sentences(text):
        words = sentence.split()
        while words and words[0] in (
            "Local",
            "Global",
            "Polymorphic",
            "Monomorphic",
            "#[local]",
            "#[global]",
            "-",
            "+",
        ):
            words = words[1:]
        first = words[0] if words else ""
        if first == "Section":
            depth += 1
        elif first == "End":
            depth -= 1
        if first in _ASSUMES or (first in _IN_SECTIONS_ONLY and depth <= 0):
            yield f"'{' '.join(words[:3])}' assumes something"
    for word in _GIVES_UP:
        if re.search(rf"(?<![\w.']){word}(?![\w'])", text):
            yield f"'{word}' leaves a proof open or runs unchecked code"
    for pattern in _SWITCHES_OFF:
        if found := re.search(pattern, text):
            yield f"'{found[0]}' switches a check off"


def _without_comments(source: str) -> str:
    """The source without (nested) comments and string contents."""
    outside, depth, position = [], 0, 0
    for token in re.finditer(r'\(\*|\*\)|"(?:[^"]|"")*"', source):
        if depth == 0:
            outside.append(source[position : token.start()])
        depth += {"(*": 1, "*)": -1}.get(token[0], 0)
        position = token.end()
    outside.append(source[position:] if depth == 0 else "")
    return " ".join(outside)


def statements(folder: Path = FOLDER) -> dict[str, str]:
    """Every theorem of `Main.v` with the hash of its statement and of all notations, white space aside."""
    sentences = [" ".join(each.split()) for each in _sentences(_without_comments((folder / "Main.v").read_text()))]
    notations = [each for each in sentences if each.startswith("Notation")]
    theorems = [found for each in sentences if (found := re.match(r"(?:Theorem|Lemma|Corollary) (\w+)", each))]
    return {found[1]: hashlib.sha256("\n".join([*notations, found.string]).encode()).hexdigest() for found in theorems}


def _sentences(text: str) -> list[str]:
    return re.split(r"\.(?=\s|$)", text)


def _statement_problems(folder: Path) -> Iterator[str]:
    found, file = statements(folder), folder / STATEMENTS
    records = json.loads(file.read_text()) if file.is_file() else []
    committed = {record["coq"].rpartition(".")[2]: record.get("sha256") for record in records}
    for name in sorted(found.keys() | committed.keys()):
        if name not in found:
            yield f"Main.v no longer states {name}"
        elif found[name] != committed.get(name):
            yield f"Main.v: the statement of {name} is not the committed one"


def _assumption_problems(output: str, folder: Path) -> Iterator[str]:
    listed = re.search(
        r"every_statement :=\s*\((.*?)\)", _without_comments((folder / "Assumptions.v").read_text()), re.S
    )
    covered = set(re.findall(r"\w+", listed[1])) if listed else set()
    if missing := sorted(statements(folder).keys() - covered):
        yield f"Assumptions.v does not cover {', '.join(missing)}"
    if "Axioms:" not in output and "Closed under the global context" not in output:
        yield "Print Assumptions said nothing"
    yield from (f"the theorems rest on the axiom {name}" for name in sorted(axioms_of(output) - AXIOMS))


def axioms_of(output: str) -> set[str]:
    """The axioms that `Print Assumptions` names."""
    return set(re.findall(r"^([\w.]+)\s*:", output.partition("Axioms:")[2], re.M))


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a Coq command in a folder and keep what it says."""
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
