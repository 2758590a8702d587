"""No row is certified wrongly: a short run of the search, and the search finds a kernel that over-claims."""

import dataclasses
import json
import sys

import pytest
import torch

from draftcert.runtime.rows import certify

ARGUMENTS = ["soundness", "--rows", "60000", "--exact", "250", "--seed", "7"]


@pytest.fixture
def search(monkeypatch):
    monkeypatch.syspath_prepend("benchmarks")
    monkeypatch.setattr(sys, "argv", ARGUMENTS)
    import soundness  # pyright: ignore[reportMissingImports]

    return soundness


def test_no_row_is_certified_wrongly(search, capsys):
    assert search.main() == 0
    found = json.loads(capsys.readouterr().out)
    for judge, rows in (("fast", 60_000), ("exact", 250)):
        assert found[judge]["wrong"] == 0
        assert found[judge]["certified"] > rows / 10
        assert found[judge]["not certified"] <= found[judge]["certifiable"] / 10_000


@pytest.mark.parametrize("judge", ["fast", "exact"])
def test_each_judge_finds_an_over_claim(search, capsys, monkeypatch, judge):
    def generous(*arguments):
        result = certify(*arguments)
        assert result.kl is not None
        return dataclasses.replace(result, certified=result.kl < 1.02 * torch.clamp(result.value, min=1e-9))

    monkeypatch.setattr(search, "certify", generous)
    assert search.search(judge, 60_000, seed=7) is None
