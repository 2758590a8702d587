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
        from draftcert.runtime import reference
        from draftcert.runtime.cuda import row_stats as kernel

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
                found, expected = kernel.row_stats(rows, k, splits, block), reference.statistics(rows, k)
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
        maximum = kernel.row_stats(rows, 2, 2, 16).max
        assert maximum[1].isnan() and maximum[2] == torch.inf
        print(checked)
        """,
        TRITON_INTERPRET="1",
    )
    assert int(out) == 30


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


@pytest.mark.parametrize(("capability", "dtype"), [(80, "bf16"), (90, "fp32"), (100, "bf16")])
def test_machine_code_has_wide_loads_and_no_spills(capability, dtype):
    from draftcert.runtime.cuda.compile import machine_code

    code = machine_code(capability, dtype)
    assert code.wide_loads >= 1, code
    assert code.spilled_bytes == 0, code
    assert code.registers <= 255, code
