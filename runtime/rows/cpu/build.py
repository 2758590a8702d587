"""The row kernels in C++, compiled on first use.

>>> from draftcert.runtime.rows.cpu import build
>>> build.library().draftcert_use_instruction_set(0)  # the portable loops
0
"""

import ctypes
import functools
from pathlib import Path

import torch

from ...native import load

HERE = Path(__file__).parent
FILES = ("rows.cpp", "operators.cpp", "rows.h", "row_kernel.h", "certificate.h", "../../generated/formulas.h")
TORCH = Path(torch.__file__).parent
LINKED = [
    f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
    *("-isystem", str(TORCH / "include"), f"-L{TORCH / 'lib'}", "-lc10", "-ltorch_cpu"),
]
"""What operators of torch are compiled and linked with.

These belong to one version of torch, hence no wheel carries the library. torch's stable interface has all that
operators.cpp needs, but from torch 2.10 on only, and a wheel is built without torch beside it: for the seconds of the
first call it would cost the versions before, wheels for each platform, and torch itself as a requirement of the build.
"""


@functools.cache
def library() -> ctypes.CDLL:
    """The kernels, which from now on serve the operators of `runtime.rows.operators` on CPU tensors.

    `rows.h` and `operators.cpp` say what they do.

    Raises:
        NoLibraryError: they cannot be compiled or loaded.
    """
    return load("row kernels", [HERE / file for file in FILES], LINKED, f"torch {torch.__version__}", _loaded)


def _loaded(path: str) -> ctypes.CDLL:
    torch.ops.load_library(path)
    kernels = ctypes.CDLL(path)
    kernels.draftcert_use_instruction_set.restype = ctypes.c_int
    kernels.draftcert_use_instruction_set.argtypes = [ctypes.c_int]
    return kernels
