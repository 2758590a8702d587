"""Multiplicative: a token is accepted iff it has at least the fraction alpha of the largest probability.

    accepts(x)  :<=>  p(x) >= alpha p_(1),    0 <= alpha <= 1

In logits: z(x) >= z_(1) + ln alpha, so the rule is invariant under a shift of the logits. A token exactly on the
threshold is accepted; alpha = 1 accepts every maximum, ties included, and alpha = 0 every token.

Proposed for vLLM together with a rank (`top_m(k) & multiplicative(alpha)`); the min-p sampler keeps the same set.
"""

from sympy import Ge, Interval, Rational, Symbol, false, log, oo

from ..formulas import PAPER
from ..rule import OrderFact, Parameter, RuleFamily, WorkedPoint, equal, primed
from ..statistics import PROBABILITY, TOP

alpha = Symbol("alpha", nonnegative=True)

_TIES = "a tie of many tokens is accepted as a whole"

RULE = RuleFamily(
    name="multiplicative",
    parameters=(Parameter(alpha, Interval(0, 1), "least fraction of the largest probability"),),
    accepts=Ge(PROBABILITY, alpha * TOP),
    deployed_as="part of the relaxed acceptance proposed for vLLM (relax_ratio)",
    citation=PAPER,
    worked_points=(
        WorkedPoint(
            ("3/5",),
            ("1/2", "3/10", "1/5"),
            (0, 1),
            log(Rational(10, 7)) / 2 + log(Rational(4, 7)) / 5,
            note="the second token lies exactly on the threshold 3/10: accepted; below the level 7/20: not moved",
        ),
        WorkedPoint(("1/2",), ("1/2", "1/4", "1/4"), (0, 1, 2), oo, note="both others lie on the threshold"),
        WorkedPoint(
            ("1",),
            ("2/5", "1/5", "2/5"),
            (0, 2),
            Rational(4, 5) * log(Rational(6, 5)) + log(Rational(3, 5)) / 5,
            note="a tie at alpha = 1: both maxima are accepted, and both are moved",
        ),
        WorkedPoint(("1/10",), ("0", "1"), (1,), log(2), note="a point mass: the ceiling for one candidate"),
        WorkedPoint(("0",), ("1", "0"), (0, 1), oo, note="alpha = 0 accepts tokens of probability zero"),
        WorkedPoint(
            ("7/8",),
            ("2/5", "7/20", "1/4"),
            (0, 1),
            Rational(2, 5) * log(Rational(6, 5)) + Rational(7, 20) * log(Rational(21, 20)) + log(Rational(3, 4)) / 4,
            note="trap (b): the other accepted token lies above the level and is moved too",
        ),
        WorkedPoint(
            ("19/20",),
            ("1/2", "9/20", "1/20"),
            (0,),
            log(Rational(20, 11)) / 2 + log(Rational(2, 11)) / 20,
            candidates=2,
            note="trap (a): the competitor 9/20 lies above the level 11/40 and is not moved",
        ),
    ),
    doc=__doc__,
    examples=(("1/10",), ("2/5",)),
    implies={
        "strict_greedy": OrderFact(false, _TIES),
        "additive": OrderFact(
            Ge(primed("t") * (1 + alpha), 1 - alpha),
            "p_x >= alpha p_(1) and p_(1) + p_x <= 1 give p_(1) - p_x <= (1 - alpha)/(1 + alpha), as two tokens do",
        ),
        "multiplicative": OrderFact(Ge(alpha, primed("alpha")), "the threshold alpha p_(1) rises in alpha"),
        "top_m": OrderFact(false, _TIES),
        "absolute": OrderFact(equal(primed("tau"), 0), "a token of any uniform target is accepted, however small"),
        "mars": OrderFact(false, _TIES),
    },
)
