"""Files that are written whole or not at all, and logs that a killed run goes on with."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..theory.errors import DraftcertError
from .locks import locked


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A path beside `path` for the block to make a file or a folder at, which takes the name `path` when it is whole.

    Until then `path` is what it was, whatever ends the block or the machine; a link is followed, not replaced. A folder
    takes the place of nothing or of an empty one.

    Raises:
        DraftcertError: the system refuses to write; the message names `path` and the reason.
    """
    path = Path(os.path.realpath(path))
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        yield partial
        # The contents first: after a power failure a name must not stand for a file that never reached the disk.
        for each in partial.rglob("*"):
            _sync(each)
        _sync(partial)
        partial.replace(path)
        _sync(path.parent)
    except OSError as error:
        raise DraftcertError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        _remove(partial)


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file whole or not at all, text as UTF-8.

    Raises:
        DraftcertError: as `replacing`.
    """
    with replacing(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


def remove_partial(folder: Path, name: str = "*") -> None:
    """Remove what killed processes left of writing `name`; only for the one that holds the lock on writing it."""
    for partial in folder.glob(f".{name}.*.partial"):
        _remove(partial)


def read_json(path: str | Path) -> Any:
    """The JSON document in a file.

    Raises:
        DraftcertError: no such file, or no JSON in it; the message names the file and the place.
    """
    try:
        return json.loads(Path(path).read_bytes())
    except OSError as error:
        raise DraftcertError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise DraftcertError(f"{path} is damaged: it should hold JSON ({error})") from error


@contextmanager
def json_lines(path: str | Path, head: Any) -> Iterator[tuple[list[Any], Callable[[Any], None]]]:
    """A log of JSON documents, one a line: those that are in it, and a function that adds one.

    The first line is `head`, which says what run the log belongs to. A document that was added survives a kill of the
    process. A line that was being written is torn: it has no end, and it is cut off when the log is opened again.

    Raises:
        DraftcertError: the log has another head, is damaged, cannot be written, or another process is adding to it.
    """
    path = Path(path)
    with locked(path.with_name(f"{path.name}.lock"), f"{path}", wait=False):
        try:
            data = path.read_bytes() if path.exists() else b""
            whole = data[: data.rfind(b"\n") + 1]
            documents = [_document(path, *numbered) for numbered in enumerate(whole.splitlines(), 1)]
            if documents and documents[0] != json.loads(json.dumps(head)):
                raise DraftcertError(f"{path} is of another run, {json.dumps(documents[0])}, not of {json.dumps(head)}")
            file = path.open("ab")
        except OSError as error:
            raise DraftcertError(f"cannot write {path}: {error.strerror}") from error

        def add(document: Any) -> None:
            file.write(json.dumps(document).encode() + b"\n")
            file.flush()

        with file:
            file.truncate(len(whole))
            if not documents:
                add(head)
            yield documents[1:], add


def _document(path: Path, number: int, line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise DraftcertError(f"{path}, line {number}, is damaged: it should hold JSON ({error})") from error


def _sync(path: Path) -> None:
    if os.name == "posix":  # elsewhere a folder cannot be opened
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
