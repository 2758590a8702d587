"""Signs that can be read off an expression on a domain: sums, products, powers, logarithms, and linear elimination.

Nothing here searches or computes with floats. `bound` answers 2 only where the expression is positive at every interior
point of the domain, 1 only where it is nonnegative on it, and 0 where it cannot tell.
"""

from __future__ import annotations

import sympy

from ..theory.errors import DraftcertError
from ..theory.functions import Bennett, expm1, log1p
from ..theory.theorem import Domain, Range

UNKNOWN, NONNEGATIVE, POSITIVE = 0, 1, 2


class Signs:
    """Reads signs on one domain. Interior: every bound strict, except that integers take all their values."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._known: dict[sympy.Expr, int] = {}
        for each in domain:
            # sympy simplifies by a symbol's assumptions, so the range must not leave them.
            assumed = each.symbol.is_nonnegative or each.symbol.is_negative or each.symbol.is_integer
            if assumed and not (each.symbol.is_nonnegative and self.nonnegative(each.lower)):
                raise DraftcertError(f"{each.symbol} is assumed otherwise than it ranges, from {each.lower}")

    def nonnegative(self, expression: sympy.Expr) -> bool:
        """Whether it is evidently at least 0 on the domain."""
        return self.bound(expression) >= NONNEGATIVE

    def positive(self, expression: sympy.Expr) -> bool:
        """Whether it is evidently above 0 inside the domain."""
        return self.bound(expression) == POSITIVE

    def bound(self, expression: sympy.Expr) -> int:
        """2 positive inside, 1 nonnegative, 0 cannot tell."""
        if expression not in self._known:
            self._known[expression] = UNKNOWN  # while it is being decided, so that no sign rests on itself
            self._known[expression] = self._read(expression)
        return self._known[expression]

    def _read(self, e: sympy.Expr) -> int:
        if e.is_Rational:
            return POSITIVE if e > 0 else NONNEGATIVE if e == 0 else UNKNOWN
        if e.is_Symbol:
            return self._eliminate(e)
        if e.is_Add:
            parts = [self.bound(part) for part in e.args]
            if min(parts) >= NONNEGATIVE:
                return max(parts)
            return self._eliminate(e) or self._factored(e)
        if e.is_Mul:
            return self._product(e)
        if e.is_Pow:
            return self._power(e.base, e.exp)
        return self._function(e)

    def _product(self, e: sympy.Expr) -> int:
        lowest, negative = POSITIVE, False
        for part in e.args:
            here = self.bound(part)
            if not here:
                here, negative = self._negated(part), not negative
            lowest = min(lowest, here)
        if lowest and not negative:
            return lowest
        expanded = sympy.expand(e)
        return self.bound(expanded) if expanded.is_Add else UNKNOWN

    def _negated(self, e: sympy.Expr) -> int:
        if isinstance(e, sympy.log):
            return self.bound(1 - e.args[0]) if self.positive(e.args[0]) else UNKNOWN
        if e.is_Pow and e.exp.is_Integer and e.exp.is_odd:
            here = self._negated(e.base)
            return here if e.exp > 0 or here == POSITIVE else UNKNOWN
        if e.is_Mul or isinstance(e, sympy.Function):
            return UNKNOWN
        if e.is_Symbol:
            return self._eliminate(-e)
        return self.bound(-e)

    def _power(self, base: sympy.Expr, exponent: sympy.Expr) -> int:
        if not exponent.is_Rational:
            return UNKNOWN
        here = self.bound(base)
        if here == POSITIVE:
            return POSITIVE
        if exponent.is_Integer and exponent.is_even and exponent > 0:
            return POSITIVE if self._negated(base) == POSITIVE else NONNEGATIVE
        return here if exponent > 0 else UNKNOWN

    def _function(self, e: sympy.Expr) -> int:
        if isinstance(e, sympy.exp):
            return POSITIVE
        if isinstance(e, (sympy.log, log1p, expm1)):
            return self.bound(e.args[0] - 1 if isinstance(e, sympy.log) else e.args[0])
        if isinstance(e, (sympy.Max, sympy.Min)):
            return (max if isinstance(e, sympy.Max) else min)(self.bound(part) for part in e.args)
        if isinstance(e, Bennett) and self.nonnegative(1 + e.args[0]):
            return POSITIVE if self.positive(e.args[0]) or self.positive(-e.args[0]) else NONNEGATIVE
        return UNKNOWN

    def _eliminate(self, e: sympy.Expr) -> int:
        """Where `e` is affine in a variable its least value lies at the end that the sign of the slope gives."""
        for each in reversed(self._domain):
            if each.symbol not in e.free_symbols:
                continue
            slope = sympy.diff(e, each.symbol)
            if each.symbol in slope.free_symbols:
                continue
            rest = sympy.expand(e - slope * each.symbol)
            if each.symbol in rest.free_symbols:
                continue
            for rising, ends in ((self.bound(slope), _ends(each, False)), (self.bound(-slope), _ends(each, True))):
                if not rising:
                    continue
                for end in ends:
                    least = self.bound(_plain(slope * end + rest))
                    if least:
                        inside = rising == POSITIVE and not each.integer
                        return POSITIVE if least == POSITIVE or inside else NONNEGATIVE
        return UNKNOWN

    def _factored(self, e: sympy.Expr) -> int:
        if e.has(sympy.log, Bennett):
            return UNKNOWN
        factored = sympy.factor(sympy.together(e))
        return UNKNOWN if factored == e else self.bound(factored)


def _plain(e: sympy.Expr) -> sympy.Expr:
    """Over one denominator with common factors cancelled, where that has a meaning; expanded otherwise."""
    return sympy.cancel(sympy.together(e)) if e.is_rational_function() else sympy.expand(e)


def _ends(each: Range, upper: bool) -> tuple[sympy.Expr, ...]:
    """The finite bounds on one side; `Max` below and `Min` above are several bounds that all hold."""
    end, several = (each.upper, sympy.Min) if upper else (each.lower, sympy.Max)
    ends = end.args if isinstance(end, several) else (end,)
    return tuple(x for x in ends if x.is_finite is not False and not x.has(sympy.Max, sympy.Min))
