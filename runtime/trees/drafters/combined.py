"""Several drafters as one: their successors compete for the places of one tree."""

from __future__ import annotations

from collections.abc import Sequence

from ....theory.errors import DraftcertError
from .base import Drafter, Observation, SuccessorDrafter, Successors


class Combined(SuccessorDrafter):
    """Several drafters that name successors, as one.

    A token named by several keeps the odds of being wrong by all of them: `1 - prod (1 - p)`, taken as if their
    errors were independent. That decides only the order of the tree, never what is accepted.

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

    def begin(self, prompt: Sequence[int]) -> Drafter:
        """The members' drafters for this sequence."""
        return Combined(*(member.begin(prompt) for member in self.members))

    def prepare(self, context: Sequence[int], max_nodes: int, max_depth: int) -> None:
        """Let every member prepare its tree."""
        for member in self.members:
            member.prepare(context, max_nodes, max_depth)

    def successors(self, context: Sequence[int], path: tuple[int, ...]) -> Successors:
        """Everything a member names."""
        wrong: dict[int, float] = {}
        for member in self.members:
            for token, probability in member.successors(context, path):
                wrong[token] = wrong.get(token, 1.0) * (1.0 - probability)
        return [(token, 1.0 - odds) for token, odds in wrong.items()]

    def observe(self, context: Sequence[int], observation: Observation) -> None:
        """Let every member learn."""
        for member in self.members:
            member.observe(context, observation)
