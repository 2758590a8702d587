"""Typical acceptance: a token is accepted iff it is likelier than a threshold that falls with the target's entropy.

    accepts(x)  :<=>  p(x) > min(epsilon, delta exp(-H)),    H = - sum p ln p,   0 <= epsilon, delta <= 1

The inequality is strict: a token exactly on the threshold is rejected. Since exp(-H) <= p_(1), the most likely token
is always accepted when delta < 1; at delta = 1 a uniform target accepts nothing, its argmax included.

This is the rule as Medusa's paper states it (section 3.3, epsilon = 0.09, delta = 0.3 in its code). The deployed code
evaluates the logarithm with a floor, which is another rule: `typical_floor`.
"""

from sympy import Gt, Integer, Interval, Min, Rational, Symbol, exp, false, log, oo

from ..rule import OrderFact, Parameter, RuleFamily, WorkedPoint, equal, primed
from ..statistics import PROBABILITY, Entropy

epsilon = Symbol("epsilon", nonnegative=True)
delta = Symbol("delta", nonnegative=True)

_DUST = (
    "dust (little mass on very many tokens) drives exp(-H) to 0 and lets any token through, however small beside the "
    "largest"
)

RULE = RuleFamily(
    name="typical",
    parameters=(
        Parameter(epsilon, Interval(0, 1), "largest value of the threshold"),
        Parameter(delta, Interval(0, 1), "factor of exp(-H) in the threshold"),
    ),
    accepts=Gt(PROBABILITY, Min(epsilon, delta / exp(Entropy(0)))),
    deployed_as="Medusa's typical acceptance as published (posterior_threshold, posterior_alpha)",
    citation="Cai et al. 2024, arXiv 2401.10774, section 3.3; Sharma 2026, arXiv 2606.30265",
    worked_points=(
        WorkedPoint(
            ("1", "1/2"),
            ("1/2", "1/8", "1/8", "1/8", "1/8"),
            (0,),
            log(Rational(8, 5)) / 2 + log(Rational(2, 5)) / 8,
            note="H = 2 ln 2: the threshold 1/8 lies exactly on four tokens, and strictness rejects them",
        ),
        WorkedPoint(
            ("1", "2/5"), ("1/2", "1/8", "1/8", "1/8", "1/8"), (0, 1, 2, 3, 4), oo, note="threshold 1/10: all accepted"
        ),
        WorkedPoint(
            ("1/8", "1"),
            ("1/2", "1/8", "1/8", "1/8", "1/8"),
            (0,),
            log(Rational(8, 5)) / 2 + log(Rational(2, 5)) / 8,
            note="epsilon binds and lies exactly on four tokens: rejected",
        ),
        WorkedPoint(
            ("1", "1"), ("1/2", "1/2"), (), Integer(0), note="delta = 1 on a uniform target rejects even the argmax"
        ),
        WorkedPoint(
            ("9/100", "3/10"), ("1/2", "1/2", "0"), (0, 1), log(Rational(3, 2)), note="zeros add nothing to the entropy"
        ),
        WorkedPoint(
            ("1", "1"),
            ("1/2", "1/4", "1/4"),
            (0,),
            log(Rational(4, 3)) / 2 + log(Rational(2, 3)) / 4,
            note="the irrational threshold 2^(-3/2) lies between 1/4 and 1/2",
        ),
        WorkedPoint(("9/100", "3/10"), ("1",), (0,), oo, note="nothing can be rejected"),
        WorkedPoint(
            ("9/100", "3/10"),
            ("1/2", "9/20", "1/20"),
            (0, 1),
            log(Rational(3, 2)) / 2 + Rational(9, 20) * log(Rational(27, 20)) + log(Rational(3, 20)) / 20,
            note="trap (b): both accepted tokens lie above the level 1/3 and are moved",
        ),
        WorkedPoint(
            ("1", "9/10"),
            ("3/5", "19/50", "1/50"),
            (0,),
            Rational(3, 5) * log(Rational(60, 31)) + log(Rational(2, 31)) / 50,
            candidates=2,
            note="trap (a): the threshold .42 rejects the second token, which lies above the level 31/100 and stays",
        ),
    ),
    doc=__doc__,
    examples=(("9/100", "3/10"), ("1", "1/2")),
    special_case=("typical_floor", {"floor": "0"}),
    implies={
        "strict_greedy": OrderFact(false, "p = (2, 2, 1)/5 has exp(-H) < 2/5"),
        "additive": OrderFact(equal(primed("t"), 1), _DUST),
        "multiplicative": OrderFact(equal(primed("alpha"), 0), _DUST),
        "top_m": OrderFact(false, "p = (2, ..., 2, 1)/(2k + 3) has exp(-H) < p_(1), so all its maxima are accepted"),
        "absolute": OrderFact(equal(primed("tau"), 0), _DUST),
        "mars": OrderFact(false, "p = (2, 2, 2, 1)/7 has exp(-H) < 2/7, so three tokens are accepted"),
    },
)
