"""`certificate_from_top_logprobs`: what a server's top-k list says about the certificate (B4).

A list gives the k largest log-probabilities, each to within an error, and the sum over the row may be off by a common
factor. So it describes a set of targets: in descending order, `p_(i) = q_(i) / T` with

    low_i <= q_(i) <= high_i   (i <= k),      0 <= q_(i) <= high_k   (i > k),      sum q = T,      T_low <= T <= T_high.

(The i-th largest of numbers from intervals lies between the i-th largest ends, so it does not matter which tokens the
errors could swap.) `T_high >= sum low`, and where the number of tokens is known `T_low <= sum high + (V - k) high_k`;
each end is narrowed by what the others leave.

**The certificate for n accepted tokens.** It is a function of `q_(1..n)` (accepted) and `q_(n+1..n+m)` (competitors),
homogeneous of degree one. Its derivative by a mass q is `ln(q/c)` on the pool, whose level is c, and 0 off it: positive
for accepted tokens, negative for competitors, and increasing in q in both. Hence

- it rises with accepted masses and falls with competitors';
- of two accepted tokens the larger one's mass counts more, of two competitors the smaller one's. At a given sum the
  least value is at the flattest masses of the box (all at one height, but for their ends), the greatest at the
  steepest (from the largest down, each as high as it may be).

The infimum therefore has the accepted tokens as low and the competitors as high as their ends and the total allow, both
flat; the supremum the opposite, both steep. Where competitors are not listed and their number is bounded, they have to
hold what is left; the greatest value is then at a corner of what they can be, since the certificate is convex.

**The number of accepted tokens.** Every threshold is enclosed over the box, entropies token by token; each token is
accepted on all of the box, on none of it or on a part. By T6 the certificate rises with that number: the lower end is
the infimum for the fewest, the upper end the supremum for the most. Whatever is accepted, it is at most
`ln(1 + m p_(1))` (T4) unless fewer than m tokens are rejected.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any

import mpmath
import numpy as np
import sympy
from flint import arb, fmpq

from ..theory import DraftcertError, Rule, parse_rule
from ..theory.conditions import Condition, RankCondition, RowCondition, fold_conditions
from ..theory.errors import Argument
from ..theory.numbers import items, whole_number
from ..theory.statistics import TOP, Entropy
from .balls import Mpf, ball_function, bounds, precision, sum_balls, to_fmpq
from .certificate import projected
from .row import number_text, read_number

DIGITS = 40
"""Certificates are computed to as many digits."""
BITS = 240
"""Working precision of masses and thresholds."""
LEAST_EXPONENT = -4096
"""A mass below e to this power is only known to lie between 0 and that."""
TOLERANCE = Fraction(1, 10**4)
"""By how much listed masses may miss what is possible: they are then divided by what they can sum to."""
SINGLE = Fraction(1, 2**24)
"""Half a unit in the last place of a float32 between 1 and 2."""
SINGLE_DECIMALS = 7
"""Numbers printed with fewer decimals were rounded to them; a float32 needs as many."""
MOST_CANDIDATES = 2**20
MOST_PACKED = 2**12
"""Beyond as many unlisted accepted tokens the ceiling `ln(1 + m p_(1))` is the upper end."""
MOST_TRIED = 2**16
"""Masses of all corners together that are tried for the upper end; where there are more, corners share a bound."""


@dataclass(frozen=True)
class CertificateInterval:
    """A rigorous interval for a certificate in nats.

    `exact`: on the whole box the same listed tokens are accepted and compete, so that the width is that of the errors
    alone. Between `fewest` and `most` tokens are accepted; None: any number, the size of the vocabulary being unknown.
    `conditional`: `upper` holds if at least `candidates` tokens are rejected, which the list does not show; otherwise
    the certificate is infinite.

    >>> found = certificate_from_top_logprobs([-0.2, -2.0, -3.5], "strict_greedy", 1)
    >>> f"{found.lower} to {found.upper}", found.exact
    ('0.242031022545715 to 0.293282817374314', True)
    """

    lower: Mpf
    upper: Mpf
    exact: bool
    fewest: int | None
    most: int | None
    conditional: bool

    @property
    def floats(self) -> tuple[float, float]:
        """The ends as floats, rounded outwards."""
        lower, upper = float(self.lower), float(self.upper)
        return (
            math.nextafter(lower, -math.inf) if lower > self.lower else lower,
            math.nextafter(upper, math.inf) if upper < self.upper else upper,
        )


def certificate_from_top_logprobs(
    logprobs: Sequence[Any],
    rule: Rule | str,
    candidates: int = 1,
    *,
    vocab_size: int | None = None,
    error: Any = None,
    common_error: Any = 0,
) -> CertificateInterval:
    """The certificate from the k largest log-probabilities of the target, as servers return them.

    The interval holds the certificate of every target whose k largest log-probabilities are the listed ones up to
    `error` each and `common_error` together, however the unlisted tokens share the remaining mass, none being likelier
    than the last listed one.

    Args:
        logprobs: natural logarithms of the k largest probabilities, most likely first.
        rule: a rule on probabilities (not MARS, which needs logits).
        candidates: how many tokens the drafter proposes, at least 1.
        vocab_size: number of tokens in all, if known; without it the upper end holds if `candidates` tokens are
            rejected.
        error: by how much each may be off, in nats: one number or one for each entry. None: what the digits show, see
            `rounding_error`.
        common_error: by how much all may be off together, in nats: a server's sum over the row has an error too.

    Raises:
        DraftcertError: an empty or unsorted list, masses above 1, a `vocab_size` below the list's, a rule on logits, an
            error that is negative.

    >>> found = certificate_from_top_logprobs([-0.105, -2.996], "strict_greedy")
    >>> print(found.exact, f"{float(found.lower):.5f} to {float(found.upper):.5f}")
    True 0.46250 to 0.46319
    """
    rule = parse_rule(rule)
    if rule.needs_logits:
        raise DraftcertError(f"{rule} compares raw logits, which log-probabilities do not determine")
    candidates = whole_number(candidates, "candidates", 1, MOST_CANDIDATES)
    logprobs = items(logprobs, "logprobs")
    listed = [read_number(value, f"log-probability {k}") for k, value in enumerate(logprobs)]
    if not listed:
        raise DraftcertError("the list of log-probabilities is empty")
    if listed != sorted(listed, reverse=True):
        raise DraftcertError("the log-probabilities are not in descending order: give the most likely token first")
    if vocab_size is not None:
        vocab_size = whole_number(vocab_size, "vocab_size", 1)
        if vocab_size < len(listed):
            raise DraftcertError(Argument("vocab_size", repr(vocab_size)), f": {len(listed)} tokens are listed")
    errors = rounding_error(logprobs) if error is None else _errors(error, len(listed))
    common = _not_negative(common_error, "common_error")
    if common > 1 or listed[0] - errors[0] > 1:
        what = f"common_error = {common_error}: it is" if common > 1 else f"log-probability 0 is {logprobs[0]}:"
        raise DraftcertError(f"{what} far above what a server can give")
    box = _Box.around(listed, errors, common, vocab_size)
    return _Judged(box, rule, candidates).interval()


def rounding_error(logprobs: Sequence[Any]) -> list[Fraction]:
    """By how much numbers may be off, to judge by how they are written: one bound an entry, in nats.

    Half the last printed decimal, where the whole list has fewer than 7, and a little more, since such a number is no
    binary fraction; half a unit in the last place of a float32 where a number is one. Numbers of more digits, ints and
    fractions are taken as they are.

    >>> [f"{float(error):.4f}" for error in rounding_error([-0.51, -1.2])]
    ['0.0050', '0.0050']
    """
    decimals = max(map(_decimals, logprobs), default=0)
    printed = (1 + SINGLE) / (2 * 10**decimals) if 0 < decimals < SINGLE_DECIMALS else Fraction(0)
    return [
        Fraction(0) if _decimals(value) == 0 else max(printed, single_error(value) if _is_single(value) else 0)
        for value in logprobs
    ]


def single_error(value: Any) -> Fraction:
    """The rounding of a float32 near this number, and never less than that of one near 1."""
    return SINGLE * max(1, abs(Fraction(value)))


def _is_single(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and float(np.float32(value)) == value


def _decimals(value: Any) -> int:
    """Decimals a number is written with: at least one of a float, none of an exact number."""
    if not isinstance(value, (float, np.floating, str, Decimal)) or "/" in str(value):
        return 0
    denominator = Fraction(str(value)).denominator
    return next((decimals for decimals in range(1, 1100) if 10**decimals % denominator == 0), 1100)


def _not_negative(value: Any, name: str) -> Fraction:
    exact = read_number(value, name)
    if exact < 0:
        raise DraftcertError(f"{name} = {value}: an error is a bound, not negative")
    return exact


def _errors(error: Any, entries: int) -> list[Fraction]:
    if np.ndim(error) == 0:
        return [_not_negative(error, "error")] * entries
    errors = [_not_negative(value, f"error {k}") for k, value in enumerate(error)]
    if len(errors) != entries:
        raise DraftcertError(f"{len(errors)} errors are given for {entries} log-probabilities")
    return errors


@dataclass(frozen=True)
class _Box:
    """Where the masses and their total can be; the `tied` first ones are equal, whatever they are."""

    low: list[Fraction]
    high: list[Fraction]
    least_total: Fraction
    most_total: Fraction
    unlisted: int | float
    tied: int

    @classmethod
    def around(cls, logprobs: list[Fraction], errors: list[Fraction], common: Fraction, vocab_size: int | None) -> _Box:
        """The box of a list, narrowed by what its sum can be."""
        low = sorted((_exponential(x - e)[0] for x, e in zip(logprobs, errors, strict=True)), reverse=True)
        high = sorted(
            (_exponential(min(x + e, Fraction(1)))[1] for x, e in zip(logprobs, errors, strict=True)), reverse=True
        )
        unlisted = math.inf if vocab_size is None else vocab_size - len(low)
        least, most = sum(low, Fraction(0)), _times(unlisted, high[-1]) + sum(high, Fraction(0))
        smallest, largest = _exponential(-common)[0], _exponential(common)[1]
        if least > largest * (1 + TOLERANCE):
            raise DraftcertError(f"the listed probabilities sum to {number_text(Fraction(least))}, more than 1")
        if most < smallest * (1 - TOLERANCE):
            raise DraftcertError(
                f"the list leaves {float(1 - sum(high)):.3g} to {unlisted} tokens of at most {float(high[-1]):.3g} "
                "each: it is not the top of a distribution over this vocabulary"
            )
        least_total = min(max(smallest, least), max(most, least))
        most_total = max(min(largest, most), least_total)
        tied = 1 + sum(
            x == logprobs[0] and not e for x, e in zip(logprobs[1:], errors[1:], strict=True) if not errors[0]
        )
        return cls(
            [max(x, least_total - (most - h)) for x, h in zip(low, high, strict=True)],
            [min(h, most_total - (least - x)) for x, h in zip(low, high, strict=True)],
            least_total,
            most_total,
            unlisted,
            tied,
        )

    @cached_property
    def cap(self) -> Fraction:
        """No unlisted token has more."""
        return min(self.high[-1], self.left)

    @cached_property
    def left(self) -> Fraction:
        """The unlisted tokens together have no more."""
        return min(self.most_total - sum(self.low), _times(self.unlisted, self.high[-1]))

    def infimum(self, accepted: int, candidates: int) -> arb:
        """The least certificate where this many tokens are accepted: competitors high, accepted tokens low, all flat.

        Accepted tokens that are not listed have at least the competitors' masses and, being flat, no more: they move
        nothing and take their share.
        """
        listed = len(self.low)
        missing = max(0, accepted + candidates - listed)
        if missing > self.unlisted:
            return arb("inf")
        shown, beyond = min(accepted, listed), max(0, accepted - listed)
        low = self.low[shown : accepted + candidates] + [Fraction(0)] * (missing - beyond)
        high = self.high[shown : accepted + candidates] + [self.cap] * (missing - beyond)
        room = self.most_total - sum(self.low[:shown]) - sum(self.low[accepted + candidates :])
        competitors = _flattest(low, high, room * Fraction(candidates, candidates + beyond))
        others = (
            sum(high) + sum(self.high[accepted + candidates :]) + _times(self.unlisted - missing + beyond, self.cap)
        )
        above = _flattest(self.low[:shown], self.high[:shown], max(self.least_total - others, sum(self.low[:shown])))
        return projected(above, competitors, DIGITS) / to_fmpq(self.most_total)

    def supremum(self, accepted: int, candidates: int) -> arb:
        """The greatest certificate where this many tokens are accepted: accepted ones high, competitors low, steep."""
        listed = len(self.low)
        if accepted + candidates - listed > self.unlisted:
            return arb("inf")
        shown, beyond = min(accepted, listed), max(0, accepted - listed)
        others = sum(self.low[shown:], Fraction(0))
        above = _steepest(
            self.low[:shown] + [Fraction(0)] * beyond,
            self.high[:shown] + [self.cap] * beyond,
            self.most_total - others,
        )
        low, high = self.low[accepted : accepted + candidates], self.high[accepted : accepted + candidates]
        missing, left = candidates - len(low), self.least_total - sum(above) - others
        if not missing:
            rest = sum(self.high[accepted + candidates :]) - sum(self.low[accepted + candidates :])
            left = max(left - rest - _times(self.unlisted, self.cap), Fraction(0))
            return projected(above, _steepest(low, high, sum(low) + left), DIGITS) / to_fmpq(self.least_total)
        left = max(left - sum(high) + sum(low), Fraction(0))
        value = arb(0)
        for tail in _least_tails(missing, self.unlisted - beyond, left, self.cap):
            value = value.max(projected(above, low + tail, DIGITS))
        return value / to_fmpq(self.least_total)


def _exponential(exponent: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of e to this power."""
    if exponent < LEAST_EXPONENT:
        return Fraction(0), _exponential(Fraction(LEAST_EXPONENT))[1]
    with precision(BITS):
        low, high = bounds(arb(to_fmpq(exponent)).exp())
    return _fraction(low), _fraction(high)


