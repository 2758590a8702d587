"""Derivatives of a certificate and of the divergence in the logits, of any order, by reverse and by forward mode.

The kernels compute numbers. What is differentiated is the same thing in torch's own operators, on the pool that the
kernels found: C = sum over the pool of p ln(p/c), c the mean of p over the pool, and K = sum p ln(p/q). Only its
derivatives are used, as x - x.detach() is 0, and torch knows them of whatever kind and order.

C has no derivative where the pool changes: what is given is that of the pool as it is. At a tie (C = 0, an empty pool)
and where C or K is infinite it is 0, and tokens of probability 0 add nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ...theory import DraftcertError


def needed(*tensors: Tensor | None) -> bool:
    """Whether something of these tensors is to be differentiated, by reverse or by forward mode."""
    given = [tensor for tensor in tensors if tensor is not None]
    return (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given)) or has_tangent(*given)


def has_tangent(*tensors: Tensor) -> bool:
    """Whether forward mode differentiates in one of these tensors."""
    return any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors)


def refused(found: Iterable[Tensor], logits: Tensor, reason: str) -> tuple[Tensor, ...]:
    """`found`, of which a gradient in the logits is an error with the reason, where torch can run one."""
    if torch.compiler.is_compiling() or not (torch.is_grad_enabled() and logits.requires_grad) or has_tangent(logits):
        return tuple(found)
    return tuple(Refused.apply(x, logits, reason) if x.is_floating_point() else x for x in found)


def with_derivatives(found: Tensor, differentiable: Tensor) -> Tensor:
    """The numbers of `found` with the derivatives of `differentiable`, 0 where `found` is not finite."""
    finite = torch.where(found.isfinite(), differentiable, 0.0)
    return found + (finite - finite.detach())


def value(target: Tensor, level: Tensor, accepted: Tensor, candidates: int, temperature: float) -> Tensor:
    """C of rows whose level and number of accepted tokens are known."""
    log_p, p = _probabilities(target, temperature)
    pool = _pool(target.detach(), log_p.detach(), level, accepted, candidates)
    count = pool.sum(-1, keepdim=True)
    mean = torch.where(count > 0, torch.where(pool, p, 0.0).sum(-1, keepdim=True) / count.clamp(min=1), 1.0)
    return torch.where(pool & (p > 0), p * (log_p - mean.log()), 0.0).sum(-1)


def divergence(target: Tensor, draft: Tensor, temperature: float) -> Tensor:
    """K of rows where it is finite."""
    (log_p, p), (log_q, _) = (_probabilities(rows, temperature) for rows in (target, draft))
    return (p * (log_p - log_q)).sum(-1)


def _probabilities(rows: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """ln p and p; where p = 0, the logarithm is 0 instead, and neither has a derivative of its own."""
    log_p = torch.log_softmax(rows.double() / temperature, -1)
    possible = log_p > -torch.inf
    log_p = torch.where(possible, log_p, 0.0)
    return log_p, torch.where(possible, log_p.exp(), 0.0)


def _pool(target: Tensor, log_p: Tensor, level: Tensor, accepted: Tensor, candidates: int) -> Tensor:
    """Which tokens the projection moves: accepted ones above the level and competitors below it."""
    order = target.sort(dim=-1, descending=True, stable=True).indices
    rank = order.argsort(-1)
    count, line = accepted[..., None], level.log()[..., None]
    log_p = torch.where(target == -torch.inf, -torch.inf, log_p)
    competitor = (rank >= count) & (rank < count + candidates)
    return ((rank < count) & (log_p > line)) | (competitor & (log_p < line))


class Refused(torch.autograd.Function):
    """The same tensor, of which a gradient in the logits is refused with the reason."""

    generate_vmap_rule = True

    @staticmethod
    def forward(found: Tensor, logits: Tensor, reason: str) -> Tensor:
        """A copy, which depends on the logits as far as torch knows."""
        return found.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, str], output: Tensor) -> None:
        """Keep the reason."""
        ctx.reason = inputs[2]
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx: Any, *gradient: Tensor) -> None:
        """There is none."""
        raise DraftcertError(ctx.reason)

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> Tensor:
        """Forward mode over reverse mode passes here for what it does not differentiate, too."""
        return torch.zeros_like(*ctx.saved_tensors)
