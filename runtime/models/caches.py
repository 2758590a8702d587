"""Key/value cache of the tree decoder: preallocated, written in place, compacted by the accepted path.

A target pass writes the states of all tree nodes behind those of the committed tokens; `commit` then moves the
accepted ones to the front and forgets the rest. Nothing is reallocated except when the capacity doubles. Every layer
keeps all its tokens, sliding-window layers too (the mask hides what their window has left), so that any draft can be
taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from ...theory.errors import DraftcertError


class TreeLayer(CacheLayerMixin):
    """Keys and values `[batch, heads, capacity, dimension]` of one layer; rows of the batch may differ in length."""

    is_compileable = False
    is_croppable = True
    is_sliding = False

    def __init__(self, owner: TreeCache):
        super().__init__()
        self.owner = owner
        self.buffers: list[torch.Tensor] = []

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Allocate the buffers once the shapes are known."""
        self.device = key_states.device
        self.buffers = [
            like.new_zeros(like.shape[0], like.shape[1], self.owner.capacity, like.shape[3])
            for like in (key_states, value_states)
        ]
        self.is_initialized = True

    def room(self, tokens: int, *like: torch.Tensor) -> list[torch.Tensor]:
        """The buffers, grown where they hold fewer tokens; where there are none yet, made for states `like` these."""
        self.owner.reserve(tokens)
        if not self.is_initialized:
            self.lazy_initialization(*like)
        elif self.buffers[0].shape[2] < tokens:
            old = self.buffers
            self.lazy_initialization(*old)
            for grown, buffer in zip(self.buffers, old, strict=True):
                grown[:, :, : buffer.shape[2]] = buffer
        return self.buffers

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any):
        """Write the new states behind the committed ones and return everything up to their end.

        Where the owner says the places, states go there and the whole buffers come back: no shape depends on lengths.
        """
        if (places := self.owner.places) is not None:
            for buffer, states in zip(self.buffers, (key_states, value_states), strict=True):
                buffer[torch.arange(len(places), device=places.device)[:, None], :, places] = states.transpose(1, 2)
            return self.buffers[0], self.buffers[1]
        lengths = self.owner.lengths
        added = key_states.shape[2]
        end = max(lengths) + added
        buffers = self.room(end, key_states, value_states)
        for buffer, states in zip(buffers, (key_states, value_states), strict=True):
            if min(lengths) == max(lengths):
                buffer[:, :, end - added : end] = states
            else:
                for row, length in enumerate(lengths):
                    buffer[row, :, length : length + added] = states[row]
        keys, values = buffers
        return keys[:, :, :end], values[:, :, :end]

    def move(self, row: int, source: torch.Tensor, start: int) -> None:
        """Copy the states at `source` to `start` and the places after it."""
        for buffer in self.buffers:
            buffer[row, :, start : start + len(source)] = buffer[row][:, source]

    def get_seq_length(self) -> int:
        """Committed tokens of the longest row."""
        return max(self.owner.lengths)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Number of keys a pass of that many tokens sees, and the offset of the first."""
        return self.get_seq_length() + query_length, 0

    def get_max_length(self) -> int:
        """No maximum: the buffers grow."""
        return -1

    get_max_cache_shape = get_max_length


class TreeCache(Cache):
    """The cache of a batch of sequences, each `lengths[row]` committed tokens long.

    `places` `[batch, nodes]`, on the device: where the next pass writes its states, if shapes are to stay fixed.

    >>> cache = TreeCache(layers=2, capacity=8)
    >>> keys = torch.arange(4.0).reshape(1, 1, 4, 1)
    >>> for layer in range(2):
    ...     _ = cache.update(keys, keys, layer)
    >>> cache.commit(0, [0, 2, 3])  # node 1 was rejected
    >>> cache.lengths, cache.layers[1].buffers[0][0, 0, :3, 0].tolist()
    ([3], [0.0, 2.0, 3.0])
    """

    def __init__(self, layers: int, batch: int = 1, capacity: int = 256):
        self.capacity = capacity
        self.lengths = [0] * batch
        self.places: torch.Tensor | None = None
        super().__init__(layers=[TreeLayer(self) for _ in range(layers)])

    def keep(self, rows: Sequence[int]) -> None:
        """Drop all sequences but these."""
        for layer in self.filled:
            layer.buffers = [buffer[list(rows)] for buffer in layer.buffers]
        self.lengths = [self.lengths[row] for row in rows]

    def reserve(self, tokens: int) -> None:
        """Let the buffers hold that many tokens from the next pass on: at least double what they did."""
        while self.capacity < tokens:
            self.capacity *= 2

    @property
    def filled(self) -> list[TreeLayer]:
        """All layers but those that share the states of another."""
        return [layer for layer in self.layers if isinstance(layer, TreeLayer) and layer.is_initialized]

    def states(self, row: int, tokens: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Copies of one sequence's first keys and values `[heads, tokens, dimension]`, layer by layer."""
        return [(keys[row, :, :tokens].clone(), values[row, :, :tokens].clone()) for keys, values in self._buffers()]

    def begin(self, row: int, states: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> None:
        """Let a sequence begin with these keys and values `[heads, tokens, dimension]` of every layer."""
        layers = cast("list[TreeLayer]", self.layers)
        for layer, given in zip(layers, states, strict=True):
            shapes = (part.expand(len(self.lengths), *part.shape) for part in given)
            for buffer, part in zip(layer.room(given[0].shape[1], *shapes), given, strict=True):
                buffer[row, :, : part.shape[1]] = part
        self.lengths[row] = states[0][0].shape[1]

    def _buffers(self) -> list[list[torch.Tensor]]:
        return [layer.buffers for layer in self.filled]

    def commit(self, row: int, nodes: Sequence[int]) -> None:
        """Keep of the last pass the states of these nodes (its columns, ascending), as if only they had been given.

        Raises:
            DraftcertError: nodes that do not ascend: a path never does otherwise.
        """
        start = self.lengths[row]
        nodes = list(nodes)
        if any(a >= b for a, b in pairwise(nodes)) or (nodes and nodes[0] < 0):
            raise DraftcertError(f"cannot commit the nodes {nodes}: a path ascends from the root")
        moved = next((index for index, node in enumerate(nodes) if index != node), len(nodes))
        if moved < len(nodes):
            source = torch.tensor(nodes[moved:]) + start
            for layer in self.filled:
                source = source.to(layer.device)
                layer.move(row, source, start + moved)
        self.lengths[row] = start + len(nodes)
