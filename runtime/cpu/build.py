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
    "rows": ("rows.cpp", "rows.h", "row_kernel.h", "certificate.h", "../generated/formulas.h"),
    "layers": ("layers.cpp", "layers.h", "layer_kernel.h"),
}
"""Files of each library: the one to compile first, then those it includes."""
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


class Instruction(ctypes.Structure):
    """`draftcert_instruction`."""

    _fields_ = [
        ("op", ctypes.c_int32),
        ("strict", ctypes.c_int32),
        ("low", ctypes.c_double),
        ("high", ctypes.c_double),
    ]


class Rule(ctypes.Structure):
    """`draftcert_rule`."""

    _fields_ = [
        ("program", ctypes.POINTER(Instruction)),
        ("length", ctypes.c_int64),
        ("candidates", ctypes.c_int64),
        ("sound", ctypes.c_int32),
    ]


class Out(ctypes.Structure):
    """`draftcert_out`: addresses of the arrays to fill, or None."""

    _fields_ = [
        (name, ctypes.c_void_p)
        for name in (
            *("max", "argmax", "logsumexp", "logsumexp_error", "entropy", "entropy_error"),
            *("top_values", "top_ids", "status"),
            *("kl", "kl_error", "value", "level", "threshold", "accepted", "exact", "passes", "certified"),
        )
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
    key = hashlib.sha256("\0".join([version, platform.machine(), *FLAGS]).encode())
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
    """The kernels; `rows.h` says what they do."""
    kernels = ctypes.CDLL(str(compile_library()))
    count, logits = ctypes.c_int64, ctypes.POINTER(Logits)
    evaluate, choose = kernels.draftcert_evaluate, kernels.draftcert_use_instruction_set
    evaluate.restype = count
    evaluate.argtypes = [logits, logits, ctypes.POINTER(Rule), count, count, count, ctypes.c_double, ctypes.c_int]
    evaluate.argtypes += [ctypes.POINTER(Out)]
    choose.restype, choose.argtypes = ctypes.c_int, [ctypes.c_int]
    return kernels
