"""The written-out forward pass computes what transformers' does."""

import copy
import functools
from typing import Any

import pytest
import torch
import transformers
from torch.nn.utils import prune
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.llama import modeling_llama

from draftcert.runtime.models.layers.bindings import linear
from draftcert.runtime.models.layers.description import NotDescribedError
from draftcert.runtime.models.layers.few_rows import FewRows
from draftcert.runtime.trees.decoder import GreedyTreeDecoder
from draftcert.runtime.trees.drafters import keep_layers
from draftcert.runtime.trees.forward import TreeForward
from draftcert.runtime.trees.tree import Tree
from tests.runtime.conftest import CONFIGS
from tests.runtime.trees.test_decoder import without_cache

TREES = [
    Tree((3, 5, 6, 7, 5, 9, 60), (-1, 0, 0, 1, 2, 2, 4)),
    Tree((9, 1, 2, 3), (-1, 0, 0, 0)),
    Tree((1,), (-1,)),
]
PROMPTS = [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], [4, 4], [7, 8, 9]]


def passes(model: Any, fast: bool, level: int = -1) -> list[torch.Tensor]:
    """Logits of two passes over ragged trees, the second after a path that is no prefix of the nodes."""
    forward = TreeForward(model, fast)
    assert (forward.few_rows is not None) == fast
    if forward.few_rows is not None:
        forward.few_rows.level = level
    cache = forward.new_cache([len(prompt) for prompt in PROMPTS], 3)
    with torch.inference_mode():
        forward.prefill(PROMPTS, cache)
        cache.lengths[:] = [len(prompt) for prompt in PROMPTS]
        first = forward(TREES, cache)
        for row, path in enumerate(([0, 2, 5], [0, 3], [0])):
            cache.commit(row, path)
        return [*first, *forward(TREES, cache)]


def check(model: Any, level: int = -1) -> None:
    for found, expected in zip(passes(model, fast=True, level=level), passes(model, fast=False), strict=True):
        assert torch.allclose(found, expected, atol=2e-4, rtol=2e-4)


DESCRIBED = [name for name in CONFIGS if name != "gpt2"]


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("name", DESCRIBED)
def test_logits_are_those_of_transformers(name: str, level: int, tiny: Any) -> None:
    try:
        linear(torch.ones(1, 1), torch.ones(1, 1), level=level)
    except RuntimeError:
        pytest.skip("this machine lacks the instruction set")
    check(tiny(name), level)


def test_a_cache_that_grows_and_one_that_was_never_filled(tiny: Any) -> None:
    tree = Tree((3, *range(20)), (-1, *range(20)))
    found = []
    for fast in (True, False):
        forward = TreeForward(tiny(), fast)
        cache = forward.new_cache([1], 1)
        with torch.inference_mode():
            found.append(forward([tree], cache)[0])
            cache.commit(0, range(0, 21, 3))
            found.append(forward([tree], cache)[0])
            assert cache.capacity > 21
    for fast, usual in zip(found[:2], found[2:], strict=True):
        assert torch.allclose(fast, usual, atol=2e-4, rtol=2e-4)


def changed(model: Any, what: str) -> Any:
    """Changes a model as its user may at any time; the change is one that the output shows."""
    torch.manual_seed(3)
    attention, mlp = model.model.layers[0].self_attn, model.model.layers[0].mlp
    double = lambda module, arguments, output: 2 * output  # noqa: E731
    new = {name: torch.randn_like(tensor) for name, tensor in model.state_dict().items()}
    linear = torch.nn.Linear(32, 32, bias=False)

    class Adapter(torch.nn.Module):
        def __init__(self, base: Any):
            super().__init__()
            self.base, self.low, self.high = base, torch.nn.Linear(32, 4), torch.nn.Linear(4, 32)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.base(x) + self.high(self.low(x))

    forward = mlp.forward
    {
        "assigned": lambda: model.load_state_dict(new, assign=True),
        "moved": lambda: [setattr(p, "data", p.data * 1.5) for p in model.parameters()],
        "in place": lambda: model.lm_head.weight.data.copy_(model.lm_head.weight.data.flip(0)),
        "replaced": lambda: setattr(attention, "q_proj", linear),
        "wrapped": lambda: setattr(attention, "q_proj", Adapter(attention.q_proj)),
        "hooked": lambda: mlp.register_forward_hook(double),
        "patched": lambda: setattr(mlp, "forward", lambda x: 2 * forward(x)),
        "masked": lambda: prune.l1_unstructured(attention.v_proj, "weight", 0.5),
        "shortened": lambda: setattr(model.model, "layers", model.model.layers[:1]),
        "fewer layers": lambda: setattr(model.config, "num_hidden_layers", 1),
        "scaled": lambda: setattr(attention, "scaling", 2.0),
        "activated": lambda: setattr(mlp, "act_fn", torch.nn.Tanh()),
        "normed": lambda: setattr(model.model.layers[1].input_layernorm, "variance_epsilon", 3.0),
        "all normed": lambda: [
            setattr(m, "variance_epsilon", 3.0) for m in model.modules() if "Norm" in type(m).__name__
        ],
    }[what]()
    return model


