"""The plain torch reference: row statistics and the divergence, in float64.

Everything is computed from logit gaps `max z - z`, which are differences of stored numbers: no probability is formed
before it has to be, so a tie is a tie and a margin of 1e-30 is one. The kernels are tested against this file.
docs/soundness.md derives the rounding budgets.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..generated import torch_budgets as budgets
from ..generated import torch_formulas as formulas
from .records import RowStats

if TYPE_CHECKING:
    from jaxtyping import Float, Float64, Int64

UNIT = torch.finfo(torch.float64).eps / 2
"""Unit roundoff u of float64."""
TINY = torch.finfo(torch.float64).tiny


def top(rows: Float[Tensor, "*rows vocab"], k: int) -> tuple[Float[Tensor, "*rows k"], Int64[Tensor, "*rows k"]]:
    """The k largest values of each row, descending, and their ids; equal values by lowest id, unlike `torch.topk`."""
    last = rows.topk(k).values[..., -1:]
    # Everything above the k-th value is in; of the tokens equal to it as many as still fit, lowest ids first.
    size = rows.shape[-1]
    ids = torch.arange(size, device=rows.device)
    preference = torch.where(rows > last, size, torch.where(rows == last, size - 1 - ids, -1))
    chosen = preference.topk(k, sorted=False).indices.sort(-1).values
    values, order = rows.gather(-1, chosen).sort(dim=-1, descending=True, stable=True)
    return values, chosen.gather(-1, order)


def statistics(rows: Float[Tensor, "*rows vocab"], k: int, temperature: float = 1.0) -> RowStats:
    """`RowStats` of the checked matrix `rows`; `temperature` divides the gaps, so the order is that of the raw logits.

    With a temperature the logits reported are divided by it too.
    """
    values, ids = top(rows, k)
    values = values.double()
    gaps = gaps_of(rows, temperature)
    mass, moment = moments(gaps)
    maximum = rows.amax(-1).double() / temperature  # NaN where a logit is, unlike the selection
    shift, gap = mass.log(), moment / mass
    logsumexp = maximum + shift
    sums, slope = _precision(rows)
    return RowStats(
        max=maximum,
        argmax=ids[..., 0].clone(),
        logsumexp=logsumexp,
        entropy=shift + gap,
        top_values=values / temperature,
        top_ids=ids,
        logsumexp_error=budgets.logsumexp(sums, slope, UNIT, UNIT, gap, logsumexp),
        entropy_error=budgets.entropy(sums, slope, UNIT, math.log(rows.shape[-1]), gap),
    )


def log_mass(
    rows: Float[Tensor, "*rows vocab"], temperature: float = 1.0
) -> tuple[Float64[Tensor, "*rows"], Float64[Tensor, "*rows"]]:
    """`ln sum e^-gap = -ln p_(1)`, and a bound of its error, which does not grow with the logits."""
    mass, moment = moments(gaps_of(rows, temperature))
    return mass.log(), budgets.log_mass(*_precision(rows), UNIT, moment / mass)


def gaps_of(rows: Float[Tensor, "*rows vocab"], temperature: float) -> Float64[Tensor, "*rows vocab"]:
    """`(max z - z) / temperature`."""
    return (rows.amax(-1, keepdim=True).double() - rows.double()) / temperature


def _precision(rows: Tensor) -> tuple[float, float]:
    """The budgets that describe this kernel: the error of its sums, and how that of a weight grows with the gap."""
    return budgets.reference_sums(UNIT, rows.shape[-1]), budgets.reference_slope()


def moments(gaps: Float64[Tensor, "*rows vocab"]) -> tuple[Float64[Tensor, "*rows"], Float64[Tensor, "*rows"]]:
    """`sum e^-gap` and `sum e^-gap gap`, where a gap of +inf is a token of probability zero."""
    weights = torch.exp(-gaps)
    return weights.sum(-1), (weights * torch.where(gaps.isinf(), 0.0, gaps)).sum(-1)


def divergence(
    target: Float[Tensor, "*rows vocab"], draft: Float[Tensor, "*rows vocab"], temperature: float = 1.0
) -> tuple[Float64[Tensor, "*rows"], Float64[Tensor, "*rows"]]:
    """KL(target || draft) of matrices of logits in nats, and a bound of its error.

    +inf where the drafter gives no probability to a token the target gives some, and 0 where their logits are equal.
    """
    log_target, target_error = _log_probabilities(target, temperature)
    log_draft, draft_error = _log_probabilities(draft, temperature)
    possible = log_target > -torch.inf
    log_ratio = torch.where(possible, log_target - log_draft, -torch.inf)
    # Times a log-ratio of 10^290 and more a probability below any float is one: it is never taken for less than it is,
    # and for 0 where no quotient of two floats would make it count.
    p = torch.where(log_target < -1500, 0.0, log_target.clamp(min=-700).exp())
    q = log_draft.exp()
    # Both forms are the same summand. The first never divides by an underflown q, the second never overflows e^-d.
    in_logs = torch.where(log_ratio == torch.inf, torch.inf, formulas.kl_of_logs(p, log_ratio))
    value = torch.where(log_ratio >= -1, in_logs, formulas.kl(p, q.clamp(min=TINY))).sum(-1)
    log_ratio = torch.where(possible, log_ratio, 0.0)
    noise = budgets.reference_kl_term(UNIT, p, q, log_ratio, target_error, draft_error).sum(-1)
    error = budgets.reference_kl(UNIT, target.shape[-1], noise, value)
    equal = (target == draft).all(-1)
    return torch.where(equal, 0.0, value), torch.where(value.isinf() | equal, 0.0, error)


def _log_probabilities(
    rows: Float[Tensor, "*rows vocab"], temperature: float
) -> tuple[Float64[Tensor, "*rows vocab"], Float64[Tensor, "*rows vocab"]]:
    """Log-softmax from gaps, and a bound of its error."""
    gaps = gaps_of(rows, temperature)
    mass, moment = moments(gaps)
    value = -gaps - mass.log()[..., None]
    error = budgets.log_probability(*_precision(rows), UNIT, UNIT, (moment / mass)[..., None], value)
    return value, torch.where(value < -1500, 0.0, error)  # that a probability is zero is exact
