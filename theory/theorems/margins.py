"""M2 additive, M3 multiplicative, M4 top-m, M5 known threshold: sharp lower bounds from the margin, m candidates."""

from typing import Any

from sympy import Expr, Max, Min, Rational, S, diff, log, oo, symbols

from ..functions import Bennett
from ..margins import ADDITIVE_NEAR, ONE_AGAINST_MANY
from ..rules.absolute import RULE as ABSOLUTE
from ..rules.absolute import tau
from ..rules.additive import RULE as ADDITIVE
from ..rules.additive import t
from ..rules.multiplicative import RULE as MULTIPLICATIVE
from ..rules.multiplicative import alpha
from ..rules.strict_greedy import RULE as STRICT_GREEDY
from ..rules.top_m import RULE as TOP_M
from ..rules.top_m import k
from ..rules.typical import RULE as TYPICAL
from ..rules.typical import delta, epsilon
from ..theorem import (
    Accepts,
    AtLeast,
    End,
    Equal,
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
    SumAtLeast,
    SumProof,
    Theorem,
    TokenClass,
    WorkedRow,
    both_ends,
)
from .evidence import NOTHING, above_log, weak_duality
from .strict_greedy import M1_INFIMUM
from .suprema import TWO_ACCEPTED
from .symbols import N, V, b, g, m, p, top
from .trees import M7_INFIMUM

_ROOM = Range(V, m + 2, oo)
"""There is a token besides the first and the competitors."""
least = symbols("x", nonnegative=True)
"""No competitor exceeds it, and no accepted token is below it."""

_CANDIDATES = Range(m, S.One, oo, integer=True)
_MARGIN = Range(g, S.Zero, S.One)
_MANY = Range(N, S.One, oo, integer=True)
_OTHERS = TokenClass("other", Role.REJECTED, None, p, (Range(p, S.Zero, S.One),))
_FIRST = TokenClass("first", Role.ACCEPTED, S.One, top)


def _competitors(largest: Expr) -> TokenClass:
    return TokenClass("competitor", Role.COMPETITOR, m, p, (Range(p, S.Zero, largest),))


def _bound(margin: Expr, low: Expr) -> Any:
    """The value of one token `margin` above m competitors at `low`."""
    return ONE_AGAINST_MANY.expression.xreplace({g: margin, b: low})


def _ratios(margin: Expr, low: Expr) -> tuple[Expr, Expr]:
    """Ratios p/c of that pair, first and competitor; weighted, they average to one."""
    mass = margin + (m + 1) * low
    return 1 + m * margin / mass, 1 - margin / mass


# ---- M4 --------------------------------------------------------------------------------------------------------

_low = (1 - g) / (m + k)
_up, _down = _ratios(g, _low)
_spare = (above_log(_up) + m * above_log(_down)) / (m + k)
_mass = 1 + (log(_up) + m * log(_down)) / (m + k)
_TOP_M = Rows(
    parameters=(
        _CANDIDATES,
        Range(k, S.One, oo, integer=True),
        _MARGIN,
        Range(least, S.Zero, S.One),
        Range(top, least + g, S.One),
    ),
    classes=(
        _FIRST,
        TokenClass("accepted", Role.ACCEPTED, k - 1, p, (Range(p, least, S.One),)),
        _competitors(least),
        _OTHERS,
    ),
)

_TOP_M_LEAST = Infimum(
    _TOP_M,
    _bound(g, _low),
    weak_duality(
        _TOP_M,
        {"first": _up, "competitor": _down},
        _mass,
        slopes={"accepted": _spare, "other": _spare},
        anchors={"accepted": least, "competitor": least},
        shown={
            "competitor": (log(_up) + k * log(1 / _down)) / (m + k) * (least - p),
        },
        rest=Evident((log(_up) + _spare) * (top - least - g)),
    ),
    Family(
        (_CANDIDATES, Range(k, S.One, oo, integer=True), _MARGIN),
        {m: m, k: k, g: g, least: _low, top: g + _low},
        (
            FamilyTokens("first", g + _low, S.One, True),
            FamilyTokens("accepted", _low, k - 1, False),
            FamilyTokens("competitor", _low, m, True),
        ),
    ),
)

