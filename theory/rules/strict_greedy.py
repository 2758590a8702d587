"""Strict greedy: the drafter's token is accepted iff it is the target's greedy token.

    accepts(x)  :<=>  x = argmax p, ties by lowest id        (rank 1)
    C = s phi(g / s),  s = p_(1) + p_(2),  g = p_(1) - p_(2)

Deployed by every temperature-0 decoder: transformers' assisted generation, SGLang, EAGLE and Medusa at T = 0, vLLM.
A second maximum is rejected, so C = 0 on a tie.
"""

from sympy import Le, Rational, log, oo, true

from ..rule import OrderFact, RuleFamily, WorkedPoint, equal, primed
from ..statistics import RANK

_ARGMAX = "the argmax has the largest probability and rank 1"

RULE = RuleFamily(
    name="strict_greedy",
    parameters=(),
    accepts=Le(RANK, 1),
    deployed_as="every temperature-0 decoder (transformers, vLLM, SGLang, TensorRT-LLM, EAGLE, Medusa)",
    citation="Sharma 2026, arXiv 2606.30265",
    worked_points=(
        WorkedPoint(
            (), ("3/5", "2/5"), (0,), Rational(3, 5) * log(Rational(6, 5)) + Rational(2, 5) * log(Rational(4, 5))
        ),
        WorkedPoint((), ("1/2", "1/4", "1/4"), (0,), log(Rational(4, 3)) / 2 + log(Rational(2, 3)) / 4),
        WorkedPoint((), ("1/2", "1/2"), (0,), Rational(0), note="a tie: the other maximum is rejected"),
        WorkedPoint((), ("0", "1"), (1,), log(2), note="a point mass: the ceiling for one candidate"),
        WorkedPoint((), ("1",), (0,), oo, note="nothing can be rejected"),
        WorkedPoint(
            (),
            ("1/2", "9/20", "1/20"),
            (0,),
            log(Rational(20, 11)) / 2 + log(Rational(2, 11)) / 20,
            candidates=2,
            note="trap (a): the competitor .45 lies above the level 11/40 and is not moved",
        ),
    ),
    doc=__doc__,
    examples=((),),
    implies={
        "strict_greedy": OrderFact(true, _ARGMAX),
        "additive": OrderFact(true, _ARGMAX),
        "multiplicative": OrderFact(true, _ARGMAX),
        "top_m": OrderFact(true, _ARGMAX),
        "absolute": OrderFact(equal(primed("tau"), 0), "the argmax of a uniform target is accepted, however small"),
        "mars": OrderFact(true, _ARGMAX),
    },
)
