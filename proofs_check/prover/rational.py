"""Rational functions over the rationals, exactly, in python-flint's multivariate polynomials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import sympy
from flint import Ordering, fmpq, fmpq_mpoly, fmpq_mpoly_ctx

from ...theory.errors import DraftcertError

Expression: TypeAlias = Any
"""A sympy expression; its type stubs do not say what `args` holds, so the checker looks itself."""

ZERO, ONE = sympy.Integer(0), sympy.Integer(1)

Key: TypeAlias = tuple[tuple[tuple[int, ...], str], ...]


def key(polynomial: fmpq_mpoly) -> Key:
    """A hashable form of a polynomial."""
    return tuple((exponents, str(value)) for exponents, value in polynomial.to_dict().items())


def number(value: sympy.Rational) -> fmpq:
    """An exact number for flint."""
    return fmpq(int(value.p), int(value.q))


@dataclass(frozen=True)
class Quotient:
    """Numerator and denominator without common factor."""

    numerator: fmpq_mpoly
    denominator: fmpq_mpoly

    @staticmethod
    def of(numerator: fmpq_mpoly, denominator: fmpq_mpoly) -> Quotient:
        """Lowest terms, with a leading coefficient 1 below.

        Raises:
            DraftcertError: the denominator is zero.
        """
        if denominator == 0:
            raise DraftcertError("a denominator vanishes identically")
        common = numerator.gcd(denominator)
        lead = (denominator / common).leading_coefficient()
        return Quotient(numerator / common / lead, denominator / common / lead)

    def __add__(self, other: Quotient) -> Quotient:
        if self.denominator == other.denominator:
            return Quotient.of(self.numerator + other.numerator, self.denominator)
        return Quotient.of(
            self.numerator * other.denominator + other.numerator * self.denominator,
            self.denominator * other.denominator,
        )

    def __mul__(self, other: Quotient) -> Quotient:
        return Quotient.of(self.numerator * other.numerator, self.denominator * other.denominator)

    def __pow__(self, exponent: int) -> Quotient:
        if exponent < 0:
            return Quotient.of(self.denominator, self.numerator) ** -exponent
        return Quotient(self.numerator**exponent, self.denominator**exponent)


class Ring:
    """Polynomials in the given symbols."""

    def __init__(self, symbols: tuple[sympy.Symbol, ...]) -> None:
        self.symbols = symbols
        self.index = {symbol: i for i, symbol in enumerate(symbols)}
        self._context = fmpq_mpoly_ctx.get(tuple(f"x{i}" for i in range(len(symbols))), Ordering.lex)
        self.one = self._context.constant(1)
        self._known: dict[Expression, Quotient] = {
            symbol: Quotient(generator, self.one)
            for symbol, generator in zip(symbols, self._context.gens(), strict=True)
        }

    def constant(self, value: fmpq) -> fmpq_mpoly:
        """A constant polynomial."""
        return self._context.constant(value)

    def polynomial(self, terms: dict[tuple[int, ...], fmpq]) -> fmpq_mpoly:
        """The polynomial with these terms."""
        return self._context.from_dict(terms)

    def quotient(self, expression: Expression) -> Quotient:
        """An expression as a quotient of polynomials.

        Raises:
            DraftcertError: it is not a rational function of the ring's symbols.
        """
        found = self._known.get(expression)
        if found is None:
            found = self._known[expression] = self._convert(expression)
        return found

    def _convert(self, e: Expression) -> Quotient:
        if isinstance(e, sympy.Rational):
            return Quotient(self.constant(number(e)), self.one)
        if isinstance(e, (sympy.Add, sympy.Mul)):
            parts = [self.quotient(part) for part in e.args]
            total = parts[0]
            for part in parts[1:]:
                total = total + part if isinstance(e, sympy.Add) else total * part
            return total
        if isinstance(e, sympy.Pow) and isinstance(e.exp, sympy.Integer):
            return self.quotient(e.base) ** int(e.exp)
        raise DraftcertError(f"{e} is not a rational function of {', '.join(map(str, self.symbols))}")

    def expression(self, polynomial: fmpq_mpoly) -> Expression:
        """A polynomial back in sympy."""
        return sympy.Add(
            *(
                sympy.Mul(
                    sympy.Rational(int(value.p), int(value.q)),
                    *(symbol**power for symbol, power in zip(self.symbols, powers, strict=True)),
                )
                for powers, value in polynomial.to_dict().items()
            )
        )

    def substitute(self, polynomial: fmpq_mpoly, symbol: sympy.Symbol, end: Quotient) -> Quotient:
        """The polynomial with a rational function, which may not use the symbol, in the symbol's place."""
        place = self.index[symbol]
        by_power: dict[int, dict[tuple[int, ...], fmpq]] = {}
        for powers, value in polynomial.to_dict().items():
            rest = (*powers[:place], 0, *powers[place + 1 :])
            by_power.setdefault(powers[place], {})[rest] = value
        highest = max(by_power, default=0)
        total = self.constant(fmpq(0))
        for power, terms in by_power.items():
            total += self.polynomial(terms) * end.numerator**power * end.denominator ** (highest - power)
        return Quotient.of(total, end.denominator**highest)


def is_rational(e: Expression) -> bool:
    """Whether the expression is built from symbols and rational numbers by + * / and whole powers."""
    if isinstance(e, (sympy.Symbol, sympy.Rational)):
        return True
    if isinstance(e, (sympy.Add, sympy.Mul)):
        return all(is_rational(part) for part in e.args)
    return isinstance(e, sympy.Pow) and isinstance(e.exp, sympy.Integer) and is_rational(e.base)
