"""Equalities and inequalities on a domain: `signs` reads signs, `logs` decides equalities, `balls` subdivides."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import sympy
from flint import arb

from ...theory.errors import DraftcertError
from ...theory.theorem import Domain, Evidence, Evident, Growth, Subdivision
from .balls import evaluate, precision
from .errors import ProofError
from .logs import LogForm, elementary
from .points import points_of, text_of, value_at
from .rational import Expression
from .signs import NONNEGATIVE, POSITIVE, Signs


@cache
def forms(domain: Domain) -> LogForm:
    """What has been decided on a domain is not decided again."""
    return LogForm(Signs(domain, points_of(domain)))


def decide_equal(difference: Expression, domain: Domain, what: str) -> None:
    """Decide that an expression vanishes inside the domain, exactly, with a second opinion at points."""
    difference = sympy.sympify(difference)
    for point in points_of(domain):
        value = value_at(difference, point)
        if value.is_finite() and not value.contains(0):
            raise ProofError(f"{what}: the sides differ by {value.str(6)}", point)
    if not forms(domain).is_zero(difference):
        raise ProofError(f"{what}: the sides are not seen to be equal; their difference is {difference}")


def equal_inside(difference: Expression, domain: Domain) -> bool:
    """Whether an expression is seen to vanish inside a domain."""
    try:
        decide_equal(difference, domain, "equality")
    except DraftcertError:
        return False
    return True


def decide_at_least(difference: Expression, domain: Domain, by: Evidence, what: str, strict: bool = False) -> None:
    """Decide that an expression is nonnegative on the domain (positive inside when strict)."""
    difference = sympy.sympify(difference)
    for point in points_of(domain):
        value = value_at(difference, point)
        if value < 0:
            raise ProofError(f"{what}: the difference is {value.str(6)}", point)
    if isinstance(by, Evident):
        form = difference if by.form is None else by.form
        if by.form is not None:
            decide_equal(difference - form, domain, f"{what}: the form {form}")
        if forms(domain).signs.bound(form) < (POSITIVE if strict else NONNEGATIVE):
            raise ProofError(f"{what}: the sign of {form} cannot be read off on {text_of(domain)}")
    elif isinstance(by, Growth):
        _grows(difference, domain, by, what, strict)
    elif isinstance(by, Subdivision):
        _subdivide(difference, domain, by.pieces, what)
    else:
        raise ProofError(f"{what}: {by!r} is no evidence")


def _grows(difference: Expression, domain: Domain, by: Growth, what: str, strict: bool) -> None:
    others = tuple(each for each in domain if each.symbol != by.symbol)
    found = [each for each in domain if each.symbol == by.symbol]
    if not found or found[0].integer:
        raise ProofError(f"{what}: {by.symbol} is not a continuous variable of {text_of(domain)}")
    if any(by.symbol in each.lower.free_symbols | each.upper.free_symbols for each in others):
        raise ProofError(f"{what}: {by.symbol} enters the range of another variable, so it does not range freely")
    end = found[0].upper if by.from_above else found[0].lower
    start = forms(domain).at_end(difference, by.symbol, end)
    slope = sympy.diff(elementary(difference), by.symbol) * (-1 if by.from_above else 1)
    decide_at_least(start, others, by.start, f"{what}, at {by.symbol} = {end}")
    decide_at_least(slope, domain, by.slope, f"{what}, its slope in {by.symbol}", strict)


def _subdivide(difference: Expression, domain: Domain, pieces: int, what: str) -> None:
    """Positive on every piece of a subdivision of the unit cube that parametrises the (bounded) domain."""
    if any(each.integer for each in domain):
        raise ProofError(f"{what}: a domain with integers is not subdivided")
    queue = [tuple((Fraction(0), Fraction(1)) for _ in domain)]
    with precision(64):
        for _ in range(pieces):
            if not queue:
                return
            cube = queue.pop()
            if _over(difference, domain, cube) > 0:
                continue
            widest = max(range(len(cube)), key=lambda i: cube[i][1] - cube[i][0])
            low, high = cube[widest]
            middle = (low + high) / 2
            for half in ((low, middle), (middle, high)):
                queue.append((*cube[:widest], half, *cube[widest + 1 :]))
    if queue:
        raise ProofError(f"{what}: {difference} is not seen to be positive after {pieces} pieces")


def _over(difference: Expression, domain: Domain, cube: tuple[tuple[Fraction, Fraction], ...]) -> arb:
    values: dict[sympy.Basic, arb] = {}
    for each, (low, high) in zip(domain, cube, strict=True):
        share = (arb(low.numerator) / low.denominator).union(arb(high.numerator) / high.denominator)
        lower, upper = evaluate(each.lower, values), evaluate(each.upper, values)
        values[each.symbol] = lower + share * (upper - lower)
    return evaluate(difference, values)


def decide_closed_ends(left: Expression, right: Expression, domain: Domain, what: str) -> None:
    """Both sides extend to every end that belongs to the domain, and to the same value there."""
    form = forms(domain)
    for each in domain:
        for end, is_open in ((each.lower, each.open_below), (each.upper, each.open_above)):
            if is_open or each.integer or end.is_infinite or end.has(sympy.Max, sympy.Min):
                continue
            others = tuple(r for r in domain if r != each)
            if any(each.symbol in r.lower.free_symbols | r.upper.free_symbols for r in others):
                continue
            at = f"{what}, at {each.symbol} = {end}"
            try:
                values = [form.at_end(side, each.symbol, end) for side in (left, right)]
            except DraftcertError as error:
                raise ProofError(f"{at}: {error}") from error
            decide_equal(values[0] - values[1], others, at)
