"""`row_stats` and `certify`: what a row of target logits is like, and how far the drafter may be from it.

    accepted iff  max z - z <= gap of the rule                                   runtime.threshold
    C = inf { KL(target || draft) : no accepted token among the drafter's top m }   runtime.reference.project
    certified iff KL(target || draft) < C

Most rows are settled by their K largest logits, which one pass finds. Where the accepted set or the competitors reach
beyond those, a second exact pass over the whole row follows; `passes` says which rows needed it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..theory import DraftcertError, Rule, parse_rule
from ..theory.statistics import LOGIT_RATIO, Entropy
from .reference import UNIT, RowStats, as_rows, divergence, project, refuse_rows, statistics
from .threshold import LOG_TOP, AcceptedSet, Enclosure, accepted_set, floors, largest_rank


@dataclass(frozen=True)
class Certificate:
    """Certificates of rows of logits: tensors with the rows' leading shape.

    - `value`: C in nats; 0 where the target itself may be rejected (a tie under strict greedy), +inf where fewer than
      `candidates` tokens are rejected, so that every drafter is accepted.
    - `level`: the common probability the projection moves the pooled tokens to; p_(1) where nothing moves, NaN where C
      is infinite.
    - `threshold`: the least probability that is accepted (+inf: none; for a rank, that of the last token it lets in).
    - `accepted`: how many tokens are accepted, most likely first.
    - `exact`: whether the accepted set is decided. Where a token lies within rounding of the threshold it is not, and
      a sound certificate is that of the smaller set.
    - `passes`: 1 where the K largest logits settled the row, 2 where the whole row was needed.
    - `kl`: KL(target || draft) in nats, and `certified`: kl < value. `None` without drafter logits.
    """

    value: Tensor
    level: Tensor
    threshold: Tensor
    accepted: Tensor
    exact: Tensor
    passes: Tensor
    kl: Tensor | None = None
    certified: Tensor | None = None


def row_stats(logits: Tensor, k: int = 16, vocab_size: int | None = None) -> RowStats:
    """Maximum, argmax, logsumexp, entropy and the k largest logits of each row, in one traversal.

    Args:
        logits: `[..., V]` float32, bfloat16, float16 or float64; -inf masks a token (probability zero).
        k: how many of the largest logits to keep, 1 <= k <= V.
        vocab_size: tokens beyond it are padding and are ignored.

    Ties are ordered by the lowest id. Statistics are float64 in nats, with bounds of their errors.

    Raises:
        DraftcertError: NaN, +inf, a row of -inf only, no tokens, k outside 1..V, another dtype.

    >>> import torch
    >>> stats = row_stats(torch.tensor([[0.0, 2.0, 2.0, -1.0]]), k=3)
    >>> stats.argmax.tolist(), stats.top_ids.tolist()
    ([1], [[1, 2, 0]])
    """
    rows = as_rows(logits, vocab_size)
    if not 1 <= k <= rows.shape[-1]:
        raise DraftcertError(f"k = {k} lies outside 1..{rows.shape[-1]}, the size of the vocabulary")
    shape = logits.shape[:-1]
    refuse_rows(rows, rows.amax(-1), shape)
    stats = statistics(rows, k)
    return RowStats(**{name: tensor.reshape(shape + tensor.shape[1:]) for name, tensor in vars(stats).items()})


def certify(
    target_logits: Tensor,
    rule: Rule | str,
    candidates: int = 1,
    draft_logits: Tensor | None = None,
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
        rule: a `Rule` or its text, such as "top_m(10) & additive(0.6)".
        candidates: m, how many of the drafter's most likely tokens are tried, 1 <= m <= V - 1.
        draft_logits: the drafter's logits, of the same shape; they give `kl` and `certified`.
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
    >>> round(float(result.value), 6), int(result.accepted)
    (0.020136, 1)
    """
    rule = parse_rule(rule)
    rows = as_rows(target_logits, vocab_size, "target_logits")
    size = rows.shape[-1]
    if not 1 <= candidates <= size - 1:
        raise DraftcertError(f"candidates = {candidates} lies outside 1..{size - 1}: one token at least must be left")
    if not 0 < temperature < torch.inf:
        raise DraftcertError(
            f"temperature = {temperature} is not a positive number; for temperature 0 use strict_greedy"
        )
    if k < 1:
        raise DraftcertError(f"k = {k} must be at least 1")
    shape = target_logits.shape[:-1]
    refuse_rows(rows, rows.amax(-1), shape, "target_logits")
    columns = _certify_rows(rows, rule, candidates, temperature, sound, k)
    result = {name: column.reshape(shape) for name, column in vars(columns).items() if column is not None}
    if draft_logits is not None:
        kl = _kl(rows, target_logits, draft_logits, temperature, sound, vocab_size)
        result |= {"kl": kl, "certified": kl < result["value"]}
    return Certificate(**result)


