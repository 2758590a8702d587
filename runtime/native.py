"""Loads the C++ kernels: those that a wheel brought, or else compiled on first use and kept.

A kept library has a name that is a hash of the sources, the flags and the compiler, so that what changes is a new file
and an old file is never wrong; the name of a wheel's is one of the sources and flags. The size and hash of every
library stand in a file beside it, written first: without them, or unlike them, it is not loaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import shlex
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from platformdirs import user_cache_path

from ..support.locks import locked
from ..theory.errors import DraftcertError
from .compiling import BUILT, NoLibraryError, compile_library, compiler, compiler_version, file_name, measured, record

Loaded = TypeVar("Loaded")


def load(name: str, sources: Sequence[Path], loader: Callable[[str], ctypes.CDLL] = ctypes.CDLL) -> ctypes.CDLL:
    """A compiled library, loaded; compiled first where no wheel brought it and it is not kept.

    It is kept in the user's cache folder, or where that cannot be used in a temporary folder of the user alone.

    Args:
        name: what messages call it, such as "row kernels".
        sources: the `.cpp` files to compile and the headers they include.
        loader: loads the file of that path and declares its functions.

    Raises:
        NoLibraryError: it cannot be compiled, kept or loaded.
    """
    refused: list[str] = []
    brought = BUILT / file_name(name, sources)
    if brought.exists():
        try:
            if (fault := _fault(brought)) is None:
                return loader(str(brought))
        except (OSError, AttributeError) as error:
            fault = str(error)
        refused.append(fault)
    file = file_name(name, sources, compiler_version(), *compiler()[1:], platform.machine())
    for folder in _folders():
        path = folder / file
        try:
            if (fault := _fault(path)) is not None:
                heading = f"compiling the {name}, once for this machine (about 15 s)"
                _say(": ".join(filter(None, [heading, fault, *refused])) + " ...")
                _compile(path, sources)
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
        expected = json.loads(record(path).read_text())
    except (FileNotFoundError, ValueError):
        expected = None
    found = measured(path)
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


def _compile(path: Path, sources: Sequence[Path]) -> None:
    """Compiles to `path`, unless another process just did."""
    path.parent.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with locked(path.with_suffix(".lock"), f"the compilation of {path.stem}"):
        if _fault(path) is not None:
            compile_library(path, sources)


def _say(line: str) -> None:
    """A line on stderr, where there is one."""
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr is not None:
            print(f"draftcert: {line}", file=sys.stderr, flush=True)
