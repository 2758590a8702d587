"""Text of unknown origin on a terminal and in Markdown, HTML and LaTeX: it is shown, and can do nothing.

Every medium is given `visible` text, in which nothing acts by itself, and then what means something to that medium is
escaped. The text may come from a model, a server, a prompt, an id, a file name or a folder that somebody sent.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re

# Control characters, which begin escape sequences; halves of surrogate pairs, which cannot be printed; characters that
# end lines, turn the direction of writing or are nowhere seen. The two joiners stay: scripts and emoji need them.
_ACTIVE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)


def visible(text: str, lines: bool = False) -> str:
    r"""Text in which everything that a terminal would act on is written out; `lines` leaves line ends and tabs.

    >>> print(visible("safe\x1b[2K\rverdict: identical\n"))
    safe\x1b[2K\rverdict: identical\n
    """
    return _ACTIVE.sub(lambda match: match[0] if lines and match[0] in "\n\t" else repr(match[0])[1:-1], text)


_MARKDOWN = re.compile(
    r"[\\`*\[\]<>&|~$]"  # code, emphasis, links, elements, entities, cells, strikethrough, mathematics
    r"|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"  # emphasis; inside of a name it is none
    r"|(?<=\w)(?:(?<=[Ww])\.|:(?=/)|@)"  # www., http://, a@b: made into links without any mark
    r"|^(?:[#+=-]|\d+(?=[.)]))"  # headings, lists and rules, at the beginning
)
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", ":": "&#58;", "@": "&#64;", ".": "&#46;"}


def markdown(text: str) -> str:
    r"""Text in one line of Markdown, as CommonMark and GitHub read it, that shows as it is.

    >>> print(markdown("top_m(2) | [x](javascript:alert(1)) <b>\n"))
    top_m(2) \| \[x\](javascript:alert(1)) &lt;b&gt;\\n
    """

    def escaped(match: re.Match[str]) -> str:
        mark = match[0]
        return _ENTITIES.get(mark) or (f"&#{ord(mark[0])};{mark[1:]}" if mark[0].isdigit() else "\\" + mark)

    return _MARKDOWN.sub(escaped, visible(text))


def html_text(text: str) -> str:
    """Text in HTML, in an element or a quoted attribute; its lines and tabs are left.

    >>> html_text('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(visible(text, lines=True))


_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}",
    "<": r"\textless{}", ">": r"\textgreater{}", **{character: "\\" + character for character in "&%$#_{}"},
}  # fmt: skip


def latex_text(text: str) -> str:
    r"""Text in which no character has a meaning to LaTeX; those that its usual fonts lack are named by their numbers.

    >>> print(latex_text("100% \\input{x}"), latex_text("中"))
    100\% \textbackslash{}input\{x\} [U+4E2D]
    """
    shown = visible(text, lines=True)
    return "".join(_LATEX.get(c) or (c if ord(c) < 0x180 else f"[U+{ord(c):04X}]") for c in shown)


_ELEMENT = re.compile(r"<(style|script)>(.*?)</\1>", re.DOTALL)


def with_policy(page: str) -> str:
    """An HTML page whose content policy lets its own styles and scripts run, by their hashes, and nothing else.

    What a page says of others has come through `html_text`, so every `<style>` and `<script>` in it is the template's.
    The policy goes before the first of them, at the end of the line `<meta charset="utf-8">`.
    """
    sources: dict[str, list[str]] = {"style": [], "script": []}
    for kind, content in _ELEMENT.findall(page):
        sources[kind].append(f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'")
    allowed = "".join(f"; {kind}-src {' '.join(dict.fromkeys(hashes))}" for kind, hashes in sources.items() if hashes)
    policy = f"default-src 'none'{allowed}; img-src data:; base-uri 'none'; form-action 'none'"
    head, charset, rest = page.partition('<meta charset="utf-8">\n')
    return f'{head}{charset}<meta http-equiv="Content-Security-Policy" content="{policy}">\n{rest}'
