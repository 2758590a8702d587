"""The self-test refuses what is evaluated wrong, and nothing else."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from draftcert.runtime.models.layers import description
from draftcert.runtime.trees import forward, self_test
from draftcert.runtime.trees.decoder import GreedyTreeDecoder
from draftcert.runtime.trees.self_test import lengths_of_change
from draftcert.runtime.trees.tree import Tree
from draftcert.support import cache
from draftcert.theory import DraftcertError
from tests.runtime.conftest import SIZES, TOKENS


@pytest.fixture(autouse=True)
def nothing_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing was tried before, in this process or another."""
    monkeypatch.setattr(self_test, "_known", type(self_test._known)())
    monkeypatch.setattr(cache, "user_cache_path", lambda *_, **__: tmp_path)
    return tmp_path


def model_of(config: Any, attention: str = "sdpa") -> Any:
    torch.manual_seed(0)
    made = transformers.AutoModelForCausalLM.from_config(
        config, dtype=torch.float32, attn_implementation=attention
    ).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.ndim == 2:
                parameter.mul_(4)
    return made


BROKEN: dict[str, Any] = {
    "siblings see each other": ("Tree.ancestor_mask", lambda tree: torch.ones(len(tree), len(tree)).tril().bool()),
    "positions by node": ("Tree.positions", lambda tree, prefix: torch.arange(len(tree)) + prefix),
    "windows too wide": ("_window", lambda size: lambda queries, keys: queries - keys < size + 1),
    "masks added as 0 and 1": ("_added", lambda mask, dtype: mask.to(dtype)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("what", BROKEN)
def test_a_wrong_engine_is_refused(what: str, dtype: torch.dtype, tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = copy.deepcopy(tiny("gemma3-window")).to(dtype)
    model.set_attn_implementation("eager")
    self_test.self_test(model, 64, fast=False)
    place, wrong = BROKEN[what]
    owner, _, name = f"forward.{place}".rpartition(".")
    monkeypatch.setattr(Tree if owner.endswith("Tree") else forward, name, wrong)
    monkeypatch.setattr(self_test, "_known", type(self_test._known)())
    monkeypatch.setattr(self_test, "_code", lambda: what)  # the sources changed
    message = r"Gemma3ForCausalLM with eager attention .* node \d+ of the \w+ tree .* at position \d+"
    with pytest.raises(DraftcertError, match=message):
        self_test.self_test(model, 64, fast=False)


def test_wrong_kernels_are_refused(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(description, "_activation", lambda module: (1.0, 0.0))
    model = copy.deepcopy(tiny())
    for layer in model.model.layers:
        layer.mlp.act_fn = torch.nn.Tanh()
    with pytest.raises(DraftcertError, match="off the plain model's"):
        GreedyTreeDecoder(model)
    GreedyTreeDecoder(model, fast=False)


def test_a_model_is_tried_once_until_it_changes(
    tiny: Any, nothing_known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = copy.deepcopy(tiny())
    tried: list[int] = []
    test = self_test._test
    monkeypatch.setattr(
        self_test, "_test", lambda model, engine, length: (tried.append(length), test(model, engine, length))
    )
    decoder = GreedyTreeDecoder(model)
    decoder.generate([1, 2, 3], 4)
    assert tried == [0]
    monkeypatch.setattr(self_test, "_known", type(self_test._known)())  # as in another process
    GreedyTreeDecoder(copy.deepcopy(model))
    assert tried == [0]
    model.model.layers[0].self_attn.scaling = 3.0
    decoder.generate([1, 2, 3], 4)
    assert tried == [0, 0]
    assert len(list((nothing_known / "self-tests").iterdir())) == 2


def test_what_is_far_is_tried_when_a_text_gets_there(monkeypatch: pytest.MonkeyPatch) -> None:
    config = transformers.MistralConfig(**SIZES, **TOKENS, sliding_window=50)
    model = model_of(config)
    assert lengths_of_change(model) == [50]
    decoder = GreedyTreeDecoder(model, latency=None)
    monkeypatch.setattr(forward, "_window", lambda size: lambda queries, keys: queries - keys < size + 1)
    decoder.generate([1, 2, 3], 40)
    decoder._idle.clear()
    with pytest.raises(DraftcertError, match="at position 5"):
        decoder.generate([1, 2, 3], 60)


def longrope(**own: Any) -> Any:
    scaled = {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [4.0] * 4, "factor": 8.0}
    scaled |= {"original_max_position_embeddings": 32, "rope_theta": 10000.0}
    return transformers.Phi3Config(**SIZES | {"max_position_embeddings": 256}, **TOKENS, rope_parameters=scaled, **own)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_longrope_is_right_within_its_length_and_refused_across(attention: str) -> None:
    model = model_of(longrope(original_max_position_embeddings=32), attention)
    decoder = GreedyTreeDecoder(model, latency=None)
    ids = torch.tensor([[5, 17, 3, 17]])
    expected = model.generate(ids, max_new_tokens=20, do_sample=False)
    assert torch.equal(decoder.generate(ids, 20).sequences, expected)
    with pytest.raises(DraftcertError, match="Phi3ForCausalLM"):
        decoder.generate(ids, 60)


def test_models_with_biases_by_place_are_refused() -> None:
    sizes: dict[str, Any] = {"vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    local: dict[str, Any] = {"num_layers": 2, "num_heads": 4, "intermediate_size": 48, "max_position_embeddings": 256}
    neo = transformers.GPTNeoConfig(
        vocab_size=61, hidden_size=32, attention_types=[[["global", "local"], 1]], window_size=9, **local
    )
    for config in (transformers.FalconConfig(**sizes, alibi=True), transformers.BloomConfig(**sizes), neo):
        with pytest.raises(DraftcertError, match=r"Falcon|Bloom|GPTNeo"):
            GreedyTreeDecoder(model_of(config, "eager"))


def test_a_model_that_sees_what_follows_is_refused() -> None:
    config = transformers.BertConfig(**SIZES, pad_token_id=0, is_decoder=False)
    with pytest.raises(DraftcertError, match="no causal model"):
        GreedyTreeDecoder(model_of(config))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_rounding_is_no_fault(dtype: torch.dtype, architecture: str, tiny: Any) -> None:
    GreedyTreeDecoder(copy.deepcopy(tiny(architecture)).to(dtype), latency=None)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("seed", [13, 22, 26, 27])
def test_rounding_is_no_fault_where_some_texts_amplify_it(
    seed: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small layers with large weights: by ten times more in one text than in another."""
    sizes: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 4}
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(vocab_size=33, num_attention_heads=2, initializer_range=0.5, **sizes)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).to(dtype)
    before = torch.get_rng_state()
    self_test.self_test(model, fast=False)
    assert torch.equal(before, torch.get_rng_state())
    monkeypatch.setattr(Tree, "ancestor_mask", BROKEN["siblings see each other"][1])
    monkeypatch.setattr(self_test, "_code", lambda: "changed")
    with pytest.raises(DraftcertError, match="off the plain model's"):
        self_test.self_test(copy.deepcopy(model), fast=False)


def test_verdicts_name_what_they_are_of(tiny: Any, nothing_known: Path) -> None:
    GreedyTreeDecoder(tiny(), latency=None)
    (kept,) = (nothing_known / "self-tests").iterdir()
    assert set(json.loads(kept.read_text())["identity"]) >= {
        "model",
        "attention",
        "engine",
        "code",
        "versions",
        "length",
    }


def of_tokens(number: int) -> Any:
    """A model of so few tokens that all of them are special."""
    sizes: dict[str, Any] = SIZES | {"vocab_size": number}
    return model_of(transformers.LlamaConfig(**sizes, bos_token_id=0, eos_token_id=number - 1, pad_token_id=None))


@pytest.mark.parametrize("drafter", ["recycling", "recycling:prior", "lookup", "layers:0"])
def test_a_vocabulary_of_two_special_tokens_is_decoded(drafter: str, tiny: Any, hf_greedy: Any) -> None:
    model = of_tokens(2)
    assert GreedyTreeDecoder(model, drafter, latency=None).generate([0], 9, ()).tokens == [hf_greedy(model, [0], 9, -1)]


def test_a_vocabulary_of_one_token_is_refused() -> None:
    with pytest.raises(DraftcertError, match="vocabulary of one token"):
        GreedyTreeDecoder(of_tokens(1), latency=None)
