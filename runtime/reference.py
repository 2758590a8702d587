"""The plain torch reference: row statistics, the level projection and the divergence, in float64.

Everything is computed from logit gaps `max z - z`, which are differences of stored numbers: no probability is formed
before it has to be, so a tie is a tie and a margin of 1e-30 is one. The kernels are tested against this file. The
error bounds are derived in docs/soundness.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..theory import DraftcertError
from .generated import torch_formulas as formulas

FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
UNIT = torch.finfo(torch.float64).eps / 2
"""Unit roundoff u of float64."""
TINY = torch.finfo(torch.float64).tiny


@dataclass(frozen=True)
class RowStats:
    """What one pass over rows of logits yields; float64 and int64 tensors with the rows' leading shape.

    `max` and `argmax` (lowest id on ties), `logsumexp`, `entropy` in nats, and the `k` largest logits: `top_values`
    `[..., k]` descending, `top_ids` `[..., k]` by lowest id on ties. The true logsumexp and entropy of the stored
    logits lie within `logsumexp_error` and `entropy_error` of the values given. No tensor is a view of another.
    """

    max: Tensor
    argmax: Tensor
    logsumexp: Tensor
    entropy: Tensor
    top_values: Tensor
    top_ids: Tensor
    logsumexp_error: Tensor
    entropy_error: Tensor


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
    - `passes`: 1 where the k largest logits settled the row, 2 where it had to be traversed again.
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


def without_padding(logits: Tensor, vocab_size: int | None, name: str) -> Tensor:
    """The logits of the vocabulary proper, or a named error where these are no logits."""
    if not isinstance(logits, Tensor):
        raise DraftcertError(f"{name} must be a torch tensor, not {type(logits).__name__}")
    if logits.dtype not in FLOATS:
        raise DraftcertError(f"{name} of dtype {logits.dtype}: float32, bfloat16, float16 and float64 are supported")
    if logits.layout != torch.strided:
        raise DraftcertError(f"{name} of layout {logits.layout}: dense tensors are supported")
    if logits.dim() == 0 or logits.shape[-1] == 0:
        raise DraftcertError(f"{name} of shape {tuple(logits.shape)} have no tokens: the last axis is the vocabulary")
    if vocab_size is None:
        return logits
    if not 1 <= vocab_size <= logits.shape[-1]:
        raise DraftcertError(f"vocab_size = {vocab_size} lies outside 1..{logits.shape[-1]}, the last axis of {name}")
    return logits[..., :vocab_size]


def refuse_rows(rows: Tensor, maximum: Tensor, shape: torch.Size, name: str = "logits") -> None:
    """Raise for the first row that is no row of logits, given each row's maximum (NaN where a logit is NaN)."""
    if bool((maximum.abs() < torch.inf).all()):
        return
    row = int((~torch.isfinite(maximum)).nonzero()[0])
    place = ", ".join(str(int(i)) for i in torch.unravel_index(torch.tensor(row), shape)) if shape else ""
    where = f"{name}[{place}]" if place else name
    if bool((rows[row] == -torch.inf).all()):
        raise DraftcertError(f"{where}: all {rows.shape[-1]} logits are -inf, which is no distribution")
    bad = rows[row].isnan() | (rows[row] == torch.inf)
    token = int(bad.nonzero()[0])
    raise DraftcertError(
        f"{where}: the logit of token {token} is {float(rows[row, token])}; mask tokens with -inf only"
    )


