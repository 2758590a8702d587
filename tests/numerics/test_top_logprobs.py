import importlib.util
import math
import random
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from draftcert.numerics import certificate, certificate_from_top_logprobs, top_logprobs
from draftcert.numerics.top_logprobs import rounding_error
from draftcert.theory import DraftcertError

ROOT = Path(__file__).parents[2]
RULES = (
    "strict_greedy",
    "additive(3/10)",
    "additive(3/5)",
    "multiplicative(1/10)",
    "multiplicative(1/100)",
    "top_m(2)",
    "top_m(5)",
    "absolute(1/10)",
    "typical(9/100, 3/10)",
    "typical(1, 9/10)",
    "typical_floor(9/100, 3/10, 1/100000)",
    "top_m(3) & additive(3/5)",
    "top_m(2) | multiplicative(2/5)",
)


@pytest.mark.parametrize("rule", RULES)
def test_interval_holds_the_certificate_of_the_full_target(rule):
    draw = random.Random(rule)
    rng = np.random.default_rng(draw.getrandbits(32))
    for _ in range(12):
        tokens = draw.randint(2, 9)
        target = np.sort(rng.dirichlet(np.full(tokens, draw.choice([0.1, 0.5, 3.0]))))[::-1]
        target = np.maximum(target, 1e-12)
        k, m = draw.randint(1, tokens), draw.randint(1, tokens - 1)
        full = certificate(target, rule, m, digits=12, normalize=True).value
        logs = [math.log(p) for p in target[:k] / target.sum()]
        for vocabulary in (None, tokens):
            found = certificate_from_top_logprobs(logs, rule, m, vocab_size=vocabulary)
            assert found.lower <= full + 1e-9, (target, k, m, vocabulary)
            if mpmath.isfinite(full) or not found.conditional:
                assert full <= found.upper + 1e-9, (target, k, m, vocabulary)


def test_exact_when_candidates_are_listed():
    target = [0.6, 0.2, 0.1, 0.06, 0.04]
    found = certificate_from_top_logprobs([math.log(p) for p in target[:3]], "strict_greedy", 2)
    assert found.exact
    assert abs(found.lower - certificate(target, "strict_greedy", 2).value) < 1e-15
    assert found.upper - found.lower < mpmath.mpf("1e-35")
    assert not certificate_from_top_logprobs([math.log(0.6)], "strict_greedy").exact


def test_ends_of_the_interval_are_reached():
    """One token of 0.6 is listed; the best competitor has between 0.4/4 and 0.4 of five tokens."""
    found = certificate_from_top_logprobs([math.log(0.6)], "strict_greedy", vocab_size=5)
    assert abs(found.lower - certificate([0.6, 0.4], "strict_greedy").value) < 1e-12
    assert abs(found.upper - certificate([0.6, 0.1, 0.1, 0.1, 0.1], "strict_greedy").value) < 1e-12


@pytest.mark.parametrize(
    ("logprobs", "options", "message"),
    [
        ([], {}, "empty"),
        ([-1.0, -0.5], {}, "descending"),
        ([-0.1, -0.2], {}, "more than 1"),
        ([math.nan], {}, "log-probability 0 = nan"),
        ([-1.0], {"candidates": 0}, "candidates = 0"),
        ([-1.0, -1.1], {"vocab_size": 1}, "vocab_size = 1"),
        ([-1.0], {"vocab_size": 2}, "not the top"),
    ],
)
def test_bad_lists(logprobs, options, message):
    with pytest.raises(DraftcertError, match=message):
        certificate_from_top_logprobs(logprobs, "strict_greedy", **options)


def test_rules_on_logits_are_refused():
    with pytest.raises(DraftcertError, match="raw logits"):
        certificate_from_top_logprobs([-0.1], "mars(0.9)")


def exact(found):
    return float(found.lower), float(found.upper), found.exact, found.fewest, found.most


def test_printed_decimals_can_decide_what_is_accepted():
    """Targets that round to these lists lie on both sides of the threshold."""
    printed = [-0.5952, -1.7202, -1.8703, -2.1711, -6.5901]
    found = certificate_from_top_logprobs(printed, "typical(1, 12299/2747970)", vocab_size=5)
    behind = [0.55146951, 0.17903242, 0.15407208, 0.11405215, 0.00137384]
    assert [round(math.log(p), 4) for p in behind] == printed
    truth = certificate(behind, "typical(1, 12299/2747970)", normalize=True).value
    assert found.lower <= truth < mpmath.inf == found.upper
    assert (found.exact, found.fewest, found.most) == (False, 4, 5)
    found = certificate_from_top_logprobs([-0.798508, -1.049822, -2.302584, -2.302585], "additive(0.1)")
    assert exact(found) == (pytest.approx(0.0062663, abs=1e-6), pytest.approx(0.1265508, abs=1e-6), False, 1, 2)
    alone = certificate_from_top_logprobs([-0.798508, -1.049822, -2.302584, -2.302585], "additive(0.1)", error=0)
    assert alone.exact
    assert found.lower <= alone.lower <= alone.upper <= found.upper


