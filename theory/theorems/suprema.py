"""Suprema of relaxed rules over targets that can be rejected, when nothing can, and M3 with the first token known."""

from typing import Any

from sympy import Expr, Max, Rational, S, log, oo

from ..formulas import CEILING, PHI
from ..margins import ONE_AGAINST_MANY, SPIKE_ALONE, SPIKE_POOLED
from ..margins import t as additive
from ..theorem import (
    AtLeast,
    Equal,
    Establishes,
    Evident,
    Family,
    FamilyTokens,
    Growth,
    Infimum,
    Range,
    Role,
    Rows,
    Step,
    SumAtLeast,
    SumProof,
    Supremum,
    Theorem,
    TokenClass,
    Witness,
    WorkedRow,
)
from .evidence import NOTHING, weak_duality
from .margins import alpha, tau
from .symbols import N, V, b, g, m, p, top, x

_CANDIDATES = Range(m, S.One, oo, integer=True)
_MARGIN = Range(g, S.Zero, S.One)
_FACTOR = Range(alpha, S.Zero, S.One, open_below=True, open_above=True)
_FIRST = TokenClass("first", Role.ACCEPTED, S.One, top)


def _rest(largest_accepted: Expr) -> tuple[TokenClass, ...]:
    return (
        TokenClass("accepted", Role.ACCEPTED, None, p, (Range(p, S.Zero, largest_accepted),)),
        TokenClass("competitor", Role.COMPETITOR, m, p, (Range(p, S.Zero, S.One),)),
        TokenClass("other", Role.REJECTED, None, p, (Range(p, S.Zero, S.One),)),
    )


# ---- suprema ---------------------------------------------------------------------------------------------------

_SMALL_MARGIN, _LARGE_MARGIN = Range(g, S.Zero, m / (m + 2)), Range(g, m / (m + 2), S.One)
_half, _second = (1 + g) / 2, (1 - g) / 2
_POOLED = Rows((_CANDIDATES, _SMALL_MARGIN, Range(top, S.Half, _half)), (_FIRST, *_rest(1 - top)))
_ALONE = Rows((_CANDIDATES, _LARGE_MARGIN, Range(top, S.Zero, _half)), (_FIRST, *_rest(top - g)))
_level = 1 / (m + 2)
_scale = _level / (1 - top)
_share = top / (m + 1)


def _spike(margin: Range, pooled: bool) -> Family:
    return Family(
        (_CANDIDATES, margin),
        {m: m, g: g, top: _half},
        (
            FamilyTokens("first", _half, S.One, True),
            FamilyTokens("accepted", _second, S.One, pooled),
            FamilyTokens("competitor", S.Zero, m, True),
        ),
    )


MS = Theorem(
    name="MS",
    title="Suprema of relaxed rules",
    statement=(
        "Let a rule accept the second token too. Over all p with p_1 - p_2 = g that m candidates can reject, sup C is "
        "the certificate of ((1+g)/2, (1-g)/2, 0, ..., 0): ln(1 + m/2) + phi(g) for g <= m/(m+2), ((1+g)/2) ln(m+1) "
        "for larger g, attained. This is the supremum for additive(t) with g <= t, for multiplicative(alpha) with "
        "g <= (1-alpha)/(1+alpha), for top-m(k) with k >= 2 and for a threshold tau <= (1-g)/2; targets that cannot be "
        "rejected have C = inf. If the rule rejects the second token, M7 applies."
    ),
    hypotheses=("m competitors exist: V >= m + 2", "p_1 <= (1+g)/2, since p_1 + p_2 <= 1"),
    derivation=(
        Step(
            "Where p_1 <= 1/2 the ceiling of T4 lies below this value.",
            AtLeast(
                SPIKE_POOLED.expression,
                CEILING.expression,
                (_CANDIDATES, _MARGIN, Range(top, S.Zero, S.Half, open_below=True)),
                Evident(PHI.stable.xreplace({x: g}) + log((m + 2) / (2 + 2 * m * top))),
            ),
            "ln(1 + m p_1) <= ln(1 + m/2), and phi >= 0",
        ),
    ),
    conclusions=(
        Supremum(
            _POOLED,
            SPIKE_POOLED.expression,
            Witness(
                draft={
                    "first": _level,
                    "accepted": _scale * p,
                    "competitor": _level + _scale * p,
                    "other": _scale * p,
                },
                threshold=_level,
                mass=SumProof(mass=_scale, constants={"first": _level - _scale * top, "competitor": _level}),
                divergence=SumProof(
                    mass=log(_scale),
                    constants={"first": -top * log(top / (1 - top))},
                    slack={
                        "first": NOTHING,
                        "accepted": NOTHING,
                        "other": NOTHING,
                        "competitor": Evident(p * log(1 + (1 - top) / p)),
                    },
                    rest=Growth(top, start=NOTHING, slope=Evident(log(top / (1 - top))), from_above=True),
                ),
            ),
            _spike(_SMALL_MARGIN, pooled=True),
        ),
        Supremum(
            _ALONE,
            SPIKE_ALONE.expression,
            Witness(
                draft={"first": _share, "accepted": p, "competitor": p + _share, "other": p},
                threshold=_share,
                mass=SumProof(mass=S.One, constants={"first": _share - top, "competitor": _share}),
                divergence=SumProof(
                    constants={"first": -top * log(m + 1)},
                    slack={
                        "first": NOTHING,
                        "accepted": NOTHING,
                        "other": NOTHING,
                        "competitor": Evident(p * log(1 + _share / p)),
                    },
                    rest=Evident((_half - top) * log(m + 1)),
                ),
            ),
            _spike(_LARGE_MARGIN, pooled=False),
        ),
    ),
    worked_points=(
        WorkedRow(
            ("3/5", "2/5", "0"),
            2,
            1,
            log(Rational(3, 2)) + Rational(3, 5) * log(Rational(6, 5)) + Rational(2, 5) * log(Rational(4, 5)),
            "g = 1/5, m = 1: both accepted tokens are pooled",
        ),
        WorkedRow(("3/4", "1/4", "0"), 2, 1, Rational(3, 4) * log(2), "g = 1/2, m = 1: the first alone"),
    ),
    establishes=(Establishes(SPIKE_POOLED), Establishes(SPIKE_ALONE)),
)