def _kl(
    rows: Tensor, target_logits: Tensor, draft_logits: Tensor, temperature: float, sound: bool, vocab_size: int | None
) -> Tensor:
    draft = as_rows(draft_logits, vocab_size, "draft_logits")
    if draft_logits.shape != target_logits.shape:
        raise DraftcertError(
            f"draft_logits of shape {tuple(draft_logits.shape)} beside target_logits of {tuple(target_logits.shape)}: "
            "both rate the same tokens; cut padding off with vocab_size"
        )
    if draft_logits.device != target_logits.device:
        raise DraftcertError(f"draft_logits on {draft_logits.device}, target_logits on {target_logits.device}")
    shape = target_logits.shape[:-1]
    refuse_rows(draft, draft.amax(-1), shape, "draft_logits")
    value, error = divergence(rows, draft, temperature)
    return (value + error if sound else value).reshape(shape)


def _certify_rows(rows: Tensor, rule: Rule, candidates: int, temperature: float, sound: bool, k: int) -> Certificate:
    size = rows.shape[-1]
    window = min(size, max(k, largest_rank(rule)) + candidates)
    stats = statistics(rows, window, temperature)
    raw = rows.gather(-1, stats.top_ids).double()
    gaps = (raw[..., :1] - raw) / temperature
    known = _known(rule, rows, stats, raw, gaps, temperature)
    accepted = accepted_set(rule, gaps, known, size, sound=sound)
    result = _certificate(accepted, gaps, known, candidates, size, sound)
    # The window shows the competitors unless the accepted tokens fill it up, or leave fewer than m to be rejected.
    unseen = (accepted.count + candidates > window) & (accepted.count + candidates <= size)
    unseen |= (accepted.count == window) & (window < size)
    if window < size and bool(unseen.any()):
        whole = _certify_rows(rows[unseen], rule, candidates, temperature, sound, size)
        for name, column in vars(result).items():
            if column is not None:
                column[unseen] = getattr(whole, name)
        result.passes[unseen] = 2
    return result


def _known(rule: Rule, rows: Tensor, stats: RowStats, raw: Tensor, gaps: Tensor, temperature: float) -> dict:
    """Enclosures of the statistics of the row that the rule's thresholds use."""
    log_top = stats.max - stats.logsumexp
    error = stats.logsumexp_error + 2 * UNIT * stats.max.abs()
    known = {
        LOG_TOP: Enclosure.widened(log_top - error, (log_top + error).clamp(max=0)),
        Entropy(0): Enclosure.widened(stats.entropy - stats.entropy_error, stats.entropy + stats.entropy_error),
    }
    if rule.needs_logits:
        # 0/0 is NaN, which no comparison accepts.
        ratio = raw[..., min(1, raw.shape[-1] - 1)] / raw[..., 0]
        known[LOGIT_RATIO] = Enclosure.widened(ratio, ratio)
    for floor in floors(rule):
        all_gaps = (raw[..., :1] - rows.double()) / temperature
        log_probabilities = -all_gaps - (stats.logsumexp - stats.max)[..., None]
        weights = log_probabilities.exp()
        value = -(weights * torch.log(weights + float(floor))).sum(-1)
        # |d/dp p ln(p + f)| <= |ln(p + f)| + 1, and p is known to a relative `error` and its own rounding.
        bound = 4 * (error + (rows.shape[-1] + 16) * UNIT) * (1 + value.abs() + abs(float(floor)))
        known[Entropy(floor)] = Enclosure.widened(value - bound, value + bound)
    return known


def _certificate(
    accepted: AcceptedSet, gaps: Tensor, known: dict, candidates: int, size: int, sound: bool
) -> Certificate:
    """The certificate of rows whose accepted tokens and competitors lie in the window; others are done again."""
    log_top = known[LOG_TOP]
    top_probability = log_top.lower.exp() if sound else ((log_top.lower + log_top.upper) / 2).exp()
    projected = project(top_probability, gaps, accepted.count.clamp(min=1), candidates)
    value = projected.value
    if sound:
        value = (value * (1 - 64 * (projected.pool.sum(-1) + 16) * UNIT)).clamp(min=0)
    value = torch.where(accepted.count == 0, 0.0, value)
    everything = accepted.count + candidates > size
    return Certificate(
        value=torch.where(everything, torch.inf, value),
        level=torch.where(everything, torch.nan, projected.level),
        threshold=top_probability * torch.exp(-accepted.gap),
        accepted=accepted.count,
        exact=accepted.decided,
        passes=torch.ones_like(accepted.count, dtype=torch.uint8),
    )
