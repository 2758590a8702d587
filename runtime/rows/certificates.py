"""Certificates of rows by tensors of torch, from the rows' statistics: what runs where no kernel does."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..generated import torch_budgets as budgets
from . import reference
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
    stats = statistics(rows, window, temperature)
    refuse_rows(rows, stats.max, shape, "target_logits")
    raw = rows.gather(-1, stats.top_ids).double()
    gaps = (raw[..., :1] - raw) / temperature
    log_mass, log_mass_error = reference.log_mass(rows, temperature)
    known = _known(steps, rows, stats, raw, log_mass, log_mass_error, temperature)
    top_probability = (known.log_top.lower if sound else -log_mass).exp()
    accepted = accepted_set(steps, gaps, known, size, sound=sound)
    result = _certificate(accepted, gaps, top_probability, candidates, size, sound)
    if window < size:
        # The window shows the competitors unless the accepted tokens fill it up, and may not show what is undecided.
        unseen = torch.where(accepted.count < size, accepted.count + candidates > window, ~accepted.decided)
        if bool(unseen.any()):
            wider = size if window >= WHOLE_ROW else min(size, WIDEN * window)
            again = certificates(rows[unseen], None, shape, steps, candidates, temperature, sound, wider)
            for name in ("value", "level", "threshold", "accepted", "exact"):
                getattr(result, name)[unseen] = getattr(again, name)
            result.passes[unseen] = 2
    if draft is None:
        return result
    kl, kl_error = reference.divergence(rows, draft, temperature)
    if bool(kl.isnan().any()):
        refuse_rows(draft, draft.amax(-1), shape, "draft_logits")
    kl = kl + kl_error if sound else kl
    return replace(result, kl=kl, certified=kl < result.value)


def _known(
    steps: Program, rows: Tensor, stats: RowStats, raw: Tensor, log_mass: Tensor, error: Tensor, temperature: float
) -> Known:
    """Enclosures of the statistics of the rows that the rule's thresholds use."""
    entropies = {0.0: Enclosure.widened(stats.entropy - stats.entropy_error, stats.entropy + stats.entropy_error)}
    for floor in floors(steps):
        all_gaps = reference.gaps_of(rows, temperature)
        weights = (-all_gaps - log_mass[..., None]).exp()
        value = -(weights * torch.log(weights + floor)).sum(-1)
        sums = budgets.reference_sums(UNIT, rows.shape[-1])
        bound = budgets.reference_floored_entropy(sums, error, value, floor)
        entropies[floor] = Enclosure.widened(value - bound, value + bound)
    ratio = None
    if uses_logit_ratio(steps):
        # 0/0 is NaN, which no comparison accepts.
        quotient = raw[..., min(1, raw.shape[-1] - 1)] / raw[..., 0]
        ratio = Enclosure.widened(quotient, quotient)
    return Known(Enclosure.widened(-log_mass - error, (error - log_mass).clamp(max=0)), entropies, ratio)


def _certificate(
    accepted: AcceptedSet, gaps: Tensor, top_probability: Tensor, candidates: int, size: int, sound: bool
) -> Certificate:
    """The certificate of rows whose accepted tokens and competitors lie in the window; others are done again."""
    projected = project(top_probability, gaps, accepted.count.clamp(min=1), candidates)
    value = projected.value
    if sound:
        pooled = projected.pool.sum(-1).double()  # of integers torch would make float32, in which 1 less the bound is 1
        value = (value * (1 - budgets.certificate(UNIT, pooled))).clamp(min=0)
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
