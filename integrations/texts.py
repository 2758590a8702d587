"""What adapters share that draft for an engine: it hands out the token ids of its running texts, and no probabilities.

A text is told apart by what it holds, not by a request's number: one that begins with a text of the call before is
that text, gone on, and what was added to it is learned; any other one is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from ..runtime.trees.drafters import Drafter, Observation, drafter_by_name
from ..runtime.trees.tree import Tree


@dataclass
class _Text:
    tokens: list[int]
    drafter: Drafter

    def go_on(self, tokens: list[int]) -> None:
        """Learn what was added: to a drafter it looks like a pass over that chain whose target was certain of it."""
        before, added = self.tokens, tokens[len(self.tokens) :]
        if added:
            chain = Tree((before[-1], *added[:-1]), tuple(range(-1, len(added) - 1)))
            certain = Observation(chain, tuple(range(len(added))), [[token] for token in added], [[1.0]] * len(added))
            self.drafter.observe(before, certain)
        self.tokens = tokens


class TextDrafter:
    """Draft for all texts that an engine runs at a time.

    `drafter`: a drafter, or a name of one that needs no target, such as "lookup"; it is shared by all texts, with what
    it learns.

    Raises:
        DraftcertError: a name of no drafter, or of one that is made of the target.

    >>> drafter = TextDrafter("lookup")
    >>> drafter.chains([[1, 2, 3, 4, 5, 1, 2, 3]], longest=2)
    [[4, 5]]
    """

    def __init__(self, drafter: Drafter | str = "recycling+lookup"):
        self.drafter = drafter_by_name(drafter, None) if isinstance(drafter, str) else drafter
        self._running: list[_Text] = []

    def trees(self, texts: Sequence[list[int]], max_nodes: int, max_depth: int) -> list[Tree]:
        """For each text a tree of at most so many nodes, its last token as the root included, and so deep.

        `texts`: all that run, each with at least one token. What is not among them is forgotten.
        """
        self._running = [self._followed(text) for text in texts]
        return [each.drafter.propose(each.tokens, max_nodes, max_depth) for each in self._running]

    def chains(self, texts: Sequence[list[int]], longest: int, likely: float = 0.3) -> list[list[int]]:
        """For each text its likeliest continuation, of at most `longest` tokens; `texts` as in `trees`.

        It ends where the estimated probability that the target accepts it all falls below `likely`.
        """
        # No more than 1 / likely paths of a depth are that likely, so that the tree holds the chain.
        return [_chain(tree, likely) for tree in self.trees(texts, 1 + longest * ceil(1 / likely), longest)]

    def _followed(self, tokens: list[int]) -> _Text:
        begun = [each for each in self._running if tokens[: len(each.tokens)] == each.tokens]
        text = max(begun, key=lambda each: len(each.tokens), default=None)
        if text is None:
            return _Text(tokens, self.drafter.begin(tokens))
        self._running.remove(text)  # of two texts that began alike only one goes on with its drafter
        text.go_on(tokens)
        return text


def _chain(tree: Tree, likely: float) -> list[int]:
    """The tokens of the likeliest path, which has the first child of every node, as long as it is likely."""
    node, tokens = 0, []
    while tree.children[node]:
        node = tree.children[node][0]
        if tree.probabilities is not None and tree.probabilities[node] < likely:
            break
        tokens.append(tree.tokens[node])
    return tokens
