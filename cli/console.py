"""What every command shares: two consoles, the ways to print a result and to show progress, one way to fail."""

import json
import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..support.terminal import SafeConsole
from ..theory.imports import optional

out = SafeConsole(soft_wrap=True)
"""Results: standard output."""

err = SafeConsole(stderr=True)
"""Progress and errors: standard error, so that results can be piped."""

notes = SafeConsole(stderr=True)
"""What only tells how it goes, on standard error: nothing with `--quiet`."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output instead of text.")]


def can_report() -> None:
    """Refuse at once what would be missing when the work is done and its report is to be written."""
    with optional("report"):
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401


def progress() -> Progress:
    """A progress display on standard error; silent when that is not a terminal."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None if notes.width < 80 else 40),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=notes,
        transient=True,
        disable=notes.quiet or not notes.is_terminal,
    )


def status(what: str) -> AbstractContextManager[Any]:
    """Says what is going on, on a terminal; silent elsewhere."""
    return notes.status(what) if notes.is_terminal and not notes.quiet else nullcontext()


def print_table(table: Table) -> None:
    """Print a table; where the terminal is too narrow for its words, as a list of its rows, a line a cell."""
    columns = [[str(cell) for cell in (column.header, *column.cells)] for column in table.columns]
    if table.__rich_measure__(out, out.options).minimum <= out.width:
        out.print(table)
        return
    if table.title:
        out.print(table.title, style="italic")
    for row in range(1, table.row_count + 1):
        out.print()
        for name, *cells in columns:
            out.print(f"{name}: {cells[row - 1]}" if name else cells[row - 1], soft_wrap=False)


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON document. JSON has no infinities: they are written as the strings "inf" and "-inf"; NaN is refused."""
    out.out(json.dumps(_finite(document), indent=2, allow_nan=False), highlight=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def finish(ok: bool) -> None:
    """Exit status 0 only when all holds, 1 when a check failed. (2 is bad input.)"""
    if not ok:
        raise typer.Exit(1)
