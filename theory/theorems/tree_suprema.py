"""M7s: the largest certificates of strict greedy with a tree of m candidates."""

from dataclasses import replace
from typing import Any

import sympy
from sympy import Expr, Rational, S, log, oo, symbols

from ..formulas import PHI
from ..margins import ONE_AGAINST_MANY
from ..rules.strict_greedy import RULE
from ..theorem import (
    DRAFT,
    THRESHOLD,
    AtLeast,
    End,
    Establishes,
    Evidence,
    Evident,
    ExactValue,
    Family,
    FamilyTokens,
    Growth,
    Limit,
    Range,
    Role,
    Rows,
    RuleBound,
    Step,
    SumAtLeast,
    SumFact,
    SumProof,
    Theorem,
    TokenClass,
    UpperBound,
    Value,
    Witness,
    WorkedRow,
)
from .evidence import NOTHING, above_log, log_sum, weak_duality
from .symbols import V, b, g, m, n, p, x

_CANDIDATES = Range(m, S.One, oo, integer=True)
_SEVERAL_CANDIDATES = Range(m, S(2), oo, integer=True)
_MARGIN = Range(g, S.Zero, S.One)
_SEVERAL = m + 1
_half, _second = (1 + g) / 2, (1 - g) / 2

# ---- the two families ------------------------------------------------------------------------------------------

_dusty: Any = ONE_AGAINST_MANY.expression
_even = b + g / _SEVERAL
_DUST_ROWS = Rows(
    (_CANDIDATES, _MARGIN, Range(b, S.Zero, S.One, open_below=True)),
    (
        TokenClass("first", Role.ACCEPTED, S.One, g + b),
        TokenClass("competitor", Role.COMPETITOR, m, b),
        TokenClass("other", Role.REJECTED, None, p, (Range(p, S.Zero, S.One),)),
    ),
)


def _tree_spike(margin: Range, second_pooled: bool) -> ExactValue:
    """The certificate of ((1+g)/2, (1-g)/2, 0, ..., 0) when only the first is accepted."""
    rows = Rows(
        (_SEVERAL_CANDIDATES, margin),
        (
            TokenClass("first", Role.ACCEPTED, S.One, _half),
            TokenClass("second", Role.COMPETITOR, S.One, _second),
            TokenClass("zero", Role.COMPETITOR, m - 1, S.Zero),
        ),
    )
    level = 1 / _SEVERAL if second_pooled else _half / m
    ratios = {"first": _half / level, "second": _second / level if second_pooled else S.One}
    lost = {name: p * log(r) for (name, r), p in zip(ratios.items(), (_half, _second), strict=True)}
    lower = weak_duality(rows, ratios, S.One)
    # A token of probability 0 has the ratio 0: all of its draft is a loss.
    lower = replace(
        lower,
        constants={**lower.constants, "zero": THRESHOLD},
        slack={**lower.slack, "zero": Evident(DRAFT - THRESHOLD)},
    )
    return ExactValue(
        rows,
        Value(sum(lost.values(), S.Zero)),
        lower,
        Witness(
            draft={"first": level, "second": level if second_pooled else _second, "zero": level},
            threshold=level,
            mass=SumProof(
                mass=S.One,
                constants={
                    "first": level - _half,
                    "zero": level,
                    "second": level - _second if second_pooled else S.Zero,
                },
            ),
            divergence=SumProof(
                constants={name: -each for name, each in lost.items()},
                slack=dict.fromkeys(("first", "second", "zero"), NOTHING),
                rest=NOTHING,
            ),
        ),
        Family(
            rows.parameters,
            {m: m, g: g},
            (
                FamilyTokens("first", _half, S.One, True),
                FamilyTokens("second", _second, S.One, second_pooled),
                FamilyTokens("zero", S.Zero, m - 1, True),
            ),
        ),
    )


# ---- no target exceeds both ------------------------------------------------------------------------------------

_weight, _least, _spread = symbols("w l d", nonnegative=True)
_VOCABULARY = Range(V, _SEVERAL, oo, integer=True)
_share_of_rest = (1 - g) / V
_lifted = _least + _weight * g / _SEVERAL
_first = g + _least + (1 - _weight) * _spread
_dust_value = _dusty.xreplace({b: _share_of_rest})


