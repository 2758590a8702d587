"""Exact equality of expressions made of rational functions, logarithms, exponentials and square roots.

Every logarithm is split into logarithms of primes and of irreducible polynomials that are positive on the domain.
Those, exponentials and roots become unknowns of a rational function, which is zero if its numerator is.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy
from flint import fmpq_mpoly

from ...theory.errors import DraftcertError
from ...theory.functions import Bennett, expm1, log1p
from .rational import Expression, Key, Quotient, Ring, is_rational, key
from .signs import POSITIVE, Signs

_KNOWN = (sympy.Add, sympy.Mul, sympy.Pow, sympy.Symbol, sympy.Rational, sympy.log, sympy.exp)


def elementary(expression: Expression) -> Expression:
    """Written with logarithms and exponentials only; refuses functions the checker does not know."""
    plain = expression.replace(Bennett, lambda x: (1 + x) * sympy.log(1 + x) - x)
    plain = plain.replace(log1p, lambda x: sympy.log(1 + x)).replace(expm1, lambda x: sympy.exp(x) - 1)
    for part in sympy.preorder_traversal(plain):
        if not isinstance(part, _KNOWN) or (isinstance(part, sympy.Pow) and not part.exp.is_Rational):
            raise DraftcertError(f"{part} is not something the checker can decide")
    return plain


@dataclass(frozen=True)
class _Reduced:
    """An expression as a quotient in the ring of symbols, unknowns for logarithms, and other unknowns."""

    ring: Ring
    quotient: Quotient
    unknowns: dict[sympy.Symbol, Expression]


class LogForm:
    """Normal forms on one domain."""

    def __init__(self, signs: Signs) -> None:
        self.signs = signs
        self._atoms: dict[Key | Expression, sympy.Symbol] = {}
        self._arguments: dict[sympy.Symbol, Expression] = {}
        self._split_before: dict[Expression, Expression] = {}

    def is_zero(self, expression: Expression) -> bool:
        """Whether the expression vanishes identically inside the domain. False also when it cannot tell."""
        return self._reduce(expression).quotient.numerator == 0

    def at_end(self, expression: Expression, symbol: sympy.Symbol, end: Expression) -> Expression:
        """The value that the expression takes as `symbol` goes to `end` inside the domain, with x ln x -> 0.

        Raises:
            DraftcertError: it cannot be seen to have one.
        """
        reduced = self._reduce(expression)
        ring, unknowns = reduced.ring, list(reduced.unknowns)
        logs = [u for u in unknowns if u in self._arguments]
        below = reduced.quotient.denominator
        if any(below.degrees()[ring.index[u]] for u in logs):
            raise DraftcertError(f"{expression} has a logarithm in a denominator")
        there = ring.quotient(end)
        below = ring.substitute(below, symbol, there)
        if below.numerator == 0:
            raise DraftcertError(f"{expression} has a pole at {symbol} = {end}")
        value = sympy.Integer(0)
        for powers, coefficient in self._by_logs(ring, reduced.quotient.numerator, logs).items():
            above = ring.substitute(coefficient, symbol, there)
            if above.numerator == 0:
                continue  # a power of the distance to the end beats any power of its logarithm
            factors = sympy.Integer(1)
            for log, power in zip(logs, powers, strict=True):
                if power:
                    factors *= self._log_at(log, symbol, end) ** power
            ratio = above * Quotient.of(below.denominator, below.numerator)
            value += ring.expression(ratio.numerator) / ring.expression(ratio.denominator) * factors
        others = {u: x.xreplace({symbol: end}) for u, x in reduced.unknowns.items() if u not in logs}
        return value.xreplace(others)

    def _log_at(self, log: sympy.Symbol, symbol: sympy.Symbol, end: Expression) -> Expression:
        argument = self._arguments[log]
        if not argument.has(symbol):
            return sympy.log(argument)
        if not is_rational(argument):
            raise DraftcertError(f"the argument {argument} of a logarithm is not rational")
        ring = self.signs.ring
        at = ring.substitute(ring.quotient(argument).numerator, symbol, ring.quotient(end))
        if at.numerator == 0:
            raise DraftcertError(f"ln({argument}) diverges at {symbol} = {end}")
        return sympy.log(ring.expression(at.numerator) / ring.expression(at.denominator))

    @staticmethod
    def _by_logs(ring: Ring, f: fmpq_mpoly, logs: list[sympy.Symbol]) -> dict[tuple[int, ...], fmpq_mpoly]:
        places = [ring.index[log] for log in logs]
        grouped: dict[tuple[int, ...], dict[tuple[int, ...], object]] = {}
        for powers, value in f.to_dict().items():
            rest = tuple(0 if i in places else power for i, power in enumerate(powers))
            grouped.setdefault(tuple(powers[i] for i in places), {})[rest] = value
        return {powers: ring.polynomial(terms) for powers, terms in grouped.items()}  # type: ignore[arg-type]

    def _reduce(self, expression: Expression) -> _Reduced:
        plain = elementary(expression).replace(sympy.log, self._split)
        unknowns: dict[sympy.Symbol, Expression] = {}
        roots = {x for x in plain.atoms(sympy.Pow) if not x.exp.is_Integer}
        if any(x.exp.q != 2 or not is_rational(x.base) for x in roots):
            raise DraftcertError(f"{expression} has a root that is not the square root of a rational function")
        names = {sympy.sqrt(x.base): sympy.Dummy("w") for x in roots}
        plain = plain.xreplace({x: names[sympy.sqrt(x.base)] ** int(2 * x.exp) for x in roots})
        names |= {x: sympy.Dummy("e") for x in plain.atoms(sympy.exp)}
        plain = plain.xreplace(names)
        unknowns = {name: x for x, name in names.items()}
        unknowns |= {u: sympy.log(x) for u, x in self._arguments.items() if plain.has(u)}
        ring = Ring((*self.signs.ring.symbols, *unknowns))
        quotient = ring.quotient(plain)
        for name, x in unknowns.items():
            if isinstance(x, sympy.Pow):
                above = _modulo_square(ring, quotient.numerator, name, ring.quotient(x.base))
                quotient = above * Quotient.of(ring.one, quotient.denominator)
        return _Reduced(ring, quotient, unknowns)

    def _split(self, argument: Expression) -> Expression:
        """The logarithm of an argument that is positive inside the domain, in unknowns."""
        if argument not in self._split_before:
            self._split_before[argument] = self._split_now(argument)
        return self._split_before[argument]

    def _split_now(self, argument: Expression) -> Expression:
        powers: list[Expression] = [part for part in sympy.Mul.make_args(argument) if isinstance(part, sympy.exp)]
        if powers:
            rest = argument / sympy.Mul(*powers)
            return sympy.Add(self._split(rest), *(part.args[0] for part in powers))
        if not is_rational(argument):
            return self._atom(argument, argument)
        ring = self.signs.ring
        quotient = ring.quotient(argument)
        total, constant = sympy.Integer(0), sympy.Integer(1)
        for part, sign in ((quotient.numerator, 1), (quotient.denominator, -1)):
            content, factors = part.factor()
            constant *= sympy.Rational(int(content.p), int(content.q)) ** sign
            for factor, power in factors:
                certainty, direction = self.signs.sign_of_factor(factor)
                if certainty < POSITIVE:
                    whole = ring.expression(quotient.numerator) / ring.expression(quotient.denominator)
                    return self._atom(whole, whole)
                constant *= direction**power
                total += sign * power * self._atom(key(direction * factor), ring.expression(direction * factor))
        if constant <= 0:
            raise DraftcertError(f"the argument {argument} of a logarithm is not positive")
        primes: Expression = sympy.factorrat(constant)
        for prime, power in primes.items():
            if prime != 1:
                total += power * self._atom(sympy.Integer(prime), sympy.Integer(prime))
        return total

    def _atom(self, name: Key | Expression, argument: Expression) -> sympy.Symbol:
        if name not in self._atoms:
            unknown = self._atoms[name] = sympy.Dummy("L")
            self._arguments[unknown] = argument
        return self._atoms[name]


def _modulo_square(ring: Ring, f: fmpq_mpoly, root: sympy.Symbol, square: Quotient) -> Quotient:
    """A polynomial with `root^2` replaced by what it is, so that the root occurs at most once in each term."""
    place = ring.index[root]
    total = Quotient(ring.one - ring.one, ring.one)
    for powers, value in f.to_dict().items():
        rest = ring.polynomial({(*powers[:place], powers[place] % 2, *powers[place + 1 :]): value})
        total = total + Quotient(rest, ring.one) * square ** (powers[place] // 2)
    return total
