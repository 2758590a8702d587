"""The Triton kernels by their interpreter, on the CPU: run by test_triton.py in a process with TRITON_INTERPRET=1."""

import math
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
import torch
import triton.language as tl
from torch.utils._python_dispatch import TorchDispatchMode
from triton.runtime import interpreter
from triton.runtime.interpreter import GridExecutor, InterpretedFunction, ReduceOps

from draftcert.numerics import certificate
from draftcert.runtime.rows import operators, reference
from draftcert.runtime.rows.cuda import launch
from draftcert.runtime.rows.cuda.launch import Plan
from draftcert.runtime.rows.program import encoded, program
from draftcert.theory import DraftcertError, parse_rule

INF = torch.inf


@pytest.fixture(autouse=True)
def the_interpreter_does_nothing_twice(monkeypatch):
    """At each call of a device function it patches the language anew, for each value it makes a table of the types, and
    of the exclusive or of two numbers, by which `topk` swaps, it makes tensors: together most of the time.
    """
    patch, launched, patched = interpreter._patch_lang, GridExecutor.__call__, set()
    look_up, reduce_slowly, known = interpreter._get_np_dtype, ReduceOps.generic_reduce, {}

    def once(function):
        modules = frozenset(name for name, value in function.__globals__.items() if value is tl or value is tl.core)
        if modules in patched:
            return interpreter._LangPatchScope()
        patched.add(modules)
        return patch(function)

    def launch_anew(kernel, *arguments, **options):
        patched.clear()
        return launched(kernel, *arguments, **options)

    def type_of(kind):
        name = kind.scalar.name
        if name not in known:
            known[name] = look_up(kind)
        return known[name]

    def reduce(self, input):
        if self.combine_fn is not tl.standard._xor_combine:
            return reduce_slowly(self, input)
        found = np.bitwise_xor.reduce(input[0].handle.data, axis=self.axis, keepdims=self.keep_dims)
        return self.to_tensor(found, input[0].dtype)

    monkeypatch.setattr(interpreter, "_patch_lang", once)
    monkeypatch.setattr(interpreter, "_get_np_dtype", type_of)
    monkeypatch.setattr(GridExecutor, "__call__", launch_anew)
    monkeypatch.setattr(ReduceOps, "generic_reduce", reduce)


def random(rows, size, dtype=torch.float32, spread=3.0, seed=0):
    return (torch.randn(rows, size, generator=torch.Generator().manual_seed(seed)) * spread).to(dtype)


