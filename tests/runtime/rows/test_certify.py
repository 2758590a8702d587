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
        ({"candidates": 0}, r"candidates = 0: give a whole number from 1 to 3"),
        ({"candidates": 4}, r"candidates = 4: give a whole number from 1 to 3"),
        ({"temperature": 0.0}, "temperature = 0.0"),
        ({"temperature": -1.0}, "temperature = -1.0"),
        ({"temperature": math.nan}, "temperature = nan"),
        (
            {"target_logits": torch.ones(2, 4), "temperature": 5e-324},
            r"target_logits\[0\]: 1.0 over the temperature overflows",
        ),
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
    with pytest.raises(DraftcertError, match=r"candidates = 1: give a whole number from 1 to 0"):
        certify(torch.zeros(3, 1), "strict_greedy")


@pytest.mark.parametrize("sound", [True, False])
def test_that_every_token_is_accepted_is_decided_beyond_the_tokens_kept(backend, sound):
    # p_(1) - 0.3 < 0: the bound of the gap is infinite, which an enclosure just misses from below.
    result = certify(torch.zeros(2, 40), "additive(0.3)", k=1, sound=sound)
    assert result.exact.tolist() == [True, True]
    assert result.accepted.tolist() == [40, 40]
    assert result.value.tolist() == [math.inf, math.inf]


def test_a_strict_rule_with_threshold_0_rejects_tokens_of_probability_0(backend, fork):
    target, draft = torch.tensor([0.0, -torch.inf]), torch.tensor([-1.0, 0.0])
    for rule in ("typical(0, 1)", "typical(1, 0)", "typical_floor(0, 1, 0.1)", fork(0), "top_m(2) & typical(0, 1)"):
        result = certify(target, rule, draft_logits=draft)
        assert (result.accepted.item(), result.exact.item(), bool(result.certified)) == (1, True, False), rule
        assert result.value.item() == pytest.approx(math.log(2), rel=1e-5)
    for rule in ("absolute(0)", "multiplicative(0)", "typical(0, 1) | top_m(2)"):
        result = certify(target, rule, draft_logits=draft)
        assert (result.accepted.item(), result.value.item()) == (2, math.inf), rule
    masked = torch.full((1, 300), -torch.inf)
    masked[0, ::2] = torch.arange(150.0)
    assert certify(masked, "typical(0, 1)").accepted.tolist() == [150]


@pytest.mark.parametrize("huge", [1e15, 1e30, 3e38])
@pytest.mark.parametrize("sound", [True, False])
def test_large_logits_lose_nothing(backend, huge, sound):
    for dtype in (torch.float32, torch.float64):
        result = certify(torch.tensor([huge, 0, 0], dtype=dtype), "additive(0.1)", sound=sound)
        assert (result.accepted.item(), result.exact.item()) == (1, True)
        assert result.value.item() == pytest.approx(math.log(2), rel=1e-5)
        equal = certify(torch.tensor([huge, huge, 0], dtype=dtype), "absolute(0.4)", 1, sound=sound)
        assert equal.accepted.item() == 2


def test_each_row_of_logits_is_padded_as_it_is(backend):
    target, draft = torch.randn(2, 64), torch.randn(2, 60)
    found = certify(target, "strict_greedy", 1, draft, vocab_size=50)
    same = certify(target[:, :50], "strict_greedy", 1, draft[:, :50])
    assert found.kl is not None
    assert same.kl is not None
    assert torch.equal(found.kl, same.kl)
    with pytest.raises(DraftcertError, match=r"\(2, 60\) beside target_logits of \(2, 64\).*vocab_size"):
        certify(target, "strict_greedy", 1, draft)
    with pytest.raises(DraftcertError, match=r"\(1, 50\) beside target_logits of \(2, 50\) within vocab_size = 50"):
        certify(target, "strict_greedy", 1, draft[:1], vocab_size=50)


def test_a_ratio_of_negative_logits_is_not_taken_without_a_word(backend, recwarn):
    logits = torch.tensor([[3.0, 1.0, 0.0], [1.0, 0.5, 0.0]])
    certify(logits, "mars(0.9)")
    certify(logits.log_softmax(-1), "strict_greedy")
    assert not recwarn.list
    with pytest.warns(RuntimeWarning, match="raw logits.*negative"):
        certify(logits.log_softmax(-1), "mars(0.9) & top_m(3)")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_drafter_equal_to_its_target_is_certified_at_any_margin(backend, dtype):
    rows = (
        torch.randn(6, 30_000, generator=torch.Generator().manual_seed(0)) * torch.tensor([[0.01, 0.1, 1, 2, 3, 6]]).T
    )
    rows = rows.to(dtype)
    top = rows.max(-1).values
    rows[:, 7] = torch.nextafter(top, torch.full_like(top, torch.inf))
    result = certify(rows, "strict_greedy", 1, rows)
    assert bool((result.value > 0).all())
    assert result.certified is not None
    assert bool(result.certified.all())


def test_tokens_near_a_threshold_are_settled_in_float64(backend):
    # The entropy of float32 sums is off by about 1e-5, and these tokens lie within 1e-7 of the threshold.
    rows = torch.randn(40, 500, generator=torch.Generator().manual_seed(1))
    p = torch.softmax(rows.double(), -1)
    threshold = torch.exp((p * p.log()).sum(-1))
    token = (p - threshold[:, None]).abs().argmin(-1)
    for side, offset in ((1, 1e-7), (0, -1e-7)):
        for row, x in enumerate(token.tolist()):
            delta = float(p[row, x] / threshold[row]) * (1 - offset)
            if delta > 1:
                continue
            result = certify(rows[row], f"typical(1, {delta!r})")
            assert result.exact
            assert result.accepted.item() == int((p[row] > p[row, x]).sum()) + side
