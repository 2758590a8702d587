"""Top-m: a token is accepted iff it is among the k most likely.

    accepts(x)  :<=>  rank of x <= k,    k = 1, 2, 3, ...

Exactly k tokens are accepted (all of them when the vocabulary has fewer), ties by lowest id; `top_m(1)` is strict
greedy. A token as likely as the k-th but of higher id is rejected, so C = 0 when the tie is with the largest.

Deployed together with a threshold: TensorRT-LLM's relaxed_topk, vLLM's proposed relax_top_k. torch.topk on a GPU does
not promise the lowest id among ties; the certificate assumes the order above.
"""

from sympy import Le, Or, Range, Rational, Symbol, log, oo

from ..formulas import HERE
from ..rule import OrderFact, Parameter, RuleFamily, WorkedPoint, equal, primed
from ..statistics import RANK

k = Symbol("k", integer=True, positive=True)

_ZEROS = "of a point mass a token of probability zero is accepted, which no threshold above 0 admits"

RULE = RuleFamily(
    name="top_m",
    parameters=(Parameter(k, Range(1, oo), "how many of the most likely tokens are accepted"),),
    accepts=Le(RANK, k),
    deployed_as="part of TensorRT-LLM's relaxed acceptance (relaxed_topk) and of vLLM's proposal (relax_top_k)",
    citation=HERE,
    worked_points=(
        WorkedPoint(("2",), ("1/3", "1/3", "1/3"), (0, 1), Rational(0), note="a tie: the third maximum is rejected"),
        WorkedPoint(
            ("2",),
            ("1/5", "2/5", "2/5"),
            (1, 2),
            Rational(4, 5) * log(Rational(6, 5)) + log(Rational(3, 5)) / 5,
            note="the accepted tokens are the most likely, not the first",
        ),
        WorkedPoint(
            ("2",),
            ("2/5", "7/20", "1/4"),
            (0, 1),
            Rational(2, 5) * log(Rational(6, 5)) + Rational(7, 20) * log(Rational(21, 20)) + log(Rational(3, 4)) / 4,
            note="trap (b): the other accepted token lies above the level and is moved too",
        ),
        WorkedPoint(("2",), ("1", "0", "0"), (0, 1), log(2), note="an accepted token of probability zero is not moved"),
        WorkedPoint(("5",), ("1/2", "1/2"), (0, 1), oo, note="fewer tokens than k: nothing is rejected"),
        WorkedPoint(
            ("1",),
            ("1/2", "9/20", "1/20"),
            (0,),
            log(Rational(20, 11)) / 2 + log(Rational(2, 11)) / 20,
            candidates=2,
            note="trap (a): the competitor 9/20 lies above the level 11/40 and is not moved",
        ),
    ),
    doc=__doc__,
    examples=(("2",), ("3",)),
    implies={
        "strict_greedy": OrderFact(equal(k, 1), "top_m(1) is strict greedy"),
        "additive": OrderFact(Or(equal(k, 1), equal(primed("t"), 1)), _ZEROS),
        "multiplicative": OrderFact(Or(equal(k, 1), equal(primed("alpha"), 0)), _ZEROS),
        "top_m": OrderFact(Le(k, primed("k")), "ranks up to k are ranks up to k'"),
        "absolute": OrderFact(equal(primed("tau"), 0), "a token of any uniform target is accepted, however small"),
        "mars": OrderFact(equal(k, 1), "mars may reject the second token"),
    },
)
