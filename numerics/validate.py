"""`validate`: do independent solvers agree with the theory's formulas, and to how many digits?"""

from __future__ import annotations

import math
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from ..theory import DraftcertError, parse_rule
from .certificate import certificate_of_row
from .families import FAMILIES, make_row
from .program import solve

SOLVER_DIGITS = 5.0
"""Digits a double-precision interior-point method must agree to; the polished optimum is held to far more."""


@dataclass(frozen=True)
class Case:
    """One target, rule and number of candidates; made again from these few values."""

    family: str
    index: int
    seed: int
    tokens: int
    rule: str
    candidates: int

    @property
    def key(self) -> str:
        """Identity of the case in saved results."""
        return f"{self.family}/{self.index}/{self.seed}/{self.tokens}/{self.rule}/{self.candidates}"


@dataclass(frozen=True)
class Outcome:
    """What a case gave: the certified value and the digits to which the solver agrees with it."""

    key: str
    family: str
    value: str
    digits: float
    failure: dict[str, Any] | None = None
    """What disagrees, with the exact target to reproduce it."""


def cases(profile: str, seed: int, rules: Iterable[str]) -> Iterator[Case]:
    """The cases of a profile in a fixed order."""
    if profile not in PROFILES:
        raise DraftcertError(f"no profile is called '{profile}'; there are {', '.join(PROFILES)}")
    plan = PROFILES[profile]
    for index in range(plan.per_family):
        for family in FAMILIES.values():
            for rule in rules:
                tokens = max(family.least, plan.sizes[index % len(plan.sizes)])
                yield Case(family.name, index, seed, tokens, rule, 1 + index % (tokens - 1))


@dataclass(frozen=True)
class Profile:
    """How much a profile does."""

    per_family: int
    sizes: tuple[int, ...]


PROFILES = {"quick": Profile(30, (2, 3, 3, 4, 5)), "full": Profile(1000, (2, 3, 4, 5, 6, 7, 8, 50, 1000))}


def run_case(case: Case) -> Outcome:
    """Compare the formula with the solver on one case."""
    rule = parse_rule(case.rule)
    row = make_row(FAMILIES[case.family], case.seed, case.index, case.tokens)
    expected = certificate_of_row(row, rule, case.candidates, 30)
    found = solve(row, rule, case.candidates, accepted=len(expected.accepted))
    value = math.inf if found is None else found.value
    digits = agreed_digits(float(expected), value)
    failure = None
    if digits < SOLVER_DIGITS:
        failure = asdict(case) | {
            "probabilities": [str(row.probability(x)) for x in range(len(row))],
            "formula": str(expected),
            "solver": value,
        }
    return Outcome(case.key, case.family, str(expected), digits, failure)


def agreed_digits(expected: float, found: float) -> float:
    """Digits of absolute agreement in nats, at most 16 (a double's)."""
    if math.isinf(expected) or math.isinf(found):
        return 16.0 if expected == found else 0.0
    return min(16.0, -math.log10(max(abs(expected - found), 1e-16)))


@dataclass(frozen=True)
class Row:
    """One line of the report: a family of cases."""

    family: str
    cases: int
    worst_digits: float
    median_digits: float
    failures: int


@dataclass(frozen=True)
class Report:
    """All outcomes of a run and their summary."""

    profile: str
    seed: int
    outcomes: tuple[Outcome, ...]

    @property
    def ok(self) -> bool:
        """Whether every case agrees."""
        return not self.failures

    @property
    def failures(self) -> tuple[dict[str, Any], ...]:
        """The cases that disagree, each with the exact input that shows it."""
        return tuple(outcome.failure for outcome in self.outcomes if outcome.failure)

    @property
    def table(self) -> tuple[Row, ...]:
        """Worst and median digits per family."""
        rows = []
        for name in FAMILIES:
            of_family = sorted((o for o in self.outcomes if o.family == name), key=lambda o: o.digits)
            if of_family:
                digits = [o.digits for o in of_family]
                failed = sum(o.failure is not None for o in of_family)
                rows.append(Row(name, len(digits), digits[0], digits[len(digits) // 2], failed))
        return tuple(rows)


def validate(
    profile: str = "quick",
    seed: int = 0,
    *,
    rules: Iterable[str] = ("strict_greedy",),
    progress: Callable[[int, int], None] | None = None,
    processes: int | None = None,
) -> Report:
    """Compare the theory's certificates with cvxpy on families of targets.

    The same seed gives the same report in any number of processes. `progress(done, total)` is called as cases end.

    Raises:
        DraftcertError: unknown profile or rule.
    """
    todo = list(cases(profile, seed, rules))
    workers = max(1, processes or os.cpu_count() or 1)
    outcomes = []
    for outcome in _run(todo, workers):
        outcomes.append(outcome)
        if progress:
            progress(len(outcomes), len(todo))
    return Report(profile, seed, tuple(outcomes))


def _run(todo: list[Case], workers: int) -> Iterator[Outcome]:
    if workers == 1:
        yield from map(run_case, todo)
        return
    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context(method)) as pool:
        yield from pool.map(run_case, todo, chunksize=4)