def top(rows: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest values of each row, descending, and their ids; equal values by lowest id, unlike `torch.topk`."""
    last = rows.topk(k).values[..., -1:]
    # Everything above the k-th value is in; of the tokens equal to it as many as still fit, lowest ids first.
    size = rows.shape[-1]
    ids = torch.arange(size, device=rows.device)
    preference = torch.where(rows > last, size, torch.where(rows == last, size - 1 - ids, -1))
    kept = preference.topk(k, sorted=False).indices.sort(-1).values
    values, order = rows.gather(-1, kept).sort(dim=-1, descending=True, stable=True)
    return values, kept.gather(-1, order)


def statistics(rows: Tensor, k: int, temperature: float = 1.0) -> RowStats:
    """`RowStats` of the checked matrix `rows`; `temperature` divides the gaps, so the order is that of the raw logits.

    With a temperature the logits reported are divided by it too.
    """
    values, ids = top(rows, k)
    values = values.double()
    maximum = rows.amax(-1, keepdim=True).double()  # NaN where a logit is, unlike the selection
    gaps = (maximum - rows.double()) / temperature
    mass, moment = moments(gaps)
    shift = mass.log()
    logsumexp = maximum[..., 0] / temperature + shift
    entropy = shift + moment / mass
    size = rows.shape[-1]
    relative = (size + 16) * UNIT
    return RowStats(
        max=maximum[..., 0] / temperature,
        argmax=ids[..., 0].clone(),
        logsumexp=logsumexp,
        entropy=entropy,
        top_values=values / temperature,
        top_ids=ids,
        logsumexp_error=relative + 4 * UNIT * logsumexp.abs(),
        entropy_error=relative * (1 + 2 * moment / mass),
    )


def moments(gaps: Tensor) -> tuple[Tensor, Tensor]:
    """`sum e^-gap` and `sum e^-gap gap`, where a gap of +inf is a token of probability zero."""
    weights = torch.exp(-gaps)
    return weights.sum(-1), (weights * torch.where(gaps.isinf(), 0.0, gaps)).sum(-1)


@dataclass(frozen=True)
class Projection:
    """The level projection of each row: `value` in nats, `level` as a probability, `pool` over the window's tokens."""

    value: Tensor
    level: Tensor
    pool: Tensor


def project(top_probability: Tensor, gaps: Tensor, accepted: Tensor, candidates: int) -> Projection:
    """Theorems T1 to T3 on rows whose `accepted + candidates` first tokens are in the window `gaps` `[rows, window]`.

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


def divergence(target: Tensor, draft: Tensor, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
    """KL(target || draft) of matrices of logits in nats, and a bound of its error.

    +inf where the drafter gives no probability to a token the target gives some.
    """
    log_target, target_error = _log_probabilities(target, temperature)
    log_draft, draft_error = _log_probabilities(draft, temperature)
    possible = log_target > -torch.inf
    log_ratio = torch.where(possible, log_target - log_draft, -torch.inf)
    p, q = log_target.exp(), log_draft.exp()
    # Both forms are the same summand. The first never divides by an underflown q, the second never overflows e^-d.
    in_logs = torch.where(log_ratio == torch.inf, torch.inf, formulas.kl_of_logs(p, log_ratio))
    value = torch.where(log_ratio >= -1, in_logs, formulas.kl(p, q.clamp(min=TINY))).sum(-1)
    # Noise of sum (p d - p + q) in ln p and ln q: first order, twice for rounding it, and second order, which is all
    # there is where target and draft differ by less than the noise.
    by_target = torch.where(possible, p * log_ratio.abs() * (target_error + 8 * UNIT), 0.0)
    by_draft = torch.where(q > 0, (p - q).abs() * (draft_error + 8 * UNIT), 0.0)
    both = torch.maximum(p, q) * (target_error + draft_error).square()
    both = torch.where(possible & (q > 0), both, 0.0)
    error = (2 * (by_target + by_draft) + both).sum(-1) + target.shape[-1] * UNIT * value
    return value, torch.where(value.isinf(), 0.0, error)


def _log_probabilities(rows: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Log-softmax from gaps, and a bound of its error."""
    gaps = (rows.amax(-1, keepdim=True).double() - rows.double()) / temperature
    shift = moments(gaps)[0].log()[..., None]
    value = -gaps - shift
    return value, 3 * UNIT * value.abs() + (rows.shape[-1] + 16) * UNIT
