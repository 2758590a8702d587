"""The Triton kernels by their interpreter against the reference, and their machine code without a GPU."""

import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("triton", reason="triton is installed on Linux only")


def run(program, **environment):
    """Run in a process of its own: the interpreter is chosen when the kernels are imported."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_interpreted_kernels_against_the_reference():
    out = run(
        """
        import torch
        from draftcert.runtime.rows import reference
        from draftcert.runtime.rows.cuda import row_stats as kernel

        generator = torch.Generator().manual_seed(0)
        checked = 0
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            for size, k, splits, block in ((5, 2, 1, 8), (90, 3, 2, 32)):
                rows = (torch.randn(5, size, generator=generator) * 3).to(dtype)
                rows[0] = 0
                rows[1, ::3] = -torch.inf
                rows[2, :] = -torch.inf
                rows[2, size - 1] = 7
                rows[3, -2:] = 60
                rows[4] = torch.where(torch.arange(size) % 2 == 0, 0.0, -0.0)
                found = kernel.launch(rows, k, splits=splits, block=block).stats
                expected = reference.statistics(rows, k)
                for name in ("max", "argmax", "top_values", "top_ids"):
                    assert torch.equal(getattr(found, name), getattr(expected, name)), (name, dtype, size)
                for name in ("logsumexp", "entropy"):
                    difference = (getattr(found, name) - getattr(expected, name)).abs()
                    assert bool((difference <= getattr(found, name + "_error")).all()), (name, dtype, size)
                    assert float(getattr(found, name + "_error").max()) < 3e-4
                checked += len(rows)
        rows = torch.randn(3, 40)
        rows[1, 7] = torch.nan
        rows[2, 8] = torch.inf
        maximum = kernel.launch(rows, 2, splits=2, block=16).stats.max
        assert maximum[1].isnan() and maximum[2] == torch.inf
        print(checked)
        """,
        TRITON_INTERPRET="1",
    )
    assert int(out) == 30


def test_interpreted_divergence_and_temperature_against_the_reference():
    out = run(
        """
        import torch
        from draftcert.runtime.rows import reference
        from draftcert.runtime.rows.cuda import row_stats as kernel

        generator = torch.Generator().manual_seed(1)
        inf = torch.inf
        for temperature in (1.0, 0.6):
            rows = torch.randn(9, 90, generator=generator) * 3
            draft = rows + 0.5 * torch.randn(9, 90, generator=generator)
            draft[1] = rows[1]
            draft[2] = rows[2] + 1e-4 * torch.randn(90, generator=generator)
            rows[3, ::3] = -inf
            draft[3, ::3] = -inf
            draft[4, 5] = -inf
            draft[5, 7] = torch.nan
            draft[6] = -inf
            rows[7, 50:], draft[7, :] = -inf, torch.arange(90.0) * 10
            draft[8, 3] = -2000.0
            found = kernel.launch(rows, 3, temperature, draft, splits=2, block=32)
            expected = reference.statistics(rows, 3, temperature)
            kl, error = reference.divergence(rows, draft, temperature)
            for name in ("max", "argmax", "top_values", "top_ids"):
                assert torch.equal(getattr(found.stats, name), getattr(expected, name)), name
            for name in ("logsumexp", "entropy"):
                difference = (getattr(found.stats, name) - getattr(expected, name)).abs()
                assert bool((difference <= getattr(found.stats, name + "_error")).all()), (name, difference)
            assert found.kl.isnan().tolist() == [row in (5, 6) for row in range(9)]
            assert found.kl.isinf().tolist() == [row == 4 for row in range(9)]
            for row in (0, 1, 2, 3, 7, 8):
                assert abs(found.kl[row] - kl[row]) <= found.kl_error[row] + error[row], (row, found.kl[row], kl[row])
                # Either relatively small, or that of float64.
                assert found.kl_error[row] <= max(found.kl[row] / 128, 1e-9), (row, found.kl_error[row])
        print("ok")
        """,
        TRITON_INTERPRET="1",
    )
    assert out.strip() == "ok"


def test_generated_formulas_by_the_interpreter():
    out = run(
        """
        import mpmath, torch, triton, triton.language as tl
        from draftcert.runtime.generated.triton_formulas import bennett, kl_of_logs

        @triton.jit
        def both(x, h, k, N: tl.constexpr):
            i = tl.arange(0, N)
            v = tl.load(x + i)
            tl.store(h + i, bennett(v))
            tl.store(k + i, kl_of_logs(tl.full((N,), 0.5, tl.float32), v))

        x = torch.tensor([-1.0, -0.9, -0.3, -0.2499, -1e-4, 1e-6, 0.01, 0.25, 0.2501, 1, 3, 50, 0, 0.1, -0.5, 2])
        h, k = torch.empty_like(x), torch.empty_like(x)
        both[(1,)](x, h, k, N=16)
        for value, got_h in zip(x.tolist(), h.tolist()):
            v = mpmath.mpf(value)
            true = 1 if value == -1 else (1 + v) * mpmath.log(1 + v) - v
            assert abs(got_h - true) <= 4e-6 * abs(true), (value, got_h, true)
        print("ok")
        """,
        TRITON_INTERPRET="1",
    )
    assert out.strip() == "ok"


@pytest.mark.parametrize(
    ("capability", "dtype", "pair"),
    [(80, "bf16", False), (90, "fp32", False), (100, "bf16", False), (90, "bf16", True)],
)
def test_machine_code_has_wide_loads_and_no_spills(capability, dtype, pair):
    from draftcert.runtime.rows.cuda.compile import machine_code

    code = machine_code(capability, dtype, pair=pair)
    assert code.wide_loads >= 1 + pair, code
    assert code.spilled_bytes == 0, code
    assert code.registers <= 255, code


@pytest.mark.parametrize(("kernel", "capability"), [("merge", 80), ("refine", 100)])
def test_the_other_kernels_compile_without_spills(kernel, capability):
    from draftcert.runtime.rows.cuda.compile import machine_code

    assert machine_code(capability, "bf16", pair=True, kernel=kernel).spilled_bytes == 0
