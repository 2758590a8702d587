"""The theory as a document: complete, well formed, self-contained and the same in every run."""

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest
import sympy
from sympy import Symbol, log

from draftcert.document import rule_words, title_of, write_document
from draftcert.document.claims import evidence, numbers, tell
from draftcert.document.figures import FIGURES
from draftcert.document.mathematics import Atom, Fence, Fraction, Root, Row, Script, Words, read
from draftcert.document.printing import fits, latex, mathml, pieces, prose_html, prose_latex
from draftcert.proofs_check.formal import words as words_of_coq
from draftcert.theory import FORMULAS, RULES, DraftcertError
from draftcert.theory.presets import PRESETS, example_rules
from draftcert.theory.sources import cited
from draftcert.theory.theorem import Theorem
from draftcert.theory.theorems import EVERY_FORMULA, THEOREMS

every_theorem = pytest.mark.parametrize("theorem", THEOREMS.values(), ids=list(THEOREMS))
VOID = {"meta", "br", "img", "link", "hr", "input"}


class Balance(HTMLParser):
    """Checks that tags nest, and gathers ids and links."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if "id" in given:
            self.ids.append(str(given["id"]))
        self.links += [str(given[key]) for key in ("href", "src", "xlink:href") if key in given]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    steps: list[tuple[str, int, int]] = []
    paths = write_document(tmp_path_factory.mktemp("all"), progress=lambda *step: steps.append(step))
    assert [done for _, done, _ in steps] == list(range(len(steps)))
    assert {total for *_, total in steps} == {len(steps) - 1}
    return {path.name: path for path in paths}


@pytest.fixture(scope="module")
def page(written: dict[str, Path]) -> str:
    return written["theory.html"].read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tex(written: dict[str, Path]) -> str:
    return written["theory.tex"].read_text(encoding="utf-8")


def section(page: str, theorem: Theorem) -> str:
    return page.partition(f'<section id="{theorem.name}"')[2].partition("</section>")[0]


def test_everything_is_there(page: str, tex: str):
    for name in RULES:
        assert f'id="rule-{name}"' in page
    for name in PRESETS:
        assert f"<code>{name}" in page
        assert name in tex.replace(r"\_\allowbreak{}", "_")
    for name in FORMULAS:
        assert f"<h3>{title_of(name)}</h3>" in page
        assert rf"\subsection{{{title_of(name)}}}" in tex.replace(r"\'{e}", "é")
    assert f"1. {example_rules()[0]}" in page  # the matrix of the order


@every_theorem
def test_a_theorem_is_told_whole(theorem: Theorem, page: str, tex: str):
    told = section(page, theorem)
    assert theorem.sha256[:12] in told
    assert all(f"formal proof in Coq, {name}" in told for name in theorem.formal)
    assert rf"\label{{{theorem.name}}}" in tex
    marks = [f"({number})" for number in numbers(theorem).values()]
    assert len(set(marks)) == len(marks)
    shown = [of for kind, of in evidence(theorem) if kind in ("symbolic", "ball arithmetic")]
    assert sorted(", ".join(shown).split(", ")) == sorted(marks), "an equation without evidence"
    for mark in marks:
        assert f'id="eq-{mark[1:-1]}"' in told
        assert tex.count(rf"\tag{{{mark[1:-1]}}}\label{{eq:{mark[1:-1]}}}") == 1


def formulas(theorem: Theorem) -> list[str]:
    """All formulas that are displayed for a theorem, in LaTeX."""
    claims = (*(claim for _, claim in theorem.claims()), *theorem.bounds)
    lines = [line for claim in claims for told in [tell(claim)] for line in (*told.lines, *told.where, *told.facts)]
    return [line.formula for line in lines if line.formula]


def sentences(theorem: Theorem) -> list[str]:
    """All that is said of a theorem."""
    steps = [text for step in theorem.derivation for text in (step.says, step.reason)]
    notes = [row.note for row in theorem.worked_points]
    coq = [words_of_coq()[name] for name in theorem.formal]
    return [theorem.title, theorem.statement, *theorem.hypotheses, *steps, *notes, *coq]


ASCII_MATHEMATICS = re.compile(
    r"[_^<>=+~*|]|\b(?:alpha|delta|eps|epsilon|lambda|tau|theta|omega|rho|nu|pi|oo|ln|log1p|expm1)\b"
    r"|[A-Za-z0-9)] ?/ ?[A-Za-z0-9(]|\d - |\b(?<!['-])[b-zB-Z](?![-.'\w])\b"
)


def in_plain_characters(sentence: str) -> list[str]:
    """The parts of a sentence's text that are mathematics, seen without what typesets them."""
    texts = [piece.text.replace("'s", "") for piece in pieces(sentence) if piece.kind == "text"]
    return [text for text in texts if ASCII_MATHEMATICS.search(text)]