CHANGES = (
    *("assigned", "moved", "in place", "replaced", "wrapped", "hooked", "patched", "masked", "shortened"),
    *("fewer layers", "scaled", "activated", "normed", "all normed"),
)


@pytest.mark.parametrize("what", CHANGES)
def test_a_model_that_was_changed_is_decoded_as_it_stands(what: str, tiny: Any) -> None:
    """Whether before the decoder was made or after."""
    prompt = [5, 17, 3, 17, 3, 42]
    model = copy.deepcopy(tiny())
    decoder = GreedyTreeDecoder(model, latency=None)
    before = decoder.generate(prompt, 24, ()).tokens
    changed(model, what)
    expected = [without_cache(model, prompt, 24)]
    assert expected != before
    assert decoder.generate(prompt, 24, ()).tokens == expected
    assert GreedyTreeDecoder(model, latency=None).generate(prompt, 24, ()).tokens == expected


def with_random_norms(model: Any) -> Any:
    """A copy: in a new model norms have no numbers of their own."""
    model = copy.deepcopy(model)
    source = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        if parameter.ndim == 1:
            parameter.data += torch.randn(parameter.shape, generator=source) / 2
    return model


def test_code_that_was_changed_for_all_models(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its class, by a function it calls, by the attention that is looked up by name, well disguised or not."""
    model, prompt = with_random_norms(tiny()), [5, 17, 3, 17, 3, 42]
    decoder = GreedyTreeDecoder(model, latency=None)
    before = decoder.generate(prompt, 24, ()).tokens
    norm, rotate = modeling_llama.LlamaRMSNorm, modeling_llama.apply_rotary_pos_emb
    sdpa = ALL_ATTENTION_FUNCTIONS["sdpa"]
    forward = norm.forward
    doubled = functools.wraps(forward)(lambda self, x: 2 * forward(self, x))
    turned = functools.wraps(rotate)(lambda q, k, cos, sin: rotate(q, k, -cos, sin))
    for patched in (
        lambda patch: patch.setattr(norm, "forward", doubled),
        lambda patch: patch.setattr(norm, "forward", transformers.models.gemma2.modeling_gemma2.Gemma2RMSNorm._norm),
        lambda patch: patch.setattr(norm, "__call__", doubled, raising=False),
        lambda patch: patch.setattr(modeling_llama, "apply_rotary_pos_emb", turned),
        lambda patch: patch.setitem(
            ALL_ATTENTION_FUNCTIONS, "sdpa", lambda *given, **named: (2 * sdpa(*given, **named)[0], None)
        ),
    ):
        with monkeypatch.context() as patch:
            for module in model.modules():
                if type(module) is norm:
                    patch.setattr(module, "eps", 1e-6, raising=False)
            patched(patch)
            expected = [without_cache(model, prompt, 24)]
            assert expected != before
            assert decoder.generate(prompt, 24, ()).tokens == expected
            with pytest.raises(NotDescribedError, match=r"is not known|was changed|was replaced"):
                FewRows(model)
    assert decoder.generate(prompt, 24, ()).tokens == before


SETTINGS: dict[str, tuple[str, Any]] = {
    "an epsilon": ("gemma2", lambda model: setattr(model.model.layers[1].pre_feedforward_layernorm, "eps", 3.0)),
    "another epsilon": (
        "granite",
        lambda model: setattr(model.model.layers[0].post_attention_layernorm, "variance_epsilon", 300.0),
    ),
    "a scale": ("smollm3", lambda model: setattr(model.model.layers[0].self_attn, "scaling", 5.0)),
    "a cap of scores": (
        "gemma2",
        lambda model: setattr(model.model.layers[0].self_attn, "attn_logit_softcapping", 0.1),
    ),
    "no cap of scores": (
        "gemma2",
        lambda model: [
            (setattr(block.self_attn, "attn_logit_softcapping", None), setattr(block.self_attn, "scaling", 9.0))
            for block in model.model.layers
        ],
    ),
    "an activation": ("gemma2", lambda model: setattr(model.model.layers[0].mlp, "act_fn", torch.nn.SiLU())),
    "a residual": ("granite", lambda model: setattr(model.model.layers[1], "residual_multiplier", 4.0)),
    "embeddings": ("granite", lambda model: setattr(model.model, "embedding_multiplier", 0.01)),
    "scaled embeddings": ("gemma2", lambda model: model.model.embed_tokens.embed_scale.mul_(0.01)),
    "no rotation": ("smollm3", lambda model: setattr(model.model.layers[1].self_attn, "use_rope", False)),
    "a norm's numbers": ("olmo2", lambda model: model.model.layers[0].self_attn.q_norm.weight.data.mul_(-2)),
    "an offset norm's numbers": ("gemma2", lambda model: model.model.norm.weight.data.uniform_(-2, 2)),
    "one product for three": ("phi3", lambda model: model.model.layers[0].self_attn.qkv_proj.weight.data.mul_(-1)),
}


@pytest.mark.parametrize("what", SETTINGS)
def test_a_described_setting_is_the_modules_own(what: str, tiny: Any) -> None:
    """Before the decoder was made or after; none of these makes it slower."""
    name, change = SETTINGS[what]
    model, prompt = with_random_norms(tiny(name)), [5, 17, 3, 17, 3, 42]
    decoder = GreedyTreeDecoder(model, latency=None)
    before = decoder.generate(prompt, 24, ()).tokens
    with torch.no_grad():
        change(model)
    check(model)
    expected = [without_cache(model, prompt, 24)]
    assert expected != before
    assert decoder.generate(prompt, 24, ()).tokens == expected


def test_classes_with_the_same_code_are_described_whatever_they_are_called(tiny: Any) -> None:
    model = copy.deepcopy(tiny())
    for block in model.model.layers:
        block.mlp.__class__ = type("Renamed", (type(block.mlp),), {})
    check(model)


def test_biases_scaled_rotations_and_windows_of_some_layers(tiny: Any) -> None:
    torch.manual_seed(1)
    sizes: dict[str, Any] = {"vocab_size": 61, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3}
    heads: dict[str, Any] = {
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 256,
    }
    scaled: dict[str, Any] = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    scaled |= {"original_max_position_embeddings": 16, "rope_theta": 10000.0}
    biased: dict[str, Any] = {"attention_bias": True, "mlp_bias": True}
    kinds: dict[str, Any] = {
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "sliding_window": 5,
    }
    for config in (
        transformers.LlamaConfig(**sizes, **heads, **biased, rope_parameters=scaled),
        transformers.Qwen3Config(**sizes, **heads, **kinds, use_sliding_window=True),
    ):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        check(model)
    check(keep_layers(tiny("llama"), [1]))


class Adapter(torch.nn.Linear):
    pass


class Subclass(torch.Tensor):
    """As quantised weights are."""


UNKNOWN: dict[str, tuple[str, Any]] = {
    "the code of GPT2LMHeadModel is not known": ("gpt2", lambda model: None),
    "model.embed_tokens.weight is no dense float32 tensor on the CPU": ("llama", lambda model: model.bfloat16()),
    "model.layers.1.mlp has a hook, or a method of its own": (
        "llama",
        lambda model: model.model.layers[1].mlp.register_forward_hook(lambda *_: None),
    ),
    "model.layers.0.input_layernorm has a hook, or a method of its own": (
        "gemma2",
        lambda model: setattr(model.model.layers[0].input_layernorm, "_norm", lambda x: 2 * x),
    ),
    "q_proj is a Adapter that is no plain linear layer": (
        "gemma2",
        lambda model: setattr(model.model.layers[0].self_attn.q_proj, "__class__", Adapter),
    ),
    "lm_head.weight is no dense float32 tensor on the CPU": (
        "phi3",
        lambda model: setattr(model.lm_head, "weight", torch.nn.Parameter(model.lm_head.weight.as_subclass(Subclass))),
    ),
    "the activation ReLU is not known": (
        "olmo2",
        lambda model: setattr(model.model.layers[1].mlp, "act_fn", torch.nn.ReLU()),
    ),
    "the activation GELUTanh is not known": (
        "gemma",
        lambda model: setattr(model.model.layers[1].mlp.act_fn, "act", torch.nn.functional.gelu),
    ),
    "rotations depend on how long the longest text is": (
        "phi3",
        lambda model: setattr(model.model.rotary_emb, "rope_type", "longrope"),
    ),
    "a cap of 0.0": ("gemma2", lambda model: setattr(model.config, "final_logit_softcapping", 0.0)),
    "it has no layers": ("qwen3", lambda model: setattr(model.config, "num_hidden_layers", 0)),
}


@pytest.mark.parametrize("reason", UNKNOWN)
def test_what_no_description_says_keeps_transformers_forward_pass(reason: str, tiny: Any) -> None:
    name, change = UNKNOWN[reason]
    model = copy.deepcopy(tiny(name))
    change(model)
    forward = TreeForward(model)
    assert forward.few_rows is None
    assert forward.not_fast == reason