# ---- nothing rejected ------------------------------------------------------------------------------------------

_OTHER = TokenClass("other", Role.REJECTED, None, p, (Range(p, S.Zero, S.One),))
_TOKENS = Range(N, S(2), oo, integer=True)
_equal = (1 - g) / N
_all_accepted = (1 - alpha) / (1 + (N - 1) * alpha)
_second_mass = Range(b, tau, S.One)

MI = Theorem(
    name="MI",
    title="When no distribution is rejected",
    statement=(
        "C = inf where fewer than m tokens are rejected. additive(t): for every p with g <= 2t - 1; for some p, such "
        "as ((1+g)/2, (1-g)/2), if g <= t. multiplicative(alpha): p = (g + b, b, ..., b) of N tokens is accepted "
        "whole if g <= (1-alpha)/(1 + (N-1) alpha), and only then are N tokens accepted; threshold tau: if g + N tau "
        "<= 1, and only then. So over any vocabulary sup C = inf for g <= t, g <= (1-alpha)/(1+alpha), g + 2 tau <= 1, "
        "and in V tokens with m candidates where N = V - m + 1 tokens can be accepted."
    ),
    hypotheses=("p_1 - p_2 = g", "p_1 + p_2 <= 1"),
    derivation=(),
    conclusions=(
        AtLeast(
            additive,
            top,
            (
                Range(top, S.Zero, S.One, open_below=True),
                Range(g, Max(S.Zero, 2 * top - 1), S.One),
                Range(additive, (1 + g) / 2, oo),
            ),
            Evident((additive - (1 + g) / 2) + (g - 2 * top + 1) / 2),
        ),
        Equal((1 - g) / 2, (1 + g) / 2 - g, (_MARGIN,)),
        AtLeast(
            _equal,
            alpha * (g + _equal),
            (_FACTOR, _TOKENS, Range(g, S.Zero, _all_accepted)),
            Evident((1 + (N - 1) * alpha) * (_all_accepted - g) / N),
        ),
        AtLeast(
            _all_accepted,
            g,
            (
                _FACTOR,
                _TOKENS,
                Range(top, S.Zero, 1 / (1 + (N - 1) * alpha), open_below=True),
                Range(g, S.Zero, (1 - alpha) * top),
            ),
            Evident((1 - alpha) * (1 / (1 + (N - 1) * alpha) - top) + ((1 - alpha) * top - g)),
        ),
        SumAtLeast(
            Rows(
                (_TOKENS, _MARGIN, Range(tau, S.Zero, S.One, open_below=True), _second_mass),
                (
                    TokenClass("first", Role.REJECTED, S.One, g + b),
                    TokenClass("accepted", Role.REJECTED, N - 1, p, (Range(p, tau, S.One),)),
                    TokenClass("other", Role.REJECTED, None, p, (Range(p, S.Zero, S.One),)),
                ),
            ),
            {},
            g + N * tau - 1,
            SumProof(
                mass=-S.One,
                constants={"first": g + tau, "accepted": tau},
                slack={"first": Evident(b - tau), "accepted": Evident(p - tau)},
                rest=NOTHING,
            ),
        ),
    ),
)

# ---- M3, the first token known ---------------------------------------------------------------------------------

