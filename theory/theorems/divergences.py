"""B3: the least Renyi divergence, reverse KL and total variation of a rejected draft.

The draft `q` is written with a class's own variables here, and `t` separates it: `q <= t` on accepted tokens, `q >= t`
on competitors. A token that the level moves is accepted above it or a competitor below it; all others are unmoved.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import sympy
from sympy import Expr, Integer, Max, Rational, S, exp, log, oo, symbols

from ..divergences import RENYI, REVERSE_KL, TOTAL_VARIATION, order
from ..formula import Formula
from ..formulas import c, mass, n, p, q, top
from ..functions import Bennett
from ..theorem import (
    AtLeast,
    Claim,
    Establishes,
    Evident,
    Growth,
    Range,
    Role,
    Rows,
    Step,
    SumAtLeast,
    SumEqual,
    SumFact,
    SumProof,
    Theorem,
    TokenClass,
)
from .evidence import NOTHING, above_log

t = symbols("t", positive=True)
norm = symbols("Z", positive=True)
"""Mass of the levelled target, `c` on moved tokens and `p` elsewhere: the nearest rejected draft is that over `Z`."""

_MOVED = ("accepted above the level", "competitor below the level")
_UNMOVED = "unmoved"
_LEVEL = Range(c, S.Zero, S.One, open_below=True)
_NORM = Range(norm, S.Zero, oo, open_below=True)


def _classes(
    probability: Expr, own: sympy.Symbol, level: Expr, draft: sympy.Symbol, threshold: Expr
) -> tuple[TokenClass, ...]:
    """The classes of a row by the ranges of a token's variable and of its draft's."""

    def token(name: str, low: Expr, high: Expr, least: Expr, most: Expr) -> TokenClass:
        return TokenClass(name, Role.REJECTED, None, probability, (Range(own, low, high), Range(draft, least, most)))

    above, below = _MOVED
    return (
        token(above, level, S.One, S.Zero, threshold),
        token(below, S.Zero, level, threshold, S.One),
        token(_UNMOVED, S.Zero, S.One, S.Zero, S.One),
    )


# ---- Renyi -----------------------------------------------------------------------------------------------------

root_p, root_q, root_c, root_t, root_norm = symbols("x y k u z", positive=True)
_ratio = symbols("rho", positive=True)
_Term = TypeVar("_Term", Expr, Evident)


def _levelled(term: _Term, levelled: _Term, moved: tuple[str, ...] = ("moved",)) -> dict[str, _Term]:
    """What a term is for an unmoved token and for a moved one."""
    return {**dict.fromkeys(moved, levelled), _UNMOVED: term}


def _levelled_rows(
    probability: Expr, own: sympy.Symbol, parameters: tuple[Range, ...], *facts: tuple[Expr, Expr]
) -> Rows:
    """Rows in which it does not matter which tokens the level moves: `facts` are sums over these."""
    ranges = (Range(own, S.Zero, S.One),)
    classes = tuple(TokenClass(name, Role.REJECTED, None, probability, ranges) for name in ("moved", _UNMOVED))
    return Rows(parameters, classes, tuple(SumFact({"moved": term}, total) for term, total in facts))


def _value(formula: Formula, renamed: Mapping[sympy.Symbol, Expr]) -> Any:
    return formula.expression.xreplace(renamed)


def renyi(a: Rational) -> tuple[Claim, ...]:
    """The projection for one order a = r/s, in s-th roots so that all powers are whole: `p = x^s`, ..., `Z = z^s`.

    `sum p^a q^(1-a)` is at least `Z^a` on rejected drafts for a > 1, at most `Z^a` for a < 1, and `Z^a` at the levelled
    target. Its terms lie on one side of their tangents at that draft; what is left, `sum (p/w)^a q <= 1` with `w` the
    levelled target, is the level equation.
    """
    r, s = Integer(a.p), Integer(a.q)
    sign = sympy.sign(a - 1)
    x, y, k, u, z = root_p, root_q, root_c, root_t, root_norm
    parameters = (Range(k, S.Zero, S.One, open_below=True), Range(z, S.Zero, oo, open_below=True))
    level, levelled_mass = ((x / k) ** r - 1, S.Zero), (k**s - x**s, z**s - 1)
    drafts = Rows(
        (*parameters, Range(u, S.Zero, S.One)),
        _classes(x**s, x, k, y, u),
        (
            *(SumFact(dict.fromkeys(_MOVED, term), total) for term, total in (level, levelled_mass)),
            SumFact(dict.fromkeys((*_MOVED, _UNMOVED), y**s), S.One),
        ),
    )
    linear, slope = sign * a * z ** (r - s), sign * (a - 1) * z**r

    def above_tangent(levelled: Expr) -> Expr:
        """What the term has over its tangent: nonnegative by a polynomial in the root of q Z/w that touches 0 at 1."""
        own = sympy.factor(sign * (1 - a * _ratio ** (r - s) + (a - 1) * _ratio**r))
        return x**r * y ** (s - r) * own.xreplace({_ratio: y * z / levelled})

    return (
        SumAtLeast(
            drafts,
            dict.fromkeys((*_MOVED, _UNMOVED), sign * x**r * y ** (s - r)),
            sign * z**r,
            SumProof(
                mass=linear,
                facts=(linear * k**s - slope * u**s, linear, -slope),
                slack=_levelled(
                    Evident(above_tangent(x)),
                    Evident(above_tangent(k) + slope * ((x / k) ** r - 1) * (u**s - y**s)),
                    _MOVED,
                ),
                rest=NOTHING,
            ),
        ),
        SumEqual(
            _levelled_rows(x**s, x, parameters, level, levelled_mass),
            _levelled(x**s * z ** (r - s), x**r * (k / z) ** (s - r)),
            z**r,
            SumProof(mass=z ** (r - s), facts=(k**s * z ** (r - s), z ** (r - s))),
        ),
        SumEqual(
            _levelled_rows(x**s, x, parameters, levelled_mass),
            _levelled((x / z) ** s, (k / z) ** s),
            S.One,
            SumProof(mass=z**-s, facts=(z**-s,)),
        ),
    )


def _order_and_norm(a: Rational) -> dict[sympy.Symbol, Expr]:
    return {order: a, mass: 1 + n * c - root_norm**a.q}


_ANY, _DRAFT = Range(p, S.Zero, S.One), Range(q, S.Zero, S.One)
_ORDERS: tuple[Any, ...] = (Rational(1, 2), Rational(2), Rational(3))
_exponent, _log_ratio = symbols("b w", real=True)

B3 = Theorem(
    name="B3",
    title="Renyi divergence of any order",
    statement=(
        "The least Renyi divergence D_a(p||q) of a rejected draft, a > 0 and a != 1, is a/(a-1) ln(1 - S + n c). The "
        "level c solves sum_A (p^a - c^a)_+ = sum_M (c^a - p^a)_+, so it is the power mean of order a of the n tokens "
        "of mass S that it moves. The nearest draft is c on these and p elsewhere, over Z = 1 - S + n c. As a goes to "
        "1 this is KL(p||q). Shown here for a = 1/2, 2 and 3, in the same way for any rational order, and in Coq for "
        "every order."
    ),
    hypotheses=("c > 0 solves the level equation of order a", "Z = 1 - S + n c"),
    derivation=(
        Step(
            "Powers lie above their tangents, for every order: u^b - 1 >= b (u - 1) for b >= 1, with u = e^w.",
            AtLeast(
                exp(_exponent * _log_ratio) - 1,
                _exponent * (exp(_log_ratio) - 1),
                (Range(_log_ratio, -oo, oo), Range(_exponent, S.One, oo)),
                Growth(
                    _exponent,
                    start=NOTHING,
                    slope=Growth(_exponent, start=Evident(S.One * Bennett(exp(_log_ratio) - 1)), slope=Evident()),
                ),
            ),
            "equality at b = 1, where the slope in b is u ln u - u + 1 >= 0, and it is convex in b. With u = p Z/(w q) "
            "and b = a it is the tangent of p^a q^(1-a) for a > 1, with b = 1/a the one for a < 1",
        ),
    ),
    conclusions=tuple(claim for a in _ORDERS for claim in renyi(a)),
    establishes=tuple(Establishes(RENYI, _order_and_norm(a)) for a in _ORDERS),
    formal=("B3_projection", "B3_level_exists", "B3_strict_greedy", "B3_limit"),
)

# ---- infinite order --------------------------------------------------------------------------------------------

_scale = symbols("lambda", positive=True)
_COMPETITORS = Range(n, S.One, oo, integer=True)
_TOP, _COMPETING = Range(top, S.Zero, S.One, open_below=True), Range(mass, S.Zero, S.One)
_ABOVE = Rows(
    (_COMPETITORS, _TOP, _COMPETING, Range(_scale, S.Zero, S.One), Range(t, _scale * top, S.One)),
    (
        TokenClass("competitor", Role.REJECTED, n, p, (_ANY, Range(q, t, S.One))),
        TokenClass("any other", Role.REJECTED, None, p, (_ANY, Range(q, _scale * p, S.One))),
    ),
    (SumFact({"competitor": p}, mass),),
)
_raised = 1 - mass + n * top

B3_INFINITE = Theorem(
    name="B3i",
    title="Renyi divergence of infinite order",
    statement=(
        "The least D_oo(p||q) = max ln(p/q) of a rejected draft is ln(1 - S + m p_(1)), S the mass of the m "
        "competitors: this is B3 for a = oo, where a/(a-1) = 1 and the power mean of the moved tokens becomes the "
        "largest accepted one. The nearest draft is p_(1) on the competitors and p elsewhere, over Z = 1 - S + m "
        "p_(1)."
    ),
    hypotheses=("q >= lambda p for every token: D_oo(p||q) <= -ln lambda", "no competitor exceeds p_(1), accepted"),
    derivation=(),
    conclusions=(
        SumAtLeast(
            _ABOVE,
            {"competitor": q, "any other": q},
            _scale * _raised,
            SumProof(
                mass=_scale,
                facts=(-_scale,),
                constants={"competitor": _scale * top},
                slack={"competitor": Evident((q - t) + (t - _scale * top)), "any other": Evident(q - _scale * p)},
                rest=NOTHING,
            ),
        ),
        SumEqual(
            Rows(
                _ABOVE.parameters[:3],
                (
                    TokenClass("competitor", Role.REJECTED, n, p, (_ANY,)),
                    TokenClass("any other", Role.REJECTED, None, p, (_ANY,)),
                ),
                _ABOVE.facts,
            ),
            {"competitor": top / _raised, "any other": p / _raised},
            S.One,
            SumProof(mass=1 / _raised, facts=(-1 / _raised,), constants={"competitor": top / _raised}),
        ),
    ),
    formal=("B3i_infinite_order",),
)

# ---- reverse KL ------------------------------------------------------------------------------------------------

_LOG_LEVEL, _LEVELLED_MASS = (log(p / c), S.Zero), (c - p, norm - 1)
_REVERSE_DRAFTS = Rows(
    (_LEVEL, _NORM, Range(t, S.Zero, S.One)),
    _classes(p, p, c, q, t),
    (
        *(SumFact(dict.fromkeys(_MOVED, term), total) for term, total in (_LOG_LEVEL, _LEVELLED_MASS)),
        SumFact(dict.fromkeys((*_MOVED, _UNMOVED), q), S.One),
    ),
)

_WITHOUT_ACCEPTED = Rows(
    (Range(norm, S.Zero, S.One, open_below=True),),
    (
        TokenClass("accepted", Role.REJECTED, None, p, (_ANY,)),
        TokenClass("rejected", Role.REJECTED, None, p, (_ANY, _DRAFT)),
    ),
    (SumFact({"accepted": -p}, norm - 1), SumFact({"rejected": q}, S.One)),
)

B3_REVERSE = Theorem(
    name="B3r",
    title="Reverse divergence",
    statement=(
        "The least KL(q||p) of a rejected draft is -ln(1 - S + n c), where c solves sum_A (ln p - ln c)_+ = sum_M (ln "
        "c - ln p)_+, so it is the geometric mean of the n tokens of mass S that it moves. The nearest draft is c on "
        "these and p elsewhere, over Z = 1 - S + n c. With a competitor of probability 0 a draft of finite divergence "
        "vanishes on it, so on all accepted tokens: the value is -ln(1 - p(A)), attained by p on the rejected tokens "
        "over Z = 1 - p(A), and infinite where all with p > 0 are accepted."
    ),
    hypotheses=("accepted tokens and competitors have positive probability", "c > 0 solves the level equation of logs"),
    derivation=(),
    conclusions=(
        SumAtLeast(
            _REVERSE_DRAFTS,
            dict.fromkeys((*_MOVED, _UNMOVED), q * log(q / p)),
            _value(REVERSE_KL, {mass: 1 + n * c - norm}),
            SumProof(
                mass=-1 / norm,
                facts=(-t, -1 / norm, 1 - log(norm)),
                slack=_levelled(
                    Evident(q * above_log(p / (norm * q))),
                    Evident(q * above_log(c / (norm * q)) + (t - q) * log(p / c)),
                    _MOVED,
                ),
                rest=NOTHING,
            ),
        ),
        SumEqual(
            _levelled_rows(p, p, (_LEVEL, _NORM), _LOG_LEVEL, _LEVELLED_MASS),
            _levelled(-p / norm * log(norm), c / norm * log(c / (norm * p))),
            -log(norm),
            SumProof(mass=-log(norm) / norm, facts=(-c / norm, -log(norm) / norm)),
        ),
        SumEqual(
            _levelled_rows(p, p, (_LEVEL, _NORM), _LEVELLED_MASS),
            _levelled(p / norm, c / norm),
            S.One,
            SumProof(mass=1 / norm, facts=(1 / norm,)),
        ),
        SumAtLeast(
            _WITHOUT_ACCEPTED,
            {"rejected": q * log(q / p)},
            -log(norm),
            SumProof(
                mass=-1 / norm,
                facts=(-1 / norm, 1 - log(norm)),
                slack={"rejected": Evident(q * above_log(p / (norm * q))), "accepted": NOTHING},
                rest=NOTHING,
            ),
        ),
        SumEqual(
            Rows(
                _WITHOUT_ACCEPTED.parameters,
                (TokenClass("rejected", Role.REJECTED, None, p, (_ANY,)),),
                (SumFact({"rejected": p}, norm),),
            ),
            {"rejected": p / norm * log(1 / norm)},
            -log(norm),
            SumProof(facts=(-log(norm) / norm,)),
        ),
    ),
    establishes=(Establishes(REVERSE_KL, {mass: 1 + n * c - norm}),),
    formal=("B3_reverse", "B3r_at_zero"),
)

# ---- total variation -------------------------------------------------------------------------------------------

excess = symbols("x", nonnegative=True)
"""A token's own (p - q)_+, or more."""
_SURPLUS = TOTAL_VARIATION.expression
_NUMBER = Range(n, S.One, oo, integer=True)
_MASS = Range(mass, S.Zero, S.One)
_EXCESS, _NO_DEFICIT = Range(excess, Max(S.Zero, p - q), oo), Range(excess, S.Zero, oo)


