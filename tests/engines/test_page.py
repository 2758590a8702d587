"""The blocks of an engine's page, in order, where the engine is installed: `pytest ... --page=docs/engines/vllm.md`.

They run as one script in a process of its own: engines patch what they load, and not all of them can where a test
session has loaded it before.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_shown import ROOT, Block, Shown, blocks, compare, console_lines

END = "\0"
"""What the script prints behind each piece."""


def pieces(shown: list[Block]) -> list[tuple[Shown, str | None, str]]:
    """Each block of Python and each command of a console, the output shown beneath it, and its lines of the script."""
    found: list[tuple[Shown, str | None, str]] = []
    for block in shown:
        if block.language == "console":
            for command, wanted in console_lines(block):
                bash = ["bash", "-euo", "pipefail", "-c", command.text]
                found.append((command, wanted, f"__import__('subprocess').run({bash}, check=True)\n"))
        else:
            found.append((block, block.output, block.text))
    return found


def script(parts: list[tuple[Shown, str | None, str]]) -> str:
    """All of them, each on the lines that it has on the page, as tracebacks name them."""
    text = ""
    for place, _, code in parts:
        text += "\n" * (place.line - 1 - text.count("\n")) + code + f"print({END!r}, end='', flush=True)\n"
    return text


def test_blocks(pytestconfig: pytest.Config, tmp_path: Path):
    page = ROOT / str(pytestconfig.getoption("page"))
    parts = pieces([block for block in blocks(page) if not block.not_run])
    assert parts
    file = tmp_path / f"{page.stem}.page"  # no name that its imports could find
    file.write_text(script(parts))
    done = subprocess.run(
        [sys.executable, str(file)],
        cwd=tmp_path,
        env=os.environ | {"COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{page}\n{done.stderr[-3000:]}"
    outputs = done.stdout.split(END)[:-1]
    for (place, wanted, _), output in zip(parts, outputs, strict=True):
        if wanted:
            compare(place, wanted, output)
