"""Formulas as trees, read from the LaTeX that the printers write; from trees MathML, LaTeX, widths and line breaks.

One reading serves both formats, so that a formula looks the same on paper and on a page.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..support.text import html_text
from ..theory.errors import DraftcertError

GREEK = {
    "alpha": "α", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "lambda": "λ", "varphi": "φ", "tau": "τ",
    "theta": "θ", "omega": "ω", "rho": "ρ", "nu": "ν", "pi": "π",
}  # fmt: skip
RELATIONS = {
    "=": "=", "<": "<", ">": ">", r"\leq": "≤", r"\geq": "≥", r"\neq": "≠", r"\in": "∈", r"\to": "→",
    r"\propto": "∝", r"\Leftrightarrow": "⇔",
}  # fmt: skip
BINARY = {"+": "+", "-": "−", "/": "/", r"\cdot": "·", r"\wedge": "∧", r"\vee": "∨"}
ORDINARY = {
    r"\infty": "∞", r"\ell": "ℓ", r"\dots": "…", r"\ldots": "…", "'": "′", "*": "∗",
    **{f"\\{name}": sign for name, sign in GREEK.items()},
}  # fmt: skip
FUNCTIONS = {f"\\{name}": name for name in ("ln", "exp", "min", "max", "inf", "sup", "lim", "sinh", "cosh", "coth")}
OPENING = {"(": "(", "[": "[", r"\{": "{"}
CLOSING = {")": ")", "]": "]", r"\}": "}"}

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\.\d+|\S")


@dataclass(frozen=True)
class Atom:
    """A sign: its LaTeX, its characters, and what it is among its neighbours."""

    source: str
    text: str
    kind: str


@dataclass(frozen=True)
class Fraction:
    """One row over another."""

    above: "Row"
    below: "Row"


@dataclass(frozen=True)
class Root:
    """A square root."""

    body: "Row"


@dataclass(frozen=True)
class Script:
    """A base with what is beneath or above it."""

    base: "Node"
    below: "Row" = ()
    above: "Row" = ()


@dataclass(frozen=True)
class Fence:
    """A row between brackets, which grow with it or not."""

    opening: str
    body: "Row"
    closing: str
    grows: bool


@dataclass(frozen=True)
class Words:
    """Words among signs, on one line or on two."""

    lines: tuple[str, ...]


Node = Atom | Fraction | Root | Script | Fence | Words
Row = tuple[Node, ...]


# ---- reading -------------------------------------------------------------------------------------------------------


def read(latex: str) -> Row:
    """The tree of a formula.

    Raises:
        DraftcertError: a command that has no place in this document's formulas, or brackets that do not match.
    """
    tokens = _tokens(latex)
    row, end = _row(tokens, 0, ())
    if end != len(tokens):
        raise DraftcertError(f"'{tokens[end]}' closes nothing in the formula {latex}")
    return row


def _tokens(latex: str) -> list[str]:
    """Signs and commands; words in `\\text{}` and its like are one token with the command."""
    found: list[str] = []
    for piece in re.split(r"(\\(?:text|mathrm|mathbb|operatorname)\{[^{}]*\})", latex):
        found += [piece] if re.match(r"\\(?:text|mathrm|mathbb|operatorname)\{", piece) else _TOKEN.findall(piece)
    return [each for each in found if each not in (r"\,", r"\ ", r"\;")]


def _row(tokens: Sequence[str], start: int, ends: tuple[str, ...]) -> tuple[Row, int]:
    """Nodes up to one of `ends`, and where that is."""
    nodes: list[Node] = []
    while start < len(tokens) and tokens[start] not in ends:
        token = tokens[start]
        if token in ("_", "^", "'"):
            # A prime is its own superscript.
            raised, start = _group(tokens, start + (token != "'"))
            base = nodes.pop() if nodes else Atom("{}", "", "ordinary")
            script = base if isinstance(base, Script) and not (base.below if token == "_" else base.above) else None
            script = script or Script(base)
            nodes.append(replace(script, below=raised) if token == "_" else replace(script, above=raised))
            continue
        node, start = _node(tokens, start)
        nodes += node
    return tuple(nodes), start


def _group(tokens: Sequence[str], start: int) -> tuple[Row, int]:
    """What is in braces, or one sign."""
    if tokens[start] != "{":
        return _node(tokens, start)
    row, end = _row(tokens, start + 1, ("}",))
    return row, end + 1


def _node(tokens: Sequence[str], start: int) -> tuple[Row, int]:
    token = tokens[start]
    if token == "{":
        return _group(tokens, start)
    if token == r"\frac":
        above, start = _group(tokens, start + 1)
        below, start = _group(tokens, start)
        return (Fraction(above, below),), start
    if token == r"\sqrt":
        body, start = _group(tokens, start + 1)
        return (Root(body),), start
    grows = token == r"\left"
    if grows or token in OPENING:
        opening = tokens[start + grows]
        body, end = _row(tokens, start + 1 + grows, (r"\right",) if grows else tuple(CLOSING))
        if opening not in OPENING or end + grows >= len(tokens):
            raise DraftcertError(f"a bracket is not closed in the formula {' '.join(tokens)}")
        return (Fence(opening, body, tokens[end + grows], grows),), end + 1 + grows
    return (_sign(token),), start + 1


def _sign(token: str) -> Node:
    if match := re.match(r"\\(\w+)\{(.*)\}", token):
        words = match[2]
        if match[1] == "mathbb":
            return Atom(token, {"R": "ℝ", "N": "ℕ"}[words], "ordinary")
        return Words((words,)) if match[1] == "text" else Atom(token, words, "function")
    for table, kind in ((RELATIONS, "relation"), (BINARY, "binary"), (ORDINARY, "ordinary"), (FUNCTIONS, "function")):
        if token in table:
            return Atom(token, table[token], kind)
    if token == r"\sum":
        return Atom(token, "∑", "sum")
    if token in (",", ";", ":"):
        return Atom(token, token, "punctuation")
    if token in (r"\Vert", "|"):
        return Atom(token, "‖" if token == r"\Vert" else "|", "bar")
    if token[0].isdigit() or token[0] == ".":
        return Atom(token, token, "number")
    if token.isalpha() and len(token) == 1:
        return Atom(token, token, "letter")
    raise DraftcertError(f"'{token}' is no part of this document's formulas")


def _beneath(script: Script) -> Row:
    """What is beneath a base: long words beneath a sum take two lines."""
    match script:
        case Script(Atom(kind="sum"), (Words((words,)),)) if len(words) > 16:
            if ", " in words:
                return (Words(tuple(words.replace(", ", ",|").split("|"))),)
            spaces = [at for at, sign in enumerate(words) if sign == " "]
            middle = min(spaces, key=lambda at: abs(at - len(words) / 2))
            return (Words((words[:middle], words[middle + 1 :])),)
    return script.below


# ---- widths and line breaks ----------------------------------------------------------------------------------------

LINE = 33.0
"""How wide a displayed formula may be, in em: a line of the printed page without its number."""

_WIDTHS = {"relation": 1.35, "binary": 1.25, "sum": 1.5, "punctuation": 0.45, "number": 0.5, "bar": 0.5}


def width(row: Row) -> float:
    """About how wide a row is set, in em."""
    return sum(map(_width, row))


def _width(node: Node) -> float:
    match node:
        case Atom(_, text, "function"):
            return 0.5 * len(text) + 0.25
        case Atom(_, text, kind):
            return 0.75 if text == "/" else _WIDTHS.get(kind, 0.62) * max(1, len(text))
        case Fraction(above, below):
            return max(width(above), width(below)) + 0.2
        case Root(body):
            return width(body) + 0.9
        case Fence(_, body, _, _):
            return width(body) + 0.9
        case Words(lines):
            return 0.46 * max(map(len, lines))
        case Script(base, _, above):
            widest = 0.72 * max(width(_beneath(node)), width(above))
            if isinstance(base, Atom) and base.kind in ("sum", "function"):
                return max(_width(base), widest)
            return _width(base) + widest


def lines(row: Row) -> list[Row]:
    """A displayed formula as lines that fit, broken before relations and signs; brackets are opened where they must."""
    if width(row) <= LINE:
        return [row]
    broken: list[Row] = [()]
    for piece in _pieces(row, LINE - 2):
        if broken[-1] and width(broken[-1] + piece) > LINE - 2 * (len(broken) > 1):
            broken.append(piece)
        else:
            broken[-1] += piece
    return broken


def _pieces(row: Row, limit: float) -> Iterator[Row]:
    """Where a row may be broken; a piece that is too wide is broken inside of its widest brackets."""
    piece: list[Node] = []
    for node in row:
        if piece and isinstance(node, Atom) and node.kind in ("relation", "binary") and node.text != "/":
            yield from _smaller(tuple(piece), limit)
            piece = []
        piece.append(node)
    yield from _smaller(tuple(piece), limit)


def _smaller(piece: Row, limit: float) -> Iterator[Row]:
    fences = [node for node in piece if isinstance(node, Fence)]
    if width(piece) <= limit or not fences:
        yield piece
        return
    widest = max(fences, key=_width)
    at = piece.index(widest)
    opening = Atom(rf"\bigl{widest.opening}", OPENING[widest.opening], "opening")
    closing = Atom(rf"\bigr{widest.closing}", CLOSING[widest.closing], "closing")
    inner = list(_pieces(widest.body, limit))
    inner[0] = (*piece[:at], opening, *inner[0])
    inner[-1] = (*inner[-1], closing, *piece[at + 1 :])
    for each in inner:
        yield from [each] if width(each) <= limit else _smaller(each, limit)


# ---- writing LaTeX -------------------------------------------------------------------------------------------------


def to_latex(row: Row) -> str:
    """A row in LaTeX, without delimiters."""
    return " ".join(map(_latex, row))


def _latex(node: Node) -> str:
    match node:
        case Atom(source):
            return source
        case Fraction(above, below):
            return rf"\frac{{{to_latex(above)}}}{{{to_latex(below)}}}"
        case Root(body):
            return rf"\sqrt{{{to_latex(body)}}}"
        case Fence(opening, body, closing, grows):
            left, right = (r"\left", r"\right") if grows and _tall(body) else ("", "")
            return f"{left}{opening}{to_latex(body)}{right}{closing}"
        case Words(words):
            inner = r"\\".join(rf"\text{{{each}}}" for each in words)
            return inner if len(words) == 1 else rf"\substack{{{inner}}}"
        case Script(base, below, above):
            prime = to_latex(above) == "'"
            raised = "'" if prime else f"^{{{to_latex(above)}}}" if above else ""
            return _latex(base) + (f"_{{{to_latex(_beneath(node))}}}" if below else "") + raised


def _tall(row: Row) -> bool:
    """Whether a row is higher than a line of letters, so that its brackets are too."""
    return any(
        isinstance(node, (Fraction, Root))
        or (isinstance(node, Atom) and node.kind == "sum")
        or (isinstance(node, Fence) and _tall(node.body))
        or (isinstance(node, Script) and _tall((node.base,)))
        for node in row
    )


def display_latex(row: Row) -> str:
    """A displayed formula in LaTeX, on as many lines as it needs."""
    broken = lines(row)
    if len(broken) == 1:
        return to_latex(row)
    first, *others = map(to_latex, broken)
    return r"\begin{aligned}& " + first + "".join(rf"\\&\quad{{}}{each}" for each in others) + r"\end{aligned}"


# ---- writing MathML ------------------------------------------------------------------------------------------------

_THIN = '<mspace width="0.17em"></mspace>'


def to_mathml(row: Row, display: bool = False) -> str:
    """A row as a `<math>` element, which browsers show without a script."""
    broken = lines(row) if display else [row]
    if len(broken) == 1:
        body = _mathml_row(row)
    else:
        indent = '<mspace width="2em"></mspace>'
        rows = "".join(
            f'<mtr><mtd class="line">{indent * bool(at)}{_mathml_row(each)}</mtd></mtr>'
            for at, each in enumerate(broken)
        )
        body = f'<mtable displaystyle="true">{rows}</mtable>'
    return f'<math display="{"block" if display else "inline"}">{body}</math>'


def _mathml_row(row: Row) -> str:
    """Nodes side by side: signs before which nothing stands belong to what follows; functions stand off a little."""
    written: list[str] = []
    before: Node | None = None
    for node in row:
        bare = node.base if isinstance(node, Script) else node
        function = isinstance(bare, Atom) and bare.kind == "function"
        if function and before is not None and _is_operand(before):
            written.append(_THIN)
        if isinstance(before, (Atom, Script)) and not isinstance(node, Fence) and _is_operand(node):
            inner = before.base if isinstance(before, Script) else before
            if isinstance(inner, Atom) and inner.kind == "function" and not function:
                written.append(_THIN)
        prefix = isinstance(node, Atom) and node.text in "+−" and (before is None or not _is_operand(before))
        written.append(_mathml(node, prefix))
        before = node
    return written[0] if len(written) == 1 else f"<mrow>{''.join(written)}</mrow>"


def _is_operand(node: Node) -> bool:
    return not (isinstance(node, Atom) and node.kind in ("relation", "binary", "punctuation", "opening", "sum", "bar"))


def _mathml(node: Node, prefix: bool = False) -> str:
    match node:
        case Atom(_, text, "letter" | "ordinary" | "function"):
            return f"<mi>{html_text(text)}</mi>"
        case Atom(_, text, "number"):
            return f"<mn>{text}</mn>"
        case Atom(_, text, "opening" | "closing"):
            return f'<mo stretchy="true" minsize="1.3em">{text}</mo>'
        case Atom(_, text, kind):
            form = ' form="prefix"' if prefix else ""
            flat = ' stretchy="false"' if kind == "bar" else ' lspace="0" rspace="0"' if text == "/" else ""
            return f"<mo{form}{flat}>{html_text(text)}</mo>"
        case Fraction(above, below):
            return f"<mfrac>{_mathml_row(above)}{_mathml_row(below)}</mfrac>"
        case Root(body):
            return f"<msqrt>{_mathml_row(body)}</msqrt>"
        case Fence(opening, body, closing, grows):
            stretch = "" if grows and _tall(body) else ' stretchy="false"'
            left, right = (f"<mo{stretch}>{mark}</mo>" for mark in (OPENING[opening], CLOSING[closing]))
            return f"<mrow>{left}{_mathml_row(body)}{right}</mrow>"
        case Words(words):
            if len(words) == 1:
                return f"<mtext>{html_text(words[0])}</mtext>"
            return f"<mtable>{''.join(f'<mtr><mtd><mtext>{html_text(w)}</mtext></mtd></mtr>' for w in words)}</mtable>"
        case Script(base, below, above):
            under = isinstance(base, Atom) and (base.kind == "sum" or base.text == "lim")
            tag = ("munder" if under else "msub") if below and not above else "msup" if not below else "msubsup"
            inner = "".join(_mathml_row(each) for each in (_beneath(node), above) if each)
            return f"<{tag}>{_mathml(base)}{inner}</{tag}>"