@every_theorem
def test_sentences_hold_no_mathematics_in_plain_characters(theorem: Theorem):
    assert not [found for sentence in sentences(theorem) for found in in_plain_characters(sentence)]


OF_OTHER_RECORDS = {
    **{
        name: [formula.statement, *(each.meaning for each in formula.arguments)]
        for name, formula in EVERY_FORMULA.items()
    },
    **{
        name: [
            *rule_words(rule)[::2],
            *(each.meaning for each in rule.parameters),
            *(p.note for p in rule.worked_points),
        ]
        for name, rule in RULES.items()
    },
    **{name: [preset.deployed_as, preset.differs] for name, preset in PRESETS.items()},
}


@pytest.mark.parametrize("name", OF_OTHER_RECORDS)
def test_sentences_of_rules_and_formulas_neither(name: str):
    assert not [found for sentence in OF_OTHER_RECORDS[name] for found in in_plain_characters(sentence)]


@pytest.mark.parametrize("text", ["p <= q", "at alpha", "ln x", "p_1", "m^2", "a/b", "of x tokens", "2 - 1"])
def test_plain_mathematics_would_be_seen(text: str):
    assert ASCII_MATHEMATICS.search(text)


def atoms(row: Row) -> list[Atom | Words]:
    """The signs of a formula, with those inside of fractions, roots, brackets and scripts."""
    found: list[Atom | Words] = []
    for node in row:
        match node:
            case Atom() | Words():
                found.append(node)
            case Fraction(above, below):
                found += atoms(above) + atoms(below)
            case Root(body) | Fence(_, body):
                found += atoms(body)
            case Script(base, below, above):
                found += atoms((base,)) + atoms(below) + atoms(above)
    return found


@every_theorem
def test_formulas_are_mathematics(theorem: Theorem):
    names = {
        each.name for _, claim in theorem.claims() for each in getattr(getattr(claim, "rows", None), "classes", ())
    }
    for formula in formulas(theorem):
        left, _, right = formula.partition(" = ")
        assert left != right, f"a tautology: {formula}"
        assert fits(formula), f"wider than the page on every way to break it: {formula}"
        for atom in atoms(read(formula)):
            if isinstance(atom, Words):
                parts = set(", ".join(atom.lines).split(", "))
                assert parts <= names | {"all tokens"}, f"words that are no class of tokens in {formula}"
            else:
                assert atom.source != "l", f"an l reads as a 1: {formula}"
        ET.fromstring(mathml(formula))


def test_functions_stand_off_what_they_multiply():
    p, q = sympy.symbols("p q", positive=True)
    thin = '<mspace width="0.17em"></mspace>'
    assert f"<mi>p</mi>{thin}<mi>ln</mi>{thin}<mi>q</mi>" in mathml(latex(p * log(q)))


@every_theorem
def test_references_are_links(theorem: Theorem, page: str):
    told = section(page, theorem)
    for name in {piece.text for text in sentences(theorem) for piece in pieces(text) if piece.kind == "theorem"}:
        assert f'<a href="#{name}">{name}</a>' in told
    for source in cited(theorem.citation):
        assert source.key == "draftcert" or f'href="#ref-{source.key}"' in told
    assert cited(theorem.citation)


@pytest.mark.parametrize("record", [*EVERY_FORMULA.values(), *RULES.values(), *PRESETS.values()], ids=lambda r: r.name)
def test_sources_are_known(record):
    assert cited(record.citation), record.citation


@pytest.mark.parametrize("name", FIGURES)
def test_figures_have_words_and_take_the_colours_of_the_page(name: str, page: str):
    figure = section(page, THEOREMS[name]).partition("<figure>")[2].partition("</figure>")[0]
    assert re.search(r'role="img" aria-label="[^"]{20,}"', figure)
    assert "#000000" not in figure
    assert "currentColor" in figure


def test_html_is_well_formed_and_self_contained(page: str):
    parser = Balance()
    parser.feed(page)
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids)), "an id is given twice"
    outer = re.compile(
        r"https://(arxiv\.org|github\.com)/\S+|explorer\.html#rule=\S+&candidates=\d+(&logit_ratio=\S+)?"
    )
    inner = [link for link in parser.links if not outer.fullmatch(link)]
    assert all(link.startswith("#") and link[1:] in parser.ids for link in inner)
    assert "src=" not in page
    assert page.count("<script>") == 1, "the search, and nothing else"
    for formula in re.findall(r"<math.*?</math>", page, re.DOTALL):
        ET.fromstring(formula)


def test_worked_points_open_in_the_explorer(written: dict[str, Path], page: str):
    assert written["explorer.html"].is_file()
    points = sum(len(each.worked_points) for each in (*THEOREMS.values(), *RULES.values()))
    assert page.count('href="explorer.html#') == points


