"""`check`: decide every theorem and every formula of the theory and compare with the committed ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ..theory import Formula
from ..theory.names import unknown_name
from ..theory.theorem import Theorem
from ..theory.theorems import EVERY_FORMULA, THEOREMS
from .formal import INSTALL, FormalAudit, audit_coq, coq_version
from .ledger import committed, differences, entries
from .prover import FORMAL_UNCHECKED, Outcome, ProofError, Proved, examine, mint_formula


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
class CheckReport:
    """The result of `check`.

    `ledger` says what differs from the committed ledger (`None` when only a part was checked). `formal` is the audit of
    the Coq development, or `None` when it was not run; `coq` says in words what became of it.
    """

    theorems: tuple[TheoremReport, ...]
    formulas: tuple[FormulaReport, ...]
    formal: FormalAudit | None
    coq: str
    ledger: tuple[str, ...] | None
    proved: tuple[Proved, ...]

    @property
    def ok(self) -> bool:
        """Whether every claim that was checked holds and the ledger is reproduced; unchecked claims do not count."""
        results = (*(t.proved for t in self.theorems), *(f.proved for f in self.formulas))
        return all(results) and not self.ledger and not (self.formal and self.formal.problems)

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
            "formal": None if self.formal is None else asdict(self.formal),
            "coq": self.coq,
            "not_checked_formally": list(self.unchecked),
            "ledger": None if self.ledger is None else list(self.ledger),
        }


def check(
    only: str | Iterable[str] | None = None,
    coq: bool | Literal["auto"] = "auto",
    progress: Callable[[TheoremReport], None] | None = None,
    coq_progress: Callable[[str, int, int], None] | None = None,
    theorems: Mapping[str, Theorem] = THEOREMS,
    formulas: Mapping[str, Formula] = EVERY_FORMULA,
    coq_compiled: Path | None = None,
) -> CheckReport:
    """Decide the theorems (all, or those named by `only`) and the formulas they establish.

    Args:
        only: names of theorems, or of formulas (then: the theorems that establish them).
        coq: whether to audit the Coq development (minutes); "auto": where Coq is installed. Without it the Coq theorems
            are reported as not checked.
        progress: called after each theorem.
        coq_progress: called with what was audited, how many parts are done and how many there are.
        theorems: what to check instead of the project's theorems.
        formulas: what to check instead of the project's formulas.
        coq_compiled: an empty folder that keeps the compiled Coq development.

    Raises:
        DraftcertError: `only` names neither a theorem nor a formula, or `coq=True` and Coq is not installed.

    >>> report = check(only="T2", coq=False)
    >>> report.ok, report.theorems[0].methods
    (True, ('symbolic',))
    """
    chosen = _chosen(only, theorems, formulas)
    formal, coq_says = _audit(coq, coq_progress, coq_compiled)
    confirmed = formal.theorems if formal else {}
    reports, proved = [], []
    for theorem in chosen:
        start = time.perf_counter()
        outcomes, minted = examine(theorem, confirmed)
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
    difference = None
    if only is None:
        kinds = ["theorem", "formula", *(["coq"] if formal else [])]
        difference = differences(entries(proved, formal), committed(), kinds)
    return CheckReport(tuple(reports), tuple(formula_reports), formal, coq_says, difference, tuple(proved))


def _audit(
    coq: bool | Literal["auto"], progress: Callable[[str, int, int], None] | None, compiled: Path | None
) -> tuple[FormalAudit | None, str]:
    if coq is False:
        return None, "not checked formally: Coq was not asked"
    if coq == "auto" and coq_version() is None:
        return None, f"not checked formally: Coq is not installed ({INSTALL})"
    audit = audit_coq(progress=progress, compiled=compiled)
    said = "; ".join(audit.problems) or f"{len(audit.theorems)} theorems confirmed"
    return audit, f"Coq {audit.version}: {said}"


def _chosen(
    only: str | Iterable[str] | None, theorems: Mapping[str, Theorem], formulas: Mapping[str, Formula]
) -> list[Theorem]:
    if only is None:
        return list(theorems.values())
    names = [only] if isinstance(only, str) else list(only)
    if absent := [name for name in names if name not in theorems and name not in formulas]:
        raise unknown_name("theorem or formula", absent[0], [*theorems, *formulas])
    return [
        theorem
        for theorem in theorems.values()
        if theorem.name in names or any(e.formula.name in names for e in theorem.establishes)
    ]