def _fraction(value: Mpf) -> Fraction:
    sign, mantissa, exponent, _ = value._mpf_
    return (-1) ** sign * Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _times(count: int | float, mass: Fraction) -> Any:
    """What so many tokens can have together: none where there are none or each has none."""
    if not mass or not count:
        return Fraction(0)
    return math.inf if count == math.inf else count * mass


def _flattest(low: list[Fraction], high: list[Fraction], total: Fraction) -> list[Fraction]:
    """The flattest masses between these ends with this sum, or with the nearest one possible."""
    if not low or total >= sum(high):
        return high

    def at(height: Fraction) -> list[Fraction]:
        return [min(max(height, x), h) for x, h in zip(low, high, strict=True)]

    heights = sorted({*low, *high})
    last = max(bisect_right(heights, total, key=lambda height: sum(at(height))) - 1, 0)
    rising = sum(x <= heights[last] < h for x, h in zip(low, high, strict=True))
    return at(heights[last] + max(total - sum(at(heights[last])), Fraction(0)) / rising)


def _steepest(low: list[Fraction], high: list[Fraction], total: Fraction) -> list[Fraction]:
    """The steepest masses between these ends with this sum, or with the nearest one possible."""
    spent = accumulate((h - x for x, h in zip(low, high, strict=True)), initial=total * 0)
    spare = max(total - sum(low), Fraction(0))
    return [x + min(h - x, max(spare - before, Fraction(0))) for x, h, before in zip(low, high, spent, strict=False)]


