"""Prompt lookup: what followed the last n-gram when it occurred before, in the prompt or in what was decoded.

Source: Saxena 2023, prompt lookup decoding (transformers' `prompt_lookup_num_tokens`). Here every drafted path is
looked up itself, so that a tree may leave one occurrence for another, and the estimates that order the tree are hit
rates, counted while decoding, by length of the match and recency.
"""

from __future__ import annotations

from collections.abc import Sequence

from .base import Drafter, HitRate, Observation, SuccessorDrafter, Successors

_FIRST_GUESS = {1: 0.15, 2: 0.35, 3: 0.5, 4: 0.65, 5: 0.75}


def _first_guess(length: int, recency: int) -> float:
    return _FIRST_GUESS[min(length, 5)] / (1 + recency)


class PromptLookup(SuccessorDrafter):
    """N-grams of one sequence, up to `longest` tokens, with the last `occurrences` different continuations of each."""

    def __init__(self, longest: int = 4, occurrences: int = 3):
        self.longest, self.occurrences = longest, occurrences
        self.hit_rate = HitRate(_first_guess)
        self._followers: dict[tuple[int, ...], list[int]] = {}
        self._indexed = 1

    def begin(self, prompt: Sequence[int]) -> Drafter:
        """An index of its own for the sequence; the hit rates are shared."""
        fresh = PromptLookup(self.longest, self.occurrences)
        fresh.hit_rate = self.hit_rate
        fresh._index(prompt)
        return fresh

    def successors(self, context: Sequence[int], path: tuple[int, ...]) -> Successors:
        """What followed the longest n-gram at the end of the path, the latest occurrence first."""
        length, followers = self._match(context, path)
        return [(token, self.hit_rate(length, recency)) for recency, token in enumerate(followers)]

    def observe(self, context: Sequence[int], observation: Observation) -> None:
        """Count hits along the accepted path, then index what was committed."""
        path = tuple(observation.tree.tokens[node] for node in observation.path[1:])
        for depth, node in enumerate(observation.path):
            length, followers = self._match(context, path[:depth])
            for recency, token in enumerate(followers):
                self.hit_rate.add(token == observation.top_ids[node][0], length, recency)
        self._index([*context, *path])

    def _match(self, context: Sequence[int], path: tuple[int, ...]) -> tuple[int, list[int]]:
        tail = (*context[-self.longest :], *path)[-self.longest :]
        for start in range(len(tail)):
            if followers := self._followers.get(tail[start:]):
                return len(tail) - start, followers
        return 0, []

    def _index(self, context: Sequence[int]) -> None:
        for end in range(self._indexed, len(context)):
            for length in range(1, min(self.longest, end) + 1):
                followers = self._followers.setdefault(tuple(context[end - length : end]), [])
                if context[end] in followers:
                    followers.remove(context[end])
                followers.insert(0, context[end])
                del followers[self.occurrences :]
        self._indexed = max(self._indexed, len(context))
