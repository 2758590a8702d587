"""Ahead-of-time compilation of the kernels, on any machine: what the compiler made of them."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from ..program import Program
from .enclosures import accepted_set
from .launch import FINISH, REFINE, SPLIT, list_sizes
from .merge import finish_certificates, finish_statistics
from .refine import refine
from .split import split

KERNELS = {
    "split": (split, SPLIT),
    "finish_statistics": (finish_statistics, FINISH),
    "finish_certificates": (finish_certificates, FINISH),
    "refine": (refine, REFINE),
}
TYPES = {
    "*fp32": "sums maxima",
    "*fp64": "maximum_out logsumexp entropy top_values logsumexp_error entropy_error value_out level_out threshold_out "
    "kl_out kl_error numbers",
    "*i64": "keys argmax top_ids accepted_out",
    "*i32": "groups",
    "*i8": "exact certified",
    "*u8": "passes status",
    "i64": "row_stride draft_row_stride temperature_bits",
    "i32": "size segment k window candidates",
    "fp32": "rate",
}
MULTIPLES = {"logits", "draft", "row_stride", "draft_row_stride", "size", "segment"}
"""What is a multiple of 16 where rows are aligned, as all memory that torch allocates is."""


@dataclass(frozen=True)
class MachineCode:
    """A compiled kernel: registers a thread, bytes spilled, warps a program, and its lines of disassembly."""

    capability: int
    registers: int
    spilled_bytes: int
    warps: int
    lines: tuple[str, ...]

    @property
    def wide_loads(self) -> int:
        """16-byte loads from global memory."""
        return sum(bool(re.search(r"LDG\S*\.128", line)) for line in self.lines)


def machine_code(
    capability: int,
    dtype: str,
    kernel: str = "split",
    kept: int = 16,
    pair: bool = False,
    splits: int = 16,
    program: Program | None = None,
) -> MachineCode:
    """Compile a kernel for a compute capability (80, 90, 100) and aligned rows of "bf16", "fp16" or "fp32".

    `pair`: as it is with drafter logits; `program`: the rule of `finish_certificates`.
    """
    function, options = KERNELS[kernel]
    width, room = list_sizes(kept)
    constants: dict[str, Any] = {"column_stride": 1, "draft_column_stride": 1, "VECTOR": 4 if dtype == "fp32" else 8}
    constants |= {
        "SPLITS": splits,
        "PAIR": pair,
        "K": width,
        "ROOM": room,
        "SOUND": True,
        "CERTIFY": program is not None,
    }
    if program is not None:
        constants["ACCEPTED"] = accepted_set(program)
    types = {name: kind for kind, names in TYPES.items() for name in names.split()}
    types |= {"logits": f"*{dtype}", "draft": f"*{dtype}"} | dict.fromkeys(constants, "constexpr")
    names = function.arg_names
    aligned = {
        (index,): [["tt.divisibility", 16]]
        for index, name in enumerate(names)
        if name in MULTIPLES or types[name].startswith("*")
    }
    fixed = {(index,): constants[name] for index, name in enumerate(names) if name in constants}
    source = ASTSource(function, {name: types[name] for name in names}, fixed, aligned)
    compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernel.cubin"
        cubin.write_bytes(compiled.asm["cubin"])
        usage = _disassemble("-res-usage", cubin)
        code = _disassemble("-sass", cubin)
    return MachineCode(
        capability=capability,
        registers=int(re.findall(r"REG:(\d+)", usage)[-1]),
        spilled_bytes=int(re.findall(r"LOCAL:(\d+)", usage)[-1]),
        warps=options["num_warps"],
        lines=tuple(line for line in code.splitlines() if re.match(r"\s+/\*[0-9a-f]{4,}\*/", line)),
    )


def _disassemble(option: str, cubin: Path) -> str:
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    return subprocess.run([str(tool), option, str(cubin)], capture_output=True, text=True, check=True).stdout
