"""Passes of fixed shapes, recorded as CUDA graphs and replayed; on other devices they simply run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .caches import TreeCache

Pass = Callable[[dict[str, torch.Tensor], "TreeCache"], torch.Tensor]


class Graphs:
    """Replays `run`, recorded once for every shape of its inputs and every cache.

    A graph reads and writes fixed memory: inputs are copied into it, and the states of the cache are written where they
    were when it was recorded. Its logits are overwritten by the next replay.
    """

    def __init__(self, run: Pass, device: torch.device):
        self._run, self._device = run, device
        self._recorded: dict[tuple[Any, ...], tuple[Any, dict[str, torch.Tensor], torch.Tensor]] = {}

    def __call__(self, inputs: dict[str, torch.Tensor], cache: TreeCache) -> torch.Tensor:
        """The pass over these inputs, given on the host."""
        if self._device.type != "cuda":
            return self._run(inputs, cache)
        memory = tuple(buffer.data_ptr() for layer in cache.filled for buffer in layer.buffers)
        key = (*(tuple(tensor.shape) for tensor in inputs.values()), memory)
        if key not in self._recorded:
            # Graphs of a cache whose memory is gone would write into memory of others.
            self._recorded = {known: graph for known, graph in self._recorded.items() if known[-1] == memory}
            self._recorded[key] = self._record(inputs, cache)
        graph, places, logits = self._recorded[key]
        for name, tensor in inputs.items():
            places[name].copy_(tensor)
        graph.replay()
        return logits

    def _record(
        self, inputs: dict[str, torch.Tensor], cache: TreeCache
    ) -> tuple[Any, dict[str, torch.Tensor], torch.Tensor]:
        places = {name: tensor.to(self._device) for name, tensor in inputs.items()}
        # What the first passes allocate for good must not be recorded.
        side = torch.cuda.Stream(self._device)
        side.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(side):
            for _ in range(2):
                self._run(places, cache)
        torch.cuda.current_stream(self._device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            logits = self._run(places, cache)
        return graph, places, logits
