import math
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftcert.numerics import certificate, guaranteed_acceptance, mean_kl_for
from draftcert.theory import DraftcertError

costs = st.lists(st.one_of(st.integers(0, 12).map(lambda n: Fraction(n, 4)), st.just(math.inf)), min_size=1, max_size=7)


@given(costs, st.integers(0, 20).map(lambda n: Fraction(n, 8)))
def test_most_contexts_any_drafter_can_lose(certificates, mean_kl):
    """Brute force: the largest set of contexts whose certificates fit into the budget."""
    budget = mean_kl * len(certificates)
    sets = (s for k in range(len(certificates) + 1) for s in combinations(certificates, k) if sum(s) <= budget)
    lost = max(map(len, sets))
    assert guaranteed_acceptance(certificates, mean_kl) == 1 - Fraction(lost, len(certificates))


@given(costs, st.integers(0, 8).map(lambda n: Fraction(n, 8)))
def test_inverse(certificates, share):
    limit = mean_kl_for(certificates, share)
    if math.isinf(limit):
        assert guaranteed_acceptance(certificates, 10**9) >= share
    else:
        assert guaranteed_acceptance(certificates, Fraction(limit) + Fraction(1, 10**12)) < share
        if limit > 0:
            assert guaranteed_acceptance(certificates, Fraction(limit) * Fraction(999, 1000)) >= share


def test_takes_certificates():
    certificates = [certificate(["1", "0"], "strict_greedy"), certificate(["0.5", "0.5"], "strict_greedy")]
    assert guaranteed_acceptance(certificates, 0.1) == Fraction(1, 2)
    assert guaranteed_acceptance(certificates, 0.5) == 0
    assert 0.346 < mean_kl_for(certificates, 0.5) < math.log(2) / 2 + 1e-15


def test_bad_values():
    with pytest.raises(DraftcertError, match="no certificates"):
        guaranteed_acceptance([], 0.1)
    with pytest.raises(DraftcertError, match=r"mean_kl is -0\.1"):
        guaranteed_acceptance([0.1], -0.1)
    with pytest.raises(DraftcertError, match="certificate 1 is nan"):
        guaranteed_acceptance([0.1, math.nan], 0.1)
    with pytest.raises(DraftcertError, match=r"acceptance = 1\.5"):
        mean_kl_for([0.1], 1.5)
