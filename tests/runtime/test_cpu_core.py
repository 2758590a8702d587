"""The C++ core against mpmath, float64 and plain Python, on every instruction set this machine has."""

import ctypes
import math
from types import SimpleNamespace

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from draftcert.runtime.cpu import build

INF, NAN = math.inf, math.nan
ORDINARY, HAS_NAN, POSITIVE_INFINITY, ALL_NEGATIVE_INFINITY, DRAFT_NOT_ORDINARY = range(5)
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]


@pytest.fixture(params=[0, 1, 2], ids=["portable", "avx2", "avx512"], autouse=True, scope="module")
def instruction_set(request):
    library = build.library()
    if library.draftcert_use_instruction_set(request.param) < 0:
        pytest.skip("not on this machine")
    yield
    library.draftcert_use_instruction_set(-1)


def logits(x):
    name = str(x.dtype).removeprefix("torch.")
    return ctypes.byref(build.Logits(x.data_ptr(), x.stride(0), x.stride(1), build.DTYPES[name]))


def doubles(*shape):
    return torch.full(shape, -7.0, dtype=torch.float64)


def row_stats(target, draft=None, k=1, threads=1, vocab=None):
    rows, length = target.shape
    arrays = {name: doubles(rows) for name in ["logsumexp", "logsumexp_error", "entropy", "entropy_error"]}
    if draft is not None:
        arrays |= {"kl": doubles(rows), "kl_error": doubles(rows)}
    arrays["top_values"], arrays["top_ids"] = doubles(rows, k), torch.full((rows, k), -7)
    arrays["status"] = torch.full((rows,), -7, dtype=torch.int32)
    out = build.RowStatsOut(**{name: array.data_ptr() for name, array in arrays.items()})
    other = logits(draft) if draft is not None else None
    code = build.library().draftcert_row_stats(
        logits(target), other, rows, vocab or length, k, threads, ctypes.byref(out)
    )
    assert code == 0
    return SimpleNamespace(**arrays)


def ordered(row):
    """(value, id) of a row by value descending, then id."""
    return sorted(((value, i) for i, value in enumerate(row.double().tolist())), key=lambda e: (-e[0], e[1]))


def exact(target, draft=None):
    """logsumexp, entropy and KL: with 60 digits for short rows, in float64 relative to the maximum for long ones."""
    short = len(target) <= 300
    module = mpmath if short else math
    real, exp, log, fsum = mpmath.mpf if short else float, module.exp, module.log, module.fsum
    with mpmath.workdps(60):
        x = [real(v) for v in target.double().tolist()]
        top = max(x)
        log_mass = log(fsum(exp(v - top) for v in x))
        log_p = [(v - top) - log_mass for v in x]
        statistics = [top + log_mass, -fsum(exp(v) * v for v in log_p if v > -INF)]
        if draft is not None:
            w = [real(v) for v in draft.double().tolist()]
            draft_top = max(w)
            log_mass = log(fsum(exp(v - draft_top) for v in w))
            gaps = [a - ((v - draft_top) - log_mass) if a > -INF else 0 for a, v in zip(log_p, w, strict=True)]
            statistics.append(INF if INF in gaps else fsum(exp(a) * d for a, d in zip(log_p, gaps, strict=True)))
        return statistics


def check_row(target, draft=None, k=1, threads=1):
    got = row_stats(target[None], draft[None] if draft is not None else None, k, threads)
    assert got.status.item() == ORDINARY
    entries = list(zip(got.top_values[0].tolist(), got.top_ids[0].tolist(), strict=True))
    assert entries == ordered(target)[:k]
    for name, value in zip(["logsumexp", "entropy", "kl"], exact(target, draft), strict=False):
        found, error = getattr(got, name).item(), getattr(got, f"{name}_error").item()
        assert found == value or abs(found - value) <= error, (name, found, value, error)
    return got


FINITE = st.floats(-60, 60, width=16)
LOGIT = st.one_of(FINITE, st.sampled_from([-INF, -0.0, 0.0, 1.0, -1e4]))


