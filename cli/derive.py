"""`draftcert derive`: the development, theorem by theorem, and as a document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..support.text import visible
from .arguments import output_folder
from .console import Json, out, print_json, progress

if TYPE_CHECKING:
    from ..theory.theorem import Theorem


def derive(
    only: Annotated[str | None, typer.Option(help="A word: theorems, rules and formulas that speak of it.")] = None,
    folder: Annotated[
        Path | None, output_folder("Write the document here: theory.html, theory.tex and figures.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Derive the certificates: statements, numbered derivations and formulas, as text or as a document.

    `draftcert check` decides every step; this command prints or writes what is decided.

    Example: draftcert derive --only tree
    """
    from ..document import select, write_document

    chosen = select(only)
    files: list[Path] = []
    if folder:
        with progress() as bar:
            task = bar.add_task("document", total=None)
            files = write_document(
                folder,
                only,
                lambda what, done, total: bar.update(task, description=what, completed=done, total=total),
            )
    if as_json:
        print_json(
            {
                "theorems": [_theorem(theorem) for theorem in chosen.theorems],
                "formulas": [
                    {"name": f.name, "statement": f.statement, "expression": str(f.expression), "stable": str(f.stable)}
                    for f in chosen.formulas
                ],
                "files": [str(file) for file in files],
            }
        )
        return
    for theorem in chosen.theorems:
        out.print(f"\n{theorem.name}  {theorem.title}", style="bold")
        out.print(theorem.statement)
        for hypothesis in theorem.hypotheses:
            out.print(f"  given: {hypothesis}")
        for number, step in enumerate(theorem.derivation, 1):
            out.print(f"  {number}. {step.says} [{step.reason}]")
    out.print()
    for formula in chosen.formulas:
        out.print(f"formula {formula.name} = {formula.expression}")
        out.print(f"    computed as {formula.stable}", style="dim")
    for file in files:
        out.print(f"written: {visible(str(file))}")


def _theorem(theorem: Theorem) -> dict[str, Any]:
    return {
        "name": theorem.name,
        "title": theorem.title,
        "statement": theorem.statement,
        "hypotheses": theorem.hypotheses,
        "derivation": [{"says": step.says, "reason": step.reason} for step in theorem.derivation],
        "formal": theorem.formal,
        "citation": theorem.citation,
    }
