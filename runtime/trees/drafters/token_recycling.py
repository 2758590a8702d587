"""Token Recycling: what the target last found likely after a token is drafted when the token comes again.

A table of the k last seen successors of every token, filled from the target's own passes: accepted and rejected nodes
alike. No training, no second model. Entries are kept for pairs of tokens too: a pair that came before is the better
witness, the single token knows more. The estimates that order the tree are hit rates, counted while decoding, of
successors with this rank and this stored probability.

Source: Luo et al. 2024, arXiv 2408.08696 (the table and its updates, single tokens, fixed tree shapes); pairs,
calibration, best-first and certificate-guided trees are added here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
from math import ceil, log
from typing import Literal

from .base import HitRate, Observation, SuccessorDrafter, Successors
from .prior import SuccessorTable

Shape = Literal["best-first", "static", "certificate-guided"]
Entry = list[tuple[int, int]]
"""Successors of one context, the most likely first, each with the class of its stored probability."""

_EDGES = (0.01, 0.05, 0.15, 0.35, 0.6, 0.85, 0.97)
"""Edges of the classes of stored probabilities within which hit rates are counted."""
_CENTRES = (0.003, 0.02, 0.06, 0.15, 0.3, 0.5, 0.65, 0.75)
"""First guess of the hit rate in each class: a stored probability is over-confident in a new context."""
_STATIC_DECAY = 0.45
"""A static tree takes the successor of rank r as if its probability were this to the power r + 1."""


def _first_guess(length: int, rank: int, level: int) -> float:
    return _CENTRES[level] / (1 if rank == 0 else 1.5)


class TokenRecycling(SuccessorDrafter):
    """The table, kept from one sequence to the next; `clear()` forgets it.

    `successors_kept`: how many successors of a token are remembered (k of the paper). `longest`: entries are kept for
    the last 1 to `longest` tokens. `shape` of the trees: "best-first" by estimated probabilities; "static", one shape
    at every step as in the paper, by ranks alone; "certificate-guided", best-first with fewer children where the
    target was certain when the entry was made: one where its strict certificate reached ln 2, all where it was 0.
    `prior`: what to fall back on for a token, from `cached_successors`; it is not forgotten.
    """

    def __init__(
        self,
        successors_kept: int = 8,
        longest: int = 2,
        shape: Shape = "best-first",
        prior: SuccessorTable | None = None,
    ):
        self.successors_kept, self.longest, self.shape = successors_kept, longest, shape
        self.prior = {token: self._entry(*row) for token, row in enumerate(prior or ())}
        self.clear()

    def clear(self) -> None:
        """Forget all successors and hit rates."""
        self.table: dict[tuple[int, ...], Entry] = {}
        self.hit_rate = HitRate(_first_guess)

    def successors(self, context: Sequence[int], path: tuple[int, ...]) -> Successors:
        """The last seen successors of the last tokens: those of the longest known context, then the shorter ones'."""
        found: dict[int, float] = {}
        for length, rank, token, level in self._entries((*context[-self.longest :], *path)):
            if token not in found:
                found[token] = (
                    _STATIC_DECAY ** (rank + 1) if self.shape == "static" else self.hit_rate(length, rank, level)
                )
        return list(found.items())

    def observe(self, context: Sequence[int], observation: Observation) -> None:
        """Count hits along the accepted path, then remember the new successors of every node, accepted ones last."""
        tree, path = observation.tree, observation.path
        before = tuple(context[-self.longest :])
        tails = [before]
        for node in range(1, len(tree)):
            tails.append((*tails[tree.parents[node]], tree.tokens[node])[-self.longest :])
        for node in path:
            greedy = observation.top_ids[node][0]
            named: set[int] = set()
            for length, rank, token, level in self._entries(tails[node]):
                if token not in named:
                    named.add(token)
                    self.hit_rate.add(token == greedy, length, rank, level)
        accepted = set(path)
        for node in (*(node for node in range(len(tree)) if node not in accepted), *path):
            width = self.successors_kept
            if self.shape == "certificate-guided":
                width = max(1, ceil(width * (1 - min(1.0, observation.certificate(node) / log(2)))))
            entry = self._entry(observation.top_ids[node][:width], observation.top_probabilities[node][:width])
            for length in range(1, len(tails[node]) + 1):
                self.table[tails[node][-length:]] = entry

    def _entry(self, tokens: Sequence[int], probabilities: Sequence[float]) -> Entry:
        kept = islice(zip(tokens, probabilities, strict=True), self.successors_kept)
        return [(token, bisect_left(_EDGES, probability)) for token, probability in kept]

    def _entries(self, tail: tuple[int, ...]) -> Iterator[tuple[int, int, int, int]]:
        """Length of the context (0: the prior), rank, token and class of probability of every known successor."""
        for length in range(min(self.longest, len(tail)), 0, -1):
            for rank, (token, level) in enumerate(self.table.get(tail[-length:], ())):
                yield length, rank, token, level
        for rank, (token, level) in enumerate(self.prior.get(tail[-1], ())):
            yield 0, rank, token, level
