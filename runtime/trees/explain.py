"""Why two outputs of one model differ: the first divergence and what it is.

Both outputs are teacher-forced through the target. Where they part, the target's row there says which of the two
tokens is its greedy one and by how much; evaluating the same row once as a single row and once among the rows of a
tree, as a tree decoder does, measures the numerical noise of this machine and dtype. A margin below twice the largest
change of a logit can be flipped by it: `2 max|z - z'| < z_(1) - z_(2)` is what keeps the greedy token (B5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...theory.errors import DraftcertError
from ...theory.rules import strict_greedy
from ..models import LoadedModel
from ..rows.certify import certify
from .forward import TreeForward
from .tree import Tree
from .verify import rank

VERDICTS = {
    "identical": "the two outputs are the same",
    "prompt": "the prompts differ, so the outputs need not agree",
    "stopped early": "one output is the beginning of the other: another budget or end-of-sequence token",
    "exact tie": "both tokens have exactly the same logit; which comes first is a convention (here: the lowest id)",
    "numerical noise": "the margin is within what batching changes on this machine: either can be the greedy token",
    "different rule": "one output left the greedy token by more than noise, as a relaxed rule or sampling does",
    "true error": "neither output took the greedy token, and noise does not explain it",
}


@dataclass(frozen=True)
class Explanation:
    """What the first divergence is.

    `verdict`: a key of `VERDICTS`. `position`: index among the new tokens, `None` if there is none. `tokens`: the two
    tokens there (`None` where an output has ended). `greedy`: the target's token; `ranks` and `logits`: of the two;
    `margin`: gap of their logits. `noise`: largest change of a logit between the row alone and among a tree's
    rows; `certificate`: strict certificate of the row in nats, what the divergence of two evaluations must stay below.
    """

    verdict: str
    text: str
    position: int | None = None
    tokens: tuple[int | None, int | None] = (None, None)
    greedy: int | None = None
    ranks: tuple[int, int] | None = None
    logits: tuple[float, float] | None = None
    margin: float | None = None
    noise: float | None = None
    certificate: float | None = None


@torch.inference_mode()
def explain(
    target: Any,
    prompt: Sequence[int],
    first: Sequence[int],
    second: Sequence[int],
    second_prompt: Sequence[int] | None = None,
    tree_nodes: int = 16,
) -> Explanation:
    """Find and name the first divergence of two outputs (token ids without the prompt) of `target`.

    Raises:
        DraftcertError: an empty prompt or a token outside the target's vocabulary.

    >>> from draftcert.runtime.models import load_model
    >>> target = load_model()
    >>> prompt = target.encode("Name three moons.")[0].tolist()
    >>> one, two = (target.tokenizer(text)["input_ids"] for text in ("1. Europa", "2. Europa"))
    >>> explain(target, prompt, one, two).verdict
    'different rule'
    """
    prompt, first, second = list(prompt), list(first), list(second)
    if not prompt:
        raise DraftcertError("the prompt is empty: the outputs cannot be evaluated")
    if second_prompt is not None and list(second_prompt) != prompt:
        return _verdict("prompt")
    if first == second:
        return _verdict("identical")
    shared = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
    if shared is None:
        end = min(len(first), len(second))
        pair = (first[end] if end < len(first) else None, second[end] if end < len(second) else None)
        return _verdict("stopped early", position=end, tokens=pair)
    forward = TreeForward(target.model if isinstance(target, LoadedModel) else target)
    tokens = (first[shared], second[shared])
    context = [*prompt, *first[:shared]]
    for token in (*context, *tokens):
        if not 0 <= token < forward.vocabulary:
            raise DraftcertError(f"token {token} lies outside the target's vocabulary 0 to {forward.vocabulary - 1}")
    row, others = evaluations(forward, context, tree_nodes)
    greedy = int(row.argmax())
    ranks = (rank(row, tokens[0]), rank(row, tokens[1]))
    logits = (float(row[tokens[0]]), float(row[tokens[1]]))
    noise = max(float((row.double() - other.double()).abs().max()) for other in others)
    below_top = [float(row[greedy]) - logit for logit in logits]
    if logits[0] == logits[1] and max(below_top) == 0:
        verdict = "exact tie"
    elif max(below_top) <= 2 * noise:
        verdict = "numerical noise"
    elif min(below_top) <= 2 * noise:
        verdict = "different rule"
    else:
        verdict = "true error"
    return _verdict(
        verdict,
        position=shared,
        tokens=tokens,
        greedy=greedy,
        ranks=ranks,
        logits=logits,
        margin=abs(logits[0] - logits[1]),
        noise=noise,
        certificate=float(certify(row[None], strict_greedy()).value[0]),
    )


def evaluations(forward: TreeForward, context: Sequence[int], nodes: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The target's row after `context`: by one row on a cache, and by a whole pass and as the root of trees."""
    context = list(context)
    cache = forward.new_cache([len(context)], nodes)
    whole = forward.prefill([context], cache)[0][0]
    root = context[-1]
    cache.lengths[0] = len(context) - 1
    alone = forward([Tree((root,), (-1,))], cache)[0][0]
    others = [whole]
    nodes = min(nodes, forward.vocabulary, forward.max_positions - len(context))
    if nodes > 1:
        others.append(forward([Tree((root, *range(nodes - 1)), (-1, *[0] * (nodes - 1)))], cache)[0][0])
        others.append(forward([Tree((root,) * nodes, tuple(range(-1, nodes - 1)))], cache)[0][0])
    return alone, others


def _verdict(verdict: str, **facts: Any) -> Explanation:
    return Explanation(verdict, VERDICTS[verdict], **facts)