@st.composite
def pairs(draw):
    """A row and a drafter's row, of ties and infinities, of two types."""
    size = draw(st.integers(1, 150))
    row = st.lists(LOGIT, min_size=size, max_size=size).filter(lambda x: max(x) > -INF)
    target, draft = draw(row), draw(row)
    types = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(DTYPES))
    return torch.tensor(target).to(types[0]), torch.tensor(draft).to(types[1]), draw(st.integers(1, size))


@settings(max_examples=40, deadline=None)
@given(pairs())
def test_rows_of_ties_and_infinities(pair):
    target, draft, k = pair
    check_row(target, draft, k)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 511, 513, 1500])
def test_sizes(dtype, size):
    x = (torch.randn(size, generator=torch.Generator().manual_seed(size)) * 5).to(dtype)
    check_row(x, x.roll(1), min(size, 70))


def test_actual_errors_are_far_below_the_bounds():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4, 151_936, generator=generator) * torch.tensor([[0.1], [1.0], [3.0], [6.0]])
    got = row_stats(x, k=16)
    log_p = torch.log_softmax(x.double(), -1)
    torch.testing.assert_close(got.logsumexp, torch.logsumexp(x.double(), -1), rtol=0, atol=1e-6)
    torch.testing.assert_close(got.entropy, -(log_p.exp() * log_p).sum(-1), rtol=1e-6, atol=0)
    assert got.logsumexp_error.max() < 5e-6
    assert got.entropy_error.max() < 2e-4


@pytest.mark.parametrize("dtype", DTYPES)
def test_flat_row(dtype):
    size = 262_144
    got = row_stats(torch.full((1, size), 7.0, dtype=dtype), k=3, threads=2)
    assert got.top_ids.tolist() == [[0, 1, 2]]
    assert got.entropy.item() == pytest.approx(math.log(size), rel=1e-15)
    assert got.logsumexp.item() == pytest.approx(7 + math.log(size), rel=1e-15)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("peak", [0.0, 12.5, -3e4])
def test_point_mass_is_exact(dtype, peak):
    x = torch.full((1, 1000), -INF, dtype=dtype)
    x[0, 700] = peak
    got = row_stats(x, k=3)
    assert got.logsumexp.item() == x[0, 700].item()
    assert got.entropy.item() == pytest.approx(0, abs=1e-30)
    assert got.top_ids.tolist() == [[700, 0, 1]]  # fewer finite logits than k: the others by id
    assert got.top_values[0, 1:].tolist() == [-INF, -INF]


def test_tiny_probabilities_beside_the_maximum_are_not_lost_in_entropy():
    got = check_row(torch.tensor([0.0, -30.0, -40.0]))
    assert got.entropy.item() > 0


@pytest.mark.parametrize("scale", [1e4, 3e38, 1e-40])
@pytest.mark.parametrize("sign", [1, -1])
def test_huge_and_subnormal_logits(scale, sign):
    check_row(torch.tensor([0.5, -1.0, 1.0, 1.0, -0.25] * 30) * sign * scale, k=7)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
def test_status(dtype, threads):
    x = torch.zeros(5, 40_000, dtype=dtype)
    x[1, 33_333] = NAN
    x[2, 22_222] = INF
    x[2, 22_223] = INF
    x[3] = -INF
    x[4, 1], x[4, 39_999] = INF, NAN
    got = row_stats(x, k=2, threads=threads)
    assert got.status.tolist() == [ORDINARY, HAS_NAN, POSITIVE_INFINITY, ALL_NEGATIVE_INFINITY, HAS_NAN]
    assert got.top_ids.tolist() == [[0, 1], [-1, -1], [22_222, 22_223], [0, 1], [-1, -1]]
    assert got.logsumexp[[2, 3]].tolist() == [INF, -INF]
    assert got.logsumexp[[1, 4]].isnan().all()
    assert got.entropy[1:].isnan().all()


