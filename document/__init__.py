"""The theory as a document: HTML that needs nothing but a browser, and LaTeX; made from the records alone."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import sympy

from ..support.files import writable_folder, write_whole
from ..support.text import visible_value, with_policy
from ..theory import RULES, DraftcertError, Formula
from ..theory.deployed import DEPLOYED
from ..theory.imports import optional
from ..theory.names import offer
from ..theory.order import Diagram, diagram
from ..theory.presets import PRESETS, Preset
from ..theory.rule import RuleFamily, WorkedPoint
from ..theory.sources import SOURCES, cited
from ..theory.theorem import Theorem, WorkedRow
from ..theory.theorems import EVERY_FORMULA, THEOREMS
from .claims import evidence, numbers, tell
from .printing import code_latex, escape_latex, latex, latex_of, mathml, prose_html, prose_latex

__all__ = ["Selection", "pages", "rules_table", "select", "write_document"]

Progress = Callable[[str, int, int], None]
"""Called with what is done next, how many pieces are done and how many there are."""


@dataclass(frozen=True)
class Selection:
    """The part of the theory that is told.

    >>> [family.name for family in select("MARS").families]
    ['mars']
    """

    theorems: tuple[Theorem, ...]
    families: tuple[RuleFamily, ...]
    presets: tuple[Preset, ...]
    formulas: tuple[Formula, ...]


def select(only: str | None = None) -> Selection:
    """The records that are named `only` or speak of that word; all without one.

    Raises:
        DraftcertError: nothing is named so.

    >>> [theorem.name for theorem in select("tree").theorems]
    ['M6', 'M7', 'M7s', 'S7']
    """
    chosen = Selection(
        tuple(each for each in THEOREMS.values() if _speaks_of(only, _theorem_text(each), each.name)),
        tuple(each for each in RULES.values() if _speaks_of(only, f"{each.name} {each.deployed_as}")),
        tuple(each for each in PRESETS.values() if _speaks_of(only, f"{each.name} {each.deployed_as}")),
        tuple(each for each in EVERY_FORMULA.values() if _speaks_of(only, f"{each.name} {each.statement}")),
    )
    if not (chosen.theorems or chosen.families or chosen.presets or chosen.formulas):
        names = [*THEOREMS, *RULES, *PRESETS, *EVERY_FORMULA]
        raise DraftcertError(f"nothing speaks of '{only}'; {offer(str(only), names)}")
    return chosen


def write_document(folder: str | Path, only: str | None = None, progress: Progress | None = None) -> list[Path]:
    """Write the development as `theory.html` and `theory.tex` with its figures, and the explorer that its examples
    open in; the same bytes in every run.

    Args:
        folder: where to write; made when missing.
        only: a word such as "tree", "M6" or "additive": theorems, rules and formulas that are named so or speak of it.
        progress: called before every piece.

    Returns:
        The files written, the HTML page first. It needs no other but for the examples, and asks no server for any.

    Raises:
        DraftcertError: nothing is named so, or matplotlib or jinja2 is missing.

    >>> [path.name for path in write_document("theory", only="M1")]
    ['theory.html', 'theory.tex', 'figure-M1.pdf', 'explorer.html']
    """
    with optional("report"):
        from .explorer import write_explorer
        from .figures import FIGURES, draw, inline_svg

    chosen = select(only)
    folder = writable_folder(folder)
    figures = [theorem.name for theorem in chosen.theorems if theorem.name in FIGURES]

    steps = ["order of the rules"] * (only is None) + [f"figure of {name}" for name in figures] + ["HTML", "LaTeX"]

    def begin(step: str) -> None:
        if progress:
            progress(step, steps.index(step), len(steps))

    order = None
    if only is None:
        begin("order of the rules")
        order = diagram()
    svg, written = {}, []
    for name in figures:
        begin(f"figure of {name}")
        drawn, printed = draw(FIGURES[name], "svg", "pdf")
        svg[name] = inline_svg(drawn, FIGURES[name].__name__)
        path = folder / f"figure-{name}.pdf"
        write_whole(path, printed)
        written.append(path)
    content = {
        "only": only,
        **vars(chosen),
        "groups": groups(chosen.theorems),
        "order": None if order is None else _order_rows(order),
        "arrows": [] if order is None else order.arrows(),
        "svg": svg,
        **shared(chosen),
    }
    for step, name in (("HTML", "theory.html"), ("LaTeX", "theory.tex")):
        begin(step)
        path = folder / name
        text = environment(step).get_template(f"{name}.j2").render(content)
        write_whole(path, with_policy(text) if step == "HTML" else text)
        written.insert(0 if step == "HTML" else 1, path)
    written.append(write_explorer(folder / "explorer.html"))
    if progress:
        progress("done", len(steps), len(steps))
    return written


GROUPS = MappingProxyType(
    {
        "T": "The certificate",
        "M": "Bounds from a margin",
        "B": "Runs, means, other divergences, partial knowledge",
        "S": "Sampling, cost and limits",
    }
)
"""What theorems are about, by the first letter of their names."""


def groups(theorems: tuple[Theorem, ...]) -> list[tuple[str, list[Theorem]]]:
    """The theorems under their headings."""
    found = [(title, [each for each in theorems if each.name[0] == letter]) for letter, title in GROUPS.items()]
    return [(title, members) for title, members in found if members]


def shared(chosen: Selection) -> dict[str, Any]:
    """What the templates of a theorem, a rule and a formula need, on one page or on many."""
    with optional("report"):
        from .figures import FIGURES

    records = (*chosen.theorems, *chosen.families, *chosen.presets, *chosen.formulas)
    used = {source.key for record in records for source in cited(record.citation)}
    sources = [source for source in SOURCES.values() if source.key in used and source.key != "draftcert"]
    return {
        "captions": {name: " ".join((figure.__doc__ or "").split()) for name, figure in FIGURES.items()},
        "tell": tell,
        "numbers": numbers,
        "evidence": evidence,
        "number": number,
        "cited": lambda citation: [each.key for each in cited(citation) if each.key != "draftcert"],
        "sources": [{"key": s.key, "url": s.url, "words": s.words, "latex": escape_latex(s.words)} for s in sources],
        "bibliography": {source.key: at for at, source in enumerate(sources, 1)},
        "link": lambda name: f"#{name}",
        "explorer": lambda point, family=None: f"explorer.html{example_in_explorer(point, family)}",
    }


def source_words(citation: str) -> str:
    """A citation as it is read: our own results are the project's, whichever module holds them."""
    return re.sub(r"draftcert, theory\.\w+", "draftcert", citation)


