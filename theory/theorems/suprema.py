"""Suprema of relaxed rules over targets that can be rejected, when nothing can, and M3 with the first token known."""

from typing import Any

from sympy import Expr, Max, Rational, S, log, oo

from ..formulas import CEILING, PHI
from ..margins import ONE_AGAINST_MANY, SPIKE_ALONE, SPIKE_POOLED
from ..rules.absolute import RULE as ABSOLUTE
from ..rules.absolute import tau
from ..rules.additive import RULE as ADDITIVE
from ..rules.additive import t
from ..rules.mars import RULE as MARS
from ..rules.multiplicative import RULE as MULTIPLICATIVE
from ..rules.multiplicative import alpha
from ..rules.strict_greedy import RULE as STRICT_GREEDY
from ..rules.top_m import RULE as TOP_M
from ..rules.top_m import k
from ..theorem import (
    AtLeast,
    End,
    Establishes,
    Evident,
    Family,
    FamilyTokens,
    Growth,
    Infimum,
    OfRule,
    Range,
    Role,
    Rows,
    RuleBound,
    Step,
    SumAtLeast,
    SumProof,
    Supremum,
    Theorem,
    TokenClass,
    Witness,
    WorkedRow,
    both_ends,
)
from .evidence import NOTHING, weak_duality
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
_POSITIVE_FACTOR = Range(alpha, S.Zero, S.One, open_below=True)
_FINITE, _ANY_SIZE = Range(V, m + 1, oo, open_above=True), Range(V, oo, oo)
_all_but_few = (1 - alpha) / (1 + (V - m) * alpha)
"""Up to this margin all but m - 1 tokens may be accepted."""
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


_SPIKE_POOLED = Supremum(
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
)
_SPIKE_ALONE = Supremum(
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
)

TWO_ACCEPTED = (_SPIKE_POOLED, _SPIKE_ALONE)
"""All mass on two tokens, both accepted."""

