"""Formulas and prose for people: in the documentation, and in the comments of generated code."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import sympy
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter


def wrapped(text: str, width: int) -> str:
    """A paragraph in lines, none of which begins or ends with an operator: Markdown takes `+ 1` there for a list."""
    held = re.sub(r" ([-+=]|<=|>=) ", "\0\\1\0", text)
    return textwrap.fill(held, width, break_on_hyphens=False).replace("\0", " ")


class Words(StrPrinter):
    """A formula as people write it in a line of text: `s u G + 4 w |x|`, simple terms and factors first."""

    def _print_Symbol(self, expr: Any) -> str:
        return expr.name.replace("ln_", "ln ")

    def _print_Add(self, expr: Any, order: str | None = None) -> str:
        first, *rest = map(self._print, sorted(expr.args, key=_simple_first))
        return first + "".join(f" - {term[1:]}" if term.startswith("-") else f" + {term}" for term in rest)

    def _print_Mul(self, expr: Any) -> str:
        if expr.as_coeff_Mul()[0] < 0:
            return f"-{self.parenthesize(-expr, PRECEDENCE['Mul'])}"
        factors = sorted(sympy.Mul.make_args(expr), key=_simple_first)
        below = [1 / factor for factor in factors if factor.as_numer_denom()[0] == 1]
        above = [factor for factor in factors if 1 / factor not in below]
        product = " ".join(self.parenthesize(factor, PRECEDENCE["Mul"]) for factor in above) or "1"
        divided = "".join(f"/{self.parenthesize(factor, PRECEDENCE['Pow'])}" for factor in below)
        return product.replace(") (", ")(") + divided

    def _print_Pow(self, expr: Any, rational: bool = False) -> str:
        return super()._print_Pow(expr, rational).replace("**", "^")

    def _print_Abs(self, expr: Any) -> str:
        return f"|{self._print(expr.args[0])}|"

    def _print_Max(self, expr: Any) -> str:
        return f"max({', '.join(map(self._print, expr.args))})"

    def _print_log(self, expr: Any) -> str:
        return f"ln({self._print(expr.args[0])})"

    def _print_log1p(self, expr: Any) -> str:
        return f"ln({self._print(1 + expr.args[0])})"

    def _print_Equality(self, expr: Any) -> str:
        return f"{self._print(expr.lhs)} = {self._print(expr.rhs)}"

    def _print_Piecewise(self, expr: Any) -> str:
        *cases, (last, _) = expr.args
        told = [f"{self._print(value)} where {self._print(condition)}" for value, condition in cases]
        return ", ".join([*told, f"{self._print(last)} elsewhere"])


def _simple_first(part: Any) -> tuple[Any, ...]:
    """Numbers, the lower-case symbols of a kernel, the others, what is composed of them; what is subtracted last."""
    negative, last = part.as_coeff_Mul()[0].is_negative, part.is_Symbol and part.name.startswith("ln_")
    return negative, not part.is_number, part.count_ops(), last, str(part).swapcase()
