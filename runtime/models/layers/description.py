"""What a model computes, layer by layer, read from its live modules.

A module is known by its code and not by its name: whatever class it is of, it is read as one of those in the tables
below if all that runs when it is called is the same (`digests.code_of`). Its settings, parts and numbers are those of
the module itself. What cannot be read so is not described, and the reason is said.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import pi, sqrt
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import torch
from torch import Tensor

from ....theory.imports import optional
from ..digests import code_of
from .bindings import suits

Entry = TypeVar("Entry")

NORMS: dict[str, tuple[str, float]] = {
    "llama.LlamaRMSNorm": ("variance_epsilon", 0.0),
    "olmo2.Olmo2RMSNorm": ("variance_epsilon", 0.0),
    "gemma2.Gemma2RMSNorm": ("eps", 1.0),
}
"""Where epsilon is, and what is added to the weight."""
ATTENTIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            *("llama.LlamaAttention", "mistral.MistralAttention", "qwen2.Qwen2Attention", "qwen3.Qwen3Attention"),
            *("smollm3.SmolLM3Attention", "gemma2.Gemma2Attention", "gemma3.Gemma3Attention", "olmo2.Olmo2Attention"),
        ),
        ("q_proj", "k_proj", "v_proj"),
    ),
    "phi3.Phi3Attention": ("qkv_proj",),
}
"""What makes queries, keys and values: a product each, or one."""
MLPS: dict[str, tuple[tuple[str, ...], str]] = {
    "llama.LlamaMLP": (("gate_proj", "up_proj"), "act_fn"),
    "phi3.Phi3MLP": (("gate_up_proj",), "activation_fn"),
}
"""What makes gates and values, and the activation of the gates."""
LAYERS: dict[str, tuple[str | None, str | None, str | None, str | None]] = {
    "llama.LlamaDecoderLayer": ("input_layernorm", None, "post_attention_layernorm", None),
    "phi3.Phi3DecoderLayer": ("input_layernorm", None, "post_attention_layernorm", None),
    "granite.GraniteDecoderLayer": ("input_layernorm", None, "post_attention_layernorm", None),
    "olmo2.Olmo2DecoderLayer": (None, "post_attention_layernorm", None, "post_feedforward_layernorm"),
    "gemma2.Gemma2DecoderLayer": (
        *("input_layernorm", "post_attention_layernorm"),
        *("pre_feedforward_layernorm", "post_feedforward_layernorm"),
    ),
}
"""The norms before and after attention, before and after the MLP."""
ROTATIONS = {
    "llama.LlamaRotaryEmbedding": False,
    "olmo2.Olmo2RotaryEmbedding": False,
    "gemma3.Gemma3RotaryEmbedding": True,
}
"""Whether kinds of attention are rotated differently."""
BODIES: dict[str, None] = dict.fromkeys(
    (
        *("llama.LlamaModel", "mistral.MistralModel", "qwen2.Qwen2Model", "gemma.GemmaModel", "gemma2.Gemma2Model"),
        *("gemma3.Gemma3TextModel", "granite.GraniteModel"),
    )
)
MODELS: dict[str, None] = dict.fromkeys(
    ("llama.LlamaForCausalLM", "gemma2.Gemma2ForCausalLM", "granite.GraniteForCausalLM")
)
"""What is around the layers, and around that: nothing to look up but that it is known."""
_GELU = sqrt(8 / pi)
ACTIVATIONS = {
    **dict.fromkeys(("SiLU", "SiLUActivation"), (1.0, 0.0)),
    **dict.fromkeys(("GELUTanh", "NewGELUActivation", "FastGELUActivation"), (_GELU, 0.044715 * _GELU)),
    "QuickGELUActivation": (1.702, 0.0),
}
"""By names of classes, `linear` and `cubic` of `layers.h`; the module must give these numbers, too."""


class NotDescribedError(Exception):
    """The model computes something that no description says; the message says what."""


@dataclass(frozen=True, eq=False)
class Norm:
    """x / sqrt(mean of x^2 + epsilon) times (offset + parameter)."""

    parameter: Tensor
    epsilon: float
    offset: float


@dataclass(frozen=True, eq=False)
class Rows:
    """Some of the outputs of a linear layer."""

    linear: torch.nn.Linear
    rows: slice

    def __len__(self) -> int:
        return self.rows.stop - self.rows.start


@dataclass(frozen=True, eq=False)
class LayerDescription:
    """One layer, in the terms of `layers.h`.

    `number`: its place in the cache. `kind`: of its attention, which says what it sees and how it is rotated, where
    these differ. `rotated`: whether it is at all.
    """

    number: int
    kind: str
    rotated: bool
    sizes: dict[str, int]
    factors: dict[str, float]
    norms: dict[str, Norm]
    matrices: dict[str, Rows]


@dataclass(frozen=True, eq=False)
class ModelDescription:
    """All of a model: embedding times `multiplier`, layers, norm, head; logits are divided and then capped (0: not)."""

    embedding: torch.nn.Module
    multiplier: float
    rotation: torch.nn.Module
    rotated_by_kind: bool
    layers: tuple[LayerDescription, ...]
    norm: Norm
    head: Rows
    divisor: float
    softcap: float


def describe(model: Any) -> ModelDescription:
    """The description of a model as it stands.

    Raises:
        NotDescribedError: there is none, for instance for a changed model: hooks, adapters, quantised layers.

    >>> from transformers import Olmo2Config, Olmo2ForCausalLM
    >>> sizes = dict(vocab_size=9, hidden_size=8, intermediate_size=12, num_hidden_layers=2, num_attention_heads=2)
    >>> model = Olmo2ForCausalLM(Olmo2Config(**sizes, pad_token_id=0))
    >>> layer = describe(model).layers[1]
    >>> layer.sizes["intermediate"], sorted(layer.norms)
    (12, ['attended_norm', 'key_norm', 'query_norm', 'transformed_norm'])
    >>> model.model.layers[1].mlp.act_fn = torch.nn.Tanh()
    >>> describe(model)
    Traceback (most recent call last):
    ...
    draftcert.runtime.models.layers.description.NotDescribedError: the activation Tanh is not known
    """
    with optional("hf"):
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    _entry(model, MODELS)
    body = model.model
    _entry(body, BODIES)
    if torch.nn.modules.module._has_any_global_hook():
        raise NotDescribedError("all modules have hooks")
    for name, module in model.named_modules():
        own = any(isinstance(getattr(type(module), key, None), FunctionType) for key in vars(module))
        if own or module._forward_hooks or module._forward_pre_hooks:
            raise NotDescribedError(f"{name or 'the model'} has a hook, or a method of its own")
    for name, parameter in model.named_parameters():
        if not suits(parameter):
            raise NotDescribedError(f"{name} is no dense float32 tensor on the CPU")
    attention = ALL_ATTENTION_FUNCTIONS.get(model.config._attn_implementation)
    if attention is not None and not _is_transformers(attention.__code__.co_filename):
        raise NotDescribedError(f"the attention '{model.config._attn_implementation}' was replaced")
    rotation, kinds = body.rotary_emb, getattr(body.config, "layer_types", None)
    rotated_by_kind, types = _entry(rotation, ROTATIONS), rotation.rope_type
    if set(types.values() if isinstance(types, dict) else [types]) & {"dynamic", "longrope"}:
        raise NotDescribedError("rotations depend on how long the longest text is")
    blocks = body.layers[: body.config.num_hidden_layers]
    if not blocks:
        raise NotDescribedError("it has no layers")
    return ModelDescription(
        embedding=body.embed_tokens,
        multiplier=float(body.embedding_multiplier) if _uses(body, "embedding_multiplier") else 1.0,
        rotation=rotation,
        rotated_by_kind=rotated_by_kind,
        layers=tuple(
            _layer(block, kinds[number] if kinds and _uses(body, "layer_types") else "")
            for number, block in enumerate(blocks)
        ),
        norm=_norm(body.norm),
        head=_rows(model, ("lm_head",), 1)[0],
        divisor=float(model.config.logits_scaling) if _uses(model, "logits_scaling") else 1.0,
        softcap=_cap(model.config.final_logit_softcapping) if _uses(model, "final_logit_softcapping") else 0.0,
    )


def _layer(block: Any, kind: str) -> LayerDescription:
    attention, mlp = block.self_attn, block.mlp
    around, makers, (gated, activation) = _entry(block, LAYERS), _entry(attention, ATTENTIONS), _entry(mlp, MLPS)
    size = attention.head_dim
    query, key, value = _rows(attention, makers, 3, attention.config.num_attention_heads * size)
    gate, up = _rows(mlp, gated, 2)
    heads, key_heads = len(query) // size, len(key) // size
    if len(query) != heads * size or len(key) != len(value) or heads != key_heads * attention.num_key_value_groups:
        raise NotDescribedError(f"{len(query)} queries, {len(key)} keys and {len(value)} values are no heads of {size}")
    named = dict(zip(("attention_norm", "attended_norm", "mlp_norm", "transformed_norm"), around, strict=True))
    norms = {name: _norm(getattr(block, place)) for name, place in named.items() if place}
    if _uses(attention, "q_norm"):
        norms |= {"query_norm": _norm(attention.q_norm), "key_norm": _norm(attention.k_norm)}
    linear, cubic = _activation(getattr(mlp, activation))
    return LayerDescription(
        number=attention.layer_idx,
        kind=kind,
        rotated=bool(attention.use_rope) if _uses(attention, "use_rope") else True,
        sizes={"heads": heads, "key_heads": key_heads, "dimension": size, "intermediate": len(gate)},
        factors={
            "scale": float(attention.scaling),
            "softcap": _cap(attention.attn_logit_softcapping) if _uses(attention, "attn_logit_softcapping") else 0.0,
            "linear": linear,
            "cubic": cubic,
            "residual": float(block.residual_multiplier) if _uses(block, "residual_multiplier") else 1.0,
        },
        norms=norms,
        matrices={
            **{"query": query, "key": key, "value": value, "output": _rows(attention, ("o_proj",), 1)[0]},
            **{"gate": gate, "up": up, "down": _rows(mlp, ("down_proj",), 1)[0]},
        },
    )


def _norm(module: Any) -> Norm:
    epsilon, offset = _entry(module, NORMS)
    return Norm(module.weight, float(getattr(module, epsilon)), offset)


def _rows(module: Any, names: tuple[str, ...], parts: int, first: int | None = None) -> list[Rows]:
    """So many parts of these layers: each one's outputs, or those of a single one, the first part `first` long."""
    linears = [getattr(module, name) for name in names]
    for name, linear in zip(names, linears, strict=True):
        if type(linear) is not torch.nn.Linear or code_of(torch.nn.Linear):
            raise NotDescribedError(f"{name} is a {type(linear).__name__} that is no plain linear layer")
    if len(linears) == parts:
        return [Rows(linear, slice(0, linear.out_features)) for linear in linears]
    size = linears[0].out_features
    first = size // parts if first is None else first
    ends = [first + (size - first) * part // (parts - 1) for part in range(parts)]
    return [Rows(linears[0], slice(start, end)) for start, end in zip([0, *ends], ends, strict=False)]


def _activation(module: Any) -> tuple[float, float]:
    with optional("hf"):
        from transformers import activations

    name, x = type(module).__name__, torch.linspace(-20, 20, 101)
    if type(module) in (getattr(place, name, None) for place in (torch.nn, activations)):
        linear, cubic = ACTIVATIONS.get(name, (0.0, 0.0))
        with torch.inference_mode():
            if torch.allclose(module(x), x * torch.sigmoid(linear * x + cubic * x**3), atol=1e-5):
                return linear, cubic
    raise NotDescribedError(f"the activation {name} is not known")


def _cap(value: float | None) -> float:
    if value is not None and value <= 0:
        raise NotDescribedError(f"a cap of {value}")
    return float(value or 0)


def _uses(module: Any, name: str) -> bool:
    """Whether the code of the module's forward names that: one that is there need not be used."""
    return name in inspect.unwrap(type(module).forward).__code__.co_names


def _entry(module: Any, table: Mapping[str, Entry]) -> Entry:
    """What the table says of modules with the code of this one."""
    code = code_of(type(module))
    if all(_is_transformers(file) for file, _ in code):
        for name, entry in table.items():
            if set(code.values()) == _known(name):
                return entry
    raise NotDescribedError(f"the code of {type(module).__name__} is not known")


@cache
def _known(name: str) -> set[str]:
    """The code of one of transformers' classes as it comes."""
    module, _, kind = name.partition(".")
    code = code_of(getattr(importlib.import_module(f"transformers.models.{module}.modeling_{module}"), kind))
    own = any(place == f"{kind}.forward" and _is_transformers(file) for file, place in code)
    if not own or not all(_is_transformers(file) for file, _ in code):
        raise NotDescribedError(f"{name} of transformers was changed")
    return set(code.values())


def _is_transformers(file: str) -> bool:
    with optional("hf"):
        import transformers

    return Path(file).is_relative_to(Path(transformers.__file__).parent)