@pytest.fixture(scope="module")
def sampling():
    """The benchmark: it makes lists and full rows behind them, and has its own judge."""
    path = ROOT / "benchmarks" / "top_logprobs.py"
    spec: Any = importlib.util.spec_from_file_location("top_logprobs_benchmark", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_target_behind_a_rounded_list_lies_outside(sampling):
    rng = np.random.default_rng(3)
    targets = narrow = 0
    for _ in range(120):
        case = sampling.case(rng)
        values, _ = sampling.judged(case, rng)
        if values:
            found = case.interval
            assert not [value for value in values if sampling.outside(found, value)], (case, found)
            targets += len(values)
            finite = [value for value in values if math.isfinite(value)]
            narrow += bool(finite) and float(found.upper - found.lower) <= 1.5 * (max(finite) - min(finite)) + 1e-6
    assert targets > 2_000
    assert narrow > 30


def test_errors_are_each_entry_s_own():
    logs = [-0.5, -1.2, -3.0, -9.0]
    wide = certificate_from_top_logprobs(logs, "strict_greedy", error=[0, 0, 0, 0.5])
    assert exact(wide)[:2] == exact(certificate_from_top_logprobs(logs, "strict_greedy", error=0))[:2]
    assert float(certificate_from_top_logprobs(logs, "strict_greedy", error=[0, 0.1, 0, 0]).lower) < float(wide.lower)


def test_an_error_of_all_together_scales_the_certificate_and_no_ratio():
    logs = [math.log(p) for p in (0.5, 0.3, 0.1)]
    alone, together = (
        certificate_from_top_logprobs(logs, "multiplicative(0.59)", error=0, common_error=common)
        for common in (0, 0.01)
    )
    assert together.exact
    assert float(together.lower) == pytest.approx(float(alone.lower) * math.exp(-0.01))
    assert float(together.upper) == pytest.approx(float(alone.upper) * math.exp(0.01))


def test_a_whole_list_is_narrowed_by_its_sum():
    """Two tokens of 0.7 and 0.3, the first known well: the second is as well known, whatever its own error."""
    logs = [math.log(0.7), math.log(0.3)]
    one, both = (
        certificate_from_top_logprobs(logs, "strict_greedy", vocab_size=2, error=error)
        for error in ([0.001, 0.5], 0.001)
    )
    assert float(one.upper - one.lower) < 4 * float(both.upper - both.lower)


def test_the_unknown_vocabulary_is_said():
    found = certificate_from_top_logprobs([math.log(0.6)], "typical(0.3, 0.9)", 2)
    assert (found.conditional, found.most) == (True, None)
    assert found.upper <= math.log1p(2 * 0.6) + 1e-12
    assert not certificate_from_top_logprobs([math.log(0.6), math.log(0.2)], "strict_greedy").conditional
    assert not certificate_from_top_logprobs([math.log(0.6)], "strict_greedy", vocab_size=9).conditional
    everything = certificate_from_top_logprobs([math.log(0.6)], "absolute(0)")
    assert (everything.lower, everything.upper, everything.exact) == (mpmath.inf, mpmath.inf, True)


@pytest.mark.parametrize("least", [-1e4, -1e9, -3.4028234663852886e38, -1e308])
def test_masses_beyond_all_numbers_take_no_time_and_widen_nothing(least):
    logs = [math.log(0.6), math.log(0.4), least]
    found = certificate_from_top_logprobs(logs, "strict_greedy", error=[1e-9, 1e-9, 1e30])
    assert found.exact
    assert found.upper - found.lower < 1e-8


def test_many_corners_share_bounds_that_hold(monkeypatch):
    """Each of 4096 candidates can be at the cap or not: a bound for each number of them would take its square."""
    tails = top_logprobs._least_tails(2**12, 2**21, Fraction(1, 2), Fraction(1, 2**14))
    assert sum(map(len, tails)) <= 2 * top_logprobs.MOST_TRIED
    ends = []
    for most in (2**16, 40 * 9, 40 * 3, 1):
        monkeypatch.setattr(top_logprobs, "MOST_TRIED", most)
        ends.append(certificate_from_top_logprobs([-0.2, -6.0], "strict_greedy", 40, vocab_size=1000).upper)
    assert ends == sorted(ends)
    assert ends[0] < ends[-1] < ends[0] * 1.2


def test_errors_are_read_off_the_digits():
    single = float(np.float32(-0.1))
    assert [float(error) for error in rounding_error([-0.51, single])] == [0, pytest.approx(2.0**-24)]
    assert [float(e) for e in rounding_error([-0.5, -1.25])] == [pytest.approx(0.005)] * 2
    assert rounding_error([Fraction(-1, 2), -1, math.log(0.3)]) == [0, 0, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"error": -0.1}, "not negative"),
        ({"error": [0.1]}, "1 errors are given for 2"),
        ({"error": math.nan}, "error = nan"),
        ({"error": "x"}, "error = 'x'"),
        ({"common_error": 2}, "common_error = 2"),
        ({"candidates": True}, "candidates = True"),
        ({"candidates": 10**9}, "candidates = 1000000000"),
        ({"vocab_size": 5.0}, "vocab_size = 5.0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(DraftcertError, match=message):
        certificate_from_top_logprobs([-0.7, -1.2], "strict_greedy", **options)
    with pytest.raises(DraftcertError, match="far above"):
        certificate_from_top_logprobs([10**400], "strict_greedy", error=0)
