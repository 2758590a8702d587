"""From certificates and a mean divergence to an acceptance rate (B2)."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np

from ..theory import DraftcertError
from ..theory.numbers import items
from .enclosure import Enclosure
from .row import from_torch, integers_of_floats, read_divergence, read_number


class MeanKLGuarantee:
    """What the mean of KL(target || draft) over contexts with these certificates guarantees.

    Rejecting a context costs at least its certificate, and N contexts share `N mean_kl` nats: so at most k can be
    rejected, the cheapest first, where k is the largest number with `C_(1) + ... + C_(k) <= N mean_kl`. Some drafter
    attains it. A certificate of 0 is rejected for free, an infinite one never. All sums and comparisons are exact.

    Args:
        certificates: one per context, in nats: an array or tensor of any shape, or a list of exact ones, floats (inf
            allowed), fractions or text.

    Raises:
        DraftcertError: no certificates, a negative or NaN one.

    >>> guarantee = MeanKLGuarantee([0.1, 0.2, 0.4, math.inf])
    >>> guarantee.acceptance(0.1), guarantee.mean_kl("3/4")
    (Fraction(1, 2), 0.075)
    """

    def __init__(self, certificates: Iterable[Any]) -> None:
        costs, self._unit, self._contexts = _costs(certificates)
        self._sums = list(accumulate(costs))

    def acceptance(self, mean_kl: Any) -> Fraction:
        """The share of contexts that are accepted for certain when the mean KL in nats is at most `mean_kl`.

        Raises:
            DraftcertError: a negative or NaN `mean_kl`.
        """
        budget = read_divergence(mean_kl, "mean_kl")
        rejected = len(self._sums)
        if budget is not None:
            rejected = bisect_right(self._sums, math.floor(self._contexts * budget * self._unit))
        return Fraction(self._contexts - rejected, self._contexts)

    def mean_kl(self, acceptance: Any) -> float:
        """The mean KL in nats below which at least this share of contexts is accepted for certain.

        Every mean KL strictly below it guarantees the share; at the value itself some drafter rejects one context
        more. Rounded down to a float; infinite when the share is accepted whatever the drafter does.

        Raises:
            DraftcertError: a share outside [0, 1].
        """
        share = read_number(acceptance, "acceptance")
        if not 0 <= share <= 1:
            raise DraftcertError(f"acceptance = {acceptance}: a share lies in [0, 1]")
        allowed = math.floor(self._contexts * (1 - share))
        if allowed >= len(self._sums):
            return math.inf
        exact = Fraction(self._sums[allowed], self._unit * self._contexts)
        return float(exact) if Fraction(float(exact)) <= exact else math.nextafter(float(exact), 0.0)


def guaranteed_acceptance(certificates: Iterable[Any], mean_kl: Any) -> Fraction:
    """The share of contexts accepted for certain at this mean KL: `MeanKLGuarantee` for a single question.

    >>> guaranteed_acceptance([0.1, 0.2, 0.4, math.inf], 0.1)
    Fraction(1, 2)
    """
    return MeanKLGuarantee(certificates).acceptance(mean_kl)


def mean_kl_for(certificates: Iterable[Any], acceptance: Any) -> float:
    """The mean KL below which this share of contexts is accepted for certain: the inverse, for a single question.

    >>> mean_kl_for([0.1, 0.2, 0.4, math.inf], 0.75)
    0.075
    """
    return MeanKLGuarantee(certificates).mean_kl(acceptance)


def _costs(certificates: Any) -> tuple[list[int], int, int]:
    """The finite certificates, ascending, as integer multiples of 1/unit; the unit; the number of certificates."""
    if hasattr(certificates, "detach"):
        certificates, _ = from_torch(certificates)
    if isinstance(certificates, np.ndarray) and certificates.dtype.kind in "fiu":  # floats and whole numbers
        certificates = certificates.ravel()
        if not (certificates >= 0).all():
            bad = int(np.flatnonzero(~(certificates >= 0))[0])
            raise DraftcertError(f"certificate {bad} = {certificates[bad]}: a divergence is not negative")
        weights, unit = integers_of_floats(np.sort(certificates[certificates < np.inf]))
        contexts = len(certificates)
    else:
        given = items(certificates, "certificates")
        values = [value.lower if isinstance(value, Enclosure) else value for value in given]
        costs = [read_divergence(value, f"certificate {k}") for k, value in enumerate(values)]
        exact = [cost for cost in costs if cost is not None]
        unit = math.lcm(*(cost.denominator for cost in exact))
        weights, contexts = sorted(cost.numerator * (unit // cost.denominator) for cost in exact), len(values)
    if not contexts:
        raise DraftcertError("no certificates: an acceptance rate needs at least one context")
    return weights, unit, contexts
