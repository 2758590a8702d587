"""How many nodes a tree should have: measured cost against expected gain.

A pass over n nodes takes T(n) and is expected to commit E(n) tokens: one, and the probability of every drafted node.
The size taken is the one with the greatest E(n) / T(n). T is measured once per machine, model and dtype and kept in
the user's cache folder.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from statistics import median
from time import perf_counter
from typing import Any

import torch

from ...support.cache import cached
from ...theory.errors import DraftcertError
from ..rows.benchmark import processor
from .forward import TreeForward
from .tree import Tree

_ROUNDS = 5
_SAMPLES, _STEADY = 3, 1.25
"""Of fewer samples nobody can tell; where half of them take longer than the fastest by this factor, something else uses
the machine."""
SIZES = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Numbers of nodes at which passes are timed; between them T is interpolated."""


@dataclass(frozen=True)
class Latency:
    """Seconds of a target pass by number of nodes: measured `sizes`, ascending from 1, and `seconds`.

    >>> Latency((1, 2, 4), (0.01, 0.01, 0.03))(3)
    0.02
    """

    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    steady: bool = True
    """Whether nothing else seemed to use the machine meanwhile."""

    def __post_init__(self) -> None:
        """Refuse a table that says nothing."""
        if (
            not self.sizes
            or self.sizes[0] != 1
            or any(a >= b for a, b in zip(self.sizes, self.sizes[1:], strict=False))
        ):
            raise DraftcertError(f"latency sizes must ascend from 1, not {self.sizes}")
        if len(self.seconds) != len(self.sizes) or not all(0 < second < float("inf") for second in self.seconds):
            raise DraftcertError(f"a positive latency for each of {self.sizes} is needed, not {self.seconds}")

    def __call__(self, nodes: int) -> float:
        """The time of a pass over so many nodes; beyond the largest measured size in proportion to it."""
        for index, size in enumerate(self.sizes):
            if nodes <= size:
                if index == 0:
                    return self.seconds[0]
                below = self.sizes[index - 1]
                share = (nodes - below) / (size - below)
                return self.seconds[index - 1] * (1 - share) + self.seconds[index] * share
        return self.seconds[-1] * nodes / self.sizes[-1]

    def best_size(self, probabilities: Sequence[float]) -> int:
        """The number of nodes, of a tree in best-first order with these probabilities, that gives most tokens a second.

        >>> flat, steep = Latency((1, 8), (0.01, 0.01)), Latency((1, 8), (0.01, 0.08))
        >>> flat.best_size([1.0, 0.6, 0.3]), steep.best_size([1.0, 0.6, 0.3])
        (3, 1)
        """
        expected = list(accumulate((1.0, *probabilities[1:])))
        return max(range(1, len(expected) + 1), key=lambda nodes: (expected[nodes - 1] / self(nodes), -nodes))

    def prune(self, tree: Tree) -> Tree:
        """The best part of a tree that carries its drafter's probabilities; any other tree as it is."""
        if tree.probabilities is None:
            return tree
        return tree.pruned(self.best_size(tree.probabilities))


def measure_latency(forward: TreeForward, max_nodes: int = 64, context: int = 256, seconds: float = 2.0) -> Latency:
    """Time passes over chains behind `context` tokens: the fastest of rounds over the sizes, while there is time.

    The fastest, since what else the machine does only adds to a time. The smallest and the largest size come first, and
    are timed however long that takes: from one alone nothing follows for the others. Those between them follow, each
    amid the widest gap left, while half of the time lasts.
    """
    sizes = [size for size in SIZES if size <= max_nodes]
    context = max(1, min(context, forward.max_positions - sizes[-1] - 1))
    cache = forward.new_cache([context], sizes[-1])

    @torch.inference_mode()
    def time(size: int) -> float:
        start = perf_counter()
        forward([Tree((0,) * size, tuple(range(-1, size - 1)))], cache)[0][-1, :1].item()
        return perf_counter() - start

    with torch.inference_mode():
        forward.prefill([[0]], cache)
    cache.lengths[0] = context  # what the states are has no influence on the time
    begun, times = perf_counter(), {}
    for size in _spread(sizes):
        first = time(size)
        times[size] = [first] if first > seconds / 10 else [time(size)]  # where a pass is short, its first one warms up
        if perf_counter() - begun > seconds / 2 and len(times) >= min(2, len(sizes)):
            break
    for _ in range(_ROUNDS):
        for size, found in times.items():
            if perf_counter() - begun < seconds:
                found.append(time(size))
    steady = all(len(found) >= _SAMPLES and median(found) < _STEADY * min(found) for found in times.values())
    return Latency(tuple(sorted(times)), tuple(min(times[size]) for size in sorted(times)), steady)


def _spread(sizes: Sequence[int]) -> list[int]:
    """The first, the last, and then always the one amid the widest gap between those before it."""
    order, gaps = sorted({0, len(sizes) - 1}), [(0, len(sizes) - 1)]
    while gaps:
        low, high = gaps.pop(0)
        if high - low > 1:
            middle = (low + high) // 2
            order.append(middle)
            gaps += [(low, middle), (middle, high)]
    return [sizes[index] for index in order]


def cached_latency(forward: TreeForward, max_nodes: int = 64, refresh: bool = False) -> Latency:
    """`measure_latency`, once per machine, model, dtype, form of the weights, device and number of threads.

    What was measured while the machine was busy is used and not kept, so that the next decoder measures again.
    """
    identity = {
        "machine": [platform.node(), processor(), os.cpu_count(), torch.get_num_threads(), torch.__version__],
        "model": [forward.config.to_json_string(), str(forward.model.dtype), str(forward.model.device)],
        "engine": [forward.few_rows and forward.few_rows.described(), forward.fixed_shapes],
        "nodes": max_nodes,
        "time": "fastest of sizes from both ends",
    }

    def parse(table: dict[str, Any]) -> Latency:
        return Latency(tuple(table["sizes"]), tuple(table["seconds"]), table["steady"])

    def measure() -> dict[str, Any]:
        return asdict(measure_latency(forward, max_nodes))

    return cached("latency", identity, parse, measure, refresh, keep=lambda table: table["steady"])
