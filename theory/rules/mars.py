"""MARS: the most likely token, or the second if its raw logit is more than theta of the largest.

    accepts(x)  :<=>  rank of x = 1,  or  rank of x = 2 and z_(2)/z_(1) > theta,    0 <= theta <= 1

The ratio of raw logits is not invariant under a shift of the logits: for any p_(1) > p_(2) and any ratio below 1 there
are logits with both, so the probabilities do not determine the accepted set and the ratio must be given. Where
z_(1) <= 0 the rule loses its meaning, and it is stated here exactly as written: for z_(1) < 0 the ratio is at least 1
and the second token is accepted, the more surely the less likely it is; for z_(1) = 0 > z_(2) the ratio is -oo and for
z_(1) = z_(2) = 0 it is undefined: the second token is rejected in both. For z_(1) > 0 >= z_(2) it is rejected as well.
At a tie with z_(1) > 0 the ratio is 1: both maxima are accepted unless theta = 1. The inequality is strict.

Published as MARS (margin-aware speculative verification), theta = 0.9.
"""

from sympy import And, Ge, Gt, Interval, Le, Or, Rational, Symbol, false, log, oo

from ..rule import OrderFact, Parameter, RuleFamily, WorkedPoint, equal, primed
from ..statistics import LOGIT_RATIO, RANK

theta = Symbol("theta", nonnegative=True)

_SECOND = "with z_(1) < 0 the second token is accepted whatever its probability"

RULE = RuleFamily(
    name="mars",
    parameters=(Parameter(theta, Interval(0, 1), "least ratio of the second raw logit to the largest, exclusive"),),
    accepts=Or(Le(RANK, 1), And(Le(RANK, 2), Gt(LOGIT_RATIO, theta))),
    deployed_as="MARS, margin-aware verification",
    citation="Song et al. 2026, arXiv 2601.15498",
    worked_points=(
        WorkedPoint(
            ("9/10",),
            ("2/5", "7/20", "1/4"),
            (0, 1),
            Rational(2, 5) * log(Rational(6, 5)) + Rational(7, 20) * log(Rational(21, 20)) + log(Rational(3, 4)) / 4,
            logit_ratio="19/20",
            note="trap (b): the accepted second token lies above the level and is moved too",
        ),
        WorkedPoint(
            ("9/10",),
            ("2/5", "7/20", "1/4"),
            (0,),
            Rational(2, 5) * log(Rational(16, 15)) + Rational(7, 20) * log(Rational(14, 15)),
            logit_ratio="9/10",
            note="the same target, its logits shifted: the ratio lies exactly on theta, and strictness rejects",
        ),
        WorkedPoint(("9/10",), ("1/2", "1/2"), (0, 1), oo, logit_ratio="1", note="a tie: both maxima are accepted"),
        WorkedPoint(
            ("0",),
            ("3/4", "1/4"),
            (0,),
            Rational(3, 4) * log(Rational(3, 2)) + log(Rational(1, 2)) / 4,
            logit_ratio="-1",
            note="z = (ln 3 / 2, -ln 3 / 2): a negative second logit is rejected even at theta = 0",
        ),
        WorkedPoint(
            ("9/10",),
            ("3/4", "1/4"),
            (0, 1),
            oo,
            logit_ratio="2",
            note="z = (-ln 3, -2 ln 3): with z_(1) < 0 the second token is accepted however unlikely",
        ),
        WorkedPoint(
            ("9/10",),
            ("1/2", "9/20", "1/20"),
            (0,),
            log(Rational(20, 11)) / 2 + log(Rational(2, 11)) / 20,
            candidates=2,
            logit_ratio="9/10",
            note="trap (a): the competitor 9/20 lies above the level 11/40 and stays",
        ),
    ),
    doc=__doc__,
    examples=(("9/10",),),
    implies={
        "strict_greedy": OrderFact(false, _SECOND),
        "additive": OrderFact(equal(primed("t"), 1), _SECOND),
        "multiplicative": OrderFact(equal(primed("alpha"), 0), _SECOND),
        "top_m": OrderFact(Ge(primed("k"), 2), "at most two tokens are accepted"),
        "absolute": OrderFact(equal(primed("tau"), 0), "a token of any uniform target is accepted, however small"),
        "mars": OrderFact(Ge(theta, primed("theta")), "a higher ratio is asked for"),
    },
)
