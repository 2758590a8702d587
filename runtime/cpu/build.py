"""Compiles the CPU kernels on first use and binds them.

>>> from draftcert.runtime.cpu import build
>>> build.library().draftcert_use_instruction_set(0)  # the portable loops
0

The shared library is kept in the user's cache folder under a name that is a hash of the sources, the flags and the
compiler, so that a changed source or compiler is a new file and an old file is never wrong.
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

from filelock import FileLock
from platformdirs import user_cache_path

SOURCES = {
    "row_stats": ("row_stats.cpp", "row_stats.h", "row_kernel.h"),
    "linear": ("linear.cpp", "linear.h", "linear_kernel.h"),
}
# No -march=native: machines may share the cache, and the library itself chooses the widest instruction set they have.
FLAGS = ["-O3", "-std=c++17", "-shared", "-fPIC", "-Wno-psabi"]
DTYPES = {"float32": 0, "bfloat16": 1, "float16": 2, "float64": 3}


class Logits(ctypes.Structure):
    """`draftcert_logits`: strides in elements, dtype one of `DTYPES`."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("row_stride", ctypes.c_int64),
        ("column_stride", ctypes.c_int64),
        ("dtype", ctypes.c_int32),
    ]


class RowStatsOut(ctypes.Structure):
    """`draftcert_row_stats_out`: addresses of the arrays to fill, or None."""

    _fields_ = [
        (name, ctypes.c_void_p)
        for name in (
            *("logsumexp", "logsumexp_error", "entropy", "entropy_error", "kl", "kl_error"),
            *("top_values", "top_ids", "status"),
        )
    ]


def compiler() -> str:
    """The C++ compiler: `$CXX`, else g++, else clang++ (which gets the portable loops only)."""
    for name in (os.environ.get("CXX"), "g++", "clang++"):
        if name and (path := shutil.which(name)):
            return path
    raise RuntimeError("draftcert's CPU kernels need a C++17 compiler: install g++ or clang++, or name one in CXX")


def compile_library(name: str = "row_stats") -> Path:
    """The compiled library's path; compiles it where the cache has none."""
    cxx = compiler()
    version = subprocess.run([cxx, "--version"], capture_output=True, text=True, check=True).stdout
    key = hashlib.sha256("\0".join([version, platform.machine(), *FLAGS]).encode())
    sources = [Path(__file__).with_name(file) for file in SOURCES[name]]
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
                for openmp in (["-fopenmp"], []):
                    command = [cxx, *FLAGS, *openmp, str(sources[0]), "-o", str(built)]
                    done = subprocess.run(command, capture_output=True, text=True)
                    if done.returncode == 0:
                        break
                else:
                    raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
                os.replace(built, path)
    return path


@functools.cache
def library() -> ctypes.CDLL:
    """The kernels; `row_stats.h` says what they do."""
    kernels = ctypes.CDLL(str(compile_library()))
    integer, count, real, array = ctypes.c_int, ctypes.c_int64, ctypes.c_double, ctypes.c_void_p
    logits, out = ctypes.POINTER(Logits), ctypes.POINTER(RowStatsOut)
    signatures = {
        "row_stats": [logits, logits, count, count, count, integer, out],
        "at_least": [logits, count, count, array, integer, array, integer, array, array, array],
        "top_after": [logits, count, count, array, array, count, integer, array, array],
        "floored_entropy": [logits, count, count, array, real, integer, array],
        "use_instruction_set": [integer],
    }
    for name, arguments in signatures.items():
        function = getattr(kernels, f"draftcert_{name}")
        function.argtypes, function.restype = arguments, integer
    return kernels