M4 = Theorem(
    name="M4",
    title="Top-m(k), margin to the second token",
    statement=(
        "Over all p with p_1 - p_2 = g, if exactly the k most likely tokens are accepted, inf C is the certificate of "
        "one token g above m competitors at (1-g)/(m+k), attained. k = 1 is M7. Supremum: MS for k >= 2."
    ),
    hypotheses=("k accepted tokens, m candidates", "no rejected token exceeds an accepted one", "g = p_1 - p_2"),
    derivation=(),
    conclusions=(_TOP_M_LEAST,),
    worked_points=(
        WorkedRow(
            ("1/2", "1/4", "1/4"), 2, 1, log(Rational(4, 3)) / 2 + log(Rational(2, 3)) / 4, "k = 2, g = 1/4: attained"
        ),
    ),
    establishes=(Establishes(ONE_AGAINST_MANY, {b: _low}),),
    bounds=(RuleBound(TOP_M, End.INFIMUM, (_TOP_M_LEAST,), (Range(V, m + k, oo),)),),
    formal=("M4_candidates", "M4_candidates_sharp"),
)

# ---- M5 --------------------------------------------------------------------------------------------------------

_up, _down = _ratios(g, tau)
_spare = above_log(_up) + m * above_log(_down)
_THRESHOLD = Range(tau, S.Zero, (1 - g) / (m + 1), open_below=True)
_KNOWN_THRESHOLD = Rows(
    parameters=(_CANDIDATES, _MARGIN, _THRESHOLD, Range(least, S.Zero, tau), Range(top, least + g, S.One)),
    classes=(_FIRST, _competitors(least), _OTHERS),
)
_dust = (1 - g - (m + 1) * tau) / N

_FIRST_ACCEPTED = Range(tau, S.Zero, g + (1 - g) / V, open_below=True)
_THRESHOLD_LEAST = Infimum(
    _KNOWN_THRESHOLD,
    _bound(g, tau),
    weak_duality(
        _KNOWN_THRESHOLD,
        {"first": _up, "competitor": _down},
        S.One,
        anchors={"competitor": least},
        rest=Evident(log(_up) * (top - least - g) + _spare * (tau - least)),
    ),
    Family(
        (_CANDIDATES, _MARGIN, _THRESHOLD, _MANY),
        {m: m, g: g, tau: tau, least: tau, top: g + tau},
        (
            FamilyTokens("first", g + tau, S.One, True),
            FamilyTokens("competitor", tau, m, True),
            FamilyTokens("other", _dust, N, False),
        ),
        limit=N,
    ),
)

M5 = Theorem(
    name="M5",
    title="Known threshold, margin to the second token",
    statement=(
        "If a rule accepts the most likely token and rejects every token below tau, then over all p with p_1 - p_2 = "
        "g inf C is the certificate of one token g above m competitors at min(tau, (1-g)/(m+1)). With tau the "
        "smaller: attained by (g + tau, tau, ..., tau, dust) when p = tau is rejected, approached otherwise. Else it "
        "is M7. A rule that rejects the most likely token, p_1 < tau, accepts nothing and has C = 0. In V tokens the "
        "dust needs g + V tau >= 1; else M5v. Suprema: MS, MI."
    ),
    hypotheses=("the most likely token is accepted", "no competitor exceeds tau or p_1 - g", "g + (m+1) tau <= 1"),
    derivation=(),
    conclusions=(_THRESHOLD_LEAST,),
    worked_points=(
        WorkedRow(
            ("1/2", "1/4", "1/8", "1/8"),
            1,
            1,
            log(Rational(4, 3)) / 2 + log(Rational(2, 3)) / 4,
            "tau = g = 1/4",
        ),
    ),
    establishes=(Establishes(ONE_AGAINST_MANY, {b: tau}),),
    bounds=(
        RuleBound(ABSOLUTE, End.INFIMUM, S.Zero, (Range(tau, g + (1 - g) / V, S.One, open_below=True),)),
        RuleBound(
            ABSOLUTE,
            End.INFIMUM,
            (M7_INFIMUM,),
            (_FIRST_ACCEPTED, Range(tau, (1 - g) / (m + 1), S.One, open_below=True)),
        ),
        RuleBound(
            ABSOLUTE,
            End.INFIMUM,
            (_THRESHOLD_LEAST,),
            (_FIRST_ACCEPTED, _ROOM, Range(g, 1 - V * tau, S.One)),
            attained=False,
        ),
    ),
    formal=("M5_candidates", "M5_candidates_sharp", "M5_approached", "M7_lower_bound", "nothing_accepted"),
)

