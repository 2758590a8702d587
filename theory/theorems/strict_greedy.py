"""T5 strict greedy for a single draft, and M1: its sharp bounds from the margin alone."""

from dataclasses import replace

import sympy
from sympy import Rational, S, log, oo

from ..formulas import PAPER, PHI, STRICT_GREEDY
from ..rules.strict_greedy import RULE
from ..theorem import (
    AtLeast,
    End,
    Establishes,
    Evident,
    ExactValue,
    Family,
    FamilyTokens,
    Growth,
    Infimum,
    LowerBound,
    Range,
    Role,
    Rows,
    RuleBound,
    Step,
    SumProof,
    Supremum,
    Theorem,
    TokenClass,
    Value,
    Witness,
    WorkedRow,
)
from .evidence import NOTHING, weak_duality
from .projection import solved_program
from .symbols import V, b, g, m, p, s, top, x

_OTHERS = TokenClass("other", Role.REJECTED, None, p, (Range(p, S.Zero, S.One),))
_MARGIN = Range(g, S.Zero, S.One)
_PHI_G = PHI.expression.subs(x, g)

# ---- T5 --------------------------------------------------------------------------------------------------------

_first, _second = (s + g) / 2, (s - g) / 2
_PAIR = Rows(
    parameters=(Range(s, S.Zero, S.One, open_below=True), Range(g, S.Zero, s)),
    classes=(
        TokenClass("first", Role.ACCEPTED, S.One, _first),
        TokenClass("second", Role.COMPETITOR, S.One, _second),
        _OTHERS,
    ),
)


def pair_to_its_mean(first: sympy.Expr, second: sympy.Expr, rest: Evident | Growth) -> Witness:
    """The draft that replaces the first two tokens by their mean and keeps the others."""
    mean = (first + second) / 2
    loss = {"first": first * log(first / mean), "second": second * log(second / mean)}
    return Witness(
        draft={"first": mean, "second": mean, "other": p, "accepted": p},
        threshold=mean,
        mass=SumProof(mass=S.One, constants={"first": mean - first, "second": mean - second}),
        divergence=SumProof(
            constants={name: -each for name, each in loss.items()},
            slack=dict.fromkeys(("first", "second", "other", "accepted"), NOTHING),
            rest=rest,
        ),
    )


T5 = Theorem(
    name="T5",
    title="Strict greedy, one candidate",
    statement="C = p_1 ln(2 p_1/(p_1+p_2)) + p_2 ln(2 p_2/(p_1+p_2)) = s phi(g/s), s = p_1 + p_2, g = p_1 - p_2.",
    hypotheses=("p_1 >= p_2 are the two largest probabilities", "only the most likely token is accepted"),
    derivation=(
        Step(
            "The convex program for the pair and the rest of the row, solved.",
            solved_program(1, 0, 1, 0),
            "stationarity and complementarity of q_2 >= q_1: both become (p_1 + p_2)/2",
        ),
    ),
    conclusions=(
        ExactValue(
            rows=_PAIR,
            value=Value(STRICT_GREEDY.expression),
            lower=weak_duality(_PAIR, {"first": 1 + g / s, "second": 1 - g / s}, S.One),
            upper=pair_to_its_mean(_first, _second, NOTHING),
            example=Family(
                (),
                {s: Rational(3, 4), g: Rational(1, 4)},
                (
                    FamilyTokens("first", Rational(1, 2), S.One, True),
                    FamilyTokens("second", Rational(1, 4), S.One, True),
                    FamilyTokens("other", Rational(1, 4), S.One, False),
                ),
            ),
        ),
    ),
    worked_points=(
        WorkedRow(("3/5", "2/5"), 1, 1, Rational(3, 5) * log(Rational(6, 5)) + Rational(2, 5) * log(Rational(4, 5))),
        WorkedRow(("1/2", "3/10", "1/5"), 1, 1, log(Rational(5, 4)) / 2 + Rational(3, 10) * log(Rational(3, 4))),
        WorkedRow(("1", "0"), 1, 1, log(2)),
        WorkedRow(("1/2", "1/2"), 1, 1, S.Zero, "a tie"),
    ),
    establishes=(Establishes(STRICT_GREEDY),),
    formal=("T5_strict_greedy",),
    citation=PAPER,
)

