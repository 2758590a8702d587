"""M3v and M5v: the infima of M3, M3p and M5 in a vocabulary of V tokens, where these differ.

Dust needs many tokens. In few, the mass that the first token and the competitors leave lies on the n = V - m - 1 other
tokens, which take as much as they may; above the level they are pooled too.
"""

from dataclasses import replace
from typing import Any

import sympy
from sympy import Expr, Rational, S, exp, log, oo, symbols

from ..functions import Bennett
from ..margins import ONE_AGAINST_MANY
from ..rules.absolute import RULE as ABSOLUTE
from ..rules.absolute import tau
from ..rules.multiplicative import RULE as MULTIPLICATIVE
from ..rules.multiplicative import alpha
from ..theorem import (
    End,
    Equal,
    Establishes,
    Family,
    FamilyTokens,
    Infimum,
    LowerBound,
    Range,
    Role,
    Rows,
    RuleBound,
    SumFact,
    Theorem,
    TokenClass,
    Value,
    WorkedRow,
)
from .evidence import weak_duality
from .symbols import V, b, g, m, n, p, top

_COUNTS = (Range(m, S.One, oo, integer=True), Range(n, S.One, oo, integer=True))
_FACTOR = Range(alpha, S.Zero, S.One, open_below=True, open_above=True)
_FIRST = TokenClass("first", Role.ACCEPTED, S.One, top)
_tokens = m + n + 1
_OTHERS = V - m - 1
_FINITE = Range(V, m + 2, oo, open_above=True)
_COUNTED = "a rejected token that is no competitor lies below the level, so it may be counted as accepted"


def _rows(parameters: tuple[Range, ...], other: Expr, competitor: Expr, *facts: SumFact) -> Rows:
    """All tokens but the first and the competitors are counted as accepted: below the level nothing moves them."""
    return Rows(
        parameters,
        (
            _FIRST,
            TokenClass("other", Role.ACCEPTED, n, p, (Range(p, S.Zero, other),)),
            TokenClass("competitor", Role.COMPETITOR, m, p, (Range(p, S.Zero, competitor),)),
        ),
        facts,
    )


def _family(parameters: tuple[Range, ...], first: Expr, other: Expr, competitor: Expr, pooled: bool) -> Family:
    return Family(
        parameters,
        {**{each.symbol: each.symbol for each in parameters}, top: first},
        (
            FamilyTokens("first", first, S.One, True),
            FamilyTokens("other", other, n, pooled),
            FamilyTokens("competitor", competitor, m, True),
        ),
    )


def _all_pooled(first: Expr, other: Expr, competitor: Expr) -> Expr:
    """The certificate when every token is levelled at 1/V."""
    row = ((S.One, first), (n, other), (m, competitor))
    return sympy.Add(*(count * x * log(_tokens * x) for count, x in row))


def _pair(first: Expr, competitor: Expr) -> Any:
    """The certificate when the first token and the competitors alone are levelled."""
    return ONE_AGAINST_MANY.expression.xreplace({g: first - competitor, b: competitor})


def _nats(*row: str) -> Expr:
    """The same of an exact row: sum p ln(V p)."""
    return sympy.Add(*(Rational(x) * log(len(row) * Rational(x)) for x in row))


# ---- M5 --------------------------------------------------------------------------------------------------------

_THRESHOLD = Range(tau, S.Zero, 1 / _tokens, open_below=True)
_turn, _end = m * (1 / _tokens - tau), 1 - _tokens * tau
_UNPOOLED = (*_COUNTS, _THRESHOLD, Range(g, _turn, _end))
_POOLED = (*_COUNTS, _THRESHOLD, Range(g, S.Zero, _turn))
_other = (1 - g - m * tau) / (n + 1)
_first = g + _other
_level = (_first + m * tau) / (m + 1)
_ANY_TOP = Range(top, S.Zero, S.One)
_lift = log(_first / _level) / (n + 1)
_apart = log(_first / _other) / (n + 1)

