"""Random exact points of a domain: where claims get a second opinion, and where counterexamples are found."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from itertools import islice

import sympy
from flint import arb

from ...theory.theorem import Domain
from .balls import ball, evaluate, precision
from .errors import ProofError
from .rational import ZERO, Expression

POINTS = 12
"""Random exact points of a second opinion."""
BITS = 200
"""Precision of ball arithmetic at points; a disagreement below 2^-100 of the terms would not be seen there."""

Point = dict[sympy.Basic, Expression]


@cache
def points_of(domain: Domain) -> tuple[Point, ...]:
    """Random exact interior points, the same in every run. A domain in which none is found is refused: it is empty."""
    source = random.Random(repr(domain))
    drawn = (_draw(domain, source) for _ in range(20 * POINTS))
    found = tuple(islice((point for point in drawn if point is not None), POINTS))
    if not found:
        raise ProofError(f"the domain {text_of(domain)} has no interior point: a claim about nothing")
    return found


def _draw(domain: Domain, source: random.Random) -> Point | None:
    point: Point = {}
    for each in domain:
        lower, upper = (_rational(end.xreplace(point)) for end in (each.lower, each.upper))
        if each.integer:
            low = int(sympy.ceiling(lower))
            high = low + 5 if upper is None else min(int(sympy.floor(upper)), low + 5)
            if high < low:
                return None
            point[each.symbol] = sympy.Integer(source.randint(low, high))
            continue
        share = sympy.Rational(source.choice((1, 7, 64, source.randint(1, 127), 121, 127)), 128)
        if lower is None:
            lower = (ZERO if upper is None else upper) - 9
        if upper is None:
            upper = lower + 18
        if not lower < upper:
            return None
        point[each.symbol] = lower + share * (upper - lower)
    return point


def _rational(end: Expression) -> Expression:
    """The end itself, or a rational near an irrational one; `None` at infinity."""
    if end.is_infinite:
        return None
    return end if isinstance(end, sympy.Rational) else sympy.Rational(str(end.evalf(40)))


def text_of(domain: Domain) -> str:
    """A domain for messages."""
    return ", ".join(f"{r.lower} <= {r.symbol} <= {r.upper}" for r in domain)


def value_at(expression: Expression, point: Mapping[sympy.Basic, sympy.Rational]) -> arb:
    """An enclosure of the value at an exact point."""
    with precision(BITS):
        return evaluate(expression, {symbol: ball(number) for symbol, number in point.items()})