# ---- T7 --------------------------------------------------------------------------------------------------------

_ACCEPTED = TokenClass("accepted", Role.ACCEPTED, None, p, (Range(p, S.Zero, S.One),))
_AGAINST_BEST = Rows(_PAIR.parameters, (*_PAIR.classes, _ACCEPTED))
_SMALL_SECOND = Rows(_PAIR.parameters, (*_PAIR.classes, replace(_ACCEPTED, ranges=(Range(p, S.Zero, s / 2),))))
_ratios = {"first": 1 + g / s, "second": 1 - g / s}

T7 = Theorem(
    name="T7",
    title="Two-point bound",
    statement=(
        "For one candidate under any rule, with x the most likely rejected token, C >= (p_1 + p_x) phi((p_1 - "
        "p_x)/(p_1 + p_x)), with equality when no other accepted token exceeds (p_1 + p_x)/2."
    ),
    hypotheses=("the most likely token is accepted", "s = p_1 + p_x, g = p_1 - p_x"),
    derivation=(),
    conclusions=(
        LowerBound(_AGAINST_BEST, Value(STRICT_GREEDY.expression), weak_duality(_AGAINST_BEST, _ratios, S.One)),
        ExactValue(
            rows=_SMALL_SECOND,
            value=Value(STRICT_GREEDY.expression),
            lower=weak_duality(_SMALL_SECOND, _ratios, S.One),
            upper=pair_to_its_mean(_first, _second, NOTHING),
            example=Family(
                (),
                {s: Rational(7, 10), g: Rational(3, 10)},
                (
                    FamilyTokens("first", Rational(1, 2), S.One, True),
                    FamilyTokens("accepted", Rational(3, 10), S.One, False),
                    FamilyTokens("second", Rational(1, 5), S.One, True),
                ),
            ),
        ),
    ),
    worked_points=(
        WorkedRow(("1/2", "3/10", "1/5"), 2, 1, log(Rational(10, 7)) / 2 + log(Rational(4, 7)) / 5, "equality"),
        WorkedRow(
            ("8/20", "7/20", "5/20"),
            2,
            1,
            Rational(2, 5) * log(Rational(6, 5)) + Rational(7, 20) * log(Rational(21, 20)) + log(Rational(3, 4)) / 4,
            "above the bound: the second token is pooled too",
        ),
    ),
    establishes=(Establishes(STRICT_GREEDY),),
    formal=("T7_two_point",),
)

# ---- M1 --------------------------------------------------------------------------------------------------------

_GIVEN_MARGIN = Rows(
    parameters=(_MARGIN, Range(top, g, S.One)),
    classes=(
        TokenClass("first", Role.ACCEPTED, S.One, top),
        TokenClass("second", Role.COMPETITOR, S.One, top - g),
        _OTHERS,
    ),
)


def _by_second(parameters: tuple[Range, ...], others: sympy.Expr | None) -> Rows:
    """Rows by the second probability b, with the number of other tokens."""
    return Rows(
        parameters,
        (
            TokenClass("first", Role.ACCEPTED, S.One, g + b),
            TokenClass("second", Role.COMPETITOR, S.One, b),
            replace(_OTHERS, count=others),
        ),
    )


_VOCABULARY = Range(V, S(2), oo, integer=True)
_ANY_SECOND = Range(b, S.Zero, S.One)
_DUST = (1 - g) / V
_second_from_vocabulary = Range(b, _DUST, S.One)
_mass_at_dust = g + 2 * _DUST
_AT_DUST = STRICT_GREEDY.expression.subs(s, _mass_at_dust)
# d/db of s phi(g/s), s = g + 2b, is the logarithm of 1 - (g/s)^2.
_falls_in_b = Evident(log(1 + g**2 / (4 * b * (g + b))))
_dust_tokens = (
    FamilyTokens("first", g + _DUST, S.One, True),
    FamilyTokens("second", _DUST, S.One, True),
    FamilyTokens("other", _DUST, V - 2, False),
)

