"""What is known of rows of logits: their statistics, their divergence from the drafter's, their certificates."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Bool, Float64, Int64, UInt8


@dataclass(frozen=True)
class RowStats:
    """What one pass over rows of logits yields; float64 and int64 tensors with the rows' leading shape.

    `max` and `argmax` (lowest id on ties), `logsumexp`, `entropy` in nats, and the `k` largest logits: `top_values`
    `[..., k]` descending, `top_ids` `[..., k]` by lowest id on ties. The true logsumexp and entropy of the stored
    logits lie within `logsumexp_error` and `entropy_error` of the values given. No tensor is a view of another.

    >>> import torch
    >>> from draftcert import row_stats
    >>> found = row_stats(torch.tensor([1.0, 3.0, 2.0]), k=2)
    >>> found.argmax.item(), found.top_ids.tolist()
    (1, [1, 2])
    """

    max: Float64[Tensor, "*rows"]
    argmax: Int64[Tensor, "*rows"]
    logsumexp: Float64[Tensor, "*rows"]
    entropy: Float64[Tensor, "*rows"]
    top_values: Float64[Tensor, "*rows k"]
    top_ids: Int64[Tensor, "*rows k"]
    logsumexp_error: Float64[Tensor, "*rows"]
    entropy_error: Float64[Tensor, "*rows"]


STATISTICS = tuple(field.name for field in fields(RowStats))


@dataclass(frozen=True)
class Statistics:
    """The statistics of target rows, and with drafter rows KL(target || draft) within `kl_error`.

    Rows that are no rows of logits have a `max` that is not finite.
    """

    stats: RowStats
    kl: Float64[Tensor, "*rows"] | None = None
    kl_error: Float64[Tensor, "*rows"] | None = None


@dataclass(frozen=True)
class Certificate:
    """Certificates of rows of logits: tensors with the rows' leading shape.

    - `value`: C in nats; 0 where the target itself may be rejected (a tie under strict greedy), +inf where fewer than
      `candidates` tokens are rejected, so that every drafter is accepted.
    - `level`: the common probability the projection moves the pooled tokens to; p_(1) where nothing moves, NaN where C
      is infinite.
    - `threshold`: the least probability that is accepted (+inf: none; for a rank, that of the last token it lets in).
    - `accepted`: how many tokens are accepted, most likely first.
    - `exact`: whether the accepted set is decided. Where a token lies so near to the threshold that float64 does not
      tell on which side it is not, and a sound certificate is that of the smaller set.
    - `passes`: 1 where the k largest logits settled the row, 2 where it had to be traversed again.
    - `kl`: KL(target || draft) in nats, and `certified`: kl < value. `None` without drafter logits.

    >>> import torch
    >>> from draftcert import certify
    >>> found = certify(torch.tensor([4.0, 2.0, 1.0]), "strict_greedy", draft_logits=torch.tensor([3.5, 2.2, 1.0]))
    >>> found.accepted.item(), found.certified.item()
    (1, True)

    `value` and `kl` have derivatives in the logits, of any order. `level` and `threshold` have none: a gradient of them
    is an error, and forward mode leaves them without a tangent.
    """

    value: Float64[Tensor, "*rows"]
    level: Float64[Tensor, "*rows"]
    threshold: Float64[Tensor, "*rows"]
    accepted: Int64[Tensor, "*rows"]
    exact: Bool[Tensor, "*rows"]
    passes: UInt8[Tensor, "*rows"]
    kl: Float64[Tensor, "*rows"] | None = None
    certified: Bool[Tensor, "*rows"] | None = None
