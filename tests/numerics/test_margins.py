import math
import random
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from draftcert.numerics import certificate, margin_bounds
from draftcert.theory import DraftcertError

RULES = (
    "strict_greedy",
    "additive(3/10)",
    "multiplicative(1/10)",
    "multiplicative(2/5)",
    "top_m(2)",
    "top_m(3)",
    "absolute(1/10)",
    "absolute(1/2)",
    "typical(9/100, 3/10)",
    "top_m(3) & additive(3/5)",
    "top_m(2) | multiplicative(2/5)",
)


@pytest.mark.parametrize(
    ("rule", "candidates", "known", "gap", "infimum"),
    [
        *(("strict_greedy", 2, "coverage", gap, value) for gap, value in (("0.05", 0.00188), ("0.9", 0.76429))),
        *(("strict_greedy", 4, "coverage", gap, value) for gap, value in (("0.2", 0.05021), ("0.5", 0.32205))),
        *(("strict_greedy", 8, "coverage", gap, value) for gap, value in (("0.05", 0.00562), ("0.9", 1.67732))),
        *(("additive(0.3)", 1, "top2", g, v) for g, v in (("0.05", 0.0882), ("0.2", 0.066414), ("0.4", 0.082283))),
    ],
)
def test_worked_values(rule, candidates, known, gap, infimum):
    low, _ = margin_bounds(rule, candidates, gap=gap, known=known)
    assert float(low) == pytest.approx(infimum, abs=6e-6)


def targets_with_gap(draw, gap, known_rank, tokens):
    """A random target whose largest probability is exactly `gap` above the one of rank `known_rank`."""
    heights = sorted((Fraction(draw.randint(0, 50) ** draw.choice((1, 2))) for _ in range(tokens)), reverse=True)
    low = heights[known_rank - 1]
    heights[known_rank:] = [min(h, low) for h in heights[known_rank:]]
    # p = s * heights with p_1 set to p_known + gap: solve for s from the total
    rest = sum(heights[1:]) + low
    if not rest:
        return None
    scale = (1 - gap) / rest
    target = [low * scale + gap, *(h * scale for h in heights[1:])]
    return target if target[0] >= max(target[1:]) else None


@pytest.mark.parametrize("rule", RULES)
def test_no_target_crosses_the_bounds(rule):
    draw = random.Random(rule)
    for _ in range(25):
        gap, m, tokens = Fraction(draw.randint(0, 20), 20), draw.randint(1, 3), draw.randint(2, 7)
        target = targets_with_gap(draw, gap, 2, max(tokens, m + 1))
        if target is None:
            continue
        low, high = margin_bounds(rule, m, gap=gap, digits=15)
        value = certificate([*target, *[0] * 6], rule, m, digits=15).value  # zeros: the vocabulary is never too small
        assert low.lower <= value * (1 + mpmath.mpf("1e-14")), (target, m)
        assert value <= high.upper * (1 + mpmath.mpf("1e-14")), (target, m)


def test_no_target_crosses_the_coverage_bounds():
    draw = random.Random(0)
    for _ in range(25):
        m = draw.randint(1, 4)
        gap = Fraction(draw.randint(0, 20), 20)
        target = targets_with_gap(draw, gap, m + 1, m + 1 + draw.randint(0, 3))
        if target is None:
            continue
        low, high = margin_bounds("strict_greedy", m, gap=gap, known="coverage", digits=15)
        value = certificate(target, "strict_greedy", m, digits=15).value
        assert low.lower <= value * (1 + mpmath.mpf("1e-14")), (target, m)
        assert value <= high.upper * (1 + mpmath.mpf("1e-14")), (target, m)


@pytest.mark.parametrize("rule", RULES)
def test_extremal_targets_reach_sharp_bounds(rule):
    """The extremal masses, the rest spread over many tokens, have the bound as certificate or come close to it."""
    for gap in (Fraction(1, 20), Fraction(1, 5), Fraction(7, 10)):
        for m in (1, 2):
            for bound in margin_bounds(rule, m, gap=gap, digits=15):
                if not (bound.sharp and bound.accepted and bound.competitors):
                    continue
                nudge = 0 if bound.attained else Fraction(1, 10**7)
                masses = [*bound.accepted, *(c - nudge if c > nudge else c for c in bound.competitors)]
                tokens = 5_000
                target = [*masses, *[(1 - sum(masses)) / tokens] * tokens]
                value = float(certificate(target, rule, m, digits=15))
                if math.isfinite(value) and not (rule.startswith("typical") and not bound.attained):
                    assert value == pytest.approx(float(bound), abs=5e-3), (gap, m, bound)


def test_bad_arguments():
    options: dict[str, Any]
    for options, message in (
        ({"gap": 1.5}, "gap = 1.5"),
        ({"gap": "x"}, "not a finite number"),
        ({"gap": 0.5, "known": "top3"}, "known = 'top3'"),
        ({"gap": 0.5, "candidates": 0}, "candidates = 0"),
    ):
        with pytest.raises(DraftcertError, match=message):
            margin_bounds("strict_greedy", **options)
    with pytest.raises(DraftcertError, match="coverage"):
        margin_bounds("additive(0.1)", gap=0.5, known="coverage")
    with pytest.raises(DraftcertError, match="no bound is known"):
        margin_bounds("typical_floor(0.09, 0.3, 0.00001)", gap=0.5)


def test_bounds_are_ends_of_each_other():
    low, high = margin_bounds("strict_greedy", 3, gap=1)
    assert str(low) == str(high)
    assert abs(low.value - mpmath.log(4)) < 1e-14
    assert margin_bounds("strict_greedy", gap=0)[0].value == 0
    assert margin_bounds("additive(0.6)", gap=0.1)[0].value == mpmath.inf
