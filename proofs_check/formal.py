"""The audit of the Coq development: nothing is believed because a command exited with 0, or because of what it prints.

1. The sources hold nothing but the sentences that `vernacular` lists.
2. They are copied, alone, into an empty folder and compiled there by a Coq that no setting of this machine reaches.
   `Definitions.v` and `Statements.v` come first: what is claimed is settled before any file of proofs exists.
3. Each statement is printed by Coq as it was elaborated, without notations, together with all definitions it rests on.
   That and its words are what the committed `THEOREMS.json` holds a hash of.
4. A file written here, which imports nothing, has Coq check that `Main` proves each statement of `Statements` and name
   the axioms behind them.
5. `coqchk`, an independent checker of compiled proofs, checks all modules. Its own summary may name the axioms of Coq's
   classical reals and no other, and nothing that relies on a check being off.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..support.files import read_json, write_whole
from ..theory import DraftcertError
from .vernacular import PROOFS, SPOKEN, defined_names, problems_of, source_names

FOLDER = Path(__file__).resolve().with_name("coq")
STATEMENTS = "THEOREMS.json"
INSTALL = (
    "apt-get install --no-install-recommends coq libcoq-interval (Debian, Ubuntu) or opam install coq coq-interval"
)

AXIOMS = frozenset(
    {
        "Coq.Reals.ClassicalDedekindReals.sig_not_dec",
        "Coq.Reals.ClassicalDedekindReals.sig_forall_dec",
        "Coq.Logic.FunctionalExtensionality.functional_extensionality_dep",
        "Coq.Logic.Classical_Prop.classic",
    }
)
"""The axioms of the standard library's classical real numbers."""
SEALED = ("Coq.Reals.Rdefinitions.RbaseSymbolsImpl.", "Coq.Reals.Rdefinitions.RinvImpl.", "Coq.ssr.ssrunder.Under_rel.")
"""Modules of the standard library whose definitions are hidden behind a signature: `coqchk` lists them as axioms."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class FormalAudit:
    """What the audit found. `theorems` maps every statement to whether this run confirms it."""

    theorems: Mapping[str, bool]
    problems: tuple[str, ...]
    version: str
    seconds: float


def coq_version() -> str | None:
    """The installed Coq, or `None` when `coqc` or `coqchk` is missing."""
    if not (shutil.which("coqc") and shutil.which("coqchk")):
        return None
    return run(["coqc", "--print-version"], Path.cwd()).stdout.split()[0]


def audit_coq(folder: Path = FOLDER, progress: Progress | None = None, compiled: Path | None = None) -> FormalAudit:
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
    problems = list(problems_of(folder))
    if not problems:
        with tempfile.TemporaryDirectory() as temporary:
            work = compiled or Path(temporary)
            problems += _check(folder, work, progress or (lambda what, done, total: None))
    return FormalAudit(
        dict.fromkeys(statements(folder), not problems), tuple(problems), version, time.perf_counter() - start
    )


def statements(folder: Path = FOLDER) -> dict[str, str]:
    """The committed hash of every statement by name, from `THEOREMS.json`."""
    return {record["coq"]: record["sha256"] for record in _records(folder)}


def words(folder: Path = FOLDER) -> dict[str, str]:
    """What every statement says, in words, by its name."""
    return {record["coq"]: record["statement"] for record in _records(folder)}


def _records(folder: Path) -> list[dict[str, str]]:
    path = folder / STATEMENTS
    return read_json(path) if path.is_file() else []


def _check(folder: Path, work: Path, progress: Progress) -> list[str]:
    """What is found first: nothing that comes after a problem would mean anything."""
    names = source_names(folder)
    total = len(names) + 1
    try:
        for done, name in enumerate(names, 1):
            shutil.copyfile(folder / name, work / name)
            coqc(work, name)
            progress(name, done, total)
            if name == SPOKEN[-1] and (changed := _changed_statements(folder, work)):
                return changed
        # Up to Main: the bridge's numbers are computed by Coq's virtual machine, which coqchk does not have.
        modules = [f"Draftcert.{name.removesuffix('.v')}" for name in names[: names.index(PROOFS) + 1]]
        problems = confirm("Statements", "Main", defined_names(folder / SPOKEN[-1]), work, coqchk=modules)
        progress("coqchk", total, total)
    except CoqError as error:
        return [str(error)]
    return problems


def _changed_statements(folder: Path, work: Path) -> list[str]:
    found, committed = hashes(folder, work), statements(folder)
    return [
        f"the statement of {name} is not the committed one"
        for name in sorted(found.keys() | committed.keys())
        if found.get(name) != committed.get(name)
    ]


def commit_statements(folder: Path = FOLDER) -> None:
    """Write the hashes of the statements as they are now into `THEOREMS.json`, which holds the words of each.

    Raises:
        DraftcertError: there are words without a statement or a statement without words, or Coq refuses a file.
    """
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        for name in SPOKEN:
            shutil.copyfile(folder / name, work / name)
            coqc(work, name)
        found, records = hashes(folder, work), _records(folder)
    if lacking := sorted(found.keys() ^ {record["coq"] for record in records}):
        raise DraftcertError(f"{STATEMENTS} and {SPOKEN[-1]} do not both have {', '.join(lacking)}")
    text = json.dumps([record | {"sha256": found[record["coq"]]} for record in records], indent=1)
    write_whole(folder / STATEMENTS, text + "\n")


def hashes(folder: Path, work: Path) -> dict[str, str]:
    """The hash of every statement: of its words and of what Coq makes of it and of all that it rests on.

    `work` holds the compiled `Definitions` and `Statements`; it must not hold more.

    Raises:
        CoqError: a statement rests on something of these files that is no definition, so that nobody can read it.
    """
    said: dict[str, str] = {}
    for file in SPOKEN:
        said |= _elaborated(work, file.removesuffix(".v"), defined_names(folder / file))
    words = {record["coq"]: [record["theorem"], record["statement"]] for record in _records(folder)}
    found = {}
    for name in defined_names(folder / SPOKEN[-1]):
        used, waiting = set(), [f"Statements.{name}"]
        while waiting:
            used.add(each := waiting.pop())
            if each not in said:
                raise CoqError(f"the statement of {name} rests on {each}, which is none of the definitions")
            waiting += set(re.findall(r"\b(?:Definitions|Statements)\.[\w'.]+", said[each])) - used
        content = [words.get(name), sorted((each, said[each]) for each in used)]
        found[name] = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    return found


def _elaborated(work: Path, module: str, names: list[str]) -> dict[str, str]:
    """What Coq says that each name of a module means, by the end of its name: no notation, and nothing implicit."""
    lines = [f"Require Draftcert.{module}.", "Set Printing All.", "Set Printing Depth 1000000."]
    with tempfile.TemporaryDirectory() as temporary:
        here = Path(temporary)
        lines += [f'Redirect "{place}" Print Draftcert.{module}.{name}.' for place, name in enumerate(names)]
        (here / "Elaborated.v").write_text("\n".join([*lines, ""]))
        coqc(here, "Elaborated.v", "-Q", str(work), "Draftcert")
        printed = [" ".join((here / f"{place}.out").read_text().split()) for place in range(len(names))]
        return {f"{module}.{name}": text for name, text in zip(names, printed, strict=True)}


def confirm(stated: str, proved: str, names: Iterable[str], work: Path, coqchk: Iterable[str] = ()) -> list[str]:
    """Why the module `proved` does not prove every statement of the module `stated`; nothing if it does.

    The modules are those of the development that is compiled in `work`. What asks for them is written here, in a folder
    of its own, and calls everything by its full name. With `coqchk`, these modules and what asks are checked again.

    Raises:
        CoqError: a statement is not proved, or what proves it does not stand a second check.
    """
    names = list(names)
    proofs = [f"proof_{i}" for i in range(len(names))]
    lines = [
        f"Require Draftcert.{stated} Draftcert.{proved}.",
        *(
            f"Definition {proof} : Draftcert.{stated}.{name} := Draftcert.{proved}.{name}."
            for proof, name in zip(proofs, names, strict=True)
        ),
        # One tuple: walking the library once per theorem takes longer than checking the theorems.
        f"Definition every := ({', '.join(proofs)}).",
        "Print Assumptions every.",
        "",
    ]
    with tempfile.TemporaryDirectory() as temporary:
        here = Path(temporary)
        (here / "Audit.v").write_text("\n".join(lines))
        assumed = _assumed(coqc(here, "Audit.v", "-Q", str(work), "Draftcert"))
        # Coq prints an axiom by the end of its name.
        known = {axiom.split(".", 2)[2] for axiom in AXIOMS}
        problems = [f"the theorems rest on the axiom {name}" for name in sorted(assumed - known)]
        if modules := list(coqchk):
            asked = (word for module in [*modules, "Audit"] for word in ("-norec", module))
            checked = run(["coqchk", "-silent", "-o", "-Q", str(work), "Draftcert", "-Q", ".", "", *asked], here)
            if checked.returncode:
                raise CoqError(f"coqchk refuses the compiled proofs: {_last_words(checked)}")
            problems += _summary_problems(checked.stdout + checked.stderr)
    return problems


def _assumed(output: str) -> set[str]:
    """The axioms that `Print Assumptions` names; a line of it that is none counts as one."""
    lines = [line for line in output.splitlines() if line and not line.startswith(" ")]
    if lines == ["Closed under the global context"]:
        return set()
    if lines[:1] != ["Axioms:"]:
        raise CoqError("Print Assumptions gives no list of axioms")
    return {line.split(":")[0].strip() for line in lines[1:]}


def _summary_problems(output: str) -> Iterator[str]:
    """What `coqchk`'s summary says that it should not."""
    _, found, summary = output.partition("CONTEXT SUMMARY")
    parts = dict(part.split(":", 1) for part in re.split(r"^\* ", summary, flags=re.M)[1:] if ":" in part)
    content = {title: text.split() for title, text in parts.items()}
    if not found or not {"Theory", "Axioms"} <= content.keys():
        yield "coqchk gives no summary"
        return
    if content.pop("Theory") != ["Set", "is", "predicative"]:
        yield f"coqchk: the theory is {parts['Theory'].strip()}"
    for name in content.pop("Axioms"):
        if name not in AXIOMS and name != "<none>" and not name.startswith(SEALED):
            yield f"coqchk: the development rests on the axiom {name}"
    for title, names in content.items():
        if names != ["<none>"]:
            yield f"coqchk: {title}: {' '.join(names)}"


class CoqError(DraftcertError):
    """Coq refuses something."""


def coqc(folder: Path, name: str, *options: str) -> str:
    """Compile a file and return what it printed.

    Raises:
        CoqError: it does not compile.
    """
    compiled = run(["coqc", "-q", *(options or ("-Q", ".", "Draftcert")), name], folder)
    if compiled.returncode:
        raise CoqError(f"{name} does not compile: {_last_words(compiled)}")
    return compiled.stdout


def _last_words(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join((done.stdout + done.stderr).split())[-400:]


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a Coq command in a folder and keep what it says. Nothing in the environment tells Coq where to look."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
