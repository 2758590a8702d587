"""The theorems of the theory, one group a file. `THEOREMS` holds every theorem that a file of this folder defines.

Those of the certificate (T) come first, then the bounds from a margin (M), which build on them, the guarantees for
whole runs (B), verification by sampling and what acceptance costs (S), and all others.
"""

from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from ..divergences import DIVERGENCE_FORMULAS
from ..errors import DraftcertError
from ..formula import Formula
from ..formulas import FORMULAS
from ..margins import MARGIN_FORMULAS, SUPREMUM_FORMULAS
from ..sampling import SAMPLING_FORMULAS
from ..theorem import Theorem

_GROUPS = "TMBS"


def _found() -> dict[str, Theorem]:
    modules = (import_module(f".{found.name}", __name__) for found in iter_modules(__path__))
    found: dict[str, Theorem] = {}
    for theorem in (each for module in modules for each in vars(module).values() if isinstance(each, Theorem)):
        if found.setdefault(theorem.name, theorem) is not theorem:
            raise DraftcertError(f"two theorems are called {theorem.name}: give one of them another name")
    return found


def _place(name: str) -> tuple[bool, int, str]:
    return name[0] not in _GROUPS, _GROUPS.find(name[0]), name


THEOREMS: MappingProxyType[str, Theorem] = MappingProxyType(
    dict(sorted(_found().items(), key=lambda item: _place(item[0])))
)
"""All theorems by name."""

EVERY_FORMULA: MappingProxyType[str, Formula] = MappingProxyType(
    {**FORMULAS, **MARGIN_FORMULAS, **SUPREMUM_FORMULAS, **DIVERGENCE_FORMULAS, **SAMPLING_FORMULAS}
)
"""All formulas that the theorems establish, by name: those that are compiled, of the margin bounds, and the others."""

__all__ = ["EVERY_FORMULA", "THEOREMS"]
