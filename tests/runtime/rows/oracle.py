"""The judge of rows: the definitions, evaluated to 60 digits, and nothing else of this project.

It shares no code with what it judges, and none of its formulas: no threshold as a gap of logits, no projection. A rule
is its words: which tokens of the target are accepted. The certificate is its definition,

    C = inf { KL(target || q) : m rejected tokens M of the target with min_M q >= max_A q },    A the accepted tokens,

taken over every M there is. For a given M the least KL at which the tokens of A are at most c and those of M at least
c has no cross terms: every q_x is p_x / l, brought to c where it lies on the wrong side, with the l at which they sum
to 1. The best c is where its derivative, the sum of l - p_x / c over the tokens that are brought there, is 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import mpmath
from mpmath import mpf

Mpf: TypeAlias = Any
"""A number of mpmath, whose class is made at run time."""
DIGITS = 60
NOISE = mpf(10) ** -45
"""Relatively nearer than this, two numbers of 60 digits may be the same one, unless they are equal."""

Verdicts = list[int]
"""Of each token: 1 accepted, -1 rejected, 0 not to be told by 60 digits."""


@dataclass(frozen=True)
class Row:
    """A target: its stored logits, and the probabilities of these over the temperature."""

    logits: tuple[float, ...]
    p: tuple[Mpf, ...]
    noise: Mpf = NOISE

    @staticmethod
    def of(logits: Sequence[float], temperature: float) -> Row:
        with mpmath.workdps(DIGITS):
            exact = [mpf(z) for z in logits]
            weights = [mpmath.exp((z - max(exact)) / mpf(temperature)) for z in exact]
            total = mpmath.fsum(weights)
            return Row(tuple(logits), tuple(w / total for w in weights))

    @property
    def order(self) -> list[int]:
        """Tokens by logit, the largest first, ties by lowest id."""
        return sorted(range(len(self.p)), key=lambda x: (-self.logits[x], x))


# ---- The rules, by their words --------------------------------------------------------------------------------------


def number(text: str) -> Mpf:
    with mpmath.workdps(DIGITS):
        exact = Fraction(text)
        return mpf(exact.numerator) / exact.denominator


def _sign(row: Row, difference: Mpf, scale: Mpf, at_zero: int) -> int:
    if difference == 0 and row.noise == NOISE:
        return at_zero
    return 0 if abs(difference) <= row.noise * scale else 1 if difference > 0 else -1


def likelier_than(row: Row, threshold: Mpf, strict: bool) -> Verdicts:
    return [_sign(row, p - threshold, max(p, abs(threshold)), -1 if strict else 1) for p in row.p]


def top_m(row: Row, k: str) -> Verdicts:
    chosen = row.order[: int(k)]
    return [1 if x in chosen else -1 for x in range(len(row.p))]


def additive(row: Row, t: str) -> Verdicts:
    # p_x >= p_1 - t as t >= p_1 - p_x, which is exact where the two are equal.
    return [_sign(row, number(t) - (max(row.p) - p), max(row.p), 1) for p in row.p]


def multiplicative(row: Row, alpha: str) -> Verdicts:
    return likelier_than(row, number(alpha) * max(row.p), strict=False)


def absolute(row: Row, tau: str) -> Verdicts:
    return likelier_than(row, number(tau), strict=False)


def typical(row: Row, epsilon: str, delta: str, floor: str = "0") -> Verdicts:
    entropy = -mpmath.fsum(p * mpmath.log(p + number(floor)) for p in row.p if p > 0)
    return likelier_than(row, min(number(epsilon), number(delta) * mpmath.exp(-entropy)), strict=True)


def mars(row: Row, theta: str) -> Verdicts:
    first, second = row.order[:2]
    z1, z2 = (mpf(row.logits[x]) for x in (first, second))
    close = _sign(row, z2 / z1 - number(theta), mpf(1), -1) if z1 != 0 else -1
    return [1 if x == first else close if x == second else -1 for x in range(len(row.p))]


WORDS: dict[str, Callable[..., Verdicts]] = {
    "strict_greedy": lambda row: top_m(row, "1"),
    "top_m": top_m,
    "additive": additive,
    "multiplicative": multiplicative,
    "absolute": absolute,
    "typical": typical,
    "typical_floor": typical,
    "mars": mars,
}


def verdicts(row: Row, rule: str) -> Verdicts:
    """What a rule like "top_m(2) & additive(0.1)" says of each token; `&` and `|` are not mixed."""
    with mpmath.workdps(DIGITS):
        for sign, both in (("&", min), ("|", max)):
            if sign in rule:
                return [both(pair) for pair in zip(*(verdicts(row, part) for part in rule.split(sign)), strict=True)]
        name, _, arguments = rule.strip().rstrip(")").partition("(")
        return WORDS[name](row, *(part.strip() for part in arguments.split(",") if part))


# ---- The certificate and the divergence, by their definitions -------------------------------------------------------


def kl(p: Sequence[Mpf], q: Sequence[Mpf]) -> Mpf:
    with mpmath.workdps(DIGITS):
        if any(x > 0 and y == 0 for x, y in zip(p, q, strict=True)):
            return mpmath.inf
        return mpmath.fsum(x * mpmath.log(x / y) for x, y in zip(p, q, strict=True) if x > 0)


def certificate(p: Sequence[Mpf], accepted: set[int], candidates: int) -> tuple[Mpf, Sequence[Mpf] | None]:
    """C, and a rejected q that has it; `None` where nothing can be rejected."""
    with mpmath.workdps(DIGITS):
        rejected = [x for x in range(len(p)) if x not in accepted]
        if len(rejected) < candidates:
            return mpmath.inf, None
        if not accepted:
            return mpf(0), p
        found = [_nearest(p, accepted, set(chosen)) for chosen in itertools.combinations(rejected, candidates)]
        return min(((kl(p, q), q) for q in found), key=lambda pair: pair[0])


def _nearest(p: Sequence[Mpf], below: set[int], above: set[int]) -> Sequence[Mpf]:
    """The q nearest to p with every token of `below` at most, every one of `above` at least, a common c."""
    if max(p[x] for x in below) <= min(p[x] for x in above):
        return p
    low, high = mpf(10) ** -40, mpf(1) / len(above)
    while high / low > 1 + mpf(10) ** -24:  # the value is off by the square
        c = mpmath.sqrt(low * high)
        scale = _scale(p, below, above, c)
        cut = [x for x in below if p[x] > c * scale] + [x for x in above if p[x] < c * scale]
        slope = mpmath.fsum(scale - p[x] / c for x in cut)
        low, high = (c, high) if slope < 0 else (low, c)
    return _filled(p, below, above, high, _scale(p, below, above, high))


def _filled(p: Sequence[Mpf], below: set[int], above: set[int], c: Mpf, scale: Mpf) -> list[Mpf]:
    """p_x / scale, brought to c on the wrong side."""
    q = [x / scale for x in p]
    return [min(y, c) if x in below else max(y, c) if x in above else y for x, y in enumerate(q)]


def _scale(p: Sequence[Mpf], below: set[int], above: set[int], c: Mpf) -> Mpf:
    """The l at which they sum to 1; 0 where c is too small. Between two p_x / c their sum is linear in 1 / l."""
    ends = sorted((p[x] / c for x in below | above if p[x] > 0), reverse=True)
    left, sum_left = mpf(0), c * len(above)
    for end in [*ends, ends[-1] / 2]:
        right = 1 / end
        sum_right = mpmath.fsum(_filled(p, below, above, c, end))
        last = end == ends[-1] / 2
        if sum_right >= 1 or (last and sum_right > sum_left):
            return 1 / (left + (1 - sum_left) * (right - left) / (sum_right - sum_left))
        left, sum_left = right, sum_right
    return mpf(0)
