"""The exact convex program of a rule: least divergence over the rejected drafts, stated from the rule's predicate.

Nothing of the closed form enters: the rejected tokens come from the rule, and the constraint is the definition,
`min_M q >= max_A q` for some M of `candidates` rejected tokens. Up to `ALL_CHOICES` tokens every M is solved.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import inf
from typing import Any

import cvxpy as cp
import numpy as np

from ..theory import DraftcertError
from .divergence import Divergence, kl
from .row import ExactRow

ALL_CHOICES = 8
"""Up to this vocabulary every choice of competitors is solved; above it only the most likely ones."""

SOLVERS: dict[str, dict[str, float]] = {
    "CLARABEL": {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11},
    "SCS": {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iters": 20_000},
}


@dataclass(frozen=True)
class Solution:
    """A solver's answer for one choice of competitors; infinite, without a draft, where no finite divergence exists."""

    value: float
    draft: np.ndarray | None
    competitors: tuple[int, ...]
    solver: str
    claimed: bool = True
    """Whether the solver says that its value is optimal to its tolerances."""


def solve(
    row: ExactRow,
    accepted: int,
    candidates: int = 1,
    *,
    divergence: Divergence | None = None,
    solver: str = "CLARABEL",
) -> tuple[Solution, ...]:
    """Solve for the least divergence of a rejected draft, one solution for every choice of competitors.

    `accepted` counts the accepted tokens of the rule, `decide.accepted_count(rule, row)`. No solution means that no
    draft can be rejected.

    Raises:
        DraftcertError: the solver does not reach an optimum.
    """
    allowed, rejected = row.order[:accepted], row.order[accepted:]
    choices = combinations(rejected, candidates) if len(row) <= ALL_CHOICES else [rejected[:candidates]]
    if len(rejected) < candidates:
        return ()
    target = np.array([weight / row.total for weight in row.weights])
    return tuple(_solve_choice(target, allowed, chosen, divergence or kl(), solver) for chosen in choices)


def _solve_choice(
    target: np.ndarray, accepted: Sequence[int], chosen: Sequence[int], divergence: Divergence, solver: str
) -> Solution:
    draft = cp.Variable(len(target), nonneg=True)
    constraints: list[Any] = [cp.sum(draft) == 1]
    if accepted:
        constraints.append(cp.min(draft[list(chosen)]) >= cp.max(draft[list(accepted)]))
    if divergence.support_only and not target.all():
        constraints.append(draft[np.flatnonzero(target == 0)] == 0)
    problem = cp.Problem(cp.Minimize(divergence.objective(target, draft)), constraints)
    where = f"{divergence.name} from {target.tolist()} with competitors {tuple(chosen)}"
    try:
        with warnings.catch_warnings():  # "may be inaccurate": how accurate is what the comparison measures
            warnings.simplefilter("ignore", UserWarning)
            problem.solve(solver=solver, **SOLVERS[solver])
    except cp.SolverError as error:
        raise DraftcertError(f"{solver} fails on {where}: {error}") from error
    if problem.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
        return Solution(inf, None, tuple(chosen), solver)
    if draft.value is None:
        raise DraftcertError(f"{solver} ends '{problem.status}' on {where}")
    value = divergence.value(float(problem.value))  # type: ignore[arg-type]
    claimed = problem.status == cp.OPTIMAL and np.isfinite(value)
    return Solution(value, np.asarray(draft.value), tuple(chosen), solver, bool(claimed))


def least_acceptance(row: ExactRow, divergence: float, lenience: float) -> float:
    """The least acceptance of speculative sampling for a target at KL(target || draft) <= `divergence`, in nats.

    What is rejected is the largest excess `q(B) - p(B) / lenience` over sets B of tokens: one convex program a set.
    Nothing of the two coins of S2 enters.

    Raises:
        DraftcertError: the solver does not reach an optimum.
    """
    target = np.array([weight / row.total for weight in row.weights])
    draft, chosen = cp.Variable(len(target), nonneg=True), cp.Parameter(len(target), nonneg=True)
    constraints = [cp.sum(draft) == 1, cp.sum(cp.rel_entr(target, draft)) <= divergence]
    problem = cp.Problem(cp.Maximize(chosen @ draft), constraints)
    rejected = 0.0
    for tokens in chain.from_iterable(combinations(range(len(target)), size) for size in range(1, len(target))):
        chosen.value = np.isin(np.arange(len(target)), tokens).astype(float)
        problem.solve(solver=cp.CLARABEL)
        if problem.status != cp.OPTIMAL:
            raise DraftcertError(f"CLARABEL ends '{problem.status}' on {target.tolist()} at {divergence} nats")
        rejected = max(rejected, float(problem.value) - float(chosen.value @ target) / lenience)  # type: ignore[arg-type]
    return 1 - rejected
