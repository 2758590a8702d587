"""M6 and M7: strict greedy with a tree of m candidates, when only a margin of the target is known."""

from sympy import Rational, S, log, oo, symbols

from ..margins import TREE_LAST_MARGIN, TREE_MARGIN, TREE_RATIO, e
from ..rules.strict_greedy import RULE
from ..theorem import (
    AtLeast,
    End,
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
    RuleBound,
    Step,
    SumProof,
    Supremum,
    Theorem,
    TokenClass,
    Witness,
    WorkedRow,
)
from .evidence import NOTHING, above_log, log_sum, weak_duality
from .symbols import V, b, g, m, p, q, s, top

_CANDIDATES = Range(m, S.One, oo, integer=True)
_MARGIN = Range(g, S.Zero, S.One)
_SEVERAL = m + 1
_OTHERS = TokenClass("other", Role.REJECTED, None, p, (Range(p, S.Zero, S.One),))

# ---- M7: the margin to the second token ------------------------------------------------------------------------

_TO_SECOND = Rows(
    parameters=(_CANDIDATES, _MARGIN, Range(top, S.Zero, S.One)),
    classes=(
        TokenClass("first", Role.ACCEPTED, S.One, top),
        TokenClass("competitor", Role.COMPETITOR, m, p, (Range(p, S.Zero, top - g),)),
        _OTHERS,
    ),
)
# Bernoulli: (1 + m g)(1 - g)^m <= 1, as the gaps of the two logarithms.
_spare = (above_log(1 + m * g) + m * above_log(1 - g)) / _SEVERAL
_spread = (log(1 + m * g) - log(1 - g)) / _SEVERAL
_spread_shown = log((1 + m * g) / (1 - g)) / _SEVERAL

M7_INFIMUM = Infimum(
    _TO_SECOND,
    TREE_MARGIN.expression,
    weak_duality(
        _TO_SECOND,
        {"first": 1 + m * g, "competitor": 1 - g},
        1 + (log(1 + m * g) + m * log(1 - g)) / _SEVERAL,
        slopes={"first": m * _spread, "competitor": -_spread_shown, "other": _spare},
        anchors={"competitor": top - g},
    ),
    Family(
        (_CANDIDATES, _MARGIN),
        {m: m, g: g, top: (1 + m * g) / _SEVERAL},
        (
            FamilyTokens("first", (1 + m * g) / _SEVERAL, S.One, True),
            FamilyTokens("competitor", (1 - g) / _SEVERAL, m, True),
        ),
    ),
)

M7 = Theorem(
    name="M7",
    title="Tree of m candidates, margin to the second token",
    statement=(
        "Over all p with p_1 - p_2 = g and m candidates, inf C = [(1+m g) ln(1+m g) + m (1-g) ln(1-g)]/(m+1), attained "
        "at (1 + m g, 1 - g, ..., 1 - g)/(m+1). m = 1 is M1; the leading term is m g^2/2."
    ),
    hypotheses=("strict greedy, m candidates", "no rejected token exceeds p_1 - g"),
    derivation=(),
    conclusions=(M7_INFIMUM,),
    worked_points=(
        WorkedRow(
            ("2/3", "1/6", "1/6"), 1, 2, Rational(2, 3) * log(2) + log(Rational(1, 2)) / 3, "g = 1/2, m = 2: attained"
        ),
    ),
    establishes=(Establishes(TREE_MARGIN),),
    formal=("M7_lower_bound", "M7_sharp"),
    bounds=(RuleBound(RULE, End.INFIMUM, (M7_INFIMUM,)),),
)

# ---- M6: the margin to the m-th competitor ---------------------------------------------------------------------

y = 1 + e
M6_Z = m - 1 + y + 1 / y
M6_MARGIN = (y**2 - 1) / (y**2 + (m - 1) * y + 1)
_RATIO = Range(e, S.Zero, oo)

_TO_LAST = Rows(
    parameters=(_CANDIDATES, _RATIO, Range(top, S.Zero, S.One)),
    classes=(
        TokenClass("first", Role.ACCEPTED, S.One, top),
        TokenClass("competitor", Role.COMPETITOR, m - 1, p, (Range(p, S.Zero, S.One),)),
        TokenClass("last", Role.COMPETITOR, S.One, p, (Range(p, S.Zero, top - M6_MARGIN),)),
        _OTHERS,
    ),
)

_w = symbols("w", nonnegative=True)
r = symbols("r", positive=True)
_BELOW_ONE = (_CANDIDATES, Range(g, S.Zero, S.One, open_above=True))
_share = g / _SEVERAL
_BY_LAST = Rows(
    parameters=(_CANDIDATES, _MARGIN, Range(b, S.Zero, S.One)),
    classes=(
        TokenClass("first", Role.ACCEPTED, S.One, g + b),
        TokenClass("competitor", Role.COMPETITOR, m - 1, p, (Range(p, b, S.One),)),
        TokenClass("last", Role.COMPETITOR, S.One, b),
        _OTHERS,
    ),
)
_VOCABULARY = Range(V, _SEVERAL, oo, integer=True)
_dust = (1 - g) / V
_level = b + _share
_kept = p / (p + _share)