MS = Theorem(
    name="MS",
    title="Suprema of relaxed rules",
    statement=(
        "Let a rule accept the second token too. Over all p with p_1 - p_2 = g that m candidates can reject, sup C is "
        "the certificate of ((1+g)/2, (1-g)/2, 0, ..., 0): ln(1 + m/2) + phi(g) for g <= m/(m+2), ((1+g)/2) ln(m+1) "
        "for larger g, attained. This is the supremum for additive(t) with g <= t, for multiplicative(alpha) with "
        "g <= (1-alpha)/(1+alpha), for top-m(k) with k >= 2 and for a threshold tau <= (1-g)/2; targets that cannot be "
        "rejected have C = inf. If the rule rejects the second token, M7 applies. mars(theta) leaves the ratio of "
        "logits free, so that on every target it may be strict greedy or top-m(2): its infimum is that of the first, "
        "its supremum that of the second."
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
        _SPIKE_POOLED,
        _SPIKE_ALONE,
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
    bounds=(
        RuleBound(TOP_M, End.SUPREMUM, TWO_ACCEPTED, (Range(k, S(2), oo), Range(V, m + k, oo))),
        RuleBound(
            MULTIPLICATIVE,
            End.SUPREMUM,
            TWO_ACCEPTED,
            (_POSITIVE_FACTOR, _FINITE, Range(g, _all_but_few, (1 - alpha) / (1 + alpha), open_below=True)),
        ),
        RuleBound(
            ABSOLUTE,
            End.SUPREMUM,
            TWO_ACCEPTED,
            (_FINITE, Range(g, S.Zero, 1 - 2 * tau), Range(g, 1 - (V - m + 1) * tau, S.One, open_below=True)),
        ),
        RuleBound(MARS, End.INFIMUM, OfRule(STRICT_GREEDY)),
        RuleBound(MARS, End.SUPREMUM, OfRule(TOP_M, (S(2),))),
    ),
    formal=("MS_upper_bounds", "MS_attained", "crowded_rows"),
)

# ---- nothing rejected ------------------------------------------------------------------------------------------

_OTHER = TokenClass("other", Role.REJECTED, None, p, (Range(p, S.Zero, S.One),))
_TOKENS = Range(N, S(2), oo, integer=True)
_equal = (1 - g) / N
_all_accepted = (1 - alpha) / (1 + (N - 1) * alpha)
_second_mass = Range(b, tau, S.One)
_NO_OTHER = Range(V, m + 1, m + 1)
"""All tokens but the first would have to be competitors."""

MI = Theorem(
    name="MI",
    title="When no distribution is rejected",
    statement=(
        "C = inf where fewer than m tokens are rejected. additive(t): for every p with g <= 2t - 1; for some p, such "
        "as ((1+g)/2, (1-g)/2), if g <= t. multiplicative(alpha): p = (g + b, b, ..., b) of N tokens is accepted "
        "whole if g <= (1-alpha)/(1 + (N-1) alpha), and only then are N tokens accepted; threshold tau: if g + N tau "
        "<= 1, and only then. So over any vocabulary sup C = inf for g <= t, g <= (1-alpha)/(1+alpha), g + 2 tau <= 1, "
        "and in V tokens with m candidates where N = V - m + 1 tokens can be accepted, which additive(t) does for all "
        "g <= t. In V = m + 1 tokens every p has C = inf unless all but the first can be rejected: for additive(t) if "
        "g <= t, for multiplicative(alpha) if g <= (1-alpha)/(1 + m alpha), for tau if g + V tau <= 1. So it has for "
        "top-m(k) in fewer than m + k tokens, and where all tokens are accepted: alpha = 0, tau = 0."
    ),
    hypotheses=("p_1 - p_2 = g", "p_1 + p_2 <= 1"),
    derivation=(),
    conclusions=(
        AtLeast(
            t,
            top,
            (
                Range(top, S.Zero, S.One, open_below=True),
                Range(g, Max(S.Zero, 2 * top - 1), S.One),
                Range(t, (1 + g) / 2, oo),
            ),
            Evident((t - (1 + g) / 2) + (g - 2 * top + 1) / 2),
        ),
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
        AtLeast(
            g,
            (1 - alpha) / (1 + m * alpha),
            (_CANDIDATES, _FACTOR, Range(top, 1 / (1 + m * alpha), S.One), Range(g, (1 - alpha) * top, S.One)),
            Evident((g - (1 - alpha) * top) + (1 - alpha) * (top - 1 / (1 + m * alpha))),
        ),
        AtLeast(
            g + (m + 1) * tau,
            S.One,
            (
                _CANDIDATES,
                Range(tau, S.Zero, S.One, open_below=True),
                Range(top, Max(tau, 1 - m * tau), S.One),
                Range(g, top - tau, S.One),
            ),
            Evident((g - top + tau) + (top - 1 + m * tau)),
        ),
    ),
    bounds=(
        RuleBound(ADDITIVE, End.INFIMUM, oo, (Range(g, S.Zero, 2 * t - 1),)),
        RuleBound(ADDITIVE, End.INFIMUM, oo, (_NO_OTHER, Range(g, S.Zero, t))),
        RuleBound(ADDITIVE, End.SUPREMUM, oo, (Range(g, S.Zero, t),)),
        *both_ends(MULTIPLICATIVE, oo, (Range(alpha, S.Zero, S.Zero),)),
        RuleBound(
            MULTIPLICATIVE,
            End.INFIMUM,
            oo,
            (_POSITIVE_FACTOR, _NO_OTHER, Range(g, S.Zero, (1 - alpha) / (1 + m * alpha))),
        ),
        RuleBound(
            MULTIPLICATIVE,
            End.SUPREMUM,
            oo,
            (_POSITIVE_FACTOR, _ANY_SIZE, Range(g, S.Zero, (1 - alpha) / (1 + alpha))),
        ),
        RuleBound(MULTIPLICATIVE, End.SUPREMUM, oo, (_POSITIVE_FACTOR, _FINITE, Range(g, S.Zero, _all_but_few))),
        *both_ends(ABSOLUTE, oo, (Range(tau, S.Zero, S.Zero),)),
        RuleBound(ABSOLUTE, End.INFIMUM, oo, (_NO_OTHER, Range(g, S.Zero, 1 - V * tau))),
        RuleBound(ABSOLUTE, End.SUPREMUM, oo, (_ANY_SIZE, Range(g, S.Zero, 1 - 2 * tau))),
        RuleBound(ABSOLUTE, End.SUPREMUM, oo, (_FINITE, Range(g, S.Zero, 1 - (V - m + 1) * tau))),
        *both_ends(TOP_M, oo, (Range(V, m + 1, m + k - 1),)),
    ),
    formal=("certificate_exists", "MI_all_accepted"),
)

# ---- M3, the first token known ---------------------------------------------------------------------------------

_MANY = Range(N, S.One, oo, integer=True)
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
_dust = (1 - top * (1 + m * alpha)) / N
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
                    FamilyTokens("other", _dust, N, False),
                ),
                limit=N,
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
                    FamilyTokens("competitor", (1 - top) / (N + m), m, True),
                    FamilyTokens("other", (1 - top) / (N + m), N, False),
                ),
                limit=N,
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
    formal=(
        "M3_candidates",
        "M3p_sharp",
        "M3p_approached",
        "M3p_one_candidate",
        "M7_lower_bound",
        "M7_sharp",
        "first_alone",
        "M3p_supremum",
        "T4_ceiling",
    ),
)
