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

from ....theory.errors import DraftcertError
from .bindings import MOST_ROWS, Layer, Shape, library, linear, run_layers, suits

if TYPE_CHECKING:
    from ..caches import TreeCache

_MODELS = ("llama", "mistral", "qwen2", "qwen3")
"""Model types whose layers are: norm, attention with rotated queries and keys, norm, gated MLP."""


class FewRows:
    """The forward pass of `model`, for at most `MOST_ROWS` rows; see `few_rows` for which models."""

    def __init__(self, model: Any):
        self.model = model
        config = model.config
        self._numbers = [layer.self_attn.layer_idx for layer in model.model.layers]
        kinds = getattr(config, "layer_types", None) or [""] * config.num_hidden_layers
        self._kinds = [kinds[number] for number in self._numbers]
        attention = model.model.layers[0].self_attn
        keys = attention.k_proj.out_features // attention.head_dim
        self._shape = Shape(
            layers=len(self._numbers),
            hidden=config.hidden_size,
            heads=keys * attention.num_key_value_groups,
            key_heads=keys,
            dimension=attention.head_dim,
            intermediate=config.intermediate_size,
            epsilon=config.rms_norm_eps,
            scale=attention.scaling,
        )
        self._parameters = list(model.parameters())
        self._addresses: list[int] = []
        self._layers = (Layer * len(self._numbers))()

    def __call__(self, tokens: Tensor, masks: dict[str, Tensor], positions: Tensor, cache: TreeCache) -> Tensor:
        """Logits `[batch, nodes, vocab]`; arguments as transformers', with one boolean mask per kind of attention."""
        body, shape = self.model.model, self._shape
        self._look_up_weights()
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

    def _look_up_weights(self) -> None:
        """The weights' addresses, anew where they moved: `model.to` gives parameters new memory."""
        addresses = [parameter.data_ptr() for parameter in self._parameters]
        if addresses == self._addresses:
            return
        if not all(map(suits, self._parameters)):
            raise DraftcertError(
                "the model's weights are no longer dense float32 on the CPU, as they were when the decoder was made: "
                "make a new one"
            )
        self._addresses = addresses
        for target, layer in zip(self._layers, self.model.model.layers, strict=True):
            attention, mlp = layer.self_attn, layer.mlp
            linears = {
                "query": attention.q_proj,
                "key": attention.k_proj,
                "value": attention.v_proj,
                "output": attention.o_proj,
                "gate": mlp.gate_proj,
                "up": mlp.up_proj,
                "down": mlp.down_proj,
            }
            norms = {
                "attention_norm": layer.input_layernorm,
                "mlp_norm": layer.post_attention_layernorm,
                "query_norm": getattr(attention, "q_norm", None),
                "key_norm": getattr(attention, "k_norm", None),
            }
            for name, module in chain(linears.items(), norms.items()):
                if module is None:
                    continue
                setattr(target, name, module.weight.data_ptr())
                if getattr(module, "bias", None) is not None:
                    setattr(target, f"{name}_bias", module.bias.data_ptr())


def few_rows(model: Any) -> FewRows | None:
    """`FewRows` where it computes what the model does, faster; `None` for every other model, device or dtype.

    Models that were changed, by hooks, adapters or quantised layers, keep transformers' forward pass.
    """
    kind = getattr(model.config, "model_type", None)
    code = f"transformers.models.{kind}.modeling_{kind}"
    if kind not in _MODELS or type(model).__module__ != code or not hasattr(model, "lm_head") or library() is None:
        return None
    for module in model.modules():
        known = type(module).__module__.startswith(("torch.nn.modules.", "transformers.activations", code))
        if not known or module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module):
            return None
    suitable = model.config.hidden_act == "silu" and all(map(suits, model.parameters()))
    return FewRows(model) if suitable else None


__all__ = ["MOST_ROWS", "FewRows", "few_rows"]