def _with_excess(name: str, *own: Range, count: Expr | None = None) -> TokenClass:
    return TokenClass(name, Role.REJECTED, count, p, (_ANY, *own))


_LOW_DRAFTS = Rows(
    (_LEVEL, _NUMBER, _MASS, Range(t, S.Zero, c)),
    (_with_excess(_MOVED[0], Range(q, S.Zero, t), _EXCESS, count=n), _with_excess("any other", _NO_DEFICIT)),
    (SumFact({_MOVED[0]: p}, mass),),
)
_HIGH_DRAFTS = Rows(
    (_LEVEL, _NUMBER, _MASS, Range(t, c, S.One)),
    (
        _with_excess(_MOVED[0], _DRAFT, _EXCESS, count=n),
        _with_excess(_MOVED[1], Range(q, t, S.One), _NO_DEFICIT),
        _with_excess(_UNMOVED, _DRAFT, _EXCESS),
    ),
    (
        SumFact({_MOVED[0]: p}, mass),
        SumFact(dict.fromkeys(_MOVED, p - c)),
        SumFact(dict.fromkeys((*_MOVED, _UNMOVED), q), S.One),
    ),
)

B3_TOTAL_VARIATION = Theorem(
    name="B3t",
    title="Total variation",
    statement=(
        "The least total variation sum (p - q)_+ between the target and a rejected draft is sum_A (p_a - c)_+ with the "
        "level c of KL(p||q); the level projection of KL(p||q) attains it."
    ),
    hypotheses=("sum_A (p - c)_+ = sum_M (c - p)_+", "n accepted tokens of mass S lie above the level"),
    derivation=(),
    conclusions=(
        SumAtLeast(
            _LOW_DRAFTS,
            {_MOVED[0]: excess, "any other": excess},
            _SURPLUS,
            SumProof(
                facts=(S.One,),
                constants={_MOVED[0]: -c},
                slack={_MOVED[0]: Evident((excess - p + q) + (t - q) + (c - t))},
                rest=NOTHING,
            ),
        ),
        SumAtLeast(
            _HIGH_DRAFTS,
            dict.fromkeys((*_MOVED, _UNMOVED), excess),
            _SURPLUS,
            SumProof(
                mass=S.One,
                facts=(S.One, -S.One, -S.One),
                constants={_MOVED[0]: -c},
                slack={
                    _MOVED[0]: Evident(excess - p + q),
                    _MOVED[1]: Evident(excess + (q - t) + (t - c)),
                    _UNMOVED: Evident(excess - p + q),
                },
                rest=NOTHING,
            ),
        ),
    ),
    establishes=(Establishes(TOTAL_VARIATION),),
    formal=("B3_total_variation",),
)
