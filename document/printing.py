"""The records' expressions, and the plain mathematics of their sentences, as LaTeX and as HTML."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy
from sympy.printing.latex import LatexPrinter

from ..support.text import html_text, latex_text
from ..theory import RULES
from ..theory.statistics import LOGIT_RATIO
from ..theory.theorems import THEOREMS
from .mathematics import GREEK, LINE, display_latex, lines, read, to_latex, to_mathml, width

# ---- expressions ---------------------------------------------------------------------------------------------------


class SumOver(sympy.Function):
    """`SumOver(class, term)`: the term summed over a class of tokens, for printing only."""

    nargs = 2


_SYMBOLS = {
    "l": r"\ell",  # beside a number or an n, an l reads as a 1 or as a logarithm
    "epsilon": r"\varepsilon",
    "e_H": "e^{-H}",
    "N_c": "N",
}
"""Symbols that print as something else than their names."""


class _LaTeX(LatexPrinter):
    """Sums begin with what is added, fractions stand before what they multiply, functions are those of the text."""

    def _as_ordered_terms(self, expr: sympy.Expr, order: str | None = None) -> list[sympy.Expr]:
        terms: Any = super()._as_ordered_terms(expr, order)
        return sorted(terms, key=lambda term: term.could_extract_minus_sign())

    def _print_Symbol(self, expr: sympy.Symbol, style: str = "plain") -> str:
        return _SYMBOLS.get(expr.name) or super()._print_Symbol(expr, style)

    def _divisor(self, expr: sympy.Basic) -> int:
        """The number that a sum is divided by as a whole, as in (1 + g)/2; 1 if there is none."""
        if not expr.is_Add or expr.has(sympy.log):
            return 1
        terms: Any = expr.args
        denominators = {term.as_coeff_Mul()[0].as_numer_denom()[1] for term in terms}
        return int(denominators.pop()) if len(denominators) == 1 else 1

    def _print_Add(self, expr: sympy.Expr, order: str | None = None) -> str:
        if (divisor := self._divisor(expr)) > 1:
            return rf"\frac{{{self._print(expr * divisor)}}}{{{divisor}}}"
        return super()._print_Add(expr, order=order)

    def _needs_mul_brackets(self, expr: sympy.Basic, first: bool = False, last: bool = False) -> bool:
        return self._divisor(expr) == 1 and super()._needs_mul_brackets(expr, first, last)

    def _print_Mul(self, expr: sympy.Expr) -> str:
        factor, rest = expr.as_coeff_Mul()
        short = all(each.is_Symbol for each in sympy.Mul.make_args(rest)) or sympy.fraction(rest)[1] != 1
        if factor.is_Integer or short:
            return super()._print_Mul(expr)
        inner = self._print(rest)
        return self._print(factor) + (rf"\left({inner}\right)" if rest.is_Add else f" {inner}")

    def _print_log(self, expr: sympy.Expr, exp: object = None) -> str:
        (argument,) = expr.args
        simple = argument.is_Symbol or argument.is_Integer
        inner = self._print(argument) if simple else rf"\left({self._print(argument)}\right)"
        return rf"\ln {inner}"

    def _print_log1p(self, expr: sympy.Expr) -> str:
        argument: Any = expr.args[0]
        return self._print_log(sympy.log(1 + argument, evaluate=False))

    def _print_expm1(self, expr: sympy.Expr) -> str:
        return rf"\left({self._print(sympy.exp(expr.args[0], evaluate=False))} - 1\right)"

    def _print_SumOver(self, expr: sympy.Expr) -> str:
        term = str(self._print(expr.args[1]))
        return rf"\sum_{{\text{{{expr.args[0]}}}}} " + (rf"\left({term}\right)" if expr.args[1].is_Add else term)


_READABLE = {
    LOGIT_RATIO: sympy.Symbol("z_(2)") / sympy.Symbol("z_(1)"),
    **{
        each.symbol: sympy.Symbol("f")
        for family in RULES.values()
        for each in family.parameters
        if each.name == "floor"
    },
}


def latex(expression: sympy.Basic) -> str:
    """An expression in LaTeX, without delimiters.

    >>> x = sympy.Symbol("x")
    >>> latex(sympy.log(1 - x) / 2)
    '\\\\frac{1}{2} \\\\ln \\\\left(1 - x\\\\right)'
    """
    return _LaTeX().doprint(expression.xreplace(_READABLE))


def latex_of(formula: str, display: bool = False) -> str:
    """A formula as it is printed: brackets as high as what they hold; displayed, on as many lines as it needs."""
    return display_latex(read(formula)) if display else to_latex(read(formula))


def fits(formula: str) -> bool:
    """Whether a formula can be broken into lines that fit."""
    return max(map(width, lines(read(formula)))) <= LINE


def mathml(formula: str, display: bool = True) -> str:
    """A formula in LaTeX as a `<math>` element."""
    return to_mathml(read(formula), display)


# ---- sentences -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """A part of a sentence: text, a formula in LaTeX, code, the name of a theorem or the number of an equation."""

    kind: str
    text: str


_FUNCTIONS = {"ln": r"\ln", "exp": r"\exp", "min": r"\min", "max": r"\max", "sinh": r"\sinh", "coth": r"\coth",
              "cosh": r"\cosh", "KL": r"\mathrm{KL}"}  # fmt: skip
_NAMES = {**{name: f"\\{name}" for name in GREEK}, "eps": r"\varepsilon", "epsilon": r"\varepsilon", "phi": r"\varphi",
          "oo": r"\infty", "th": r"\theta", "l": r"\ell", **_FUNCTIONS}  # fmt: skip
_SIGNS = {"<=>": r"\Leftrightarrow", ">=": r"\geq", "<=": r"\leq", "!=": r"\neq", "->": r"\to", "||": r"\Vert",
          "~": r"\propto", "...": r"\dots"}  # fmt: skip
_PLAIN = {r"\bexpm1\(([^()]*)\)": r"e^(\1) - 1", r"\blog1p\(([^()]*)\)": r"ln(1 + \1)"}
_RELATIONS = ("<", ">", "=", "<=", ">=", "!=")
_RULE_NAMES = sorted({*RULES, *(name.replace("_", "-") for name in RULES)}, key=len, reverse=True)
_TOKENS = re.compile(
    r"(?P<code>`[^`]+`)"
    rf"|(?P<equation>\((?:{'|'.join(THEOREMS)})\.\d+\))"
    rf"|(?P<theorem>\b(?:{'|'.join(sorted(THEOREMS, key=len, reverse=True))})\b(?![(_]|\.\d))"
    rf"|(?P<rule>\b(?:{'|'.join(map(re.escape, _RULE_NAMES))})\b)"
    rf"|(?P<name>\b(?!(?:sum|max|min|{'|'.join(GREEK)})_)[A-Za-z][A-Za-z0-9]+_\w+)"
    r"|(?P<possessive>'s\b)"
    r"|(?P<script>[_^](?:\([^()]*\)|\{[^{}]*\}|-?[A-Za-z0-9]+|\*|\+)|(?<=[A-Za-z])\*(?! ?[A-Za-z0-9(]))"
    r"|(?P<dots>\.\.\.)"
    r"|(?P<number>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?(?:e-?\d+)?|\.\d+)"
    r"|(?P<sign><=>|>=|<=|!=|->|\|\||[<>=~+*/|-])"
    r"|(?P<indexed>\b[A-UW-Za-z]\d\b)"
    r"|(?P<word>[A-Za-z]{2,}(?:-[A-Za-z]+)*|[A-Za-z]-(?!th\b)[a-z]{2,}|[A-Za-z])"
    r"|(?P<prime>(?<=\b[A-Za-z])')"
    r"|(?P<bracket>[()\[\]])"
    r"|(?P<comma>,)"
    r"|(?P<space>\s+)"
    r"|(?P<other>.)"
)
Token = tuple[str, str]


def pieces(sentence: str) -> list[Piece]:
    """A sentence with plain mathematics (`p_(1) >= alpha`) as text, formulas, code and names of theorems.

    >>> [piece.text for piece in pieces("By M7 a token has p_(1) >= alpha.")]
    ['By ', 'M7', ' a token has ', 'p_{(1)} \\\\geq \\\\alpha', '.']
    """
    for function, plain in _PLAIN.items():
        sentence = re.sub(function, plain, sentence)
    tokens = [(str(match.lastgroup), match[0]) for match in _TOKENS.finditer(sentence)]
    found: list[Piece] = []
    text, at = "", 0
    while at < len(tokens):
        kind, value = tokens[at]
        end = at + 1
        if kind in ("code", "name"):
            piece = Piece("code", value.strip("`"))
        elif kind in ("theorem", "equation"):
            piece = Piece(kind, value.strip("()"))
        elif kind not in ("space", "comma", "dots") and (end := _run(tokens, at)) > at and _says(tokens[at:end]):
            piece = Piece("formula", _translate(tokens[at:end]))
        else:
            end = at + 1
            text += value.replace("_", "-") if kind == "rule" else value
            at = end
            continue
        found += [Piece("text", text)] * bool(text) + [piece]
        text, at = "", end
    return found + [Piece("text", text)] * bool(text)


def _says(run: list[Token]) -> bool:
    """Whether a run is more than a number, a dash or a name that a sentence may hold as such."""
    return not (len(run) == 1 and run[0][0] in ("number", "sign", "rule") and run[0][1] not in _RELATIONS)


def _run(tokens: list[Token], start: int) -> int:
    """Where the formula that begins at a token ends; `start` where none does."""
    at = end = start
    while at < len(tokens):
        kind, value = tokens[at]
        if kind == "space" and at > start:
            at += 1
            continue
        if [kind for kind, _ in tokens[at : at + 5]] == ["comma", "space", "dots", "comma", "space"] and end > start:
            at += 5  # C_1, ..., C_N
            continue
        if kind == "bracket" and value in "([":
            closed = _closed(tokens, at)
            if closed is None and end > start and tokens[end - 1][1] == "+":  # 1 + (a quantity in words)
                closed = next(i for i in range(at, len(tokens)) if tokens[i][1] == ")") + 1
                tokens[at:closed] = [("words", "".join(value for _, value in tokens[at:closed]))]
                closed = at + 1
            if closed is None:
                break
            at = end = closed
        elif kind == "rule":
            if at + 1 == len(tokens) or tokens[at + 1] != ("bracket", "(") or _closed(tokens, at + 1) is None:
                break
            if end > start and tokens[at - 1][0] == "space" and _operand(tokens[end - 1]):
                break
            at += 1
        elif _mathematical(tokens, at):
            apart = end > start and tokens[at - 1][0] == "space" and _operand(tokens[end - 1])
            begins = value in ("inf", "sup") or (value == "C" and _near(tokens, at, 1)[1] in _RELATIONS)
            if apart and begins:
                break
            at = end = at + 1
        else:
            break
    # Signs at the end belong to the sentence.
    while end > start and tokens[end - 1][0] == "sign" and tokens[end - 1][1] in "-/|+*":
        end -= 1
    return end


def _operand(token: Token) -> bool:
    return token[0] not in ("sign", "space") and token[1] not in "(["


def _closed(tokens: list[Token], start: int) -> int | None:
    """Behind the bracket that closes the one at `start`, if all between them is mathematics."""
    at = start + 1
    while at < len(tokens):
        kind, value = tokens[at]
        if kind == "bracket" and value in ")]":
            return at + 1 if at > start + 1 else None
        if kind == "bracket":
            closed = _closed(tokens, at)
            if closed is None:
                return None
            at = closed
        elif kind in ("space", "comma", "dots") or _mathematical(tokens, at):
            at += 1
        else:
            return None
    return None


def _near(tokens: list[Token], at: int, step: int) -> Token:
    """The next token that is no space, in a direction."""
    at += step
    while 0 <= at < len(tokens) and tokens[at][0] == "space":
        at += step
    return tokens[at] if 0 <= at < len(tokens) else ("end", "")


def _mathematical(tokens: list[Token], at: int) -> bool:
    kind, value = tokens[at]
    before, after = _near(tokens, at, -1), _near(tokens, at, 1)
    if kind == "word":
        if value in ("a", "A", "I"):
            return _no_article(value, before, after)
        if value in ("inf", "sup"):
            return (after[1] in ("C", "of") and after[1] == "C") or before[1] == "="
        if value == "sum":
            opens = after[0] == "script" or after[1] in "([" or after[1] in ("min", "max", "sqrt")
            return opens or (after[0] == "word" and len(after[1]) == 1 and after[1] != "a")
        if value == "sqrt":
            return after[1] == "("
        if value == "th" and tokens[at - 1][1] == "-":  # the m-th
            return False
        product = len(value) == 2 and value[0] in "mn" and before[0] == "sign"  # 1 + mg
        quantity = "||" in (before[1], after[1]) or tokens[at - 1][1] == "/" or (value == "dust" and after[1] == ")")
        return len(value) == 1 or value in _NAMES or product or quantity
    if kind == "dots":
        return before[1] in ("+", ",") or after[1] in ("+", ",")
    if kind == "sign":
        touching = tokens[at - 1] if at else before
        return not (value in "-/" and touching[0] == "word" and len(touching[1]) > 2 and touching[1] not in _NAMES)
    return kind in ("number", "script", "indexed", "prime")


def _no_article(value: str, before: Token, after: Token) -> bool:
    """Whether a letter that may be an article is a name: no article stands before signs, vowels or these words."""
    if value == "A" and (before[1] in ("Let", "in", "on", "sets", "and") or after[1] == "and"):
        return True
    return (
        ((after[0] != "word" or len(after[1]) == 1) and after[0] not in ("theorem", "rule", "number", "code"))
        or after[1][0] in "aeio"
        or after[1] in ("that", "goes")
        or before[1] == "order"
        or before[0] == "sign"
    ) and after[0] not in ("theorem", "rule", "code")


def _translate(run: list[Token]) -> str:
    """The tokens of a formula in LaTeX."""
    written: list[str] = []
    for at, (kind, value) in enumerate(run):
        if kind == "script":
            inner = value[1:] or "*"
            value = value if value != "*" else "^*"
            if inner[0] == "{" or (inner[0] == "(" and value[0] == "^"):
                inner = inner[1:-1]
            written.append(f"{value[0]}{{{_inner(inner)}}}")
        elif kind == "indexed":
            written.append(f"{_NAMES.get(value[0], value[0])}_{{{value[1]}}}")
        elif kind == "rule":
            written.append(rf"\text{{{value.replace('_', '-')}}}")
        elif value == "*":
            written.append(r"\cdot ")
        elif value in ("inf", "sup"):
            written.append(r"\infty" if at and _near(run, at, -1)[1] == "=" else f"\\{value}")
        elif value == "sqrt":
            written.append(r"\sqrt")
        elif kind == "word":
            name = _NAMES.get(value) or (r"\sum" if value == "sum" else None)
            written.append((name or (value if len(value) < 3 else rf"\text{{{value}}}")) + " ")
        elif kind == "number" and "e" in value:
            factor, power = value.split("e")
            written.append(("" if factor == "1" else rf"{factor} \cdot ") + f"10^{{{power}}}")
        elif kind == "words" or (kind == "number" and "," in value):
            written.append(rf"\text{{{value}}}")
        else:
            written.append(f"{_SIGNS[value]} " if value in _SIGNS else value)
    text = "".join(written)
    return to_latex(read(re.sub(r"\\sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}", text)))


def _inner(script: str) -> str:
    """What stands in a script: a formula of its own, or a word."""
    if script == "*":
        return script
    if len(script) > 1 and script.isalpha() and script not in _NAMES:
        return rf"\text{{{script}}}"
    tokens = [(str(match.lastgroup), match[0]) for match in _TOKENS.finditer(script)]
    return _translate(tokens)


def prose_html(sentence: str, link: Callable[[str], str]) -> str:
    """A sentence as HTML; `link` gives the address of a theorem."""

    def show(piece: Piece) -> str:
        match piece.kind:
            case "formula":
                return mathml(piece.text, display=False)
            case "code":
                return f"<code>{html_text(piece.text)}</code>"
            case "theorem":
                return f'<a href="{html_text(link(piece.text))}">{piece.text}</a>'
            case "equation":
                return f'<a href="#eq-{piece.text}">({piece.text})</a>'
        return html_text(_typeset(piece.text))

    return "".join(map(show, pieces(sentence)))


def prose_latex(sentence: str) -> str:
    """A sentence as LaTeX."""

    def show(piece: Piece) -> str:
        match piece.kind:
            case "formula":
                return f"${piece.text}$"
            case "code":
                return code_latex(piece.text)
            case "theorem":
                return rf"\hyperref[{piece.text}]{{{piece.text}}}"
            case "equation":
                return rf"\eqref{{eq:{piece.text}}}"
        return escape_latex(_typeset(piece.text))

    return "".join(map(show, pieces(sentence)))


_ACCENTS = {"Renyi": "Rényi", "Harremoes": "Harremoës", "Topsoe": "Topsøe"}


def _typeset(text: str) -> str:
    """Names with their accents, quotation marks and dashes of print."""
    for plain, accented in _ACCENTS.items():
        text = text.replace(plain, accented)
    return text.replace("'", "’")


def code_latex(text: str) -> str:
    """Code in LaTeX, which may be broken behind its signs."""
    text = latex_text(text)
    for sign in (r"\_", "(", "-", "/", "."):
        text = text.replace(sign, rf"{sign}\allowbreak{{}}")
    return rf"\code{{{text}}}"


_UNICODE = {"’": "'", "–": "--", "é": r"\'{e}", "ë": r"\"{e}", "ø": r"{\o}", "→": r"\ensuremath{\to}"}


def escape_latex(text: str) -> str:
    """Text in which no character has a meaning to LaTeX."""
    return "".join(_UNICODE.get(c) or latex_text(c) for c in text)