M1_INFIMUM = Infimum(
    _GIVEN_MARGIN,
    _PHI_G,
    weak_duality(
        _GIVEN_MARGIN,
        {"first": 1 + g, "second": 1 - g},
        1 + log(1 - g**2) / 2,
        slopes={
            "first": log((1 + g) / (1 - g)) / 2,
            "second": -log((1 + g) / (1 - g)) / 2,
            "other": log(1 / (1 - g**2)) / 2,
        },
    ),
    Family(
        (_MARGIN,),
        {g: g, top: (1 + g) / 2},
        (FamilyTokens("first", (1 + g) / 2, S.One, True), FamilyTokens("second", (1 - g) / 2, S.One, True)),
    ),
)
_SUPREMUM = Supremum(
    _by_second((_MARGIN, _VOCABULARY, _second_from_vocabulary), V - 2),
    _AT_DUST,
    pair_to_its_mean(g + b, b, Growth(b, start=NOTHING, slope=_falls_in_b)),
    Family((_MARGIN, _VOCABULARY), {g: g, V: V, b: _DUST}, _dust_tokens),
)
_ONE_CANDIDATE = (Range(m, S.One, S.One),)

M1 = Theorem(
    name="M1",
    title="Strict greedy when only the margin is known",
    statement=(
        "Over all p with p_1 - p_2 = g, inf C = phi(g), attained at ((1+g)/2, (1-g)/2), and sup C = g ln 2, approached "
        "as the rest of the mass is spread over ever more tokens. For a vocabulary of V tokens the supremum is "
        "s phi(g/s) with s = g + 2(1-g)/V, attained."
    ),
    hypotheses=("strict greedy, one candidate", "g = p_1 - p_2"),
    derivation=(
        Step(
            "With s = g + 2b the value s phi(g/s) falls as b rises.",
            AtLeast(
                2 * log((g + 2 * b) / 2) - log(g + b) - log(b),
                S.Zero,
                (_MARGIN, Range(b, S.Zero, S.One, open_below=True)),
                _falls_in_b,
            ),
            "its derivative in b is ln(4 b (g+b) / (g+2b)^2), and 4 b (g+b) <= (g+2b)^2",
        ),
        Step(
            "In a vocabulary of V tokens the second is at least (1-g)/V.",
            AtLeast(
                g + b + (V - 1) * b,
                S.One,
                (_MARGIN, _VOCABULARY, _second_from_vocabulary),
                Evident(V * (b - _DUST)),
            ),
            "no other token exceeds it, so 1 <= (g + b) + (V-1) b",
        ),
    ),
    conclusions=(
        M1_INFIMUM,
        Supremum(
            _by_second((_MARGIN, _ANY_SECOND), None),
            g * log(2),
            pair_to_its_mean(g + b, b, Growth(b, start=NOTHING, slope=_falls_in_b)),
            Family((_MARGIN, _VOCABULARY), {g: g, b: _DUST}, _dust_tokens, limit=V),
        ),
        _SUPREMUM,
    ),
    worked_points=T5.worked_points[:1],
    establishes=(Establishes(PHI, {x: g}), Establishes(STRICT_GREEDY, {s: _mass_at_dust})),
    formal=("M1_bounds", "M1_attained", "M6_supremum"),
    bounds=(
        RuleBound(RULE, End.INFIMUM, (M1_INFIMUM,), _ONE_CANDIDATE),
        RuleBound(RULE, End.SUPREMUM, (_SUPREMUM,), _ONE_CANDIDATE),
    ),
    citation=PAPER,
)
