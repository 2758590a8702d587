"""Text of unknown origin in Markdown, HTML and LaTeX: it reads as it was written, and does nothing."""

import html
import re
import shutil
import subprocess

import markdown_it
import pytest

from draftcert.support.text import html_text, latex_text, markdown, styles_as_classes, visible, with_policy

ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</td></table><h1>verdict</h1>",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)' autofocus='",
    "[x](javascript:alert(1))",
    "![x](http://example.org/x.png)",
    "[x]: javascript:alert(1)",
    "<javascript:alert(1)>",
    "<http://example.org>",
    "http://example.org and https://example.org/a?b=c",
    "www.example.org WWW.example.org",
    "someone@example.org",
    "a | b | c",
    "`code` ``more`` ~~gone~~ **bold** *it* _it_ __b__ ***x***",
    "# heading",
    "- item",
    "+ item",
    "* item",
    "1. item",
    "1) item",
    "> quote",
    "---",
    "===",
    "    code",
    "&lt;b&gt; &#60;script&#62; &amp;",
    "\\[x\\](y) \\",
    "$x^2$ $$y$$ \\(z\\)",
    "a\nb\r\n# c\n\n- d",
    "\x1b[2J\x1b]0;title\x07\u202eevil\u2066\x00\x85\u2028",
    "\\input{/etc/passwd} \\write18{id} $a_b^c$ 100% {x} #1 ~ & ^^41",
    "]]>--><!--<style>*{display:none}</style>",
    "{{ 7 * 7 }} {% raw %} <% x %>",
]
ALLOWED = {"p"}


@pytest.mark.parametrize("text", ATTACKS)
@pytest.mark.parametrize("flavour", ["commonmark", "gfm"])
@pytest.mark.parametrize("before", ["", "said: "])
def test_markdown_shows_what_was_written(before, text, flavour):
    source = before + markdown(text)
    assert "\n" not in source
    assert not re.search(r"\w://|www\.|\w@", source, re.IGNORECASE), "GitHub makes links of these without any mark"
    if flavour == "gfm":
        page = markdown_it.MarkdownIt("gfm-like", {"linkify": False}).render(source)
    else:
        page = markdown_it.MarkdownIt("commonmark").render(source)
    assert set(re.findall(r"</?([a-zA-Z][\w-]*)", page)) <= ALLOWED, page
    assert " ".join(html.unescape(re.sub(r"<[^>]*>", "", page)).split()) == " ".join(f"{before}{visible(text)}".split())


@pytest.mark.parametrize("text", ATTACKS)
def test_a_cell_of_a_markdown_table_stays_one_cell(text):
    source = f"| a | b |\n| - | - |\n| {markdown(text)} | last |\n"
    page = markdown_it.MarkdownIt("commonmark").enable("table").render(source)
    cells = re.findall(r"<td>(.*?)</td>", page, re.DOTALL)
    assert len(cells) == 2
    assert html.unescape(cells[0]).split() == visible(text).split()


def test_numbers_and_names_are_left_as_they_are():
    for text in ("8.78", "-0.5", "top_m(3) & additive(0.2)", "Qwen/Qwen3-1.7B", "2.5"):
        assert markdown(text) == text.replace("&", "&amp;")


@pytest.mark.parametrize("text", ATTACKS)
def test_html_shows_what_was_written(text):
    escaped = html_text(text)
    assert not set(escaped) & set("<>\"'\x1b\u202e\x00")
    assert html.unescape(escaped) == visible(text, lines=True)


def test_latex_prints_every_attack(tmp_path):
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex: apt-get install texlive-latex-base")
    body = "\n\n".join(latex_text(text) for text in [*ATTACKS, "中文 ✓ naïve"])
    preamble = r"\documentclass{article}\usepackage[utf8]{inputenc}\usepackage[T1]{fontenc}\begin{document}"
    (tmp_path / "page.tex").write_text(preamble + "\n" + body + "\n\\end{document}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-recorder", "page.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "passwd" not in (tmp_path / "page.fls").read_text()


def test_a_policy_names_the_styles_and_scripts_of_a_page_and_nothing_else():
    page = '<head>\n<meta charset="utf-8">\n<style>b{}</style></head><script>go()</script><script type="x">no</script>'
    found = with_policy(page)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', found)
    assert policy
    assert "unsafe" not in policy[1]
    assert policy[1].count("'sha256-") == 2
    assert "style-src 'sha256-" in policy[1]
    assert found.replace(policy[0], "").count("<script>") == 1
    assert "script-src" not in with_policy('<meta charset="utf-8">\n<style>b{}</style>')


def test_styles_of_a_figure_become_classes():
    marks = '<g style="fill: red"/><g style="fill: red"/><g style="a: &quot;b&quot;"/>'
    found = styles_as_classes(f'<svg><style type="text/css">*{{}}</style>{marks}</svg>', "key")
    assert found.count('class="key-0"') == 2
    assert "style=" not in found
    assert '.key-0{fill: red}.key-1{a: "b"}</style>' in found
