"""Special functions in which the formulas are well conditioned. Every backend implements each once, with a bound."""

from typing import Any, cast

import sympy
from sympy.codegen.cfunctions import expm1, log1p
from sympy.printing.printer import Printer

__all__ = ["Bennett", "expm1", "log1p"]


class Bennett(sympy.Function):
    """`h(x) = (1 + x) ln(1 + x) - x` on x >= -1, with h(-1) = 1 and h(x) = x^2/2 - x^3/6 + ... near 0.

    The function of Bennett's inequality. `c h((p - c)/c) = p ln(p/c) - p + c` is scipy's `kl_div(p, c)`: never
    negative, so sums of it do not cancel, and relative accuracy in `x` is relative accuracy in the value. The
    defining logarithms cancel to nothing at small `x` instead.

    Source: Bennett, J. Amer. Statist. Assoc. 57 (1962) 33-45.
    """

    nargs = 1

    def __new__(cls, x: Any, **options: Any) -> sympy.Expr:
        """The function at `x`; its two exact values are numbers."""
        x = sympy.sympify(x)
        if x == 0:
            return sympy.S.Zero
        if x == -1:
            return sympy.S.One
        return cast(sympy.Expr, super().__new__(cls, x, **options))

    def _eval_rewrite_as_log(self, x: sympy.Expr, **_: object) -> sympy.Expr:
        return (1 + x) * sympy.log(1 + x) - x

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """h'(x) = ln(1 + x)."""
        return sympy.log(1 + self._argument)

    def _eval_evalf(self, prec: int) -> sympy.Expr:
        # The definition loses as many bits as x^2 is small: evaluate with that many more.
        x = self._argument.evalf(prec)
        lost = max(0, -2 * int(sympy.log(abs(x), 2).evalf(15))) if x != 0 else 0
        return self.rewrite(sympy.log).evalf(int((prec + lost) * 0.31) + 20)._evalf(prec)

    @property
    def _argument(self) -> sympy.Expr:
        return cast(sympy.Expr, self.args[0])

    def _latex(self, printer: Printer) -> str:
        return rf"h\left({printer._print(self.args[0])}\right)"
