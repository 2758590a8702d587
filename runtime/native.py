"""Compiles C++ sources to shared libraries on first use, and keeps them.

A library is kept in the user's cache folder under a name that is a hash of the sources, the flags, the compiler and
what it is linked with, so that what changes is a new file and an old file is never wrong.
"""

import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ..support.cache import cache_folder
from ..support.files import remove_partial, replacing
from ..support.locks import locked

# No -march=native: machines may share the cache, and a library itself chooses the widest instruction set they have.
FLAGS = ["-O3", "-std=c++17", "-shared", "-fPIC", "-Wno-psabi"]


def compiler() -> str:
    """The C++ compiler: `$CXX`, else g++, else clang++ (which gets the portable loops only)."""
    for name in (os.environ.get("CXX"), "g++", "clang++"):
        if name and (path := shutil.which(name)):
            return path
    raise RuntimeError("draftcert's CPU kernels need a C++17 compiler: install g++ or clang++, or name one in CXX")


def compile_library(name: str, sources: Sequence[Path], linked: Sequence[str] = (), identity: str = "") -> Path:
    """The path of a compiled library; compiles it where the cache has none.

    `sources`: the `.cpp` files to compile and the headers they include. `linked`: further arguments of the compiler;
    `identity` tells versions of what they name apart.
    """
    cxx = compiler()
    version = subprocess.run([cxx, "--version"], capture_output=True, text=True, check=True).stdout
    key = hashlib.sha256("\0".join([version, platform.machine(), *FLAGS, identity]).encode())
    for source in sources:
        key.update(source.read_bytes())
    path = cache_folder() / f"{name}-{key.hexdigest()[:16]}.so"
    if path.exists():
        return path
    with locked(path.with_suffix(".lock"), f"the compilation of draftcert's {name}"):
        if not path.exists():  # another process may have been first
            remove_partial(path.parent, path.name)
            # Without OpenMP the kernels are complete, on one thread. With it they share the thread pool of torch, whose
            # libgomp is the same library to the loader.
            files = [str(source) for source in sources if source.suffix == ".cpp"]
            with replacing(path) as built:
                for openmp in (["-fopenmp"], []):
                    command = [cxx, *FLAGS, *openmp, *files, *linked, "-o", str(built)]
                    done = subprocess.run(command, capture_output=True, text=True)
                    if done.returncode == 0:
                        break
                else:
                    raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return path
