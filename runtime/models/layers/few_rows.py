"""The forward pass of Llama-like models over the few rows of draft trees, on a CPU in float32.

transformers' own forward pass spends as much time between the products of a layer as a small model spends in them, and
waits for memory in them. Here the same weights go through kernels of our own (`bindings`). The results differ from
transformers' in the last bits, as those of one row and of many rows do there.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .bindings import MOST_ROWS, Layer, Shape, library, linear, run_layers, suits

if TYPE_CHECKING:
    from ..caches import TreeCache

_MODELS = ("llama", "mistral", "qwen2", "qwen3")
"""Model types whose layers are: norm, attention with rotated queries and keys, norm, gated MLP."""


class FewRows:
    """The forward pass of `model` as it stands, for at most `MOST_ROWS` rows; see `few_rows` for which models.

    What it reads of the model, addresses included, is read once: after a change of the model (`identity.structure`)
    another one is to be made. Only one thread at a time may use it.
    """

    def __init__(self, model: Any):
        self.model = model
        body, config = model.model, model.config
        blocks = body.layers[: config.num_hidden_layers]
        self._numbers = [block.self_attn.layer_idx for block in blocks]
        kinds = getattr(config, "layer_types", None)
        self._kinds = [kinds[number] if kinds else "" for number in self._numbers]
        attention, mlp = blocks[0].self_attn, blocks[0].mlp
        keys = attention.k_proj.out_features // attention.head_dim
        self._shape = Shape(
            layers=len(blocks),
            hidden=attention.q_proj.in_features,
            heads=keys * attention.num_key_value_groups,
            key_heads=keys,
            dimension=attention.head_dim,
            intermediate=mlp.gate_proj.out_features,
            epsilon=blocks[0].input_layernorm.variance_epsilon,
            scale=attention.scaling,
        )
        self._layers = (Layer * len(blocks))()
        self._kept = [parameter.detach() for parameter in model.parameters()]  # what addresses point to stays there
        for target, block in zip(self._layers, blocks, strict=True):
            for name, module in (_linears(block) | _norms(block)).items():
                setattr(target, name, module.weight.data_ptr())
                if getattr(module, "bias", None) is not None:
                    setattr(target, f"{name}_bias", module.bias.data_ptr())

    def __call__(self, tokens: Tensor, masks: dict[str, Tensor], positions: Tensor, cache: TreeCache) -> Tensor:
        """Logits `[batch, nodes, vocab]`; arguments as transformers', with one boolean mask per kind of attention."""
        body, shape = self.model.model, self._shape
        batch, nodes = tokens.shape
        hidden = body.embed_tokens(tokens)
        cosine, sine = (part.contiguous() for part in body.rotary_emb(hidden, positions))
        added = {kind: torch.zeros(mask.shape).masked_fill_(~mask, -torch.inf) for kind, mask in masks.items()}
        everywhere = next(iter(added.values()))
        lengths = torch.tensor(cache.lengths)
        states = hidden.new_empty(batch, shape.key_heads, 0, shape.dimension)
        shape.batch, shape.nodes, shape.span = batch, nodes, everywhere.shape[-1]
        shape.lengths = lengths.data_ptr()
        for layer, number, kind in zip(self._layers, self._numbers, self._kinds, strict=True):
            keys, values = cache.layers[number].room(everywhere.shape[-1], states, states)
            layer.keys, layer.values = keys.data_ptr(), values.data_ptr()
            layer.mask = added.get(kind, everywhere).data_ptr()
            shape.capacity = keys.shape[2]
        run_layers(shape, self._layers, hidden, cosine, sine)
        rows = body.norm(hidden).view(batch * nodes, -1)
        return linear(rows, self.model.lm_head.weight, self.model.lm_head.bias).view(batch, nodes, -1)


def few_rows(model: Any) -> FewRows | None:
    """`FewRows` where it computes what the model does, faster; `None` for every other model, device or dtype.

    Models that were changed, by hooks, adapters, quantised layers, other activations or settings that differ between
    layers, keep transformers' forward pass.
    """
    kind = getattr(model.config, "model_type", None)
    code = f"transformers.models.{kind}.modeling_{kind}"
    if kind not in _MODELS or type(model).__module__ != code or not hasattr(model, "lm_head") or library() is None:
        return None
    if torch.nn.modules.module._has_any_global_hook():
        return None
    for module in model.modules():
        sources = (type(module).__module__, type(module).forward.__module__)
        known = all(source.startswith(("torch.nn.modules.", "transformers.activations", code)) for source in sources)
        if not known or "forward" in vars(module) or module._forward_hooks or module._forward_pre_hooks:
            return None
    blocks = list(model.model.layers[: model.config.num_hidden_layers])
    parts = [part for block in blocks for part in (*_linears(block).values(), *_norms(block).values())]
    if not parts or not all(map(suits, chain.from_iterable(part.parameters() for part in (*parts, model.lm_head)))):
        return None
    return FewRows(model) if len({*map(_settings, blocks)}) == 1 and _settings(blocks[0]) else None


def _linears(block: Any) -> dict[str, Any]:
    attention, mlp = block.self_attn, block.mlp
    return {
        "query": attention.q_proj,
        "key": attention.k_proj,
        "value": attention.v_proj,
        "output": attention.o_proj,
        "gate": mlp.gate_proj,
        "up": mlp.up_proj,
        "down": mlp.down_proj,
    }


def _norms(block: Any) -> dict[str, Any]:
    norms = {
        "attention_norm": block.input_layernorm,
        "mlp_norm": block.post_attention_layernorm,
        "query_norm": getattr(block.self_attn, "q_norm", None),
        "key_norm": getattr(block.self_attn, "k_norm", None),
    }
    return {name: norm for name, norm in norms.items() if norm is not None}


def _settings(block: Any) -> tuple[Any, ...] | None:
    """What the kernels are told once for all layers; `None` for a layer that they do not compute."""
    attention, norms = block.self_attn, _norms(block).values()
    plain = all(type(linear) is torch.nn.Linear for linear in _linears(block).values())
    gated = type(block.mlp.act_fn).__name__ in ("SiLU", "SiLUActivation")
    if not plain or not gated or len({norm.variance_epsilon for norm in norms}) > 1:
        return None
    shapes = (tuple(linear.weight.shape) for linear in _linears(block).values())
    return (
        *(attention.head_dim, attention.num_key_value_groups, attention.scaling),
        *(block.input_layernorm.variance_epsilon, "query_norm" in _norms(block), *shapes),
    )


__all__ = ["MOST_ROWS", "FewRows", "few_rows"]