_low, _high = (1 - g) / (m + 1), (1 + m * g) / (m + 1)
_relative = _high * log(_low / _high)
_FREE_MARGIN = Range(g, S.Zero, S.One, open_above=True)
_BELOW_ONE = (_CANDIDATES, _FREE_MARGIN)
_half, _second = (1 + g) / 2, (1 - g) / 2
_PAIR = M1_INFIMUM.family.tokens
_POINT_MASS, _ANY_SIZE = Range(g, S.One, S.One), Range(V, oo, oo)


_ALL_ABOVE = Rows(
    (Range(g, S.Zero, S.One), Range(top, g, _half), Range(least, S.Zero, top - g, open_below=True)),
    (
        TokenClass("first", Role.REJECTED, S.One, top),
        TokenClass("other", Role.REJECTED, None, p, (Range(p, least, S.One),)),
    ),
)

M5_TYPICAL = Theorem(
    name="M5t",
    title="Typical acceptance, margin to the second token",
    statement=(
        "For typical(epsilon, delta) inf C is at least M3's with alpha = delta, since exp(-H) <= p_1, and it is M7's, "
        "attained, for all g from the one on at which b = (1-g)/(m+1) <= epsilon and (b/(g+b))^(g+b) <= delta: there "
        "M7's target (g + b, b, ..., b) has its competitors rejected. For one candidate b = (1-g)/2, so phi(g) is the "
        "infimum for g >= 1 - 2 min(epsilon, nu) with (nu/(1-nu))^(1-nu) = delta. For smaller g M3's bound is valid, "
        "not known to be sharp. If the second token of ((1+g)/2, (1-g)/2) is accepted, sup C = inf over any "
        "vocabulary. Else no target is accepted whole and sup C is MS's, approached, since dust drives exp(-H) to 0; "
        "for one candidate it is valid in V tokens too. At delta = 1 a uniform target of at least 1/epsilon tokens, "
        "and at epsilon = delta = 1 the point mass, lie on their own threshold: nothing is accepted, and C = 0."
    ),
    hypotheses=("exact entropy", "b = (1-g)/(m+1)"),
    derivation=(),
    conclusions=(
        Equal(log(_low) - (_high * log(_high) + m * _low * log(_low)), _relative, _BELOW_ONE),
        AtLeast(
            -diff(_relative, g),
            S.Zero,
            _BELOW_ONE,
            Evident((m * log(_high / _low) + _high / _low + m) / (m + 1)),
        ),
        SumAtLeast(
            _ALL_ABOVE,
            {"first": top * log(top / least), "other": p * log(p / least)},
            top * log(top / (top - g)),
            SumProof(
                constants={"first": top * log(top / least)},
                slack={"first": NOTHING, "other": Evident(p * log(p / least))},
                rest=Evident(top * log((top - g) / least)),
            ),
        ),
        AtLeast(
            _half * log(_second / _half),
            top * log((top - g) / top),
            (_FREE_MARGIN, Range(top, g, _half, open_below=True)),
            Growth(top, start=NOTHING, slope=Evident(above_log(top / (top - g))), from_above=True),
        ),
    ),
    worked_points=(
        WorkedRow(
            ("3/4", "1/4"),
            1,
            1,
            Rational(3, 4) * log(Rational(3, 2)) + log(Rational(1, 2)) / 4,
            "typical(1, 1/2): (1/3)^(3/4) = .44 <= 1/2, so C = phi(1/2)",
        ),
        WorkedRow(
            ("2/3", "1/6", "1/6"),
            1,
            2,
            Rational(2, 3) * log(2) + log(Rational(1, 2)) / 3,
            "typical(1, 1/2), m = 2: (1/4)^(2/3) = .40 <= 1/2",
        ),
    ),
    bounds=(
        *both_ends(TYPICAL, S.Zero, (_POINT_MASS,), Accepts(_PAIR, 0)),
        *both_ends(TYPICAL, OfRule(STRICT_GREEDY), (_POINT_MASS,), Accepts(_PAIR, 1)),
        RuleBound(
            TYPICAL,
            End.INFIMUM,
            S.Zero,
            (
                Range(g, S.Zero, S.Zero),
                Range(delta, S.One, S.One),
                Range(epsilon, S.Zero, S.One, open_below=True),
                Range(V, 1 / epsilon, oo),
            ),
        ),
        RuleBound(TYPICAL, End.INFIMUM, (M7_INFIMUM,), accepts=Accepts(M7_INFIMUM.family.tokens, 1)),
        *(
            RuleBound(TYPICAL, End.INFIMUM, OfRule(MULTIPLICATIVE, (delta,)), where, sharp=False)
            for where in (
                (Range(delta, S.Zero, S.One, open_below=True, open_above=True),),
                (Range(delta, S.One, S.One), Range(g, S.Zero, S.One, open_below=True, open_above=True)),
                (Range(delta, S.One, S.One), Range(epsilon, S.Zero, 1 / V, open_above=True)),
            )
        ),
        *(
            RuleBound(TYPICAL, End.INFIMUM, OfRule(STRICT_GREEDY), (Range(factor, S.Zero, S.Zero),), sharp=False)
            for factor in (epsilon, delta)
        ),
        RuleBound(TYPICAL, End.SUPREMUM, oo, (_ANY_SIZE,), accepts=Accepts(_PAIR, 2)),
        *(
            RuleBound(
                TYPICAL,
                End.SUPREMUM,
                TWO_ACCEPTED,
                (place, _FREE_MARGIN),
                accepts=Accepts(_PAIR, accepted),
                attained=False,
                sharp=place is _ANY_SIZE,
            )
            for place in (_ANY_SIZE, Range(m, S.One, S.One))
            for accepted in (0, 1)
        ),
        RuleBound(TYPICAL, End.SUPREMUM, oo, sharp=False),
    ),
    formal=(
        "M5t_candidates",
        "M5t_candidates_sharp",
        "M5t_from_a_margin_on",
        "M5t_never_whole",
        "M5t_uniform",
        "M5t_supremum",
        "MS_upper_bounds",
        "nothing_accepted",
    ),
)

