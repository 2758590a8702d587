"""Both implementations of the row kernels, tiny random targets of many architectures, the real model if installed."""

import functools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import transformers
from hypothesis import settings

from draftcert.runtime.rows import operators
from draftcert.runtime.rows.cpu import bindings

# How long an example takes says nothing about what it shows.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

SIZES: dict[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "head_dim": 8,
}
TOKENS: dict[str, Any] = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}
CONFIGS: dict[str, Any] = {
    "llama": lambda: transformers.LlamaConfig(**SIZES, **TOKENS),
    "smollm3": lambda: transformers.SmolLM3Config(**SIZES, **TOKENS),
    "qwen2": lambda: transformers.Qwen2Config(**SIZES, **TOKENS),
    "qwen3": lambda: transformers.Qwen3Config(**SIZES, **TOKENS),
    "mistral": lambda: transformers.MistralConfig(**SIZES, **TOKENS, sliding_window=None),
    "mistral-window": lambda: transformers.MistralConfig(**SIZES, **TOKENS, sliding_window=9),
    "gemma": lambda: transformers.GemmaConfig(**SIZES, **TOKENS),
    "gemma2": lambda: transformers.Gemma2Config(
        **SIZES,
        **TOKENS,
        sliding_window=9,
        attn_logit_softcapping=4.0,
        final_logit_softcapping=20.0,
        tie_word_embeddings=False,
    ),
    "gemma3-window": lambda: transformers.Gemma3TextConfig(
        **SIZES, **TOKENS, sliding_window=9, layer_types=["sliding_attention", "full_attention"]
    ),
    "phi3": lambda: transformers.Phi3Config(
        **SIZES,
        **TOKENS,
        sliding_window=9,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
    ),
    "olmo2": lambda: transformers.Olmo2Config(**SIZES, **TOKENS),
    "granite": lambda: transformers.GraniteConfig(
        **SIZES,
        **TOKENS,
        embedding_multiplier=3.0,
        residual_multiplier=0.4,
        attention_multiplier=0.3,
        logits_scaling=2.0,
    ),
    "gpt2": lambda: transformers.GPT2Config(vocab_size=61, n_embd=32, n_layer=2, n_head=4, n_positions=256, **TOKENS),
}


def _tiny(name: str = "llama", seed: int = 0, sharpness: float = 6.0) -> Any:
    """A random model whose distributions are sharp enough for drafts to be right now and then."""
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS[name](), dtype=torch.float32).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(sharpness)
    return model


@pytest.fixture(scope="session")
def tiny() -> Any:
    """`tiny(architecture, seed)` makes a random target; kept for the session."""
    return functools.cache(_tiny)


def _hf_greedy(model: Any, prompt: list[int], new: int, eos: int | list[int] | None = None) -> list[int]:
    """What transformers decodes greedily: the new tokens."""
    ids = torch.tensor([prompt])
    out = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False, eos_token_id=eos, pad_token_id=0
    )
    return out[0, len(prompt) :].tolist()


@pytest.fixture(scope="session")
def hf_greedy() -> Any:
    """`hf_greedy(model, prompt, new, eos)`."""
    return _hf_greedy


@pytest.fixture(scope="module", params=["reference", "kernel"])
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Rows by the reference and by the compiled kernels: both must do what the test says."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "reference":
            patch.setattr(operators, "row_stats", operators.row_stats_by_tensors)
            patch.setattr(operators, "certify", operators.certify_by_tensors)
        else:
            assert bindings.kernels() is not None
        yield request.param


@pytest.fixture(params=sorted(CONFIGS))
def architecture(request: pytest.FixtureRequest) -> str:
    """Every architecture in turn."""
    return request.param


@pytest.fixture(scope="session")
def smollm2() -> Any:
    """The real model; a test that needs it is skipped where its package is not installed."""
    from draftcert.runtime.models import default_gguf, load_model
    from draftcert.theory import DraftcertError

    try:
        default_gguf()
    except DraftcertError as error:
        pytest.skip(str(error))
    return load_model()
