"""`row_stats` and `certify` as operators of torch: opaque to torch.compile and torch.export, with shapes and gradients.

A rule reaches them as its program, a list of numbers. Each is several operators, so that a call pays for what it needs.
The plain one has no derivatives; it calls the kernels of the tensors' device, and for what these do not serve the
function `.._by_tensors`: the reference, and errors about the numbers. `certify_with_gradient` is the plain one where
nothing is to be differentiated, and else gives `value` and `kl` their derivatives (gradients.py).
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from . import gradients
from .certificates import certificates
from .cpu import bindings
from .dispatch import cuda_kernels, statistics
from .inputs import refuse_rows
from .program import decoded, largest_rank
from .records import STATISTICS

LIBRARY = torch.library.Library("draftcert", "DEF")
EIGHT = f"({', '.join(['Tensor'] * 8)})"
SCHEMAS = {
    "row_stats": f"(Tensor logits, int k) -> {EIGHT}",
    "certify": "(Tensor target, Tensor? draft, float[] program, int candidates, float temperature, bool sound, int k)"
    f" -> {EIGHT}",
}
for _name, _schema in SCHEMAS.items():
    LIBRARY.define(_name + _schema)
LIBRARY.define("certify_with_gradient" + SCHEMAS["certify"])
row_stats = torch.ops.draftcert.row_stats.default
certify = torch.ops.draftcert.certify.default
certify_with_gradient = torch.ops.draftcert.certify_with_gradient.default


# ---- row_stats ------------------------------------------------------------------------------------------------------


@torch.library.impl(LIBRARY, "row_stats", "CompositeExplicitAutograd")
def row_stats_by_tensors(logits: Tensor, k: int) -> tuple[Tensor, ...]:
    """The fields of `RowStats` in their order."""
    rows, shape = logits.reshape(-1, logits.shape[-1]), logits.shape[:-1]
    stats = statistics(rows, k)
    refuse_rows(rows, stats.max, shape, "logits")
    columns = tuple(getattr(stats, name) for name in STATISTICS)
    return columns if logits.dim() == 2 else tuple(column.view(shape + column.shape[1:]) for column in columns)


@torch.library.impl(LIBRARY, "row_stats", "CPU")
def _row_stats_on_cpu(logits: Tensor, k: int) -> tuple[Tensor, ...]:
    return bindings.row_stats(logits, k) or row_stats_by_tensors(logits, k)


@torch.library.register_fake(row_stats, lib=LIBRARY)
def _(logits: Tensor, k: int) -> tuple[Tensor, ...]:
    shape = logits.shape[:-1]
    number = logits.new_empty(shape, dtype=torch.float64)
    tops = logits.new_empty((*shape, k), dtype=torch.float64)
    kinds = {"argmax": number.long(), "top_values": tops, "top_ids": tops.long()}
    return tuple(torch.empty_like(kinds.get(name, number)) for name in STATISTICS)


# ---- certify --------------------------------------------------------------------------------------------------------


@torch.library.impl(LIBRARY, "certify", "CompositeExplicitAutograd")
def certify_by_tensors(
    target: Tensor, draft: Tensor | None, program: list[float], candidates: int, temperature: float, sound: bool, k: int
) -> tuple[Tensor, ...]:
    """The fields of `Certificate` in their order; the last two have no elements without `draft`."""
    shape, size = target.shape[:-1], target.shape[-1]
    rows, draft_rows = target.reshape(-1, size), None if draft is None else draft.reshape(-1, size)
    steps = decoded(program)
    window = min(size, max(k, largest_rank(steps)) + candidates)
    found = certificates(rows, draft_rows, shape, steps, candidates, temperature, sound, window)
    columns = [found.value, found.level, found.threshold, found.accepted, found.exact, found.passes]
    if found.kl is not None and found.certified is not None:
        columns += [found.kl, found.certified]
    if target.dim() != 2:
        columns = [column.view(shape) for column in columns]
    return tuple(columns) if draft is not None else (*columns, *_without_draft(target))


def _without_draft(target: Tensor) -> tuple[Tensor, Tensor]:
    """What stands for `kl` and `certified` where there is no drafter's row."""
    return target.new_empty(0, dtype=torch.float64), target.new_empty(0, dtype=torch.bool)


