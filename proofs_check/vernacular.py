"""What the files of a Coq development may hold: a short list of sentences, everything else is refused.

Coq has hundreds of commands, in any of which something may be assumed, redefined or switched off, and prefixes and
attributes that change what a command does. So a sentence has to be one of those a mathematical text needs, as written
here, or a tactic. What the sources mean is for Coq to say (`formal`); this keeps them to a language in which a reader,
and the audit, can tell what they do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

PROJECT = "_CoqProject"
OPTION = "-Q . Draftcert"
"""The only option of the project: every file is known by its full name and by no other."""
SPOKEN = ("Definitions.v", "Statements.v")
"""What is claimed: the first files, in this order. They know the standard library and nothing else."""
PROOFS = "Main.v"
"""Proves every statement under its own name."""

_WORD = r"[A-Za-z_][\w']*"
_SAID = {
    "From": rf"From Coq Require Import {_WORD}( {_WORD})*|From Draftcert Require Import Definitions",
    "Import": "Import ListNotations",
    "Open": "Open Scope R_scope",
    "Definition": rf"Definition {_WORD}\b.*:=.*",
}
"""The sentences of what is claimed, by their first word."""
_PROVED = _SAID | {
    "From": rf"From (Coq|Draftcert|Interval) Require( Import)? {_WORD}([. ]{_WORD})*",
    "Import": rf"Import {_WORD}",
    "Module": rf"Module {_WORD} := {_WORD} {_WORD}",
    **{head: rf"{head} {_WORD}\b.*" for head in ("Definition", "Fixpoint", "Lemma", "Theorem", "Corollary")},
    "Proof": "Proof",
    "Qed": "Qed",
    "Section": rf"Section {_WORD}",
    "End": rf"End {_WORD}",
    **{
        head: rf"{head} .*" for head in ("Variables", "Variable", "Hypothesis", "Hypotheses", "Let", "Ltac", "Notation")
    },
}
"""The sentences of proofs, tactics aside."""
_IN_SECTIONS_ONLY = ("Variables", "Variable", "Hypothesis", "Hypotheses", "Let")
_BEFORE_A_TACTIC = re.compile(r"^(?:\s|[-+*{}]|(?:\d+|all)\s*:)+")
_COMPILED = {".vo", ".vok", ".vos", ".glob", ".aux", ".cache"}
"""What Coq writes beside a source; nobody reads it."""


def source_names(folder: Path) -> list[str]:
    """The development's files in the order they are compiled."""
    return [line for line in (folder / PROJECT).read_text().splitlines() if line.endswith(".v")]


def defined_names(file: Path) -> list[str]:
    """What a file of `SPOKEN` defines, in its order."""
    text, _ = _without_comments(file.read_text())
    return [found[1] for each in _sentences(text) if (found := re.match(rf"Definition ({_WORD})", each))]


def problems_of(folder: Path) -> Iterator[str]:
    """Why the sources cannot be believed before Coq has seen them."""
    if not (folder / PROJECT).is_file():
        yield f"there is no {PROJECT}"
        return
    option, *names = (folder / PROJECT).read_text().splitlines() or [""]
    if option != OPTION:
        yield f"{PROJECT} begins with '{option}', not with '{OPTION}'"
    yield from (
        f"{PROJECT}: '{name}' is no file of the folder" for name in names if not re.fullmatch(r"[A-Z]\w*\.v", name)
    )
    if len(set(names)) < len(names) or tuple(names[:2]) != SPOKEN or PROOFS not in names:
        yield f"{PROJECT} does not list {', '.join(SPOKEN)}, the proofs and {PROOFS} once each, in this order"
    for path in sorted(folder.iterdir()):
        if path.suffix == ".v" and path.name not in names:
            yield f"{path.name} is not listed in {PROJECT}"
        elif path.is_symlink() or not path.is_file():
            yield f"{path.name} is no plain file"
        elif path.suffix not in _COMPILED | {".v", ".json"} and path.name not in (PROJECT, ".gitignore"):
            yield f"{path.name} is no source of a proof"
    for name in names:
        path = folder / name
        if not path.is_file():
            yield f"{name} is listed in {PROJECT} and is not there"
        else:
            yield from (f"{name}: {problem}" for problem in refused(path.read_bytes().decode("latin-1"), name))


def refused(source: str, name: str) -> Iterator[str]:
    """The sentences of a file that are not on the list."""
    # Without strings and other alphabets there is no doubt where comments and sentences end.
    if strange := re.search(r"[^ -~\n]|\"", source):
        yield f"{strange[0]!r} is a character that sources do without"
        return
    text, unpaired = _without_comments(source)
    if unpaired:
        yield "a comment is not closed, or closed without having been opened"
        return
    allowed = _SAID if name in SPOKEN else _PROVED
    depth = 0
    for sentence in _sentences(text):
        head = sentence.split(" ")[0]
        short = sentence if len(sentence) < 60 else f"{sentence[:60]}..."
        if name not in SPOKEN and re.match("[a-z]", head):
            continue
        if head not in allowed:
            yield f"'{short}' is no sentence of a {'statement' if name in SPOKEN else 'proof'}"
        elif not re.fullmatch(allowed[head], sentence):
            yield f"'{short}' is not the form '{head}' may have"
        depth += {"Section": 1, "End": -1}.get(head, 0)
        if head in _IN_SECTIONS_ONLY and depth <= 0:
            yield f"'{short}' assumes something outside of a section"


def _without_comments(source: str) -> tuple[str, bool]:
    """The text outside of (nested) comments, and whether some end of a comment has no partner."""
    outside, depth, position = [], 0, 0
    for token in re.finditer(r"\(\*|\*\)", source):
        if depth == 0:
            outside.append(source[position : token.start()])
        depth += 1 if token[0] == "(*" else -1
        if depth < 0:
            return "", True
        position = token.end()
    return " ".join([*outside, source[position:]]), depth > 0


def _sentences(text: str) -> list[str]:
    """Sentences without bullets and the white space that does not matter."""
    parts = (_BEFORE_A_TACTIC.sub("", part, count=1) for part in re.split(r"\.(?=\s|$)", text))
    return [" ".join(part.split()) for part in parts if part]
