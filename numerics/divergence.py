"""Divergences between target and draft: as a cvxpy objective, and as what weak duality needs to certify an optimum.

All are sums over tokens of a convex function of the draft, homogeneous of degree one in (target, draft). So the slope
depends on the ratio draft/target alone, and the tokens that no constraint holds are all scaled by one ratio.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import cvxpy as cp
import mpmath
import numpy as np
from flint import arb, fmpq

from ..theory import DraftcertError
from .balls import Mpf, to_fmpq


@dataclass(frozen=True)
class Divergence:
    """`D(target || draft) = value(sum over tokens of term(p, q))`.

    `slope(ratio)` is minus the derivative of a token's term in q. It decreases in `ratio = q/p` to 0, or without bound
    when the divergence is finite on the target's support only. `conjugate(p, y) = inf over q >= 0 of term(p, q) + y q`
    for y >= 0 (any y with `support_only`).
    """

    name: str
    objective: Callable[[np.ndarray, cp.Variable], Any]
    value: Callable[[Any], Any]
    """From the sum of terms to the divergence; increasing; on floats and balls."""
    term: Callable[[fmpq, fmpq], arb]
    slope: Callable[[Mpf], Mpf]
    conjugate: Callable[[fmpq, fmpq], arb]
    order: Fraction | None = None
    """Of the power mean that its level is: 1 for KL, 0 (the geometric mean) for reverse KL; None for a plain mean."""
    support_only: bool = False
    smooth: bool = True


def kl() -> Divergence:
    """`KL(target || draft) = sum p ln(p/q)`; cvxpy's `rel_entr`, since its `kl_div` adds `- p + q`."""
    return Divergence(
        "kl",
        objective=lambda p, q: cp.sum(cp.rel_entr(p, q)),
        value=lambda total: total,
        term=lambda p, q: p * arb(p / q).log() if p else arb(0),
        slope=lambda ratio: 1 / ratio,
        conjugate=lambda p, y: p * (1 + arb(y).log()) if p else arb(0),
        order=Fraction(1),
    )


def reverse_kl() -> Divergence:
    """`KL(draft || target) = sum q ln(q/p)`, infinite where p = 0 < q."""
    return Divergence(
        "reverse_kl",
        objective=lambda p, q: cp.sum(cp.rel_entr(q[np.flatnonzero(p)], p[np.flatnonzero(p)])),
        value=lambda total: total,
        term=lambda p, q: q * arb(q / p).log() if q else arb(0),
        slope=lambda ratio: -1 - mpmath.log(ratio),
        conjugate=lambda p, y: -p * (-1 - arb(y)).exp() if p else arb(0),
        order=Fraction(0),
        support_only=True,
    )


def renyi(order: Fraction | str | float) -> Divergence:
    """Renyi divergence `ln(sum p^a q^(1-a)) / (a-1)` of order a > 0, a != 1.

    The sum is convex in the draft for a > 1 and concave below, where its negative is minimised.

    Raises:
        DraftcertError: order <= 0, or 1 (that is `kl`).
    """
    a = Fraction(order)
    if a <= 0 or a == 1:
        raise DraftcertError(f"Renyi order {order} is not a positive number other than 1; order 1 is 'kl'")
    sign, power = (1 if a > 1 else -1), to_fmpq(a)

    def objective(p: np.ndarray, q: cp.Variable) -> Any:
        support = np.flatnonzero(p)
        return sign * (p[support] ** float(a)) @ cp.power(q[support], float(1 - a))

    def value(total: Any) -> Any:
        positive = sign * total
        logarithm: Any = positive.log() if isinstance(total, arb) else float(np.log(positive))
        return logarithm / (power - 1 if isinstance(total, arb) else float(a - 1))

    def term(p: fmpq, q: fmpq) -> arb:
        return sign * arb(p) ** arb(power) * arb(q) ** arb(1 - power) if p and q else arb(0)

    def conjugate(p: fmpq, y: fmpq) -> arb:
        if not p:
            return arb(0)
        q = p * (arb(abs(power - 1)) / y) ** arb(1 / power)
        return sign * arb(p) ** arb(power) * q ** arb(1 - power) + y * q

    def slope(ratio: Mpf) -> Mpf:
        steepness = abs(a - 1)
        return ratio ** (-mpmath.mpf(a.numerator) / a.denominator) * steepness.numerator / steepness.denominator

    return Divergence(
        f"renyi({a})",
        objective=objective,
        value=value,
        term=term,
        slope=slope,
        conjugate=conjugate,
        order=a,
    )


def total_variation() -> Divergence:
    """`sum (p - q)_+`, half the l1 distance. Piecewise linear: `polish` knows its multipliers in closed form."""
    return Divergence(
        "total_variation",
        objective=lambda p, q: cp.sum(cp.pos(p - q)),
        value=lambda total: total,
        term=lambda p, q: arb(max(p - q, fmpq(0))),
        slope=lambda ratio: mpmath.mpf(ratio < 1),
        conjugate=lambda p, y: arb(p * min(y, fmpq(1))),
        smooth=False,
    )


DIVERGENCES: dict[str, Callable[[], Divergence]] = {
    "kl": kl,
    "renyi(1/2)": lambda: renyi("1/2"),
    "renyi(2)": lambda: renyi(2),
    "reverse_kl": reverse_kl,
    "total_variation": total_variation,
}
"""The divergences that are validated, by name."""
