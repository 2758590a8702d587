"""The least divergences of a rejected draft, other than `KL(p||q)`, in terms of the tokens that the level moves."""

from types import MappingProxyType
from typing import cast

import sympy
from sympy import Interval, S, log
from sympy.logic.boolalg import Boolean

from .formula import Argument, Formula
from .formulas import COUNT, UNIT, c, mass, n
from .functions import log1p

HERE = "draftcert, theory.theorems"

order = sympy.Symbol("a", positive=True)

_MOVED = (
    Argument(mass, UNIT, "mass of the tokens that the level moves"),
    Argument(n, COUNT, "their number"),
    Argument(c, Interval.Lopen(0, 1), "level"),
)

RENYI = Formula(
    name="renyi",
    statement=(
        "Least Renyi divergence D_a(p||q) of a rejected draft, for any order a > 0 other than 1; the level c is the "
        "power mean of order a of the tokens that it moves."
    ),
    arguments=(Argument(order, Interval.open(0, S.Infinity), "order"), *_MOVED),
    constraint=cast("Boolean", sympy.Ne(order, 1)),
    expression=order / (order - 1) * log(1 - mass + n * c),
    stable=order / (order - 1) * log1p(n * c - mass),
    citation=HERE,
)

REVERSE_KL = Formula(
    name="reverse_kl",
    statement="Least KL(q||p) of a rejected draft; the level c is the geometric mean of the tokens that it moves.",
    arguments=_MOVED,
    expression=-log(1 - mass + n * c),
    stable=S.NegativeOne * log1p(n * c - mass),
    citation=HERE,
)

TOTAL_VARIATION = Formula(
    name="total_variation",
    statement=(
        "Least total variation between the target and a rejected draft: what n accepted tokens of mass S have above "
        "their level c, which is the one of KL(p||q)."
    ),
    arguments=(
        Argument(mass, UNIT, "mass of the accepted tokens above the level"),
        Argument(n, COUNT, "their number"),
        Argument(c, UNIT, "level"),
    ),
    expression=mass - n * c,
    stable=mass - n * c,
    citation=HERE,
    unit="probability",
)

DIVERGENCE_FORMULAS = MappingProxyType({formula.name: formula for formula in (RENYI, REVERSE_KL, TOTAL_VARIATION)})
"""The formulas of the other divergences by name."""
