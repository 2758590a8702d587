"""The C++ core against mpmath, float64 and plain Python, on every instruction set this machine has."""

import ctypes
import math
from types import SimpleNamespace

import mpmath
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from draftcert.runtime import Certificate
from draftcert.runtime.compiling import RUNTIME
from draftcert.runtime.generated import torch_budgets as budgets
from draftcert.runtime.rows import operators
from draftcert.runtime.rows.cpu.bindings import Instruction, Logits, Out, Rule, library
from draftcert.runtime.rows.program import Op, encoded, largest_rank, program
from draftcert.theory import parse_rule

INF, NAN = math.inf, math.nan
ORDINARY, HAS_NAN, POSITIVE_INFINITY, ALL_NEGATIVE_INFINITY, DRAFT_NOT_ORDINARY = range(5)
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]


@pytest.fixture(params=[0, 1, 2], ids=["portable", "avx2", "avx512"], autouse=True, scope="module")
def instruction_set(request):
    kernels = library()
    if kernels.draftcert_use_instruction_set(request.param) < 0:
        pytest.skip("not on this machine")
    yield
    kernels.draftcert_use_instruction_set(-1)


def logits(x):
    return ctypes.byref(Logits(x.data_ptr(), x.stride(0), x.stride(1), DTYPES.index(x.dtype)))


def doubles(*shape):
    return torch.full(shape, -7.0, dtype=torch.float64)


def evaluate(target, arrays, draft=None, rule=None, k=1, threads=1, vocab=None, temperature=1.0):
    """The C function's own result; `arrays` are filled."""
    out = Out(**{name: array.data_ptr() for name, array in arrays.items()})
    return library().draftcert_evaluate(
        logits(target),
        logits(draft) if draft is not None else None,
        ctypes.byref(rule) if rule is not None else None,
        target.shape[0],
        target.shape[1] if vocab is None else vocab,
        k,
        temperature,
        threads,
        ctypes.byref(out),
    )


def row_stats(target, draft=None, k=1, threads=1, vocab=None, temperature=1.0):
    rows = target.shape[0]
    arrays = {name: doubles(rows) for name in ["logsumexp", "logsumexp_error", "entropy", "entropy_error"]}
    if draft is not None:
        arrays |= {"kl": doubles(rows), "kl_error": doubles(rows)}
    arrays["top_values"], arrays["top_ids"] = doubles(rows, k), torch.full((rows, k), -7)
    arrays["status"] = torch.full((rows,), -7, dtype=torch.int32)
    refused = evaluate(target, arrays, draft, None, k, threads, vocab, temperature)
    assert refused == (arrays["status"] != ORDINARY).sum()
    return SimpleNamespace(**arrays)


def ordered(row):
    """(value, id) of a row by value descending, then id."""
    return sorted(((value, i) for i, value in enumerate(row.double().tolist())), key=lambda e: (-e[0], e[1]))


def exact(target, draft=None, temperature=1.0):
    """logsumexp, entropy and KL: with 60 digits for short rows, in float64 relative to the maximum for long ones."""
    short = len(target) <= 300
    module = mpmath if short else math
    real, exp, log, fsum = mpmath.mpf if short else float, module.exp, module.log, module.fsum
    with mpmath.workdps(60):
        x = [real(v) / real(temperature) for v in target.double().tolist()]
        top = max(x)
        log_mass = log(fsum(exp(v - top) for v in x))
        log_p = [(v - top) - log_mass for v in x]
        statistics = [top + log_mass, -fsum(exp(v) * v for v in log_p if v > -INF)]
        if draft is not None:
            w = [real(v) / real(temperature) for v in draft.double().tolist()]
            draft_top = max(w)
            log_mass = log(fsum(exp(v - draft_top) for v in w))
            gaps = [a - ((v - draft_top) - log_mass) if a > -INF else 0 for a, v in zip(log_p, w, strict=True)]
            statistics.append(INF if INF in gaps else fsum(exp(a) * d for a, d in zip(log_p, gaps, strict=True)))
        return statistics


def check_row(target, draft=None, k=1, threads=1, temperature=1.0):
    got = row_stats(target[None], draft[None] if draft is not None else None, k, threads, temperature=temperature)
    assert got.status.item() == ORDINARY
    entries = list(zip(got.top_values[0].tolist(), got.top_ids[0].tolist(), strict=True))
    assert entries == ordered(target)[:k]
    for name, value in zip(["logsumexp", "entropy", "kl"], exact(target, draft, temperature), strict=False):
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


@settings(max_examples=60, deadline=None)
@given(pairs(), st.sampled_from([1.0, 0.3, 7.0, 1e-30, 1e30]))
def test_rows_of_ties_and_infinities(pair, temperature):
    target, draft, k = pair
    check_row(target, draft, k, temperature=temperature)