_LAST_INFIMUM = Infimum(
    _TO_LAST,
    TREE_LAST_MARGIN.expression,
    weak_duality(
        _TO_LAST,
        {"first": y * _SEVERAL / M6_Z, "competitor": _SEVERAL / M6_Z, "last": _SEVERAL / (y * M6_Z)},
        1 - log(M6_Z / _SEVERAL),
        slopes={
            "first": log(y),
            "competitor": S.Zero,
            "last": -log(y),
            "other": log(1 + (y - 1) ** 2 / (y * _SEVERAL)),
        },
        anchors={"last": top - M6_MARGIN},
    ),
    Family(
        (_CANDIDATES, _RATIO),
        {m: m, e: e, top: y / M6_Z},
        (
            FamilyTokens("first", y / M6_Z, S.One, True),
            FamilyTokens("competitor", 1 / M6_Z, m - 1, True),
            FamilyTokens("last", 1 / (y * M6_Z), S.One, True),
        ),
    ),
)
_LAST_SUPREMUM = Supremum(
    _BY_LAST,
    g * log(_SEVERAL),
    Witness(
        draft={"first": _level, "competitor": p + _share, "last": _level, "other": p},
        threshold=_level,
        mass=SumProof(mass=S.One, constants={"first": _share - g, "competitor": _share, "last": _share}),
        divergence=SumProof(
            constants={
                "first": -(g + b) * log((g + b) / _level),
                "competitor": -b * log(b / _level),
                "last": -b * log(b / _level),
            },
            slack={
                "first": NOTHING,
                "competitor": Growth(p, start=NOTHING, slope=Evident(above_log(_kept))),
                "last": NOTHING,
                "other": NOTHING,
            },
            rest=Growth(b, start=NOTHING, slope=Evident(above_log((g + b) / _level) + m * above_log(b / _level))),
        ),
    ),
    Family(
        (_CANDIDATES, _MARGIN, _VOCABULARY),
        {m: m, g: g, b: _dust},
        (
            FamilyTokens("first", g + _dust, S.One, True),
            FamilyTokens("competitor", _dust, m - 1, True),
            FamilyTokens("last", _dust, S.One, True),
            FamilyTokens("other", _dust, V - _SEVERAL, False),
        ),
        limit=V,
    ),
)

M6 = Theorem(
    name="M6",
    title="Tree of m candidates, margin to the last of them",
    statement=(
        "Over all p with p_1 - p_(m+1) = g, inf C = g ln y - ln((m - 1 + y + 1/y)/(m+1)) where y >= 1 solves "
        "(1-g) y^2 - g (m-1) y - (1+g) = 0, attained at p ~ (y, 1, ..., 1, 1/y); sup C = g ln(m+1), approached as the "
        "rest of the mass is spread over ever more tokens. In V tokens that is valid, not sharp: as C is convex, sup C "
        "is the largest certificate of the extreme targets, k <= m tokens at g + b and the others at b = (1 - k g)/V, "
        "where k g <= 1; or k at g, l - k at (1 - k g)/(l - k) and the others 0, where k < l <= m and k g <= 1 <= l g."
    ),
    hypotheses=("strict greedy, m candidates", "some competitor is at most p_1 - g"),
    derivation=(
        Step(
            "C is convex on targets in the same order of tokens, since p ln(p/q) is convex in p and q together.",
            AtLeast(
                _w * p * log(p / q) + (1 - _w) * s * log(s / r),
                (_w * p + (1 - _w) * s) * log((_w * p + (1 - _w) * s) / (_w * q + (1 - _w) * r)),
                (Range(_w, S.Zero, S.One), *(Range(x, S.Zero, S.One, open_below=True) for x in (p, q, s, r))),
                Evident(log_sum((_w * p, _w * q), ((1 - _w) * s, (1 - _w) * r))),
            ),
            "a mixture of drafts that the same competitors reject is rejected. A target with p_1 - p_(m+1) = g is a "
            "sum of a_k (1, ..., 1, 0, ..., 0), k ones, with a >= 0, sum k a_k = 1 and a_1 + ... + a_m = g. It is "
            "extreme if at most two a_k are positive: one up to m and one after it, where V gives the largest C; or "
            "two up to m",
        ),
    ),
    conclusions=(
        Equal(TREE_RATIO.expression, TREE_RATIO.stable, _BELOW_ONE),
        Equal(M6_MARGIN.subs(e, TREE_RATIO.expression), g, _BELOW_ONE),
        _LAST_INFIMUM,
        _LAST_SUPREMUM,
    ),
    worked_points=(
        WorkedRow(
            ("4/7", "2/7", "1/7"),
            1,
            2,
            Rational(4, 7) * log(Rational(12, 7)) + Rational(2, 7) * log(Rational(6, 7)) + log(Rational(3, 7)) / 7,
            "y = 2, m = 2, g = 3/7: attained",
        ),
    ),
    establishes=(Establishes(TREE_LAST_MARGIN), Establishes(TREE_RATIO, parameter=e)),
    formal=("M6_lower_bound", "M6_sharp", "M6_upper_bound", "M6_supremum", "M6_convexity"),
    bounds=(
        RuleBound(
            RULE,
            End.INFIMUM,
            (_LAST_INFIMUM,),
            (Range(g, S.Zero, S.One, open_above=True),),
            {e: TREE_RATIO.expression},
            known="coverage",
        ),
        RuleBound(RULE, End.INFIMUM, (_LAST_SUPREMUM,), (Range(g, S.One, S.One),), known="coverage"),
        RuleBound(RULE, End.SUPREMUM, (_LAST_SUPREMUM,), known="coverage"),
    ),
)
