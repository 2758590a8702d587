"""`certificate_from_top_logprobs`: what a server's top-k list says about the certificate (B4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import mpmath
from flint import arb

from ..theory import DraftcertError, Rule, parse_rule
from ..theory.conditions import Condition, ThresholdCondition
from ..theory.statistics import Entropy
from .balls import Mpf, bounds, to_mpf
from .certificate import projected
from .decide import RowStatistics
from .polish import certified_digits
from .row import ExactRow, read_number

DIGITS = 40
ROUNDING = Fraction(1, 10**50)
"""exp of a log-probability is taken to 60 digits; a certificate moves by less than this, in nats, for that."""
TOLERANCE = Fraction(1, 10**4)
"""By how much listed masses may miss what is possible: servers compute them in single precision or less."""


@dataclass(frozen=True)
class CertificateInterval:
    """A rigorous interval for a certificate in nats; `exact` when the list determines it.

    Between `fewest` and `most` of the listed tokens are accepted; one more than there are stands for unlisted ones.
    """

    lower: Mpf
    upper: Mpf
    exact: bool
    fewest: int
    most: int


def certificate_from_top_logprobs(
    logprobs: Sequence[Any], rule: Rule | str, candidates: int = 1, *, vocabulary: int | None = None
) -> CertificateInterval:
    """The certificate from the k largest log-probabilities of the target, as servers return them.

    The unlisted tokens share the remaining mass, none being likelier than the last listed one. The certificate is
    exact when the rejected candidates are all listed and no unlisted token can be accepted; else the interval holds it
    for every way to share that mass. With `vocabulary` the upper end is finite more often.

    Args:
        logprobs: natural logarithms of the k largest probabilities, most likely first; exact numbers as given.
        rule: a rule on probabilities (not MARS, which needs logits).
        candidates: how many tokens the drafter proposes, at least 1.
        vocabulary: number of tokens in all, if known.

    Raises:
        DraftcertError: an empty or unsorted list, masses above 1, a vocabulary smaller than the list, a rule on logits.

    >>> import math
    >>> certificate_from_top_logprobs([math.log(0.9), math.log(0.05)], "strict_greedy").exact
    True
    """
    rule = parse_rule(rule)
    if rule.needs_logits:
        raise DraftcertError(f"{rule} compares raw logits, which log-probabilities do not determine")
    if isinstance(candidates, bool) or not isinstance(candidates, int) or candidates < 1:
        raise DraftcertError(f"candidates = {candidates!r}: give a whole number, at least 1")
    listed = _masses(logprobs)
    rest = max(1 - sum(listed, Fraction(0)), Fraction(0))
    if vocabulary is not None and vocabulary < len(listed):
        raise DraftcertError(f"vocabulary = {vocabulary}, but {len(listed)} tokens are listed")
    unlisted = None if vocabulary is None else vocabulary - len(listed)
    if unlisted is not None:
        room = unlisted * listed[-1]
        if rest > room + TOLERANCE:
            raise DraftcertError(
                f"the list leaves {float(rest):.3g} to {unlisted} tokens of at most {float(listed[-1]):.3g} each: "
                "it is not the top of a distribution over this vocabulary"
            )
        rest = min(rest, room)
    return _List(listed, rest, unlisted, rule, candidates).interval()


class _List:
    """A list of masses, the mass `rest` of `unlisted` tokens (None: any number), and what can be said of them."""

    def __init__(
        self, listed: list[Fraction], rest: Fraction, unlisted: int | None, rule: Rule, candidates: int
    ) -> None:
        self.listed, self.rest, self.unlisted, self.rule, self.m = listed, rest, unlisted, rule, candidates
        self.cap = min(listed[-1], rest)
        """No unlisted token is likelier than this."""

    def interval(self) -> CertificateInterval:
        """From the fewest accepted tokens and the likeliest competitors to the most and the least likely ones."""
        fewest, most = self._accepted()
        lower = self._lower(min(fewest, len(self.listed)))
        upper = self._upper(most) if most <= len(self.listed) else self._upper_beyond_the_list()
        exact = lower == upper or certified_digits(lower, upper) > DIGITS - 10
        low = bounds(lower)[0] if lower.is_finite() else mpmath.inf
        high = bounds(upper)[1] if upper.is_finite() else mpmath.inf
        if mpmath.isfinite(low) and low:
            low = max(low - ROUNDING, mpmath.mpf(0))
        return CertificateInterval(low, high + ROUNDING if high else high, bool(exact), fewest, most)

    def _accepted(self) -> tuple[int, int]:
        """Least and largest number of accepted tokens among the list and one unlisted token as likely as possible."""
        judged = [*self.listed, self.cap]
        if not any(condition_uses_entropy(condition) for condition in self.rule.conditions):
            count = self._count(judged, None)
            return count, count
        packed = int(self.rest / self.cap) if self.cap else 0
        least_entropy = [*((p, 1) for p in self.listed), (self.cap, packed), (self.rest - packed * self.cap, 1)]
        counts = [self._count(judged, least_entropy)]
        if self.unlisted is None and self.rest:
            counts.append(len(judged))  # the entropy has no bound, so a threshold may fall to nothing
        elif self.unlisted:
            spread = [*((p, 1) for p in self.listed), (self.rest / self.unlisted, self.unlisted)]
            counts.append(self._count(judged, spread))
        return min(counts), max(counts)

    def _count(self, judged: Sequence[Fraction], tokens: Sequence[tuple[Fraction, int]] | None) -> int:
        masses = [*judged, *(mass for mass, _ in tokens or ())]
        unit = lcm(*(mass.denominator for mass in masses))
        weights = tuple(int(mass * unit) for mass in judged)
        row = ExactRow(weights, unit, tuple(range(len(judged))))
        counted = None if tokens is None else tuple((int(mass * unit), times) for mass, times in tokens)
        return RowStatistics(row, None, counted).count(self.rule)

    def _lower(self, accepted: int) -> arb:
        missing = self._missing(accepted)
        if missing is None:
            return arb("inf")
        tail = [min(self.cap, self.rest / missing)] * missing if missing else []
        return self._value(accepted, tail)

    def _upper(self, accepted: int) -> arb:
        missing = self._missing(accepted)
        if missing is None:
            return arb("inf")
        return max((self._value(accepted, tail) for tail in self._least_tails(missing)), key=to_mpf)

    def _missing(self, accepted: int) -> int | None:
        """How many competitors are not listed; None when there are not that many tokens."""
        missing = max(0, self.m - (len(self.listed) - accepted))
        return None if self.unlisted is not None and missing > self.unlisted else missing

    def _least_tails(self, missing: int) -> Iterator[list[Fraction]]:
        """The corners of what the likeliest `missing` unlisted tokens can be; the certificate is convex in them."""
        if not missing or self.unlisted is None or not self.rest:
            yield [Fraction(0)] * missing
            return
        for full in range(missing + 1):
            left = self.rest - full * self.cap
            for support in {*range(full + 1, missing + 1), self.unlisted}:
                if support > full and 0 <= left <= (support - full) * self.cap:
                    heights = [self.cap] * full + [left / (support - full)] * (min(support, missing) - full)
                    yield heights + [Fraction(0)] * (missing - len(heights))

    def _upper_beyond_the_list(self) -> arb:
        """Unlisted tokens may be accepted: as many as possible, the competitors getting nothing."""
        entropy = any(condition_uses_entropy(condition) for condition in self.rule.conditions)
        if entropy or self.unlisted is None or self.unlisted < self.m:
            return arb("inf")
        others = self.unlisted - self.m + 1
        if self._count([*self.listed, *[self.rest / others] * others], None) == len(self.listed) + others:
            return arb("inf")
        packed = int(self.rest / self.cap) if self.cap else 0
        accepted = [*self.listed, *[self.cap] * packed, self.rest - packed * self.cap]
        return projected(accepted, [Fraction(0)] * self.m, DIGITS)

    def _value(self, accepted: int, tail: list[Fraction]) -> arb:
        if not accepted:
            return arb(0)
        competitors = self.listed[accepted:][: self.m] + tail
        return projected(self.listed[:accepted], competitors, DIGITS)


def condition_uses_entropy(condition: Condition) -> bool:
    """Whether a condition speaks of the entropy, which a list does not determine."""
    return isinstance(condition, ThresholdCondition) and condition.threshold.has(Entropy)


def _masses(logprobs: Sequence[Any]) -> list[Fraction]:
    """The masses to 60 digits, checked to be the top of a distribution."""
    exact = [read_number(value, f"log-probability {k}") for k, value in enumerate(logprobs)]
    if not exact:
        raise DraftcertError("the list of log-probabilities is empty")
    if exact != sorted(exact, reverse=True):
        raise DraftcertError("the log-probabilities are not in descending order: give the most likely token first")
    with mpmath.workdps(60):
        powers = [mpmath.exp(mpmath.mpf(x.numerator) / x.denominator) for x in exact]
    masses = [Fraction(int(p.man_exp[0])) * Fraction(2) ** int(p.man_exp[1]) for p in powers]
    if sum(masses) > 1 + TOLERANCE:
        raise DraftcertError(f"the listed probabilities sum to {float(sum(masses)):.9g}, more than 1")
    return masses