def _least_tails(missing: int, unlisted: int | float, left: Fraction, cap: Fraction) -> Iterator[list[Fraction]]:
    """What the `missing` likeliest of `unlisted` tokens can be that hold `left` together, none above `cap`: the corners
    at which a function is greatest that is convex and falls with each.

    At a corner some are at the cap, some equal, the others 0. All of `left` on the likeliest is steepest at one corner;
    of those with more equal ones the lowest has all of them equal. Where corners are many, what stands for several of
    them has the least that any of them has at each place.
    """
    if not left or not cap or unlisted == math.inf:
        yield [Fraction(0)] * missing
        return
    full = min(int(left / cap), missing)
    together = -(-(full + 1) // max(1, MOST_TRIED // missing))
    for capped in range(0, full + 1, together):
        ends = {capped, min(capped + together - 1, full)}  # between them the equal masses go one way
        equal = min((left - end * cap) / int(unlisted - end) if unlisted > end else Fraction(0) for end in ends)
        yield [cap] * capped + [equal] * (missing - capped)
    if full < missing:
        yield [cap] * full + [left - full * cap] + [Fraction(0)] * (missing - full - 1)


@dataclass(frozen=True)
class _Judged:
    """A box under a rule."""

    box: _Box
    rule: Rule
    candidates: int

    def interval(self) -> CertificateInterval:
        """From the fewest accepted tokens to the most."""
        with precision(BITS):
            fewest, most = fold_conditions(self.rule.accepts, self._count, _pairwise(min), _pairwise(max))
            if fewest == math.inf:  # every token of any vocabulary
                return CertificateInterval(mpmath.inf, mpmath.inf, True, None, None, False)
            lower, upper = self.box.infimum(fewest, self.candidates), self._supremum(most)
        ends = max(bounds(lower)[0], mpmath.mpf(0)), bounds(upper)[1]
        shown = most + self.candidates <= len(self.box.low)
        return CertificateInterval(
            *ends,
            exact=(fewest == most and shown) or ends[0] == ends[1],
            fewest=fewest,
            most=None if most == math.inf else most,
            conditional=self.box.unlisted == math.inf and not shown,
        )

    def _supremum(self, most: int | float) -> arb:
        box = self.box
        if most + self.candidates > len(box.low) + box.unlisted < math.inf:
            return arb("inf")
        ceiling = (1 + self.candidates * arb(to_fmpq(self._probabilities[0][1]))).log()
        packed = math.ceil(box.left / box.cap) if box.cap else 0
        accepted = min(most, len(box.low) + packed)  # further ones have nothing
        if accepted - len(box.low) > MOST_PACKED:
            return ceiling
        return box.supremum(int(accepted), self.candidates).min(ceiling)

    @cached_property
    def _probabilities(self) -> list[tuple[Fraction, Fraction]]:
        """Ends of the listed probabilities, and of an unlisted one where there are any."""
        box = self.box
        listed = [(x / box.most_total, h / box.least_total) for x, h in zip(box.low, box.high, strict=True)]
        return [*listed, (Fraction(0), box.cap / box.least_total)] if box.unlisted else listed

    @cached_property
    def _ratios(self) -> list[tuple[Fraction, Fraction]]:
        """Ends of the same over the largest one: the total has no part in them, and the largest one is 1."""
        box, most = self.box, self.box.low[0] or Fraction(1)
        ratios = [(x / box.high[0], min(h / most, Fraction(1))) for x, h in zip(box.low, box.high, strict=True)]
        ratios[: box.tied] = [(Fraction(1), Fraction(1))] * box.tied
        return [*ratios, (Fraction(0), box.cap / most)] if box.unlisted else ratios

    def _count(self, condition: Condition) -> tuple[int | float, int | float]:
        """The fewest and the most tokens that satisfy a condition."""
        listed, every = len(self.box.low), len(self.box.low) + self.box.unlisted
        if isinstance(condition, RankCondition):
            least, greatest = (min(max(end, 0), every) for end in self._ends(condition.limit))
            return math.floor(least), greatest if greatest == math.inf else math.floor(greatest)
        if isinstance(condition, RowCondition):
            fewest, most = self._holds(condition.holds)
            return (every if fewest else 0), (every if most else 0)
        ends = self._ends(condition.threshold)
        relative = self._ends(sympy.expand(condition.threshold / TOP))
        both = [
            (
                sum(_reaches(low, greatest, condition.strict) for low, _ in tokens),
                sum(_reaches(high, least, condition.strict) for _, high in tokens),
            )
            for tokens, (least, greatest) in ((self._probabilities, ends), (self._ratios, relative))
        ]
        fewest, most = max(count for count, _ in both), min(count for _, count in both)
        if most > listed:
            most = listed + min(self.box.unlisted, self._room(ends[0]))
        return (every if fewest > listed else fewest), most

    def _room(self, threshold: Fraction | float) -> int | float:
        """How many unlisted tokens can have as much."""
        return math.floor(self.box.left / self.box.least_total / threshold) if threshold > 0 else math.inf

    def _holds(self, relation: Any) -> tuple[bool, bool]:
        """Whether a relation of the row's statistics holds on all of the box, and on a part of it."""
        if relation in (sympy.true, sympy.false):
            return (relation == sympy.true,) * 2
        strict = isinstance(relation, (sympy.StrictGreaterThan, sympy.StrictLessThan))
        least, greatest = self._ends(relation.gts - relation.lts)
        return _reaches(least, 0, strict), _reaches(greatest, 0, strict)

    def _ends(self, expression: sympy.Expr) -> tuple[Any, Any]:
        """Bounds of an expression in the largest probability and entropies."""
        entropies, function = _function(expression)
        ball = arb(function(_hull(*self._probabilities[0]), *map(self._exp_of_minus_entropy, entropies)))
        return tuple(map(_fraction, bounds(ball))) if ball.is_finite() else (-math.inf, math.inf)

    def _exp_of_minus_entropy(self, floor: sympy.Basic) -> arb:
        """An enclosure of `exp(-Entropy(floor))`, which is finite even where the entropy has no bound.

        Listed tokens one by one: `-p ln(p + f)` is concave in p. Of the unlisted ones each is at most the cap, so that
        they have at least `-ln(cap + f)` times their mass, and at most as much as if all were equal. The whole is at
        least `-ln(p_(1) + f)`.
        """
        if not isinstance(floor, sympy.Rational) or floor < 0:
            raise DraftcertError(f"the entropy's floor {floor} is not an exact number >= 0")
        f = to_fmpq(floor)
        box, listed = self.box, self._probabilities[: len(self.box.low)]
        ranges = [_entropy_term(low, high, f) for low, high in listed]
        least, most = sum_balls(low for low, _ in ranges), sum_balls(high for _, high in ranges)
        if box.cap:
            rest = max(1 - sum((high for _, high in listed), Fraction(0)), Fraction(0)), box.left / box.least_total
            each = -arb(to_fmpq(box.cap / box.least_total) + f).log()
            least += (each * to_fmpq(rest[0])).min(each * to_fmpq(rest[1]))
            if box.unlisted < math.inf:
                tokens = int(box.unlisted)
                most += _entropy_term(rest[0] / tokens, rest[1] / tokens, f)[1] * tokens
            else:
                most += (-arb(f).log() * to_fmpq(rest[1])).max(arb(0)) if f else arb("inf")
        largest = arb(to_fmpq(listed[0][1]) + f)
        highest = (-least).exp().min(largest)
        lowest = (-most).exp() if most.is_finite() else arb(0)
        return lowest.union(highest)


def _entropy_term(low: Fraction, high: Fraction, floor: fmpq) -> tuple[arb, arb]:
    """The least and the greatest `-p ln(p + f)` between two ends: it is concave, so no greater than a tangent."""

    def term(p: fmpq) -> arb:
        return -arb(p + floor).log() * p if p else arb(0)

    a, b = to_fmpq(low), to_fmpq(high)
    if not b:
        return arb(0), arb(0)
    slope = -arb(b + floor).log() - b / (b + floor)
    least = term(a).min(term(b))
    if slope >= 0:
        return least, term(b)
    if a + floor and -arb(a + floor).log() - a / (a + floor) <= 0:
        return least, term(a)
    return least, term(b) - slope * (b - a)


def _hull(low: Fraction, high: Fraction) -> arb:
    return arb(to_fmpq(low)).union(arb(to_fmpq(high)))


@lru_cache(maxsize=256)
def _function(expression: sympy.Expr) -> tuple[tuple[sympy.Basic, ...], Callable[..., Any]]:
    """An expression as a function of the largest probability and of `exp(-entropy)` for each floor."""
    entropies = sorted(expression.atoms(Entropy), key=sympy.default_sort_key)
    names = tuple(sympy.Symbol(f"exp_of_minus_entropy_{k}", positive=True) for k in range(len(entropies)))
    inverse = {entropy: -sympy.log(name) for entropy, name in zip(entropies, names, strict=True)}
    return tuple(entropy.args[0] for entropy in entropies), ball_function(expression.xreplace(inverse), (TOP, *names))


def _reaches(value: Any, threshold: Any, strict: bool) -> bool:
    return value > threshold if strict else value >= threshold


def _pairwise(choose: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """`min` or `max` of two pairs, end by end."""
    return lambda one, other: tuple(map(choose, one, other))
