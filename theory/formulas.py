"""The formulas that are compiled and compared: each stated once, here.

Notation: `p` a token's target probability, `c` the level, `n`, `S` and `E = sum p ln p` of the pooled tokens, `m`
candidates, `g` a margin of the target, `s` a sum of probabilities.
"""

from types import MappingProxyType

import sympy
from sympy import Interval, S, log

from .formula import Argument, Formula
from .functions import Bennett, expm1, log1p

PAPER = "Sharma 2026, arXiv 2606.30265"
HERE = "draftcert, theory.projection"

p, q, c = sympy.symbols("p q c", positive=True)
mass, n, m = sympy.Symbol("S", positive=True), sympy.Symbol("n", positive=True), sympy.Symbol("m", positive=True)
g, s, x = sympy.Symbol("g", nonnegative=True), sympy.Symbol("s", positive=True), sympy.Symbol("x", nonnegative=True)
top = sympy.Symbol("p_1", positive=True)
r, a, d = sympy.symbols("r a d", real=True)

UNIT = Interval(0, 1)
COUNT = S.Naturals

PHI = Formula(
    name="phi",
    statement="phi(x) = ((1+x) ln(1+x) + (1-x) ln(1-x)) / 2: the divergence of a pair from its mean, per unit of mass.",
    arguments=(Argument(x, UNIT, "relative margin of a pair, g / s"),),
    expression=((1 + x) * log(1 + x) + (1 - x) * log(1 - x)) / 2,
    stable=(Bennett(x) + Bennett(-x)) / 2,
    citation=PAPER,
)

LEVEL = Formula(
    name="level",
    statement="The level of the projection is the mean of the pooled tokens.",
    arguments=(Argument(mass, UNIT, "mass of the pool"), Argument(n, COUNT, "tokens in the pool")),
    expression=mass / n,
    stable=mass / n,
    citation=HERE,
    unit="probability",
)

CERTIFICATE = Formula(
    name="certificate",
    statement="C = sum over the pooled tokens of p ln(p/c), c the mean of the pool.",
    arguments=(
        Argument(p, UNIT, "probability of a pooled token", axis="pool"),
        Argument(c, UNIT, "level: mean of p over the pool"),
    ),
    expression=p * log(p / c),
    stable=c * Bennett((p - c) / c),
    citation=HERE,
    sum_over="pool",
)

CERTIFICATE_OF_GAPS = Formula(
    name="certificate_of_gaps",
    statement="C = sum over the pool of p ln(p/c) with p = p_(1) (1 + r): from logit gaps, r = expm1(z - max z).",
    arguments=(
        Argument(top, Interval.Lopen(0, 1), "largest probability"),
        Argument(r, Interval(-1, 0), "p/p_(1) - 1 of a pooled token", axis="pool"),
        Argument(a, Interval.Lopen(-1, 0), "mean of r over the pool"),
    ),
    expression=top * (1 + r) * log((1 + r) / (1 + a)),
    stable=top * (1 + a) * Bennett((r - a) / (1 + a)),
    citation=HERE,
    sum_over="pool",
)

STRICT_GREEDY = Formula(
    name="strict_greedy",
    statement="C = s phi(g/s) for strict greedy acceptance of a single draft, s = p_(1) + p_(2), g = p_(1) - p_(2).",
    arguments=(Argument(s, Interval.Lopen(0, 1), "mass of the two"), Argument(g, UNIT, "margin")),
    constraint=sympy.Le(g, s),
    expression=((s + g) * log((s + g) / s) + (s - g) * log((s - g) / s)) / 2,
    stable=s * (Bennett(g / s) + Bennett(-g / s)) / 2,
    citation=PAPER,
)

CEILING = Formula(
    name="ceiling",
    statement="C <= ln(1 + m p_(1)) for m candidates.",
    arguments=(Argument(m, COUNT, "candidates"), Argument(top, Interval.Lopen(0, 1), "largest probability")),
    expression=log(1 + m * top),
    stable=S.One * log1p(m * top),
    citation=HERE,
)

KL = Formula(
    name="kl",
    statement="KL(target || draft) = sum p ln(p/q), infinite where q = 0 < p.",
    arguments=(
        Argument(p, UNIT, "target probability", axis="vocab"),
        Argument(q, UNIT, "draft probability", axis="vocab"),
    ),
    expression=p * log(p / q),
    stable=q * Bennett((p - q) / q),
    citation="Kullback and Leibler, Ann. Math. Statist. 22 (1951) 79-86",
    sum_over="vocab",
)

KL_OF_LOGS = Formula(
    name="kl_of_logs",
    statement=(
        "KL(target || draft) = sum p d with d = ln(p/q), every p > 0: from log-probabilities, where q may be below any "
        "float. The draft's mass where the target has none is missed."
    ),
    arguments=(
        Argument(p, Interval.Lopen(0, 1), "target probability, positive", axis="vocab"),
        Argument(d, S.Reals, "ln(p/q)", axis="vocab"),
    ),
    expression=p * d,
    stable=p * (d + expm1(-d)),
    citation="Kullback and Leibler, Ann. Math. Statist. 22 (1951) 79-86",
    sum_over="vocab",
)

FORMULAS = MappingProxyType(
    {
        formula.name: formula
        for formula in (PHI, LEVEL, CERTIFICATE, CERTIFICATE_OF_GAPS, STRICT_GREEDY, CEILING, KL, KL_OF_LOGS)
    }
)
"""All formulas by name."""
