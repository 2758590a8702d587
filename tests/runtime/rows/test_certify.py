"""The certificate against the exact one, for every rule, at every margin."""

import math
from fractions import Fraction

import mpmath
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from draftcert.numerics import certificate
from draftcert.runtime.rows import certify
from draftcert.theory import RULES, DraftcertError, parse_rule

RULE_TEXTS = (
    "strict_greedy",
    "additive(0)",
    "additive(0.3)",
    "multiplicative(0.1)",
    "multiplicative(0.999)",
    "top_m(3)",
    "top_m(10) & additive(0.6)",
    "top_m(2) | absolute(0.2)",
    "absolute(0.05)",
    "typical(0.09, 0.3)",
    "typical_floor(0.09, 0.3, 0.00001)",
    "mars(0.9)",
)


def probabilities(row):
    """Softmax of the stored logits to 80 digits, as exact fractions: equal logits stay equal."""
    with mpmath.workdps(80):
        top = max(row)
        return [Fraction(str(mpmath.nstr(mpmath.exp(mpmath.mpf(z) - mpmath.mpf(top)), 75))) for z in row]


def exact(row, rule, candidates):
    return certificate(probabilities(row), rule, candidates, 30, logits=row, normalize=True)


LOGIT = st.one_of(
    st.floats(-8, 4, width=16),
    st.sampled_from([0.0, 1.0, 2.0, -torch.inf]),
    st.builds(lambda e: 2.0 + 10.0**-e, st.floats(0, 7)),
    st.floats(-1e4, 1e4, width=32),
)
ROW = st.lists(LOGIT, min_size=2, max_size=12).filter(lambda row: max(row) > -torch.inf)


@settings(max_examples=300, deadline=None)
@given(ROW, st.sampled_from(RULE_TEXTS), st.integers(1, 4), st.sampled_from([torch.float32, torch.float64]))
def test_sound_and_accurate_against_the_exact_certificate(backend, row, text, candidates, dtype):
    candidates = min(candidates, len(row) - 1)
    logits = torch.tensor(row, dtype=dtype)
    rule = parse_rule(text)
    # The ratio of raw logits is what the deployed rule compares; it exists for finite ones and a maximum other than 0.
    assume(not rule.needs_logits or (max(row) != 0 and min(row) > -math.inf))
    true = exact(logits.tolist(), rule, candidates)
    sound = certify(logits, rule, candidates)
    tolerance = 1e-5 if backend == "kernel" and dtype == torch.float32 else 1e-11
    assert sound.value.item() <= true.upper
    assert sound.accepted.item() <= len(true.accepted)
    if sound.exact:
        assert sound.accepted.item() == len(true.accepted)
        if true.level is None or true.value == 0:
            assert sound.value.item() == true.value
        else:
            assert abs(sound.value.item() / true.value - 1) < tolerance
            assert abs(sound.level.item() / float(true.level) - 1) < tolerance


@pytest.mark.parametrize("family", RULES.values(), ids=lambda family: family.name)
def test_worked_points_of_every_rule(backend, family):
    for point in family.worked_points:
        if len(point.probabilities) <= point.candidates or point.logit_ratio is not None:
            continue
        logits = torch.tensor([float(Fraction(p)) for p in point.probabilities], dtype=torch.float64).log()
        result = certify(logits, family(*point.arguments), point.candidates)
        if result.accepted.item() == len(point.accepted):
            assert result.value.item() == pytest.approx(float(point.certificate), rel=1e-12), point
        else:
            # A token that lies exactly on the threshold is left out, as its logarithm is not exactly there.
            last = float(Fraction(point.probabilities[point.accepted[-1]]))
            assert result.accepted.item() < len(point.accepted), point
            assert result.threshold.item() == pytest.approx(last, rel=1e-12), point
            assert result.value.item() <= float(point.certificate), point


@pytest.mark.parametrize("exponent", range(1, 31))
def test_any_margin_that_the_logits_hold(exponent):
    margin = 10.0**-exponent
    value = certify(torch.tensor([0.0, margin], dtype=torch.float64), "strict_greedy", sound=False).value.item()
    with mpmath.workdps(100):
        tanh = mpmath.tanh(mpmath.mpf(margin) / 2)
        true = ((1 + tanh) * mpmath.log(1 + tanh) + (1 - tanh) * mpmath.log(1 - tanh)) / 2
    assert value == pytest.approx(float(true), rel=1e-14)


def test_ties_in_the_logits_are_ties_and_ties_of_bfloat16_probabilities_are_not(backend):
    # 16 apart is below bfloat16's resolution of probabilities near 1, and above that of the logits.
    logits = torch.tensor([40.0, 40.25, 40.25, 24.0], dtype=torch.bfloat16)
    result = certify(logits, "additive(0)")
    assert result.accepted.item() == 2
    assert result.exact
    assert certify(logits, "strict_greedy").value.item() == 0


