"""Which tokens the level projection moves: the pool of theorems T1 to T3, on any ordered numbers.

The selection only adds, divides and compares, so the same code serves exact fractions, sympy rationals and
python-flint rationals. `theory.projection` derives why it is right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar


class Ordered(Protocol):
    """A number that can be added, subtracted, divided by an integer and compared exactly."""

    def __add__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __lt__(self, other: Any, /) -> bool: ...


Number = TypeVar("Number", bound=Ordered)


@dataclass(frozen=True)
class Pool(Generic[Number]):
    """The tokens moved to the common level.

    `accepted` largest accepted tokens and `competitors` smallest of the m competitors, mean `level`, sum `mass`.
    An empty pool (0, 0) means that nothing moves: the target itself is a rejected distribution, C = 0.
    """

    accepted: int
    competitors: int
    level: Number
    mass: Number

    @property
    def size(self) -> int:
        """Number of pooled tokens."""
        return self.accepted + self.competitors


def select_pool(accepted: Sequence[Number], competitors: Sequence[Number]) -> Pool[Number]:
    """Solve `sum_A (p_a - c)_+ = sum_M (c - p_i)_+` exactly by growing the pool from its two ends.

    Both arguments are in descending order; `competitors` holds the m most likely rejected tokens (m >= 1). An accepted
    token above the mean of the pool, or a competitor below it, belongs to the pool, whatever else does: adding them one
    by one ends at the only pool whose mean separates it from the rest. Ties with the level move nothing, so they are
    left out. Cost: one comparison per pooled token and two to stop.

    >>> from fractions import Fraction as F
    >>> select_pool([F(1, 2)], [F(9, 20), F(1, 20)]).size  # trap (a): .45 lies above the mean, it is not pooled
    2
    >>> select_pool([F(8, 20), F(7, 20)], [F(5, 20)]).size  # trap (b): the other accepted token is pooled
    3
    """
    lowest = len(competitors) - 1
    if not accepted or not competitors[lowest] < accepted[0]:
        level = (accepted or competitors)[0]
        return Pool(0, 0, level, level - level)
    above, below = 1, 1
    mass = accepted[0] + competitors[lowest]
    level = mass / 2
    while True:
        if above < len(accepted) and level < accepted[above]:
            mass = mass + accepted[above]
            above += 1
        elif below <= lowest and competitors[lowest - below] < level:
            mass = mass + competitors[lowest - below]
            below += 1
        else:
            return Pool(above, below, level, mass)
        level = mass / (above + below)
