"""What a target finds likely after each of its tokens when it knows nothing else: Token Recycling's start.

A cold table knows no successor of a token until it comes for the first time, which is most of the misses of short
runs. The target itself can say beforehand, without data or training: all tokens are children of one root, hence a
tree, evaluated slice by slice. That is done once per model and kept in the user's cache folder.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import torch

from ....support.cache import cached
from ...models import identity
from ..forward import TreeForward
from ..tree import Tree

SuccessorTable = list[tuple[list[int], list[float]]]
"""For each token id from 0 on, its most likely successors and their probabilities."""

_AT_ONCE = 256
"""Tokens evaluated in one pass."""
_SUCCESSORS = 16
"""Most likely successors written down for each token."""


@torch.inference_mode()
def successor_table(
    forward: TreeForward, seconds: float = 60.0, on_progress: Callable[[float], None] | None = None
) -> SuccessorTable:
    """The successors of token 0, 1, 2, ... as far as one gets in about `seconds`; `on_progress` gets the share done.

    Vocabularies of byte-pair encodings are in order of frequency, so a table that ends early has the tokens that
    matter most. The root is the model's own beginning-of-sequence token.
    """
    root = forward.config.bos_token_id or 0  # there is none for some models: their first token is as good
    table: SuccessorTable = []
    start = perf_counter()
    while len(table) < forward.vocab_size and perf_counter() - start < seconds:
        children = range(len(table), min(len(table) + _AT_ONCE, forward.vocab_size))
        tree = Tree((root, *children), (-1, *[0] * len(children)))
        logits = forward([tree], forward.new_cache([0], len(tree)))[0][1:].float()
        top = logits.softmax(-1).topk(min(_SUCCESSORS, forward.vocab_size))
        table += zip(top.indices.tolist(), top.values.tolist(), strict=True)
        if on_progress is not None:
            on_progress(len(table) / forward.vocab_size)
    return table


def cached_successors(
    forward: TreeForward, seconds: float = 60.0, on_progress: Callable[[float], None] | None = None
) -> SuccessorTable:
    """`successor_table`, once per model, told apart by its configuration and all of its weights."""

    def parse(table: list[tuple[list[int], list[float]]]) -> SuccessorTable:
        return [(tokens, chances) for tokens, chances in table]

    return cached("successors", identity(forward.model), parse, lambda: successor_table(forward, seconds, on_progress))
