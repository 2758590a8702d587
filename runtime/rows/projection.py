"""The level projection of rows by tensors of torch, from logit gaps: theorems T1 to T3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..generated import torch_formulas as formulas

if TYPE_CHECKING:
    from jaxtyping import Bool, Float64, Int64


@dataclass(frozen=True)
class Projection:
    """The level projection of each row: `value` in nats, `level` as a probability, `pool` over the window's tokens."""

    value: Float64[Tensor, "*rows"]
    level: Float64[Tensor, "*rows"]
    pool: Bool[Tensor, "*rows window"]


def project(
    top_probability: Float64[Tensor, "*rows"],
    gaps: Float64[Tensor, "*rows window"],
    accepted: Int64[Tensor, "*rows"],
    candidates: int,
) -> Projection:
    """Theorems T1 to T3 on rows whose `accepted + candidates` first tokens are in the window `gaps`.

    With r = p/p_(1) - 1 = expm1(-gap), sum_A (r - x)_+ falls and sum_M (x - r)_+ grows in x: an accepted token belongs
    to the pool iff the first is below the second at its own r, a competitor iff it is above. Both are cumulative sums.
    `accepted` is at least 1.
    """
    r = torch.expm1(-gaps)
    index = torch.arange(gaps.shape[-1], device=gaps.device)
    count = accepted[..., None]
    is_accepted, is_competitor = index < count, (index >= count) & (index < count + candidates)
    above = torch.where(is_accepted, r, 0.0)
    below = torch.where(is_competitor, r, 0.0)
    above_sum, below_sum = above.cumsum(-1), below.cumsum(-1)
    accepted_excess = above_sum - (index + 1 + candidates) * r + below_sum[..., -1:]
    tail = count + candidates - 1 - index  # competitors after this one
    competitor_excess = above_sum[..., -1:] - count * r - (tail * r - (below_sum[..., -1:] - below_sum))
    pool = (is_accepted & (accepted_excess < 0)) | (is_competitor & (competitor_excess > 0))
    size = pool.sum(-1, keepdim=True)
    mean = torch.where(pool, r, 0.0).sum(-1, keepdim=True) / size.clamp(min=1)
    terms = formulas.certificate_of_gaps(top_probability[..., None], r, mean)
    return Projection(
        value=torch.where(pool, terms, 0.0).sum(-1),
        level=(top_probability * (1 + mean[..., 0])),
        pool=pool,
    )