def test_nan_of_any_payload_and_place_is_seen():
    for at in range(0, 200, 7):
        x = torch.zeros(1, 200)
        x.view(torch.int32)[0, at] = 0x7F800000 + 1 + 1237 * at
        assert row_stats(x).status.item() == HAS_NAN
        masked = torch.zeros(1, 200)
        masked[0, at] = -INF
        assert row_stats(masked, x).status.item() == DRAFT_NOT_ORDINARY


def test_drafts_that_are_no_distribution():
    draft = torch.zeros(4, 30)
    draft[1, 3], draft[2, 3], draft[3] = NAN, INF, -INF
    got = row_stats(torch.zeros(4, 30), draft)
    assert got.status.tolist() == [ORDINARY, *[DRAFT_NOT_ORDINARY] * 3]
    assert got.kl[0] == 0
    assert got.kl[1:].isnan().all()
    assert (got.entropy - math.log(30)).abs().max() < 1e-6


def test_kl_is_infinite_exactly_where_the_draft_misses_mass():
    target, draft = torch.zeros(3, 600), torch.zeros(3, 600)
    draft[:, 500] = -INF
    target[1, 500] = -INF
    target[2, 500] = -2e4  # underflows, and is mass all the same
    got = row_stats(target, draft)
    assert got.kl.tolist() == pytest.approx([INF, 0, INF], abs=1e-11)
    assert got.kl_error.max() < 1e-11


@pytest.mark.parametrize("noise", [1e-6, 1e-3, 0.1, 3.0])
@pytest.mark.parametrize("types", [(torch.float32,) * 2, (torch.bfloat16, torch.float32), (torch.float64,) * 2])
def test_small_kl_is_not_drowned(noise, types):
    generator = torch.Generator().manual_seed(1)
    target = torch.randn(300, generator=generator).double() * 3
    draft = target.to(types[0]).double() + torch.randn(300, generator=generator).double() * noise
    got = check_row(target.to(types[0]), draft.to(types[1]))
    assert got.kl_error <= got.kl / 100 or got.kl_error < 1e-11


@pytest.mark.parametrize("dtype", DTYPES)
def test_layouts_agree(dtype):
    x = (torch.randn(6, 1500, generator=torch.Generator().manual_seed(2)) * 4).to(dtype)
    plain = row_stats(x, x.roll(1, 0), k=5)
    wide = torch.full((6, 1600), INF, dtype=dtype)
    wide[:, :1500] = x
    views = [x.T.contiguous().T, wide[:, :1500], torch.stack([x, x], -1)[..., 0]]
    results = [row_stats(view, x.roll(1, 0), k=5) for view in views]
    for result in [*results, row_stats(wide, wide.roll(1, 0), k=5, vocab=1500)]:
        for name, value in vars(plain).items():
            assert torch.equal(getattr(result, name), value), name


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_rows_split_over_threads_merge_exactly(threads):
    generator = torch.Generator().manual_seed(3)
    x = (torch.randn(2, 70_001, generator=generator) * 2).round()  # ties everywhere
    x[1] += torch.arange(70_001) / 3000  # the maximum keeps moving
    draft = x + torch.randn(2, 70_001, generator=generator)
    one, many = row_stats(x, draft, 64, 1), row_stats(x, draft, 64, threads)
    assert torch.equal(one.top_ids, many.top_ids)
    assert torch.equal(one.top_values, many.top_values)
    assert torch.equal(one.status, many.status)
    for name in ["logsumexp", "entropy", "kl"]:
        assert ((getattr(one, name) - getattr(many, name)).abs() <= getattr(one, f"{name}_error")).all()


@pytest.mark.parametrize("order", [1, -1])
def test_sorted_rows(order):
    x = torch.arange(20_000.0) * order
    got = row_stats(x[None], k=16, threads=2)
    assert got.top_ids[0].tolist() == (list(range(19_999, 19_983, -1)) if order == 1 else list(range(16)))


