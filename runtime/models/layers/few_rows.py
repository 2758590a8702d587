"""The forward pass of described models over the few rows of draft trees, on a CPU in float32.

transformers' own forward pass spends as much time between the products of a layer as a small model spends in them, and
waits for memory in them. Here the same weights go through kernels of our own (`bindings`), read as the checkpoint
stores them where that is known (`Stored`). The results differ from transformers' in the last bits, as those of one row
and of many rows do there; here those of one row and of many rows are equal.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from . import bindings
from .bindings import MATRICES, Layer, Shape, Stored, library, linear, normed, run_layers, softcap
from .description import Norm, NotDescribedError, Rows, describe

if TYPE_CHECKING:
    from ..caches import TreeCache, TreeLayer


class FewRows:
    """The forward pass of `model` as it stands, where it is described (`description`).

    A node's logits depend on its token, its position and what it sees, to the last bit: not on other nodes or
    sequences, nor on where in the cache things lie, nor on the number of threads (`layers.h`).

    What it reads of the model, addresses included, is read once: after a change of the model (`digests.structure`)
    another one is to be made; after one of the numbers in its tensors, `look_up` is to be called. Only one thread at a
    time may use it. `level`: instruction set, as in `layers.h`.

    Raises:
        NotDescribedError: no such pass computes what the model does; the message says why.
    """

    def __init__(self, model: Any, level: int = -1):
        if (kernels := library()) is None:
            raise NotDescribedError("the layer kernels cannot be compiled")
        self.level, self._library, self._model = level, kernels, describe(model)
        self._layers = (Layer * len(self._model.layers))()
        for target, layer in zip(self._layers, self._model.layers, strict=True):
            for name, value in chain(layer.sizes.items(), layer.factors.items()):
                setattr(target, name, value)
        self.look_up()

    def look_up(self) -> None:
        """Read each weight in its stored form where that is what the model's tensor holds, else the tensor itself."""
        self._kept: list[Tensor | Stored] = []  # what addresses point to stays there
        for target, layer in zip(self._layers, self._model.layers, strict=True):
            for name, norm in layer.norms.items():
                setattr(target, name, self._norm(norm))
            for name, rows in layer.matrices.items():
                weight, bias = self._weight(rows), self._bias(rows)
                setattr(target, name, weight.matrix())
                setattr(target, f"{name}_bias", None if bias is None else bias.data_ptr())
        self._last_norm = self._norm(self._model.norm)
        self._head, self._head_bias = self._weight(self._model.head), self._bias(self._model.head)

    def _norm(self, norm: Norm) -> bindings.Norm:
        weight = norm.parameter.detach() if norm.offset == 0 else norm.offset + norm.parameter.detach()
        self._kept.append(weight)
        return bindings.Norm(weight.data_ptr(), len(weight), norm.epsilon)

    def _weight(self, rows: Rows) -> Stored:
        whole = rows.linear.weight
        stored = getattr(whole, "stored", None)
        if not isinstance(stored, Stored) or not stored.holds(whole):
            stored = Stored.dense(whole.detach())
        weight = Stored(stored.rows[rows.rows], stored.format, stored.size)
        self._kept.append(weight)
        return weight

    def _bias(self, rows: Rows) -> Tensor | None:
        if rows.linear.bias is None:
            return None
        bias = rows.linear.bias.detach()[rows.rows]
        self._kept.append(bias)
        return bias

    def described(self) -> list[Any]:
        """What its speed depends on beside the model: the compiled kernels, and how the weights are stored."""
        formats = {getattr(layer, name).format for layer in self._layers for name in MATRICES}
        return [Path(self._library._name).name, sorted(formats | {self._head.format})]

    def arithmetic(self) -> list[Any]:
        """What the bits of logits depend on beside model and text: kernels, instruction set, torch's own functions."""
        level = self._library.draftcert_widest() if self.level < 0 else self.level
        return [Path(self._library._name).name, level, torch.__version__, torch.backends.cpu.get_cpu_capability()]

    def __call__(
        self, tokens: Tensor, masks: dict[str, Tensor], positions: Tensor, cache: TreeCache, last: Tensor | None = None
    ) -> Tensor:
        """Logits `[batch, nodes, vocab]`; arguments as transformers', with one boolean mask per kind of attention.

        `last` `[batch]`: the only node of each sequence whose logits, then `[batch, 1, vocab]`, are wanted.
        """
        model, (batch, nodes) = self._model, tokens.shape
        hidden = (model.embedding(tokens) * model.multiplier).contiguous()
        # Tensors whose addresses the layers get stay in these until the layers are through.
        seen = {kind: _places(mask) for kind, mask in masks.items()}
        span = next(iter(masks.values())).shape[-1]
        kinds = {layer.kind for layer in model.layers} if model.rotated_by_kind else {""}
        turned = {
            kind: [part.contiguous() for part in model.rotation(hidden, positions, *filter(None, [kind]))]
            for kind in kinds
        }
        seen_at = {kind: (starts.data_ptr(), places.data_ptr()) for kind, (starts, places) in seen.items()}
        turned_at = {kind: (c.data_ptr(), s.data_ptr(), c.shape[-1]) for kind, (c, s) in turned.items()}
        everywhere, lengths = next(iter(seen_at.values())), torch.tensor(cache.lengths)
        shape = Shape(len(self._layers), batch, nodes, hidden.shape[-1], span, lengths.data_ptr())
        for target, layer in zip(self._layers, model.layers, strict=True):
            states = cast("TreeLayer", cache.layers[layer.number])
            like = [] if states.is_initialized else [hidden.new_empty(batch, target.key_heads, 0, target.dimension)] * 2
            keys, values = states.room(span, *like)
            target.keys, target.values, target.capacity = keys.data_ptr(), values.data_ptr(), keys.shape[2]
            target.starts, target.places = seen_at.get(layer.kind, everywhere)
            if layer.rotated:
                at = turned_at[layer.kind if model.rotated_by_kind else ""]
                target.cosine, target.sine, target.rotary = at
        run_layers(shape, self._layers, hidden, self.level)
        if last is not None:
            hidden = hidden[torch.arange(batch), last]
        rows = normed(hidden.view(-1, shape.hidden), self._last_norm, self.level)
        logits = linear(rows, self._head, self._head_bias, self.level)
        if model.divisor != 1:
            logits /= model.divisor
        if model.softcap:
            softcap(logits, model.softcap, self.level)
        return logits.view(batch, -1, logits.shape[-1])


def _places(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Of a mask `[batch, 1, nodes, span]` all places that nodes see, and where those of each node start."""
    starts = torch.zeros(mask.shape[0] * mask.shape[2] + 1, dtype=torch.int64)
    starts[1:] = mask.sum(-1).flatten().cumsum(0)
    return starts, mask.nonzero()[:, -1].int()
