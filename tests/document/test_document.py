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

from draftcert.document import rule_words, write_document
from draftcert.document.printing import escape_latex, latex, mathml, prose_html, prose_latex
from draftcert.theory import FORMULAS, RULES, DraftcertError
from draftcert.theory.presets import PRESETS, example_rules
from draftcert.theory.theorems import THEOREMS

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


def test_everything_is_there(written: dict[str, Path]):
    page, tex = (written[name].read_text(encoding="utf-8") for name in ("theory.html", "theory.tex"))
    for theorem in THEOREMS.values():
        assert f'id="{theorem.name}"' in page
        assert theorem.sha256[:12] in page
        assert escape_latex(theorem.title) in tex
        section = page.partition(f'id="{theorem.name}"')[2].partition("</section>")[0]
        assert all(f"formal proof in Coq, {name}" in section for name in theorem.formal)
        assert ("no formal proof" in section) == (not theorem.formal)
    for name in RULES:
        assert f'id="rule-{name}"' in page
    for name in [*PRESETS, *FORMULAS]:
        assert name in page
        assert escape_latex(name) in tex
    assert f"1. {example_rules()[0]}" in page  # the matrix of the order
    assert "p∞led" not in page


def test_html_is_well_formed_and_self_contained(written: dict[str, Path]):
    page = written["theory.html"].read_text(encoding="utf-8")
    parser = Balance()
    parser.feed(page)
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids)), "an id is given twice"
    assert all(link.startswith("#") and link[1:] in parser.ids for link in parser.links)
    assert "<script" not in page
    for formula in re.findall(r"<math.*?</math>", page, re.DOTALL):
        ET.fromstring(formula)


def test_latex_is_balanced_and_compiles(written: dict[str, Path], tmp_path: Path):
    tex = written["theory.tex"].read_text(encoding="utf-8")
    bare = re.sub(r"\\[{}]", "", tex)
    assert bare.count("{") == bare.count("}")
    assert sorted(re.findall(r"\\begin\{(\w+\*?)\}", tex)) == sorted(re.findall(r"\\end\{(\w+\*?)\}", tex))
    assert tex.isascii(), sorted({c for c in tex if not c.isascii()})
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed: the LaTeX was checked for balance, but not compiled")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", f"-output-directory={tmp_path}", "theory.tex"]
    done = subprocess.run(command, cwd=written["theory.tex"].parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


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
    ("text", "markup", "tex"),
    [
        ("p_(1) >= alpha", "p<sub>(1)</sub> ≥ α", r"p\textsubscript{(1)} \ensuremath{\ge} \ensuremath{\alpha}"),
        ("x^2 & <b>", "x<sup>2</sup> &amp; &lt;b&gt;", r"x\textsuperscript{2} \& \textless{}b\textgreater{}"),
        ("pooled, room", "pooled, room", "pooled, room"),
        ("to +oo", "to +∞", r"to \ensuremath{+\infty}"),
        ("alphabet", "alphabet", "alphabet"),
        ("(m+1)^(-m)", "(m+1)<sup>-m</sup>", r"(m+1)\textsuperscript{-m}"),
    ],
)
def test_prose(text: str, markup: str, tex: str):
    assert prose_html(text) == markup
    assert prose_latex(text) == tex


def test_formulas_of_our_own():
    from draftcert.theory.functions import Bennett
    from draftcert.theory.statistics import LOGIT_RATIO, Entropy

    x = Symbol("x")
    assert "<mi>h</mi>" in mathml(sympy.sympify(Bennett(x)))
    assert "<mi>ln</mi>" in mathml(log(x))
    entropy = sympy.sympify(Entropy(sympy.Integer(0)))
    assert mathml(entropy).count("<mi>H</mi>") == 1
    assert "/" not in latex(LOGIT_RATIO)
    assert r"\frac" in latex(LOGIT_RATIO)


@pytest.mark.parametrize("family", RULES.values(), ids=list(RULES))
def test_rule_words(family):
    sentence, formula, remarks = rule_words(family)
    assert sentence.endswith(".")
    assert formula.startswith("accepts(x)")
    assert remarks
    assert "accepts(x)" not in remarks
