"""Compiles a library of C++ kernels. It needs Python's standard library alone, so that building a wheel can use it."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

RUNTIME = Path(__file__).parent
FOLDERS = {"row kernels": ("rows/cpu", "generated"), "layer kernels": ("models/layers",)}
"""The libraries, and the folders whose `.cpp` files and headers they are made of."""
BUILT = RUNTIME / "built"
"""Where a wheel brings them, if there was a compiler where it was built."""

# No -march=native: machines may share a library, and it chooses the widest instruction set itself that they have.
FLAGS = ["-O3", "-std=c++17", "-shared", "-fPIC", "-Wno-psabi"]


class NoLibraryError(RuntimeError):
    """There is no compiled library; the message says why, and what to do about it."""


def sources(name: str) -> list[Path]:
    """The files that a library is compiled from."""
    folders = [RUNTIME / folder for folder in FOLDERS[name]]
    return sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in (".cpp", ".h"))


def compiler() -> list[str]:
    """The command of the C++ compiler: `$CXX`, else g++, else clang++ (which gets the portable loops only).

    Raises:
        NoLibraryError: there is none, or `$CXX` names none.
    """
    if named := os.environ.get("CXX", "").strip():
        try:
            command = shlex.split(named)
        except ValueError as error:
            raise NoLibraryError(f"CXX={named!r} is no command ({error}): name a C++17 compiler in it") from error
        if not shutil.which(command[0]):
            raise NoLibraryError(f"CXX={named!r} is not found: name a C++17 compiler in it, or unset it")
        return command
    for name in ("g++", "clang++"):
        if path := shutil.which(name):
            return [path]
    raise NoLibraryError("there is no C++17 compiler: install g++ or clang++, or name one in CXX")


def compiler_version() -> str:
    """What the compiler says about itself.

    Raises:
        NoLibraryError: there is no compiler, or it says nothing.
    """
    return _output([*compiler(), "--version"])


def file_name(name: str, files: Sequence[Path], *identity: str) -> str:
    """What the library is called that is made of files with these contents, and of what else `identity` tells apart."""
    key = hashlib.sha256("\0".join([*identity, *FLAGS]).encode())
    for file in files:
        key.update(file.read_bytes())
    return f"{name.replace(' ', '-')}-{key.hexdigest()[:16]}.so"


def record(library: Path) -> Path:
    """The file beside a library that says what was compiled."""
    return library.with_suffix(".json")


def measured(library: Path) -> dict[str, int | str]:
    """What is recorded of a library, to tell it from one that was cut short or changed."""
    content = library.read_bytes()
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def compile_library(path: Path, files: Sequence[Path]) -> None:
    """Compiles to `path`, in a folder that exists, its record first.

    Raises:
        NoLibraryError: there is no compiler, or it fails.
    """
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        built, beside = Path(folder) / path.name, Path(folder) / "record"
        # Without OpenMP the kernels are complete, on one thread. With it they share the thread pool of torch,
        # whose libgomp is the same library to the loader.
        command = [*compiler(), *FLAGS, *(str(file) for file in files if file.suffix == ".cpp"), "-o", str(built)]
        try:
            _output([*command, "-fopenmp"])
        except NoLibraryError:
            _output(command)
        if not built.exists():
            raise NoLibraryError(f"{shlex.join(compiler())} wrote no library: name a C++17 compiler in CXX")
        built.chmod(0o755)  # where the umask is 002, the linker lets the group write
        beside.write_text(json.dumps(measured(built)))
        os.replace(beside, record(path))
        os.replace(built, path)


def _output(command: Sequence[str]) -> str:
    """What a command of the compiler prints."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    except OSError as error:
        raise NoLibraryError(f"{command[0]} does not run ({error}): name a C++17 compiler in CXX") from error
    if done.returncode:
        lines = done.stderr.splitlines() or [f"exit status {done.returncode}"]
        reason = next((line for line in lines if "error" in line), lines[-1])
        raise NoLibraryError(f"{command[0]} fails: {reason}. Name a C++17 compiler in CXX")
    return done.stdout
