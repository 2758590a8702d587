"""Formulas of the theory in ball arithmetic (python-flint), and exact numbers between the libraries.

A sympy expression becomes a Python function once, by sympy's own printer; rationals stay exact. Every value is an
enclosure: the true value lies in the ball whatever the working precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import mpmath
import mpmath.libmp
import sympy
from flint import arb, ctx, fmpq, fmpz
from sympy.printing.pycode import PythonCodePrinter

from ..theory import DraftcertError, Formula

Mpf: TypeAlias = Any
"""An mpmath number: its class is made at run time, so that it cannot be named in an annotation."""


class _BallPrinter(PythonCodePrinter):
    """Arithmetic as it stands; numbers and functions by the names given in `_FUNCTIONS`."""

    def _print_Integer(self, expr: sympy.Integer) -> str:
        return f"fmpq({expr.p})"

    def _print_Rational(self, expr: sympy.Rational) -> str:
        return f"fmpq({expr.p}, {expr.q})"

    def _print_Mul(self, expr: sympy.Mul) -> str:
        return f"times({', '.join(map(self._print, expr.args))})"

    def _print_Pow(self, expr: sympy.Pow, rational: bool = False) -> str:
        base, exponent = expr.args
        if isinstance(exponent, sympy.Integer):
            return f"({self._print(base)})**({exponent.p})"
        return f"power({self._print(base)}, {self._print(exponent)})"

    def _print_Float(self, expr: sympy.Float) -> str:
        raise DraftcertError(f"{expr} is a rounded number: formulas hold exact ones")

    def _print_Function(self, expr: sympy.Function) -> str:
        name = type(expr).__name__
        if name not in _FUNCTIONS:
            raise DraftcertError(f"no ball arithmetic is known for {name}")
        return f"{name}({', '.join(map(self._print, expr.args))})"

    def _print_log(self, expr: sympy.Function) -> str:
        return self._print_Function(expr)

    def _print_Min(self, expr: sympy.Function) -> str:
        return self._print_Function(expr)

    _print_exp = _print_log1p = _print_expm1 = _print_log


def _bennett(x: Any) -> arb:
    x = arb(x)
    if x == -1:  # the branch point: (1 + x) ln(1 + x) tends to 0
        return arb(1)
    return (1 + x) * x.log1p() - x


def _times(*factors: Any) -> Any:
    """A product in which an exact zero wins over whatever it multiplies: 0 ln 0 = 0."""
    result: Any = 1
    for factor in factors:
        if not isinstance(factor, arb) and factor == 0:
            return fmpq(0)
        result = result * factor
    return result


def _fold(method: str) -> Callable[..., arb]:
    def fold(*values: Any) -> arb:
        result = arb(values[0])
        for value in values[1:]:
            result = getattr(result, method)(arb(value))
        return result

    return fold


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "log": lambda x: arb(x).log(),
    "exp": lambda x: arb(x).exp(),
    "log1p": lambda x: arb(x).log1p(),
    "expm1": lambda x: arb(x).expm1(),
    "Min": _fold("min"),
    "Max": _fold("max"),
    "Bennett": _bennett,
}
_NAMES: dict[str, Any] = _FUNCTIONS | {
    "fmpq": fmpq,
    "times": _times,
    "power": lambda base, exponent: arb(base) ** arb(exponent),
}


@lru_cache(maxsize=1024)
def ball_function(expression: sympy.Expr, arguments: tuple[sympy.Symbol, ...]) -> Callable[..., Any]:
    """The expression as a function of balls (or exact numbers) in the given order, at flint's current precision."""
    printer = _BallPrinter({"fully_qualified_modules": False})
    return sympy.lambdify(arguments, expression, modules=[_NAMES], printer=printer)


def formula_function(formula: Formula) -> Callable[..., Any]:
    """The defining form of a formula (the summand, for a sum), as a function of balls in its arguments' order."""
    return ball_function(formula.expression, tuple(argument.symbol for argument in formula.arguments))


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work at this precision and put the former one back."""
    former = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = former


def to_fmpq(value: Fraction | sympy.Rational) -> fmpq:
    """An exact rational as python-flint's."""
    if isinstance(value, Fraction):
        return fmpq(value.numerator, value.denominator)
    return fmpq(int(value.p), int(value.q))


def to_fraction(value: fmpq) -> Fraction:
    """An exact rational of python-flint as a `Fraction`."""
    return Fraction(int(value.p), int(value.q))


def to_mpf(value: arb) -> Mpf:
    """The midpoint of a ball, exactly, whatever mpmath's precision is."""
    if not value.is_finite():
        return mpmath.mpf("inf") if value > 0 else mpmath.mpf("-inf") if value < 0 else mpmath.mpf("nan")
    mantissa, exponent = value.mid().man_exp()
    return mpmath.mp.make_mpf(mpmath.libmp.from_man_exp(int(mantissa), int(exponent)))


def bounds(value: arb) -> tuple[Mpf, Mpf]:
    """Lower and upper end of a ball, exactly."""
    if not value.is_finite():
        return to_mpf(value), to_mpf(value)
    (middle, scale), (radius, fine) = (tuple(map(int, part.man_exp())) for part in (value.mid(), value.rad()))
    unit = min(scale, fine)
    middle, radius = middle << scale - unit, radius << fine - unit
    low, high = (mpmath.libmp.from_man_exp(end, unit) for end in (middle - radius, middle + radius))
    return mpmath.mp.make_mpf(low), mpmath.mp.make_mpf(high)


def sum_balls(values: Sequence[arb] | Iterator[arb]) -> arb:
    """Their sum."""
    return sum(values, arb(0))


def bit_size(value: fmpq) -> int:
    """An integer within 1 of log2 |value|, for value != 0."""
    return int(fmpz(abs(int(value.p))).bit_length()) - int(fmpz(int(value.q)).bit_length())
