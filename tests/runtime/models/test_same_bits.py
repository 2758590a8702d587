"""A row of logits does not depend on its company: a few of the comparisons of benchmarks/same_bits.py."""

from __future__ import annotations

import random

import gguf
import pytest
import torch

from benchmarks.same_bits import CONFIGS, FORMATS, compare, engine, levels
from draftcert.runtime.trees.forward import TreeForward

Format = gguf.GGMLQuantizationType


@pytest.fixture(autouse=True)
def threads() -> object:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("kind", CONFIGS)
def test_alone_and_in_company(kind: str, level: int) -> None:
    source = random.Random(level)
    for number, format in enumerate(FORMATS):
        if number % len(CONFIGS) == list(CONFIGS).index(kind):
            compared, unequal = compare(engine(kind, format, level), source)
            assert compared > 0
            assert unequal == 0


def test_transformers_own_pass_would_be_found_out() -> None:
    """Its rows do depend on their company, or the comparison sees nothing."""
    forward = TreeForward(engine("llama", Format.F32, -1).model, fast=False)
    found = [compare(forward, random.Random(seed)) for seed in range(3)]
    assert any(unequal for _, unequal in found)
