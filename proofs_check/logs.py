"""Exact equality of expressions made of rational functions, logarithms, one-argument exponentials and square roots.

Every logarithm is split into logarithms of primes and of irreducible polynomials that are positive on the domain. Over
those an expression is a polynomial whose coefficients are rational functions: it is zero if all coefficients are.
"""

from __future__ import annotations

import sympy

from ..theory.errors import DraftcertError
from ..theory.functions import Bennett, expm1, log1p
from .signs import Signs

_KNOWN = (sympy.Add, sympy.Mul, sympy.Pow, sympy.Symbol, sympy.Rational, sympy.log, sympy.exp)


def elementary(expression: sympy.Expr) -> sympy.Expr:
    """Written with logarithms and exponentials only; refuses functions the checker does not know."""
    plain = expression.replace(Bennett, lambda x: (1 + x) * sympy.log(1 + x) - x)
    plain = plain.replace(log1p, lambda x: sympy.log(1 + x)).replace(expm1, lambda x: sympy.exp(x) - 1)
    for part in sympy.preorder_traversal(plain):
        if not isinstance(part, _KNOWN) or (isinstance(part, sympy.Pow) and not part.exp.is_Rational):
            raise DraftcertError(f"{part} is not something the checker can decide")
    return plain


class LogForm:
    """Normal forms on one domain."""

    def __init__(self, signs: Signs) -> None:
        self._signs = signs
        self._atoms: dict[sympy.Expr, sympy.Symbol] = {}

    def is_zero(self, expression: sympy.Expr) -> bool:
        """Whether the expression vanishes identically inside the domain. False also when it cannot tell."""
        return not self._terms(expression)

    def at_end(self, expression: sympy.Expr, symbol: sympy.Symbol, end: sympy.Expr) -> sympy.Expr:
        """The value that the expression takes as `symbol` goes to `end` inside the domain, with x ln x -> 0.

        Raises:
            DraftcertError: it cannot be seen to have one.
        """
        value = sympy.Integer(0)
        for powers, coefficient in self._terms(expression).items():
            there = _limit_of_rational(coefficient, symbol, end)
            factors = sympy.Integer(1)
            for argument, power in powers:
                at = sympy.cancel(argument.subs(symbol, end))
                if at == 0 and there == 0:
                    factors = sympy.Integer(0)  # a power of the distance to the end beats a power of its logarithm
                    break
                if at == 0:
                    raise DraftcertError(f"{expression} has a logarithm that diverges at {symbol} = {end}")
                factors *= sympy.log(at) ** power
            value += there * factors
        return value

    def _terms(self, expression: sympy.Expr) -> dict[tuple[tuple[sympy.Expr, int], ...], sympy.Expr]:
        """Nonzero coefficients by monomial in logarithms; a monomial lists the logarithms' arguments and powers."""
        plain = elementary(expression).replace(sympy.log, self._split)
        atoms = {atom: argument for argument, atom in self._atoms.items() if atom in plain.free_symbols}
        roots = _Roots()
        plain = roots.replace(plain)
        if not atoms:
            rest = roots.reduce(plain)
            return {} if rest == 0 else {(): roots.back(rest)}
        names = list(atoms)
        poly = sympy.Poly(sympy.expand(plain, deep=False).expand(), *names, domain="EX")
        terms = {}
        for powers, coefficient in poly.terms():
            rest = roots.reduce(coefficient)
            if rest != 0:
                key = tuple((atoms[name], power) for name, power in zip(names, powers, strict=True) if power)
                terms[key] = roots.back(rest)
        return terms

    def _split(self, argument: sympy.Expr) -> sympy.Expr:
        """The logarithm of an argument that is positive inside the domain, in atoms."""
        if isinstance(argument, sympy.exp):
            return argument.args[0]
        numerator, denominator = sympy.fraction(sympy.cancel(sympy.together(argument)))
        total, constant = sympy.Integer(0), sympy.Integer(1)
        for part, sign in ((numerator, 1), (denominator, -1)):
            content, factors = sympy.factor_list(part) if part.free_symbols else (part, [])
            constant *= content**sign
            for factor, power in factors:
                if self._signs.positive(factor):
                    total += sign * power * self._atom(factor)
                elif self._signs.positive(-factor):
                    constant *= (-1) ** power
                    total += sign * power * self._atom(sympy.expand(-factor))
                else:
                    return self._atom(sympy.cancel(argument))
        if not constant.is_Rational or constant <= 0:
            return self._atom(sympy.cancel(argument))
        for prime, power in sympy.factorrat(constant).items():
            if prime != 1:
                total += power * self._atom(sympy.Integer(prime))
        return total

    def _atom(self, argument: sympy.Expr) -> sympy.Symbol:
        return self._atoms.setdefault(argument, sympy.Dummy("L"))


class _Roots:
    """Square roots and exponentials as unknowns, each root with the equation that defines it."""

    def __init__(self) -> None:
        self._names: dict[sympy.Expr, sympy.Symbol] = {}

    def replace(self, expression: sympy.Expr) -> sympy.Expr:
        """The expression with an unknown for each root and exponential."""
        roots = {
            part: part.base
            for part in expression.atoms(sympy.Pow)
            if part.exp.is_Rational and not part.exp.is_Integer
        }
        if any(abs(part.exp.q) != 2 for part in roots):
            raise DraftcertError(f"a root other than the square root occurs in {expression}")
        expression = expression.xreplace(
            {part: self._name(sympy.sqrt(base)) ** int(2 * part.exp) for part, base in roots.items()}
        )
        exponentials = expression.atoms(sympy.exp)
        return expression.xreplace({part: self._name(part) for part in exponentials})

    def reduce(self, expression: sympy.Expr) -> sympy.Expr:
        """Zero if the numerator vanishes modulo the equations; otherwise the expression with cancelled factors."""
        expression = sympy.cancel(sympy.together(expression))
        numerator = sympy.expand(sympy.fraction(expression)[0])
        for part, name in self._names.items():
            if isinstance(part, sympy.Pow):
                numerator = sympy.rem(numerator, name**2 - part.base, name)
        return sympy.Integer(0) if sympy.expand(numerator) == 0 else expression

    def back(self, expression: sympy.Expr) -> sympy.Expr:
        """The unknowns replaced by what they stand for."""
        return expression.xreplace({name: part for part, name in self._names.items()})

    def _name(self, part: sympy.Expr) -> sympy.Symbol:
        return self._names.setdefault(part, sympy.Dummy("r"))


def _limit_of_rational(coefficient: sympy.Expr, symbol: sympy.Symbol, end: sympy.Expr) -> sympy.Expr:
    numerator, denominator = sympy.fraction(sympy.cancel(coefficient))
    below = sympy.cancel(denominator.subs(symbol, end))
    if below == 0:
        raise DraftcertError(f"{coefficient} has a pole at {symbol} = {end}")
    return sympy.cancel(numerator.subs(symbol, end) / below)
