"""The blocks of an engine's page, in order, where the engine is installed: `pytest ... --page=docs/engines/vllm.md`."""

import os
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.test_shown import ROOT, blocks, compare, console_lines, executed


@patch.dict(os.environ)  # what a page sets is its own
def test_blocks(pytestconfig: pytest.Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = [block for block in blocks(ROOT / str(pytestconfig.getoption("page"))) if not block.not_run]
    assert shown
    for block in shown:
        if block.language == "console":
            for command, wanted in console_lines(block):
                bash = ["bash", "-euo", "pipefail", "-c", command.text]
                done = subprocess.run(
                    bash, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "100"}
                )
                assert done.returncode == 0, f"{command}\n{done.stderr[-3000:]}"
                if wanted:
                    compare(command, wanted, done.stdout)
        else:
            found = executed(block, names)
            if block.output:
                compare(block, block.output, found)
