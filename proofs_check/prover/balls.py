"""Ball arithmetic for sympy expressions: every value comes with a bound that is certain (python-flint's arb)."""

from __future__ import annotations

from collections.abc import Mapping

import flint
import sympy
from flint import arb, fmpq

from ...theory.errors import DraftcertError
from ...theory.functions import Bennett, expm1, log1p
from .rational import Expression

Environment = Mapping[sympy.Basic, arb]


def ball(number: Expression) -> arb:
    """The ball of an exact rational number."""
    if not isinstance(number, sympy.Rational):
        raise DraftcertError(f"{number} is not a rational number")
    return arb(fmpq(int(number.p), int(number.q)))


def evaluate(expression: Expression, environment: Environment) -> arb:
    """An enclosure of the expression for all values in the environment's balls, at flint's current precision.

    Where the expression is not defined on a whole ball the result is not finite, which decides nothing.

    Raises:
        DraftcertError: a function or symbol that this interpreter does not know.
    """
    if isinstance(expression, sympy.Symbol):
        if expression not in environment:
            raise DraftcertError(f"no value is given for {expression}")
        return environment[expression]
    if isinstance(expression, sympy.Rational):
        return ball(expression)
    parts = [evaluate(part, environment) for part in expression.args]
    if isinstance(expression, sympy.Add):
        return sum(parts[1:], parts[0])
    if isinstance(expression, sympy.Mul):
        product = parts[0]
        for part in parts[1:]:
            product = product * part
        return product
    if isinstance(expression, sympy.Pow):
        return _power(parts[0], expression.exp, parts[1])
    if expression.func in _FUNCTIONS:
        return _FUNCTIONS[expression.func](*parts)
    raise DraftcertError(f"{expression.func} is not a function the checker knows")


def _power(base: arb, exponent: Expression, ball_of_exponent: arb) -> arb:
    if isinstance(exponent, sympy.Integer):
        return base ** int(exponent)
    return (base.log() * ball_of_exponent).exp() if base > 0 else arb.nan()


def _log(x: arb) -> arb:
    return x.log() if x > 0 else arb.nan()


def _log1p(x: arb) -> arb:
    return x.log1p() if x > -1 else arb.nan()


def _bennett_at(x: arb) -> arb:
    return arb(1) if x == -1 else (1 + x) * x.log1p() - x


def _bennett(x: arb) -> arb:
    """Falls on [-1, 0] and rises after it, so its range over a ball is that of the ends (and 0 where it holds 0)."""
    if not x >= -1:
        return arb.nan()
    if x.is_exact():
        return _bennett_at(x)
    ends = _bennett_at(x.lower()).union(_bennett_at(x.upper()))
    return ends.union(arb(0)) if x.contains(0) else ends


_FUNCTIONS = {
    sympy.log: _log,
    log1p: _log1p,
    sympy.exp: lambda x: x.exp(),
    expm1: lambda x: x.expm1(),
    Bennett: _bennett,
    sympy.Max: lambda *xs: max_of(list(xs)),
    sympy.Min: lambda *xs: -max_of([-x for x in xs]),
}


def max_of(balls: list[arb]) -> arb:
    """Enclosure of the largest."""
    largest = balls[0]
    for each in balls[1:]:
        largest = largest.max(each)
    return largest


def precision(bits: int):
    """Context in which flint computes with this many bits; the earlier precision is restored on leaving it."""
    return flint.ctx.workprec(bits)
