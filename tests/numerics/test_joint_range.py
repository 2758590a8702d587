"""Judged by random pairs, and by pairs that come near the bound."""

import math

import numpy as np
import pytest

from draftcert.numerics import kl_for_divergence
from draftcert.theory import DraftcertError


def kl(p, q):
    return float(np.where(p > 0, p * np.log(np.where(p > 0, p, 1) / q), 0).sum())


def jensen_shannon(p, q):
    return (kl(p, (p + q) / 2) + kl(q, (p + q) / 2)) / 2


DIVERGENCES = {
    "kl": kl,
    "total_variation": lambda p, q: float(np.abs(p - q).sum() / 2),
    "hellinger": lambda p, q: 1 - float(np.sqrt(p * q).sum()),
    "jensen_shannon": jensen_shannon,
    "reverse_kl": lambda p, q: kl(q, p),
}


@pytest.mark.parametrize("name", DIVERGENCES)
def test_no_pair_exceeds_the_threshold_below_it(name):
    source = np.random.default_rng(2)
    for _ in range(100):
        p, q = source.dirichlet([0.5] * 4, 2) * 0.999 + 0.001 / 4
        assert kl(p, q) >= float(kl_for_divergence(name, DIVERGENCES[name](p, q) * (1 - 1e-9), digits=12)) - 1e-12


@pytest.mark.parametrize("name", ["hellinger", "jensen_shannon"])
@pytest.mark.parametrize("missed", [1e-3, 0.1, 0.5, 0.99])
def test_attained_where_the_target_misses_tokens(name, missed):
    p, q = np.array([0.0, 0.7, 0.3]), np.array([missed, 0.7 * (1 - missed), 0.3 * (1 - missed)])
    found = kl_for_divergence(name, DIVERGENCES[name](p, q), digits=12)
    assert float(found) == pytest.approx(kl(p, q), rel=1e-9)


def test_ends():
    for name in DIVERGENCES:
        assert kl_for_divergence(name, 0).ball == 0
        assert float(kl_for_divergence(name, math.inf)) == math.inf
    assert kl_for_divergence("reverse_kl", 1e300).ball == 0
    assert float(kl_for_divergence("jensen_shannon", "0.694")) == math.inf
    assert float(kl_for_divergence("jensen_shannon", "0.693")) < 12
    assert float(kl_for_divergence("hellinger", 1)) == float(kl_for_divergence("total_variation", 2)) == math.inf
    assert float(kl_for_divergence("kl", "1e-300")) == 1e-300
    assert 2e-300 < float(kl_for_divergence("jensen_shannon", "1e-300")) < 3e-300


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("hamming", 1), "no divergence is called 'hamming'"),
        (("kl", -1), "threshold = -1"),
        (("kl", math.nan), "threshold = nan"),
    ],
)
def test_refused(given, message):
    with pytest.raises(DraftcertError, match=message):
        kl_for_divergence(*given)
