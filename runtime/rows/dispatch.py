"""Who computes rows of logits: C++ on the CPU, Triton on CUDA, and the reference everywhere else.

All give the same statistics and certificates, with bounds of their own errors; nothing downstream asks who computed
them. The C++ kernels are operators of torch for CPU tensors (cpu/operators.cpp): once loaded, the dispatcher calls
them.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import warnings
from types import ModuleType

from torch import Tensor

from ...theory import DraftcertError, Rule
from . import reference
from .cpu import build
from .program import largest_rank, program
from .records import Statistics


def statistics(rows: Tensor, k: int, temperature: float = 1.0, draft: Tensor | None = None) -> Statistics:
    """Statistics of matrices of logits, for everything but the C++ kernels.

    With a temperature, `max`, `logsumexp` and `top_values` are those of the divided logits; the order is always that of
    the logits as they are stored.
    """
    if rows.device.type == "mps":
        raise DraftcertError("logits on mps, where torch has no float64: move them to the CPU with logits.cpu()")
    kernels = cuda_kernels() if rows.device.type == "cuda" else None
    if kernels is not None and kernels.serves(rows, k, temperature, draft):
        return kernels.statistics(rows, k, temperature, draft)[0]
    stats = reference.statistics(rows, k, temperature)
    if draft is None:
        return Statistics(stats)
    return Statistics(stats, *reference.divergence(rows, draft, temperature))


@functools.cache
def cuda_kernels() -> ModuleType | None:
    """The module of the launches, or `None` after one warning where there is no triton."""
    try:
        return importlib.import_module(".cuda.launch", __package__)
    except ImportError as error:
        warnings.warn(
            f"CUDA tensors go through the slower reference in torch; pip install triton for the kernels: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


@functools.cache
def cpu_kernels() -> ctypes.CDLL | None:
    """The compiled kernels, loaded, or `None` after one warning where there is no compiler."""
    try:
        return build.library()
    except (RuntimeError, OSError) as error:
        warnings.warn(f"the slower reference in torch is used: {error}", RuntimeWarning, stacklevel=2)
        return None


def teach(rule: str, meaning: Rule) -> None:
    """Have the compiled kernels know a rule by this text from now on."""
    kernels = build.library()
    steps = [build.Instruction(step.op, step.strict, step.low, step.high) for step in program(meaning)]
    kernels.draftcert_define_rule(
        rule.encode(), (build.Instruction * len(steps))(*steps), len(steps), largest_rank(meaning)
    )