def title_of(name: str) -> str:
    """The name of a rule or formula as a title.

    >>> title_of("strict_greedy"), title_of("kl_of_logs"), title_of("top_m")
    ('Strict greedy', 'KL of logs', 'Top-m')
    """
    words = [_TITLES.get(word, word) for word in name.replace("top_m", "top-m").split("_")]
    return words[0][:1].upper() + " ".join(words)[1:]


_TITLES = {"kl": "KL", "mars": "MARS", "renyi": "Rényi divergence", "m": "m"}


def environment(kind: str, link: Callable[[str], str] = lambda name: f"#{name}") -> Any:
    """Templates of one format; LaTeX has braces of its own, so its marks are angled. `link` addresses theorems."""
    with optional("report"):
        import jinja2
        from markupsafe import Markup

    block, variable, comment = ("{%", "{{", "{#") if kind == "HTML" else ("<%", "<<", "<#")
    made = jinja2.Environment(
        block_start_string=block,
        block_end_string="%}" if kind == "HTML" else "%>",
        variable_start_string=variable,
        variable_end_string="}}" if kind == "HTML" else ">>",
        comment_start_string=comment,
        comment_end_string="#}" if kind == "HTML" else "#>",
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=kind == "HTML",
        finalize=visible_value,
    )
    # The printers escape what they are given, so their output is markup.
    made.filters |= {
        "mathml": lambda formula: Markup(mathml(formula)),
        "inline": lambda formula: Markup(mathml(formula, display=False)),
        "prose": lambda text: Markup(prose_html(text, link)),
        "latex": latex,
        "texmath": latex_of,
        "display": lambda formula: latex_of(formula, display=True),
        "tex": escape_latex,
        "texcode": code_latex,
        "texprose": prose_latex,
        "words": rule_words,
        "title_of": title_of,
        "source": source_words,
    }
    return made


def _speaks_of(only: str | None, text: str, name: str | None = None) -> bool:
    return only is None or only.lower() == str(name).lower() or (len(only) > 2 and only.lower() in text.lower())


