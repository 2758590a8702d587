"""Which kernel computes rows of logits: C++ on the CPU, Triton on CUDA, and the reference everywhere else.

All give the same `RowStats`, with bounds of their own errors; nothing downstream asks who computed them. The C++ kernel
goes on to the certificate in the same call; elsewhere `runtime.operators` computes it from the statistics by tensors.
"""

from __future__ import annotations

import ctypes
import functools
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from ..theory import Rule
from . import reference
from .cpu import build
from .program import program
from .reference import RowStats

MOST_KEPT = 512
"""The C++ kernel inserts into a sorted list: beyond this many kept logits torch's selection is faster."""
TEMPERATURES = 1e-150, 1e150
"""What the C++ kernel takes: beyond, powers of the temperature leave the range of float64."""


@dataclass(frozen=True)
class Statistics:
    """The statistics of target rows, and with drafter rows KL(target || draft) within `kl_error`.

    `checked`: all rows are known to be rows of logits. Those that are not have a `max` that is not finite.
    """

    stats: RowStats
    kl: Tensor | None = None
    kl_error: Tensor | None = None
    checked: bool = False


@dataclass(frozen=True)
class Columns:
    """`Certificate` of a matrix of rows. `checked`: all rows are known to be rows of logits, the drafter's too."""

    value: Tensor
    level: Tensor
    threshold: Tensor
    accepted: Tensor
    exact: Tensor
    passes: Tensor
    kl: Tensor | None
    certified: Tensor | None
    checked: bool


def statistics(rows: Tensor, k: int, temperature: float = 1.0, draft: Tensor | None = None) -> Statistics:
    """Statistics of matrices of logits.

    With a temperature, `max`, `logsumexp` and `top_values` are those of the divided logits; the order is always that of
    the logits as they are stored.
    """
    if draft is None and (kernels := _cpu_kernels_for(rows, k, temperature)):
        return _row_stats(kernels, rows, k, temperature)
    if rows.device.type == "cuda":
        from .cuda.row_stats import statistics as on_cuda

        return on_cuda(rows, k, temperature, draft)
    stats = reference.statistics(rows, k, temperature)
    if draft is None:
        return Statistics(stats)
    return Statistics(stats, *reference.divergence(rows, draft, temperature))


def certificates(
    rows: Tensor, draft: Tensor | None, rule: Rule, candidates: int, temperature: float, sound: bool, k: int
) -> Columns | None:
    """Certificates of matrices of logits in one call of the C++ kernel.

    `None` where that kernel does not serve these rows. Of rows that are no rows of logits the numbers are NaN.
    """
    kernels = _cpu_kernels_for(rows, k, temperature)
    if kernels is None:
        return None
    count = rows.shape[0]
    arrays = {name: torch.empty(count, dtype=torch.float64) for name in ("value", "level", "threshold")}
    arrays["accepted"] = torch.empty(count, dtype=torch.int64)
    arrays["exact"] = torch.empty(count, dtype=torch.bool)
    arrays["passes"] = torch.empty(count, dtype=torch.uint8)
    if draft is not None:
        arrays["kl"] = torch.empty(count, dtype=torch.float64)
        arrays["certified"] = torch.empty(count, dtype=torch.bool)
    checked = _evaluate(kernels, rows, k, temperature, arrays, draft, (rule, candidates, sound))
    return Columns(kl=arrays.pop("kl", None), certified=arrays.pop("certified", None), checked=checked, **arrays)


@functools.cache
def cpu_kernels() -> ctypes.CDLL | None:
    """The compiled kernels, or `None` after one warning where there is no compiler."""
    try:
        return build.library()
    except (RuntimeError, OSError) as error:
        warnings.warn(f"the slower reference in torch is used: {error}", RuntimeWarning, stacklevel=2)
        return None


def _cpu_kernels_for(rows: Tensor, k: int, temperature: float) -> ctypes.CDLL | None:
    least, most = TEMPERATURES
    suits = rows.device.type == "cpu" and k <= MOST_KEPT and rows.shape[1] < 2**32 and least <= temperature <= most
    return cpu_kernels() if suits else None


def _row_stats(kernels: ctypes.CDLL, rows: Tensor, k: int, temperature: float) -> Statistics:
    count = rows.shape[0]
    stats = RowStats(
        max=torch.empty(count, dtype=torch.float64),
        argmax=torch.empty(count, dtype=torch.int64),
        logsumexp=torch.empty(count, dtype=torch.float64),
        entropy=torch.empty(count, dtype=torch.float64),
        top_values=torch.empty(count, k, dtype=torch.float64),
        top_ids=torch.empty(count, k, dtype=torch.int64),
        logsumexp_error=torch.empty(count, dtype=torch.float64),
        entropy_error=torch.empty(count, dtype=torch.float64),
    )
    checked = _evaluate(kernels, rows, k, temperature, vars(stats))
    if temperature != 1:
        stats.max.div_(temperature)
        stats.top_values.div_(temperature)
    return Statistics(stats, checked=checked)


def _evaluate(
    kernels: ctypes.CDLL,
    rows: Tensor,
    k: int,
    temperature: float,
    arrays: dict[str, Tensor],
    draft: Tensor | None = None,
    judge: tuple[Rule, int, bool] | None = None,
) -> bool:
    """One call of the C interface, which fills the arrays; returns whether all rows are rows of logits."""
    status = torch.empty(rows.shape[0], dtype=torch.int32)
    out = build.Out(status=status.data_ptr(), **{name: array.data_ptr() for name, array in arrays.items()})
    refused = kernels.draftcert_evaluate(
        _matrix(rows),
        None if draft is None else _matrix(draft),
        None if judge is None else ctypes.byref(_compiled(*judge)),
        *rows.shape,
        k,
        temperature,
        torch.get_num_threads(),
        ctypes.byref(out),
    )
    if refused < 0:
        raise RuntimeError(f"the C++ kernel refused its arguments: {tuple(rows.shape)}, k = {k}, T = {temperature}")
    return refused == 0


@functools.lru_cache(maxsize=256)
def _compiled(rule: Rule, candidates: int, sound: bool) -> ctypes.Structure:
    """The rule as the C interface takes it."""
    steps = [build.Instruction(step.op, step.strict, step.low, step.high) for step in program(rule)]
    return build.Rule((build.Instruction * len(steps))(*steps), len(steps), candidates, sound)


def _matrix(rows: Tensor) -> object:
    name = str(rows.dtype).removeprefix("torch.")
    return ctypes.byref(build.Logits(rows.data_ptr(), rows.stride(0), rows.stride(1), build.DTYPES[name]))
