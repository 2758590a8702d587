"""The theorems of the theory, one group a file, in the order in which they build on each other."""

from types import MappingProxyType

from ..divergences import DIVERGENCE_FORMULAS
from ..formula import Formula
from ..formulas import FORMULAS
from ..margins import MARGIN_FORMULAS, SUPREMUM_FORMULAS
from ..theorem import Theorem
from .divergence import T0
from .divergences import B3, B3_INFINITE, B3_REVERSE, B3_TOTAL_VARIATION
from .guarantees import B2, B5
from .margins import M2, M3, M4, M5, M5_TYPICAL
from .order import T6
from .projection import T1, T2, T3, T4
from .runs import B1, B2_CONTINUOUS, B4
from .strict_greedy import M1, T5, T7
from .suprema import M3_TOP, MI, MS
from .tree_suprema import M7_LARGE
from .trees import M6, M7
from .vocabulary import M3_TOP_VOCABULARY, M3_VOCABULARY, M5_VOCABULARY

_IN_ORDER = (
    *(T0, T1, T2, T3, T4, T5, T6, T7),
    *(M1, M2, M3, M4, M5, M5_TYPICAL, M6, M7, M7_LARGE, M3_TOP, MS, MI),
    *(M3_VOCABULARY, M3_TOP_VOCABULARY, M5_VOCABULARY),
    *(B1, B2, B2_CONTINUOUS, B3, B3_INFINITE, B3_REVERSE, B3_TOTAL_VARIATION, B4, B5),
)

THEOREMS: MappingProxyType[str, Theorem] = MappingProxyType({theorem.name: theorem for theorem in _IN_ORDER})
"""All theorems by name."""

EVERY_FORMULA: MappingProxyType[str, Formula] = MappingProxyType(
    {**FORMULAS, **MARGIN_FORMULAS, **SUPREMUM_FORMULAS, **DIVERGENCE_FORMULAS}
)
"""All formulas that the theorems establish, by name: those that are compiled, of the margin bounds, and the others."""

__all__ = ["EVERY_FORMULA", "THEOREMS"]