def test_contents_are_grouped_and_searched(page: str):
    contents = page.partition("<nav")[2].partition("</nav>")[0]
    assert 'type="search"' in contents
    assert contents.count("<details open>") == 6
    for name in THEOREMS:
        assert contents.count(f'href="#{name}"') == 1
        assert f'class="permalink" href="#{name}"' in page


def test_latex_is_balanced_and_compiles(written: dict[str, Path], tex: str, tmp_path: Path):
    bare = re.sub(r"\\[{}]", "", tex)
    assert bare.count("{") == bare.count("}")
    assert sorted(re.findall(r"\\begin\{(\w+\*?)\}", tex)) == sorted(re.findall(r"\\end\{(\w+\*?)\}", tex))
    assert tex.isascii(), sorted({c for c in tex if not c.isascii()})
    assert "resizebox" not in tex
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed: the LaTeX was checked for balance, but not compiled")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", f"-output-directory={tmp_path}", "theory.tex"]
    for _ in range(3):  # page numbers settle once the contents have their final length
        done = subprocess.run(command, cwd=written["theory.tex"].parent, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "theory.log").read_text(encoding="utf-8", errors="replace")
    for fault in ("Overfull", "undefined", "multiply defined", "Rerun to get"):
        assert fault not in log, log[log.index(fault) :][:300]


def test_only_and_determinism(tmp_path: Path):
    first, second = (write_document(tmp_path / name, only="tree") for name in "ab")
    assert [path.name for path in first] == [path.name for path in second]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name
    page = first[0].read_text(encoding="utf-8")
    assert 'id="M6"' in page
    assert 'id="M7"' in page
    assert 'id="T5"' not in page
    assert "rule-absolute" not in page


def test_only_by_name_and_unknown(tmp_path: Path):
    page = write_document(tmp_path, only="m7")[0].read_text(encoding="utf-8")
    assert 'id="M7"' in page
    assert 'id="M6"' not in page
    with pytest.raises(DraftcertError, match=r"nothing speaks of 'zebra'; there are T0"):
        write_document(tmp_path, only="zebra")


@pytest.mark.parametrize(
    ("text", "tex"),
    [
        ("at p_(1) >= alpha", "at $p_{(1)} \\geq \\alpha$"),
        ("a < b & b > a", "$a < b$ & $b > a$"),
        ("pooled, room", "pooled, room"),
        ("to +oo", "to $+ \\infty$"),
        ("alphabet", "alphabet"),
        ("(m+1)^(-m)", "$(m + 1)^{- m}$"),
        ("lenience l = 1, l n tokens", "lenience $\\ell = 1$, $\\ell n$ tokens"),
        ("A rule that has a token x", "A rule that has a token $x$"),
        ("x in A, a in A", "$x$ in $A$, $a$ in $A$"),
        ("g <= t/2 C >= ln 3", "$g \\leq t / 2$ $C \\geq \\ln 3$"),
        ("by M7's additive(t), top_m(k)", "by M7's $\\text{additive} (t)$, $\\text{top-m} (k)$"),
        ("expm1(z - max z)", "$e^{z - \\max z} - 1$"),
        ("C_1, ..., C_N of N", "$C_{1} , \\dots , C_{N}$ of $N$"),
        ("the m-th", "the $m$-th"),
        ("KL(target || draft)", "$\\mathrm{KL} (\\text{target} \\Vert \\text{draft})$"),
    ],
)
def test_prose(text: str, tex: str):
    shown = "".join(f"${piece.text}$" if piece.kind == "formula" else piece.text for piece in pieces(text))
    assert shown == tex
    ET.fromstring(f"<p>{prose_html(text, lambda name: f'#{name}')}</p>")
    assert "&" not in prose_latex(text).replace("\\&", "")


def test_formulas_of_our_own():
    from draftcert.theory.functions import Bennett
    from draftcert.theory.statistics import LOGIT_RATIO, Entropy

    x = Symbol("x")
    assert "<mi>h</mi>" in mathml(latex(sympy.sympify(Bennett(x))))
    assert "<mi>ln</mi>" in mathml(latex(log(x)))
    assert latex(sympy.sympify(Entropy(sympy.Integer(0)))) == "H"
    assert latex(LOGIT_RATIO) == r"\frac{z_{(2)}}{z_{(1)}}"
    assert latex((1 - x) / 2 * log(2)) == r"\frac{1 - x}{2} \ln 2"


@pytest.mark.parametrize("family", RULES.values(), ids=list(RULES))
def test_rule_words(family):
    sentence, formula, remarks = rule_words(family)
    assert sentence.endswith(".")
    assert formula.startswith("accepts(x)")
    assert remarks
    assert "accepts(x)" not in remarks
