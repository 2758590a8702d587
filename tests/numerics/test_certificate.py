import math
import random
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from draftcert.numerics import certificate
from draftcert.theory import RULES, DraftcertError


def mpmath_value(target, accepted, candidates, digits=60):
    """The certificate by definition at the level found by bisection: no pool, no closed form."""
    order = sorted(range(len(target)), key=lambda x: (-target[x], x))
    A, M = order[:accepted], order[accepted : accepted + candidates]
    with mpmath.workdps(digits + 30):
        p = [mpmath.mpf(x.numerator) / x.denominator for x in map(Fraction, target)]
        low, high = mpmath.mpf(0), mpmath.mpf(1)
        for _ in range(int((digits + 30) * 3.4)):
            c = (low + high) / 2
            above, below = sum(max(p[a] - c, 0) for a in A), sum(max(c - p[i], 0) for i in M)
            low, high = (c, high) if above > below else (low, c)
        draft = {a: min(p[a], low) for a in A} | {i: max(p[i], low) for i in M}
        return sum(p[x] * mpmath.log(p[x] / q) for x, q in draft.items() if p[x])


@pytest.mark.parametrize("family", RULES.values(), ids=RULES)
def test_every_worked_point_of_theory(family):
    for point in family.worked_points:
        tokens = len(point.probabilities)
        if point.candidates > tokens - 1:
            continue
        found = certificate(
            point.probabilities, family(*point.arguments), point.candidates, logit_ratio=point.logit_ratio
        )
        assert tuple(sorted(found.accepted)) == point.accepted
        if point.certificate.is_finite:
            with mpmath.workdps(60):
                assert abs(found.value - mpmath.mpf(str(point.certificate.evalf(70)))) < mpmath.mpf("1e-55")
        else:
            assert found.value == mpmath.inf
            assert found.witness is None


def test_traps_of_the_pool():
    assert str(certificate(["0.5", "0.45", "0.05"], "strict_greedy", 2, 12)) == "0.213681095766"
    assert str(certificate(["0.4", "0.35", "0.25"], "additive(0.1)", digits=4)) == "0.01808"


weights = st.lists(st.integers(0, 10**6), min_size=2, max_size=7).filter(any)


@given(weights, st.data())
def test_agrees_with_bisection(weights, data):
    candidates = data.draw(st.integers(1, len(weights) - 1))
    target = [Fraction(w, sum(weights)) for w in weights]
    found = certificate(target, "strict_greedy", candidates, digits=40)
    expected = mpmath_value(target, 1, candidates)
    with mpmath.workdps(60):
        assert found.lower - mpmath.mpf("1e-50") <= expected <= found.upper + mpmath.mpf("1e-50")


@given(weights, st.data())
def test_witness_is_rejected_and_has_the_value(weights, data):
    candidates = data.draw(st.integers(1, len(weights) - 1))
    target = [Fraction(w, sum(weights)) for w in weights]
    found = certificate(target, "strict_greedy", candidates)
    witness = found.witness
    assert witness is not None
    assert sum(witness) == 1
    assert min(witness[x] for x in found.competitors) >= max(witness[x] for x in found.accepted)
    with mpmath.workdps(60):
        kl = mpmath.mpf(0)
        for p, q in zip(target, witness, strict=True):
            if p:
                kl += (
                    mpmath.mpf(p.numerator)
                    / p.denominator
                    * mpmath.log(mpmath.mpf((p / q).numerator) / (p / q).denominator)
                )
        assert abs(kl - found.value) < mpmath.mpf("1e-50")


@pytest.mark.parametrize("exponent", [1, 20, 300, 1000])
def test_near_ties_keep_relative_digits(exponent):
    """phi(g) = g^2/2 + g^4/12 + ...: at g = 1e-300 the value is 1e-600 and all its digits are right."""
    gap = Fraction(1, 10**exponent)
    found = certificate([(1 + gap) / 2, (1 - gap) / 2], "strict_greedy", digits=30)
    with mpmath.workdps(2500):
        g = mpmath.mpf(10) ** -exponent
        phi = ((1 + g) * mpmath.log1p(g) + (1 - g) * mpmath.log1p(-g)) / 2
        assert found.lower <= phi <= found.upper
        assert found.radius < phi * mpmath.mpf("1e-30")


def test_text_is_correctly_rounded_at_every_length():
    with mpmath.workdps(120):
        reference = str(mpmath.nstr(mpmath.log(2), 100, strip_zeros=False))
    for digits in (1, 2, 10, 50, 90):
        text = str(certificate([1, 0], "strict_greedy", digits=digits))
        assert len(text) == digits + 2
        assert abs(Decimal(text) - Decimal(reference)) <= Decimal(1) / 2 / Decimal(10) ** digits


def test_inputs_are_read_exactly():
    third = certificate(["1/3", "2/3"], "strict_greedy").level
    assert third == Fraction(1, 2)
    row = certificate(np.array([0.1, 0.9]), "strict_greedy").row
    assert Fraction(row.weights[0], row.weights[1]) == Fraction(0.1) / Fraction(0.9)
    single = np.array([0.1, 0.9], dtype=np.float32)
    row = certificate(single, "strict_greedy").row
    assert Fraction(row.weights[0], row.weights[1]) == Fraction(float(single[0])) / Fraction(float(single[1]))
    bf16 = torch.tensor([0.1, 0.9], dtype=torch.bfloat16)
    row = certificate(bf16, "strict_greedy").row
    assert Fraction(row.weights[0], row.weights[1]) == Fraction(bf16[0].item()) / Fraction(bf16[1].item())
    mixed = certificate([0.5, Fraction(1, 4), "0.25", Decimal(0)], "strict_greedy").row
    assert mixed.weights == (2, 1, 1, 0)
    subnormal = certificate([1.0, 5e-324], "strict_greedy", digits=20).row
    assert subnormal.weights == (2**1074, 1)


