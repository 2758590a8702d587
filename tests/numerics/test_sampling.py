"""Judged from outside: by grids and searches over pairs, by all subsets of a row, and by a convex solver."""

import math
import random
from fractions import Fraction
from itertools import chain, combinations
from typing import Any

import cvxpy as cp
import mpmath
import numpy as np
import pytest
import sympy
from flint import arb

from draftcert.numerics import kl_for_sampling_acceptance, sampling_acceptance, threshold_acceptance
from draftcert.theory import DraftcertError

LENIENCES = (1.0, 2 / 3, 0.5, 0.25, 0.01)


def coins(s, b):
    """KL of two coins, on arrays."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(s > 0, s * np.log(s / b), 0)
        return first + np.where(s < 1, (1 - s) * np.log((1 - s) / (1 - b)), 0)


def kl_of(p, q):
    return float(sum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0))


def accepted(p, q, lenience):
    return float(np.minimum(q, p / lenience).sum())


@pytest.mark.parametrize(
    ("kl", "lenience", "rejected"),
    [
        ("0.05", 1, 0.15767),
        ("0.3", 1, 0.38070),
        ("0.05", "1/2", 0.05878),
        ("0.3", "1/2", 0.27955),
        ("0.05", "2/3", 0.07419),
        ("0.3", "2/3", 0.30587),
        ("0.05", "1/4", 0.04955),
        ("0.3", "1/4", 0.26036),
    ],
)
def test_known_figures(kl, lenience, rejected):
    assert round(1 - float(sampling_acceptance(kl, lenience)), 5) == rejected


@pytest.mark.parametrize("t", [0.2, 0.7, 1.5, 3])
def test_the_curve_of_fedotov_harremoes_and_topsoe(t):
    with mpmath.workdps(60):
        t = mpmath.mpf(t)
        variation = t / 2 * (1 - (mpmath.coth(t) - 1 / t) ** 2)
        kl = mpmath.log(t / mpmath.sinh(t)) + t * mpmath.coth(t) - t**2 / mpmath.sinh(t) ** 2
        assert mpmath.almosteq(sampling_acceptance(kl).value, 1 - variation, rel_eps=mpmath.mpf(10) ** -48)


@pytest.mark.parametrize("lenience", LENIENCES)
@pytest.mark.parametrize("kl", [0.001, 0.05, 0.3, 1.5, 5.0])
def test_a_grid_of_two_coins(kl, lenience):
    s, b = np.meshgrid(np.linspace(0, 1, 1501), np.linspace(0, 1, 1501)[1:-1])
    allowed = np.where(coins(s, b) <= kl, b - s / lenience, 0)
    least = float(sampling_acceptance(kl, lenience))
    assert 0 <= 1 - allowed.max() - least < 0.01


@pytest.mark.parametrize("lenience", LENIENCES)
def test_no_pair_of_four_tokens_is_accepted_less_often(lenience):
    source = np.random.default_rng(0)
    for _ in range(60):
        p, q = source.dirichlet([0.4] * 4, 2)
        kl = kl_of(p, q)
        assert accepted(p, q, lenience) >= float(sampling_acceptance(kl, lenience, digits=20)) - 1e-12
        # The mean over contexts is at least what the mean of KL guarantees.
        rows = source.dirichlet([0.4] * 3, (8, 2))
        mean = math.fsum(kl_of(*pair) for pair in rows) / len(rows)
        share = math.fsum(accepted(target, draft, lenience) for target, draft in rows) / len(rows)
        assert share >= float(sampling_acceptance(mean, lenience, digits=20)) - 1e-12


@pytest.mark.parametrize("row", [None, ["0.9", "0.1"]])
@pytest.mark.parametrize("kl", ["1e-140", "1e-30", "1e-5"])
def test_no_acceptance_is_above_one(kl, row):
    assert sampling_acceptance(kl, probabilities=row, digits=5).upper <= 1


def test_concave_rejection():
    at = [float(sampling_acceptance(Fraction(k, 8), "1/2", digits=20)) for k in range(1, 24)]
    assert all(low + high >= 2 * middle for low, middle, high in zip(at, at[1:], at[2:], strict=False))
    assert at == sorted(at, reverse=True)


@pytest.mark.parametrize("lenience", [1, "9/10", "1/3", "1e-6", Fraction(10**30 - 1, 10**30)])
@pytest.mark.parametrize("acceptance", ["1e-60", "1e-6", "0.2", "0.5", "0.99", Fraction(10**40 - 1, 10**40)])
def test_inverse(acceptance, lenience):
    found = kl_for_sampling_acceptance(acceptance, lenience, digits=60)
    hair = mpmath.mpf(10) ** -9
    with mpmath.workprec(1000):
        share = mpmath.mpf(Fraction(acceptance).numerator) / Fraction(acceptance).denominator
        assert sampling_acceptance(found.lower * (1 - hair), lenience, digits=120).lower > share
        assert sampling_acceptance(found.upper * (1 + hair), lenience, digits=120).upper < share


def all_sets(tokens):
    return chain.from_iterable(combinations(range(tokens), size) for size in range(1, tokens))


def by_mass(s, kl, lenience):
    """The least acceptance if tokens of this mass are drafted too often, by bisection."""
    low, high = s, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        inside = middle < 1 and float(coins(np.array(s), np.array(middle))) <= kl
        low, high = (middle, high) if inside else (low, middle)
    return min(1.0, 1 - low + s / lenience)


def by_all_sets(p, kl, lenience):
    """The least acceptance for a row, over every set of its tokens."""
    return min(by_mass(sum(p[x] for x in chosen), kl, lenience) for chosen in all_sets(len(p)))


ROWS = ([0.9, 0.1], [0.5, 0.25, 0.25], [0.4, 0.35, 0.25, 0.0], [0.97, 0.01, 0.01, 0.01], [0.2] * 5, [1.0, 0.0])


@pytest.mark.parametrize("lenience", [1.0, 0.5, 0.125])
@pytest.mark.parametrize("kl", [0.001, 0.05, 0.5, 3.0])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_row_by_all_its_sets(row, kl, lenience):
    found = sampling_acceptance(kl, lenience, probabilities=row)
    assert abs(float(found) - by_all_sets(row, kl, lenience)) < 1e-9
    assert found.lower >= sampling_acceptance(kl, lenience).lower
    if float(found) < 1 - 1e-9:
        back = kl_for_sampling_acceptance(found.value, lenience, probabilities=row, digits=30)
        assert abs(float(back) - kl) < 1e-9


def test_a_row_by_a_convex_solver():
    p, kl, lenience = np.array([0.45, 0.3, 0.15, 0.1]), 0.2, 0.8
    least = 1.0
    for chosen in all_sets(4):
        q = cp.Variable(4)
        limits: list[Any] = [cp.sum(cp.rel_entr(p, q)) <= kl, cp.sum(q) == 1]
        most: Any = cp.Problem(cp.Maximize(cp.sum(q[list(chosen)])), limits).solve(solver="CLARABEL")
        least = min(least, 1 - most + p[list(chosen)].sum() / lenience)
    assert abs(least - float(sampling_acceptance(kl, lenience, probabilities=p))) < 1e-6


def test_a_large_row_says_how_many_digits_are_certain():
    p = np.random.default_rng(1).dirichlet([1.0] * 300)
    found = sampling_acceptance("0.05", probabilities=p)
    assert 4 <= found.digits < 50
    assert str(found) == mpmath.nstr(found.upper, found.digits, strip_zeros=False)
    assert float(sampling_acceptance("0.05")) <= float(found.lower) <= float(found.upper)
    back = kl_for_sampling_acceptance("0.8", probabilities=p)
    assert float(kl_for_sampling_acceptance("0.8")) <= float(back.lower) <= float(back.upper)
    assert back.upper - back.lower < 1e-8
    # Here no set is light enough to be drafted too often by so much.
    assert kl_for_sampling_acceptance("0.001", probabilities=["1/30"] * 30).ball == arb("inf")
    # A tail that fills every gap makes all digits certain.
    tail = [0.4, 0.3, 0.2, *(0.1 / 2 ** (k + 1) for k in range(400))]
    assert sampling_acceptance("0.05", probabilities=tail).digits == 50


def test_a_row_with_tiny_tokens_by_all_its_sets():
    """More tokens than are enumerated; the judge groups equal ones."""
    p = ["0.8", "0.1", *["1/300"] * 30]
    found = sampling_acceptance("0.05", probabilities=p, digits=12)
    groups = [first + second + k / 300 for first in (0, 0.8) for second in (0, 0.1) for k in range(31)]
    best = min(by_mass(s, 0.05, 1.0) for s in groups if 0 < s < 1 - 1e-9)
    assert float(found.lower) - 1e-9 <= best <= float(found.upper) + 1e-9
    assert float(found.upper) - float(found.lower) < 1e-3


def test_ends_are_exact():
    for lenience in (1, "1/2", "1e-300"):
        assert sampling_acceptance(0, lenience).ball == 1
        assert sampling_acceptance(math.inf, lenience).ball == 0
        assert sampling_acceptance(sympy.oo, lenience, probabilities=["1/2", "1/2"]).ball == 0
        assert kl_for_sampling_acceptance(1, lenience).ball == 0
        assert float(kl_for_sampling_acceptance(0, lenience)) == math.inf
        assert float(kl_for_sampling_acceptance("1/2", lenience, probabilities=[1])) == math.inf
        assert sampling_acceptance(math.inf, lenience, probabilities=[1]).ball == 1


@pytest.mark.parametrize("lenience", [1, "1/2", "1e-300", Fraction(10**300 - 1, 10**300)])
@pytest.mark.parametrize("kl", ["1e-3000", "1e-20", "40", "99.9", "100.1", "1e6", "1e300"])
def test_far_out(kl, lenience):
    found = sampling_acceptance(kl, lenience, digits=20)
    assert 0 < found.lower <= found.upper
    assert float(found.upper) <= 1
    assert found.upper - found.lower <= found.upper * mpmath.mpf(10) ** -19
    row = sampling_acceptance(
        kl, lenience, probabilities=["1e-50", "0.25", Fraction(3, 4) - Fraction(1, 10**50)], digits=20
    )
    assert row.upper >= found.lower
    assert row.upper - row.lower <= row.upper * mpmath.mpf(10) ** -19


def test_tiny_divergences_to_many_digits():
    """The largest total variation is sqrt(kl/2) to first order."""
    found = sampling_acceptance("1e-40", digits=60)
    with mpmath.workdps(80):
        assert mpmath.almosteq(1 - found.value, mpmath.sqrt(mpmath.mpf("1e-40") / 2), rel_eps=mpmath.mpf(10) ** -19)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sampling_acceptance(-0.1), r"kl = -0\.1"),
        (lambda: sampling_acceptance(1e308), "give infinity for 0"),
        (lambda: sampling_acceptance(-math.inf), "kl = -inf"),
        (lambda: sampling_acceptance(math.nan), "kl = nan"),
        (lambda: sampling_acceptance("x"), "kl = 'x'"),
        (lambda: sampling_acceptance(0.1, 0), "lenience = 0"),
        (lambda: sampling_acceptance(0.1, 1.5), r"lenience = 1\.5"),
        (lambda: sampling_acceptance(0.1, math.nan), "lenience = nan"),
        (lambda: sampling_acceptance(0, -1), "lenience = -1"),
        (lambda: sampling_acceptance(0.1, digits=0), "digits = 0"),
        (lambda: sampling_acceptance(0.1, probabilities=[0.5, 0.6]), "sum to"),
        (lambda: kl_for_sampling_acceptance(-0.1), r"acceptance = -0\.1"),
        (lambda: kl_for_sampling_acceptance(1.1), r"acceptance = 1\.1"),
        (lambda: kl_for_sampling_acceptance(math.nan), "acceptance = nan"),
        (lambda: kl_for_sampling_acceptance(math.inf), "acceptance = inf"),
        (lambda: kl_for_sampling_acceptance(0.5, 2), "lenience = 2"),
        (lambda: threshold_acceptance([0.6, 0.4], -1), "kl = -1"),
        (lambda: threshold_acceptance([0.6, 0.4], 1, 2), "thresholds 2 and 1"),
        (lambda: threshold_acceptance([0.6, 0.4], 1, 1, 0), "thresholds 1 and 0"),
        (lambda: threshold_acceptance([0.6, 0.4], 1, candidates=2), "candidates = 2"),
    ],
)
def test_refused(call, message):
    with pytest.raises(DraftcertError, match=message):
        call()


def as_the_kernel(p, q, single, every, candidates):
    """Share of coins with which one of the drafter's top tokens is accepted, tried in turn as the kernel does."""
    tried = sorted(range(len(q)), key=lambda x: -q[x])[:candidates]
    coins, accepted = np.linspace(0, 1, 2001)[:-1] + 1 / 4000, 0
    for coin in coins:
        total = 0.0
        for x in tried:
            total += p[x]
            if coin <= total / every or p[x] >= single:
                accepted += 1
                break
    return accepted / len(coins)


