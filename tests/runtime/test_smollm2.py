"""The real model: tree decoding is token-identical to transformers' greedy generation in float32."""

from typing import Any

import pytest
import torch

from draftcert.runtime.decoder import GreedyTreeDecoder
from draftcert.runtime.drafters import PromptLookup, TokenRecycling, Union
from draftcert.runtime.fast_cpu import TallLinear, fast_cpu

pytestmark = pytest.mark.model

PROMPTS = [
    "Name three primary colours.",
    "Repeat after me: the cat sat on the mat, the cat sat on the mat, the cat sat on the mat.",
    "Write a Python function that adds two numbers.",
]


def test_token_identical_to_transformers(smollm2: Any) -> None:
    decoder = GreedyTreeDecoder(smollm2, Union(TokenRecycling(), PromptLookup()))
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


def test_fast_cpu_is_the_same_function(smollm2: Any) -> None:
    ids = smollm2.encode(PROMPTS[0])
    with torch.inference_mode():
        usual = smollm2.model(ids).logits
        with fast_cpu(smollm2):
            assert isinstance(smollm2.model.lm_head, TallLinear)
            fast = smollm2.model(ids).logits
        assert type(smollm2.model.lm_head) is torch.nn.Linear
    assert ids.shape[1] <= 64  # few enough rows for the other product
    assert (usual - fast).abs().max() < 1e-3
