"""What a difference between two outputs is."""

import copy
from random import Random
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from draftcert.runtime.trees import forward
from draftcert.runtime.trees.decoder import GreedyTreeDecoder
from draftcert.runtime.trees.explain import ROWS, evaluations, explain
from draftcert.runtime.trees.plain import cached_row, distance, plain_logits, tolerance
from draftcert.runtime.trees.tree import Tree
from draftcert.theory import DraftcertError

PROMPT = [5, 17, 3]


def test_same_prompt_budget_and_length(tiny: Any) -> None:
    model = tiny()
    assert explain(model, PROMPT, [1, 2], [1, 2]).verdict == "identical"
    assert explain(model, PROMPT, [1], [1], second_prompt=[5]).verdict == "prompt"
    shorter = explain(model, PROMPT, [1, 2], [1])
    assert (shorter.verdict, shorter.position, shorter.tokens) == ("stopped early", 1, (2, None))
    with pytest.raises(DraftcertError, match="prompt is empty"):
        explain(model, [], [1], [2])
    with pytest.raises(DraftcertError, match="token 99"):
        explain(model, PROMPT, [1], [99])
    wrong: Any
    for wrong, message in ((5, "first = 5: give a list"), (["1"], r"first\[0\] = '1': give a whole number")):
        with pytest.raises(DraftcertError, match=message):
            explain(model, PROMPT, wrong, [1])


def test_another_token_than_the_greedy_one(tiny: Any, hf_greedy: Any) -> None:
    model = tiny()
    greedy = hf_greedy(model, PROMPT, 5)
    wrong = [*greedy[:3], (greedy[3] + 1) % 61, 0]
    found = explain(model, PROMPT, greedy, wrong)
    assert (found.verdict, found.position, found.greedy) == ("different rule", 3, greedy[3])
    assert found.ranks is not None
    assert found.ranks[0] == 1 < found.ranks[1]
    assert found.margin is not None
    assert found.noise is not None
    assert 2 * found.noise < found.margin
    both = explain(model, PROMPT, [(greedy[0] + 1) % 61], [(greedy[0] + 2) % 61])
    assert both.verdict == "true error"


