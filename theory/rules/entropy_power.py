"""Entropy verification: a token is accepted iff it reaches a threshold that is a power of exp(-H).

    accepts(x)  :<=>  p(x) >= min(epsilon, exp(-alpha H_f)),    H_f = - sum p ln(p + f),   0 <= epsilon, alpha, f <= 1

The threshold falls with the entropy, for alpha < 1 more slowly than the probabilities of a flat target do: a uniform
target over V > 1/epsilon tokens accepts nothing, its argmax included. A token exactly on the threshold is accepted. At
alpha = 0 this is `absolute(epsilon)`.

Deployed by vllm-ascend's entropy verification with f = 1e-10, as what it accepts whatever is drafted and the coin; see
the preset `vllm_ascend_entropy`.
"""

from typing import cast

from sympy import And, Ge, Gt, Integer, Interval, Le, Lt, Min, Or, Rational, Symbol, exp, log, oo
from sympy.logic.boolalg import Boolean

from ..rule import OrderFact, Parameter, RuleFamily, WorkedPoint, equal, primed
from ..statistics import PROBABILITY, Entropy
from .absolute import RULE as ABSOLUTE
from .absolute import tau
from .additive import t
from .top_m import k
from .typical_floor import concentrated

epsilon = Symbol("epsilon", nonnegative=True)
alpha = Symbol("alpha", nonnegative=True)
floor = Symbol("floor", nonnegative=True)

epsilon_, delta_, floor_ = primed("epsilon"), primed("delta"), primed("floor")

_LEAST = Min(epsilon, floor**alpha)
_BOUNDED = "exp(-H_f) >= f, so an accepted token has at least min(epsilon, f^alpha)"
_ACCEPTS_ARGMAX = Or(equal(epsilon_, 0), And(equal(primed("alpha"), 1), equal(floor_, 0)))
_ARGMAX = (
    "exp(-H) <= p_(1), so the argmax reaches exp(-alpha H) at alpha = 1; below that, or with a floor, a uniform target "
    "over a large vocabulary rejects it"
)

RULE = RuleFamily(
    name="entropy_power",
    parameters=(
        Parameter(epsilon, Interval(0, 1), "largest value of the threshold"),
        Parameter(alpha, Interval(0, 1), "power of exp(-H_f) in the threshold"),
        Parameter(floor, Interval(0, 1), "constant added to every probability inside the logarithm"),
    ),
    accepts=Ge(PROBABILITY, Min(epsilon, exp(-alpha * Entropy(floor)))),
    deployed_as="vllm-ascend's entropy verification, floor 1e-10",
    citation="vllm-project/vllm-ascend, pull request 9772",
    worked_points=(
        WorkedPoint(
            ("1", "1/2", "0"),
            ("1/2", "1/8", "1/8", "1/8", "1/8"),
            (0,),
            log(Rational(8, 5)) / 2 + log(Rational(2, 5)) / 8,
            note="H = 2 ln 2: the threshold 1/2 lies exactly on the first token, which is accepted",
        ),
        WorkedPoint(
            ("1", "1", "0"),
            ("1/2", "1/2"),
            (0, 1),
            oo,
            note="at alpha = 1 a uniform target lies on its threshold: everything is accepted",
        ),
        WorkedPoint(
            ("1", "9/10", "0"), ("1/2", "1/2"), (), Integer(0), note="at alpha = 9/10 the threshold is 2^-0.9 > 1/2"
        ),
        WorkedPoint(
            ("3/10", "0", "0"),
            ("1/2", "3/10", "1/5"),
            (0, 1),
            log(Rational(10, 7)) / 2 + log(Rational(4, 7)) / 5,
            note="alpha = 0 is absolute(epsilon): the second token lies exactly on the threshold",
        ),
        WorkedPoint(
            ("1", "1/2", "1/2"),
            ("1/2", "1/2"),
            (),
            Integer(0),
            note="H_f = 0: the floor lifts the threshold to 1, which no token reaches",
        ),
        WorkedPoint(("1", "1", "1"), ("1", "0"), (0,), log(2), note="a point mass has H_f < 0, and epsilon = 1 binds"),
        WorkedPoint(("0", "1", "0"), ("1", "0"), (0, 1), oo, note="epsilon = 0 accepts tokens of probability zero"),
        WorkedPoint(
            ("9/20", "1", "0"),
            ("1/2", "9/20", "1/20"),
            (0, 1),
            log(Rational(3, 2)) / 2 + Rational(9, 20) * log(Rational(27, 20)) + log(Rational(3, 20)) / 20,
            note="trap (b): exp(-H) < 9/20 < 1/2, both accepted tokens lie above the level 1/3 and are moved",
        ),
        WorkedPoint(
            ("1/2", "2/5", "1/10000000000"),
            ("3/5", "19/50", "1/50"),
            (0,),
            Rational(3, 5) * log(Rational(60, 31)) + log(Rational(2, 31)) / 50,
            candidates=2,
            note="trap (a): epsilon binds and rejects the second token, which lies above the level 31/100 and stays",
        ),
    ),
    doc=__doc__,
    examples=(("19/20", "2/5", "1/10000000000"), ("3/5", "1", "0")),
    implies={
        **{
            wide: OrderFact(
                cast("Boolean", fact.holds.xreplace({tau: _LEAST})), f"{_BOUNDED}: {fact.reason}", necessary=False
            )
            for wide, fact in ABSOLUTE.implies.items()
        },
        "typical_floor": OrderFact(
            And(Lt(delta_, 1), Ge(floor, floor_), Or(Gt(epsilon, epsilon_), Gt(epsilon, delta_ * (1 + floor_)))),
            "exp(-alpha H_f) >= exp(-H_f') > delta exp(-H_f') where H_f' is not negative, as alpha <= 1; else the "
            "narrow threshold is epsilon, and exp(-H_f') <= 1 + f'",
            necessary=False,
        ),
        "entropy_power": OrderFact(
            Or(equal(epsilon_, 0), And(Ge(epsilon, epsilon_), Le(alpha, primed("alpha")), Ge(floor, floor_))),
            "the threshold rises in epsilon and the floor, and falls in alpha where it is below 1",
            necessary=False,
        ),
    },
    implied_by={
        "strict_greedy": OrderFact(_ACCEPTS_ARGMAX, _ARGMAX, necessary=False),
        "additive": OrderFact(
            Or(equal(epsilon_, 0), And(equal(t, 0), _ACCEPTS_ARGMAX)),
            f"at t = 0 only maxima are accepted; {_ARGMAX}",
            necessary=False,
        ),
        "top_m": OrderFact(Or(equal(epsilon_, 0), And(equal(k, 1), _ACCEPTS_ARGMAX)), _ARGMAX, necessary=False),
        "absolute": OrderFact(
            Or(
                Ge(tau, epsilon_),
                And(
                    Ge(tau, concentrated(tau, floor_) ** primed("alpha")),
                    Ge(epsilon_, concentrated(epsilon_, floor_) ** primed("alpha")),
                ),
            ),
            "a token of probability s has exp(-H_f) <= (s+f)^s (1-s+f)^(1-s), attained by two tokens, and ln s minus "
            "alpha times the logarithm of that is concave in s, so it suffices to look at s = tau and s = epsilon",
            necessary=False,
        ),
    },
)