# ---- M3 --------------------------------------------------------------------------------------------------------

_up, _down = (m + 1) / (1 + m * alpha), alpha * (m + 1) / (1 + m * alpha)
_falling = (above_log(_up) + m * above_log(_down)) / (m * (1 - alpha))
_rising = (1 + m * alpha) / (m + 1) * (Bennett(_up - 1) + m * Bennett(_down - 1)) / (m * (1 - alpha))
_share = (1 + log(_up) / (m * log(_down))) / (1 - alpha)
_FACTOR = Range(alpha, S.Zero, S.One, open_below=True, open_above=True)
_SMALL_MARGIN = Range(g, S.Zero, (1 - alpha) / (1 + m * alpha))
_MULTIPLICATIVE = Rows(
    parameters=(_CANDIDATES, _FACTOR, _SMALL_MARGIN, Range(top, S.Zero, S.One)),
    classes=(_FIRST, _competitors(Min(alpha * top, top - g)), _OTHERS),
)
_turn = g / (1 - alpha)
_dust = (1 - _turn * (1 + m * alpha)) / N

_POSITIVE_FACTOR = Range(alpha, S.Zero, S.One, open_below=True)
_CHORD = Infimum(
    _MULTIPLICATIVE,
    _bound(g, alpha * _turn),
    weak_duality(
        _MULTIPLICATIVE,
        {"first": _up, "competitor": _down},
        S.One,
        anchors={"competitor": _share * alpha * top + (1 - _share) * (top - g)},
        shown={"competitor": _falling * (alpha * top - p) + _rising * (top - g - p)},
    ),
    Family(
        (_CANDIDATES, _FACTOR, _SMALL_MARGIN, _MANY),
        {m: m, alpha: alpha, g: g, top: _turn},
        (
            FamilyTokens("first", _turn, S.One, True),
            FamilyTokens("competitor", alpha * _turn, m, True),
            FamilyTokens("other", _dust, N, False),
        ),
        limit=N,
    ),
)