@pytest.mark.parametrize(
    ("row", "noise", "verdict", "margin"),
    [
        ([0.0, 2.0, 2.0, 1.0], 0.0, "exact tie", 0.0),
        ([0.0, 2.0, 2.0, 1.0], 0.25, "exact tie", 0.0),
        ([0.0, 2.0, 1.75, 1.0], 0.125, "numerical noise", 0.25),
        ([0.0, 2.0, 1.75, 1.0], 0.0625, "different rule", 0.25),
        ([3.0, 2.0, 2.0, 1.0], 0.125, "true error", 0.0),
        ([0.0, 2.0, 1.75, 1.0], 2.0, "engine fault", 0.25),
    ],
)
def test_margin_against_noise(
    row: list[float], noise: float, verdict: str, margin: float, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = torch.tensor(row)
    other = plain.clone()
    other[3] += noise
    monkeypatch.setattr("draftcert.runtime.trees.explain.evaluations", lambda *_: (plain, [plain, other]))
    monkeypatch.setattr("draftcert.runtime.trees.explain.tolerance", lambda *_: torch.tensor([0.5]))
    found = explain(tiny(), PROMPT, [1], [2])
    assert (found.verdict, found.margin, found.noise) == (verdict, margin, noise)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("new", [[], [7, 8, 9, 7, 8]])
def test_noise_is_that_of_every_history_and_number_of_rows(new: list[int], dtype: torch.dtype, tiny: Any) -> None:
    model = copy.deepcopy(tiny()).to(dtype)
    row, others = evaluations(model, PROMPT, new, ROWS)
    engines = 2 if dtype == torch.float32 else 1  # the layers for few rows, and transformers'
    assert len(others) == 1 + engines * len(ROWS)
    allowed = float(tolerance(model, [*PROMPT, *new]))
    assert all(float(distance(other, row)) <= allowed for other in others)
    by_itself = model(torch.tensor([[*PROMPT, *new]]), use_cache=False).logits[:, -1]
    assert float(distance(by_itself, row[None])) <= allowed


def test_rounding_of_half_precision_adds_up_over_many_layers_and_is_no_fault() -> None:
    torch.manual_seed(0)
    shape: Any = {"hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 4, "num_hidden_layers": 24}
    config = LlamaConfig(vocab_size=97, initializer_range=0.2, **shape)
    model = LlamaForCausalLM(config).eval().to(torch.bfloat16)  # pyright: ignore[reportArgumentType]
    source = Random(0)
    for _ in range(4):
        text = [source.randrange(97) for _ in range(24)]
        plain, allowed = plain_logits(model, [text], 1)[0, -1], float(tolerance(model, text))
        for count in (2, 3, 6, 10, 20):  # transformers' own evaluation: a cache
            assert float(distance(cached_row(model, text[:-count], text[-count:]), plain)) < allowed
        shuffled = cached_row(model, text[:8], text[9:])  # a token left out
        assert float(distance(shuffled, plain)) > allowed


def test_nothing_excuses_a_difference_where_the_same_bits_are_promised(
    tiny: Any, hf_greedy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a tie, nor noise, nor what both left; but no promise covers another prompt or budget."""
    model = tiny()
    greedy = hf_greedy(model, PROMPT, 5)
    assert explain(model, PROMPT, greedy, greedy, same_bits=True).verdict == "identical"
    assert explain(model, PROMPT, greedy, greedy[:3], same_bits=True).verdict == "stopped early"
    assert explain(model, PROMPT, greedy, [1], second_prompt=[5], same_bits=True).verdict == "prompt"
    found = explain(model, PROMPT, greedy, [*greedy[:4], (greedy[4] + 1) % 61], same_bits=True)
    assert (found.verdict, found.position) == ("broken promise", 4)
    tied = torch.tensor([0.0, 2.0, 2.0, 1.0])
    monkeypatch.setattr("draftcert.runtime.trees.explain.evaluations", lambda *_: (tied, [tied]))
    assert explain(model, PROMPT, [1], [2]).verdict == "exact tie"
    assert explain(model, PROMPT, [1], [2], same_bits=True).verdict == "broken promise"


def test_the_name_of_the_promise_is_that_of_model_and_arithmetic(tiny: Any) -> None:
    model = copy.deepcopy(tiny())
    with_trees, without = GreedyTreeDecoder(model, latency=None), GreedyTreeDecoder(model, "none", latency=None)
    promised = with_trees.same_bits
    assert promised is not None
    assert promised == without.same_bits == GreedyTreeDecoder(copy.deepcopy(model), latency=None).same_bits
    with torch.no_grad():
        model.lm_head.weight.mul_(2)
    assert with_trees.same_bits not in (promised, None)
    for nothing in (
        GreedyTreeDecoder(model, rule="top_m(2)", latency=None),
        GreedyTreeDecoder(model, latency=None, fast=False),
        GreedyTreeDecoder(tiny("gpt2"), latency=None),
    ):
        assert nothing.same_bits is None


def test_an_engine_that_is_wrong_is_not_called_noise(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, mask = tiny("gemma3-window"), Tree.ancestor_mask
    sees_all = lambda tree: torch.ones_like(mask(tree)).tril()  # noqa: E731
    monkeypatch.setattr(Tree, "ancestor_mask", sees_all)  # of chains that is the same
    assert explain(model, PROMPT, [1], [2]).verdict != "engine fault"
    monkeypatch.setattr(forward, "_window", lambda size: lambda queries, keys: queries - keys < size + 1)
    assert explain(model, PROMPT * 4, [1], [2]).verdict == "engine fault"
