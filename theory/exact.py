"""Accepted tokens and certificates of small rows in exact arithmetic: what worked points are checked with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

import mpmath
import sympy
from sympy.logic.boolalg import Boolean

from .conditions import Condition, RankCondition, RowCondition, fold_conditions
from .errors import Argument, DraftcertError
from .numbers import bounded, exact_number
from .pool import select_pool
from .statistics import LOGIT_RATIO, TOP, Entropy


def rational(value: Any, what: str) -> sympy.Rational:
    """An exact number from an int, float (the decimal it prints as), Fraction or text."""
    if isinstance(value, (int, Fraction, sympy.Rational)):  # these may be too long to be written
        exact = bounded(Fraction(int(value.numerator), int(value.denominator)), what)
    else:
        exact = exact_number(str(value), what)
    return cast("sympy.Rational", sympy.Rational(exact.numerator, exact.denominator))


def exact_row(probabilities: Sequence[Any]) -> list[sympy.Rational]:
    """The probabilities of a row as exact numbers in [0, 1]."""
    row = [rational(value, f"the probability of token {token}") for token, value in enumerate(probabilities)]
    if not row:
        raise DraftcertError("an empty row: a target distribution has at least one token")
    for token, value in enumerate(row):
        if not 0 <= value.p <= value.q:
            raise DraftcertError(f"the probability of token {token} = {value} lies outside [0, 1]")
    return row


def exact_count(
    accepts: Boolean, row: list[sympy.Rational], multiplicities: Sequence[int], logit_ratio: sympy.Rational | None
) -> int:
    """How many tokens of a row a predicate accepts, where each probability may stand for many tokens."""
    groups = sorted(zip(row, multiplicities, strict=True), reverse=True)
    top, size = groups[0][0], sum(multiplicities)

    def evaluate(expression: Any) -> Any:
        if LOGIT_RATIO in expression.free_symbols and logit_ratio is None:
            raise DraftcertError("this rule compares raw logits: give ", Argument("logit_ratio", "z_(2)/z_(1)"))
        return expression.xreplace({TOP: top} if logit_ratio is None else {TOP: top, LOGIT_RATIO: logit_ratio})

    def entropy(floor: sympy.Expr) -> Logarithms:
        return [(-n * p, p + floor) for p, n in groups if p != 0]

    def against(probability: sympy.Rational, threshold: sympy.Expr) -> int:
        # The parts of a minimum or maximum are compared one by one, so sympy need not order them.
        if isinstance(threshold, (sympy.Min, sympy.Max)):
            signs = [against(probability, part) for part in threshold.args]  # type: ignore[arg-type]
            return max(signs) if isinstance(threshold, sympy.Min) else min(signs)
        return compare(probability, evaluate(threshold), entropy)

    def count(condition: Condition) -> int:
        if isinstance(condition, RankCondition):
            return min(int(evaluate(condition.limit)), size)
        if isinstance(condition, RowCondition):
            return size if bool(evaluate(condition.holds)) else 0
        # Groups are in descending order, so the first one that fails ends the accepted set.
        accepted = 0
        for probability, tokens in groups:
            comparison = against(probability, condition.threshold)
            if comparison < 0 or (condition.strict and comparison == 0):
                break
            accepted += tokens
        return accepted

    return fold_conditions(accepts, count, min, max)


Logarithms = list[tuple[sympy.Expr, sympy.Expr]]
"""`[(coefficient, base), ...]`, rationals: the number `sum coefficient * log(base)`."""


def compare(
    number: sympy.Expr, threshold: sympy.Expr, entropy: Callable[[sympy.Expr], Logarithms] | None = None
) -> int:
    """Sign of `number - threshold`, exactly, for thresholds that are rationals or products of rational powers.

    `exp(-Entropy(f))` of an exact row, which `entropy` gives, is such a product. The logarithm of the ratio is then a
    rational combination of logarithms of coprime integers. These are independent over the rationals: it is zero iff
    all its coefficients are, and else enough digits show its sign.

    Raises:
        DraftcertError: the threshold is of another kind. Never a guess.

    >>> compare(sympy.Rational(1, 2), sympy.sqrt(2) / 2)
    -1
    """
    if threshold.is_Rational:
        return bool(number > threshold) - bool(number < threshold)
    if threshold.is_positive:
        if number <= 0:
            return -1
        above = [(sympy.Integer(1), number)] if number.is_Rational else logarithms(sympy.log(number), entropy)
        below = logarithms(sympy.log(threshold), entropy)
        if above is not None and below is not None:
            return sign(above + [(-coefficient, base) for coefficient, base in below])
    raise DraftcertError(f"cannot decide whether {number} reaches the threshold {threshold}")


def logarithms(expression: sympy.Expr, entropy: Callable[[sympy.Expr], Logarithms] | None = None) -> Logarithms | None:
    """An expression as a rational combination of logarithms of rationals; None when it is none."""
    found: Logarithms = []
    for coefficient, factor in _terms(expression):
        if isinstance(factor, Entropy) and entropy is not None:
            found += [(coefficient * weight, base) for weight, base in entropy(factor.args[0])]  # type: ignore[arg-type]
        elif isinstance(factor, sympy.log) and factor.args[0].is_Rational:
            found.append((coefficient, cast("sympy.Expr", factor.args[0])))
        elif coefficient != 0:
            return None
    return found


@lru_cache(maxsize=10_000)
def _terms(expression: sympy.Expr) -> tuple[tuple[Any, Any], ...]:
    """Coefficients and factors; kept, since a threshold is compared with the probabilities of many rows."""
    return tuple(term.as_coeff_Mul() for term in sympy.Add.make_args(sympy.expand_log(expression, force=True)))


def sign(combination: Logarithms) -> int:
    """Sign of the combination, exactly."""
    for digits in (30, 300, 3000):
        with mpmath.workdps(digits):
            terms = [(_mpf(coefficient), mpmath.log(_mpf(base))) for coefficient, base in combination]
            total = mpmath.fsum(coefficient * logarithm for coefficient, logarithm in terms)
            error = mpmath.fsum(abs(coefficient) * (1 + abs(logarithm)) for coefficient, logarithm in terms)
            if abs(total) > error * mpmath.mpf(10) ** (5 - digits):
                return int(mpmath.sign(total))
        if vanishes(combination):
            return 0
    raise DraftcertError("a threshold agrees with a probability to 3000 digits without being equal")


def _mpf(number: Any) -> Any:
    return mpmath.mpf(number.p) / number.q


def vanishes(combination: Logarithms) -> bool:
    """Whether the combination is zero: logarithms of pairwise coprime integers are independent over the rationals.

    No integer is factored into primes, which can take for ever.
    """
    parts = [
        (coefficient, int(n))
        for factor, base in combination
        for coefficient, n in zip((factor, -factor), base.as_numer_denom(), strict=True)
    ]
    for divisor in coprime_base(n for _, n in parts):
        if sum(coefficient * _multiplicity(divisor, n) for coefficient, n in parts) != 0:
            return False
    return True


def coprime_base(numbers: Iterable[int]) -> list[int]:
    """Pairwise coprime integers above 1 of which all the given positive ones are products.

    >>> sorted(coprime_base([12, 18, 1]))
    [2, 3]
    """
    base: list[int] = []
    pending = list(numbers)
    while pending:
        number = pending.pop()
        if number == 1:
            continue
        for place, other in enumerate(base):
            if (shared := math.gcd(number, other)) > 1:
                del base[place]
                pending += [shared, number // shared, other // shared]  # their product is less than before
                break
        else:
            base.append(number)
    return base


def _multiplicity(divisor: int, number: int) -> int:
    count = 0
    while number % divisor == 0:
        number //= divisor
        count += 1
    return count


def exact_certificate(row: Sequence[sympy.Expr], accepted_count: int, candidates: int) -> sympy.Expr:
    """Theorems T1 to T3 on an exact row, as a sympy expression in nats: infinite below `candidates` rejected tokens."""
    ordered = sorted(row, reverse=True)
    accepted, competitors = ordered[:accepted_count], ordered[accepted_count : accepted_count + candidates]
    if len(competitors) < candidates:
        return sympy.oo
    if not accepted:
        return sympy.Integer(0)
    pool = select_pool(accepted, competitors)
    pooled = accepted[: pool.accepted] + competitors[candidates - pool.competitors :]
    return sympy.Add(*(p * sympy.log(p / pool.level) for p in pooled if p != 0))
