"""Several drafters as one: their successors compete for the places of one tree."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from ....theory.errors import DraftcertError
from .base import Drafter, HitRate, Observation, SuccessorDrafter, Successors

_EDGES = (0.05, 0.15, 0.3, 0.5, 0.7, 0.85)
"""Edges of the classes of chances within which hits are counted."""


class Combined(SuccessorDrafter):
    """Several drafters that name successors, as one.

    A token named by several is wrong only where all of them are. Were their errors independent, its chance would be
    `1 - prod (1 - p)`. They are not, so that this chance is multiplied by the hits that were found, while decoding, for
    each that was expected of tokens which as many named with about this chance. That decides order and size of the
    tree, never what is accepted.

    Raises:
        DraftcertError: a member that proposes whole trees only.
    """

    def __init__(self, *members: Drafter):
        self.members: list[SuccessorDrafter] = []
        for member in members:
            if not isinstance(member, SuccessorDrafter):
                raise DraftcertError(
                    f"{type(member).__name__} cannot be combined: it does not say what follows a path (derive it from "
                    "SuccessorDrafter)"
                )
            self.members.append(member)
        self.hits = HitRate(_as_many_as_expected)

    def begin(self, prompt: Sequence[int]) -> Drafter:
        """The members' drafters for this sequence; the corrections are shared."""
        fresh = Combined(*(member.begin(prompt) for member in self.members))
        fresh.hits = self.hits
        return fresh

    def prepare(self, context: Sequence[int], max_nodes: int, max_depth: int) -> None:
        """Let every member prepare its tree."""
        for member in self.members:
            member.prepare(context, max_nodes, max_depth)

    def successors(self, context: Sequence[int], path: tuple[int, ...]) -> Successors:
        """Everything a member names."""
        named = self._named(context, path)
        return [
            (token, min(1.0, chance * self.hits(*_kind(count, chance)))) for token, (count, chance) in named.items()
        ]

    def observe(self, context: Sequence[int], observation: Observation) -> None:
        """Count hits along the accepted path, then let every member learn."""
        path = tuple(observation.tree.tokens[node] for node in observation.path[1:])
        for depth, node in enumerate(observation.path):
            for token, (count, chance) in self._named(context, path[:depth]).items():
                self.hits.add(token == observation.top_ids[node][0], *_kind(count, chance), expected=chance)
        for member in self.members:
            member.observe(context, observation)

    def _named(self, context: Sequence[int], path: tuple[int, ...]) -> dict[int, tuple[int, float]]:
        """Every token that a member names, with how many do and the chance that one of them is right."""
        named: dict[int, tuple[int, float]] = {}
        for member in self.members:
            for token, probability in member.successors(context, path):
                count, chance = named.get(token, (0, 0.0))
                named[token] = count + 1, 1.0 - (1.0 - chance) * (1.0 - probability)
        return named


def _as_many_as_expected(*_kind: int) -> float:
    return 1.0


def _kind(named_by: int, chance: float) -> tuple[int, int]:
    return named_by, bisect_left(_EDGES, chance)
