"""M5s: the largest certificates under a threshold so high that no second token reaches it."""

import sympy
from sympy import Rational, S, diff, log, oo

from ..rules.absolute import RULE, tau
from ..rules.strict_greedy import RULE as STRICT_GREEDY
from ..theorem import (
    AtLeast,
    End,
    Evident,
    Family,
    FamilyTokens,
    OfRule,
    Range,
    Role,
    Rows,
    RuleBound,
    Step,
    SumProof,
    Supremum,
    Theorem,
    TokenClass,
    UpperBound,
    Value,
    Witness,
    WorkedRow,
    both_ends,
)
from .evidence import NOTHING
from .symbols import N, V, g, m, p
from .tree_suprema import SPIKES

w = sympy.Symbol("w", nonnegative=True)
"""Mass of all tokens but the two most likely ones."""

_first, _second = (1 - w + g) / 2, (1 - w - g) / 2
_turn = (m - 1) * (1 - w) / (m + 1)
"""Of smaller margins the second token lies above the level of the first and of tokens of probability 0."""


def _two_and_rest(candidates: int, margin: Range) -> Rows:
    return Rows(
        (Range(m, S(candidates), oo, integer=True), Range(w, S.Zero, S.One, open_above=True), margin),
        (
            TokenClass("first", Role.ACCEPTED, S.One, _first),
            TokenClass("second", Role.COMPETITOR, S.One, _second),
            TokenClass("competitor", Role.COMPETITOR, m - 1, p, (Range(p, S.Zero, S.One),)),
            TokenClass("other", Role.REJECTED, None, p, (Range(p, S.Zero, S.One),)),
        ),
    )


def _lift(level: sympy.Expr, moved: dict[str, sympy.Expr]) -> Witness:
    """Tokens that are moved go to the level, all competitors but the second rise by it, the others stay."""
    return Witness(
        draft={"second": _second, "competitor": level + p, "other": p} | dict.fromkeys(moved, level),
        threshold=level,
        mass=SumProof(
            mass=S.One, constants={"competitor": level} | {name: level - each for name, each in moved.items()}
        ),
        divergence=SumProof(
            constants={name: -each * log(each / level) for name, each in moved.items()},
            slack={
                **dict.fromkeys(("first", "second", "other"), NOTHING),
                "competitor": Evident(p * log(1 + level / p)),
            },
            rest=NOTHING,
        ),
    )


_POOLED = _two_and_rest(1, Range(g, _turn, 1 - w))
_ALONE = _two_and_rest(2, Range(g, S.Zero, _turn))
_level = (1 - w) / (m + 1)
_pooled = _first * log(_first / _level) + _second * log(_second / _level)
_dust = w / (N + m - 1)
_STEP = Supremum(
    _POOLED,
    _pooled,
    _lift(_level, {"first": _first, "second": _second}),
    Family(
        (*_POOLED.parameters, Range(N, 2 / (1 - w), oo, integer=True)),
        {m: m, w: w, g: g},
        (
            FamilyTokens("first", _first, S.One, True),
            FamilyTokens("second", _second, S.One, True),
            FamilyTokens("competitor", _dust, m - 1, True),
            FamilyTokens("other", _dust, N, False),
        ),
        limit=N,
    ),
)
_NO_SECOND = Range(tau, (1 - g) / 2, S.One, open_below=True)
_least_first = g + (1 - g) / V

M5_LARGE = Theorem(
    name="M5s",
    title="Known threshold: the largest certificates",
    statement=(
        "A threshold tau > (1-g)/2 is never reached by the second token. Where every p with p_1 - p_2 = g has p_1 >= "
        "tau, which is for tau <= g + (1-g)/V, both ends are those of strict greedy. For larger tau, where p_1 < tau "
        "has C = 0, sup C for m candidates is the larger of two values: of (tau, tau - g, 0, ..., 0), the rest w = 1 - "
        "2 tau + g of the mass spread over ever more tokens, and of M7s's ((1+g)/2, (1-g)/2, 0, ..., 0); the first is "
        "attained for m = 1. For tau > (1+g)/2 nothing is ever accepted, and C = 0."
    ),
    hypotheses=(
        "p_1 >= tau, and only the most likely token is accepted",
        "p_1 = (1 - w + g)/2, p_2 = p_1 - g, all other tokens together have w",
    ),
    derivation=(
        Step(
            "Where the second token is moved too, the value is convex in w.",
            AtLeast(
                diff(_pooled, w, 2),
                S.Zero,
                _POOLED.parameters,
                Evident(g**2 / ((1 - w) * ((1 - w) ** 2 - g**2))),
            ),
            "so it is largest at an end: at the largest w, which p_1 = tau has, or where the second token no longer is",
        ),
        Step(
            "Where the second token is not moved, C is at most p_1 ln m.",
            UpperBound(_ALONE, Value(_first * log(m)), _lift(_first / m, {"first": _first})),
            "and p_1 is largest at w = 0, where M7s's target attains this",
        ),
    ),
    conclusions=(_STEP,),
    worked_points=(
        WorkedRow(
            ("3/5", "1/5", "1/5"),
            1,
            1,
            Rational(3, 5) * log(Rational(3, 2)) - log(2) / 5,
            "tau = 3/5, g = 2/5, m = 1: attained",
        ),
    ),
    bounds=(
        *both_ends(RULE, OfRule(STRICT_GREEDY), (_NO_SECOND, Range(tau, S.Zero, _least_first))),
        RuleBound(
            RULE,
            End.SUPREMUM,
            (_STEP, *SPIKES),
            (_NO_SECOND, Range(tau, _least_first, (1 + g) / 2, open_below=True)),
            {w: 1 - 2 * tau + g},
        ),
        *both_ends(RULE, S.Zero, (Range(tau, (1 + g) / 2, S.One, open_below=True),)),
    ),
    formal=("M5s_upper_bounds", "M5s_no_more", "M5s_approached", "nothing_accepted"),
)
