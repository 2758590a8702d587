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


@pytest.mark.parametrize("rule", RULES)
def test_no_target_of_a_vocabulary_crosses_its_bounds(rule):
    """Exactly so many tokens, none added: a target that cannot be rejected counts."""
    draw = random.Random(f"{rule} in few tokens")
    for _ in range(25):
        gap, m = Fraction(draw.randint(0, 20), 20), draw.randint(1, 3)
        tokens = draw.randint(m + 1, 6)
        target = targets_with_gap(draw, gap, 2, tokens)
        if target is None:
            continue
        low, high = margin_bounds(rule, m, gap=gap, vocabulary=tokens, digits=15)
        value = certificate(target, rule, m, digits=15).value
        assert low.lower <= value * (1 + mpmath.mpf("1e-14")), (target, m)
        assert value <= high.upper * (1 + mpmath.mpf("1e-14")), (target, m)


@pytest.mark.parametrize("candidates", [1, 2, 3])
def test_a_known_vocabulary_narrows_the_range(candidates):
    """More tokens, a wider range; in very many, the range over any vocabulary."""
    for rule in RULES:
        wide = margin_bounds(rule, candidates, gap="1/5", digits=15)
        former = None
        for tokens in (candidates + 4, candidates + 5, 50, 10**60):
            low, high = margin_bounds(rule, candidates, gap="1/5", vocabulary=tokens, digits=15)
            assert low.value >= wide[0].value * (1 - mpmath.mpf("1e-14"))
            if former and low.sharp and former[0].sharp:
                assert low.value <= former[0].value * (1 + mpmath.mpf("1e-14"))
            former = low, high
        assert low.value == pytest.approx(wide[0].value, rel=1e-12)
        if mpmath.isfinite(wide[1].value):
            assert high.value == pytest.approx(wide[1].value, rel=1e-12)


def test_worked_values_in_few_tokens():
    """M1: s phi(g/s) with s = g + 2 (1-g)/V; the worked points of M3v and M5v; M7 of four equal others."""
    _, high = margin_bounds("strict_greedy", gap="1/2", vocabulary=8, digits=12)
    s = 0.5 + 2 * 0.5 / 8
    x = 0.5 / s
    assert float(high) == pytest.approx(s * ((1 + x) * math.log(1 + x) + (1 - x) * math.log(1 - x)) / 2)
    assert high.attained
    low, _ = margin_bounds("multiplicative(1/2)", gap="1/6", vocabulary=3)
    assert float(low) == pytest.approx(7 / 15 * math.log(4 / 3) + 7 / 30 * math.log(2 / 3))
    low, _ = margin_bounds("multiplicative(1/2)", gap="1/10", vocabulary=3)
    assert float(low) == pytest.approx(sum(p * math.log(3 * p) for p in (0.44, 0.34, 0.22)))
    assert margin_bounds("additive(1/2)", 2, gap="1/4", vocabulary=3)[0].value == mpmath.inf


def test_typical_is_strict_greedy_where_its_worst_target_is_rejected():
    for m in (1, 2, 3):
        low, _ = margin_bounds("typical(1, 1/2)", m, gap="1/2")
        assert str(low) == str(margin_bounds("strict_greedy", m, gap="1/2")[0])
        assert low.sharp
        assert low.accepted
        assert low.competitors
        assert str(certificate([*low.accepted, *low.competitors], "typical(1, 1/2)", m)) == str(low)
    assert not margin_bounds("typical(1, 1/2)", gap="1/5")[0].sharp


def test_typical_with_delta_one_can_reject_all():
    """A uniform target and a point mass lie exactly on the threshold."""
    assert margin_bounds("typical(1, 1)", gap=0)[0].value == 0
    assert [bound.value for bound in margin_bounds("typical(1, 1)", gap=1)] == [0, 0]
    assert certificate([1, 0], "typical(1, 1)").value == 0
    assert margin_bounds("typical(1/2, 1)", gap=0, vocabulary=3)[0].value == 0
    few = margin_bounds("typical(1/4, 1)", gap=0, vocabulary=3)[0]
    assert few.value <= certificate(["1/2", "1/2", "0"], "typical(1/4, 1)").value


@pytest.mark.parametrize("rule", ["multiplicative(0)", "absolute(0)"])
@pytest.mark.parametrize("vocabulary", [None, 4])
def test_a_threshold_of_zero_accepts_everything(rule, vocabulary):
    assert certificate(["0.6", "0.3", "0.1", "0"], rule, 2).value == mpmath.inf
    for bound in margin_bounds(rule, 2, gap="0.3", vocabulary=vocabulary):
        assert bound.value == mpmath.inf
        assert bound.sharp


def test_bad_arguments():
    options: dict[str, Any]
    for options, message in (
        ({"gap": 1.5}, "gap = 1.5"),
        ({"gap": "x"}, "not a finite number"),
        ({"gap": 0.5, "known": "top3"}, "known = 'top3'"),
        ({"gap": 0.5, "candidates": 0}, "candidates = 0"),
        ({"gap": 0.5, "candidates": 2, "vocabulary": 2}, "vocabulary = 2"),
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
