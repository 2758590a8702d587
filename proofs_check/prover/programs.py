"""The convex program of a few tokens, decided by its optimality conditions."""

from __future__ import annotations

import sympy

from ...theory.theorem import Evident, Optimum
from .compare import decide_at_least, decide_equal
from .errors import ProofError


def decide_optimum(claim: Optimum, what: str) -> None:
    """Primal and dual feasibility, complementarity and stationarity, of the program that is built here."""
    target = (*claim.accepted, *claim.competitors, *claim.others)
    a, m = len(claim.accepted), len(claim.competitors)
    shape = [len(row) for row in claim.multipliers]
    if len(claim.draft) != len(target) or shape != [a] * m or not a or not m:
        raise ProofError(f"{what}: drafts or multipliers do not match {a} accepted tokens and {m} competitors")
    domain = claim.domain
    decide_equal(sympy.Add(*target) - 1, domain, f"{what}: the target's mass")
    decide_equal(sympy.Add(*claim.draft) - 1, domain, f"{what}: the draft's mass (primal feasibility)")
    gradient = [claim.mass_multiplier - p / q for p, q in zip(target, claim.draft, strict=True)]
    for j, (p, q) in enumerate(zip(target, claim.draft, strict=True)):
        decide_at_least(p, domain, Evident(), f"{what}: target token {j}")
        decide_at_least(q, domain, Evident(), f"{what}: draft token {j} (primal feasibility)", strict=True)
    for i in range(m):
        for k in range(a):
            slack, multiplier = claim.draft[a + i] - claim.draft[k], claim.multipliers[i][k]
            pair = f"competitor {i} against accepted {k}"
            decide_at_least(slack, domain, Evident(), f"{what}: {pair} (primal feasibility)")
            decide_at_least(multiplier, domain, Evident(), f"{what}: {pair} (dual feasibility)")
            decide_equal(slack * multiplier, domain, f"{what}: {pair} (complementarity)")
            gradient[k] += multiplier
            gradient[a + i] -= multiplier
    for j, slope in enumerate(gradient):
        decide_equal(slope, domain, f"{what}: token {j} (stationarity)")
    divergence = sympy.Add(*(p * sympy.log(p / q) for p, q in zip(target, claim.draft, strict=True)))
    decide_equal(divergence - claim.value, domain, f"{what}: the value")
