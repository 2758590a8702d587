import math
import random

import mpmath
import numpy as np
import pytest

from draftcert.numerics import certificate, certificate_from_top_logprobs
from draftcert.theory import DraftcertError

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
        ([math.nan], {}, "log-probability 0 is nan"),
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
