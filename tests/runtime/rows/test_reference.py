"""Row statistics against mpmath and against the definition of their order."""

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from draftcert.runtime import row_stats
from draftcert.theory import DraftcertError

LOGIT = st.one_of(
    st.floats(-60, 60, width=16),
    st.sampled_from([0.0, -0.0, 1.0, -torch.inf]),
    st.floats(-(2.0**100), 2.0**100, width=32),
)
ROW = st.lists(LOGIT, min_size=1, max_size=20).filter(lambda row: max(row) > -torch.inf)


@given(ROW, st.data())
def test_against_fifty_digits(backend, row, data):
    k = data.draw(st.integers(1, len(row)))
    logits = torch.tensor([row], dtype=torch.float32)
    stats = row_stats(logits, k)
    stored = [mpmath.mpf(x) for x in logits[0].tolist()]
    with mpmath.workdps(50):
        weights = [mpmath.exp(x - max(stored)) for x in stored]
        mass = mpmath.fsum(weights)
        logsumexp = max(stored) + mpmath.log(mass)
        entropy = mpmath.fsum(-w / mass * mpmath.log(w / mass) for w in weights if w > 0)
        assert abs(mpmath.mpf(stats.logsumexp.item()) - logsumexp) <= stats.logsumexp_error.item()
        assert abs(mpmath.mpf(stats.entropy.item()) - entropy) <= stats.entropy_error.item()
    order = sorted(range(len(row)), key=lambda token: (-stored[token], token))[:k]
    assert stats.top_ids[0].tolist() == order
    assert stats.top_values[0].tolist() == [float(stored[token]) for token in order]
    assert stats.argmax.item() == order[0]
    assert stats.max.item() == float(max(stored))
    size_of_error = (2e-5 if backend == "kernel" else 1e-14) + 1e-14 * abs(stats.logsumexp.item())
    assert stats.logsumexp_error.item() <= size_of_error


def test_ties_by_lowest_id_where_topk_has_none(backend):
    row = torch.zeros(1, 1000)
    row[0, 500:] = 1
    assert row_stats(row, 6).top_ids.tolist() == [[500, 501, 502, 503, 504, 505]]
    assert row_stats(row, 502).top_ids[0, -3:].tolist() == [999, 0, 1]


def assert_same(found, expected):
    for name in ("max", "argmax", "top_values", "top_ids"):
        assert torch.equal(getattr(found, name), getattr(expected, name)), name
    for name in ("logsumexp", "entropy"):
        difference = getattr(found, name) - getattr(expected, name)
        bound = getattr(found, f"{name}_error") + getattr(expected, f"{name}_error")
        assert bool((difference.abs() <= bound).all()), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_every_dtype_reads_its_stored_logits(backend, dtype):
    logits = torch.randn(3, 2, 300, generator=torch.Generator().manual_seed(0)).to(dtype)
    low, high = row_stats(logits, 4), row_stats(logits.double(), 4)
    assert_same(low, high)
    assert low.top_values.shape == (3, 2, 4)
    assert low.max.shape == (3, 2)


def test_padding_and_strides_change_nothing(backend):
    logits = torch.randn(4, 64, generator=torch.Generator().manual_seed(1))
    expected = row_stats(logits, 5)
    padded = torch.cat([logits, torch.full((4, 8), 99.0)], -1)
    strided = torch.stack([logits, torch.zeros_like(logits)], -1)[..., 0]
    assert not strided.is_contiguous()
    for other in (
        row_stats(padded, 5, vocab_size=64),
        row_stats(strided, 5),
        row_stats(logits.t().contiguous().t(), 5),
    ):
        assert_same(other, expected)
    with pytest.raises(DraftcertError, match="vocab_size = 65"):
        row_stats(logits, 5, vocab_size=65)


@pytest.mark.parametrize(
    ("logits", "k", "message"),
    [
        (torch.tensor([[0.0, 1.0], [0.0, torch.nan]]), 1, r"logits\[1\]: the logit of token 1 is nan"),
        (torch.tensor([0.0, torch.inf]), 1, r"logits: the logit of token 1 is inf"),
        (torch.tensor([[[0.0]], [[-torch.inf]]]), 1, r"logits\[1, 0\]: all 1 logits are -inf"),
        (torch.zeros(3, 0), 1, r"shape \(3, 0\) have no tokens"),
        (torch.tensor(1.0), 1, "no tokens"),
        (torch.zeros(2, 3), 4, r"k = 4: give a whole number from 1 to 3"),
        (torch.zeros(2, 3), 0, r"k = 0: give a whole number from 1 to 3"),
        (torch.zeros(2, 3, dtype=torch.int64), 1, "dtype torch.int64"),
        (np.zeros((2, 3)), 1, "must be a torch tensor, not ndarray"),
        (torch.eye(3).to_sparse(), 1, "layout torch.sparse_coo"),
    ],
)
def test_what_is_no_row_is_a_named_error(backend, logits, k, message):
    with pytest.raises(DraftcertError, match=message):
        row_stats(logits, k)


def test_no_rows_give_empty_statistics():
    assert row_stats(torch.zeros(0, 5), 2).top_ids.shape == (0, 2)
