"""Which kernel computes the statistics of a row: C++ on the CPU, Triton on CUDA, and the reference everywhere else.

All give the same `RowStats`, with bounds of their own errors; nothing downstream asks who computed them.
"""

from __future__ import annotations

import ctypes
import functools
import warnings
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from . import reference
from .reference import UNIT, RowStats

MOST_KEPT = 512
"""The C++ kernel inserts into a sorted list: beyond this many kept logits torch's selection is faster."""


@dataclass(frozen=True)
class Statistics:
    """The statistics of target rows, and with drafter rows KL(target || draft) within `kl_error`."""

    stats: RowStats
    kl: Tensor | None = None
    kl_error: Tensor | None = None


def statistics(rows: Tensor, k: int, temperature: float = 1.0, draft: Tensor | None = None) -> Statistics:
    """Statistics of matrices of logits. Rows that are no rows of logits have a `max` that is not finite.

    With a temperature, `max`, `logsumexp` and `top_values` are those of the divided logits; the order is always that of
    the logits as they are stored.
    """
    suits_cpu = rows.device.type == "cpu" and k <= MOST_KEPT and rows.shape[-1] < 2**32 and rows.shape[0] > 0
    if suits_cpu and (kernels := cpu_kernels()):
        return _on_cpu(kernels, rows, k, temperature, draft)
    if rows.device.type == "cuda":
        from .cuda.row_stats import statistics as on_cuda

        return on_cuda(rows, k, temperature, draft)
    stats = reference.statistics(rows, k, temperature)
    if draft is None:
        return Statistics(stats)
    return Statistics(stats, *reference.divergence(rows, draft, temperature))


@functools.cache
def cpu_kernels() -> ctypes.CDLL | None:
    """The compiled kernels, or `None` after one warning where there is no compiler."""
    from .cpu import build

    try:
        return build.library()
    except (RuntimeError, OSError) as error:
        warnings.warn(f"the slower reference in torch is used: {error}", RuntimeWarning, stacklevel=2)
        return None


def _on_cpu(kernels: ctypes.CDLL, rows: Tensor, k: int, temperature: float, draft: Tensor | None) -> Statistics:
    if temperature == 1:
        return _call(kernels, rows, k, draft)
    if rows.dtype == torch.float64:
        # Division can merge neighbouring float64 logits and with them the order; the reference orders before.
        return Statistics(
            reference.statistics(rows, k, temperature),
            *(() if draft is None else reference.divergence(rows, draft, temperature)),
        )

    def divided(logits: Tensor) -> Tensor:
        return (logits.double() - logits.amax(-1, keepdim=True).double()) / temperature

    result = _call(kernels, divided(rows), k, None if draft is None else divided(draft))
    stats = result.stats
    values = rows.gather(-1, stats.top_ids.clamp(min=0)).double()
    maximum = torch.where(stats.top_ids[..., 0] < 0, torch.nan, values[..., 0])
    # A gap is off by 2 u of itself, and sum e^-gap gap <= (1 + ln V) sum e^-gap.
    rounding = 64 * UNIT * (1 + stats.entropy.abs())
    logsumexp = maximum / temperature + stats.logsumexp
    stats = replace(
        stats,
        max=maximum / temperature,
        logsumexp=logsumexp,
        top_values=values / temperature,
        logsumexp_error=stats.logsumexp_error + rounding + 4 * UNIT * logsumexp.abs(),
        entropy_error=stats.entropy_error + rounding * (1 + stats.entropy.abs()),
    )
    if result.kl is None or result.kl_error is None:
        return Statistics(stats)
    return Statistics(stats, result.kl, result.kl_error + 4 * UNIT * (1 + result.kl) * (1 + stats.entropy + result.kl))


def _call(kernels: ctypes.CDLL, rows: Tensor, k: int, draft: Tensor | None) -> Statistics:
    """One call of the C interface: every array it fills is a column of one tensor."""
    from .cpu.build import RowStatsOut

    count, size = rows.shape
    names = ["logsumexp", "logsumexp_error", "entropy", "entropy_error"] + ([] if draft is None else ["kl", "kl_error"])
    columns = dict(zip(names, torch.empty(len(names), count, dtype=torch.float64), strict=True))
    top_values = torch.empty(count, k, dtype=torch.float64)
    top_ids = torch.empty(count, k, dtype=torch.int64)
    status = torch.empty(count, dtype=torch.int32)
    out = RowStatsOut(
        **{name: column.data_ptr() for name, column in columns.items()},
        top_values=top_values.data_ptr(),
        top_ids=top_ids.data_ptr(),
        status=status.data_ptr(),
    )
    other = None if draft is None else ctypes.byref(_matrix(draft))
    matrix = _matrix(rows)
    code = kernels.draftcert_row_stats(
        ctypes.byref(matrix), other, count, size, k, torch.get_num_threads(), ctypes.byref(out)
    )
    if code:
        raise RuntimeError(f"the C++ kernel refused {count} rows of {size} logits with k = {k}")
    kl, kl_error = columns.pop("kl", None), columns.pop("kl_error", None)
    # The status covers what the maximum alone does not show: a NaN anywhere.
    maximum = torch.where(status == 1, torch.nan, top_values[:, 0])
    stats = RowStats(max=maximum, argmax=top_ids[:, 0], top_values=top_values, top_ids=top_ids, **columns)
    return Statistics(stats, kl, kl_error)


def _matrix(rows: Tensor) -> ctypes.Structure:
    from .cpu.build import DTYPES, Logits

    name = str(rows.dtype).removeprefix("torch.")
    return Logits(rows.data_ptr(), rows.stride(0), rows.stride(1), DTYPES[name])
