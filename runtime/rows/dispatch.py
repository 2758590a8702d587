"""Who computes rows of logits: C++ on the CPU, Triton on CUDA, and the reference everywhere else.

All give the same statistics and certificates, with bounds of their own errors; nothing downstream asks who computed
them. The C++ kernels are operators of torch for CPU tensors (cpu/operators.cpp): once loaded, the dispatcher calls
them.
"""

from __future__ import annotations

import ctypes
import functools

from torch import Tensor

from ..native import optional
from . import reference
from .cpu import build
from .records import Statistics


def statistics(rows: Tensor, k: int, temperature: float = 1.0, draft: Tensor | None = None) -> Statistics:
    """Statistics of matrices of logits, for everything but the C++ kernels.

    With a temperature, `max`, `logsumexp` and `top_values` are those of the divided logits; the order is always that of
    the logits as they are stored.
    """
    if rows.device.type == "cuda":
        from .cuda.row_stats import statistics as on_cuda

        return on_cuda(rows, k, temperature, draft)
    stats = reference.statistics(rows, k, temperature)
    if draft is None:
        return Statistics(stats)
    return Statistics(stats, *reference.divergence(rows, draft, temperature))


@functools.cache
def cpu_kernels() -> ctypes.CDLL | None:
    """The compiled kernels, loaded, or `None` after one warning that says why there are none."""
    return optional(build.library, "the slower reference in torch is used")


def cpu_kernels_tried() -> bool:
    """Whether the compiled kernels were asked for before, and serve the operators since if there are any."""
    return cpu_kernels.cache_info().currsize > 0