def _mixture(margin: Range, spread: Range, spike: Expr, level: Expr, kept: Expr, rest: Evidence) -> UpperBound:
    """No target exceeds the mean of the two families' values, weighted by w.

    The dusty part is levelled as dust is. Of the other part the first token becomes `level`, and a competitor x becomes
    `level + kept x`.
    """
    rows = Rows(
        (
            _SEVERAL_CANDIDATES,
            _VOCABULARY,
            margin,
            Range(_weight, S.Zero, S.One),
            Range(_least, _weight * (1 - g) / V, S.One),
            spread,
        ),
        (
            TokenClass("first", Role.ACCEPTED, S.One, _first),
            TokenClass("competitor", Role.COMPETITOR, m, p, (Range(p, _least, _first - g),)),
            TokenClass("other", Role.REJECTED, None, p, (Range(p, S.Zero, S.One),)),
        ),
        (SumFact({"other": p}, _weight * (1 - g) - _SEVERAL * _least),),
    )
    moved = (1 - _weight) * level + kept * (p - _least)
    threshold = _lifted + (1 - _weight) * level
    parts = (_least + _weight * g, _lifted), ((1 - _weight) * (g + _spread), (1 - _weight) * level)
    # What the competitors lose per mass is largest for the largest of them.
    ratio = sympy.cancel(_spread / (level + kept * _spread))
    loss = log(ratio)
    return UpperBound(
        rows,
        Value(_weight * _dust_value + (1 - _weight) * spike),
        Witness(
            draft={"first": threshold, "competitor": _lifted + moved, "other": p},
            threshold=threshold,
            mass=SumProof(
                mass=kept,
                facts=(1 - kept,),
                constants={"first": threshold - kept * _first, "competitor": threshold - kept * _least},
            ),
            divergence=SumProof(
                mass=-loss,
                facts=(loss,),
                constants={
                    "first": loss * _first - sympy.Add(*(a * log(a / q) for a, q in parts)),
                    "competitor": loss * _least - _least * log(_least / _lifted),
                },
                slack={
                    "first": Evident(log_sum(*parts)),
                    "competitor": Evident(
                        log_sum((_least, _lifted), (p - _least, moved))
                        + (p - _least) * log(sympy.factor(ratio * moved / (p - _least)))
                    ),
                    "other": NOTHING,
                },
                rest=Growth(
                    _least,
                    start=rest,
                    slope=Evident(above_log((_least + _weight * g) / _lifted) + m * above_log(_least / _lifted)),
                ),
            ),
        ),
    )


_turn, _share = (m - 1) / _SEVERAL, 1 / _SEVERAL
_alone, _pooled = _half * log(m), log(_SEVERAL / 2) + PHI.expression.xreplace({x: g})
_pooled_rises = Evident((1 - _weight) * (log(1 + g / _spread) + (1 - g) / _spread))
_others_left = m + 2 - (1 - g) / _spread
_level = (g + _spread) / _others_left
_MIXTURES = (
    _mixture(
        _MARGIN,
        Range(_spread, S.Zero, _second),
        _pooled,
        _share,
        S.Zero,
        Growth(_spread, start=NOTHING, slope=_pooled_rises, from_above=True),
    ),
    _mixture(
        Range(g, S.Zero, _turn),
        Range(_spread, S.Zero, _share),
        _alone,
        _share,
        S.Zero,
        Growth(
            _spread,
            start=Evident((1 - _weight) * ((_second - _share) * log(m) + (g + _share) * log(m / (1 + _SEVERAL * g)))),
            slope=_pooled_rises,
            from_above=True,
        ),
    ),
    _mixture(
        _MARGIN,
        Range(_spread, _share, _second),
        _alone,
        _level,
        1 - _level / _spread,
        Evident((1 - _weight) * ((_second - _spread) * log(m) + (g + _spread) * log(m / _others_left))),
    ),
)

