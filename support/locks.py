"""One process at a time."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ..theory.errors import DraftcertError
from .text import visible

try:
    import fcntl
except ImportError:  # no such locks on this system: processes that write one thing at once are not kept apart there
    fcntl = None


@contextmanager
def locked(path: str | Path, what: str, wait: bool = True) -> Iterator[None]:
    """Hold the lock file `path`, which stands for `what`, while the block runs; other processes and threads cannot.

    While another holds it, wait, and say so on standard error; without `wait`, refuse. A lock ends with the process
    that holds it, however that ends. The file is there only while it is held.

    Raises:
        DraftcertError: the lock is held and `wait` is false, or the file cannot be made; the message says who holds it.
    """
    path = Path(path)
    while True:
        try:
            file = path.open("a+")
        except OSError as error:
            raise DraftcertError(f"cannot lock {what} by {path}: {error.strerror}") from error
        with file:
            if not _acquired(file, blocking=False):
                file.seek(0)
                holder = visible(file.read(200)) or "another process"
                if not wait:
                    raise DraftcertError(f"{what} is in use by {holder}: try again when it ends")
                print(f"waiting for {visible(what)}: {holder} is at work on it", file=sys.stderr)
                _acquired(file, blocking=True)
            if not _is_at(path, file):  # removed by its holder while this process waited for it
                continue
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}")
            file.flush()
            try:
                yield
            finally:
                with suppress(OSError):
                    path.unlink()
                if fcntl is not None:  # closing does not release it where a forked process has a copy of the file
                    fcntl.flock(file, fcntl.LOCK_UN)
            return


def _acquired(file: IO[str], blocking: bool) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX if blocking else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise DraftcertError(f"cannot lock {file.name}: {error.strerror}; give a folder on a local disk") from error
    return True


def _is_at(path: Path, file: IO[str]) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
