"""From certificates and a mean divergence to an acceptance rate (B2)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import accumulate
from typing import Any

from ..theory import DraftcertError
from .enclosure import Enclosure
from .row import read_number


def guaranteed_acceptance(certificates: Iterable[Any], mean_kl: Any) -> Fraction:
    """The share of contexts that are accepted for certain when the mean of KL(target || draft) is at most `mean_kl`.

    Rejecting a context costs at least its certificate, and N contexts share `N mean_kl` nats: so at most k can be
    rejected, the cheapest first, where k is the largest number with `C_(1) + ... + C_(k) <= N mean_kl`. Some drafter
    attains it. A certificate of 0 is rejected for free, an infinite one never.

    Args:
        certificates: one per context, in nats: `Certificate`, floats (inf allowed), fractions or text.
        mean_kl: the drafter's mean divergence over these contexts, in nats.

    Raises:
        DraftcertError: no certificates, a negative or NaN value.

    >>> guaranteed_acceptance([0.1, 0.2, 0.4, math.inf], 0.1)
    Fraction(1, 2)
    """
    costs, contexts = _costs(certificates)
    budget = contexts * _at_least_zero(mean_kl, "mean_kl")
    rejected = sum(total <= budget for total in accumulate(costs))
    return Fraction(contexts - rejected, contexts)


def mean_kl_for(certificates: Iterable[Any], acceptance: Any) -> float:
    """The mean divergence in nats below which at least this share of contexts is accepted for certain.

    Every mean KL strictly below it guarantees the share; at the value itself some drafter rejects one context more.
    Rounded down to a float; infinite when the share is accepted whatever the drafter does.

    Raises:
        DraftcertError: no certificates, a negative one, or a share outside [0, 1].

    >>> mean_kl_for([0.1, 0.2, 0.4, math.inf], 0.75)
    0.075
    """
    costs, contexts = _costs(certificates)
    share = read_number(acceptance, "acceptance")
    if not 0 <= share <= 1:
        raise DraftcertError(f"acceptance = {acceptance}: a share lies in [0, 1]")
    allowed = math.floor(contexts * (1 - share))
    if allowed + 1 > len(costs):
        return math.inf
    exact = sum(costs[: allowed + 1], Fraction(0)) / contexts
    return float(exact) if Fraction(float(exact)) <= exact else math.nextafter(float(exact), 0.0)


def _costs(certificates: Iterable[Any]) -> tuple[list[Fraction], int]:
    """The finite certificates in ascending order, exact (proven lower ends of enclosures), and how many there are."""
    values = [_lower_end(value) for value in certificates]
    if not values:
        raise DraftcertError("no certificates: an acceptance rate needs at least one context")
    finite = [_at_least_zero(v, f"certificate {k}") for k, v in enumerate(values) if v != math.inf]
    return sorted(finite), len(values)


def _lower_end(value: Any) -> Any:
    if not isinstance(value, Enclosure):
        return value
    if not value.ball.is_finite():
        return math.inf
    mantissa, exponent = value.lower.man_exp
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _at_least_zero(value: Any, what: str) -> Fraction:
    exact = read_number(value, what)
    if exact < 0:
        raise DraftcertError(f"{what} is {value}: a divergence is not negative")
    return exact
