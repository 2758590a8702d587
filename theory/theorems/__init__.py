"""The theorems of the theory, one group a file, in the order in which they build on each other."""

from types import MappingProxyType

from ..theorem import Theorem
from .divergence import T0
from .guarantees import B2, B5, T6
from .margins import M2, M3, M4, M5
from .projection import T1, T2, T3, T4
from .strict_greedy import M1, T5, T7
from .trees import M6, M7

THEOREMS: MappingProxyType[str, Theorem] = MappingProxyType(
    {theorem.name: theorem for theorem in (T0, T1, T2, T3, T4, T5, T6, T7, M1, M2, M3, M4, M5, M6, M7, B2, B5)}
)
"""All theorems by name."""

__all__ = ["THEOREMS"]
