"""Additive: a token is accepted iff its probability is within t of the largest.

    accepts(x)  :<=>  p(x) >= p_(1) - t,    0 <= t <= 1

A token exactly t below is accepted. t = 0 accepts every maximum, ties included, which is more than strict greedy does;
t = 1 accepts every token, so C is infinite.

Deployed together with a rank: TensorRT-LLM's relaxed acceptance is `top_m(k) & additive(t)`.
"""

from sympy import Ge, Interval, Le, Or, Rational, Symbol, false, log, oo

from ..formulas import PAPER
from ..rule import OrderFact, Parameter, RuleFamily, WorkedPoint, equal, primed
from ..statistics import PROBABILITY, TOP

t = Symbol("t", nonnegative=True)

_TIES = "a tie of many tokens is accepted as a whole"

RULE = RuleFamily(
    name="additive",
    parameters=(Parameter(t, Interval(0, 1), "how far below the largest probability a token may lie"),),
    accepts=Ge(PROBABILITY, TOP - t),
    deployed_as="part of TensorRT-LLM's relaxed acceptance (relaxed_delta)",
    citation=PAPER,
    worked_points=(
        WorkedPoint(
            ("1/10",),
            ("2/5", "7/20", "1/4"),
            (0, 1),
            Rational(2, 5) * log(Rational(6, 5)) + Rational(7, 20) * log(Rational(21, 20)) + log(Rational(3, 4)) / 4,
            note="trap (b): the other accepted token lies above the level and is moved too; the pair alone gives less",
        ),
        WorkedPoint(
            ("1/10",),
            ("1/2", "2/5", "1/10"),
            (0, 1),
            log(Rational(3, 2)) / 2 + Rational(2, 5) * log(Rational(6, 5)) + log(Rational(3, 10)) / 10,
            note="the second token lies exactly on the threshold 2/5: accepted",
        ),
        WorkedPoint(
            ("0",),
            ("1/5", "2/5", "2/5"),
            (1, 2),
            Rational(4, 5) * log(Rational(6, 5)) + log(Rational(3, 5)) / 5,
            note="a tie at t = 0: both maxima are accepted",
        ),
        WorkedPoint(("1/2",), ("1", "0"), (0,), log(2), note="a point mass: the ceiling for one candidate"),
        WorkedPoint(("1",), ("1", "0"), (0, 1), oo, note="t = 1 accepts tokens of probability zero"),
        WorkedPoint(
            ("1/10",),
            ("1/2", "1/4", "1/4"),
            (0,),
            log(Rational(3, 2)) / 2 + log(Rational(3, 4)) / 2,
            candidates=2,
            note="two candidates: all three tokens meet at 1/3",
        ),
        WorkedPoint(("1/4",), ("1/3", "1/3", "1/3"), (0, 1, 2), oo, note="uniform: nothing is rejected"),
        WorkedPoint(("0",), ("3/5", "2/5"), (0,), log(Rational(6, 5)) * Rational(3, 5) + log(Rational(4, 5)) * 2 / 5),
        WorkedPoint(
            ("1/25",),
            ("1/2", "9/20", "1/20"),
            (0,),
            log(Rational(20, 11)) / 2 + log(Rational(2, 11)) / 20,
            candidates=2,
            note="trap (a): the competitor 9/20 lies above the level 11/40 and stays",
        ),
    ),
    doc=__doc__,
    examples=(("3/10",),),
    implies={
        "strict_greedy": OrderFact(false, _TIES),
        "additive": OrderFact(Le(t, primed("t")), "the threshold p_(1) - t falls in t"),
        "multiplicative": OrderFact(
            Or(equal(t, 0), equal(primed("alpha"), 0)),
            "at t = 0 only maxima are accepted; for t > 0 a flat target accepts everything, even zeros",
        ),
        "top_m": OrderFact(false, _TIES),
        "absolute": OrderFact(equal(primed("tau"), 0), "a token of any uniform target is accepted, however small"),
        "mars": OrderFact(false, _TIES),
    },
)
