"""`check`: decide every theorem and every formula of the theory and compare with the committed ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..theory import FORMULAS, DraftcertError, Formula
from ..theory.theorem import Theorem
from ..theory.theorems import THEOREMS
from . import ledger
from .kernel import FORMAL_UNCHECKED, Outcome, ProofError, Proved, examine, mint_formula


@dataclass(frozen=True)
class TheoremReport:
    """What became of a theorem: each claim in turn, and whether the theorem is proved."""

    name: str
    title: str
    sha256: str
    proved: bool
    seconds: float
    outcomes: tuple[Outcome, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """How its claims were established, without repetition."""
        return tuple(sorted({each.method for each in self.outcomes if each.ok}))


@dataclass(frozen=True)
class FormulaReport:
    """What became of a formula: the theorems it rests on, or why it is not proved."""

    name: str
    sha256: str
    proved: bool
    by: tuple[str, ...] = ()
    failure: str | None = None


@dataclass(frozen=True)
class Report:
    """The result of `check`.

    `ledger` says what differs from the committed ledger (`None` when only a part was checked); `formal` holds the
    audited Coq theorems, and is empty when Coq was not run.
    """

    theorems: tuple[TheoremReport, ...]
    formulas: tuple[FormulaReport, ...]
    formal: Mapping[str, bool]
    ledger: tuple[str, ...] | None
    proved: tuple[Proved, ...]

    @property
    def ok(self) -> bool:
        """Whether every claim that was checked holds and the ledger is reproduced."""
        results = (*(t.proved for t in self.theorems), *(f.proved for f in self.formulas))
        return all(results) and not self.ledger and False not in self.formal.values()

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Coq theorems that theorems refer to and that this run has not checked."""
        names = (o.says for t in self.theorems for o in t.outcomes if o.method == FORMAL_UNCHECKED)
        return tuple(dict.fromkeys(names))

    def as_json(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "ok": self.ok,
            "theorems": [asdict(each) | {"methods": list(each.methods)} for each in self.theorems],
            "formulas": [asdict(each) for each in self.formulas],
            "formal": dict(self.formal),
            "not_checked_formally": list(self.unchecked),
            "ledger": None if self.ledger is None else list(self.ledger),
        }


def check(
    only: str | Iterable[str] | None = None,
    formal: Mapping[str, bool] | None = None,
    progress: Callable[[TheoremReport], None] | None = None,
    theorems: Mapping[str, Theorem] = THEOREMS,
    formulas: Mapping[str, Formula] = FORMULAS,
) -> Report:
    """Decide the theorems (all, or those named by `only`) and the formulas they establish.

    Args:
        only: names of theorems, or of formulas (then: the theorems that establish them).
        formal: which Coq theorems an audit of this run confirms; those it does not name count as not checked.
        progress: called after each theorem.
        theorems: what to check instead of the project's theorems.
        formulas: what to check instead of the project's formulas.

    Raises:
        DraftcertError: `only` names neither a theorem nor a formula.

    >>> report = check(only="T2")
    >>> report.ok, report.theorems[0].methods
    (True, ('symbolic',))
    """
    chosen = _chosen(only, theorems, formulas)
    formal = formal or {}
    reports, proved = [], []
    for theorem in chosen:
        start = time.perf_counter()
        outcomes, minted = examine(theorem, formal)
        seconds = time.perf_counter() - start
        reports.append(
            TheoremReport(theorem.name, theorem.title, theorem.sha256, minted is not None, seconds, outcomes)
        )
        proved += [minted] if minted else []
        if progress:
            progress(reports[-1])
    touched = {e.formula.sha256 for theorem in chosen for e in theorem.establishes}
    about = [f for f in formulas.values() if only is None or f.sha256 in touched]
    formula_reports = []
    for formula in about:
        try:
            minted = mint_formula(formula, chosen, proved)
        except ProofError as error:
            formula_reports.append(FormulaReport(formula.name, formula.sha256, False, failure=str(error)))
            continue
        proved.append(minted)
        formula_reports.append(FormulaReport(formula.name, formula.sha256, True, minted.by))
    difference = _difference(ledger.entries(proved)) if only is None else None
    return Report(tuple(reports), tuple(formula_reports), formal, difference, tuple(proved))


def _chosen(
    only: str | Iterable[str] | None, theorems: Mapping[str, Theorem], formulas: Mapping[str, Formula]
) -> list[Theorem]:
    if only is None:
        return list(theorems.values())
    names = [only] if isinstance(only, str) else list(only)
    if unknown := [name for name in names if name not in theorems and name not in formulas]:
        raise DraftcertError(f"{unknown[0]!r} is neither a theorem ({', '.join(theorems)}) nor a formula")
    return [
        theorem
        for theorem in theorems.values()
        if theorem.name in names or any(e.formula.name in names for e in theorem.establishes)
    ]


def _difference(found: ledger.Entries) -> tuple[str, ...]:
    """In words, how this run's entries differ from the committed ones."""
    committed = ledger.committed()
    lines = [
        f"{(found.get(key) or committed[key])['name']} ({key[:12]}) is {state}"
        for key in sorted(found.keys() | committed.keys())
        for state in [
            "not in the committed ledger"
            if key not in committed
            else "in the committed ledger but was not proved now"
            if key not in found
            else "recorded differently"
        ]
        if found.get(key) != committed.get(key)
    ]
    return tuple(lines)
