"""T6: what a rule accepts, another accepts too, as inequalities; `ARROWS` ties them to the table in `theory.order`."""

from collections.abc import Mapping
from types import MappingProxyType

from sympy import Expr, Rational, S, diff, log, oo, symbols

from ..rules.absolute import RULE as ABSOLUTE
from ..rules.absolute import tau
from ..rules.multiplicative import alpha
from ..rules.top_m import k
from ..rules.typical_floor import delta, floor
from ..theorem import (
    AtLeast,
    Evident,
    Range,
    Role,
    Rows,
    Step,
    SumAtLeast,
    SumProof,
    Theorem,
    TokenClass,
    WorkedRow,
)
from .evidence import NOTHING
from .symbols import p, s, top

entropy_power = symbols("e_H", positive=True)
"""`exp(-H)`."""

_FACTOR = Range(alpha, S.Zero, S.One, open_below=True)
_ANY = Range(p, S.Zero, S.One)
_ROW = Rows(
    (Range(top, S.Zero, S.One, open_below=True),),
    (TokenClass("token", Role.REJECTED, None, p, (Range(p, S.Zero, top),)),),
)
_SECOND_OF_TWO = (Range(tau, S.Zero, S.Half, open_below=True), Range(p, tau, S.Half), Range(top, S.Zero, 1 - p))
_FLOOR = Range(floor, S.Zero, oo)


def _entropy_power(f: Expr) -> Expr:
    """Logarithm of exp(-H_f) for two tokens, s and 1 - s: the largest for a target with a token s."""
    return s * log(s + f) + (1 - s) * log(1 - s + f)


_BESIDE = Rows(
    (Range(s, S.Zero, S.One), _FLOOR),
    (
        TokenClass("the token", Role.REJECTED, S.One, s),
        TokenClass("token", Role.REJECTED, None, p, (Range(p, S.Zero, 1 - s),)),
    ),
)
_FLOORED = Rows((Range(floor, S.Zero, oo, open_below=True),), (TokenClass("token", Role.REJECTED, None, p, (_ANY,)),))
_MANY = Rows(
    (Range(k, S.One, oo, integer=True), Range(tau, S.Zero, S.One)),
    (
        TokenClass("accepted", Role.REJECTED, k + 1, p, (Range(p, tau, S.One),)),
        TokenClass("other", Role.REJECTED, None, p, (_ANY,)),
    ),
)
_above_power = log(s) - _entropy_power(floor)
_without_floor = log(s) - s * log(s) - (1 - s) * log(1 - s)