@pytest.mark.parametrize("temperature", [0.05, 0.7, 40.0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_temperature(dtype, temperature):
    x = (torch.randn(299, generator=torch.Generator().manual_seed(5)) * 5).to(dtype)
    got = check_row(x, x.roll(1), 3, temperature=temperature)
    assert got.logsumexp_error.item() < 2e-5 + 1e-7 * got.logsumexp.abs().item()


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


@pytest.mark.parametrize("step", [2.0**-20, 17 * 2.0**-25])
def test_a_maximum_that_keeps_moving_costs_no_more_than_is_told(step):
    # Every group of logits brings the running sums to a new maximum. The sum is a geometric series.
    size = 2**18
    got = row_stats(torch.arange(size, dtype=torch.float64)[None] * step)
    with mpmath.workdps(40):
        h = mpmath.mpf(step)
        logsumexp = (size - 1) * h + mpmath.log(mpmath.expm1(-size * h) / mpmath.expm1(-h))
        assert abs(mpmath.mpf(got.logsumexp.item()) - logsumexp) <= got.logsumexp_error.item()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_divergence_far_below_any_weight_counts_as_far_as_it_does(dtype):
    # exp(-87) stands for smaller weights in float32, and exp(-700) in float64.
    for gap in (-80, -95, -200, -699):
        for lowest in (-1e19, -1e30, -3e38):
            target, draft = (torch.tensor([[0.0, x, -INF]]).to(dtype) for x in (gap, lowest))
            got, (_, _, kl) = row_stats(target, draft), exact(target[0], draft[0])
            assert abs(got.kl.item() - kl) <= got.kl_error.item()
            assert got.kl_error.item() <= 1e-11 + got.kl.item() / 128


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_finite_mask_is_a_mask(dtype):
    mask = torch.finfo(dtype).min
    target = torch.tensor([[3, 0, 1, mask, mask, mask]], dtype=dtype)
    for other in (target, torch.tensor([[3, 0, 1, mask / 2, mask, -1]], dtype=dtype)):
        got, (_, _, kl) = row_stats(target, other), exact(target[0], other[0])
        assert abs(got.kl.item() - kl) <= got.kl_error.item() < 1e-3
    unmasked = torch.tensor([[3, 0, 1, -INF, mask, mask]], dtype=dtype)
    assert row_stats(target, unmasked).kl.item() == INF


@pytest.mark.parametrize("order", [1, -1])
def test_sorted_rows(order):
    x = torch.arange(20_000.0) * order
    got = row_stats(x[None], k=16, threads=2)
    assert got.top_ids[0].tolist() == (list(range(19_999, 19_983, -1)) if order == 1 else list(range(16)))


RULES = [
    "strict_greedy",
    "additive(0.3)",
    "multiplicative(0.01)",
    "top_m(10) & additive(0.6)",
    "top_m(2) | absolute(0.002)",
    "typical(0.09, 0.3)",
    "typical_floor(0.09, 0.3, 0.00001)",
]


@settings(max_examples=100, deadline=None)
@given(pairs(), st.sampled_from(RULES), st.integers(1, 4), st.sampled_from([1.0, 0.6]), st.booleans())
def test_certificates_of_one_and_two_passes_are_those_of_the_reference(pair, text, candidates, temperature, sound):
    target, draft, _ = pair
    target, draft = target.double()[None], draft.double()[None]
    assume(target.shape[1] > candidates)
    rule = parse_rule(text)
    window = min(target.shape[1], max(largest_rank(program(rule)), 1) + candidates)
    arguments = (target, draft, encoded(rule), candidates, temperature, sound)
    expected = Certificate(*operators.certify_by_tensors(*arguments, target.shape[1]))
    found = Certificate(*operators.certify(*arguments, 1))
    assert found.accepted.item() == expected.accepted.item()
    assert found.exact.item() == expected.exact.item()
    beyond = expected.accepted.item() + candidates > window
    whole = target.shape[1] in (window, expected.accepted.item())
    assert beyond if found.passes.item() == 2 else whole or not beyond
    for name in ("value", "level", "threshold"):
        torch.testing.assert_close(
            getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-300, equal_nan=True
        )
    torch.testing.assert_close(found.kl, expected.kl, rtol=1e-9, atol=1e-9)
    assert expected.kl is not None
    assert found.certified == expected.certified or abs(expected.kl - expected.value) < 1e-9


def test_a_long_flat_row_is_settled_by_its_second_pass():
    x = torch.randn(2, 30_000, dtype=torch.float64, generator=torch.Generator().manual_seed(6)) * torch.tensor(
        [[0.3], [1.0]]
    )
    arguments = (x, None, encoded(parse_rule("multiplicative(0.2)")), 5, 1.0, False)
    expected = Certificate(*operators.certify_by_tensors(*arguments, 30_000)[:6])
    found = Certificate(*operators.certify(*arguments, 16)[:6])
    assert found.passes.tolist() == [2, 2]
    assert found.accepted.tolist() == expected.accepted.tolist()
    assert found.accepted[0] > 4000
    torch.testing.assert_close(found.value, expected.value, rtol=1e-12, atol=0)


UNITS = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-24, torch.float16: 2.0**-24, torch.float64: 2.0**-53}


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_weight_is_as_accurate_as_the_bounds_assume(dtype):
    # Of the row [0, -inf, -t] the mass is 1 + exp(-t), summed in different lanes.
    t = (torch.rand(20_000, generator=torch.Generator().manual_seed(1)) * 12).to(dtype).double()
    rows = torch.stack([torch.zeros_like(t), torch.full_like(t, -INF), -t], -1).to(dtype)
    found = row_stats(rows, k=1).logsumexp.expm1()
    off = (found / (-t).exp() - 1).abs()
    of_the_test = 2.0**-50 * (1 + t.exp())
    assert bool((off <= budgets.cpu_weight(UNITS[dtype], budgets.cpu_slope(1.0), -t) + of_the_test).all())


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_logarithm_is_as_accurate_as_the_bounds_assume(dtype):
    # Of a point mass H_f = -ln f - ln(1 + 1/f): half-way between both ends it is off by that logarithm alone.
    x = torch.tensor([[0.0, -INF]]).to(dtype)
    for floor in torch.linspace(0.02, 1, 200, dtype=torch.float64).tolist():
        # The threshold is f exp(-H_f) = f (1 + f) < 1.
        rule = encoded(parse_rule(f"typical_floor(1, {floor!r}, {floor!r})"))
        if floor * (1 + floor) >= 0.9:
            break
        results = (operators.certify(x, None, rule, 1, 1.0, sound, 16)[:6] for sound in (False, True))
        ends = [Certificate(*result).threshold.item() for result in results]
        off = abs((math.log(ends[0]) + math.log(ends[1])) / 2 - math.log(floor) - math.log1p(floor))
        assert off <= 8 * UNITS[dtype] * (1 + math.log1p(1 / floor)) + 1e-14


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("dtype", DTYPES)
def test_floored_entropy_decides_as_the_definition_does(dtype, temperature):
    # Accepted iff p >= min(epsilon, delta exp(-H_f)): with epsilon = 1 the threshold itself gives H_f.
    x = (torch.randn(4, 5000, generator=torch.Generator().manual_seed(4)) * 2).to(dtype)
    x[1], x[2, 1:], x[3, :7] = 0, -INF, 20
    p = torch.softmax(x.double() / temperature, -1)
    wide = 1e-12 if dtype == torch.float64 else 1e-5
    for floor in (1e-25, 1e-5, 0.1, 1.0):
        expected = (-p * (p + floor).log()).sum(-1).clamp(min=0)  # of a point mass it is negative, and epsilon the less
        arguments = (x, None, encoded(parse_rule(f"typical_floor(1, 1, {floor})")), 1, temperature)
        results = (operators.certify(*arguments, sound, 16)[:6] for sound in (True, False))
        low, high = (-Certificate(*result).threshold.log() for result in results)
        assert bool((low <= expected + 1e-13).all())
        assert bool((high >= expected - 1e-13).all())
        assert bool((high - low <= wide * (2 - math.log(floor))).all())


def compiled(steps, candidates=1):
    array = (Instruction * len(steps))(*(Instruction(*step) for step in steps))
    return Rule(array, len(steps), candidates, 1)


STRICT = [(Op.CONSTANT, 0, 0.0, 0.0), (Op.THRESHOLD, 0, 0.0, 0.0)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"k": 0},
        {"k": 6},
        {"vocab": 0},
        {"vocab": 2**32},
        {"temperature": 0.0},
        {"temperature": NAN},
        {"temperature": 1e200},
        {"rule": compiled(STRICT, 0), "k": 2},
        {"rule": compiled(STRICT, 5), "k": 5},
        {"rule": compiled(STRICT), "k": 1},
        {"rule": compiled(STRICT[1:]), "k": 2},
        {"rule": compiled(STRICT[:1]), "k": 2},
        {"rule": compiled(STRICT * 2), "k": 2},
        {"rule": compiled([*STRICT, (Op.AND, 0, 0.0, 0.0)]), "k": 2},
        {"rule": compiled([(Op.RANK, 0, 3.0, 0.0)]), "k": 3},
        {"rule": compiled([(99, 0, 0.0, 0.0)]), "k": 2},
        {"rule": compiled(STRICT[:1] * 65 + STRICT[1:]), "k": 2},
    ],
)
def test_arguments_out_of_range_are_refused(arguments):
    x = torch.zeros(1, 5)
    assert evaluate(x, {"status": torch.zeros(1, dtype=torch.int32)}, **{"k": 1} | arguments) == -1


def test_the_operations_are_numbered_as_in_the_header():
    header = (RUNTIME / "rows" / "cpu" / "rows.h").read_text()
    body = header.split("enum draftcert_op {")[1].split("};")[0]
    names = [line.split("//")[0].strip().rstrip(",") for line in body.splitlines()]
    assert [name for name in names if name] == [f"DRAFTCERT_{op.name}" for op in sorted(Op)]


def test_no_rows():
    assert row_stats(torch.zeros(0, 5)).status.shape == (0,)
