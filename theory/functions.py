"""Special functions in which the formulas are well conditioned. Every backend implements each once, with a bound."""

import sympy
from sympy.codegen.cfunctions import expm1, log1p

__all__ = ["Bennett", "expm1", "log1p"]


class Bennett(sympy.Function):
    """`h(x) = (1 + x) ln(1 + x) - x` on x >= -1, with h(-1) = 1 and h(x) = x^2/2 - x^3/6 + ... near 0.

    The function of Bennett's inequality. `c h((p - c)/c) = p ln(p/c) - p + c` is scipy's `kl_div(p, c)`: never
    negative, so sums of it do not cancel, and relative accuracy in `x` is relative accuracy in the value. The
    defining logarithms cancel to nothing at small `x` instead.

    Source: Bennett, J. Amer. Statist. Assoc. 57 (1962) 33-45.
    """

    nargs = 1

    @classmethod
    def eval(cls, x: sympy.Expr) -> sympy.Expr | None:
        """The two exact values."""
        if x == 0:
            return sympy.Integer(0)
        if x == -1:
            return sympy.Integer(1)
        return None

    def _eval_rewrite_as_log(self, x: sympy.Expr, **_: object) -> sympy.Expr:
        return (1 + x) * sympy.log(1 + x) - x

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """h'(x) = ln(1 + x)."""
        return sympy.log(1 + self.args[0])

    def _eval_evalf(self, prec: int) -> sympy.Expr:
        # The definition loses as many bits as x^2 is small: evaluate with that many more.
        x = self.args[0].evalf(prec)
        lost = max(0, -2 * int(sympy.log(abs(x), 2).evalf(15))) if x != 0 else 0
        return self.rewrite(sympy.log).evalf(int((prec + lost) * 0.31) + 20)._evalf(prec)

    def _latex(self, printer: sympy.printing.printer.Printer) -> str:
        return rf"h\left({printer._print(self.args[0])}\right)"
