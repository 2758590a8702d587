"""Typical acceptance as the deployed code computes it: the entropy with a floor inside the logarithm.

    accepts(x)  :<=>  p(x) > min(epsilon, delta exp(-H_f)),    H_f = - sum p ln(p + f),   0 <= f <= 1

H_f <= H, so the threshold is never below that of `typical` and every token accepted here is accepted there. The floor
is no rounding: on a uniform target over V tokens the threshold is delta (1/V + f), which no token exceeds once
V >= (1 - delta)/(delta f). At Medusa's delta = 0.3 and f = 1e-5 that is V >= 233,334: a uniform target over a
vocabulary of 262,144 accepts nothing, its argmax included.

Deployed by Medusa (`evaluate_posterior`) and by vLLM's TypicalAcceptanceSampler, both with f = 1e-5; strict inequality.
"""

from sympy import And, Expr, Ge, Gt, Integer, Interval, Le, Lt, Min, Or, Rational, Symbol, exp, false, log, oo

from ..rule import OrderFact, Parameter, RuleFamily, WorkedPoint, equal, primed
from ..statistics import PROBABILITY, Entropy
from .absolute import tau
from .additive import t
from .multiplicative import alpha
from .top_m import k

epsilon = Symbol("epsilon", nonnegative=True)
delta = Symbol("delta", nonnegative=True)
floor = Symbol("floor", nonnegative=True)

epsilon_, delta_, floor_ = primed("epsilon"), primed("delta"), primed("floor")


def concentrated(s: Expr, f: Expr) -> Expr:
    """The largest exp(-H_f) of a target that has a token of probability s: all other mass on one token."""
    return (s + f) ** s * (1 - s + f) ** (1 - s)


_ANY_POSITIVE = Or(equal(epsilon_, 0), equal(delta_, 0))
"""The threshold is 0: every token of positive probability is accepted."""
_ACCEPTS_ARGMAX = Or(_ANY_POSITIVE, And(equal(floor_, 0), Lt(delta_, 1)))
_ARGMAX = (
    "exp(-H) <= p_(1), so delta exp(-H) < p_(1) for delta < 1; at delta = 1, or with a positive floor, a uniform "
    "target over a large vocabulary rejects its argmax"
)
_ZEROS = "the narrow rule can accept a token of probability zero, which no strict threshold admits"
_LEAST = Min(epsilon, delta * floor)
_HALF = And(Ge(2 * epsilon, 1), Ge(2 * delta * floor, 1))
_BOUNDED = "exp(-H_f) >= f, so an accepted token has more than min(epsilon, delta f)"

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
    examples=(("9/100", "3/10", "1/100000"),),
    implies={
        "strict_greedy": OrderFact(_HALF, _BOUNDED, necessary=False),
        "additive": OrderFact(Ge(primed("t"), 1 - 2 * _LEAST), f"{_BOUNDED}, and p_(1) <= 1 - p_x", necessary=False),
        "multiplicative": OrderFact(Le(primed("alpha"), _LEAST), _BOUNDED, necessary=False),
        "top_m": OrderFact(Ge((primed("k") + 1) * _LEAST, 1), _BOUNDED, necessary=False),
        "absolute": OrderFact(Le(primed("tau"), _LEAST), _BOUNDED, necessary=False),
        "typical_floor": OrderFact(
            Or(_ANY_POSITIVE, And(Le(floor_, floor), Le(delta_, delta), Le(epsilon_, epsilon))),
            "the threshold rises in epsilon, delta and the floor",
            necessary=False,
        ),
        "mars": OrderFact(_HALF, _BOUNDED, necessary=False),
    },
    implied_by={
        "strict_greedy": OrderFact(_ACCEPTS_ARGMAX, _ARGMAX),
        "additive": OrderFact(
            And(equal(t, 0), _ACCEPTS_ARGMAX),
            f"at t = 0 only maxima are accepted; for t > 0 a flat target accepts everything, even zeros; {_ARGMAX}",
        ),
        "multiplicative": OrderFact(
            And(Gt(alpha, 0), Or(_ANY_POSITIVE, And(equal(floor_, 0), Lt(delta_, 1), Ge(alpha, delta_)))),
            "p_x >= alpha p_(1) >= delta exp(-H), both equalities only for a uniform target and delta = 1; many equal "
            "tokens and one at alpha p_(1) bring exp(-H) arbitrarily close to p_(1)",
        ),
        "top_m": OrderFact(And(equal(k, 1), _ACCEPTS_ARGMAX), f"{_ARGMAX}; for k > 1, {_ZEROS}"),
        "absolute": OrderFact(
            Or(
                Gt(tau, epsilon_),
                And(Gt(tau, delta_ * concentrated(tau, floor_)), Gt(epsilon_, delta_ * concentrated(epsilon_, floor_))),
            ),
            "a token of probability s has exp(-H_f) <= (s+f)^s (1-s+f)^(1-s), attained by two tokens, and ln s minus "
            "the logarithm of that is concave in s, so it suffices to look at s = tau and s = epsilon",
        ),
        "typical": OrderFact(
            Or(
                _ANY_POSITIVE,
                And(
                    equal(floor_, 0),
                    Le(delta_, delta),
                    Or(
                        Le(epsilon_, epsilon),
                        And(
                            Ge(epsilon, delta_ * concentrated(epsilon, Integer(0))), Or(Lt(epsilon_, 1), Lt(delta_, 1))
                        ),
                    ),
                ),
            ),
            "a lower threshold at every entropy; or epsilon so high that no token lies between the two thresholds",
        ),
        "mars": OrderFact(false, _ZEROS),
    },
)
