import math
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftcert.numerics import MeanKLGuarantee, certificate, guaranteed_acceptance, mean_kl_for
from draftcert.theory import DraftcertError

costs = st.lists(st.one_of(st.integers(0, 12).map(lambda n: Fraction(n, 4)), st.just(math.inf)), min_size=1, max_size=7)


@given(costs, st.one_of(st.integers(0, 20).map(lambda n: Fraction(n, 8)), st.just(math.inf)))
def test_most_contexts_any_drafter_can_lose(certificates, mean_kl):
    """Brute force: the largest set of contexts whose certificates fit into the budget."""
    budget = mean_kl * len(certificates)
    finite = [cost for cost in certificates if cost < math.inf]
    lost = max(k for k in range(len(finite) + 1) for s in combinations(finite, k) if sum(s) <= budget)
    assert MeanKLGuarantee(certificates).acceptance(mean_kl) == 1 - Fraction(lost, len(certificates))


@given(costs, st.integers(0, 8).map(lambda n: Fraction(n, 8)))
def test_inverse(certificates, share):
    guarantee = MeanKLGuarantee(certificates)
    limit = guarantee.mean_kl(share)
    if math.isinf(limit):
        assert guarantee.acceptance(10**9) >= share
    else:
        assert guarantee.acceptance(Fraction(limit) + Fraction(1, 10**12)) < share
        if limit > 0:
            assert guarantee.acceptance(Fraction(limit) * Fraction(999, 1000)) >= share


@given(st.lists(st.floats(0, 3) | st.just(math.inf), min_size=1, max_size=30), st.data())
def test_an_array_is_exact_at_every_step(certificates, data):
    """Where a sum of floats equals the budget exactly one context more is lost than a hair below it."""
    guarantee = MeanKLGuarantee(np.array(certificates))
    finite = sorted(Fraction(cost) for cost in certificates if cost < math.inf)
    for step in accumulate(finite):
        mean_kl = step / len(certificates)
        lost = sum(total <= step for total in accumulate(finite))
        assert guarantee.acceptance(mean_kl) == 1 - Fraction(lost, len(certificates))
    share = data.draw(st.fractions(0, 1, max_denominator=40))
    assert guarantee.mean_kl(share) == MeanKLGuarantee(certificates).mean_kl(share)


def test_takes_certificates():
    certificates = [certificate(["1", "0"], "strict_greedy"), certificate(["0.5", "0.5"], "strict_greedy")]
    assert guaranteed_acceptance(certificates, 0.1) == Fraction(1, 2)
    assert guaranteed_acceptance(certificates, 0.5) == 0
    assert 0.346 < mean_kl_for(certificates, 0.5) < math.log(2) / 2 + 1e-15


@pytest.mark.parametrize("kind", [list, np.array])
def test_bad_values(kind):
    with pytest.raises(DraftcertError, match="no certificates"):
        MeanKLGuarantee(kind([]))
    with pytest.raises(DraftcertError, match=r"mean_kl = -0\.1"):
        MeanKLGuarantee(kind([0.1])).acceptance(-0.1)
    with pytest.raises(DraftcertError, match="mean_kl = 'sNaN' is not a number"):
        MeanKLGuarantee(kind([0.1])).acceptance(Decimal("sNaN"))
    with pytest.raises(DraftcertError, match=r"certificate 1 = nan"):
        MeanKLGuarantee(kind([0.1, math.nan]))
    with pytest.raises(DraftcertError, match=r"certificate 0 = -0\.1"):
        MeanKLGuarantee(kind([-0.1, 0.2]))
    with pytest.raises(DraftcertError, match=r"acceptance = 1\.5"):
        MeanKLGuarantee(kind([0.1])).mean_kl(1.5)
