"""Ahead-of-time compilation of the kernels, on any machine: what the compiler made of them."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from . import row_stats
from .row_stats import BLOCK, FIELDS, SPLITS


@dataclass(frozen=True)
class MachineCode:
    """Facts of a compiled kernel: 16-byte loads from global memory, registers a thread, bytes spilled."""

    capability: int
    wide_loads: int
    registers: int
    spilled_bytes: int


def machine_code(capability: int, dtype: str, kept: int = 16, pair: bool = False, kernel: str = "split") -> MachineCode:
    """Compile a kernel of `row_stats` for a compute capability (80, 90, 100) and logits of "bf16", "fp16" or "fp32".

    `pair`: as it is with drafter logits. Rows are aligned.
    """
    function = getattr(row_stats, kernel)
    constants = {"column_stride": 1, "draft_column_stride": 1, "K": kept, "BLOCK": BLOCK, "SPLITS": SPLITS}
    constants |= {"FIELDS": FIELDS, "PAIR": pair}
    types = {"logits": f"*{dtype}", "draft": f"*{dtype}", "row_stride": "i64", "draft_row_stride": "i64"}
    types |= {"size": "i32", "segment": "i32", "inverse": "fp32", "relative": "fp32", "ln_size": "fp32"}
    types |= {"sums": "*fp32", "keys_out": "*i64", "keys_in": "*i64", "temperature": "*fp64"}
    types |= {"numbers": "*fp64", "top_values": "*fp64", "top_ids": "*i64"} | dict.fromkeys(constants, "constexpr")
    names = function.arg_names
    # Pointers and sizes that are multiples of 16, as those of torch are.
    multiples = {"logits", "row_stride", "draft", "draft_row_stride", "size", "segment"}
    aligned = {(index,): [["tt.divisibility", 16]] for index, name in enumerate(names) if name in multiples}
    fixed = {(index,): constants[name] for index, name in enumerate(names) if name in constants}
    source = ASTSource(function, {name: types[name] for name in names}, fixed, aligned)
    compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32))
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernel.cubin"
        cubin.write_bytes(compiled.asm["cubin"])
        usage = _disassemble("-res-usage", cubin)
        code = _disassemble("-sass", cubin)
    return MachineCode(
        capability=capability,
        wide_loads=len(re.findall(r"LDG\S*\.128", code)),
        registers=int(re.findall(r"REG:(\d+)", usage)[-1]),
        spilled_bytes=int(re.findall(r"LOCAL:(\d+)", usage)[-1]),
    )


def _disassemble(option: str, cubin: Path) -> str:
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    return subprocess.run([str(tool), option, str(cubin)], capture_output=True, text=True, check=True).stdout
