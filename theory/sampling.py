"""The formulas of verification by sampling: two ratios target/draft are enough to describe the worst drafters.

In the worst case the ratio is `u < 1` on the tokens that are drafted too often and `v > 1` on all others. The lenience
with which such a drafter is the worst one is the logarithmic mean of the two, `(v - u) / ln(v/u)`.
"""

from types import MappingProxyType

import sympy
from sympy import Interval, S, log

from .formula import Argument, Formula
from .functions import log1p

FEDOTOV = "Fedotov, Harremoes and Topsoe, IEEE Trans. Inf. Theory 49 (2003) 1491-1498, for lenience 1; draftcert"

u, v = sympy.symbols("u v", positive=True)
lenience = sympy.Symbol("l", positive=True)
kl = sympy.Symbol("D", nonnegative=True)

_RATIOS = (
    Argument(u, Interval.open(0, 1), "target/draft on the tokens that are drafted too often"),
    Argument(v, Interval.open(1, S.Infinity), "target/draft on all others"),
)
_OF_PAIR = (*_RATIOS, Argument(lenience, Interval.Lopen(0, 1), "the lenience of the two ratios"))

LENIENCE = Formula(
    name="lenience",
    statement="The lenience with which the drafter of ratios u and v is the worst one: their logarithmic mean.",
    arguments=_RATIOS,
    expression=(v - u) / log(v / u),
    stable=(v - u) / log1p((v - u) / u),
    citation=FEDOTOV,
    unit="ratio",
)

SAMPLING_KL = Formula(
    name="sampling_kl",
    statement="KL(p||q) of the pair of distributions whose ratio p/q is u on some tokens and v on all others.",
    arguments=_OF_PAIR,
    expression=log(v) - u * (v - 1) / lenience,
    stable=log1p(v - 1) - u * (v - 1) / lenience,
    citation=FEDOTOV,
)

SAMPLING_ACCEPTANCE = Formula(
    name="sampling_acceptance",
    statement="Acceptance of that pair with its lenience l: the sum of min(q, p/l).",
    arguments=_OF_PAIR,
    expression=(1 - u + u * (v - 1) / lenience) / (v - u),
    stable=(1 - u + u * (v - 1) / lenience) / (v - u),
    citation=FEDOTOV,
    unit="probability",
)

SAMPLING_TANGENT = Formula(
    name="sampling_tangent",
    statement=(
        "With the lenience of u and v, acceptance is at least this for all pairs with KL(p||q) <= D: a tangent of the "
        "curve of least acceptance."
    ),
    arguments=(*_RATIOS, Argument(kl, Interval(0, S.Infinity), "KL(p||q), or its mean over contexts")),
    expression=(1 - u + log(v) - kl) / (v - u),
    stable=(1 - u + log1p(v - 1) - kl) / (v - u),
    citation=FEDOTOV,
    unit="probability",
)

SAMPLING_FORMULAS = MappingProxyType(
    {formula.name: formula for formula in (LENIENCE, SAMPLING_KL, SAMPLING_ACCEPTANCE, SAMPLING_TANGENT)}
)
"""The formulas of verification by sampling by name."""
