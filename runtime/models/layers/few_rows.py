"""The forward pass of Llama-like models over the few rows of draft trees, on a CPU in float32.

transformers' own forward pass spends as much time between the products of a layer as a small model spends in them, and
waits for memory in them. Here the same weights go through kernels of our own (`bindings`), read as the checkpoint
stores them where that is known (`Stored`). The results differ from transformers' in the last bits, as those of one row
and of many rows do there; here those of one row and of many rows are equal.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .bindings import FLOAT32, Layer, Matrix, Shape, Stored, library, linear, norm, run_layers, suits

if TYPE_CHECKING:
    from ..caches import TreeCache

_MODELS = ("llama", "mistral", "qwen2", "qwen3")
"""Model types whose layers are: norm, attention with rotated queries and keys, norm, gated MLP."""


class FewRows:
    """The forward pass of `model` as it stands; see `few_rows` for which models.

    A node's logits depend on its token, its position and what it sees, to the last bit: not on other nodes or
    sequences, nor on where in the cache things lie, nor on the number of threads (`layers.h`).

    What it reads of the model, addresses included, is read once: after a change of the model (`identity.structure`)
    another one is to be made; after one of the numbers in its tensors, `look_up` is to be called. Only one thread at a
    time may use it. `level`: instruction set, as in `layers.h`.
    """

    def __init__(self, model: Any, level: int = -1):
        self.model, self.level = model, level
        body, config = model.model, model.config
        self._blocks = body.layers[: config.num_hidden_layers]
        self._numbers = [block.self_attn.layer_idx for block in self._blocks]
        kinds = getattr(config, "layer_types", None)
        self._kinds = [kinds[number] if kinds else "" for number in self._numbers]
        attention, mlp = self._blocks[0].self_attn, self._blocks[0].mlp
        keys = attention.k_proj.out_features // attention.head_dim
        self._shape = Shape(
            layers=len(self._blocks),
            hidden=attention.q_proj.in_features,
            heads=keys * attention.num_key_value_groups,
            key_heads=keys,
            dimension=attention.head_dim,
            intermediate=mlp.gate_proj.out_features,
            epsilon=self._blocks[0].input_layernorm.variance_epsilon,
            scale=attention.scaling,
        )
        self._layers = (Layer * len(self._blocks))()
        self._kept = [parameter.detach() for parameter in model.parameters()]  # what addresses point to stays there
        self._head: Tensor | Stored = model.lm_head.weight
        for target, block in zip(self._layers, self._blocks, strict=True):
            for name, module in _norms(block).items():
                setattr(target, name, module.weight.data_ptr())
            for name, module in _linears(block).items():
                if module.bias is not None:
                    setattr(target, f"{name}_bias", module.bias.data_ptr())
        self.look_up()

    def look_up(self) -> None:
        """Read each weight in its stored form where that is what the model's tensor holds, else the tensor itself."""
        for target, block in zip(self._layers, self._blocks, strict=True):
            for name, module in _linears(block).items():
                weight = _stored_or_dense(module.weight)
                dense = isinstance(weight, Tensor)
                setattr(target, name, Matrix(weight.data_ptr(), FLOAT32) if dense else weight.matrix())
        self._head = _stored_or_dense(self.model.lm_head.weight)

    def described(self) -> list[Any]:
        """What its speed depends on beside the model: the compiled kernels, and how the weights are stored."""
        kernels, names = library(), [field[0] for field in Layer._fields_ if field[1] is Matrix]
        formats = {getattr(layer, name).format for layer in self._layers for name in names}
        formats.add(self._head.format if isinstance(self._head, Stored) else FLOAT32)
        return [kernels and Path(kernels._name).name, sorted(formats)]

    def __call__(
        self, tokens: Tensor, masks: dict[str, Tensor], positions: Tensor, cache: TreeCache, last: Tensor | None = None
    ) -> Tensor:
        """Logits `[batch, nodes, vocab]`; arguments as transformers', with one boolean mask per kind of attention.

        `last` `[batch]`: the only node of each sequence whose logits, then `[batch, 1, vocab]`, are wanted.
        """
        body, shape = self.model.model, self._shape
        batch, nodes = tokens.shape
        hidden = body.embed_tokens(tokens)
        cosine, sine = (part.contiguous() for part in body.rotary_emb(hidden, positions))
        seen = {kind: _places(mask) for kind, mask in masks.items()}
        everywhere, span = next(iter(seen.values())), next(iter(masks.values())).shape[-1]
        lengths = torch.tensor(cache.lengths)
        states = hidden.new_empty(batch, shape.key_heads, 0, shape.dimension)
        shape.batch, shape.nodes, shape.span = batch, nodes, span
        shape.lengths = lengths.data_ptr()
        for layer, number, kind in zip(self._layers, self._numbers, self._kinds, strict=True):
            keys, values = cache.layers[number].room(span, states, states)
            layer.keys, layer.values = keys.data_ptr(), values.data_ptr()
            layer.starts, layer.places = (part.data_ptr() for part in seen.get(kind, everywhere))
            shape.capacity = keys.shape[2]
        run_layers(shape, self._layers, hidden, cosine, sine, self.level)
        if last is not None:
            hidden = hidden[torch.arange(batch), last]
        rows = norm(hidden.view(-1, shape.hidden), body.norm.weight, body.norm.variance_epsilon, self.level)
        logits = linear(rows, self._head, self.model.lm_head.bias, self.level)
        return logits.view(batch, -1, logits.shape[-1])


def _stored_or_dense(weight: Tensor) -> Tensor | Stored:
    stored = getattr(weight, "stored", None)
    return stored if isinstance(stored, Stored) and stored.holds(weight) else weight


def _places(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Of a mask `[batch, 1, nodes, span]` all places that nodes see, and where those of each node start."""
    starts = torch.zeros(mask.shape[0] * mask.shape[2] + 1, dtype=torch.int64)
    starts[1:] = mask.sum(-1).flatten().cumsum(0)
    return starts, mask.nonzero()[:, -1].int()


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
    if (
        not blocks
        or type(model.lm_head) is not torch.nn.Linear
        or type(model.model.norm) is not type(blocks[0].input_layernorm)
    ):
        return None
    parts = [part for block in blocks for part in (*_linears(block).values(), *_norms(block).values())]
    parts += [model.model.norm, model.lm_head]
    if not all(map(suits, chain.from_iterable(part.parameters() for part in parts))):
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


__all__ = ["FewRows", "few_rows"]
