"""Rules that accept while a divergence of target and draft is below a threshold: the KL that keeps it there (S4)."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from flint import arb, fmpq

from ..theory.names import unknown_name
from .balls import bit_size, precision, to_fmpq
from .certificate import check_digits
from .enclosure import Enclosure, is_certain
from .row import read_divergence
from .sampling import kl_for_sampling_acceptance, root


def kl_for_divergence(divergence: str, threshold: Any, digits: int = 50) -> Enclosure:
    """The KL(target || draft), in nats, below which another divergence stays below a threshold. Sharp over all pairs.

    So it certifies rules that accept where that divergence is at most the threshold, fuzzy speculative decoding's.

    Args:
        divergence: `kl`, `total_variation`, `hellinger` (squared: 1 - sum sqrt(p q)), `jensen_shannon` (nats, at most
            ln 2; in bits it is that over ln 2), `reverse_kl`.
        threshold: a number >= 0, read exactly.
        digits: correct digits wanted.

    Returns:
        The enclosure: infinite where no pair exceeds the threshold, 0 where KL(target || draft) bounds nothing: that is
        so for the reverse KL, which is infinite as soon as the target misses a token of the draft.

    Raises:
        DraftcertError: another divergence, a negative or NaN threshold.

    >>> print(kl_for_divergence("total_variation", "0.1", digits=5))
    0.020045

    Source: S4 of `draftcert.theory`.
    """
    digits = check_digits(digits)
    if not isinstance(divergence, str) or divergence not in DIVERGENCES:
        raise unknown_name("divergence", divergence, DIVERGENCES)
    exact = read_divergence(threshold, "threshold")
    if exact is None:
        return Enclosure(arb("inf"), digits)
    if divergence == "total_variation":
        return kl_for_sampling_acceptance(max(1 - exact, 0), digits=digits)
    if exact == 0:
        return Enclosure(arb(0), digits)
    if divergence == "kl":
        with precision(64 + 4 * digits):
            return Enclosure(arb(to_fmpq(exact)), digits)
    bits = 64 + 7 * digits + 4 * abs(bit_size(to_fmpq(exact)))
    while True:
        with precision(bits):
            ball = _ENCLOSED[divergence](to_fmpq(exact), bits)
        if not ball.is_nan() and is_certain(ball, digits):
            return Enclosure(ball, digits)
        bits *= 2


def _hellinger(threshold: fmpq, bits: int) -> arb:
    return -2 * arb(1 - threshold).log() if threshold < 1 else arb("inf")


def _jensen_shannon(threshold: fmpq, bits: int) -> arb:
    """The largest one at KL is `ln 2 + (r ln r - (1 + r) ln(1 + r))/2` with r = exp(-KL), which grows to ln 2."""
    left = arb(2).log() - threshold
    if left < 0:
        return arb("inf")
    if not left > 0:
        return arb.nan()

    def excess(log_of_kl: arb) -> arb:
        kl = log_of_kl.exp()
        ratio = (-kl).exp()
        missing = ((1 + ratio) * ratio.log1p() + kl * ratio) / 2
        return ((arb(2).log() - missing) / missing * left / threshold).log()

    # It is below KL, and what is missing to ln 2 is at most exp(-KL) (1 + KL/2).
    found = root(excess, arb(threshold).log(), (2 * (2 / left).log() + 4).log(), bits)
    return arb.nan() if found is None else found[0].union(found[1]).exp()


_ENCLOSED: MappingProxyType[str, Callable[[fmpq, int], arb]] = MappingProxyType(
    {
        "hellinger": _hellinger,
        "jensen_shannon": _jensen_shannon,
        "reverse_kl": lambda threshold, bits: arb(0),
    }
)
DIVERGENCES = ("kl", "total_variation", *_ENCLOSED)
"""The divergences that are compared with KL(target || draft)."""