_THRESHOLD_ALONE = Infimum(
    _rows((*_UNPOOLED, _ANY_TOP), top - g, tau),
    _pair(_first, tau),
    weak_duality(
        _rows((*_UNPOOLED, _ANY_TOP), top - g, tau),
        {"first": _first / _level, "competitor": tau / _level},
        1 + _lift,
        slopes={"other": -_lift},
        anchors={"other": top - g, "competitor": tau},
        shown={"competitor": (log(_level / tau) + _lift) * (tau - p)},
    ),
    _family(_UNPOOLED, _first, _other, tau, pooled=False),
)
_THRESHOLD_POOLED = Infimum(
    _rows((*_POOLED, _ANY_TOP), top - g, tau),
    _all_pooled(_first, _other, tau),
    weak_duality(
        _rows((*_POOLED, _ANY_TOP), top - g, tau),
        {name: _tokens * x for name, x in (("first", _first), ("other", _other), ("competitor", tau))},
        1 + log(_tokens * _other) + _apart,
        slopes={"other": -_apart},
        anchors={"other": top - g, "competitor": tau},
        shown={"competitor": (log(_other / tau) + _apart) * (tau - p)},
    ),
    _family(_POOLED, _first, _other, tau, pooled=True),
)

M5_VOCABULARY = Theorem(
    name="M5v",
    title="Known threshold in V tokens",
    statement=(
        "M5 in V = m + n + 1 tokens, n >= 1. For g + V tau >= 1 nothing changes: the dust is at most tau. For g + V "
        "tau < 1 the n others are accepted at x = (1 - g - m tau)/(n + 1) above tau, and inf C is the certificate of "
        "(g + x, x, ..., x) against m competitors tau: the first token alone is pooled for g >= m (1/V - tau), all "
        "tokens for smaller g. Attained when p = tau is rejected, approached otherwise. In m + 1 tokens with g + V "
        "tau < 1 nothing is rejected by m candidates."
    ),
    hypotheses=("the most likely token is accepted", "no competitor exceeds tau, no other token p_1 - g", _COUNTED),
    derivation=(),
    conclusions=(
        _THRESHOLD_ALONE,
        _THRESHOLD_POOLED,
    ),
    worked_points=(
        WorkedRow(
            ("5/10", "3/10", "2/10"),
            2,
            1,
            log(Rational(10, 7)) / 2 + log(Rational(4, 7)) / 5,
            "tau = g = 1/5, m = n = 1: the first alone is pooled",
        ),
        WorkedRow(
            ("5/10", "4/10", "1/10"),
            2,
            1,
            _nats("5/10", "4/10", "1/10"),
            "tau = g = 1/10: all three are pooled",
        ),
    ),
    establishes=(Establishes(ONE_AGAINST_MANY, {g: _first - tau, b: tau}),),
    bounds=(
        RuleBound(
            ABSOLUTE,
            End.INFIMUM,
            (_THRESHOLD_ALONE, _THRESHOLD_POOLED),
            (_FINITE,),
            {n: _OTHERS},
            attained=False,
        ),
    ),
    formal=("M5v_candidates", "crowded_rows", "crowded_rows_approached"),
)

# ---- M3, the margin known --------------------------------------------------------------------------------------

omega = symbols("omega", positive=True)
"""The ratio of the others to the first token."""
_fixed = 1 + m * alpha
_up, _down = (m + 1) / _fixed, alpha * (m + 1) / _fixed
_MARGIN = Range(g, m * (1 - alpha) / (_fixed * _tokens), (1 - alpha) / (1 + (m + n) * alpha))
_UNPOOLED = (*_COUNTS, _FACTOR, _MARGIN)
_first = (1 + n * g) / (_fixed + n)
_spare = _fixed / (m + 1) * (Bennett(_up - 1) + m * Bennett(_down - 1)) / (_fixed + n)
_RATIO = (*_COUNTS, _FACTOR, Range(omega, _fixed / (m + 1), S.One))
_least = 1 / (_fixed + n * omega)
_gap = _least - omega * _least
_room = top - _gap
_inner = m * alpha * log(alpha) - _fixed * log(omega)
"""Nonnegative where omega is at most rho, the mean of 1 and alpha, which weighs 1 and m alpha, in logarithms."""
_shared = log(_tokens * _least) + (m * alpha * log(alpha) + n * log(omega)) / (_fixed + n)
_NO_LARGER = SumFact({"other": _inner * (_room - p)}, S.Zero, at_least=True)
_POOLED_ROWS = _rows((*_RATIO, _ANY_TOP), S.One, alpha * top, _NO_LARGER)
_BY_RATIO = weak_duality(
    _POOLED_ROWS,
    {name: _tokens * _least * x for name, x in (("first", S.One), ("other", omega), ("competitor", alpha))},
    1 + _shared,
    slopes={"other": -_inner / (_fixed + n)},
    anchors={"other": _room, "competitor": alpha * top},
    shown={
        "other": S.Zero,
        "competitor": (n * log(omega / alpha) + log(1 / alpha)) / (_fixed + n) * (alpha * top - p),
    },
)
_ANY_MARGIN = _rows((*_RATIO, _ANY_TOP), S.One, alpha * top, SumFact({"first": _inner}))
_AT_LEAST = weak_duality(
    _ANY_MARGIN,
    {name: _tokens * _least * x for name, x in (("first", S.One), ("other", omega), ("competitor", alpha))},
    1 + log(_tokens * _least * omega),
    slopes={"other": S.Zero},
    anchors={"competitor": alpha * top},
    shown={"competitor": log(omega / alpha) * (alpha * top - p)},
)
_log_rho = m * alpha * log(alpha) / _fixed
_rho = exp(_log_rho)
_mass = _fixed + n * _rho
_over_margins = log(_tokens) - log(_mass) + _log_rho
_below_rho = symbols("l", real=True)
"""How far omega lies below rho, in logarithms."""

