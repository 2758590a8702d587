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

from .row_stats import BLOCK, SPLITS, split


@dataclass(frozen=True)
class MachineCode:
    """Facts of a compiled `split` kernel: 16-byte loads from global memory, registers a thread, bytes spilled."""

    capability: int
    wide_loads: int
    registers: int
    spilled_bytes: int


def machine_code(capability: int, dtype: str, kept: int = 16) -> MachineCode:
    """Compile `split` for a compute capability (80, 90, 100) and logits of "bf16", "fp16" or "fp32", aligned rows."""
    signature = {"logits": f"*{dtype}", "row_stride": "i64", "column_stride": "constexpr", "size": "i32"}
    signature |= {"segment": "i32", "sums": "*fp32", "keys_out": "*i64"}
    signature |= dict.fromkeys(("K", "BLOCK", "SPLITS"), "constexpr")
    constants = {"column_stride": 1, "K": kept, "BLOCK": BLOCK, "SPLITS": SPLITS}
    names = list(signature)
    # Pointers and sizes that are multiples of 16, as those of torch are.
    aligned = {(names.index(name),): [["tt.divisibility", 16]] for name in ("logits", "row_stride", "size", "segment")}
    source = ASTSource(split, signature, {(names.index(name),): value for name, value in constants.items()}, aligned)
    compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32))
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "split.cubin"
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
