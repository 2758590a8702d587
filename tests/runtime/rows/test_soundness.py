"""No row is certified wrongly: a short run of the search, and the search finds a kernel that over-claims."""

import dataclasses
import json
import sys

import pytest
import torch

from draftcert.runtime.rows import certify

ARGUMENTS = ["soundness", "--rows", "60000", "--seed", "7"]


@pytest.fixture
def search(monkeypatch):
    monkeypatch.syspath_prepend("benchmarks")
    monkeypatch.setattr(sys, "argv", ARGUMENTS)
    import soundness  # pyright: ignore[reportMissingImports]

    return soundness


def test_no_row_is_certified_wrongly(search, capsys):
    assert search.main() == 0
    found = json.loads(capsys.readouterr().out)
    assert found["wrong"] == 0
    assert found["certified"] > 1000


def test_the_search_finds_an_over_claim(search, capsys, monkeypatch):
    def generous(*arguments, **options):
        result = certify(*arguments, **options)
        if result.kl is None:
            return result
        return dataclasses.replace(result, certified=result.kl < 1.02 * torch.clamp(result.value, min=1e-9))

    monkeypatch.setattr(search, "certify", generous)
    assert search.main() == 1
