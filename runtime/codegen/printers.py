"""sympy's printers, extended where they fail."""

from __future__ import annotations

import sympy
from sympy.printing.cxx import CXX17CodePrinter
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.pycode import PythonCodePrinter
from sympy.printing.pytorch import TorchPrinter


class Torch(TorchPrinter):
    """`log1p` and `expm1` are missing there, and `torch.max(x, 1)` is a reduction over axis 1."""

    def _print_log1p(self, expr: sympy.Expr) -> str:
        return f"torch.log1p({self._print(expr.args[0])})"

    def _print_expm1(self, expr: sympy.Expr) -> str:
        return f"torch.expm1({self._print(expr.args[0])})"

    def _print_Bennett(self, expr: sympy.Expr) -> str:
        return f"bennett({self._print(expr.args[0])})"

    def _print_Integer(self, expr: sympy.Integer) -> str:
        return f"{expr.p}.0"

    def _print_Rational(self, expr: sympy.Rational) -> str:
        return f"{expr.p}.0/{expr.q}.0"

    def _print_Piecewise(self, expr: sympy.Piecewise) -> str:
        (value, condition), *rest = expr.args
        if condition == sympy.true:  # `torch.where` takes numbers for its branches
            return self._print(value)
        otherwise = self._print(sympy.Piecewise(*rest, evaluate=False))
        return f"torch.where({self._print(condition)}, {self._print(value)}, {otherwise})"


class Cxx(CXX17CodePrinter):
    """Numbers as doubles, so that `std::max` and divisions see one type, and conditional expressions on one line."""

    def _print_Bennett(self, expr: sympy.Expr) -> str:
        return f"bennett({self._print(expr.args[0])})"

    def _print_Integer(self, expr: sympy.Integer) -> str:
        return f"{expr.p}.0"

    def _print_Pow(self, expr: sympy.Pow) -> str:
        # std::pow with an integer exponent is a call into libm; the powers here are small.
        base, exponent = expr.as_base_exp()
        if exponent.is_Integer and 2 <= int(exponent) <= 4:
            return f"({'*'.join([self.parenthesize(base, PRECEDENCE['Pow'])] * int(exponent))})"
        return super()._print_Pow(expr)

    def _print_Piecewise(self, expr: sympy.Piecewise) -> str:
        (value, condition), *rest = expr.args
        if condition == sympy.true:
            return self._print(value)
        otherwise = self._print(sympy.Piecewise(*rest, evaluate=False))
        return f"({self._print(condition)} ? {self._print(value)} : {otherwise})"


class Triton(PythonCodePrinter):
    """Triton's language has no `log1p` or `expm1`: the kernels define both."""

    def _print_log(self, expr: sympy.Expr) -> str:
        return f"tl.log({self._print(expr.args[0])})"

    def _print_exp(self, expr: sympy.Expr) -> str:
        return f"tl.exp({self._print(expr.args[0])})"

    def _print_log1p(self, expr: sympy.Expr) -> str:
        return f"log1p({self._print(expr.args[0])})"

    def _print_expm1(self, expr: sympy.Expr) -> str:
        return f"expm1({self._print(expr.args[0])})"

    def _print_Bennett(self, expr: sympy.Expr) -> str:
        return f"bennett({self._print(expr.args[0])})"

    def _print_Abs(self, expr: sympy.Expr) -> str:
        return f"tl.abs({self._print(expr.args[0])})"

    def _print_Integer(self, expr: sympy.Integer) -> str:
        return f"{expr.p}.0"

    def _print_Rational(self, expr: sympy.Rational) -> str:
        return repr(float(expr))

    def _print_Pow(self, expr: sympy.Pow, **_: object) -> str:
        base, exponent = expr.as_base_exp()
        if exponent.is_Integer and 2 <= int(exponent) <= 4:
            return f"({'*'.join([self.parenthesize(base, PRECEDENCE['Pow'])] * int(exponent))})"
        return super()._print_Pow(expr)

    def _print_Piecewise(self, expr: sympy.Piecewise) -> str:
        (value, condition), *rest = expr.args
        if condition == sympy.true:
            return self._print(value)
        otherwise = self._print(sympy.Piecewise(*rest, evaluate=False))
        return f"tl.where({self._print(condition)}, {self._print(value)}, {otherwise})"
