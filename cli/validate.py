"""`draftcert validate`: do independent solvers agree with the formulas, and to how many digits?"""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from .console import Json, finish, out, print_json, progress


def validate(
    profile: Annotated[str, typer.Option(help="quick (seconds), full (tens of thousands of cases) or soak.")] = "quick",
    seed: Annotated[int, typer.Option(help="The same seed gives the same report in any layout.")] = 0,
    processes: Annotated[int | None, typer.Option(min=1, help="Local processes; all cores if not given.")] = None,
    as_json: Json = False,
) -> None:
    """Validate the certificates against exact convex programs on families of targets."""
    from ..numerics import validate as run

    with progress() as bar:
        task = bar.add_task("cases")
        report = run(
            profile,
            seed,
            processes=processes,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if as_json:
        rows = [asdict(row) for row in report.table]
        print_json({"profile": profile, "seed": seed, "ok": report.ok, "families": rows, "failures": report.failures})
    else:
        table = Table(title=f"agreement with the convex program, {len(report.outcomes)} cases, seed {seed}")
        for name in ("family", "cases", "worst digits", "median digits", "failures"):
            table.add_column(name, justify="left" if name == "family" else "right")
        for row in report.table:
            digits = (f"{row.worst_digits:.1f}", f"{row.median_digits:.1f}")
            table.add_row(row.family, str(row.cases), *digits, str(row.failures))
        out.print(table)
        for failure in report.failures:
            out.print(failure, style="red")
    finish(report.ok)
