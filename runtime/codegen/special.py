"""Special functions as expressions that floating point evaluates well: every backend prints these, none types them.

Bennett's h(x) = (1 + x) ln(1 + x) - x cancels near 0. With y = x / (2 + x), so that 1 + x = (1 + y) / (1 - y),

    h = 2 / (1 - y) [(atanh y - y) + y atanh y] = 2 y^2 / (1 - y) [1 + y (1 + y) P(y^2)],
    P(t) = sum_k t^k / (2 k + 3),

and no term cancels. For |x| <= SWITCH it holds that |y| <= SWITCH / (2 - SWITCH); P is cut after TERMS terms, which
leaves less than t^TERMS / ((2 TERMS + 3) (1 - t)) of it. `truncation_bound` is that bound relative to h.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy

from ...theory.functions import Bennett, log1p

SWITCH = sympy.Rational(1, 4)
"""|x| up to which the polynomial is used. Beyond, the definition loses at most a factor 1 / h(-1/4) * 1/4 < 9."""


@dataclass(frozen=True)
class Special:
    """A function with the expression that computes it; `terms` of the polynomial serve the backend's precision."""

    function: type[sympy.Function]
    terms: int

    @property
    def argument(self) -> sympy.Symbol:
        """Its argument."""
        return sympy.Symbol("x", real=True)

    @property
    def form(self) -> sympy.Expr:
        """h(x): the polynomial near 0, the definition elsewhere, the limit at -1."""
        x = self.argument
        y = x / (2 + x)
        small = 2 * y**2 / (1 - y) * (1 + y * (1 + y) * polynomial(self.terms, y**2))
        return sympy.Piecewise(
            (small, sympy.Le(sympy.Abs(x), SWITCH)), (1, sympy.Le(x, -1)), ((1 + x) * log1p(x) - x, True)
        )


def polynomial(terms: int, t: sympy.Expr) -> sympy.Expr:
    """P(t) by Horner's rule."""
    result: sympy.Expr = sympy.Integer(0)
    for k in reversed(range(terms)):
        result = sympy.Rational(1, 2 * k + 3) + t * result
    return result


def truncation_bound(terms: int) -> sympy.Rational:
    """Bound of the relative error that cutting P leaves in h on |x| <= SWITCH.

    h >= 2 y^2 / (1 - y) (1 - |y|) there, since y (1 + y) P > -|y|; the cut changes it by at most
    2 y^2 / (1 - y) |y| (1 + |y|) t^TERMS / ((2 TERMS + 3) (1 - t)).
    """
    y = SWITCH / (2 - SWITCH)
    t = y**2
    return y * (1 + y) / (1 - y) * t**terms / ((2 * terms + 3) * (1 - t))


DOUBLE = Special(Bennett, terms=10)
