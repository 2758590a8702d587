"""sympy's printers, extended where they fail."""

from __future__ import annotations

from typing import Any

import sympy
from sympy.printing.codeprinter import CodePrinter
from sympy.printing.cxx import CXX17CodePrinter
from sympy.printing.jscode import JavascriptCodePrinter
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.pycode import PythonCodePrinter
from sympy.printing.pytorch import TorchPrinter


class Floating(CodePrinter):
    """What the languages share: all numbers are floating point, and a choice is an expression.

    sympy prints a choice over several lines of C++ and `torch.where` with bare integers, `std::max(1, x)` with two
    types, and small powers as calls of `pow`.
    """

    choice: str

    def _print_Bennett(self, expr: sympy.Expr) -> str:
        return f"bennett({self._print(expr.args[0])})"

    def _print_Integer(self, expr: sympy.Integer) -> str:
        return f"{expr.p}.0"

    def _print_Rational(self, expr: sympy.Rational) -> str:
        return f"{expr.p}.0/{expr.q}.0"

    def _print_Pow(self, expr: sympy.Pow, rational: bool = False) -> str:
        base, exponent = expr.as_base_exp()
        if exponent.is_Integer and 2 <= int(exponent) <= 4:
            return f"({'*'.join([self.parenthesize(base, PRECEDENCE['Pow'])] * int(exponent))})"
        return super()._print_Pow(expr)

    def _print_Piecewise(self, expr: sympy.Piecewise) -> Any:
        first, *rest = expr.args
        value, condition = first.args
        if condition == sympy.true:
            return self._print(value)
        otherwise = self._print(sympy.Piecewise(*rest, evaluate=False))
        return self.choice.format(condition=self._print(condition), value=self._print(value), otherwise=otherwise)


class Torch(Floating, TorchPrinter):
    """`log1p` and `expm1` are missing there, and `torch.max(x, 1)` is a reduction over axis 1."""

    choice = "torch.where({condition}, {value}, {otherwise})"

    def _print_log1p(self, expr: sympy.Expr) -> str:
        return f"torch.log1p({self._print(expr.args[0])})"

    def _print_expm1(self, expr: sympy.Expr) -> str:
        return f"torch.expm1({self._print(expr.args[0])})"


class TorchOfNumbers(Floating, PythonCodePrinter):
    """Tensors and plain numbers mixed; logarithms and choices are of numbers (`RoundingBudget` refuses others)."""

    choice = "({value} if {condition} else {otherwise})"

    def _print_Max(self, expr: sympy.Expr) -> str:
        return f"torch.maximum({', '.join(map(self._print, expr.args))})"


class Cxx(Floating, CXX17CodePrinter):
    """C++17 in doubles."""

    choice = "({condition} ? {value} : {otherwise})"


class JavaScript(Floating, JavascriptCodePrinter):
    """JavaScript, whose numbers are doubles; sympy knows `Math.log` there, but not the two that do not cancel."""

    choice = "({condition} ? {value} : {otherwise})"

    def _print_log1p(self, expr: sympy.Expr) -> str:
        return f"Math.log1p({self._print(expr.args[0])})"

    def _print_expm1(self, expr: sympy.Expr) -> str:
        return f"Math.expm1({self._print(expr.args[0])})"


class Triton(Floating, PythonCodePrinter):
    """Triton's language has no `log1p` or `expm1`: the kernels define both."""

    choice = "tl.where({condition}, {value}, {otherwise})"

    def _print_log(self, expr: sympy.Expr) -> str:
        return f"tl.log({self._print(expr.args[0])})"

    def _print_log2(self, expr: sympy.Expr) -> str:
        return f"tl.log2({self._print(expr.args[0])})"

    def _print_exp(self, expr: sympy.Expr) -> str:
        return f"tl.exp({self._print(expr.args[0])})"

    def _print_log1p(self, expr: sympy.Expr) -> str:
        return f"log1p({self._print(expr.args[0])})"

    def _print_expm1(self, expr: sympy.Expr) -> str:
        return f"expm1({self._print(expr.args[0])})"

    def _print_Abs(self, expr: sympy.Expr) -> str:
        return f"tl.abs({self._print(expr.args[0])})"

    def _print_Max(self, expr: sympy.Expr) -> str:
        return f"tl.maximum({', '.join(map(self._print, expr.args))})"