def test_order_breaks_ties_by_lowest_id():
    found = certificate(["0.2", "0.4", "0.4"], "strict_greedy")
    assert found.accepted == (1,)
    assert found.competitors == (2,)
    assert found.value == 0
    assert found.pool == ()
    assert found.witness == (Fraction(1, 5), Fraction(2, 5), Fraction(2, 5))


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([0.5, 0.6], "sum to 1.1"),
        (["1/3", "1/3"], "sum to 2/3, not 1; normalize=True"),
        ([0.5, -0.5, 1.0], "probability 1 is -0.5"),
        (["0.5", "-0.5", "1"], "probability 1 is -1/2"),
        ([math.nan, 1.0], "probability 0 is nan"),
        ([Fraction(1, 2), math.inf], "probability 1 = inf is not a finite number"),
        ([], "empty"),
        ([0.0, 0.0], "at least one must be positive"),
        (["x", 1], "probability 0 = 'x' is not a number"),
        (np.ones((2, 2)), r"shape \(2, 2\)"),
        ("0.5,0.5", "not a sequence"),
        (3, "not a sequence"),
    ],
)
def test_bad_distributions(probabilities, message):
    with pytest.raises(DraftcertError, match=message):
        certificate(probabilities, "strict_greedy")


@pytest.mark.parametrize("normalize", ["no", 1, None, np.array([True, False])])
def test_only_a_truth_value_lets_a_row_be_divided_by_its_sum(normalize):
    with pytest.raises(DraftcertError, match=r"normalize = .*: give True or False"):
        certificate([1, 2], "strict_greedy", normalize=normalize)


@pytest.mark.parametrize("candidates", [0, -1, 3, 1.0, True])
def test_bad_candidates(candidates):
    with pytest.raises(DraftcertError, match="candidates ="):
        certificate([0.5, 0.3, 0.2], "strict_greedy", candidates)


def test_sum_tolerance_is_that_of_the_type():
    rounded = np.random.default_rng(0).dirichlet(np.ones(50)).astype(np.float32)
    assert abs(float(sum(map(Fraction, rounded.tolist()))) - 1) > 0
    certificate(rounded, "strict_greedy")
    with pytest.raises(DraftcertError, match="normalize=True"):
        certificate([0.5, 0.5 - 1e-13], "strict_greedy")
    certificate([0.5, 0.5 - 1e-13], "strict_greedy", normalize=True)
    with pytest.raises(DraftcertError, match="normalize=True"):
        certificate(["0.5", "0.4999999999999999"], "strict_greedy")


def test_rules_on_logits_need_them():
    with pytest.raises(DraftcertError, match="logit_ratio"):
        certificate([0.5, 0.3, 0.2], "mars(0.9)")
    assert certificate([0.5, 0.3, 0.2], "mars(0.9)", logit_ratio="0.95").accepted == (0, 1)
    assert certificate([0.5, 0.3, 0.2], "mars(0.9)", logits=[1.0, 0.5, 0.1]).accepted == (0,)


def test_thresholds_exactly_on_a_token():
    """exp(-H) of (1/2, 1/8 x 4) is exactly 1/4: half of it lies on the four tokens, and the inequality is strict."""
    row = ["1/2", *["1/8"] * 4]
    assert len(certificate(row, "typical(1, 1/2)").accepted) == 1
    tiny = Fraction(1, 10**400)
    assert len(certificate(row, f"typical(1, {Fraction(1, 2) - tiny})").accepted) == 5
    uniform = [Fraction(1, 1000)] * 1000
    assert certificate(uniform, "typical(1, 1)").accepted == ()
    assert certificate(uniform, "typical(1, 1)").value == 0
    assert certificate(uniform, f"typical(1, {1 - tiny})").value == mpmath.inf


def test_large_vocabulary():
    rng = np.random.default_rng(1)
    logits = rng.standard_t(4, 262_144) * 2
    scores = np.exp(logits - logits.max())
    found = certificate(scores / scores.sum(), "multiplicative(0.001)", 64)
    assert found.radius < found.value * mpmath.mpf("1e-50")
    order = sorted(range(len(scores)), key=lambda x: -scores[x])
    assert found.competitors == tuple(order[len(found.accepted) :][:64])


def test_more_accepted_or_more_candidates_never_lower_it():
    draw = random.Random(0)
    for _ in range(30):
        target = [Fraction(w, 1) for w in (draw.randint(0, 30) for _ in range(6))]
        target[0] += 1
        target = [w / sum(target) for w in target]
        by_rank = [[certificate(target, f"top_m({k})", m, 20).value for k in (1, 2, 3)] for m in (1, 2, 3)]
        assert all(row == sorted(row) for row in by_rank)
        assert all(list(column) == sorted(column) for column in zip(*by_rank, strict=True))
