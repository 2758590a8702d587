"""The formulas of the margin bounds: what a certificate is at least, or at most, when only a margin is known.

Almost all of them are one function, `one_against_many`: one accepted token `g` above m equal competitors. Which rule is
meant decides how large the competitors can be.
"""

from types import MappingProxyType
from typing import Any

import sympy
from sympy import Interval, S, log, sqrt

from .formula import Argument, Formula
from .formulas import COUNT, PHI, UNIT, g, m, x
from .functions import Bennett, log1p
from .rules.additive import t

HERE = "draftcert, theory.theorems"

b = sympy.Symbol("b", nonnegative=True)
e = sympy.Symbol("e", nonnegative=True)

_CANDIDATES = Argument(m, COUNT, "candidates")
_MARGIN = Argument(g, UNIT, "margin")

_several = m + 1
_mass = g + _several * b
ONE_AGAINST_MANY = Formula(
    name="one_against_many",
    statement=(
        "Certificate of one accepted token g + b against m competitors b: with b = (1-g)/(m+1) the infimum for strict "
        "greedy (M7), with (1-g)/(m+k) for top-m(k) (M4), with alpha g/(1-alpha) for multiplicative(alpha) (M3), with "
        "tau for a threshold (M5), with (1-g)/V a supremum for V tokens."
    ),
    arguments=(
        _CANDIDATES,
        Argument(g, Interval.Lopen(0, 1), "how far the accepted token lies above the competitors"),
        Argument(b, UNIT, "probability of each competitor"),
    ),
    expression=(g + b) * log(g + b) + m * b * log(b) - _mass * log(_mass / _several),
    stable=_mass * (Bennett(m * g / _mass) + m * Bennett(-g / _mass)) / _several,
    citation=HERE,
)

TREE_MARGIN = Formula(
    name="tree_margin",
    statement="M7: inf C for strict greedy with m candidates when g = p_(1) - p_(2); M1 at m = 1.",
    arguments=(_CANDIDATES, _MARGIN),
    expression=((1 + m * g) * log(1 + m * g) + m * (1 - g) * log(1 - g)) / _several,
    stable=(Bennett(m * g) + m * Bennett(-g)) / _several,
    citation=HERE,
)

_discriminant = (m - 1) ** 2 * g**2 + 4 * (1 - g) * (1 + g)
TREE_RATIO = Formula(
    name="tree_ratio",
    statement="M6: e = y - 1 where y >= 1 solves (1-g) y^2 - g (m-1) y - (1+g) = 0, from g = p_(1) - p_(m+1).",
    arguments=(_CANDIDATES, Argument(g, Interval.Ropen(0, 1), "margin to the last candidate")),
    expression=(g * (m - 1) + sqrt(_discriminant)) / (2 * (1 - g)) - 1,
    stable=(g * _several + g**2 * (m - 3) * _several / (sqrt(_discriminant) + 2)) / (2 * (1 - g)),
    citation=HERE,
    unit="ratio",
)

_y = 1 + e
_norm = m - 1 + _y + 1 / _y
TREE_LAST_MARGIN = Formula(
    name="tree_last_margin",
    statement="M6: inf C for strict greedy with m candidates when g = p_(1) - p_(m+1), from e = tree_ratio(m, g).",
    arguments=(_CANDIDATES, Argument(e, Interval(0, S.Infinity), "y - 1")),
    expression=(_y**2 - 1) / (_y**2 + (m - 1) * _y + 1) * log(_y) - log(_norm / _several),
    stable=(
        Bennett(e * (m + 1 / _y) / _norm)
        + (m - 1) * Bennett(-(e**2) / (_y * _norm))
        + Bennett(-e * (_y + m) / (_y * _norm))
    )
    / _several,
    citation=HERE,
)

_first: sympy.Expr = (1 + g + m * t) / (m + 2)
ADDITIVE_NEAR = Formula(
    name="additive_near",
    statement=(
        "M2: inf C for additive(t) when g = p_(1) - p_(2) is so small, g <= m t/(m+1), that the second token is "
        "accepted and pooled."
    ),
    arguments=(
        _CANDIDATES,
        Argument(t, Interval.open(0, 1), "parameter of the rule"),
        Argument(g, UNIT, "margin"),
    ),
    constraint=sympy.And(sympy.Le(g, m * t / _several), sympy.Ge(g, 2 * t - 1)),
    expression=sympy.Add(
        *(w * p * log((m + 2) * p) for w, p in ((S.One, _first), (S.One, _first - g), (m, _first - t)))
    ),
    stable=sympy.Add(*(w * Bennett(x) for w, x in ((S.One, g + m * t), (S.One, m * t - _several * g), (m, g - 2 * t))))
    / (m + 2),
    citation=HERE,
)

MARGIN_FORMULAS = MappingProxyType(
    {formula.name: formula for formula in (ONE_AGAINST_MANY, TREE_MARGIN, TREE_RATIO, TREE_LAST_MARGIN, ADDITIVE_NEAR)}
)
"""The formulas of the margin bounds by name."""

_stable_phi: Any = PHI.stable.xreplace({x: g})
SPIKE_POOLED = Formula(
    name="spike_pooled",
    statement=(
        "Certificate of ((1+g)/2, (1-g)/2) accepted against m competitors of probability 0, for g <= m/(m+2): both are "
        "pooled. The supremum for relaxed rules over targets that can be rejected."
    ),
    arguments=(_CANDIDATES, _MARGIN),
    constraint=sympy.Le(g, m / (m + 2)),
    expression=log(1 + m / 2) + PHI.expression.xreplace({x: g}),
    stable=_stable_phi + log1p(m / 2),
    citation=HERE,
)

SPIKE_ALONE = Formula(
    name="spike_alone",
    statement="The same for g >= m/(m+2): only the first token is pooled.",
    arguments=(_CANDIDATES, _MARGIN),
    constraint=sympy.Ge(g, m / (m + 2)),
    expression=(1 + g) / 2 * log(_several),
    stable=(1 + g) / 2 * log1p(m),
    citation=HERE,
)

SUPREMUM_FORMULAS = MappingProxyType({formula.name: formula for formula in (SPIKE_POOLED, SPIKE_ALONE)})
"""The formulas of the largest certificates by name."""
