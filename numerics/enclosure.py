"""`Enclosure`: a number known to lie between two others, with as many digits as were asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import mpmath
from flint import arb

from .balls import Mpf, bounds, to_mpf


@dataclass(frozen=True)
class Enclosure:
    """A proven enclosure in nats: the number lies between `lower` and `upper`; `str` prints its certain digits."""

    ball: arb = field(repr=False)
    """The enclosure as a python-flint ball."""
    digits: int
    """Digits that are certain; `str` prints them, correctly rounded."""
    most: float = field(default=math.inf, repr=False, kw_only=True)
    """What the number cannot exceed, of whatever kind it is; the ball's upper end may, by rounding."""

    @property
    def value(self) -> Mpf:
        """Midpoint of the enclosure, an mpmath number."""
        return to_mpf(self.ball)

    @property
    def radius(self) -> Mpf:
        """Half the width of the enclosure; 0 where the value is exact (0 or infinity)."""
        return to_mpf(self.ball.rad()) if self.ball.is_finite() else mpmath.mpf(0)

    @property
    def lower(self) -> Mpf:
        """A proven lower bound."""
        return bounds(self.ball)[0]

    @property
    def upper(self) -> Mpf:
        """A proven upper bound."""
        return min(bounds(self.ball)[1], mpmath.mpf(self.most))

    def __float__(self) -> float:
        """The nearest float."""
        return float(self.value)

    def __str__(self) -> str:
        """The value, correctly rounded to `digits` digits."""
        return rounded(self.value, self.digits)


def rounded(value: Mpf, digits: int) -> str:
    """A number with exactly this many significant digits; '0.0' and '+inf' for the exact values."""
    with mpmath.workdps(digits + 5):
        special = not mpmath.isfinite(value) or not value
        return str(mpmath.nstr(value) if special else mpmath.nstr(value, digits, strip_zeros=False))


def is_certain(ball: arb, digits: int) -> bool:
    """Whether both ends of a ball round to the same digits."""
    return len({rounded(end, digits) for end in bounds(ball)}) == 1