M3 = Theorem(
    name="M3",
    title="Multiplicative(alpha), margin to the second token",
    statement=(
        "Over all p with p_1 - p_2 = g below (1-alpha)/(1+m alpha), inf C for multiplicative(alpha) is the chord: the "
        "certificate of one token g above m competitors at alpha g/(1-alpha), proportional to g. Approached by "
        "p_1 = g/(1-alpha) with m competitors at alpha p_1, which themselves are accepted, and dust. For larger g it "
        "is M7. In V tokens the dust needs g >= (1-alpha)/(1 + (V-1) alpha); else M3v. Suprema: MS for g <= "
        "(1-alpha)/(1+alpha), M7s for larger g, MI for when nothing is rejected."
    ),
    hypotheses=("every rejected token is below alpha p_1", "no competitor exceeds p_1 - g", "0 < alpha < 1"),
    derivation=(),
    conclusions=(_CHORD,),
    worked_points=(
        WorkedRow(
            ("1/2", "1/4", "1/8", "1/8"),
            1,
            1,
            log(Rational(4, 3)) / 2 + log(Rational(2, 3)) / 4,
            "alpha = 1/2, g = 1/4",
        ),
    ),
    establishes=(Establishes(ONE_AGAINST_MANY, {b: alpha * _turn}),),
    formal=("M3_candidates", "M3_candidates_sharp", "M7_lower_bound", "M2_M3_runner_up_rejected"),
    bounds=(
        RuleBound(
            MULTIPLICATIVE,
            End.INFIMUM,
            (_CHORD,),
            (_POSITIVE_FACTOR, _ROOM, Range(g, (1 - alpha) / (1 + (V - 1) * alpha), S.One)),
            attained=False,
        ),
        RuleBound(
            MULTIPLICATIVE,
            End.INFIMUM,
            (M7_INFIMUM,),
            (_POSITIVE_FACTOR, Range(g, (1 - alpha) / (1 + m * alpha), S.One, open_below=True)),
        ),
        RuleBound(
            MULTIPLICATIVE,
            End.INFIMUM,
            S.Zero,
            (Range(alpha, S.One, S.One), _ROOM, Range(g, S.Zero, S.Zero)),
            attained=False,
        ),
        *both_ends(
            MULTIPLICATIVE,
            OfRule(STRICT_GREEDY),
            (_POSITIVE_FACTOR, Range(g, (1 - alpha) / (1 + alpha), S.One, open_below=True)),
        ),
    ),
)

# ---- M2 --------------------------------------------------------------------------------------------------------

_PARAMETER = Range(t, S.Zero, S.One, open_above=True)
_first = (1 + g + m * t) / (m + 2)
_last = _first - t


def _additive_rows(margin: Range, second_is: str) -> Rows:
    second = TokenClass(second_is, Role.ACCEPTED, S.One, top - g)
    rejected = _competitors(top - t)
    return Rows((_CANDIDATES, _PARAMETER, margin, Range(top, g, S.One)), (_FIRST, second, rejected, _OTHERS))


