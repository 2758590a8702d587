"""Why two outputs of one model differ: the first divergence and what it is.

Where the outputs part, the plain model's row (`plain`: no cache, no code of ours) says which of the two tokens is its
greedy one and by how much. How far rounding moves that row is measured: the same row through caches that were filled
in different pieces, alone and among other rows, as decoders evaluate it. A margin below twice the largest change of a
logit can be flipped by it: `2 max|z - z'| < z_(1) - z_(2)` is what keeps the greedy token (B5). A change larger than
any rounding is no noise: then the engine is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...theory.errors import DraftcertError
from ...theory.numbers import whole_numbers
from ...theory.rules import strict_greedy
from ..models import LoadedModel
from ..models.evaluating import evaluating
from ..rows.certify import certify
from .forward import TreeForward
from .plain import cached_row, distance, plain_logits, require_causal, tolerance
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
    "engine fault": "logits of this engine are further off the plain model's than rounding explains: it is wrong",
    "broken promise": "both runs promise the same bits, whatever noise there is: the engine of one was wrong",
}
ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Numbers of rows among which a row is evaluated."""


@dataclass(frozen=True)
class Explanation:
    """What the first divergence is.

    `verdict`: a key of `VERDICTS`. `position`: index among the new tokens, `None` if there is none. `tokens`: the two
    tokens there (`None` where an output has ended). `greedy`: the plain model's token. `ranks` and `logits` of the two;
    `margin`: gap of their logits. `noise`: largest change of a logit by cache history and number of rows;
    `certificate`: strict certificate of the row in nats, what the divergence of two evaluations must stay below.
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


def explain(
    target: Any,
    prompt: Sequence[int],
    first: Sequence[int],
    second: Sequence[int],
    second_prompt: Sequence[int] | None = None,
    rows: Sequence[int] = ROWS,
    same_bits: bool = False,
) -> Explanation:
    """Find and name the first divergence of two outputs (token ids without the prompt) of `target`.

    `rows`: how many rows the passes had that made the outputs; for the usual numbers if not given. `same_bits`: both
    are outputs by one `GreedyTreeDecoder.same_bits`; then no tie and no noise excuses a difference.

    Raises:
        DraftcertError: an empty prompt, a token outside the target's vocabulary, or a model that is not causal.

    >>> from draftcert.runtime.models import load_model
    >>> target = load_model()
    >>> prompt = target.encode("Name three moons.")[0].tolist()
    >>> one, two = (target.tokenizer(text)["input_ids"] for text in ("1. Europa", "2. Europa"))
    >>> explain(target, prompt, one, two).verdict
    'different rule'
    """
    prompt, first, second = (
        whole_numbers(tokens, name, 0) for name, tokens in (("prompt", prompt), ("first", first), ("second", second))
    )
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
    model = target.model if isinstance(target, LoadedModel) else target
    tokens = (first[shared], second[shared])
    vocabulary = model.get_output_embeddings().weight.shape[0]
    for token in (*prompt, *first[:shared], *tokens):
        if not 0 <= token < vocabulary:
            raise DraftcertError(f"token {token} lies outside the target's vocabulary 0 to {vocabulary - 1}")
    with evaluating(model):
        row, others = evaluations(model, prompt, first[:shared], rows)
        require_causal(model, [*prompt, *first[:shared]])
        allowed = float(tolerance(model, [*prompt, *first[:shared]]))
    greedy = int(row.argmax())
    ranks = (rank(row, tokens[0]), rank(row, tokens[1]))
    logits = (float(row[tokens[0]]), float(row[tokens[1]]))
    noise = max(float((row.double() - other.double()).abs().nan_to_num(nan=0.0).max()) for other in others)
    below_top = [float(row[greedy]) - logit for logit in logits]
    if max(float(distance(other, row)) for other in others) > allowed:
        verdict = "engine fault"
    elif same_bits:
        verdict = "broken promise"
    elif logits[0] == logits[1] and max(below_top) == 0:
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


def evaluations(
    model: Any, prompt: Sequence[int], tokens: Sequence[int], rows: Sequence[int]
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The plain row after prompt and tokens, and the same row through caches filled in pieces of different sizes."""
    plain = plain_logits(model, [[*prompt, *tokens]], 1)[0, -1]
    if not tokens and len(prompt) > 1:  # something must come among other rows
        prompt, tokens = prompt[:-1], prompt[-1:]
    others = [cached_row(model, prompt, tokens)]
    for forward in {
        engine.few_rows is None: engine for engine in (TreeForward(model), TreeForward(model, False))
    }.values():
        fits = [count for count in rows if count <= forward.max_positions - len(prompt) - len(tokens)]
        others += _among(forward, list(prompt), list(tokens), fits) if fits else []
    return plain, [other.to(plain) for other in others]


@torch.inference_mode()
def _among(forward: TreeForward, prompt: list[int], tokens: list[int], rows: Sequence[int]) -> list[torch.Tensor]:
    """The row after prompt and tokens, for each number of rows: the tokens come in pieces of so many, the last of which
    is filled up. The prompt is passed once, and what came behind it is taken back each time.
    """
    cache = forward.new_cache([len(prompt)], len(tokens) + max(rows))
    behind_the_prompt = forward.begin([prompt], cache, None)[0][0]
    found = []
    for count in rows:
        cache.lengths[0], row = len(prompt), behind_the_prompt
        for at in range(0, len(tokens), count):
            piece = tokens[at : at + count]
            chain = [*piece, *[0] * (count - len(piece))]
            row = forward([Tree(tuple(chain), tuple(range(-1, count - 1)))], cache)[0][len(piece) - 1]
            cache.commit(0, range(len(piece)))
        found.append(row)
    return found


def _verdict(verdict: str, **facts: Any) -> Explanation:
    return Explanation(verdict, VERDICTS[verdict], **facts)