def test_the_second_pass_settles_flat_rows():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(6, 400, generator=generator) * torch.tensor([[0.01], [0.1], [1.0], [3.0], [10.0], [0.0]])
    for rule in ("multiplicative(0.1)", "typical(0.09, 0.3)", "top_m(30)", "absolute(0.001)"):
        wide = certify(logits, rule, 3, k=400)
        narrow = certify(logits, rule, 3, k=2)
        assert torch.equal(narrow.value, wide.value)
        assert torch.equal(narrow.accepted, wide.accepted)
        assert bool((wide.passes == 1).all())
        expected = narrow.accepted + 3 > 2 + 3 if rule != "top_m(30)" else torch.zeros(6, dtype=torch.bool)
        assert torch.equal(narrow.passes == 2, expected), rule


@pytest.mark.parametrize("temperature", [0.25, 0.7, 3.0])
def test_temperature_divides_the_logits(backend, temperature):
    logits = torch.randn(5, 50, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    draft = logits + 0.1 * torch.randn(5, 50, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    for rule in ("strict_greedy", "additive(0.1)", "typical(0.09, 0.3)"):
        here = certify(logits, rule, 2, draft, temperature)
        there = certify(logits / temperature, rule, 2, draft / temperature)
        torch.testing.assert_close(here.value, there.value, rtol=1e-11, atol=0)
        torch.testing.assert_close(here.kl, there.kl, rtol=1e-9, atol=0)
        assert torch.equal(here.accepted, there.accepted)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_divergence_is_rounded_up_by_little(backend, data):
    size = data.draw(st.integers(2, 10))
    row = st.lists(LOGIT, min_size=size, max_size=size).filter(lambda row: max(row) > -torch.inf)
    target, draft = data.draw(row), data.draw(row)
    given_target, given_draft = torch.tensor(target), torch.tensor(draft)
    result = certify(given_target, "strict_greedy", draft_logits=given_draft)
    assert result.kl is not None
    assert result.certified is not None
    tolerance = mpmath.mpf("1e-3" if backend == "kernel" else "1e-12")
    with mpmath.workdps(60):
        p, q = (
            [mpmath.exp(mpmath.mpf(z) - max(row)) for z in row] for row in (given_target.tolist(), given_draft.tolist())
        )
        p, q = [x / mpmath.fsum(p) for x in p], [x / mpmath.fsum(q) for x in q]
        terms = [mpmath.inf if y == 0 else x * mpmath.log(x / y) for x, y in zip(p, q, strict=True) if x > 0]
        true = mpmath.fsum(terms) if mpmath.inf not in terms else mpmath.inf
        # At most the rounding of 50 digits below.
        assert result.kl.item() >= true * (1 - mpmath.mpf(10) ** -40) - mpmath.mpf(10) ** -40
        if true < mpmath.inf:
            assert result.kl.item() - true <= tolerance * (1 + true)
        assert not (result.certified.item() and true >= result.value.item())


def test_divergence_is_finite_where_the_draft_probability_underflows(backend):
    result = certify(torch.tensor([0.0, 0.0]), "strict_greedy", draft_logits=torch.tensor([0.0, -2000.0]))
    assert result.kl is not None
    assert result.kl.item() == pytest.approx(1000 - math.log(2), rel=1e-4)
    masked = certify(torch.tensor([0.0, 0.0]), "strict_greedy", draft_logits=torch.tensor([0.0, -torch.inf]))
    assert masked.kl is not None
    assert masked.kl.item() == torch.inf
    assert not masked.certified


def test_equal_logits_are_certified_unless_the_target_ties(backend):
    logits = torch.tensor([[1.0, 0.5, -torch.inf], [1.0, 1.0, 0.0]])
    result = certify(logits, "strict_greedy", draft_logits=logits)
    assert result.certified is not None
    assert result.certified.tolist() == [True, False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"candidates": 0}, r"candidates = 0 lies outside 1..3"),
        ({"candidates": 4}, r"candidates = 4 lies outside 1..3"),
        ({"temperature": 0.0}, "temperature = 0.0"),
        ({"temperature": -1.0}, "temperature = -1.0"),
        ({"temperature": math.nan}, "temperature = nan"),
        ({"rule": "nonsense"}, "no rule is called 'nonsense'"),
        ({"draft_logits": torch.zeros(2, 5)}, r"draft_logits of shape \(2, 5\)"),
        (
            {"draft_logits": torch.tensor([[0.0] * 4, [math.nan] * 4])},
            r"draft_logits\[1\]: the logit of token 0 is nan",
        ),
        ({"draft_logits": torch.zeros(2, 4, device="meta")}, "draft_logits on meta"),
        ({"k": 0}, "k = 0"),
    ],
)
def test_errors_name_the_value(backend, arguments, message):
    with pytest.raises(DraftcertError, match=message):
        certify(**({"target_logits": torch.zeros(2, 4), "rule": "strict_greedy"} | arguments))


def test_nothing_left_to_reject():
    with pytest.raises(DraftcertError, match=r"candidates = 1 lies outside 1..0"):
        certify(torch.zeros(3, 1), "strict_greedy")


@pytest.mark.parametrize("sound", [True, False])
def test_that_every_token_is_accepted_is_decided_beyond_the_tokens_kept(backend, sound):
    # p_(1) - 0.3 < 0: the bound of the gap is infinite, which an enclosure just misses from below.
    result = certify(torch.zeros(2, 40), "additive(0.3)", k=1, sound=sound)
    assert result.exact.tolist() == [True, True]
    assert result.accepted.tolist() == [40, 40]
    assert result.value.tolist() == [math.inf, math.inf]
