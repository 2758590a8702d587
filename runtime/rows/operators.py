"""`row_stats` and `certify` as operators of torch: opaque to torch.compile and torch.export, with shapes and gradients.

Each is three operators, so that a call pays for what it needs only. The plain one has no gradient; on CPU tensors it is
the C++ of cpu/operators.cpp once that is loaded. `.._by_tensors` is what it hands over to: the reference, and errors
about the numbers. `.._with_gradient` is the plain one again, and differentiates.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ...theory import DraftcertError, Rule, parse_rule
from ...theory.statistics import LOGIT_RATIO, Entropy
from .dispatch import cpu_kernels, cuda_kernels, statistics, teach
from .inputs import refuse_rows
from .program import LOG_TOP, floored_entropies, largest_rank, program
from .projection import project
from .records import Certificate, RowStats
from .reference import UNIT
from .threshold import AcceptedSet, Enclosure, accepted_set

WIDEN = 16
"""How many times more logits each further traversal keeps, until the whole row is sorted."""
WHOLE_ROW = 4096
NAMES = [field.name for field in fields(RowStats)]

LIBRARY = torch.library.Library("draftcert", "DEF")
EIGHT = f"({', '.join(['Tensor'] * 8)})"
SCHEMAS = {
    "row_stats": f"(Tensor logits, int k) -> {EIGHT}",
    "certify": "(Tensor target, Tensor? draft, str rule, int candidates, float temperature, bool sound, int k) -> "
    + EIGHT,
}
LIBRARY.define("teach(Tensor rows, str rule) -> ()")
for _name, _schema in SCHEMAS.items():
    for _variant in ("", "_by_tensors", "_with_gradient"):
        LIBRARY.define(_name + _variant + _schema)
row_stats = torch.ops.draftcert.row_stats.default
row_stats_by_tensors = torch.ops.draftcert.row_stats_by_tensors.default
row_stats_with_gradient = torch.ops.draftcert.row_stats_with_gradient.default
certify = torch.ops.draftcert.certify.default
certify_by_tensors = torch.ops.draftcert.certify_by_tensors.default
certify_with_gradient = torch.ops.draftcert.certify_with_gradient.default


def needs_gradient(*tensors: Tensor | None) -> bool:
    """Whether a result of these tensors is to be differentiated."""
    return torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)


def _compiled_now(tensor: Tensor) -> bool:
    """Load the C++ when the first CPU tensor comes; whether the plain operators are to be called again, as they are it.

    Tensors that come here later are those it has no kernels for.
    """
    if tensor.device.type != "cpu" or cpu_kernels.cache_info().currsize:
        return False
    return cpu_kernels() is not None


# ---- row_stats ------------------------------------------------------------------------------------------------------


@torch.library.impl(LIBRARY, "row_stats", "CompositeExplicitAutograd")
def _row_stats(logits: Tensor, k: int) -> tuple[Tensor, ...]:
    return row_stats(logits, k) if _compiled_now(logits) else row_stats_by_tensors(logits, k)


@torch.library.impl(LIBRARY, "row_stats_by_tensors", "CompositeExplicitAutograd")
def _row_stats_by_tensors(logits: Tensor, k: int) -> tuple[Tensor, ...]:
    """The fields of `RowStats` in their order."""
    rows, shape = logits.reshape(-1, logits.shape[-1]), logits.shape[:-1]
    stats = statistics(rows, k).stats
    refuse_rows(rows, stats.max, shape, "logits")
    columns = tuple(getattr(stats, name) for name in NAMES)
    return columns if logits.dim() == 2 else tuple(column.view(shape + column.shape[1:]) for column in columns)


@torch.library.impl(LIBRARY, "row_stats_with_gradient", "CompositeExplicitAutograd")
def _row_stats_with_gradient(logits: Tensor, k: int) -> tuple[Tensor, ...]:
    return row_stats(logits, k)


@torch.library.register_fake(row_stats, lib=LIBRARY)
@torch.library.register_fake(row_stats_with_gradient, lib=LIBRARY)
def _(logits: Tensor, k: int) -> tuple[Tensor, ...]:
    shape = logits.shape[:-1]
    number = logits.new_empty(shape, dtype=torch.float64)
    tops = logits.new_empty((*shape, k), dtype=torch.float64)
    kinds = {"argmax": number.long(), "top_values": tops, "top_ids": tops.long()}
    return tuple(torch.empty_like(kinds.get(name, number)) for name in NAMES)


def _no_gradient(ctx: Any, *upstream: Tensor | None) -> tuple[None, None]:
    raise DraftcertError("row_stats has no gradient: differentiate `value` and `kl` of certify")


torch.library.register_autograd(row_stats_with_gradient, _no_gradient, lib=LIBRARY)


# ---- certify --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _rule(text: str) -> Rule:
    return parse_rule(text)


@torch.library.impl(LIBRARY, "teach", "CompositeExplicitAutograd")
def _teach(rows: Tensor, rule: str) -> None:
    """What the C++ operator asks of a rule it meets for the first time; `rows` tell the dispatcher who is to answer."""
    teach(rule, _rule(rule))


@torch.library.impl(LIBRARY, "certify", "CompositeExplicitAutograd")
def _certify(target: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
    return certify(target, *arguments) if _compiled_now(target) else certify_by_tensors(target, *arguments)


@torch.library.impl(LIBRARY, "certify_by_tensors", "CompositeExplicitAutograd")
def _certify_by_tensors(
    target: Tensor, draft: Tensor | None, rule: str, candidates: int, temperature: float, sound: bool, k: int
) -> tuple[Tensor, ...]:
    """The fields of `Certificate` in their order; the last two have no elements without `draft`."""
    shape, size = target.shape[:-1], target.shape[-1]
    rows, draft_rows = target.reshape(-1, size), None if draft is None else draft.reshape(-1, size)
    parsed = _rule(rule)
    window = min(size, max(k, largest_rank(parsed)) + candidates)
    found = _certificates(rows, draft_rows, shape, parsed, candidates, temperature, sound, window)
    columns = [found.value, found.level, found.threshold, found.accepted, found.exact, found.passes]
    if found.kl is not None and found.certified is not None:
        columns += [found.kl, found.certified]
    if target.dim() != 2:
        columns = [column.view(shape) for column in columns]
    if draft is None:
        columns += [target.new_empty(0, dtype=torch.float64), target.new_empty(0, dtype=torch.bool)]
    return tuple(columns)


@torch.library.impl(LIBRARY, "certify_with_gradient", "CompositeExplicitAutograd")
def _certify_with_gradient(*arguments: Any) -> tuple[Tensor, ...]:
    return certify(*arguments)


@torch.library.register_fake(certify, lib=LIBRARY)
@torch.library.register_fake(certify_with_gradient, lib=LIBRARY)
def _(
    target: Tensor, draft: Tensor | None, rule: str, candidates: int, temperature: float, sound: bool, k: int
) -> tuple[Tensor, ...]:
    shape = target.shape[:-1]
    last = (0,) if draft is None else shape
    kinds = [(shape, torch.float64)] * 3 + [(shape, torch.int64), (shape, torch.bool), (shape, torch.uint8)]
    kinds += [(last, torch.float64), (last, torch.bool)]
    return tuple(target.new_empty(size, dtype=dtype) for size, dtype in kinds)


# ---- CUDA -----------------------------------------------------------------------------------------------------------
#
# The kernels write the columns. What the host learns of them is each row's status: not 0 for what is no row of logits,
# which the operators on tensors refuse, and for a row that its largest logits leave open, which they settle.


@torch.library.impl(LIBRARY, "row_stats", "CUDA")
def _row_stats_on_cuda(logits: Tensor, k: int) -> tuple[Tensor, ...]:
    rows, kernels = logits.reshape(-1, logits.shape[-1]), cuda_kernels()
    if kernels is None or not kernels.serves(rows, k, 1.0):
        return row_stats_by_tensors(logits, k)
    found, status = kernels.statistics(rows, k)
    if bool(status.cpu().any()):
        return row_stats_by_tensors(logits, k)
    columns = (getattr(found.stats, name) for name in NAMES)
    return tuple(column.view(logits.shape[:-1] + column.shape[1:]) for column in columns)


@torch.library.impl(LIBRARY, "certify", "CUDA")
def _certify_on_cuda(
    target: Tensor, draft: Tensor | None, rule: str, candidates: int, temperature: float, sound: bool, k: int
) -> tuple[Tensor, ...]:
    shape, size = target.shape[:-1], target.shape[-1]
    rows, draft_rows = target.reshape(-1, size), None if draft is None else draft.reshape(-1, size)
    arguments = (rule, candidates, temperature, sound, k)
    steps, kernels = program(_rule(rule)), cuda_kernels()
    window = min(size, max(k, largest_rank(_rule(rule))) + candidates)
    if kernels is None or not kernels.serves(rows, window, temperature, draft_rows, steps):
        return certify_by_tensors(target, draft, *arguments)
    found, status = kernels.certificates(rows, draft_rows, steps, candidates, temperature, sound, window)
    told = status.cpu()
    if bool((told & kernels.REFUSED).any()):
        return certify_by_tensors(target, draft, *arguments)
    columns = [getattr(found, field.name) for field in fields(found)]
    if bool(told.any()):
        left = told.nonzero()[:, 0].to(target.device)
        again = certify_by_tensors(rows[left], None if draft_rows is None else draft_rows[left], *arguments)
        for column, values in zip(columns, again, strict=True):
            if column is not None:
                column[left] = values
    if draft is None:
        columns[6:] = [target.new_empty(0, dtype=torch.float64), target.new_empty(0, dtype=torch.bool)]
        return (*(column.view(shape) for column in columns[:6]), *columns[6:])
    return tuple(column.view(shape) for column in columns)


# ---- Gradients ------------------------------------------------------------------------------------------------------
#
# C = sum over the pool of p ln(p/c), c the mean of p over the pool, so dC/dp = ln(p/c) there and 0 elsewhere: what c
# contributes cancels. Through the softmax, dC/dz = p (dC/dp - sum p dC/dp) = p ([in pool] ln(p/c) - C).
# K = sum p d with d = ln(p/q): dK/dz = p (d - K) and dK/dw = q - p for the drafter's logits w.
# At p = 0 all of them are 0, at a tie (C = 0, an empty pool) and where C or K is infinite too.


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    target, draft, _, ctx.candidates, ctx.temperature, _, _ = inputs
    value, level, _, accepted, _, _, kl, _ = output
    ctx.has_draft = draft is not None
    ctx.save_for_backward(target, *([draft] if ctx.has_draft else []), value, level, accepted, kl)
    ctx.set_materialize_grads(False)


def _gradients(ctx: Any, *upstream: Tensor | None) -> tuple[Tensor | None, ...]:
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


torch.library.register_autograd(certify_with_gradient, _gradients, setup_context=_save, lib=LIBRARY)


def _certificates(
    rows: Tensor,
    draft: Tensor | None,
    shape: torch.Size,
    rule: Rule,
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
    known = _known(rule, rows, found.stats, raw, temperature)
    accepted = accepted_set(rule, gaps, known, size, sound=sound)
    kl = found.kl if found.kl is None or not sound or found.kl_error is None else found.kl + found.kl_error
    result = _certificate(accepted, gaps, known, candidates, size, sound)
    if window < size:
        # The window shows the competitors unless the accepted tokens fill it up, and may not show what is undecided.
        unseen = torch.where(accepted.count < size, accepted.count + candidates > window, ~accepted.decided)
        if bool(unseen.any()):
            wider = size if window >= WHOLE_ROW else min(size, WIDEN * window)
            again = _certificates(rows[unseen], None, shape, rule, candidates, temperature, sound, wider)
            for name in ("value", "level", "threshold", "accepted", "exact"):
                getattr(result, name)[unseen] = getattr(again, name)
            result.passes[unseen] = 2
    return result if kl is None else replace(result, kl=kl, certified=kl < result.value)


def _known(rule: Rule, rows: Tensor, stats: RowStats, raw: Tensor, temperature: float) -> dict[Any, Enclosure]:
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
    for entropy, floor in floored_entropies(rule).items():
        all_gaps = (raw[..., :1] - rows.double()) / temperature
        log_probabilities = -all_gaps - (stats.logsumexp - stats.max)[..., None]
        weights = log_probabilities.exp()
        value = -(weights * torch.log(weights + floor)).sum(-1)
        # |d/dp p ln(p + f)| <= |ln(p + f)| + 1, and p is known to a relative `error` and its own rounding.
        bound = 4 * (error + (rows.shape[-1] + 16) * UNIT) * (1 + value.abs() + floor)
        known[entropy] = Enclosure.widened(value - bound, value + bound)
    return known


def _certificate(
    accepted: AcceptedSet, gaps: Tensor, known: dict[Any, Enclosure], candidates: int, size: int, sound: bool
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
