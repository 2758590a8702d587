"""What a validation found: outcomes, a table per family, JSON, and a page with plots."""

from __future__ import annotations

import base64
import io
import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from ..theory import DraftcertError
from .agreement import COMPARED
from .mutation import mutants


@dataclass(frozen=True)
class Outcome:
    """What a case gave."""

    key: str
    family: str
    value: str
    """The certified optimum."""
    digits: float
    """Certified digits to which all formulas agree with the optimum, in value and radius."""
    solver_digits: float | None
    """Digits, in nats, of the solver's own answer; None where no solver was asked."""
    caught: dict[str, list[int]] = field(default_factory=dict)
    """By formula: which of its mutated forms this case refuses."""
    failure: dict[str, Any] | None = None
    """What disagrees, with the exact target to reproduce it."""


@dataclass(frozen=True)
class FamilyRow:
    """One line of the report: a family of cases."""

    family: str
    cases: int
    worst_digits: float
    median_digits: float
    worst_solver_digits: float | None
    failures: int


@dataclass(frozen=True)
class MutationRow:
    """One line of the report: a formula's mutated forms, and those that no case noticed."""

    formula: str
    mutants: int
    missed: list[str]


@dataclass(frozen=True)
class Report:
    """All outcomes of a run in the order of its cases, and their summary."""

    profile: str
    seed: int
    outcomes: tuple[Outcome, ...]

    @property
    def ok(self) -> bool:
        """Whether every case agrees and every mutated formula is caught."""
        return not self.failures and not any(row.missed for row in self.mutations)

    @property
    def failures(self) -> tuple[dict[str, Any], ...]:
        """The cases that disagree, each with the exact input that shows it."""
        return tuple(outcome.failure for outcome in self.outcomes if outcome.failure)

    @property
    def table(self) -> tuple[FamilyRow, ...]:
        """Worst and median digits per family."""
        rows = []
        for name, cases in Counter(outcome.family for outcome in self.outcomes).items():
            of_family = [outcome for outcome in self.outcomes if outcome.family == name]
            digits = [outcome.digits for outcome in of_family]
            solver = [outcome.solver_digits for outcome in of_family if outcome.solver_digits is not None]
            failed = sum(outcome.failure is not None for outcome in of_family)
            rows.append(FamilyRow(name, cases, min(digits), median(digits), min(solver, default=None), failed))
        return tuple(rows)

    @property
    def mutations(self) -> tuple[MutationRow, ...]:
        """What became of the mutated formulas; empty when no case faced them."""
        rows = []
        for name, formula in COMPARED.items() if any(outcome.caught for outcome in self.outcomes) else ():
            caught = {k for outcome in self.outcomes for k in outcome.caught.get(name, ())}
            changes = [mutant.statement for mutant in mutants(formula)]
            rows.append(MutationRow(name, len(changes), [c for k, c in enumerate(changes) if k not in caught]))
        return tuple(rows)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the single outcomes, for JSON."""
        return {
            "profile": self.profile,
            "seed": self.seed,
            "ok": self.ok,
            "cases": len(self.outcomes),
            "families": [asdict(row) for row in self.table],
            "mutations": [asdict(row) for row in self.mutations],
            "failures": list(self.failures),
        }

    def write(self, folder: Path | str) -> tuple[Path, Path]:
        """Write `report.json` and `report.html` (with plots; needs the `report` extra) into a folder.

        Raises:
            DraftcertError: matplotlib or jinja2 is missing.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        data, page = folder / "report.json", folder / "report.html"
        data.write_text(json.dumps(self.to_dict() | {"outcomes": [asdict(o) for o in self.outcomes]}, indent=1) + "\n")
        page.write_text(self._page())
        return data, page

    def _page(self) -> str:
        try:
            from jinja2 import Environment, FileSystemLoader, select_autoescape
        except ImportError as error:
            raise DraftcertError("the page needs jinja2 and matplotlib: pip install 'draftcert[report]'") from error
        environment = Environment(
            loader=FileSystemLoader(Path(__file__).parent), autoescape=select_autoescape(default=True)
        )
        return environment.get_template("report.html.j2").render(report=self, plot=self._plot())

    def _plot(self) -> str:
        """Digits of every case by family, ours and the solver's, as a PNG in base64."""
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise DraftcertError("the page needs jinja2 and matplotlib: pip install 'draftcert[report]'") from error
        families = [row.family for row in self.table]
        figure = Figure(figsize=(10, 0.45 * len(families) + 1.5), layout="constrained")
        ours, solver = figure.subplots(1, 2, sharey=True)
        for axes, digits, title in (
            (ours, "digits", "certified digits: formula against optimum"),
            (solver, "solver_digits", "digits of the solver's own answer"),
        ):
            points = [(getattr(o, digits), families.index(o.family)) for o in self.outcomes]
            shown = [(x, y) for x, y in points if x is not None]
            axes.scatter([x for x, _ in shown], [y for _, y in shown], s=12, alpha=0.35)
            axes.set_title(title, fontsize=10)
            axes.set_yticks(range(len(families)), families)
            axes.grid(axis="x", alpha=0.3)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110)
        return base64.b64encode(buffer.getvalue()).decode()
