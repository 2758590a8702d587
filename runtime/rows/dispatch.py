"""Who computes rows of logits: C++ on the CPU, Triton on CUDA, and the reference everywhere else.

All give the same statistics and certificates, with bounds of their own errors; nothing downstream asks who computed
them. `operators` calls the C++ (cpu/bindings.py) and the Triton that is loaded here; the reference is for the rest.
"""

from __future__ import annotations

import functools
import importlib
from types import ModuleType

from torch import Tensor

from ...theory.errors import DraftcertError
from ...theory.imports import optional
from ..native import loaded_if_possible
from . import reference
from .records import RowStats


def statistics(rows: Tensor, k: int, temperature: float = 1.0) -> RowStats:
    """Statistics of matrices of logits in float64: where there are no kernels, and for rows that they leave open.

    With a temperature, `max`, `logsumexp` and `top_values` are those of the divided logits; the order is always that of
    the logits as they are stored.
    """
    if rows.device.type == "mps":
        raise DraftcertError("logits on mps, where torch has no float64: move them to the CPU with logits.cpu()")
    return reference.statistics(rows, k, temperature)


@functools.cache
def cuda_kernels() -> ModuleType | None:
    """The module of the launches on CUDA devices, or `None` after one warning where there is no triton."""
    return loaded_if_possible(_launches, "CUDA tensors go through the slower reference in torch")


def _launches() -> ModuleType:
    with optional("cuda"):
        return importlib.import_module(".cuda.launch", __package__)
