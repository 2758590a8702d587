"""The program by its console entry in this process: loading Python, torch and transformers would be most of its time.

What only a process shows is tested with one, or with one for many commands: its exit status, pipes, signals, terminals,
what it loads, and its output where libraries print too.
"""

import io
import sys
from typing import NamedTuple

import pytest

from draftcert.cli import main
from draftcert.cli.console import notes


class Run(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def draftcert(monkeypatch, capsys):
    """`draftcert(*arguments, input=text)` runs the program and returns its exit status and what it printed."""

    def run(*arguments, input=""):
        capsys.readouterr()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["draftcert", *map(str, arguments)])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(input.encode())))
            patch.setattr(notes, "quiet", False)
            with pytest.raises(SystemExit) as left:
                main()
        return Run(int(left.value.code or 0), *capsys.readouterr())

    return run
