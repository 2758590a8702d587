"""The exact convex program of a rule: least divergence over the rejected drafts, stated from the rule's predicate.

Nothing of the closed form enters: the rejected tokens come from the rule, and the constraint is the definition,
`min_M q >= max_A q` for some M of `candidates` rejected tokens. Up to `ALL_CHOICES` tokens every M is solved.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf

import cvxpy as cp
import numpy as np

from ..theory import DraftcertError, Rule
from .decide import accepted_count
from .row import ExactRow

ALL_CHOICES = 8
"""Up to this vocabulary every choice of competitors is solved; above it only the most likely ones."""

SOLVERS: dict[str, dict[str, float]] = {
    "CLARABEL": {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11},
    "SCS": {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iters": 20_000},
}


@dataclass(frozen=True)
class Divergence:
    """A divergence `D(target, draft)` as a convex objective in the draft, and what its minimum means.

    `objective(p, q)` is minimised and `value` maps the minimum to the divergence in nats (total variation: none).
    """

    name: str
    objective: Callable[[np.ndarray, cp.Variable], cp.Expression]
    value: Callable[[float], float] = float


def kl() -> Divergence:
    """`sum p ln(p/q)`; cvxpy's `rel_entr`, since its `kl_div` adds `- p + q`."""
    return Divergence("kl", lambda p, q: cp.sum(cp.rel_entr(p, q)))


@dataclass(frozen=True)
class Solution:
    """A solver's answer: the least value, the draft and the competitors it was found with."""

    value: float
    draft: np.ndarray
    competitors: tuple[int, ...]
    solver: str


def solve(
    row: ExactRow,
    rule: Rule,
    candidates: int = 1,
    *,
    divergence: Divergence | None = None,
    solver: str = "CLARABEL",
    accepted: int | None = None,
) -> Solution | None:
    """Solve for the least divergence of a rejected draft; None when no draft can be rejected.

    `accepted` is the number of accepted tokens where the caller knows it already.

    Raises:
        DraftcertError: the solver does not reach an optimum.
    """
    count = accepted_count(rule, row) if accepted is None else accepted
    allowed, rejected = row.order[:count], row.order[count:]
    if len(rejected) < candidates:
        return None
    choices = combinations(rejected, candidates) if len(row) <= ALL_CHOICES else [rejected[:candidates]]
    target = np.array([weight / row.total for weight in row.weights])
    answers = [_solve_choice(target, allowed, chosen, divergence or kl(), solver) for chosen in choices]
    return min(answers, key=lambda answer: answer.value)


def _solve_choice(
    target: np.ndarray, accepted: Sequence[int], chosen: Sequence[int], divergence: Divergence, solver: str
) -> Solution:
    draft = cp.Variable(len(target), nonneg=True)
    constraints: list[cp.Constraint] = [cp.sum(draft) == 1]
    if accepted:
        constraints.append(cp.min(draft[list(chosen)]) >= cp.max(draft[list(accepted)]))
    problem = cp.Problem(cp.Minimize(divergence.objective(target, draft)), constraints)
    try:
        with warnings.catch_warnings():  # "may be inaccurate": how accurate is what the comparison measures
            warnings.simplefilter("ignore", UserWarning)
            problem.solve(solver=solver, **SOLVERS[solver])
    except cp.SolverError as error:
        raise DraftcertError(
            f"{solver} fails on {target.tolist()} with competitors {tuple(chosen)}: {error}"
        ) from error
    if problem.status == cp.INFEASIBLE:
        return Solution(inf, np.full(len(target), np.nan), tuple(chosen), solver)
    if draft.value is None:
        raise DraftcertError(f"{solver} ends '{problem.status}' on {target.tolist()} with competitors {tuple(chosen)}")
    return Solution(divergence.value(float(problem.value)), np.array(draft.value), tuple(chosen), solver)
