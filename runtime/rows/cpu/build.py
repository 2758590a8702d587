"""The row kernels in C++, compiled on first use.

>>> from draftcert.runtime.rows.cpu import build
>>> build.library().draftcert_use_instruction_set(0)  # the portable loops
0
>>> build.library().draftcert_use_instruction_set(-1) >= 0  # again the widest that this machine runs
True
"""

import ctypes
import functools
from pathlib import Path

import torch

from ...native import compile_library

HERE = Path(__file__).parent
GENERATED = ("../../generated/budgets.h", "../../generated/formulas.h")
FILES = ("rows.cpp", "operators.cpp", "rows.h", "row_kernel.h", "certificate.h", *GENERATED)
TORCH = Path(torch.__file__).parent
LINKED = [
    f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
    *("-isystem", str(TORCH / "include"), f"-L{TORCH / 'lib'}", "-lc10", "-ltorch_cpu"),
]
"""What operators of torch are compiled and linked with."""


@functools.cache
def library() -> ctypes.CDLL:
    """The kernels, which from now on serve the operators of `runtime.rows.operators` on CPU tensors.

    `rows.h` and `operators.cpp` say what they do.
    """
    path = str(compile_library("rows", [HERE / file for file in FILES], LINKED, torch.__version__))
    torch.ops.load_library(path)
    kernels = ctypes.CDLL(path)
    kernels.draftcert_use_instruction_set.restype = ctypes.c_int
    kernels.draftcert_use_instruction_set.argtypes = [ctypes.c_int]
    return kernels