_ALONE = Infimum(
    _rows((*_UNPOOLED, _ANY_TOP), top - g, alpha * top),
    _pair(_first, alpha * _first),
    weak_duality(
        _rows((*_UNPOOLED, _ANY_TOP), top - g, alpha * top),
        {"first": _up, "competitor": _down},
        1 + (log(_up) + m * alpha * log(_down)) / (_fixed + n),
        slopes={"other": -_spare},
        anchors={"other": top - g, "competitor": alpha * top},
        shown={"competitor": (log(1 / _down) + _spare) * (alpha * top - p)},
    ),
    _family(_UNPOOLED, _first, _first - g, alpha * _first, pooled=False),
)
_ALL = Infimum(
    _POOLED_ROWS,
    _all_pooled(_least, omega * _least, alpha * _least),
    replace(_BY_RATIO, facts=(1 / (_fixed + n),)),
    _family(_RATIO, _least, omega * _least, alpha * _least, pooled=True),
)
M3_VOCABULARY = Theorem(
    name="M3v",
    title="Multiplicative(alpha) in V tokens, margin to the second token",
    statement=(
        "M3 in V = m + n + 1 tokens, n >= 1, with A = 1 + m alpha. The chord needs g >= (1-alpha)/(1 + (V-1) alpha). "
        "For smaller g the n others are accepted at p_1 - g, p_1 = (1 + n g)/(A + n), and inf C is the certificate of "
        "(p_1, p_1 - g, ..., p_1 - g) against m competitors alpha p_1: the first token alone is pooled for g >= m "
        "(1-alpha)/(A V), all tokens for smaller g, as long as omega = (p_1 - g)/p_1 is at most rho = alpha^(m "
        "alpha/A). For still smaller g, C >= ln(V rho/(A + n rho)), which is valid but not sharp: it is inf C over "
        "all margins, attained at p ~ (1, rho, ..., rho, alpha, ..., alpha) of margin (1-rho)/(A + n rho). All are "
        "approached, since alpha p_1 itself is accepted. In m + 1 tokens nothing is rejected by m candidates where "
        "the chord ends."
    ),
    hypotheses=(
        "every rejected token is below alpha p_1, no token but the first above p_1 - g",
        "all pooled: m alpha ln alpha >= A ln omega; any margin: equality, omega = rho",
        _COUNTED,
    ),
    derivation=(),
    conclusions=(
        _ALONE,
        _ALL,
        LowerBound(
            _ANY_MARGIN,
            Value(log(_tokens * omega * _least)),
            replace(
                _AT_LEAST,
                facts=(top,),
                constants={**_AT_LEAST.constants, "first": _AT_LEAST.constants["first"] - top * _inner},
            ),
        ),
        Equal(
            log(_tokens) - log(_mass) + (n * _rho * _log_rho + m * alpha * log(alpha)) / _mass,
            _over_margins,
            (*_COUNTS, _FACTOR),
        ),
    ),
    worked_points=(
        WorkedRow(
            ("14/30", "9/30", "7/30"),
            2,
            1,
            Rational(7, 15) * log(Rational(4, 3)) + Rational(7, 30) * log(Rational(2, 3)),
            "alpha = 1/2, m = n = 1, g = 1/6: the first alone is pooled",
        ),
        WorkedRow(
            ("44/100", "34/100", "22/100"),
            2,
            1,
            _nats("44/100", "34/100", "22/100"),
            "alpha = 1/2, m = n = 1, g = 1/10: all are pooled, omega = 17/22 < rho = 0.79...",
        ),
    ),
    establishes=(Establishes(ONE_AGAINST_MANY, {g: _first - alpha * _first, b: alpha * _first}),),
    bounds=(
        RuleBound(MULTIPLICATIVE, End.INFIMUM, (_ALONE,), (_FINITE,), {n: _OTHERS}, attained=False),
        RuleBound(
            MULTIPLICATIVE,
            End.INFIMUM,
            (_ALL,),
            (_FINITE, _FACTOR, Range(omega, alpha, S.One), Range(_below_rho, S.Zero, oo)),
            {n: _OTHERS, omega: (_first - g) / _first, _below_rho: _inner},
            attained=False,
        ),
        RuleBound(
            MULTIPLICATIVE,
            End.INFIMUM,
            _over_margins.subs(n, _OTHERS),
            (_FINITE, _FACTOR),
            sharp=False,
        ),
    ),
    formal=("M3v_candidates", "crowded_rows", "crowded_rows_approached"),
)

