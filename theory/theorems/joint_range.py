"""S4: rules that compare a divergence of target and draft with a threshold, certified by KL through its joint range."""

from sympy import Expr, S, log, oo, symbols

from ..theorem import (
    AtLeast,
    Equal,
    Evident,
    Growth,
    Range,
    Role,
    Rows,
    SumAtLeast,
    SumProof,
    Theorem,
    TokenClass,
)
from .evidence import NOTHING, above_log
from .symbols import p

_t, _r, _w, _k, _b = symbols("t r w k b", positive=True)
_RATIO = Range(_t, S.Zero, oo, open_below=True)


def _mixed(ratio: Expr) -> Expr:
    """`ln 2 (1 + t)/2` less half of this is what a token takes part in Jensen-Shannon, per target probability."""
    return (1 + ratio) * log(1 + ratio) - ratio * log(ratio)


_above_tangent = (_mixed(_t) - _mixed(_r) - _r * log((1 + _r) / _r) * log(_t / _r)) / 2
_slope = above_log(_r / (1 + _r)) * log(_t / _r) / 2
_pointed = (log(2 / (1 + _r)) + _r * log(2 * _r / (1 + _r)) + (1 - _r) * log(2)) / 2

S4 = Theorem(
    name="S4",
    title="Rules on divergences",
    statement=(
        "A rule that accepts where a divergence of target and draft is at most T (fuzzy speculative decoding) is "
        "certified by the least KL(p||q) at which it can exceed T. Where the divergence is a sum of p times a concave "
        "function of ln(q/p), plus a multiple of the mass of q, Jensen's inequality gives its largest value at "
        "KL(p||q) = D, attained where p is q without some of its tokens: q/p = e^-D on the others. So 1 - sum "
        "sqrt(p q) (squared Hellinger) is at most 1 - e^(-D/2), and Jensen-Shannon at most ln 2 + (r ln r - (1+r) "
        "ln(1+r))/2 with r = e^-D. Total variation is S2's. Reverse KL is infinite for such pairs, and D, which is at "
        "most b/(1-b) if b is the mass of the missing tokens, as small as one likes: no positive KL(p||q) certifies a "
        "rule on it."
    ),
    hypotheses=(
        "t = q/p of a token, r = e^-D",
        "squared Hellinger: sqrt(q/p) = k w with k = e^(-D/2)",
    ),
    derivation=(),
    conclusions=(
        AtLeast(
            _above_tangent,
            S.Zero,
            (_RATIO, Range(_r, S.Zero, _t, open_below=True)),
            Growth(_r, start=NOTHING, slope=Evident(_slope), from_above=True),
        ),
        AtLeast(
            _above_tangent,
            S.Zero,
            (_RATIO, Range(_r, _t, oo)),
            Growth(_r, start=NOTHING, slope=Evident(-_slope)),
        ),
        Equal(_pointed, log(2) - _mixed(_r) / 2, (Range(_r, S.Zero, S.One, open_below=True),)),
        SumAtLeast(
            Rows(
                (Range(_k, S.Zero, S.One, open_below=True),),
                (
                    TokenClass(
                        "vocabulary",
                        Role.REJECTED,
                        None,
                        p,
                        (Range(p, S.Zero, S.One), Range(_w, S.Zero, oo, open_below=True)),
                    ),
                ),
            ),
            {"vocabulary": p * _k * _w - p * _k * log(_k * _w)},
            _k - _k * log(_k),
            SumProof(mass=_k - _k * log(_k), slack={"vocabulary": Evident(p * _k * above_log(_w))}, rest=NOTHING),
        ),
        AtLeast(
            _b / (1 - _b),
            -log(1 - _b),
            (Range(_b, S.Zero, S.One, open_above=True),),
            Evident(above_log(1 / (1 - _b))),
        ),
    ),
    formal=("S4_jensen", "S4_joint_range", "S2_sharp"),
    citation="Holsman, Huang and Dhingra, arXiv 2502.20704; Harremoes and Vajda, IEEE Trans. Inf. Theory 57 (2011)",
)
