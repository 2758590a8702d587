"""`Tree`: draft tokens that share prefixes, checked in one target pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ...theory.errors import DraftcertError
from ...theory.numbers import items, real_number, whole_numbers

if TYPE_CHECKING:
    from jaxtyping import Bool, Int64


@dataclass(frozen=True)
class Tree:
    """A draft tree. Node 0 is the last committed token, every other node a drafted continuation of its parent.

    `tokens` and `parents` have one entry a node; `parents[0] = -1` and a parent precedes its children. Siblings carry
    different tokens. `probabilities`, if given, are the drafter's estimates that the whole path to a node is accepted.

    Raises:
        DraftcertError: unequal lengths, no root, a parent out of order (that includes every cycle), a negative token,
            two siblings with one token, estimates that are no numbers.

    >>> tree = Tree([7, 3, 4, 5], [-1, 0, 0, 1])  # after 7 either 3, 5 or 4
    >>> tree.depths
    (0, 1, 1, 2)
    >>> tree.positions(prefix=10).tolist()
    [10, 11, 11, 12]
    >>> tree.ancestor_mask().int().tolist()
    [[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 0, 1]]
    """

    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    probabilities: tuple[float, ...] | None = None
    depths: tuple[int, ...] = field(init=False, compare=False, repr=False)
    children: tuple[tuple[int, ...], ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the shape and lay out depths and children."""
        tokens, parents = _whole(self.tokens, "tokens"), _whole(self.parents, "parents")
        object.__setattr__(self, "tokens", tokens)
        object.__setattr__(self, "parents", parents)
        if len(tokens) != len(parents):
            raise DraftcertError(f"a tree needs one parent a token: {len(tokens)} tokens, {len(parents)} parents")
        if not tokens:
            raise DraftcertError("a tree needs its root: node 0, the last committed token")
        if parents[0] != -1:
            raise DraftcertError(f"node 0 is the root, so parents[0] must be -1, not {parents[0]}")
        if self.probabilities is not None:
            found = items(self.probabilities, "probabilities")
            if len(found) != len(tokens):
                raise DraftcertError(f"{len(tokens)} tokens, but {len(found)} probabilities")
            chances = tuple(
                chance if type(chance) is float else real_number(chance, f"probabilities[{node}]")
                for node, chance in enumerate(found)
            )
            if wrong := [node for node, chance in enumerate(chances) if not 0 <= chance < inf]:
                raise DraftcertError(
                    f"probabilities[{wrong[0]}] = {chances[wrong[0]]}: estimates are numbers from 0 up"
                )
            object.__setattr__(self, "probabilities", chances)
        if min(tokens) < 0:
            raise DraftcertError(f"node {tokens.index(min(tokens))} has token {min(tokens)}: token ids are 0 or more")
        depths = [0] * len(tokens)
        children: list[list[int]] = [[] for _ in tokens]
        for node in range(1, len(tokens)):
            parent = parents[node]
            if not 0 <= parent < node:
                raise DraftcertError(
                    f"node {node} has parent {parent}: a parent is a node before its child (0 to {node - 1}), "
                    "so that there is no cycle"
                )
            for sibling in children[parent]:
                if tokens[sibling] == tokens[node]:
                    raise DraftcertError(
                        f"nodes {sibling} and {node} are siblings with the same token {tokens[node]}: merge them"
                    )
            depths[node] = depths[parent] + 1
            children[parent].append(node)
        object.__setattr__(self, "depths", tuple(depths))
        object.__setattr__(self, "children", tuple(map(tuple, children)))

    def __len__(self) -> int:
        """Number of nodes, the root included."""
        return len(self.tokens)

    def check_vocabulary(self, size: int) -> None:
        """Refuse a token the target does not have.

        Raises:
            DraftcertError: a token id of `size` or more.
        """
        if max(self.tokens) >= size:
            node = next(node for node, token in enumerate(self.tokens) if token >= size)
            raise DraftcertError(
                f"node {node} has token {self.tokens[node]}, but the target's vocabulary ends at {size - 1}"
            )

    def path(self, node: int) -> tuple[int, ...]:
        """The nodes from the root to `node`, both included."""
        nodes = [node]
        while nodes[-1] != 0:
            nodes.append(self.parents[nodes[-1]])
        return tuple(reversed(nodes))

    def ancestor_mask(self) -> Bool[Tensor, "nodes nodes"]:
        """Row i is true at i and its ancestors, all a node may attend to among the nodes."""
        mask = torch.eye(len(self), dtype=torch.bool)
        for node in range(1, len(self)):
            mask[node] |= mask[self.parents[node]]
        return mask

    def positions(self, prefix: int) -> Int64[Tensor, " nodes"]:
        """Position ids when `prefix` tokens precede the root: siblings share the position of their depth."""
        return torch.tensor(self.depths) + prefix

    def pruned(self, nodes: int) -> Tree:
        """The first `nodes` nodes, a tree again since parents come first."""
        if nodes >= len(self):
            return self
        probabilities = None if self.probabilities is None else self.probabilities[:nodes]
        return Tree(self.tokens[:nodes], self.parents[:nodes], probabilities)


def _whole(numbers: Any, name: str) -> tuple[int, ...]:
    given = items(numbers, name)
    if all(type(number) is int for number in given):
        return tuple(given)
    return tuple(whole_numbers(given, name, -1))