_BY_LEAST = Rows(
    (_MARGIN, Range(b, S.Zero, S.One), Range(_least, S.Zero, S.One)),
    (
        TokenClass("first", Role.REJECTED, S.One, g + b),
        TokenClass("second", Role.REJECTED, S.One, b),
        TokenClass("competitor", Role.REJECTED, None, p, (Range(p, _least, S.One),)),
    ),
)
_AFTER = Rows(
    (Range(n, S.One, oo, integer=True), Range(_least, S.Zero, S.One)),
    (TokenClass("other", Role.REJECTED, n, p, (Range(p, S.Zero, _least),)),),
)
_one, _other = symbols("x y", nonnegative=True)
_STEPS = (
    Step(
        "A target with margin g is a mixture of a dusty part, of weight w, and a part on at most m tokens. With l = "
        "p_(m+1) and o the mass after it, w (1-g) = (m+1) l + o and (1-w) d = p_2 - l. Then d <= (1-g)/2.",
        SumAtLeast(
            _BY_LEAST,
            {"first": g + b - _least, "second": b - _least, "competitor": p - _least},
            g + 2 * (b - _least),
            SumProof(
                constants={"first": g + b - _least, "second": b - _least},
                slack={"first": NOTHING, "second": NOTHING, "competitor": Evident(p - _least)},
                rest=NOTHING,
            ),
        ),
        "what the m + 1 tokens have above l is g + (1-w)(1-g), and the first two have g + 2 (p_2 - l) of it",
    ),
    Step(
        "In V tokens l is at least w (1-g)/V.",
        SumAtLeast(
            _AFTER,
            {"other": -p},
            -n * _least,
            SumProof(constants={"other": -_least}, slack={"other": Evident(_least - p)}, rest=NOTHING),
        ),
        "none of the last n = V - m - 1 tokens exceeds l, so w (1-g) = (m+1) l + o <= V l",
    ),
    Step(
        "A mean of two values does not exceed the larger of them.",
        AtLeast(
            _one,
            _weight * _other + (1 - _weight) * _one,
            (Range(_one, S.Zero, oo), Range(_other, S.Zero, _one), Range(_weight, S.Zero, S.One)),
            Evident(_weight * (_one - _other)),
        ),
        "so the supremum is the larger one, wherever a target lies between the families",
    ),
)

_DUST = ExactValue(
    _DUST_ROWS,
    Value(_dusty),
    weak_duality(
        _DUST_ROWS,
        {"first": 1 + m * g / (g + _SEVERAL * b), "competitor": 1 - g / (g + _SEVERAL * b)},
        S.One,
    ),
    Witness(
        draft={"first": _even, "competitor": _even, "other": p},
        threshold=_even,
        mass=SumProof(mass=S.One, constants={"first": _even - g - b, "competitor": _even - b}),
        divergence=SumProof(
            constants={"first": -(g + b) * log((g + b) / _even), "competitor": -b * log(b / _even)},
            slack=dict.fromkeys(("first", "competitor", "other"), NOTHING),
            rest=NOTHING,
        ),
    ),
    Family(
        (_CANDIDATES, _MARGIN, _VOCABULARY),
        {m: m, g: g, b: _share_of_rest},
        (
            FamilyTokens("first", g + _share_of_rest, S.One, True),
            FamilyTokens("competitor", _share_of_rest, m, True),
            FamilyTokens("other", _share_of_rest, V - _SEVERAL, False),
        ),
    ),
)
_SPIKE_KEPT = _tree_spike(Range(g, S.Zero, _turn), second_pooled=False)
_SPIKE_POOLED = _tree_spike(Range(g, _turn, S.One, open_above=True), second_pooled=True)

SPIKES = (_SPIKE_KEPT, _SPIKE_POOLED)
"""All mass on two tokens, the second rejected."""

M7_LARGE = Theorem(
    name="M7s",
    title="Tree of m candidates: the largest certificates",
    statement=(
        "Over all p with p_1 - p_2 = g, for strict greedy and m >= 2 candidates in V >= m + 1 tokens, sup C is the "
        "larger of two values, attained: of (g + b, b, ..., b) with b = (1-g)/V, which rises to g ln(m+1) as V grows, "
        "and of ((1+g)/2, (1-g)/2, 0, ..., 0), which is ((1+g)/2) ln m for g <= (m-1)/(m+1) and ln((m+1)/2) + phi(g) "
        "for larger g. Over any vocabulary it is the larger of g ln(m+1) and the second: (ln m)/2, not 0, at g = 0. "
        "m = 1 is M1."
    ),
    hypotheses=("strict greedy, m >= 2 candidates, V >= m + 1 tokens", "g = p_1 - p_2"),
    derivation=_STEPS,
    conclusions=(
        _DUST,
        Limit(_dusty, b, False, g * log(_SEVERAL), (_CANDIDATES, _MARGIN, Range(b, S.Zero, S.One))),
        _SPIKE_KEPT,
        _SPIKE_POOLED,
        *_MIXTURES,
    ),
    worked_points=(
        WorkedRow(("1/2", "1/2", "0"), 1, 2, log(2) / 2, "g = 0, m = 2"),
        WorkedRow(
            ("3/4", "1/4", "0"),
            1,
            2,
            Rational(3, 4) * log(Rational(9, 4)) + log(Rational(3, 4)) / 4,
            "g = 1/2, m = 2: all three are pooled",
        ),
    ),
    establishes=(Establishes(ONE_AGAINST_MANY),),
    bounds=(RuleBound(RULE, End.SUPREMUM, (_DUST, *SPIKES), (_SEVERAL_CANDIDATES,)),),
    formal=("M7s_rows", "M7s_upper_bounds", "M6_upper_bound", "M6_supremum"),
)
