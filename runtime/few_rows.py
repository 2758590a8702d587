"""The forward pass of Llama-like models over the few rows of draft trees, written out for a CPU in float32.

transformers' own forward pass spends as much time between the products of a layer as a small model spends in them. Here
the same modules' weights go through `linear`, query heads that share keys attend to them in one product, and nothing
is done twice. The results differ from transformers' in the last bits, as those of one row and of many rows do there.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention, silu

from .cache import TreeCache
from .cpu.linear import MOST_ROWS, kernel, linear, suits

_MODELS = ("llama", "mistral", "qwen2", "qwen3")
"""Model types whose layers are: norm, attention with rotated queries and keys, norm, gated MLP."""


class FewRows:
    """The forward pass of `model`, for at most `MOST_ROWS` rows; see `few_rows` for which models."""

    def __init__(self, model: Any):
        self.model = model
        config = model.config
        kinds = getattr(config, "layer_types", None) or [None] * config.num_hidden_layers
        self._kinds = [kinds[layer.self_attn.layer_idx] for layer in model.model.layers]

    def __call__(self, tokens: Tensor, masks: dict[str, Tensor], positions: Tensor, cache: TreeCache) -> Tensor:
        """Logits `[batch, nodes, vocab]`; arguments as transformers', with one boolean mask per kind of attention."""
        body = self.model.model
        batch, nodes = tokens.shape
        first = body.layers[0].self_attn
        heads_per_key, dimension = first.num_key_value_groups, first.head_dim
        # Query heads that share keys become rows of one product, hence so do the rows of the mask.
        added = {
            kind: torch.zeros(mask.shape).masked_fill_(~mask, -torch.inf).repeat(1, 1, heads_per_key, 1)
            for kind, mask in masks.items()
        }
        everywhere = next(iter(added.values()))
        hidden = body.embed_tokens(tokens).view(batch * nodes, -1)
        cos, sin = (part.view(batch * nodes, 1, dimension) for part in body.rotary_emb(hidden, positions))
        # With the halves of a head exchanged, rotation is x cos + exchanged sin, the first half of sin negated.
        half = dimension // 2
        sin = torch.cat((-sin[..., :half], sin[..., half:]), -1)
        for layer, kind in zip(body.layers, self._kinds, strict=True):
            attention, mlp = layer.self_attn, layer.mlp
            normed = _norm(layer.input_layernorm, hidden)
            query, key, value = (
                linear(normed, projection.weight, projection.bias).view(batch * nodes, -1, dimension)
                for projection in (attention.q_proj, attention.k_proj, attention.v_proj)
            )
            if hasattr(attention, "q_norm"):
                query, key = _norm(attention.q_norm, query), _norm(attention.k_norm, key)
            query, key = (torch.addcmul(x * cos, x.roll(half, -1), sin) for x in (query, key))
            keys, values = cache.update(
                key.view(batch, nodes, -1, dimension).transpose(1, 2),
                value.view(batch, nodes, -1, dimension).transpose(1, 2),
                attention.layer_idx,
            )
            shared = keys.shape[1]
            grouped = query.view(batch, nodes, shared, heads_per_key, dimension).permute(0, 2, 3, 1, 4)
            attended = scaled_dot_product_attention(
                grouped.reshape(batch, shared, heads_per_key * nodes, dimension),
                keys,
                values,
                added.get(kind, everywhere),
                scale=attention.scaling,
            )
            attended = attended.view(batch, shared, heads_per_key, nodes, dimension).permute(0, 3, 1, 2, 4)
            output = attention.o_proj
            hidden = hidden + linear(attended.reshape(batch * nodes, -1), output.weight, output.bias)
            normed = _norm(layer.post_attention_layernorm, hidden)
            gate = silu(linear(normed, mlp.gate_proj.weight, mlp.gate_proj.bias), inplace=True)
            gate *= linear(normed, mlp.up_proj.weight, mlp.up_proj.bias)
            hidden += linear(gate, mlp.down_proj.weight, mlp.down_proj.bias)
        head = self.model.lm_head
        return linear(_norm(body.norm, hidden), head.weight, head.bias).view(batch, nodes, -1)


def few_rows(model: Any) -> FewRows | None:
    """`FewRows` where it computes what the model does, faster; `None` for every other model, device or dtype.

    Models that were changed, by hooks, adapters or quantised layers, keep transformers' forward pass.
    """
    kind = getattr(model.config, "model_type", None)
    code = f"transformers.models.{kind}.modeling_{kind}"
    if kind not in _MODELS or type(model).__module__ != code or not hasattr(model, "lm_head") or kernel() is None:
        return None
    for module in model.modules():
        known = type(module).__module__.startswith(("torch.nn.modules.", "transformers.activations", code))
        changed = module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module)
        if not known or changed or (type(module) is torch.nn.Linear and not suits(module.weight, module.bias)):
            return None
    return FewRows(model) if model.config.hidden_act == "silu" else None


def _norm(module: Any, rows: Tensor) -> Tensor:
    return torch.rms_norm(rows, module.weight.shape, module.weight, module.variance_epsilon)


__all__ = ["MOST_ROWS", "FewRows", "few_rows"]
