"""Absolute: a token is accepted iff its probability is at least tau.

    accepts(x)  :<=>  p(x) >= tau,    0 <= tau <= 1

A flat target accepts nothing (p_(1) < tau), and then C = 0: no drafter, however good, is certified there. tau = 0
accepts every token. A token exactly on the threshold is accepted.

Deployed by SGLang (`speculative_accept_threshold_single`), which moreover accepts by a coin flip; see the preset
`sglang_threshold_single`.
"""

from sympy import Ge, Gt, Integer, Interval, Rational, Symbol, log, oo

from ..formulas import HERE
from ..rule import OrderFact, Parameter, RuleFamily, WorkedPoint, primed
from ..statistics import PROBABILITY

tau = Symbol("tau", nonnegative=True)

_HALF = "two tokens cannot both have more than half the mass"

RULE = RuleFamily(
    name="absolute",
    parameters=(Parameter(tau, Interval(0, 1), "least probability of an accepted token"),),
    accepts=Ge(PROBABILITY, tau),
    deployed_as="SGLang threshold_single",
    citation=HERE,
    worked_points=(
        WorkedPoint(
            ("3/10",),
            ("1/2", "3/10", "1/5"),
            (0, 1),
            log(Rational(10, 7)) / 2 + log(Rational(4, 7)) / 5,
            note="the second token lies exactly on the threshold: accepted; below the level 7/20: not moved",
        ),
        WorkedPoint(("1/2",), ("2/5", "3/10", "3/10"), (), Integer(0), note="no token reaches tau: nothing accepted"),
        WorkedPoint(("1/2",), ("1/2", "1/2"), (0, 1), oo, note="a tie on the threshold: everything is accepted"),
        WorkedPoint(("9/10",), ("1", "0"), (0,), log(2), note="a point mass: the ceiling for one candidate"),
        WorkedPoint(("0",), ("1", "0"), (0, 1), oo, note="tau = 0 accepts tokens of probability zero"),
        WorkedPoint(
            ("3/10",),
            ("2/5", "7/20", "1/4"),
            (0, 1),
            Rational(2, 5) * log(Rational(6, 5)) + Rational(7, 20) * log(Rational(21, 20)) + log(Rational(3, 4)) / 4,
            note="trap (b): the other accepted token lies above the level and is moved too",
        ),
        WorkedPoint(
            ("1/2",),
            ("1/2", "9/20", "1/20"),
            (0,),
            log(Rational(20, 11)) / 2 + log(Rational(2, 11)) / 20,
            candidates=2,
            note="trap (a): the competitor 9/20 lies above the level 11/40 and is not moved",
        ),
    ),
    doc=__doc__,
    examples=(("1/10",), ("1/2",)),
    implies={
        "strict_greedy": OrderFact(Gt(2 * tau, 1), _HALF),
        "additive": OrderFact(Ge(2 * tau, 1 - primed("t")), "p_(1) <= 1 - p_x, so p_(1) - p_x <= 1 - 2 tau"),
        "multiplicative": OrderFact(
            Ge(tau, primed("alpha") / (1 + primed("alpha"))), "p_(1) <= 1 - p_x, so p_x/p_(1) >= tau/(1 - tau)"
        ),
        "top_m": OrderFact(Gt((primed("k") + 1) * tau, 1), "k + 1 tokens of at least tau have mass (k + 1) tau"),
        "absolute": OrderFact(Ge(tau, primed("tau")), "a higher threshold"),
        "mars": OrderFact(Gt(2 * tau, 1), _HALF),
    },
)
