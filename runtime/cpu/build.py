"""Compiles the CPU kernels on first use and binds them.

>>> from draftcert.runtime.cpu import build
>>> build.library().draftcert_use_instruction_set(0)  # the portable loops
0

The shared library is kept in the user's cache folder under a name that is a hash of the sources, the flags, the
compiler and torch, so that what changes is a new file and an old file is never wrong.
"""

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

import torch
from filelock import FileLock
from platformdirs import user_cache_path

SOURCES = {
    "rows": ("rows.cpp", "operators.cpp", "rows.h", "row_kernel.h", "certificate.h", "../generated/formulas.h"),
    "layers": ("layers.cpp", "layers.h", "layer_kernel.h"),
}
"""Files of each library: those to compile, and those they include."""
TORCH = Path(torch.__file__).parent
LINKED = {
    "rows": [
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        *("-isystem", str(TORCH / "include"), f"-L{TORCH / 'lib'}", "-lc10", "-ltorch_cpu"),
    ],
    "layers": [],
}
"""What operators of torch are compiled and linked with."""
# No -march=native: machines may share the cache, and the library itself chooses the widest instruction set they have.
FLAGS = ["-O3", "-std=c++17", "-shared", "-fPIC", "-Wno-psabi"]


class Instruction(ctypes.Structure):
    """`draftcert_instruction`."""

    _fields_ = [
        ("op", ctypes.c_int32),
        ("strict", ctypes.c_int32),
        ("low", ctypes.c_double),
        ("high", ctypes.c_double),
    ]


def compiler() -> str:
    """The C++ compiler: `$CXX`, else g++, else clang++ (which gets the portable loops only)."""
    for name in (os.environ.get("CXX"), "g++", "clang++"):
        if name and (path := shutil.which(name)):
            return path
    raise RuntimeError("draftcert's CPU kernels need a C++17 compiler: install g++ or clang++, or name one in CXX")


def compile_library(name: str = "rows") -> Path:
    """The path of a compiled library of `SOURCES`; compiles it where the cache has none."""
    cxx = compiler()
    version = subprocess.run([cxx, "--version"], capture_output=True, text=True, check=True).stdout
    linked = [torch.__version__] if LINKED[name] else []
    key = hashlib.sha256("\0".join([version, platform.machine(), *FLAGS, *linked]).encode())
    sources = [Path(__file__).parent / file for file in SOURCES[name]]
    for source in sources:
        key.update(source.read_bytes())
    path = user_cache_path("draftcert") / f"{name}-{key.hexdigest()[:16]}.so"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        if not path.exists():  # another process may have been first
            with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                built = Path(folder) / path.name
                # Without OpenMP the kernels are complete, on one thread. With it they share the thread pool of torch,
                # whose libgomp is the same library to the loader.
                files = [str(source) for source in sources if source.suffix == ".cpp"]
                for openmp in (["-fopenmp"], []):
                    command = [cxx, *FLAGS, *openmp, *files, *LINKED[name], "-o", str(built)]
                    done = subprocess.run(command, capture_output=True, text=True)
                    if done.returncode == 0:
                        break
                else:
                    raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
                os.replace(built, path)
    return path


@functools.cache
def library() -> ctypes.CDLL:
    """The kernels, which from now on serve the operators of `runtime.operators` on CPU tensors.

    `rows.h` and `operators.cpp` say what they do.
    """
    path = str(compile_library())
    torch.ops.load_library(path)
    kernels = ctypes.CDLL(path)
    kernels.draftcert_define_rule.restype = None
    kernels.draftcert_define_rule.argtypes = [
        ctypes.c_char_p, ctypes.POINTER(Instruction), ctypes.c_int64, ctypes.c_int64
    ]  # fmt: skip
    kernels.draftcert_use_instruction_set.restype = ctypes.c_int
    kernels.draftcert_use_instruction_set.argtypes = [ctypes.c_int]
    return kernels