_RANK_STEP = Step(
    "absolute(tau) implies top-m(k) for (k+1) tau > 1, strict greedy at k = 1: k + 1 tokens would exceed mass 1.",
    SumAtLeast(
        _MANY,
        {},
        (k + 1) * tau - 1,
        SumProof(mass=-S.One, constants={"accepted": tau}, slack={"accepted": Evident(p - tau)}, rest=NOTHING),
    ),
    "their mass is at most 1",
)
_TYPICAL_STEP = Step(
    "multiplicative(alpha) implies typical(eps, delta) for alpha >= delta: p_x >= alpha p_1 >= delta exp(-H).",
    AtLeast(
        p,
        delta * entropy_power,
        (
            _FACTOR,
            Range(top, S.Zero, S.One, open_below=True),
            Range(entropy_power, S.Zero, top),
            Range(delta, S.Zero, alpha),
            Range(p, alpha * top, S.One),
        ),
        Evident((p - alpha * top) + alpha * (top - entropy_power) + entropy_power * (alpha - delta)),
    ),
    "exp(-H) <= p_1",
)
_CONCENTRATED_STEP = Step(
    "Beside a token of probability s, exp(-H_f) <= (s+f)^s (1-s+f)^(1-s).",
    SumAtLeast(
        _BESIDE,
        {"the token": -s * log(s + floor), "token": -p * log(p + floor)},
        -_entropy_power(floor),
        SumProof(
            mass=-log(1 - s + floor),
            constants={"the token": s * log(1 - s + floor) - s * log(s + floor)},
            slack={"the token": NOTHING, "token": Evident(p * log((1 - s + floor) / (p + floor)))},
            rest=NOTHING,
        ),
    ),
    "no other token exceeds 1 - s",
)
_CONCAVE_STEP = Step(
    "ln s minus the logarithm of that bound is concave: on an interval of s its sign is decided at the ends.",
    AtLeast(
        -diff(_above_power, s, 2),
        S.Zero,
        (Range(s, S.Zero, S.One, open_below=True, open_above=True), _FLOOR),
        Evident(
            1 / s**2 + 1 / (s + floor) + floor / (s + floor) ** 2 + 1 / (1 - s + floor) + floor / (1 - s + floor) ** 2
        ),
    ),
    "its second derivative is negative",
)
_RISING_STEP = Step(
    "Without floor it rises up to s = 1/2, so no token above epsilon lies below delta exp(-H) if epsilon does not.",
    AtLeast(
        diff(_without_floor, s),
        S.Zero,
        (Range(s, S.Zero, S.Half, open_below=True),),
        Evident(log((1 - s) / s) + 1 / s),
    ),
    "its slope is ln((1-s)/s) + 1/s",
)
_LARGE_STEP = Step(
    "For s >= 1/2 it is nonnegative: such a token has s >= exp(-H) > delta exp(-H).",
    AtLeast(_without_floor, S.Zero, (Range(s, S.Half, S.One, open_above=True),), Evident((1 - s) * log(s / (1 - s)))),
    "ln s >= ln(1 - s)",
)
_LEAST_STEP = Step(
    "With a floor, exp(-H_f) >= f, so typical_floor implies absolute(min(eps, delta f)), "
    "and entropy_power absolute(min(eps, f^alpha)).",
    SumAtLeast(
        _FLOORED,
        {"token": p * log(p + floor)},
        log(floor),
        SumProof(mass=log(floor), slack={"token": Evident(p * log(1 + p / floor))}, rest=NOTHING),
    ),
    "ln(p + f) >= ln f",
)

_STEPS = (
    _RANK_STEP,
    _TYPICAL_STEP,
    _CONCENTRATED_STEP,
    _CONCAVE_STEP,
    _RISING_STEP,
    _LARGE_STEP,
    _LEAST_STEP,
)

T6 = Theorem(
    name="T6",
    title="Order between rules",
    statement=(
        "More accepted tokens or more candidates never lower C. additive((1-alpha)/(1+alpha)) accepts all that "
        "multiplicative(alpha) does; additive(1-2 tau) and multiplicative(tau/(1-tau)) all that absolute(tau) does; "
        "and typical(eps, delta) with delta < 1 all that multiplicative(delta) does, since exp(-H) <= p_1."
    ),
    hypotheses=("x is an accepted token other than the first, so p_1 + p_x <= 1",),
    derivation=_STEPS,
    conclusions=(
        AtLeast(
            (1 - alpha) / (1 + alpha),
            top - p,
            (_FACTOR, Range(top, S.Zero, 1 / (1 + alpha), open_below=True), Range(p, alpha * top, S.One)),
            Evident((p - alpha * top) + (1 - alpha) * (1 / (1 + alpha) - top)),
        ),
        AtLeast(1 - 2 * tau, top - p, _SECOND_OF_TWO, Evident((1 - p - top) + 2 * (p - tau))),
        AtLeast(
            p,
            tau / (1 - tau) * top,
            _SECOND_OF_TWO,
            Evident(((p - tau) + tau * (1 - p - top)) / (1 - tau)),
        ),
        SumAtLeast(
            _ROW,
            {"token": -p * log(p)},
            -log(top),
            SumProof(mass=-log(top), slack={"token": Evident(p * log(top / p))}, rest=NOTHING),
        ),
    ),
    worked_points=(
        WorkedRow(("1/2", "3/10", "1/5"), 1, 1, log(Rational(5, 4)) / 2 + Rational(3, 10) * log(Rational(3, 4))),
        WorkedRow(
            ("1/2", "3/10", "1/5"), 2, 1, log(Rational(10, 7)) / 2 + log(Rational(4, 7)) / 5, "more accepted: larger"
        ),
        WorkedRow(
            ("1/2", "3/10", "1/5"),
            1,
            2,
            log(Rational(3, 2)) / 2 + Rational(3, 10) * log(Rational(9, 10)) + log(Rational(3, 5)) / 5,
            "more candidates: larger",
        ),
    ),
    formal=("T6_order", "T6_typical_contains_multiplicative", "T6_inclusions", "T6_rank", "T6_entropy_power"),
)

