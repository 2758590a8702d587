"""What comes from a model, a server or a file name is shown and does nothing."""

import io
import unicodedata

import pytest
from rich.console import Console
from rich.table import Table

from draftcert.cli.generate import TextStream
from draftcert.support.terminal import SafeConsole
from draftcert.support.text import visible

ATTACKS = {
    "clear the screen": "a\x1b[2J\x1b[Hverdict: identical",
    "one-byte escape": "a\x9b2J",
    "window title": "\x1b]0;title\x07",
    "hyperlink": "\x1b]8;;http://example.org\x1b\\text\x1b]8;;\x1b\\",
    "go back": "wrong\b\b\b\b\bright",
    "overwrite the line": "verdict: true error\rverdict: identical ",
    "turn the direction": "user\u202etxt.exe",
    "isolate": "\u2066abc\u2069",
    "separate lines": "a\u2028b\u2029c\x85d\x0be\x0cf",
    "hide": "a\u200bb\ufeffc\U000e0041d\xade",
    "half a surrogate pair": "a\ud800b",
    "delete": "a\x7fb",
    "bell": "\a" * 3,
}


@pytest.mark.parametrize("text", ATTACKS.values(), ids=ATTACKS)
def test_attacks_are_shown(text):
    shown = visible(text)
    assert shown.isprintable()
    shown.encode()
    assert shown == "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def test_every_character_that_acts_is_shown_and_scripts_are_left_alone():
    acting = {"Cc", "Cs", "Zl", "Zp"}
    for number in range(0x110000):
        character = chr(number)
        if unicodedata.category(character) in acting or unicodedata.bidirectional(character) in (
            *("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"),
        ):
            assert visible(character) != character
    text = "naïve 中文 العربية עברית हिन्दी 👩\u200d👩\u200d👧 می\u200cخواهم [red]:smile: \\x1b"
    assert visible(text) == text


def test_lines_are_left_where_they_are_wanted():
    assert visible("a\n\tb\r\n", lines=True) == "a\n\tb\\r\n"
    assert visible("a\n\tb\r\n") == "a\\n\\tb\\r\\n"


@pytest.mark.parametrize("text", ATTACKS.values(), ids=ATTACKS)
def test_a_console_prints_no_attack_in_text_tables_or_titles(text):
    file = io.StringIO()
    console = SafeConsole(file=file, width=300)
    table = Table(text, title=text)
    table.add_row(text)
    console.print(text, style="bold")
    console.print(table)
    console.rule(text)
    assert all(character.isprintable() or character == "\n" for character in file.getvalue())
    assert file.getvalue().count("\\") >= 5 * visible(text).count("\\")


def test_a_console_takes_no_markup_emoji_names_or_links():
    file = io.StringIO()
    console = SafeConsole(file=file, width=200, force_terminal=True, color_system="truecolor")
    console.print("[bold red]x[/] [link=http://example.org]y[/link] :smile: [/nothing]")
    assert file.getvalue() == "[bold red]x[/] [link=http://example.org]y[/link] :smile: [/nothing]\n"


def test_text_that_streams_from_a_model_is_shown_piece_by_piece():
    tokens = ["a", "\x1b", "[2", "J\n", "b\r", "\u202e", "c"]
    written = []
    stream = TextStream(lambda ids: "".join(tokens[i] for i in ids), written.append)
    for number in range(len(tokens)):
        stream.add([number])
    stream.end()
    assert "".join(written) == "a\\x1b[2J\nb\\r\\u202ec\n"


def test_plain_rich_consoles_would_not_do():
    """The attacks are real: what this guards against happens without it."""
    file = io.StringIO()
    Console(file=file, width=300).print(ATTACKS["turn the direction"], ATTACKS["one-byte escape"])
    assert "\u202e" in file.getvalue()
    assert "\x9b" in file.getvalue()
