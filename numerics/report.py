"""What a validation found: outcomes, a table per family, JSON, and a page with plots."""

from __future__ import annotations

import base64
import io
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from ..support.files import writable_folder, write_whole
from ..support.text import visible_value, with_policy
from ..theory.imports import optional
from .agreement import COMPARED
from .mutation import mutants
from .sharpness import Reached

SIDES = ("infimum", "supremum")
LEAST_SHOWN = 1e-16
"""Distances below it are drawn here."""
SOLVED_BY = ("cvxpy", "clarabel", "scs", "mpmath", "python-flint", "scipy", "sympy")
"""Packages whose versions a report tells."""


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
    """Digits, in nats, of the solver's own answer; None where no solver was asked or it claims no optimum."""
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
class BoundRow:
    """One line of the report: the attacked margin bounds of one rule."""

    rule: str
    known: str
    side: str
    bounds: int
    sharp: int
    """How many of them are an infimum or supremum; the others are valid bounds only."""
    attained: float | None
    """The farthest that the search stayed from a sharp bound which some target attains, in nats."""
    approached: float | None
    """The same of sharp bounds that are only approached."""
    failures: int


@dataclass(frozen=True)
class ValidationReport:
    """All outcomes of a run in the order of its cases, and their summary."""

    profile: str
    seed: int
    outcomes: tuple[Outcome, ...]
    reached: tuple[Reached, ...] = ()
    whole: bool = True
    """Whether all rules took part to the profile's end; only then must every mutated formula have been noticed."""
    judged: Mapping[str, Any] = field(default_factory=dict)
    """Rules and formulas by their hashes: what the report holds for."""

    @property
    def ok(self) -> bool:
        """Whether every case agrees, every mutated formula is caught and every margin bound holds."""
        return not self.failures and not any(row.missed for row in self.mutations)

    @property
    def failures(self) -> tuple[dict[str, Any], ...]:
        """The cases that disagree and the bounds that do not hold, each with the exact input that shows it."""
        return tuple(found.failure for found in (*self.outcomes, *self.reached) if found.failure)

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
        """What became of the mutated formulas; empty when no case faced them, or not all cases that should."""
        rows = []
        faced = self.whole and any(outcome.caught for outcome in self.outcomes)
        for name, formula in COMPARED.items() if faced else ():
            caught = {k for outcome in self.outcomes for k in outcome.caught.get(name, ())}
            changes = [mutant.statement for mutant in mutants(formula)]
            rows.append(MutationRow(name, len(changes), [c for k, c in enumerate(changes) if k not in caught]))
        return tuple(rows)

    @property
    def sharpness(self) -> tuple[BoundRow, ...]:
        """How close the search came to the margin bounds, by rule and side."""
        groups: dict[tuple[str, str, str], list[Reached]] = {}
        for reached in self.reached:
            of = reached.wanted
            groups.setdefault((of["rule"], of["known"], SIDES[of["supremum"]]), []).append(reached)

        def farthest(group: list[Reached], attained: bool) -> float | None:
            distances = [r.nearest for r in group if r.sharp and r.attained == attained and r.nearest is not None]
            return max(distances, default=None)

        return tuple(
            BoundRow(
                *name,
                len(group),
                sum(r.sharp for r in group),
                farthest(group, True),
                farthest(group, False),
                sum(r.failure is not None for r in group),
            )
            for name, group in groups.items()
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything but the single outcomes, for JSON."""
        return {
            "profile": self.profile,
            "seed": self.seed,
            "ok": self.ok,
            "judged": dict(self.judged),
            "versions": {name: version(name) for name in ("draftcert", *SOLVED_BY)},
            "cases": len(self.outcomes),
            "searches": len(self.reached),
            "families": [asdict(row) for row in self.table],
            "mutations": [asdict(row) for row in self.mutations],
            "sharpness": [asdict(row) for row in self.sharpness],
            "failures": list(self.failures),
        }

    def write(self, folder: Path | str) -> tuple[Path, Path]:
        """Write `report.json` and `report.html` (with plots; needs the `report` extra) into a folder.

        Raises:
            DraftcertError: matplotlib or jinja2 is missing.
        """
        folder = writable_folder(folder)
        data, page = folder / "report.json", folder / "report.html"
        each = {"outcomes": [asdict(o) for o in self.outcomes], "reached": [asdict(r) for r in self.reached]}
        write_whole(data, json.dumps(self.to_dict() | each, indent=1) + "\n")
        write_whole(page, self._page())
        return data, page

    def _page(self) -> str:
        with optional("report"):
            from jinja2 import Environment, FileSystemLoader, select_autoescape

        environment = Environment(
            loader=FileSystemLoader(Path(__file__).parent),
            autoescape=select_autoescape(default=True),
            finalize=visible_value,
        )
        page = environment.get_template("report.html.j2").render(
            report=self, plot=self._plot(), sharpness_plot=self._sharpness_plot() if self.reached else None
        )
        return with_policy(page)

    def _plot(self) -> str:
        """Digits of every case by family, ours and the solver's."""
        families = [row.family for row in self.table]
        figure = _figure(0.45 * len(families) + 1.5)
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
        return _png(figure)

    def _sharpness_plot(self) -> str:
        """Distances from the sharp bounds by the number of tokens that may have probability."""
        figure = _figure(4)
        sharp = [reached for reached in self.reached if reached.sharp]
        tokens = sorted({V for reached in sharp for V in reached.tokens})
        for axes, supremum, title in zip(figure.subplots(1, 2, sharey=True), (False, True), SIDES, strict=True):
            for reached in sharp:
                if reached.wanted["supremum"] == supremum:
                    points = [
                        (tokens.index(V), max(d, LEAST_SHOWN))
                        for V, d in zip(reached.tokens, reached.distances, strict=True)
                        if d is not None
                    ]
                    axes.plot([x for x, _ in points], [y for _, y in points], "o-", ms=3, lw=0.7, alpha=0.4)
            axes.set_title(f"distance from the {title}, nats", fontsize=10)
            axes.set_yscale("log")
            axes.set_xticks(range(len(tokens)), [f"{V:g}" for V in tokens])
            axes.set_xlabel("tokens")
            axes.grid(axis="y", alpha=0.3)
        return _png(figure)


def _figure(height: float) -> Any:
    with optional("report"):
        from matplotlib.figure import Figure

    return Figure(figsize=(10, height), layout="constrained")


def _png(figure: Any) -> str:
    """A figure as a PNG in base64."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return base64.b64encode(buffer.getvalue()).decode()
