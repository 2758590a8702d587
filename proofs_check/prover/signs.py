"""Signs that can be read off an expression on a domain: sums, products, powers, logarithms, and linear elimination.

Nothing here searches or computes with floats. `bound` answers 2 only where the expression is positive at every interior
point of the domain, 1 only where it is nonnegative on it, and 0 where it cannot tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sympy
from flint import fmpq_mpoly

from ...theory.errors import DraftcertError
from ...theory.functions import Bennett, expm1, log1p
from ...theory.theorem import Domain, Range
from .rational import Expression, Key, Quotient, Ring, is_rational, key, number

UNKNOWN, NONNEGATIVE, POSITIVE = 0, 1, 2


class Signs:
    """Reads signs on one domain. Interior: every bound strict, except that integers take all their values.

    `points` are some points of the domain: a polynomial that is negative at one is not looked at any further.
    """

    def __init__(self, domain: Domain, points: Iterable[Mapping[sympy.Basic, Expression]] = ()) -> None:
        self.ring = Ring(tuple(each.symbol for each in domain))
        self._domain = domain
        self._points = [tuple(number(point[each.symbol]) for each in domain) for point in points]
        self._known: dict[Expression, int] = {}
        self._polynomials: dict[Key, int] = {}
        self._from_lower = [
            self.ring.quotient(
                r.symbol + (r.lower if isinstance(r.lower, sympy.Rational) and r.lower > 0 else 0)
            ).numerator
            for r in domain
        ]
        for each in domain:
            # sympy simplifies by a symbol's assumptions, so the range must not leave them.
            assumed = each.symbol.is_nonnegative or each.symbol.is_negative or each.symbol.is_integer
            if assumed and not (each.symbol.is_nonnegative and self.nonnegative(each.lower)):
                raise DraftcertError(f"{each.symbol} is assumed otherwise than it ranges, from {each.lower}")

    def nonnegative(self, expression: Expression) -> bool:
        """Whether it is evidently at least 0 on the domain."""
        return self.bound(expression) >= NONNEGATIVE

    def positive(self, expression: Expression) -> bool:
        """Whether it is evidently above 0 inside the domain."""
        return self.bound(expression) == POSITIVE

    def bound(self, expression: Expression) -> int:
        """2 positive inside, 1 nonnegative, 0 cannot tell."""
        if expression not in self._known:
            self._known[expression] = UNKNOWN  # while it is being decided, so that no sign rests on itself
            self._known[expression] = self._read(expression)
        return self._known[expression]

    def _read(self, e: Expression) -> int:
        if is_rational(e):
            whole = self._of_quotient(self.ring.quotient(e))
            if whole or not e.is_Add:
                return whole
        if e.is_Add:
            parts = [self.bound(part) for part in e.args]
            return max(parts) if min(parts) >= NONNEGATIVE else UNKNOWN
        if e.is_Mul:
            return self._product(e)
        if e.is_Pow:
            return self._power(e.base, e.exp)
        return self._function(e)

    def _product(self, e: Expression) -> int:
        rational = sympy.Mul(*(part for part in e.args if is_rational(part)))
        lowest, negative = POSITIVE, False
        for part in (rational, *(part for part in e.args if not is_rational(part))):
            here = self.bound(part)
            if not here:
                here, negative = self._negated(part), not negative
            lowest = min(lowest, here)
        if lowest and not negative:
            return lowest
        expanded = sympy.expand_mul(e)
        return self.bound(expanded) if expanded.is_Add else UNKNOWN

    def _negated(self, e: Expression) -> int:
        if isinstance(e, sympy.log):
            return self.bound(1 - e.args[0]) if self.positive(e.args[0]) else UNKNOWN
        if is_rational(e) or e.is_Add:
            return self.bound(-e)
        return UNKNOWN

    def _power(self, base: Expression, exponent: Expression) -> int:
        if not exponent.is_Rational:
            return UNKNOWN
        here = self.bound(base)
        if here == POSITIVE:
            return POSITIVE
        if exponent.is_Integer and exponent.is_even and exponent > 0:
            return POSITIVE if self._negated(base) == POSITIVE else NONNEGATIVE
        return here if exponent > 0 else UNKNOWN

    def _function(self, e: Expression) -> int:
        argument: Expression = e.args[0] if e.args else None
        if isinstance(e, sympy.exp):
            return POSITIVE
        if isinstance(e, (sympy.log, log1p, expm1)):
            return self.bound(argument - 1 if isinstance(e, sympy.log) else argument)
        if isinstance(e, (sympy.Max, sympy.Min)):
            return (max if isinstance(e, sympy.Max) else min)(self.bound(part) for part in e.args)
        if isinstance(e, Bennett) and self.nonnegative(1 + argument):
            return POSITIVE if self.positive(argument) or self.positive(-argument) else NONNEGATIVE
        return UNKNOWN

    # ---- rational functions ------------------------------------------------------------------------------------

    def _of_quotient(self, e: Quotient) -> int:
        """The product of the signs of the irreducible factors."""
        if e.numerator == 0:
            return NONNEGATIVE
        lowest, negative = POSITIVE, False
        for polynomial, below in ((e.numerator, False), (e.denominator, True)):
            content, factors = polynomial.factor()
            negative ^= content < 0
            for factor, power in factors:
                here, sign = self.sign_of_factor(factor)
                if not here and power % 2 == 0:
                    here = NONNEGATIVE
                if not here or (below and here < POSITIVE):
                    return UNKNOWN
                lowest = min(lowest, here)
                negative ^= sign < 0 and power % 2 == 1
        return UNKNOWN if negative else lowest

    def sign_of_factor(self, factor: fmpq_mpoly) -> tuple[int, int]:
        """How certain, and which sign an irreducible polynomial has."""
        here = self._of_polynomial(factor)
        return (here, 1) if here else (self._of_polynomial(-factor), -1)

    def _of_polynomial(self, f: fmpq_mpoly) -> int:
        name = key(f)
        if name not in self._polynomials:
            self._polynomials[name] = UNKNOWN
            if any(f(*point) < 0 for point in self._points):
                return UNKNOWN
            here = self._by_terms(f)
            self._polynomials[name] = here if here == POSITIVE else max(here, self._eliminate(f))
        return self._polynomials[name]

    def _by_terms(self, f: fmpq_mpoly) -> int:
        """With variables counted from their constant lower bounds: no negative coefficient, no odd power of a variable
        that may be negative."""
        best = NONNEGATIVE
        for powers, value in f.compose(*self._from_lower).to_dict().items():
            if value < 0:
                return UNKNOWN
            here = POSITIVE
            for each, power in zip(self._domain, powers, strict=True):
                if power and not self.nonnegative(each.lower):
                    here = NONNEGATIVE
                    if power % 2:
                        return UNKNOWN
                elif power and each.integer:
                    here = NONNEGATIVE
            best = max(best, here)
        return best

    def _eliminate(self, f: fmpq_mpoly) -> int:
        """Where it is affine in a variable, its least value lies at an end: the one that the sign of the slope gives.

        Without that sign both ends are looked at, for a variable between two numbers: else the search would be long.
        """
        affine = [place for place, degree in enumerate(f.degrees()[: len(self._domain)]) if degree == 1]
        for place in reversed(affine):
            each, slope = self._domain[place], f.derivative(place)
            for rising, upper in ((self._of_polynomial(slope), False), (self._of_polynomial(-slope), True)):
                if rising and (least := self._at_ends(f, each, upper)):
                    inside = rising == POSITIVE and not each.integer
                    return POSITIVE if least == POSITIVE or inside else NONNEGATIVE
        for place in affine:
            each = self._domain[place]
            if not (each.lower.is_Rational and each.upper.is_Rational):
                continue
            if (low := self._at_ends(f, each, False)) and (high := self._at_ends(f, each, True)):
                return min(low, high) if each.integer else max(low, high)
        return UNKNOWN

    def _at_ends(self, f: fmpq_mpoly, each: Range, upper: bool) -> int:
        """What is certain of the polynomial where a variable is at one of its bounds: enough for the least value."""
        found = (
            self._of_quotient(self.ring.substitute(f, each.symbol, self.ring.quotient(end)))
            for end in _ends(each, upper)
        )
        return next((here for here in found if here), UNKNOWN)


def _ends(each: Range, upper: bool) -> tuple[Expression, ...]:
    """The finite rational bounds on one side; `Max` below and `Min` above are several bounds that all hold."""
    end, several = (each.upper, sympy.Min) if upper else (each.lower, sympy.Max)
    ends = end.args if isinstance(end, several) else (end,)
    return tuple(x for x in ends if is_rational(x))
