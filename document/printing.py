"""Formulas as MathML and LaTeX, and the plain mathematics of prose as HTML and LaTeX."""

import html
import re
from typing import Any

import sympy
from sympy.printing.latex import LatexPrinter
from sympy.printing.mathml import MathMLPresentationPrinter

from ..support.text import html_text, latex_text
from ..theory.statistics import LOGIT_RATIO

GREEK = {
    "alpha": "α", "delta": "δ", "epsilon": "ε", "lambda": "λ", "phi": "φ", "tau": "τ", "theta": "θ",
}  # fmt: skip
SIGNS = {"<=>": "⇔", ">=": "≥", "<=": "≤", "!=": "≠", "->": "→", "+oo": "+∞", "-oo": "−∞", "oo": "∞", "||": "‖"}
LATEX = {
    "α": r"\alpha", "δ": r"\delta", "ε": r"\varepsilon", "λ": r"\lambda", "φ": r"\varphi", "τ": r"\tau",
    "θ": r"\theta", "⇔": r"\Leftrightarrow", "≥": r"\ge", "≤": r"\le", "≠": r"\ne", "→": r"\to", "−∞": r"-\infty",
    "+∞": r"+\infty", "∞": r"\infty", "‖": r"\Vert", "∈": r"\in", "·": r"\cdot",
}  # fmt: skip

_WORDS = re.compile(
    r"(?P<greek>\b(?:" + "|".join(GREEK) + r")(?![a-z]))"
    r"|(?P<sign>" + "|".join(re.escape(s) + r"(?![a-z])" * s.endswith("oo") for s in SIGNS) + r")"
    r"|(?P<script>[_^](?:\([^()]*\)|\{[^{}]*\}|-?[A-Za-z0-9*+]+))"
)


class SumOver(sympy.Function):
    """`SumOver(class, term)`: the term summed over a class of tokens, for printing only."""

    nargs = 2


class _MathML(MathMLPresentationPrinter):
    """Presentation MathML, which browsers render without a script."""

    def _node(self, tag: str, *children: Any) -> Any:
        node = self.dom.createElement(tag)
        for child in children:
            node.appendChild(self.dom.createTextNode(child) if isinstance(child, str) else child)
        return node

    def _call(self, name: str, argument: sympy.Basic) -> Any:
        inner: Any = self._print(argument)
        return self._node("mrow", self._node("mi", name), self._node("mo", "("), inner, self._node("mo", ")"))

    def _print_Bennett(self, e: sympy.Expr) -> Any:
        return self._call("h", e.args[0])

    def _print_Entropy(self, e: sympy.Expr) -> Any:
        identifier = self._node("mi", "H")
        inner: Any = self._print(e.args[0])
        return identifier if e.args[0] == 0 else self._node("msub", identifier, inner)

    def _print_log1p(self, e: sympy.Expr) -> Any:
        return self._call("log1p", e.args[0])

    def _print_expm1(self, e: sympy.Expr) -> Any:
        return self._call("expm1", e.args[0])

    def _print_SumOver(self, e: sympy.Expr) -> Any:
        term: Any = self._print(e.args[1])
        sigma = self._node("munder", self._node("mo", "∑"), self._node("mtext", str(e.args[0])))
        inner = self._node("mrow", self._node("mo", "("), term, self._node("mo", ")"))
        return self._node("mrow", sigma, inner if e.args[1].is_Add else term)


class _LaTeX(LatexPrinter):
    def _print_log1p(self, e: sympy.Expr) -> str:
        return rf"\operatorname{{log1p}}\left({self._print(e.args[0])}\right)"

    def _print_expm1(self, e: sympy.Expr) -> str:
        return rf"\operatorname{{expm1}}\left({self._print(e.args[0])}\right)"

    def _print_SumOver(self, e: sympy.Expr) -> str:
        term = str(self._print(e.args[1]))
        return rf"\sum_{{\text{{{e.args[0]}}}}} " + (rf"\left({term}\right)" if e.args[1].is_Add else term)


_ENTITY = re.compile("&(?!lt;|gt;|amp;|quot;)[A-Za-z]+;")
"""Names of characters that HTML knows and XML does not."""

_RATIO = sympy.Symbol("z_(2)") / sympy.Symbol("z_(1)")


def _readable(expression: sympy.Basic) -> sympy.Basic:
    return expression.xreplace({LOGIT_RATIO: _RATIO})


def mathml(expression: sympy.Basic, display: bool = True) -> str:
    """A formula as a `<math>` element."""
    printer = _MathML({"ln_notation": True, "fold_short_frac": False, "mul_symbol": None})
    body: Any = printer._print(_readable(expression))
    text = _ENTITY.sub(lambda match: html.unescape(match[0]), body.toxml())
    return f'<math display="{"block" if display else "inline"}">{text}</math>'


def latex(expression: sympy.Basic) -> str:
    """A formula in LaTeX, without delimiters."""
    return _LaTeX({"ln_notation": True}).doprint(_readable(expression))


def prose_html(text: str) -> str:
    """A sentence with plain mathematics (`p_(1) >= alpha`) as HTML."""

    def show(match: re.Match[str]) -> str:
        if greek := match["greek"]:
            return GREEK[greek]
        if sign := match["sign"]:
            return SIGNS[sign]
        tag = "sub" if match["script"][0] == "_" else "sup"
        return f"<{tag}>{_inner(match['script'], prose_html)}</{tag}>"

    # Marks are found in the raw text, and the pieces between them escaped.
    return _replace(text, show, html_text)


def prose_latex(text: str) -> str:
    """A sentence with plain mathematics as LaTeX."""

    def show(match: re.Match[str]) -> str:
        if mark := match["greek"] or match["sign"]:
            return rf"\ensuremath{{{LATEX[GREEK.get(mark) or SIGNS[mark]]}}}"
        command = "textsubscript" if match["script"][0] == "_" else "textsuperscript"
        return rf"\{command}{{{_inner(match['script'], prose_latex)}}}"

    return _replace(text, show, escape_latex)


def _inner(script: str, prose: Any) -> str:
    inner = script[1:]
    if inner[0] == "{" or (inner[0] == "(" and script[0] == "^"):
        inner = inner[1:-1]
    return prose(inner)


def _replace(text: str, show: Any, escape: Any) -> str:
    pieces, end = [], 0
    for match in _WORDS.finditer(text):
        pieces += [escape(text[end : match.start()]), show(match)]
        end = match.end()
    return "".join([*pieces, escape(text[end:])])


def escape_latex(text: str) -> str:
    """Text in which no character has a meaning to LaTeX; mathematical characters are printed as such."""
    return "".join(rf"\ensuremath{{{LATEX[c]}}}" if c in LATEX else latex_text(c) for c in text)
