"""False formulas: every way to get a formula slightly wrong, to see that the comparison notices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import sympy

from ..theory import Formula
from ..theory.functions import Bennett, expm1, log1p

TINY = sympy.Rational(1, 10**20)
"""A relative error that double precision cannot see; in the level, where values are stationary, it shows squared."""


@cache
def mutants(formula: Formula) -> tuple[Formula, ...]:
    """The formula with one thing changed, each named after the change."""
    return tuple(
        replace(formula, statement=f"{form}: {name}", **{form: changed})
        for form in ("expression", "stable")
        for name, changed in _changes(getattr(formula, form))
    )


def _changes(expression: sympy.Expr) -> Iterator[tuple[str, sympy.Expr]]:
    yield "sign", -expression
    yield "twice", 2 * expression
    yield "off by 1e-20", expression * (1 - TINY)
    symbols: list[Any] = sorted(expression.free_symbols, key=str)
    for symbol in symbols:
        for name, changed in (("doubled", 2 * symbol), ("squared", symbol**2), ("off by 1e-20", symbol * (1 + TINY))):
            yield f"{symbol} {name}", _swap(expression, symbol, changed)
    functions = expression.atoms(sympy.log, Bennett, log1p, expm1)
    for function in sorted(functions, key=sympy.default_sort_key):
        argument: Any = function.args[0]
        yield f"argument of {function}", _swap(expression, function, function.func(argument * sympy.Rational(9, 10)))
        yield f"{function} to first order", _swap(expression, function, argument)


def _swap(expression: sympy.Expr, part: sympy.Basic, other: Any) -> sympy.Expr:
    return expression.xreplace({part: other})  # type: ignore[return-value]
