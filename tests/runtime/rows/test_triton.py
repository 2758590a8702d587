"""The Triton kernels: by their interpreter in a process of their own, and their machine code without a GPU."""

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch

from draftcert.runtime.rows import certify, dispatch, operators
from draftcert.runtime.rows.program import encoded, program
from draftcert.theory import DraftcertError, parse_rule

needs_triton = pytest.mark.skipif(sys.platform != "linux", reason="triton is installed on Linux only")


@needs_triton
def test_the_interpreted_kernels():
    """The interpreter is chosen when the kernels are imported: they need a process of their own."""
    file = Path(__file__).with_name("interpreted_kernels.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@needs_triton
@pytest.mark.parametrize(
    ("capability", "dtype", "pair", "registers"),
    [(80, "bf16", False, 80), (90, "bf16", False, 80), (90, "fp32", True, 168), (100, "bf16", True, 128)],
)
def test_the_pass_over_the_logits_has_wide_loads_in_flight_and_no_spills(capability, dtype, pair, registers):
    from draftcert.runtime.rows.cuda.compile import machine_code

    code = machine_code(capability, dtype, pair=pair)
    # The first block, the next one within the loop, and the last one.
    assert code.wide_loads == 3 * (1 + pair) * (8 if dtype == "fp32" else 4), code
    assert code.spilled_bytes == 0, code
    assert code.registers <= registers, code


@needs_triton
@pytest.mark.parametrize(
    ("kernel", "capability", "rule"),
    [
        ("finish_statistics", 80, None),
        ("finish_certificates", 90, "typical(0.09, 0.3)"),
        ("finish_certificates", 100, "top_m(10) & additive(0.6)"),
        ("refine", 90, None),
    ],
)
def test_the_other_kernels_compile_without_spills(kernel, capability, rule):
    from draftcert.runtime.rows.cuda.compile import machine_code

    steps = None if rule is None else program(parse_rule(rule))
    code = machine_code(capability, "bf16", kernel, pair=True, kept=17, program=steps)
    assert code.spilled_bytes == 0, code


def test_cuda_without_triton_falls_back_with_one_warning(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    for name in [name for name in sys.modules if name.startswith("draftcert.runtime.rows.cuda.")]:
        monkeypatch.delitem(sys.modules, name)
    dispatch.cuda_kernels.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match=r"draftcert\[cuda\]"):
            assert dispatch.cuda_kernels() is None
        rows = torch.tensor([[1.0, 0.0, -1.0]])
        found = operators._certify_on_cuda(rows, None, encoded(parse_rule("strict_greedy")), 1, 1.0, True, 16)
        assert torch.allclose(found[0], certify(rows, "strict_greedy").value, rtol=1e-4)
    finally:
        dispatch.cuda_kernels.cache_clear()


def test_logits_on_mps_are_refused_with_the_way_out():
    rows = types.SimpleNamespace(device=torch.device("mps"))
    with pytest.raises(DraftcertError, match=r"mps.*logits\.cpu\(\)"):
        dispatch.statistics(rows, 1)  # pyright: ignore[reportArgumentType]  # no such device here


@needs_triton
def test_issue_slots_of_the_machine_code(monkeypatch):
    monkeypatch.syspath_prepend("benchmarks")
    import roofline  # pyright: ignore[reportMissingImports]

    from draftcert.runtime.rows.cuda.compile import machine_code

    code = roofline.Code(machine_code(90, "bf16").lines)
    (loop,) = code.loops()
    assert 6 < code.size(loop) / 32 < 10.5  # a lane has 32 logits of a block
    assert code.size(loop) < code.size(code.optional(code.all - loop, "LDG")) < 1.1 * code.size(loop)  # the last block
    code = roofline.Code(machine_code(90, "bf16", "finish_statistics").lines)
    halving, share, taking = code.loops()
    assert taking < share
    assert not halving & share
    assert 0 < code.size(code.optional(taking, "SHFL")) < code.size(taking)
