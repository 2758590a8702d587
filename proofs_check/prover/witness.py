"""A row of a kind, exactly: without one, a claim about such rows is a claim about nothing, and anything would follow.

Hypotheses on sums can contradict each other or the mass one, in ways that no range shows. So a row is looked for, with
its parameters, that has all of them; it is drawn at random, the same in every run, and then checked exactly.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import sympy
from flint import arb

from ...theory.errors import DraftcertError
from ...theory.theorem import Domain, Range, Rows, canonical
from .compare import equal_inside
from .errors import ProofError
from .points import Point, value_at
from .rational import ONE, ZERO, Expression

TRIALS = 200
_SHARES = tuple(sympy.Rational(share, 16) for share in (0, 1, 1, 4, 8, 16))
_FOUND: dict[str, bool] = {}


def decide_inhabited(rows: Rows, what: str) -> None:
    """Refuse rows of which none is found."""
    key = repr(canonical(rows))
    if key not in _FOUND:
        source = random.Random(key)
        _FOUND[key] = any(_drawn(rows, source) for _ in range(TRIALS))
    if not _FOUND[key]:
        raise ProofError(f"{what}: no row is found that has mass one and all facts, so this is a claim about nothing")


def _drawn(rows: Rows, source: random.Random) -> bool:
    """Whether values drawn at random make a row: equations that are linear in a variable give its value."""
    point: Point = {}
    for each in rows.parameters:
        if each.integer and not _draw_integer(each, point, source):
            return False
    variables = [each for each in rows.parameters if not each.integer]
    equations: list[Expression] = [-ONE]
    bounds: list[Expression] = []
    totals: list[Expression] = [-fact.total for fact in rows.facts]
    for each in rows.classes:
        any_number = sympy.Integer(source.choice((1, 1, 2, 0)))
        count: Expression = any_number if each.count is None else each.count.xreplace(point)
        if not (count.is_Integer and 0 <= count <= 6):
            return False
        for _ in range(int(count)):
            ranges, own = _own_variables(each.ranges)
            variables += ranges
            equations[0] += each.probability.xreplace(own)
            for i, fact in enumerate(rows.facts):
                totals[i] += fact.terms.get(each.name, ZERO).xreplace(own)
    for fact, total in zip(rows.facts, totals, strict=True):
        (bounds if fact.at_least else equations).append(total)
    solved, left = _solved([each.xreplace(point) for each in equations], source)
    for each in variables:
        if each.symbol not in solved:
            point[each.symbol] = _draw(each, {**point, **solved}, source)
    for symbol, value in solved.items():
        point[symbol] = value.xreplace(point)
    return all(_holds(point, rows, variables, equations, left, bounds))


def _own_variables(ranges: Domain) -> tuple[list[Range], dict[sympy.Basic, Expression]]:
    """A token's variables under names of its own."""
    own: dict[sympy.Basic, Expression] = {}
    renamed = []
    for each in ranges:
        lower, upper = each.lower.xreplace(own), each.upper.xreplace(own)
        own[each.symbol] = sympy.Dummy(each.symbol.name, **each.symbol.assumptions0)
        renamed.append(replace(each, symbol=own[each.symbol], lower=lower, upper=upper))
    return renamed, own


def _solved(equations: list[Expression], source: random.Random) -> tuple[Point, list[Expression]]:
    """Variables by the others, one for each equation that can be solved for one; and the equations that cannot."""
    solved: Point = {}
    left = []
    for each in equations:
        equation = sympy.expand(each.xreplace(solved))
        if equation.has(sympy.log):
            equation = sympy.expand(sympy.expand_log(equation, force=True))
        ways = [
            way
            for symbol in sorted(equation.free_symbols, key=sympy.default_sort_key)
            for way in _ways(equation, symbol)
        ]
        if ways:
            symbol, solve = source.choice(ways)
            value = solve()
            solved = {known: found.xreplace({symbol: value}) for known, found in solved.items()} | {symbol: value}
        else:
            left.append(each)
    return solved, left


def _ways(equation: Expression, symbol: sympy.Symbol) -> Iterator[tuple[sympy.Symbol, Callable[[], Expression]]]:
    """The ways to solve an equation, a sum of products, for the symbol: it is linear in a power or the logarithm of it.

    Each comes with the symbol and is computed when it is called.
    """
    place = sympy.Dummy("x", positive=True)
    log, powers = sympy.log(symbol), {each.exp for each in equation.atoms(sympy.Pow) if each.base == symbol}
    unknowns: list[Expression] = [log] if log in equation.atoms(sympy.log) else []
    unknowns += [symbol ** (powers.pop() if powers else 1)] if len(powers) < 2 else []
    for unknown in unknowns:
        linear = equation.xreplace({unknown: place})
        if linear.has(symbol):
            continue
        slope = sympy.Add(*(term / place for term in sympy.Add.make_args(linear) if term.has(place)))
        if slope.has(place) or slope == 0:
            continue
        yield symbol, partial(_root, linear, slope, place, unknown)


def _root(linear: Expression, slope: Expression, place: sympy.Dummy, unknown: Expression) -> Expression:
    """The symbol that makes `linear` zero, in which `place` stands for `unknown`: a power or the logarithm of it."""
    value = sympy.expand((slope * place - linear) / slope)
    return sympy.exp(value) if isinstance(unknown, sympy.log) else value ** (1 / unknown.as_base_exp()[1])


def _draw_integer(each: Range, point: Point, source: random.Random) -> bool:
    low = each.lower.xreplace(point)
    if low.free_symbols or not low.is_finite:
        return False
    point[each.symbol] = sympy.ceiling(low) + source.randint(0, 1)
    return True


def _draw(each: Range, point: Point, source: random.Random) -> Expression:
    lower: Expression = each.lower.xreplace(point).xreplace(point)
    upper: Expression = each.upper.xreplace(point).xreplace(point)
    lower = lower if lower.is_Rational else ZERO if upper.is_Rational and upper > 0 else -ONE
    upper = upper if upper.is_Rational else lower + 1
    return lower + source.choice(_SHARES[each.open_below : -1 if each.open_above else None]) * (upper - lower)


def _holds(
    point: Point,
    rows: Rows,
    variables: list[Range],
    equations: list[Expression],
    unsolved: list[Expression],
    bounds: list[Expression],
) -> Iterator[bool]:
    for each in (*(r for r in rows.parameters if r.integer), *variables):
        value = point[each.symbol]
        for end, sign, is_open in ((each.lower, 1, each.open_below), (each.upper, -1, each.open_above)):
            if not end.is_infinite:
                yield _at_least(sign * (value - end.xreplace(point)), strict=is_open)
    # What was solved is zero but for a mistake in solving it, which the ball would show.
    for equation in equations:
        value = _ball(equation.xreplace(point))
        yield value.is_finite() and value.contains(0)
    yield from (equal_inside(equation.xreplace(point), ()) for equation in unsolved)
    yield from (_at_least(bound.xreplace(point), strict=False) for bound in bounds)


def _at_least(difference: Expression, strict: bool) -> bool:
    return bool(_ball(difference) > 0) or (not strict and equal_inside(difference, ()))


def _ball(number: Expression) -> arb:
    """An enclosure, of nothing where there is no number."""
    try:
        return value_at(number, {})
    except DraftcertError:
        return arb.nan()