def _additive_family(margin: Range, second_is: str, pooled: bool) -> Family:
    return Family(
        (_CANDIDATES, _PARAMETER, margin),
        {m: m, t: t, g: g, top: _first},
        (
            FamilyTokens("first", _first, S.One, True),
            FamilyTokens(second_is, _first - g, S.One, pooled),
            FamilyTokens("competitor", _last, m, True),
        ),
    )


_far = Range(g, Max(m * t / (m + 1), 2 * t - 1), t)
_FAR = _additive_rows(_far, "second")
_up, _down = _ratios(t, _last)
_spare = (above_log(_up) + m * above_log(_down)) / (m + 2)
_mass = 1 + (log(_up) + m * log(_down)) / (m + 2)

_near = Range(g, Max(S.Zero, 2 * t - 1), m * t / (m + 1))
_NEAR = _additive_rows(_near, "second")
_one, _two, _low = (m + 2) * _first, (m + 2) * (_first - g), (m + 2) * _last
_near_mass = 1 + (log(_one) + log(_two) + m * log(_low)) / (m + 2)
_near_spare = (above_log(_one) + above_log(_two) + m * above_log(_low)) / (m + 2)

_SECOND_KEPT = Infimum(
    _FAR,
    _bound(t, _last),
    weak_duality(
        _FAR,
        {"first": _up, "competitor": _down},
        _mass,
        slopes={"second": _spare, "other": _spare},
        anchors={"second": top - g, "competitor": top - t},
        shown={"competitor": (log(_up) + 2 * log(1 / _down)) / (m + 2) * (top - t - p)},
    ),
    _additive_family(_far, "second", pooled=False),
)
_SECOND_POOLED = Infimum(
    _NEAR,
    ADDITIVE_NEAR.expression,
    weak_duality(
        _NEAR,
        {"first": _one, "second": _two, "competitor": _low},
        _near_mass,
        slopes={"other": _near_spare},
        anchors={"competitor": top - t},
        shown={
            "competitor": (log(_one / _low) + log(_two / _low)) / (m + 2) * (top - t - p),
        },
    ),
    _additive_family(_near, "second", pooled=True),
)

M2 = Theorem(
    name="M2",
    title="Additive(t), margin to the second token",
    statement=(
        "Over all p with p_1 - p_2 = g and additive(t), 0 < t < 1: if g > t it is M7, also when only t is known, with "
        "t in place of g. If g <= t and g > 2t - 1, inf C is the certificate of (u, u-g) accepted against m "
        "competitors u - t, with u = (1+g+m t)/(m+2); the second token is pooled iff g <= m t/(m+1). Approached, since "
        "u - t itself is accepted. If g <= 2t - 1, or fewer than m + 2 tokens exist, nothing can be rejected by m "
        "candidates. Suprema: MS for g <= t, M7s for g > t, MI for when nothing is rejected."
    ),
    hypotheses=("every rejected token is below p_1 - t", "p_2 = p_1 - g is accepted: g <= t", "g > 2t - 1"),
    derivation=(),
    conclusions=(
        _SECOND_KEPT,
        _SECOND_POOLED,
    ),
    worked_points=(
        WorkedRow(
            ("8/20", "7/20", "5/20"),
            2,
            1,
            Rational(2, 5) * log(Rational(6, 5)) + Rational(7, 20) * log(Rational(21, 20)) + log(Rational(3, 4)) / 4,
            "g = 1/20, just below t = 3/20: u = 8/20",
        ),
    ),
    establishes=(Establishes(ADDITIVE_NEAR), Establishes(ONE_AGAINST_MANY, {g: t, b: _last})),
    bounds=(
        *both_ends(ADDITIVE, OfRule(STRICT_GREEDY), (Range(g, t, S.One, open_below=True),)),
        RuleBound(
            ADDITIVE,
            End.INFIMUM,
            (_SECOND_KEPT, _SECOND_POOLED),
            (_ROOM, Range(g, 2 * t - 1, t, open_below=True)),
            attained=False,
        ),
    ),
    formal=("M2_candidates", "crowded_rows", "crowded_rows_approached", "M7_lower_bound", "M2_M3_runner_up_rejected"),
)
