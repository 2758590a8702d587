"""Gradients of a certificate and of the divergence in the logits.

C = sum over the pool of p ln(p/c), c the mean of p over the pool, so dC/dp = ln(p/c) there and 0 elsewhere: what c
contributes cancels. Through the softmax, dC/dz = p (dC/dp - sum p dC/dp) = p ([in pool] ln(p/c) - C).
K = sum p d with d = ln(p/q): dK/dz = p (d - K) and dK/dw = q - p for the drafter's logits w.
At p = 0 all of them are 0, at a tie (C = 0, an empty pool) and where C or K is infinite too.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...theory import DraftcertError


def save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    """Keep what `gradients` needs of a call."""
    target, draft, _, ctx.candidates, ctx.temperature, _, _ = inputs
    value, level, _, accepted, _, _, kl, _ = output
    ctx.has_draft = draft is not None
    ctx.save_for_backward(target, *([draft] if ctx.has_draft else []), value, level, accepted, kl)
    ctx.set_materialize_grads(False)


def gradients(ctx: Any, *upstream: Tensor | None) -> tuple[Tensor | None, ...]:
    """Of the logits of target and draft, from those of `value` and `kl`; of nothing else."""
    target, *drafts, value, level, accepted, kl = ctx.saved_tensors
    if any(gradient is not None for gradient in upstream[1:3]):
        raise DraftcertError("only `value` and `kl` of a certificate have gradients; level and threshold do not")
    log_target = torch.log_softmax(target.double() / ctx.temperature, -1)
    p = log_target.exp()
    by_value, by_kl = upstream[0], upstream[6]
    result, draft_result = (torch.zeros_like(p) if ctx.needs_input_grad[0] else None), None
    if by_value is not None and result is not None:
        pool, finite = _pool(target, level, log_target, accepted, ctx.candidates), value.isfinite()
        slope = p * (torch.where(pool, log_target - level.log()[..., None], 0.0) - value[..., None])
        slope = torch.where((p > 0) & finite[..., None] & pool.any(-1, keepdim=True), slope, 0.0)
        result = result + by_value[..., None] * slope / ctx.temperature
    if by_kl is not None and drafts:
        log_draft = torch.log_softmax(drafts[0].double() / ctx.temperature, -1)
        finite = kl.isfinite()[..., None]
        if result is not None:
            slope = torch.where((p > 0) & finite, p * (log_target - log_draft - kl[..., None]), 0.0)
            result = result + by_kl[..., None] * slope / ctx.temperature
        draft_slope = torch.where(finite, log_draft.exp() - p, 0.0)
        draft_result = (by_kl[..., None] * draft_slope / ctx.temperature).to(drafts[0].dtype)
    result = None if result is None else result.to(target.dtype)
    return result, draft_result, None, None, None, None, None


def _pool(target: Tensor, level: Tensor, log_target: Tensor, accepted: Tensor, candidates: int) -> Tensor:
    """Which tokens the projection moves: accepted ones above the level and competitors below it."""
    order = target.sort(dim=-1, descending=True, stable=True).indices
    rank = torch.empty_like(order).scatter_(
        -1, order, torch.arange(order.shape[-1], device=order.device).expand_as(order)
    )
    count, line = accepted[..., None], level.log()[..., None]
    competitor = (rank >= count) & (rank < count + candidates)
    return ((rank < count) & (log_target > line)) | (competitor & (log_target < line))
