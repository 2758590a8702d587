"""Every stable form in doubles: as accurate as its arguments allow, and finite, wherever the formula speaks.

That it equals the defining form is proved by `check`; here is what rounding does to it.
"""

import math
import random
from typing import Any

import mpmath
import pytest
import sympy

from draftcert.proofs_check.prover import formula_domain
from draftcert.theory.formula import Formula
from draftcert.theory.formulas import d
from draftcert.theory.theorems import EVERY_FORMULA

UNIT = 2.0**-53
DIGITS = 400
POINTS = 60


def bennett(x: float) -> float:
    """h(x) in doubles, by its series near 0."""
    if abs(x) < 0.1:
        return math.fsum((-x) ** k / (k * (k - 1)) for k in range(2, 24))
    return 1.0 if x == -1 else (1 + x) * math.log1p(x) - x


IN_DOUBLES = {"Bennett": bennett, "log1p": math.log1p, "expm1": math.expm1, "log": math.log, "sqrt": math.sqrt}
IN_DIGITS: dict[str, Any] = {
    "Bennett": lambda x: (1 + x) * mpmath.log(1 + x) - x if x != -1 else mpmath.mpf(1),
    "log1p": lambda x: mpmath.log(1 + x),
    "expm1": lambda x: mpmath.exp(x) - 1,
}


def share(source: random.Random) -> float:
    """Somewhere in a range: often very near its lower end, or near its upper one."""
    kind = source.randrange(3)
    near = 10.0 ** -source.uniform(0, 60 if kind == 0 else 14)
    return near if kind == 0 else 1 - near if kind == 1 else source.random()


def points(formula: Formula) -> list[dict[sympy.Basic, float]]:
    """Doubles in the domain of a formula, the same in every run."""
    source, found = random.Random(formula.name), []
    while len(found) < POINTS:
        point: dict[sympy.Basic, float] = {}
        for each in formula_domain(formula):
            given = {symbol: sympy.Rational(value) for symbol, value in point.items()}
            ends: list[Any] = [end.xreplace(given) for end in (each.lower, each.upper)]
            low = float(ends[0]) if ends[0].is_finite else -30.0
            high = float(ends[1]) if ends[1].is_finite else low + source.choice((1.0, 30.0, 1e9))
            if each.integer:
                point[each.symbol] = float(source.choice((1, 2, 3, 8, 64)))
            elif (value := low + (high - low) * share(source)) and low < value < high:
                point[each.symbol] = value
            else:
                break
        else:
            found.append(point)
    return found


@pytest.mark.parametrize("formula", EVERY_FORMULA.values(), ids=list(EVERY_FORMULA))
def test_the_stable_form_is_accurate_in_doubles(formula: Formula):
    """Off by no more than a few roundings of the arguments, or of the value, would change it."""
    symbols = [argument.symbol for argument in formula.arguments]
    in_doubles = sympy.lambdify(symbols, formula.stable, [IN_DOUBLES, "math"])
    plain: Any = formula.stable.replace(
        lambda part: type(part).__name__ == "Bennett",
        lambda part: (1 + part.args[0]) * sympy.log(1 + part.args[0]) - part.args[0],
    )
    exact = sympy.lambdify(symbols, formula.stable, [IN_DIGITS, "mpmath"])
    slopes = [sympy.lambdify(symbols, sympy.diff(plain, symbol), [IN_DIGITS, "mpmath"]) for symbol in symbols]
    with mpmath.workdps(DIGITS):
        for point in points(formula):
            values = [point[symbol] for symbol in symbols]
            found, at = in_doubles(*values), [mpmath.mpf(value) for value in values]
            assert math.isfinite(found), f"{formula.name} is {found} at {point}"
            true = exact(*at)
            # ln(p/q) is a difference of two logarithms, known to a rounding of 1 at best.
            sizes = [max(1, abs(x)) if symbol == d else abs(x) for symbol, x in zip(symbols, at, strict=True)]
            moved = sum(size * abs(slope(*at)) for size, slope in zip(sizes, slopes, strict=True))
            allowed = 40 * UNIT * (abs(true) + moved)
            assert abs(found - true) <= allowed, f"{formula.name} at {point}: {found}, not {float(true)}"
