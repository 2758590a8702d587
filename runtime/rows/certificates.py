"""Certificates of rows by tensors of torch, from the rows' statistics: what runs where no kernel does."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..generated import torch_budgets as budgets
from .dispatch import statistics
from .inputs import refuse_rows
from .program import Program, floors, uses_logit_ratio
from .projection import project
from .records import Certificate, RowStats
from .reference import UNIT
from .threshold import AcceptedSet, Enclosure, Known, accepted_set

WIDEN = 16
"""How many times more logits each further traversal keeps, until the whole row is sorted."""
WHOLE_ROW = 4096


def certificates(
    rows: Tensor,
    draft: Tensor | None,
    shape: torch.Size,
    steps: Program,
    candidates: int,
    temperature: float,
    sound: bool,
    window: int,
) -> Certificate:
    """Certificates of a matrix of rows, from their statistics."""
    size = rows.shape[-1]
    found = statistics(rows, window, temperature, draft)
    refuse_rows(rows, found.stats.max, shape, "target_logits")
    if draft is not None and found.kl is not None and bool(found.kl.isnan().any()):
        refuse_rows(draft, draft.amax(-1), shape, "draft_logits")
    raw = rows.gather(-1, found.stats.top_ids).double()
    gaps = (raw[..., :1] - raw) / temperature
    known = _known(steps, rows, found.stats, raw, temperature)
    accepted = accepted_set(steps, gaps, known, size, sound=sound)
    kl = found.kl if found.kl is None or not sound or found.kl_error is None else found.kl + found.kl_error
    result = _certificate(accepted, gaps, known, candidates, size, sound)
    if window < size:
        # The window shows the competitors unless the accepted tokens fill it up, and may not show what is undecided.
        unseen = torch.where(accepted.count < size, accepted.count + candidates > window, ~accepted.decided)
        if bool(unseen.any()):
            wider = size if window >= WHOLE_ROW else min(size, WIDEN * window)
            again = certificates(rows[unseen], None, shape, steps, candidates, temperature, sound, wider)
            for name in ("value", "level", "threshold", "accepted", "exact"):
                getattr(result, name)[unseen] = getattr(again, name)
            result.passes[unseen] = 2
    return result if kl is None else replace(result, kl=kl, certified=kl < result.value)


def _known(steps: Program, rows: Tensor, stats: RowStats, raw: Tensor, temperature: float) -> Known:
    """Enclosures of the statistics of the rows that the rule's thresholds use."""
    log_top = stats.max - stats.logsumexp
    error = budgets.top_log_probability(UNIT, stats.logsumexp_error, stats.max)
    entropies = {0.0: Enclosure.widened(stats.entropy - stats.entropy_error, stats.entropy + stats.entropy_error)}
    for floor in floors(steps):
        all_gaps = (raw[..., :1] - rows.double()) / temperature
        log_probabilities = -all_gaps - (stats.logsumexp - stats.max)[..., None]
        weights = log_probabilities.exp()
        value = -(weights * torch.log(weights + floor)).sum(-1)
        sums = budgets.reference_sums(UNIT, rows.shape[-1])
        bound = budgets.reference_floored_entropy(sums, error, value, floor)
        entropies[floor] = Enclosure.widened(value - bound, value + bound)
    ratio = None
    if uses_logit_ratio(steps):
        # 0/0 is NaN, which no comparison accepts.
        quotient = raw[..., min(1, raw.shape[-1] - 1)] / raw[..., 0]
        ratio = Enclosure.widened(quotient, quotient)
    return Known(Enclosure.widened(log_top - error, (log_top + error).clamp(max=0)), entropies, ratio)


def _certificate(
    accepted: AcceptedSet, gaps: Tensor, known: Known, candidates: int, size: int, sound: bool
) -> Certificate:
    """The certificate of rows whose accepted tokens and competitors lie in the window; others are done again."""
    log_top = known.log_top
    top_probability = log_top.lower.exp() if sound else ((log_top.lower + log_top.upper) / 2).exp()
    projected = project(top_probability, gaps, accepted.count.clamp(min=1), candidates)
    value = projected.value
    if sound:
        value = (value * (1 - budgets.certificate(UNIT, projected.pool.sum(-1)))).clamp(min=0)
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
