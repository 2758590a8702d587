"""Typical acceptance as the deployed code computes it: the entropy with a floor inside the logarithm.

    accepts(x)  :<=>  p(x) > min(epsilon, delta exp(-H_f)),    H_f = - sum p ln(p + f),   0 <= f <= 1

H_f <= H, so the threshold is never below that of `typical` and every token accepted here is accepted there. The floor
is no rounding: on a uniform target over V tokens the threshold is delta (1/V + f), which no token exceeds once
V >= (1 - delta)/(delta f). At Medusa's delta = 0.3 and f = 1e-5 that is V >= 233,334: a uniform target over a
vocabulary of 262,144 accepts nothing, its argmax included.

Deployed by Medusa (`evaluate_posterior`) and by vLLM's TypicalAcceptanceSampler, both with f = 1e-5; strict inequality.
"""

from sympy import Gt, Integer, Interval, Min, Rational, Symbol, exp, log, oo

from ..rule import Parameter, RuleFamily, WorkedPoint
from ..statistics import PROBABILITY, Entropy

epsilon = Symbol("epsilon", nonnegative=True)
delta = Symbol("delta", nonnegative=True)
floor = Symbol("floor", nonnegative=True)

RULE = RuleFamily(
    name="typical_floor",
    parameters=(
        Parameter(epsilon, Interval(0, 1), "largest value of the threshold"),
        Parameter(delta, Interval(0, 1), "factor of exp(-H_f) in the threshold"),
        Parameter(floor, Interval(0, 1), "constant added to every probability inside the logarithm"),
    ),
    accepts=Gt(PROBABILITY, Min(epsilon, delta / exp(Entropy(floor)))),
    deployed_as="Medusa and vLLM's TypicalAcceptanceSampler, floor 1e-5",
    citation="FasterDecoding/Medusa, medusa/model/utils.py, evaluate_posterior; Cai et al. 2024, arXiv 2401.10774",
    worked_points=(
        WorkedPoint(
            ("1", "1/2", "1/4"),
            ("1/2", "1/4", "1/4"),
            (0,),
            log(Rational(4, 3)) / 2 + log(Rational(2, 3)) / 4,
            note="exp(-H_f) = sqrt(3/8): the floor lifts the threshold from .177 to .306, between 1/4 and 1/2",
        ),
        WorkedPoint(("1", "1/2", "0"), ("1/2", "1/4", "1/4"), (0, 1, 2), oo, note="without the floor all are accepted"),
        WorkedPoint(
            ("1", "1/2", "1/2"),
            ("1/2", "1/2"),
            (),
            Integer(0),
            note="H_f = 0: the threshold 1/2 lies exactly on both tokens, and strictness rejects even the argmax",
        ),
        WorkedPoint(
            ("9/100", "3/10", "1/100000"),
            ("1/2", "1/2", "0"),
            (0, 1),
            log(Rational(3, 2)),
            note="as deployed: zeros add nothing, epsilon binds, both accepted tokens are moved",
        ),
        WorkedPoint(
            ("1/8", "1", "1/100000"),
            ("1/2", "1/8", "1/8", "1/8", "1/8"),
            (0,),
            log(Rational(8, 5)) / 2 + log(Rational(2, 5)) / 8,
            note="epsilon lies exactly on four tokens: rejected",
        ),
        WorkedPoint(
            ("1", "9/10", "1/100000"),
            ("3/5", "19/50", "1/50"),
            (0,),
            Rational(3, 5) * log(Rational(60, 31)) + log(Rational(2, 31)) / 50,
            candidates=2,
            note="trap (a): the threshold .42 rejects the second token, which lies above the level 31/100 and stays",
        ),
    ),
    doc=__doc__,
)
