"""The real model: tree decoding is token-identical to transformers' greedy generation in float32."""

from typing import Any

import pytest
import torch

from draftcert.runtime.trees.decoder import GreedyTreeDecoder
from draftcert.runtime.trees.drafters import Combined, PromptLookup, TokenRecycling
from draftcert.runtime.trees.forward import TreeForward
from draftcert.runtime.trees.tree import Tree

pytestmark = pytest.mark.model

PROMPTS = [
    "Name three primary colours.",
    "Repeat after me: the cat sat on the mat, the cat sat on the mat, the cat sat on the mat.",
    "Write a Python function that adds two numbers.",
]


def test_token_identical_to_transformers(smollm2: Any) -> None:
    # Without a table of latencies: what is proposed is to depend on no clock.
    decoder = GreedyTreeDecoder(smollm2, Combined(TokenRecycling(), PromptLookup()), latency=None)
    passes = tokens = 0
    for prompt in PROMPTS:
        ids = smollm2.encode(prompt)
        mask = torch.ones_like(ids)
        expected = smollm2.model.generate(ids, attention_mask=mask, max_new_tokens=20, do_sample=False)
        result = decoder.generate(ids, max_new_tokens=20)
        assert torch.equal(result.sequences, expected)
        passes += result.stats.target_passes
        tokens += result.stats.new_tokens
    assert tokens > 1.2 * passes


def test_few_rows_is_the_same_function(smollm2: Any) -> None:
    prompt = smollm2.encode(PROMPTS[0])[0].tolist()
    tree = Tree(tuple(prompt[-12:]), tuple(range(-1, 11)))
    found = []
    with torch.inference_mode():
        for fast in (True, False):
            forward = TreeForward(smollm2.model, fast)
            assert (forward.few_rows is not None) == fast
            cache = forward.new_cache([len(prompt)], 12)
            forward.prefill([prompt[:-12]], cache)
            cache.lengths[0] = len(prompt) - 12
            found.append(forward([tree], cache)[0])
    assert (found[0] - found[1]).abs().max() < 1e-3
