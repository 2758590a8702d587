"""The divergence itself: its two forms have the same sum."""

import sympy
from sympy import S, exp, log, oo

from ..formulas import KL, KL_OF_LOGS
from ..theorem import Equal, Establishes, Range, Role, Rows, SumEqual, SumFact, SumProof, Theorem, TokenClass
from .symbols import d, p, q


def _row(own: Range, draft: sympy.Expr) -> Rows:
    token = TokenClass("vocabulary", Role.REJECTED, None, p, (Range(p, S.Zero, S.One), own))
    return Rows((), (token,), (SumFact({"vocabulary": draft}, S.One),))


T0 = Theorem(
    name="T0",
    title="Divergence without cancellation",
    statement=(
        "KL(p||q) = sum p ln(p/q) = sum q h((p-q)/q) with Bennett's h >= 0: no term is negative. From d = ln(p/q) "
        "alone it is sum p (d + e^-d - 1)."
    ),
    hypotheses=("p and q have mass one",),
    derivation=(),
    conclusions=(
        Equal(
            KL.expression,
            p * log(p) - p * log(q),
            (Range(p, S.Zero, S.One), Range(q, S.Zero, S.One, open_below=True)),
        ),
        SumEqual(
            _row(Range(q, S.Zero, S.One), q),
            {"vocabulary": KL.expression - KL.stable},
            S.Zero,
            SumProof(mass=S.One, facts=(-S.One,)),
        ),
        Equal(
            KL.expression.subs(q, p * exp(-d)),
            KL_OF_LOGS.expression,
            (Range(p, S.Zero, S.One, open_below=True), Range(d, -oo, oo)),
        ),
        SumEqual(
            _row(Range(d, -oo, oo), p * exp(-d)),
            {"vocabulary": KL_OF_LOGS.expression - KL_OF_LOGS.stable},
            S.Zero,
            SumProof(mass=S.One, facts=(-S.One,)),
        ),
    ),
    establishes=(Establishes(KL), Establishes(KL_OF_LOGS)),
    citation=KL.citation,
)