@pytest.mark.parametrize("candidates", [1, 2])
def test_a_threshold_with_a_coin(candidates):
    source = random.Random(3)
    for _ in range(150):
        weights = [source.randint(1, 20) for _ in range(4)]
        p = [Fraction(w, sum(weights)) for w in weights]
        q = [w * source.uniform(0.5, 2) for w in weights]
        q = [w / sum(q) for w in q]
        single, every = source.choice([1, "1/2"]), source.choice([1, "3/4"])
        bound = threshold_acceptance(p, kl_of(list(map(float, p)), q) + 1e-9, single, every, candidates)
        kernel = as_the_kernel(list(map(float, p)), q, float(Fraction(single)), float(Fraction(every)), candidates)
        assert kernel >= float(bound) - 1e-3


def test_the_least_likely_token_that_can_be_proposed():
    row = ["0.6", "0.3", "0.1"]
    pair = 0.6 * math.log(0.6 / 0.45) + 0.3 * math.log(0.3 / 0.45)
    assert threshold_acceptance(row, pair - 1e-9) == Fraction(3, 5)
    assert threshold_acceptance(row, pair + 1e-9) == Fraction(3, 10)
    assert threshold_acceptance(row, pair + 1e-9, "0.3") == 1
    assert threshold_acceptance(row, math.inf, 1, "1/2") == Fraction(1, 5)
    assert threshold_acceptance(row, 0) == Fraction(3, 5)
    assert threshold_acceptance(["1/2", "1/2"], 0, "1/2") == 1
