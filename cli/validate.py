"""`draftcert validate`: do independent solvers agree with the formulas, and to how many digits?"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ..support.files import writable_folder
from ..support.locks import locked
from ..support.text import visible
from .arguments import Rules, output_folder
from .console import Json, can_report, finish, out, print_json, print_table, progress

if TYPE_CHECKING:
    from ..numerics import ValidationReport


def validate(
    profile: Annotated[str, typer.Option(help="quick (seconds), full (tens of thousands of cases) or soak.")] = "quick",
    seed: Annotated[int, typer.Option(help="The same seed gives the same report in any layout.")] = 0,
    hours: Annotated[float | None, typer.Option(min=0, help="How long soak goes on.")] = None,
    rules: Rules = None,
    folder: Annotated[
        Path | None, output_folder("Keep results here and write the report; a killed run goes on.")
    ] = None,
    processes: Annotated[int | None, typer.Option(min=1, help="Local processes; all cores if not given.")] = None,
    ray: Annotated[str | None, typer.Option(help="Address of a Ray cluster to spread the cases over.")] = None,
    as_json: Json = False,
) -> None:
    """Validate certificates against exact convex programs, to 50 digits; attack them and the margin bounds.

    Example: draftcert validate --rule "additive(0.3)"
    """
    from ..numerics import validate as run

    with ExitStack() as held:
        if folder:
            can_report()
            lock = writable_folder(folder) / "validate.lock"
            held.enter_context(locked(lock, f"the validation in {folder}", wait=False))
        with progress() as bar:
            task = bar.add_task("cases", total=None)
            report = run(
                profile,
                seed,
                rules=rules,
                hours=hours,
                processes=processes,
                ray=ray,
                results=folder / f"{profile}-{seed}.jsonl" if folder else None,
                progress=lambda done, total: bar.update(task, completed=done, total=total),
            )
        page = report.write(folder)[1] if folder else None
    if as_json:
        print_json(report.to_dict())
    else:
        _show(report)
        if page:
            out.print(f"report: {visible(str(page))}")
    finish(report.ok)


def _show(report: ValidationReport) -> None:
    print_table(families_table(report))
    for row in report.mutations:
        caught = row.mutants - len(row.missed)
        out.print(f"{row.formula}: {caught} of {row.mutants} false formulas noticed", style="dim")
        for missed in row.missed:
            out.print(f"  not noticed: {missed}", style="red")
    if report.reached:
        print_table(sharpness_table(report))
    for failure in report.failures:
        out.print(failure, style="red")


def families_table(report: ValidationReport) -> Table:
    """Certified digits of agreement per family of targets."""
    title = f"formulas against exact convex programs, {len(report.outcomes)} cases, seed {report.seed}"
    table = Table(title=title)
    for name in ("family", "cases", "certified digits (worst)", "(median)", "solver's own digits (worst)", "failures"):
        table.add_column(name, justify="left" if name == "family" else "right")
    for row in report.table:
        solver = "" if row.worst_solver_digits is None else f"{row.worst_solver_digits:.1f}"
        digits = (f"{row.worst_digits:.1f}", f"{row.median_digits:.1f}", solver)
        table.add_row(row.family, str(row.cases), *digits, str(row.failures))
    return table


def sharpness_table(report: ValidationReport) -> Table:
    """How close a global optimiser came to the margin bounds."""
    table = Table(title=f"{len(report.reached)} margin bounds under attack, farthest distances in nats")
    table.add_column("rule", overflow="fold", min_width=18)
    table.add_column("known")
    for name in ("bounds", "sharp", "attained", "approached", "failures"):
        table.add_column(name, justify="right")
    for row in report.sharpness:
        distances = ("" if nats is None else f"{nats:.0e}" for nats in (row.attained, row.approached))
        known = f"{row.known}, {row.side[:3]}"
        table.add_row(row.rule, known, str(row.bounds), str(row.sharp), *distances, str(row.failures))
    return table