def _theorem_text(theorem: Theorem) -> str:
    return " ".join((theorem.title, theorem.statement, *theorem.hypotheses))


def example_in_explorer(point: WorkedRow | WorkedPoint, family: RuleFamily | None = None) -> str:
    """The end of a link that opens the explorer at a worked row: of a rule, or of any that accepts so many tokens."""
    from .explorer import explorer_fragment

    if isinstance(point, WorkedPoint) and family is not None:
        rule = family(*point.arguments)
        return explorer_fragment(rule, point.probabilities, point.candidates, logit_ratio=point.logit_ratio)
    return explorer_fragment(f"top_m({point.accepted})", point.probabilities, point.candidates)


def number(value: sympy.Expr) -> str:
    """A certificate as a decimal."""
    return "∞" if value == sympy.oo else f"{float(value):.6f}"


def rule_words(family: RuleFamily) -> tuple[str, str, str]:
    """A rule's docstring in three parts: the sentence, the formula line(s), the remarks."""
    first, _, rest = (family.doc or "").strip().partition("\n\n")
    code = [block for block in rest.split("\n\n") if block.startswith("    ")]
    remarks = [block for block in rest.split("\n\n") if not block.startswith("    ")]
    clean = [" ".join(block.split()) for block in remarks]
    return (
        " ".join(first.split()),
        "\n".join(line.strip() for block in code for line in block.splitlines()),
        " ".join(clean),
    )


def _order_rows(order: Diagram) -> list[tuple[str, list[tuple[str, str]]]]:
    """The matrix of the order: for each narrow rule a mark and a hint for each wide rule."""
    rows = []
    for narrow in order.rules:
        cells = []
        for wide in order.rules:
            verdict = order.verdicts.get((narrow, wide))
            mark = "=" if verdict is None else {True: "✓", False: "·", None: "?"}[verdict.holds]
            cells.append((mark, "" if verdict is None else verdict.reason))
        rows.append((str(narrow), cells))
    return rows


def pages() -> dict[Path, str]:
    """The pages of the documentation that are made from records, by their paths; none away from a checkout.

    >>> {path.name for path in pages()} <= {"rules.md"}
    True
    """
    docs = Path(__file__).resolve().parents[1] / "docs"  # an editable install is made of links
    return {docs / "rules.md": rules_table()} if docs.is_dir() else {}


def rules_table() -> str:
    """The table of rules and presets of the documentation site, in Markdown; `docs/rules.md` is this text.

    >>> rules_table().splitlines()[0]
    '# Acceptance rules'
    """
    lines = [
        "# Acceptance rules",
        "",
        "Generated from the records in `theory/rules/` and `theory/presets.py`; `draftcert derive` writes the theory.",
        "",
        "| rule | a token is accepted iff | parameters | deployed as | source |",
        "|---|---|---|---|---|",
    ]
    for family in RULES.values():
        sentence = rule_words(family)[0].partition(": ")[2]
        domains = ", ".join(f"{p.name} in {sympy.pretty(p.domain)}" for p in family.parameters)
        name = f"{family.name}({', '.join(p.name for p in family.parameters)})" if family.parameters else family.name
        cells = (f"`{name}`", sentence, domains, family.deployed_as, family.citation)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines += [
        "",
        "## Presets: rules as they are deployed",
        "",
        "| preset | stands for | deployed as | where the deployed code differs | path through a tree | source |",
        "|---|---|---|---|---|---|",
    ]
    for preset in PRESETS.values():
        call = f"{preset.name}({', '.join(preset.example)})" if preset.example else preset.name
        stands_for = f"`{preset(*preset.example)}`"
        cells = (f"`{call}`", stands_for, preset.deployed_as, preset.differs, preset.walk, preset.citation)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines += [
        "",
        "## Deployed methods, and what is certified of each",
        "",
        "Also of methods that look at the drafter, flip a coin or remember earlier positions. `p` is the target, `q` "
        "the drafter; the functions are those of `draftcert.numerics`.",
        "",
        "| system | option | a draft token x is accepted iff, or with | preset | certified | not certified | source |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in DEPLOYED:
        preset = f"`{each.preset}`" if each.preset else ""
        cells = (each.system, each.option, each.accepts, preset, each.certified, each.not_certified, each.source)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