_TO_ADDITIVE, _ABSOLUTE_TO_ADDITIVE, _ABSOLUTE_TO_MULTIPLICATIVE, _ENTROPY = (
    f"conclusion {i}" for i in range(1, len(T6.conclusions) + 1)
)


def _steps(*used: Step) -> tuple[str, ...]:
    return tuple(f"step {_STEPS.index(step) + 1}" for step in used)


_BY_LEAST = _steps(_LEAST_STEP)
_ARROWS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("strict_greedy", "typical_floor"): (_ENTROPY,),
    ("additive", "typical_floor"): (_ENTROPY,),
    ("top_m", "typical_floor"): (_ENTROPY,),
    ("multiplicative", "additive"): (_TO_ADDITIVE,),
    ("multiplicative", "typical_floor"): (_ENTROPY, *_steps(_TYPICAL_STEP)),
    ("absolute", "strict_greedy"): _steps(_RANK_STEP),
    ("absolute", "mars"): _steps(_RANK_STEP),
    ("absolute", "additive"): (_ABSOLUTE_TO_ADDITIVE,),
    ("absolute", "multiplicative"): (_ABSOLUTE_TO_MULTIPLICATIVE,),
    ("absolute", "top_m"): _steps(_RANK_STEP),
    ("absolute", "typical_floor"): _steps(_CONCENTRATED_STEP, _CONCAVE_STEP),
    ("typical", "typical_floor"): _steps(_CONCENTRATED_STEP, _RISING_STEP, _LARGE_STEP),
    ("typical_floor", "strict_greedy"): (*_BY_LEAST, *_steps(_RANK_STEP)),
    ("typical_floor", "mars"): (*_BY_LEAST, *_steps(_RANK_STEP)),
    ("typical_floor", "additive"): (*_BY_LEAST, _ABSOLUTE_TO_ADDITIVE),
    ("typical_floor", "multiplicative"): _BY_LEAST,
    ("typical_floor", "top_m"): (*_BY_LEAST, *_steps(_RANK_STEP)),
    ("typical_floor", "absolute"): _BY_LEAST,
    ("strict_greedy", "entropy_power"): (_ENTROPY,),
    ("additive", "entropy_power"): (_ENTROPY,),
    ("top_m", "entropy_power"): (_ENTROPY,),
    ("absolute", "entropy_power"): _steps(_CONCENTRATED_STEP, _CONCAVE_STEP),
    ("entropy_power", "typical_floor"): (_ENTROPY,),
}

ARROWS: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    _ARROWS
    | {(narrow, "typical"): places for (narrow, wide), places in _ARROWS.items() if wide == "typical_floor"}
    | {("entropy_power", wide): (*_BY_LEAST, *_ARROWS.get(("absolute", wide), ())) for wide in ABSOLUTE.implies}
)
"""`(narrow, wide)` -> the places in T6 that prove the arrow. Pairs that are not here need no inequality: a threshold or
rank of the same kind that falls, or a parameter at which a rule is strict greedy or accepts everything."""