def at_least(x, threshold, strict=False, reference=None):
    rows, length = x.shape
    count, mass, moment = torch.zeros(rows, dtype=torch.int64), doubles(rows), doubles(rows)
    sums = [mass.data_ptr(), moment.data_ptr()] if reference is not None else [None, None]
    code = build.library().draftcert_at_least(
        logits(x), rows, length, threshold.data_ptr(), strict,
        reference.data_ptr() if reference is not None else None, 2, count.data_ptr(), *sums,
    )  # fmt: skip
    assert code == 0
    return count, mass, moment


def top_after(x, value, ids, k):
    rows, length = x.shape
    values, found = doubles(rows, k), torch.full((rows, k), -7)
    keys = torch.tensor(value, dtype=torch.float64), torch.tensor(ids)
    code = build.library().draftcert_top_after(
        logits(x), rows, length, keys[0].data_ptr(), keys[1].data_ptr(), k, 2, values.data_ptr(), found.data_ptr()
    )
    assert code == 0
    return [list(zip(v, i, strict=True)) for v, i in zip(values.tolist(), found.tolist(), strict=True)]


@settings(max_examples=40, deadline=None)
@given(pairs(), st.data())
def test_second_passes(pair, data):
    x, _, k = pair
    entries = ordered(x)
    threshold = data.draw(st.one_of(st.sampled_from([v for v, _ in entries]), FINITE))
    log_z = row_stats(x[None]).logsumexp
    log_p = x.double() - log_z
    terms = torch.where(log_p > -700, log_p.exp() * log_p, 0.0)
    for strict in (False, True):
        inside = x.double() > threshold if strict else x.double() >= threshold
        bound = torch.tensor([threshold], dtype=torch.float64)
        count, mass, moment = at_least(x[None], bound, strict, log_z)
        assert count.item() == inside.sum() == at_least(x[None], bound, strict)[0].item()
        assert mass.item() == pytest.approx(log_p.exp()[inside].sum().item(), rel=1e-12, abs=1e-300)
        assert moment.item() == pytest.approx(terms[inside].sum().item(), rel=1e-12, abs=1e-300)
        rejected = [entry for entry in entries if not inside[entry[1]]]
        assert top_after(x[None], [threshold], [-1 if strict else 2**62], k)[0][: len(rejected)] == rejected[:k]
    position = data.draw(st.integers(0, len(entries) - 1))
    rest = entries[position + 1 :] + [(-INF, -1)] * k
    assert top_after(x[None], [entries[position][0]], [entries[position][1]], k)[0] == rest[:k]


def test_floored_entropy():
    x = torch.randn(3, 500, generator=torch.Generator().manual_seed(4))
    x[1], x[2, 1:] = 0, -INF
    log_z, out = row_stats(x).logsumexp, doubles(3)
    assert build.library().draftcert_floored_entropy(logits(x), 3, 500, log_z.data_ptr(), 1e-5, 1, out.data_ptr()) == 0
    p = (x.double() - log_z[:, None]).exp()
    torch.testing.assert_close(out, -(p * (p + 1e-5).log()).sum(-1), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("k", "vocab"), [(0, 5), (6, 5), (1, 0), (1, 2**32)])
def test_arguments_out_of_range_are_refused(k, vocab):
    x, status = torch.zeros(1, 5), torch.zeros(1, dtype=torch.int32)
    out = build.RowStatsOut(status=status.data_ptr())
    assert build.library().draftcert_row_stats(logits(x), None, 1, vocab, k, 1, ctypes.byref(out)) == -1


def test_no_rows():
    assert row_stats(torch.zeros(0, 5)).status.shape == (0,)


def test_failures_to_compile_say_why(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(build, "FLAGS", ["--no-such-flag"])
    with pytest.raises(RuntimeError, match="no-such-flag"):
        build.compile_library()
    monkeypatch.setenv("CXX", "/nonexistent")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match="CXX"):
        build.compile_library()
