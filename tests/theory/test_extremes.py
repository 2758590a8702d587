"""Bounds over targets, against targets: none lies outside, and the families lie on them."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import inf, log
from typing import Any

import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from draftcert.theory import parse_rule
from draftcert.theory.pool import select_pool
from draftcert.theory.theorem import ExactValue, Infimum, LowerBound
from draftcert.theory.theorems import THEOREMS

SLACK = 1e-12
weights = st.lists(st.integers(0, 40), min_size=3, max_size=7).filter(any)
candidates = st.integers(1, 3)


def certificate(row: Sequence[Fraction], accepted: int, m: int) -> float:
    """T3 on an exact row, in floats."""
    ordered = sorted(row, reverse=True)
    if accepted + m > len(row):
        return inf
    competitors = ordered[accepted : accepted + m]
    pool = select_pool(ordered[:accepted], competitors)
    moved = ordered[: pool.accepted] + competitors[m - pool.competitors :]
    return sum(float(p) * log(p / pool.level) for p in moved if p)


def conclusion(theorem: str, kind: type, place: int = 0) -> Callable[..., float]:
    """A concluded value as a function of its symbols, by their printed names."""
    claim: Any = [each for each in THEOREMS[theorem].conclusions if isinstance(each, kind)][place]
    value: Any = claim.value if isinstance(claim, Infimum) else claim.value.total
    symbols = sorted(value.free_symbols, key=str)
    function = sympy.lambdify(symbols, value, "mpmath")
    return lambda **given: float(function(*(given[str(symbol)] for symbol in symbols)))


DUST, ALONE, POOLED = (conclusion("M7s", ExactValue, place) for place in range(3))


def tree_supremum(m: int, vocabulary: int, g: Fraction) -> float:
    spike = ALONE if g * (m + 1) <= m - 1 else POOLED
    families = [spike(m=m, g=g)] if g < 1 else [log(m + 1)]
    return max([*families, *([DUST(m=m, g=g, b=(1 - g) / vocabulary)] if g < 1 else [])])


@settings(deadline=None)
@given(weights, st.integers(2, 4))
def test_no_tree_certificate_exceeds_the_two_families(row: list[int], m: int):
    assume(len(row) > m)
    p = sorted((Fraction(w, sum(row)) for w in row), reverse=True)
    assert certificate(p, 1, m) <= tree_supremum(m, len(p), p[0] - p[1]) + SLACK


@pytest.mark.parametrize("m", [2, 3, 5])
@pytest.mark.parametrize("g", [Fraction(0), Fraction(1, 7), Fraction(3, 5), Fraction(19, 20)])
def test_the_larger_family_attains_it(m: int, g: Fraction):
    vocabulary = 4 * m
    rows = ([(1 + g) / 2, (1 - g) / 2, *[Fraction(0)] * (vocabulary - 2)], [g + (1 - g) / vocabulary])
    rows[1].extend([(1 - g) / vocabulary] * (vocabulary - 1))
    assert max(certificate(row, 1, m) for row in rows) == pytest.approx(tree_supremum(m, vocabulary, g), abs=1e-13)


BOUNDS = {
    (name, kind, place): conclusion(name, kind, place)
    for name, kind, places in (
        ("M7", Infimum, 1),
        ("M3", Infimum, 1),
        ("M5", Infimum, 1),
        ("M3v", Infimum, 2),
        ("M3v", LowerBound, 1),
        ("M3pv", Infimum, 2),
        ("M5v", Infimum, 2),
    )
    for place in range(places)
}


def multiplicative_infimum(m: int, vocabulary: int, g: Fraction, alpha: Fraction) -> float:
    """M3 and M3v, whichever it is."""
    n, fixed = vocabulary - m - 1, 1 + m * alpha
    if g * fixed >= 1 - alpha:
        return BOUNDS["M7", Infimum, 0](m=m, g=g) if g < 1 else log(m + 1)
    if g * (1 + (vocabulary - 1) * alpha) >= 1 - alpha:
        return BOUNDS["M3", Infimum, 0](m=m, g=g, alpha=alpha)
    if not n:
        return inf
    known = {"m": m, "n": n, "alpha": alpha}
    if g * fixed * vocabulary >= m * (1 - alpha):
        return BOUNDS["M3v", Infimum, 0](g=g, **known)
    omega, rho = 1 - g * (fixed + n) / (1 + n * g), float(alpha) ** float(m * alpha / fixed)
    if omega <= rho:
        return BOUNDS["M3v", Infimum, 1](omega=omega, **known)
    return BOUNDS["M3v", LowerBound, 0](omega=rho, **known)


def first_known_infimum(m: int, vocabulary: int, top: Fraction, alpha: Fraction) -> float:
    """M3pv."""
    n, fixed = vocabulary - m - 1, 1 + m * alpha
    if top * (fixed + n) < 1:
        return inf
    return BOUNDS["M3pv", Infimum, int(top * fixed * vocabulary < m + 1)](m=m, n=n, alpha=alpha, p_1=top)


def threshold_infimum(m: int, vocabulary: int, g: Fraction, tau: Fraction) -> float:
    """M5 and M5v, whichever it is."""
    n = vocabulary - m - 1
    if g + (m + 1) * tau >= 1:
        return BOUNDS["M7", Infimum, 0](m=m, g=g) if g < 1 else log(m + 1)
    if g + vocabulary * tau >= 1:
        return BOUNDS["M5", Infimum, 0](m=m, g=g, tau=tau)
    place = int(g * vocabulary < m * (1 - vocabulary * tau))
    return BOUNDS["M5v", Infimum, place](m=m, n=n, g=g, tau=tau) if n else inf


unit = st.sampled_from([Fraction(1, 20), Fraction(1, 5), Fraction(1, 2), Fraction(4, 5)])


@settings(deadline=None, max_examples=200)
@given(weights, candidates, unit)
def test_no_certificate_lies_below_the_infimum_of_its_vocabulary(row: list[int], m: int, parameter: Fraction):
    p = sorted((Fraction(w, sum(row)) for w in row), reverse=True)
    assume(len(p) > m)
    g, size = p[0] - p[1], len(p)
    found = certificate(p, parse_rule(f"multiplicative({parameter})").accepted_count(p), m)
    assert found >= multiplicative_infimum(m, size, g, parameter) - SLACK
    if size > m + 1 and p[0] * (1 + m * parameter) <= 1:
        assert found >= first_known_infimum(m, size, p[0], parameter) - SLACK
    if p[0] >= parameter:
        found = certificate(p, parse_rule(f"absolute({parameter})").accepted_count(p), m)
        assert found >= threshold_infimum(m, size, g, parameter) - SLACK


@pytest.mark.parametrize(("alpha", "m", "n"), [("1/5", 1, 1), ("1/2", 1, 3), ("3/5", 2, 2), ("1/10", 3, 1)])
def test_few_tokens_come_as_close_as_one_likes(alpha: str, m: int, n: int):
    """Competitors a little below alpha p_1, which itself is accepted, in every case of M3v and M3pv."""
    ratio, size = Fraction(alpha), m + n + 1
    rule, near = parse_rule(f"multiplicative({alpha})"), 1 - Fraction(1, 10**9)
    fixed, rho = 1 + m * ratio, float(ratio) ** float(m * ratio / (1 + m * ratio))
    for omega in (near * Fraction(rho), Fraction(rho) * Fraction(9, 10), (fixed / (m + 1)) * Fraction(9, 10), ratio):
        row = [Fraction(1), *[max(omega, ratio)] * n, *[ratio * near] * m]
        p = [x / sum(row) for x in row]
        found = certificate(p, rule.accepted_count(p), m)
        assert rule.accepted_count(p) == n + 1
        assert found == pytest.approx(multiplicative_infimum(m, size, p[0] - p[1], ratio), abs=1e-7)
        assert found == pytest.approx(first_known_infimum(m, size, p[0], ratio), abs=1e-7)
        if omega == near * Fraction(rho):  # attained over all margins
            assert found == pytest.approx(BOUNDS["M3v", LowerBound, 0](m=m, n=n, alpha=ratio, omega=rho), abs=1e-7)


@pytest.mark.parametrize(("tau", "m", "n"), [("1/50", 1, 1), ("1/10", 1, 3), ("1/20", 2, 2)])
def test_few_tokens_at_a_threshold(tau: str, m: int, n: int):
    least = Fraction(tau)
    rule, near = parse_rule(f"absolute({tau})"), 1 - Fraction(1, 10**9)
    for share in (Fraction(0), Fraction(1, 3), Fraction(2, 3), Fraction(9, 10)):
        g = share * (1 - (m + n + 1) * least)
        other = (1 - g - m * least * near) / (n + 1)
        p = [g + other, *[other] * n, *[least * near] * m]
        assert rule.accepted_count(p) == n + 1
        expected = threshold_infimum(m, m + n + 1, g, least)
        assert certificate(p, n + 1, m) == pytest.approx(expected, abs=1e-7)
