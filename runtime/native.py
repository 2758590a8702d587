"""Compiles C++ sources to shared libraries on first use, keeps them, and loads no file that is not what was compiled.

A library is kept under a name that is a hash of the sources, the flags, the compiler and what it is linked with, so
that what changes is a new file and an old file is never wrong. Its size and hash stand in a file beside it, written
first: a library without them, or unlike them, is compiled again.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from platformdirs import user_cache_path

from ..support.locks import locked
from ..theory.errors import DraftcertError

Loaded = TypeVar("Loaded")

# No -march=native: machines may share the cache, and a library itself chooses the widest instruction set they have.
FLAGS = ["-O3", "-std=c++17", "-shared", "-fPIC", "-Wno-psabi"]


class NoLibraryError(RuntimeError):
    """There is no compiled library; the message says why, and what to do about it."""


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


def load(
    name: str,
    sources: Sequence[Path],
    linked: Sequence[str] = (),
    identity: str = "",
    loader: Callable[[str], ctypes.CDLL] = ctypes.CDLL,
) -> ctypes.CDLL:
    """A compiled library, loaded; compiled first where it is not kept.

    It is kept in the user's cache folder, or where that cannot be used in a temporary folder of the user alone.

    Args:
        name: what messages call it, such as "row kernels".
        sources: the `.cpp` files to compile and the headers they include.
        linked: further arguments of the compiler.
        identity: tells versions of what `linked` names apart.
        loader: loads the file of that path and declares its functions.

    Raises:
        NoLibraryError: it cannot be compiled, kept or loaded.
    """
    parts = [compiler_version(), *compiler()[1:], platform.machine(), *FLAGS, identity]
    key = hashlib.sha256("\0".join(parts).encode())
    for source in sources:
        key.update(source.read_bytes())
    file = f"{name.replace(' ', '-')}-{key.hexdigest()[:16]}.so"
    refused: list[str] = []
    for folder in _folders():
        path = folder / file
        try:
            if (fault := _fault(path)) is not None:
                once = f"once for this machine{identity and f' and {identity}'} (about 15 s)"
                _say(": ".join(filter(None, [f"compiling the {name}, {once}", fault, *refused])) + " ...")
                _compile(path, sources, linked)
            return loader(str(path))
        except (OSError, DraftcertError) as error:  # such a folder may also be one nothing can be loaded from (noexec)
            refused.append(f"{folder} is not used: {getattr(error, 'strerror', None) or error}")
        except AttributeError as error:  # of ctypes: a function that the library lacks
            raise NoLibraryError(f"{error}: delete {path} to have it compiled again") from error
    raise NoLibraryError(
        f"no folder holds the compiled {name}: {'; '.join(refused)}. Set XDG_CACHE_HOME to a folder that you can write "
        "and others cannot"
    )


def loaded_if_possible(load: Callable[[], Loaded], instead: str) -> Loaded | None:
    """What `load` returns, or `None` after a warning that says what happens `instead`, and why.

    Whatever goes wrong is a reason and no error: compiled kernels make the same results faster, and never decide
    whether there are any.
    """
    try:
        return load()
    except Exception as error:
        warnings.warn(f"{instead}: {error}", RuntimeWarning, stacklevel=3)
        return None


def _folders() -> Iterator[Path]:
    """Where libraries are kept: the first that can be used."""
    yield user_cache_path("draftcert") / "native"
    yield Path(tempfile.gettempdir()) / f"draftcert-{os.geteuid()}"


def _fault(path: Path) -> str | None:
    """Why a library is to be compiled: it is not what was compiled, or (`""`) there is none. `None`: it is kept.

    Raises:
        PermissionError: others could have written it.
    """
    # A umask of 002 makes the folder above, which holds more than libraries, writable by the user's own group.
    _refuse_others(path.parent.parent.resolve(), 0o002)
    _refuse_others(path.parent, 0o022)
    _refuse_others(path, 0o022)
    if not path.exists():
        return ""
    try:
        expected = json.loads(_record(path).read_text())
    except (FileNotFoundError, ValueError):
        expected = None
    found = _measured(path)
    return None if found == expected else f"{path} was changed or cut short, it is {found['size']} bytes"


def _refuse_others(path: Path, writable: int) -> None:
    """Raises PermissionError where others can change what `path`, if it exists, is: by its owner, mode or link."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISLNK(status.st_mode):
        raise PermissionError(f"{path} is a link")
    if status.st_uid not in (os.geteuid(), 0):
        raise PermissionError(f"{path} belongs to another user")
    if status.st_mode & writable and not status.st_mode & stat.S_ISVTX:
        raise PermissionError(f"others can write {path} (chmod go-w {shlex.quote(str(path))})")


def _record(path: Path) -> Path:
    """The file beside a library that says what was compiled."""
    return path.with_suffix(".json")


def _measured(path: Path) -> dict[str, int | str]:
    content = path.read_bytes()
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _compile(path: Path, sources: Sequence[Path], linked: Sequence[str]) -> None:
    """Compiles to `path`, unless another process just did."""
    path.parent.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with locked(path.with_suffix(".lock"), f"the compilation of {path.stem}"):
        if _fault(path) is None:
            return
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            built, record = Path(folder) / path.name, Path(folder) / "record"
            # Without OpenMP the kernels are complete, on one thread. With it they share the thread pool of torch,
            # whose libgomp is the same library to the loader.
            files = [str(source) for source in sources if source.suffix == ".cpp"]
            command = [*compiler(), *FLAGS, *files, *linked, "-o", str(built)]
            try:
                _output([*command, "-fopenmp"])
            except NoLibraryError:
                _output(command)
            if not built.exists():
                raise NoLibraryError(f"{shlex.join(compiler())} wrote no library: name a C++17 compiler in CXX")
            built.chmod(0o755)  # where the umask is 002, the linker lets the group write
            record.write_text(json.dumps(_measured(built)))
            os.replace(record, _record(path))
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


def _say(line: str) -> None:
    """A line on stderr, where there is one."""
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr is not None:
            print(f"draftcert: {line}", file=sys.stderr, flush=True)