def adversarial(size, dtype):
    """Rows of equal logits, of masks, of one token, of a tie at the end, of both zeros, and an ordinary one."""
    rows = random(6, size, dtype)
    rows[0] = 0
    rows[1, 1::3] = -INF
    rows[2, :-1] = -INF
    rows[3, -2:] = 60
    rows[4] = torch.where(torch.arange(size) % 2 == 0, 0.0, -0.0)
    rows[5, size // 2 :] = torch.finfo(dtype).min
    return rows


def matches_the_reference(rows, k, temperature=1.0, plan=None):
    found, status = launch.statistics(rows, k, temperature, plan=plan)
    expected = reference.statistics(rows, k, temperature)
    order = [sorted(range(rows.shape[1]), key=lambda i, row=row: (-row[i], i))[:k] for row in rows.tolist()]
    assert found.stats.top_ids.tolist() == order
    for name in ("max", "argmax", "top_values"):
        assert torch.equal(getattr(found.stats, name), getattr(expected, name)), name
    for name in ("logsumexp", "entropy"):
        bound = getattr(found.stats, name + "_error")
        assert bool(((getattr(found.stats, name) - getattr(expected, name)).abs() <= bound).all()), name
        assert bool((bound < 1e-4 + 1e-15 * getattr(expected, name).abs()).all())
    assert not status.any()


@pytest.mark.parametrize(
    ("dtype", "size", "k"),
    [
        (torch.float32, 1, 1),
        (torch.bfloat16, 2, 2),
        (torch.float16, 3, 3),
        (torch.float32, 4, 2),
        (torch.bfloat16, 5, 5),
        (torch.float16, 90, 90),
    ],
)
def test_short_rows(dtype, size, k):
    matches_the_reference(adversarial(size, dtype), k, 0.7 if size == 4 else 1.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_of_several_segments_with_an_end_that_fills_no_block(dtype):
    matches_the_reference(adversarial(2600, dtype), 17, plan=Plan(splits=2, segment=2048, vector=16 // dtype.itemsize))


def test_many_equal_logits_fill_the_list_more_than_once():
    rows = random(2, 1200).round()
    rows[1] = rows[1].sign()
    matches_the_reference(rows, 40)


@pytest.mark.parametrize("rows", [random(7, 3)[:, :1].expand(7, 2), random(90, 3).T, random(3, 91)[:, 1:]])
def test_strides_and_rows_that_are_not_aligned(rows):
    assert Plan.of(rows, 2).vector == 1
    matches_the_reference(rows, 2)


def test_status_of_rows_that_are_no_rows_of_logits():
    rows, draft = random(6, 40), random(6, 40, seed=1)
    rows[1, 7], rows[2, 8], rows[3] = torch.nan, INF, -INF
    draft[4, 3], draft[5] = INF, -INF
    found, status = launch.statistics(rows, 2, 1.0, draft)
    assert status.tolist() == [0, 1, 1, 1, 2, 2]
    assert found.stats.max.isfinite().tolist() == [True, False, False, False, True, True]
    assert found.kl is not None
    assert found.kl[4:].isnan().all()


# ---- The divergence, from its definition ----------------------------------------------------------------------------


def exact_kl(target, draft, temperature):
    with mpmath.workdps(60):

        def logs(row):
            scaled = [mpmath.mpf(x) / mpmath.mpf(temperature) for x in row]
            top = max(scaled)
            total = mpmath.log(mpmath.fsum(mpmath.exp(x - top) for x in scaled))
            return [x - top - total for x in scaled]

        pairs = [(a, b) for a, b in zip(logs(target), logs(draft), strict=True) if a > -mpmath.inf]
        return (
            mpmath.inf
            if any(b == -mpmath.inf for _, b in pairs)
            else mpmath.fsum(mpmath.exp(a) * (a - b) for a, b in pairs)
        )


def test_divergence_within_its_error_of_the_exact_one():
    for temperature, dtype in ((1.0, torch.float32), (0.6, torch.bfloat16)):
        rows = random(9, 90, dtype)
        draft = (rows + 0.5 * random(9, 90, seed=1)).to(dtype)
        draft[1] = rows[1]
        draft[2] = rows[2] + 1e-2 * random(1, 90, seed=2)[0].to(dtype)
        rows[3, ::3] = draft[3, ::3] = -INF
        draft[4, 5] = -INF
        draft[5] += 1000
        rows[6, 3:] = draft[6, 3:] = torch.finfo(dtype).min
        rows[7, 50:], draft[7] = -INF, torch.arange(90.0) * 10
        draft[8, 3] = torch.finfo(dtype).min
        # Weights below any float32, times logits near its end.
        rows[0, 4], draft[0, 4] = -95, -0.9 * torch.finfo(dtype).max
        rows[4, 6], draft[4, 6] = -200, torch.finfo(dtype).min
        found, status = launch.statistics(rows, 3, temperature, draft)
        assert not status.any()
        assert found.kl is not None
        assert found.kl_error is not None
        for row in range(len(rows)):
            exact = exact_kl(rows[row].tolist(), draft[row].tolist(), temperature)
            kl, error = float(found.kl[row]), float(found.kl_error[row])
            assert kl == exact if exact == mpmath.inf else abs(kl - exact) <= error, (row, kl, exact, error)
            # Either relatively small, or that of float64; equal rows have next to none.
            assert error <= max(kl / 128, 1e-12), (row, kl, error)
        assert found.kl[1] < 1e-20
        assert found.kl_error[1] < 1e-20


# ---- Certificates ---------------------------------------------------------------------------------------------------


def exact_certificate(row, rule, candidates, temperature):
    with mpmath.workdps(80):
        gaps = [(mpmath.mpf(z) - max(row)) / mpmath.mpf(temperature) for z in row]
        # What a finite mask leaves is 0 to any number of digits.
        p = [Fraction(str(mpmath.nstr(mpmath.exp(gap), 75))) if gap > -1e4 else Fraction(0) for gap in gaps]
    finite = [max(z, -1e30) for z in row]  # of which a rule compares the two largest
    return certificate(p, rule, candidates, 30, logits=finite, normalize=True)


@pytest.mark.parametrize(
    ("text", "candidates", "temperature", "dtype"),
    [
        ("strict_greedy", 1, 1.0, torch.float32),
        ("typical(0.09, 0.3)", 2, 0.75, torch.bfloat16),
        ("top_m(4) & additive(0.3)", 1, 1.0, torch.float16),
        ("top_m(2) | absolute(0.2)", 3, 1.0, torch.float32),
        ("mars(0.9)", 1, 1.0, torch.bfloat16),
        ("multiplicative(0.1)", 2, 2.0, torch.float32),
    ],
)
def test_certificates_are_sound_and_near_the_exact_ones(text, candidates, temperature, dtype):
    rows = random(6, 12, dtype)
    rows[1, :2] = 5
    rows[2, 3:] = -INF
    rows[3, 5:] = torch.finfo(dtype).min
    draft = (rows + 0.3 * random(6, 12, seed=1)).to(dtype)
    draft[0] = rows[0]
    draft[2, 3:] = -INF
    draft[3, 5:] = torch.finfo(dtype).min
    rule = parse_rule(text)
    for sound in (True, False):
        found, status = launch.certificates(rows, draft, program(rule), candidates, temperature, sound, 12)
        assert found.kl is not None
        assert found.certified is not None
        assert not status.any()
        assert found.exact.all()
        assert (found.passes == 1).all()
        for row in range(len(rows)):
            logits = rows[row].tolist()
            true = exact_certificate(logits, rule, candidates, temperature)
            assert int(found.accepted[row]) == len(true.accepted)
            value, kl = float(found.value[row]), exact_kl(logits, draft[row].tolist(), temperature)
            if true.level is None:
                assert value == math.inf
                assert found.level[row].isnan()
            else:
                assert abs(value - float(true.lower)) <= 1e-4 * float(true.upper)
                assert abs(float(found.level[row]) / float(true.level) - 1) < 1e-4
                assert not sound or value <= true.upper
            assert not sound or float(found.kl[row]) >= kl
            assert bool(found.certified[row]) == (kl < float(true.lower) if true.level is not None else kl < mpmath.inf)


def test_rows_that_their_largest_logits_leave_open_go_through_the_tensors():
    rows = random(5, 60)
    rows[2] = 0
    rows[3] = torch.linspace(1, 0, 60)
    draft = rows + 0.1 * random(5, 60, seed=1)
    arguments = (encoded(parse_rule("multiplicative(0.5)")), 2, 1.0, True, 4)
    found = operators._certify_on_cuda(rows, draft, *arguments)
    expected = operators.certify_by_tensors(rows, draft, *arguments)
    assert found[5].tolist() == [1, 1, 2, 2, 1]
    for column, other in zip(found, expected, strict=True):
        assert torch.allclose(column.double(), other.double(), rtol=1e-3, atol=1e-4, equal_nan=True)
    stats = operators._row_stats_on_cuda(rows.view(5, 1, 60), 3)
    assert [tuple(column.shape) for column in stats] == [(5, 1)] * 4 + [(5, 1, 3)] * 2 + [(5, 1)] * 2
    draft[4, 1] = torch.nan
    with pytest.raises(DraftcertError, match=r"draft_logits\[4\]: the logit of token 1 is nan"):
        operators._certify_on_cuda(rows, draft, *arguments)


class Calls(TorchDispatchMode):
    """Launches of kernels, and the operators of torch between them."""

    def __init__(self, monkeypatch):
        super().__init__()
        self.launches, self.operators, self._inside = 0, set(), False
        run = InterpretedFunction.run

        def counted(kernel, *arguments, **options):
            self.launches, self._inside = self.launches + 1, True
            run(kernel, *arguments, **options)
            self._inside = False

        monkeypatch.setattr(InterpretedFunction, "run", counted)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if not self._inside:
            self.operators.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("text", ["strict_greedy", "top_m(4) & additive(0.3)", "typical(0.09, 0.3)"])
def test_certify_is_three_launches_and_nothing_else(monkeypatch, text):
    rows, draft = random(2, 20)[:, None]
    steps = encoded(parse_rule(text))
    with Calls(monkeypatch) as calls:
        operators._certify_on_cuda(rows, draft, steps, 1, 1.0, True, 16)
    assert calls.launches == 3
    # Memory, views of it, and the host's look at the status.
    assert calls.operators <= {"new_empty", "view", "detach", "_to_copy", "bitwise_and", "any", "_local_scalar_dense"}


def test_the_roofline_counts_what_the_kernels_run(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "benchmarks")
    import roofline  # pyright: ignore[reportMissingImports]

    rows, plan = random(1, 2600, torch.bfloat16), Plan(splits=2, segment=2048, vector=8)
    runs = roofline.traced(lambda: launch.statistics(rows, 5, plan=plan))
    assert runs["blocks after the first"] == 1  # of the first segment; the second has less than a block
    assert runs["last blocks"] == 0
    groups = int(roofline.groups_read_again(rows, plan, 5))
    assert 5 <= groups < 64
    assert runs["shares"] == -(-groups * 2 // 128)
    assert runs["takings"] >= runs["shares"]
    assert runs["sorts"] == runs["refined"] == 0