_MANY = Range(V, S.One, oo, integer=True)
_KNOWN_TOP = Range(top, S.Zero, 1 / (1 + m * alpha), open_below=True)
_TWO_LEFT = Range(top, 1 / (1 + alpha), S.One)
_MULTIPLICATIVE = Rows(
    (_CANDIDATES, _FACTOR, _KNOWN_TOP),
    (_FIRST, TokenClass("competitor", Role.COMPETITOR, m, p, (Range(p, S.Zero, alpha * top),)), _OTHER),
)
_LARGE_TOP = Range(top, S.Half, S.One)
_ONLY_FIRST = Rows(
    (_CANDIDATES, _LARGE_TOP),
    (_FIRST, TokenClass("competitor", Role.COMPETITOR, m, p, (Range(p, S.Zero, S.One),)), _OTHER),
)
_STRICT = Rows(
    (_LARGE_TOP,),
    (_FIRST, TokenClass("competitor", Role.COMPETITOR, S.One, p, (Range(p, S.Zero, 1 - top),)), _OTHER),
)
_up, _down = (m + 1) / (1 + m * alpha), alpha * (m + 1) / (1 + m * alpha)
_dust = (1 - top * (1 + m * alpha)) / V
_value: Any = ONE_AGAINST_MANY.expression.xreplace({g: (1 - alpha) * top, b: alpha * top})

M3_TOP = Theorem(
    name="M3p",
    title="Multiplicative(alpha), first token known",
    statement=(
        "Over all p with given p_1 <= 1/(1 + m alpha), inf C for multiplicative(alpha) is the certificate of p_1 "
        "against m competitors at alpha p_1; for m = 1 it is (1+alpha) p_1 phi((1-alpha)/(1+alpha)). Approached by "
        "competitors at alpha p_1, which themselves are accepted, and dust. For p_1 > 1/(1+alpha) the second token is "
        "always rejected and, for one candidate, inf C = phi(2 p_1 - 1), attained at (p_1, 1 - p_1); for m candidates "
        "sup C = p_1 ln(m+1), approached as the rest is spread over ever more tokens. For smaller p_1 no certificate "
        "of a target that can be rejected exceeds T4's ln(1 + m p_1), which is attained where 1/p_1 is a whole "
        "number, and valid, not sharp, elsewhere. The infimum in V tokens is M3pv."
    ),
    hypotheses=("every rejected token is below alpha p_1", "any vocabulary"),
    derivation=(),
    conclusions=(
        Infimum(
            _MULTIPLICATIVE,
            _value,
            weak_duality(
                _MULTIPLICATIVE,
                {"first": _up, "competitor": _down},
                S.One,
                anchors={"competitor": alpha * top},
            ),
            Family(
                (_CANDIDATES, _FACTOR, _KNOWN_TOP, _MANY),
                {m: m, alpha: alpha, top: top},
                (
                    FamilyTokens("first", top, S.One, True),
                    FamilyTokens("competitor", alpha * top, m, True),
                    FamilyTokens("other", _dust, V, False),
                ),
                limit=V,
            ),
        ),
        Infimum(
            _STRICT,
            top * log(2 * top) + (1 - top) * log(2 * (1 - top)),
            weak_duality(
                _STRICT,
                {"first": 2 * top, "competitor": 2 * (1 - top)},
                S.One,
                anchors={"competitor": 1 - top},
            ),
            Family(
                _STRICT.parameters,
                {top: top},
                (FamilyTokens("first", top, S.One, True), FamilyTokens("competitor", 1 - top, S.One, True)),
            ),
        ),
        Supremum(
            _ONLY_FIRST,
            top * log(m + 1),
            Witness(
                draft={"first": _share, "competitor": p + _share, "other": p},
                threshold=_share,
                mass=SumProof(mass=S.One, constants={"first": _share - top, "competitor": _share}),
                divergence=SumProof(
                    constants={"first": -top * log(m + 1)},
                    slack={"first": NOTHING, "other": NOTHING, "competitor": Evident(p * log(1 + _share / p))},
                    rest=NOTHING,
                ),
            ),
            Family(
                (_CANDIDATES, _LARGE_TOP, _MANY),
                {m: m, top: top},
                (
                    FamilyTokens("first", top, S.One, True),
                    FamilyTokens("competitor", (1 - top) / (V + m), m, True),
                    FamilyTokens("other", (1 - top) / (V + m), V, False),
                ),
                limit=V,
            ),
        ),
        AtLeast(alpha * top, 1 - top, (_FACTOR, _TWO_LEFT), Evident((1 + alpha) * (top - 1 / (1 + alpha)))),
    ),
    worked_points=(
        WorkedRow(
            ("3/4", "1/4"),
            1,
            1,
            Rational(3, 4) * log(Rational(3, 2)) + log(Rational(1, 2)) / 4,
            "p_1 = 3/4 > 1/(1+alpha) for alpha = 1/2: phi(1/2)",
        ),
    ),
    establishes=(Establishes(ONE_AGAINST_MANY, {g: (1 - alpha) * top, b: alpha * top}),),
)
