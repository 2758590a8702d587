"""Token Recycling: what the target last found likely after a token is drafted when the token comes again.

A table of the k last seen successors of every token, filled from the target's own passes: accepted and rejected nodes
alike. No training, no second model. The estimates that order the tree are hit rates, counted while decoding, of
successors with this rank and this stored probability.

Source: Luo et al. 2024, arXiv 2408.08696 (the table and its updates); the best-first tree with calibrated
probabilities in place of a fixed tree shape is ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from .base import HitRate, Observation, SuccessorDrafter, Successors

_BINS = (0.01, 0.05, 0.15, 0.35, 0.6, 0.85, 0.97)
"""Edges of the classes of stored probabilities within which hit rates are counted."""
_CENTRES = (0.003, 0.02, 0.06, 0.15, 0.3, 0.5, 0.65, 0.75)
"""First guess of the hit rate in each class: a stored probability is over-confident in a new context."""


class TokenRecycling(SuccessorDrafter):
    """The table, kept from one sequence to the next; `clear()` forgets it.

    `successors_kept`: how many successors of a token are remembered (k of the paper).
    """

    def __init__(self, successors_kept: int = 8):
        self.successors_kept = successors_kept
        self.clear()

    def clear(self) -> None:
        """Forget all successors and hit rates."""
        self.table: dict[int, list[tuple[int, int]]] = {}
        self.hit_rate = HitRate(lambda rank, level: _CENTRES[level] / (1 if rank == 0 else 1.5))

    def successors(self, context: Sequence[int], path: tuple[int, ...]) -> Successors:
        """The last seen successors of the last token."""
        entry = self.table.get(path[-1] if path else context[-1], ())
        return [(token, self.hit_rate(rank, level)) for rank, (token, level) in enumerate(entry)]

    def observe(self, context: Sequence[int], observation: Observation) -> None:
        """Count hits along the accepted path, then remember the new successors of every node, accepted ones last."""
        tokens, path = observation.tree.tokens, observation.path
        for node in path:
            greedy = observation.top_ids[node][0]
            for rank, (token, level) in enumerate(self.table.get(tokens[node], ())):
                self.hit_rate.add(token == greedy, rank, level)
        accepted = set(path)
        rejected = (node for node in range(len(tokens)) if node not in accepted)
        for node in (*rejected, *path):
            ids, probabilities = observation.top_ids[node], observation.top_probabilities[node]
            kept = zip(ids[: self.successors_kept], probabilities[: self.successors_kept], strict=True)
            self.table[tokens[node]] = [(token, sum(p > edge for edge in _BINS)) for token, p in kept]