# ---- M3, the first token known ---------------------------------------------------------------------------------

_left = (1 - _fixed * top) / n
_UNPOOLED = (*_COUNTS, _FACTOR, Range(top, (m + 1) / (_fixed * _tokens), 1 / _fixed))
_POOLED = (*_COUNTS, _FACTOR, Range(top, 1 / (_fixed + n), (m + 1) / (_fixed * _tokens)))

M3_TOP_VOCABULARY = Theorem(
    name="M3pv",
    title="Multiplicative(alpha) in V tokens, first token known",
    statement=(
        "M3p in V = m + n + 1 tokens, n >= 1, with A = 1 + m alpha: the infimum is the same for p_1 >= (m+1)/(A V), "
        "where the n others can take what is left, x = (1 - A p_1)/n each, without being pooled. For smaller p_1 it "
        "is the certificate of (p_1, x, ..., x) against m competitors alpha p_1, all pooled, approached; p_1 > 1/(A + "
        "n) since x < p_1, and up to that nothing is rejected by m candidates."
    ),
    hypotheses=("every rejected token is below alpha p_1", _COUNTED),
    derivation=(),
    conclusions=(
        Infimum(
            _rows(_UNPOOLED, S.One, alpha * top),
            _pair(top, alpha * top),
            weak_duality(
                _rows(_UNPOOLED, S.One, alpha * top),
                {"first": _up, "competitor": _down},
                S.One,
                anchors={"competitor": alpha * top},
            ),
            _family(_UNPOOLED, top, _left, alpha * top, pooled=False),
        ),
        Infimum(
            _rows(_POOLED, S.One, alpha * top),
            _all_pooled(top, _left, alpha * top),
            weak_duality(
                _rows(_POOLED, S.One, alpha * top),
                {name: _tokens * x for name, x in (("first", top), ("other", _left), ("competitor", alpha * top))},
                1 + log(_tokens * _left),
                slopes={"other": S.Zero},
                anchors={"competitor": alpha * top},
                shown={"competitor": log(_left / (alpha * top)) * (alpha * top - p)},
            ),
            _family(_POOLED, top, _left, alpha * top, pooled=True),
        ),
    ),
    worked_points=(
        WorkedRow(
            ("1/2", "1/4", "1/4"),
            2,
            1,
            log(Rational(4, 3)) / 2 + log(Rational(2, 3)) / 4,
            "alpha = 1/2, m = n = 1, p_1 = 1/2: x = 1/4 is not pooled",
        ),
        WorkedRow(
            ("42/100", "37/100", "21/100"),
            2,
            1,
            _nats("42/100", "37/100", "21/100"),
            "alpha = 1/2, m = n = 1, p_1 = 21/50: all are pooled",
        ),
    ),
    establishes=(Establishes(ONE_AGAINST_MANY, {g: top - alpha * top, b: alpha * top}),),
    formal=("M3_candidates", "M3pv_candidates", "crowded_rows", "crowded_rows_approached"),
)