@torch.library.impl(LIBRARY, "certify", "CPU")
def _certify_on_cpu(target: Tensor, draft: Tensor | None, *arguments: Any) -> tuple[Tensor, ...]:
    columns = bindings.certify(target, draft, *arguments)
    if columns is None:
        return certify_by_tensors(target, draft, *arguments)
    return columns if draft is not None else columns + _without_draft(target)


@torch.library.impl(LIBRARY, "certify_with_gradient", "CompositeExplicitAutograd")
def _certify_with_gradient(*arguments: Any) -> tuple[Tensor, ...]:
    return certify(*arguments)


@torch.library.impl(LIBRARY, "certify_with_gradient", "Autograd")
def _certify_differentiated(
    target: Tensor, draft: Tensor | None, program: list[float], candidates: int, temperature: float, *rest: Any
) -> tuple[Tensor, ...]:
    numbers = target.detach(), None if draft is None else draft.detach()
    columns = certify(*numbers, program, candidates, temperature, *rest)
    if not gradients.needed(target, draft):
        return columns
    value, level, threshold, accepted, exact, passes, kl, certified = columns
    value = gradients.with_derivatives(value, gradients.value(target, level, accepted, candidates, temperature))
    if draft is not None:
        kl = gradients.with_derivatives(kl, gradients.divergence(target, draft, temperature))
    return value, level, threshold, accepted, exact, passes, kl, certified


@torch.library.register_fake(certify, lib=LIBRARY)
@torch.library.register_fake(certify_with_gradient, lib=LIBRARY)
def _(
    target: Tensor, draft: Tensor | None, program: list[float], candidates: int, temperature: float, sound: bool, k: int
) -> tuple[Tensor, ...]:
    shape = target.shape[:-1]
    last = (0,) if draft is None else shape
    kinds = [(shape, torch.float64)] * 3 + [(shape, torch.int64), (shape, torch.bool), (shape, torch.uint8)]
    kinds += [(last, torch.float64), (last, torch.bool)]
    return tuple(target.new_empty(size, dtype=dtype) for size, dtype in kinds)


# ---- CUDA -----------------------------------------------------------------------------------------------------------
#
# The kernels write the columns. What the host learns of them is each row's status: not 0 for what is no row of logits,
# which the operators on tensors refuse, and for a row that its largest logits or float32 leave open, which they settle.


@torch.library.impl(LIBRARY, "row_stats", "CUDA")
def _row_stats_on_cuda(logits: Tensor, k: int) -> tuple[Tensor, ...]:
    rows, kernels = logits.reshape(-1, logits.shape[-1]), cuda_kernels()
    if kernels is None or not kernels.serves(rows, k, 1.0):
        return row_stats_by_tensors(logits, k)
    found, status = kernels.statistics(rows, k)
    if bool(status.cpu().any()):
        return row_stats_by_tensors(logits, k)
    columns = (getattr(found.stats, name) for name in STATISTICS)
    return tuple(column.view(logits.shape[:-1] + column.shape[1:]) for column in columns)


@torch.library.impl(LIBRARY, "certify", "CUDA")
def _certify_on_cuda(
    target: Tensor, draft: Tensor | None, program: list[float], candidates: int, temperature: float, sound: bool, k: int
) -> tuple[Tensor, ...]:
    shape, size = target.shape[:-1], target.shape[-1]
    rows, draft_rows = target.reshape(-1, size), None if draft is None else draft.reshape(-1, size)
    arguments = (program, candidates, temperature, sound, k)
    steps, kernels = decoded(program), cuda_kernels()
    window = min(size, max(k, largest_rank(steps)) + candidates)
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
        return (*(column.view(shape) for column in columns[:6]), *_without_draft(target))
    return tuple(column.view(shape) for column in columns)


# ---- vmap -----------------------------------------------------------------------------------------------------------


def _with_leading_axis(operator: Any) -> Any:
    """The axis that torch.vmap goes over is one more axis of rows."""

    def call(info: Any, axes: tuple[int | None, ...], *arguments: Any) -> tuple[tuple[Tensor, ...], tuple[Any, ...]]:
        moved = [
            x
            if not isinstance(x, Tensor)
            else x.expand(info.batch_size, *x.shape)
            if axis is None
            else x.movedim(axis, 0)
            for x, axis in zip(arguments, axes, strict=True)
        ]
        columns = operator(*moved)
        return columns, tuple(None if column.numel() == 0 else 0 for column in columns)

    return call


for _operator in (row_stats, certify, certify_with_gradient):
    torch.library.register_vmap(_operator, _with_leading_axis(_operator), lib=LIBRARY)
