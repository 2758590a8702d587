"""The divergence itself: its two forms have the same sum."""

import sympy
from sympy import S, exp, log, oo

from ..formulas import KL, KL_OF_LOGS
from ..theorem import (
    Establishes,
    Range,
    Role,
    Rows,
    SumEqual,
    SumFact,
    SumProof,
    Theorem,
    TokenClass,
)
from .symbols import d, p, q

_ANY, _POSITIVE = Range(p, S.Zero, S.One), Range(p, S.Zero, S.One, open_below=True)


def _row(target: Range, own: Range, draft: sympy.Expr) -> Rows:
    token = TokenClass("vocabulary", Role.REJECTED, None, p, (target, own))
    return Rows((), (token,), (SumFact({"vocabulary": draft}, S.One),))


def _by_definition(row: Rows, draft: sympy.Expr, term: sympy.Expr) -> SumEqual:
    """The terms sum to KL(p||q), which is the sum of `p ln p - p ln q`."""
    return SumEqual(row, {"vocabulary": p * (log(p) - log(draft)) - term}, S.Zero, SumProof())


T0 = Theorem(
    name="T0",
    title="Divergence without cancellation",
    statement=(
        "KL(p||q) = sum p ln(p/q) = sum q h((p-q)/q) with Bennett's h >= 0: no term is negative. From d = ln(p/q) "
        "alone it is sum p (d + e^-d - 1) if every p is positive: where p = 0 < q, d does not tell q, and the sum "
        "falls short of KL by the mass of the draft there."
    ),
    hypotheses=("p and q have mass one", "in terms of d: p > 0 for every token"),
    derivation=(),
    conclusions=(
        _by_definition(_row(_ANY, Range(q, S.Zero, S.One), q), q, KL.expression),
        SumEqual(
            _row(_ANY, Range(q, S.Zero, S.One), q),
            {"vocabulary": KL.expression - KL.stable},
            S.Zero,
            SumProof(mass=S.One, facts=(-S.One,)),
        ),
        _by_definition(_row(_POSITIVE, Range(d, -oo, oo), p * exp(-d)), p * exp(-d), KL_OF_LOGS.expression),
        SumEqual(
            _row(_POSITIVE, Range(d, -oo, oo), p * exp(-d)),
            {"vocabulary": KL_OF_LOGS.expression - KL_OF_LOGS.stable},
            S.Zero,
            SumProof(mass=S.One, facts=(-S.One,)),
        ),
    ),
    establishes=(Establishes(KL), Establishes(KL_OF_LOGS)),
    citation=KL.citation,
    formal=("T0_no_cancellation",),
)
