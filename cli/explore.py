"""`draftcert explore`: the page on which a row is dragged or pasted and certified."""

from pathlib import Path
from typing import Annotated

import typer

from ..support.text import visible
from ..theory.errors import DraftcertError
from .arguments import Rule, output_file
from .console import Json, out, print_json


def explore(
    rule: Rule = "strict_greedy",
    probs: Annotated[str | None, typer.Option(help="Target probabilities, separated by commas.")] = None,
    logits: Annotated[str | None, typer.Option(help="Target logits instead, separated by commas.")] = None,
    logprobs: Annotated[str | None, typer.Option(help="The target's top log-probabilities instead.")] = None,
    candidates: Annotated[int, typer.Option(help="Drafter's candidates at this node (m).", min=1)] = 1,
    logit_ratio: Annotated[str | None, typer.Option(help="z_(2)/z_(1), for rules that compare logits (mars).")] = None,
    output: Annotated[Path | None, output_file("Where to write the page; else a folder of the system's.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it.")] = True,
    as_json: Json = False,
) -> None:
    """Explore certificates in the browser: one page, complete in itself, that asks no server for anything.

    Example: draftcert explore --probs 0.5,0.45,0.05 --candidates 2 --output explorer.html --no-browser
    """
    import tempfile
    import webbrowser

    from ..document.explorer import Kind, explorer_fragment, write_explorer

    rows: dict[Kind, str | None] = {"probabilities": probs, "logits": logits, "logprobs": logprobs}
    given: dict[Kind, str] = {kind: row for kind, row in rows.items() if row is not None}
    if len(given) > 1:
        raise DraftcertError("give the row once: as --probs, --logits or --logprobs")
    kinds: list[Kind] = [*given, "probabilities"]
    kind = kinds[0]
    row = given.get(kind, "0.5,0.45,0.05")
    fragment = explorer_fragment(rule, row.replace(",", " ").split(), candidates, kind=kind, logit_ratio=logit_ratio)
    page = write_explorer(output or Path(tempfile.mkdtemp(prefix="draftcert-")) / "explorer.html").resolve()
    address = page.as_uri() + fragment
    opened = browser and webbrowser.open(address)
    if as_json:
        print_json({"file": str(page), "address": address, "opened": opened})
        return
    out.print(f"written: {visible(str(page))}")
    out.print(visible(address), highlight=False)
    if browser and not opened:
        out.print("no browser could be opened: open this address in one")
