"""`row_stats` and `certify`: what a row of target logits is like, and how far the drafter may be from it.

    accepted iff  max z - z <= gap of the rule                                   rows.threshold
    C = inf { KL(target || draft) : no accepted token among the drafter's top m }   rows.projection
    certified iff KL(target || draft) < C

`value` and `kl` can be differentiated to any order, by reverse and forward mode and torch.func's transforms.

Most rows are settled by their k largest logits, which one traversal finds. Where the accepted set or the competitors
reach beyond those, further exact traversals of those rows follow; `passes` says which rows needed them. Both functions
are operators of torch (rows.operators), so that they compile, export and differentiate. An exported program holds what
it needs of a rule; where it is loaded, `from draftcert import certify` makes the operators known to torch.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ...theory import DraftcertError, Rule, parse_rule
from ...theory.numbers import real_number, truth_value, whole_number
from . import gradients, operators
from .inputs import without_padding
from .program import Op, encoded
from .records import Certificate, RowStats

if TYPE_CHECKING:
    from jaxtyping import Float


def row_stats(logits: Float[Tensor, "*rows vocab"], k: int = 16, vocab_size: int | None = None) -> RowStats:
    """Maximum, argmax, logsumexp, entropy and the k largest logits of each row, in one traversal.

    Args:
        logits: `[..., V]` float32, bfloat16, float16 or float64; -inf masks a token (probability zero).
        k: how many of the largest logits to keep, 1 <= k <= V.
        vocab_size: tokens beyond it are padding and are ignored.

    Ties are ordered by the lowest id. Statistics are float64 in nats, with bounds of their errors.

    Raises:
        DraftcertError: NaN, +inf, a row of -inf only, no tokens, k outside 1..V, another dtype, a sparse tensor.

    >>> import torch
    >>> stats = row_stats(torch.tensor([[0.0, 2.0, 2.0, -1.0]]), k=3)
    >>> stats.argmax.tolist(), stats.top_ids.tolist()
    ([1], [[1, 2, 0]])
    """
    target = without_padding(logits, vocab_size, "logits")
    k = whole_number(k, "k", 1, target.shape[-1], ", the size of the vocabulary")
    reason = "row_stats has no gradient: differentiate `value` and `kl` of certify"
    if gradients.has_tangent(target):
        raise DraftcertError(reason)
    return RowStats(*gradients.refused(operators.row_stats(target.detach(), k), target, reason))


def certify(
    target_logits: Float[Tensor, "*rows vocab"],
    rule: Rule | str,
    candidates: int = 1,
    draft_logits: Float[Tensor, "*rows draft_vocab"] | None = None,
    temperature: float = 1.0,
    *,
    sound: bool = True,
    vocab_size: int | None = None,
    k: int = 16,
) -> Certificate:
    """The acceptance certificate of every row of target logits, and whether the drafter's row is within it.

    `KL(target || draft) < C` implies that one of the drafter's `candidates` most likely tokens is accepted by the
    rule, however the drafter's ties are broken; C is the largest number of which this is true.

    Args:
        target_logits: `[..., V]` float32, bfloat16, float16 or float64; -inf masks a token (probability zero).
        rule: a `Rule` or its text, such as "top_m(10) & additive(0.6)". One that compares raw logits (mars) warns where
            all logits of a row are negative: those are no raw logits, or their ratio means nothing.
        candidates: m, how many of the drafter's most likely tokens are tried, 1 <= m <= V - 1.
        draft_logits: the drafter's logits, of the same shape once padding is cut off; they give `kl` and `certified`.
        temperature: divides both rows of logits.
        sound: round everything against the claim: C down, KL up, accepted set to the smaller one, so that rounding
            never certifies a row that is not. With False all numbers are the nearest ones.
        vocab_size: tokens beyond it are padding and are ignored.
        k: how many of the largest logits the first pass keeps; it decides speed, never the result.

    Raises:
        DraftcertError: NaN, +inf, a row of -inf only, no tokens, shapes or devices that differ, `candidates` outside
            1..V-1, a temperature that is not positive, an unknown rule.

    Source: theorems T1 to T3 of `draftcert.theory`; strict greedy: Sharma 2026, arXiv 2606.30265.

    >>> import torch
    >>> result = certify(torch.tensor([0.6, 0.4]).log(), "strict_greedy")
    >>> round(float(result.value), 4), int(result.accepted)  # rounded down; exactly .6 ln 1.2 + .4 ln .8 = 0.0201355...
    (0.0201, 1)
    """
    target = without_padding(target_logits, vocab_size, "target_logits")
    draft = None
    if draft_logits is not None:
        draft = without_padding(draft_logits, vocab_size, "draft_logits")
        if draft.shape != target.shape:
            within = "" if vocab_size is None else f" within vocab_size = {vocab_size}"
            raise DraftcertError(
                f"draft_logits of shape {tuple(draft.shape)} beside target_logits of {tuple(target.shape)}{within}: "
                "both rate the same tokens of the same rows; cut padding off with vocab_size"
            )
        if draft_logits.device != target_logits.device:
            raise DraftcertError(f"draft_logits on {draft_logits.device}, target_logits on {target_logits.device}")
    size = target.shape[-1]
    candidates = whole_number(candidates, "candidates", 1, size - 1, ": one token at least must be left")
    temperature = real_number(temperature, "temperature")
    if not 0 < temperature < float("inf"):
        raise DraftcertError(
            f"temperature = {temperature} is not a positive number; for temperature 0 use strict_greedy"
        )
    k = min(whole_number(k, "k", 1), size)
    truth_value(sound, "sound")
    steps = _numbers(rule)
    if not torch.compiler.is_compiling() and Op.LOGIT_RATIO in steps[::4]:
        _warn_of_negative_logits(target)
    differentiated = torch.compiler.is_compiling() or gradients.needed(target, draft)
    operator = operators.certify_with_gradient if differentiated else operators.certify
    result = operator(target, draft, steps, candidates, temperature, sound, k)
    found = Certificate(*result[:6]) if draft is None else Certificate(*result)
    if not differentiated:
        return found
    reason = "only `value` and `kl` of a certificate have gradients; level and threshold do not"
    level, threshold = gradients.refused((found.level, found.threshold), target, reason)
    return replace(found, level=level, threshold=threshold)


def _warn_of_negative_logits(target: Tensor) -> None:
    """Say that a ratio of logits means nothing in rows of negative ones, unless a transform hides the numbers."""
    transforms = torch._C._functorch.peek_interpreter_stack()  # pyright: ignore[reportAttributeAccessIssue]
    if transforms is None and bool((target.detach().amax(-1) < 0).any()):
        warnings.warn(
            "the rule compares raw logits, and rows of target_logits have negative ones only, as log-probabilities do: "
            "the ratio of their two largest is 1 or more, so that the second token is always accepted",
            RuntimeWarning,
            stacklevel=3,
        )


def _numbers(rule: Rule | str) -> list[float]:
    """The program of a rule, which torch.compile takes for a constant instead of tracing how it is made."""
    return encoded(parse_rule(rule))


# All that torch.compiler.assume_constant_result does after importing torch.compile's tracer, which takes a second.
setattr(_numbers, "_dynamo_marked_constant", True)  # noqa: B010
