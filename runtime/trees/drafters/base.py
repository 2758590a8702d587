"""What every drafter is, and how a tree grows from likely successors."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch

from ..trace import strict_certificates
from ..tree import Tree

Successors = Sequence[tuple[int, float]]
"""Tokens that may follow, each with the estimated probability that the target accepts it there."""


@dataclass(frozen=True)
class Observation:
    """What one target pass told: per node of `tree` the target's most likely tokens and their probabilities.

    `path` is the accepted path; the greedy token after a node is `top_ids[node][0]`.

    >>> observation = Observation(Tree((7,), (-1,)), (0,), [[3, 4]], [[0.75, 0.25]])
    >>> round(observation.certificate(0), 4)
    0.1308
    """

    tree: Tree
    path: tuple[int, ...]
    top_ids: list[list[int]]
    top_probabilities: list[list[float]]

    def certificate(self, node: int) -> float:
        """The strict certificate (nats) of a node's row, by its two likeliest tokens (T5); infinite if one is known."""
        return float(strict_certificates(torch.tensor(self.top_probabilities[node], dtype=torch.float64)))


@runtime_checkable
class Drafter(Protocol):
    """All the decoder asks of a drafter. Nothing a drafter does can change the output under strict greedy."""

    def begin(self, prompt: Sequence[int]) -> Drafter:
        """The drafter for a new sequence with this prompt: itself, or a copy where it remembers the sequence."""
        ...

    def propose(self, context: Sequence[int], max_nodes: int, max_depth: int) -> Tree:
        """A tree whose root carries `context[-1]`, of at most so many nodes (the root included) and so deep."""
        ...

    def observe(self, context: Sequence[int], observation: Observation) -> None:
        """Learn from the pass over the tree that was proposed for `context`."""
        ...


class SuccessorDrafter(ABC):
    """A drafter that can say what is likely to follow any drafted path; its trees grow best-first."""

    def begin(self, prompt: Sequence[int]) -> Drafter:
        """The drafter for a new sequence: itself, unless it remembers the sequence."""
        return self

    def prepare(self, context: Sequence[int], max_nodes: int, max_depth: int) -> None:
        """Do what has to be done once a step before successors are asked for; nothing by default."""
        return

    @abstractmethod
    def successors(self, context: Sequence[int], path: tuple[int, ...]) -> Successors:
        """Likely successors of `context` followed by the drafted tokens `path`, each token once."""

    def propose(self, context: Sequence[int], max_nodes: int, max_depth: int) -> Tree:
        """The most likely tree of that size."""
        self.prepare(context, max_nodes, max_depth)
        return grow(context[-1], lambda path: self.successors(context, path), max_nodes, max_depth)

    def observe(self, context: Sequence[int], observation: Observation) -> None:
        """Learn from the pass over the tree that was proposed for `context`; nothing by default."""
        return


def grow(root: int, successors: Callable[[tuple[int, ...]], Successors], max_nodes: int, max_depth: int) -> Tree:
    """The tree of `max_nodes` nodes with the greatest expected number of accepted tokens.

    A node's probability is the product of the estimates along its path, so it never exceeds its parent's: taking the
    most likely open node again and again is optimal (best-first). Nodes come out in that order, hence the first n of
    them are the best tree of n nodes.
    """
    tokens, parents, probabilities = [root], [-1], [1.0]
    paths: list[tuple[int, ...]] = [()]
    open_nodes: list[tuple[float, int, int, list[tuple[int, float]]]] = []

    def offer(parent: int, siblings: list[tuple[int, float]], index: int) -> None:
        if index < len(siblings) and siblings[index][1] > 0:
            heapq.heappush(open_nodes, (-probabilities[parent] * siblings[index][1], parent, index, siblings))

    def expand(node: int) -> None:
        if len(paths[node]) < max_depth:
            offer(node, sorted(successors(paths[node]), key=lambda item: -item[1]), 0)

    expand(0)
    while open_nodes and len(tokens) < max_nodes:
        negative, parent, index, siblings = heapq.heappop(open_nodes)
        offer(parent, siblings, index + 1)
        tokens.append(siblings[index][0])
        parents.append(parent)
        probabilities.append(-negative)
        paths.append((*paths[parent], tokens[-1]))
        expand(len(tokens) - 1)
    return Tree(tuple(tokens), tuple(parents), tuple(probabilities))


@dataclass
class HitRate:
    """How often a kind of proposal was right, per kind, starting from a prior worth `weight` trials."""

    prior: Callable[..., float]
    weight: float = 8.0
    counts: dict[tuple[int, ...], tuple[float, float]] = field(default_factory=dict)

    def __call__(self, *kind: int) -> float:
        """The estimated probability that a proposal of this kind is accepted."""
        hits, trials = self._count(kind)
        return hits / trials

    def add(self, hit: bool, *kind: int, expected: float = 1.0) -> None:
        """Count one proposal whose parent was accepted.

        `expected`: how many hits a guess expected of it; the rate is then the hits for each one that was expected.
        """
        hits, trials = self._count(kind)
        self.counts[kind] = hits + hit, trials + expected  # at once, so that other threads see no hit without its trial

    def _count(self, kind: tuple[int, ...]) -> tuple[float, float]:
        return self.counts.get(kind) or (self.prior(*kind) * self.weight, self.weight)
