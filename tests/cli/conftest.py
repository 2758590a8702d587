"""Whole-program tests run the command in its own process."""

import subprocess
import sys

import pytest


@pytest.fixture(scope="session")
def draftcert():
    """`draftcert(*arguments)` runs the program and returns its exit status and what it printed."""

    def run(*arguments):
        command = [sys.executable, "-m", "draftcert", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)

    return run
