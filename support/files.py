"""Files that are written whole or not at all, that show damage, and logs that a killed run goes on with."""

from __future__ import annotations

import glob
import hashlib
import itertools
import json
import mmap
import os
import re
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from ..theory.errors import DraftcertError
from .locks import locked
from .text import visible

LARGEST = 2**30
"""Bytes of a document, or of a line, that are read into memory."""

SEAL = "draftcert-sha256:" + "0" * 64
"""Stands in a file for its own checksum: the SHA-256 of the file with these zeros in place of the digits."""
_SEALS = re.compile(rb"draftcert-sha256:([0-9a-f]{64})")

_HERE = hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A path beside `path` for the block to make a file or a folder at, which takes the name `path` when it is whole.

    Until then `path` is what it was, whatever ends the block or the machine; a link is followed, not replaced. A folder
    takes the place of nothing or of an empty one. What killed processes of this machine have left in writing to the
    same folder is removed.

    Raises:
        DraftcertError: the system refuses to write; the message names `path` and the reason.
    """
    path = Path(os.path.realpath(path))
    partial = path.with_name(f".{_short(path.name)}.{_HERE}-{os.getpid()}-{secrets.token_hex(4)}.partial")
    try:
        _remove_orphans(path.parent)
        yield partial
        # The contents first: after a power failure a name must not stand for a file that never reached the disk.
        for each in partial.rglob("*"):
            _sync(each)
        _sync(partial)
        partial.replace(path)
        _sync(path.parent)
    except OSError as error:
        raise DraftcertError(f"cannot write {path}: {reason(error)}") from error
    finally:
        _remove(partial)


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file whole or not at all, text as UTF-8.

    Raises:
        DraftcertError: as `replacing`.
    """
    with replacing(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


def writable_folder(path: str | Path) -> Path:
    """The folder, made if there is none, once a file could be written in it: asked before the work for it starts.

    Raises:
        DraftcertError: it is no folder, or nothing can be written in it.
    """
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DraftcertError(f"cannot write to the folder {path}: {reason(error)}") from error
    require_writable(path, folder=True)
    return path


def require_writable(path: str | Path, folder: bool = False) -> None:
    """Refuse a place where no file, or no folder of files, could be made. It is tried, and nothing is left there.

    Raises:
        DraftcertError: there is a folder where a file is to be or the reverse, or the system refuses to write.
    """
    path = Path(path)
    try:
        with suppress(FileNotFoundError):
            path.lstat()  # refuses what is no name of a file
        if path.exists() and path.is_dir() != folder:
            raise DraftcertError(f"cannot write {path}: it is {'no' if folder else 'a'} folder")
        place = path if folder else path.parent
        while folder and not place.exists():
            place = place.parent
        with tempfile.TemporaryFile(dir=place):
            pass
    except DraftcertError:
        raise
    except (OSError, ValueError) as error:
        raise DraftcertError(f"cannot write {path}: {reason(error)}") from error


def remove_partial(folder: Path, name: str = "") -> None:
    """Remove what killed processes left of writing `name`, or anything; only for the one that holds the lock on it."""
    for partial in folder.glob(f".{glob.escape(_short(name))}*.partial"):
        _remove(partial)


def _short(name: str) -> str:
    """As much of a name as leaves room for more: systems take 255 bytes."""
    return name.encode(errors="surrogateescape")[:150].decode(errors="ignore")


@cache
def _remove_orphans(folder: Path) -> None:
    """Remove what processes of this machine that are no more left in a folder; a process looks once."""
    for partial in folder.glob(f".*.{_HERE}-*-*.partial"):
        if not _lives(int(partial.name.split("-")[-2])):
            _remove(partial)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        pass
    return True


def seal(path: Path) -> None:
    """Put the checksum of a file in the place of its last `SEAL`; inside of `replacing`."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        start = content.rfind(SEAL.encode())
        digest = _digest(content, start, start + len(SEAL))
        content[start : start + len(SEAL)] = SEAL.replace("0" * 64, digest).encode()


def is_sealed(path: Path) -> bool:
    """Whether a file is what it was when it was sealed."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            start = content.rfind(SEAL[:-64].encode())
            found = _SEALS.match(content, start) if start >= 0 else None
            return found is not None and found[1].decode() == _digest(content, start, found.end())
    except (OSError, ValueError):  # none, or an empty one
        return False


def _digest(content: mmap.mmap, start: int, end: int) -> str:
    digest = hashlib.sha256()
    with memoryview(content) as view, view[:start] as before, view[end:] as after:
        for part in (before, SEAL.encode(), after):
            digest.update(part)
    return digest.hexdigest()


def set_aside(path: Path, instead: str) -> None:
    """Rename a damaged file or folder to `<name>.damaged`, and say on standard error what is done `instead`."""
    aside = path.with_name(f"{path.name}.damaged")
    _remove(aside)
    path.replace(aside)
    print(f"{visible(str(path))} is damaged: it is kept as {visible(aside.name)}, and {instead}", file=sys.stderr)


def reason(error: BaseException) -> str:
    """What an error of the system or of a library says, in one line."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, MemoryError):
        return "it does not fit into the memory"
    if isinstance(error, KeyError):
        return f"{error} is missing"
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return " ".join(text.split())[:500] or type(error).__name__


@contextmanager
def reading(what: str | Path) -> Iterator[None]:
    """Whatever a library raises in the block, which only reads `what`, is told in one line.

    Raises:
        DraftcertError: the block raised an exception that is not one already.
    """
    try:
        yield
    except DraftcertError:
        raise
    except Exception as error:
        raise DraftcertError(f"cannot read {what}: {reason(error)}") from error


STANDARD_INPUT = "-"
"""The path of what is piped in. A file of that name is called `./-`."""


def called(path: str | Path) -> str:
    """How messages call a file that is read."""
    return "standard input" if str(path) == STANDARD_INPUT else str(path)


def opened(path: str | Path) -> AbstractContextManager[BinaryIO]:
    """A file, or standard input, to read bytes from."""
    if str(path) != STANDARD_INPUT:
        return Path(path).open("rb")
    if sys.stdin is None:
        raise DraftcertError("standard input is closed: nothing can be read from it")
    return nullcontext(sys.stdin.buffer)


def read_bytes(path: str | Path, most: int = LARGEST) -> bytes:
    """What a file, or standard input, holds.

    Raises:
        DraftcertError: it cannot be read, or holds more than `most` bytes.
    """
    with reading(called(path)), opened(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise DraftcertError(f"{called(path)} is larger than the {most} bytes that are read")
    return content


def read_text(path: str | Path) -> str:
    """What a file of UTF-8 text holds, without the mark that some editors begin it with.

    Raises:
        DraftcertError: it cannot be read, is too large, or is not UTF-8.
    """
    content = read_bytes(path)
    with reading(called(path)):
        return content.decode("utf-8-sig")


def text_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """The lines of a file of UTF-8 text with their numbers, read as they are asked for.

    Only line feeds end lines: other characters that may, such as U+2028, can stand inside of JSON.

    Raises:
        DraftcertError: it cannot be read, is not UTF-8, or has too long a line; the message names the line.
    """
    with reading(called(path)):
        source = opened(path)
    with source as file:
        number = 0
        while True:
            number += 1
            with reading(f"{called(path)}, line {number}"):
                line = file.readline(LARGEST + 1)
                if not line:
                    return
                if len(line) > LARGEST:
                    raise DraftcertError(
                        f"{called(path)}, line {number}, is longer than the {LARGEST} bytes that are read"
                    )
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            yield number, text


def parse_json(text: str | bytes, where: str, fault: str = ": not JSON", **hooks: Any) -> Any:
    """The JSON document in a text that stands at `where`; `hooks` as of `json.loads`.

    Raises:
        DraftcertError: it is none, or is nested too deeply; the message tells the `fault`.
    """
    try:
        return json.loads(text, **hooks)
    except (ValueError, RecursionError) as error:
        raise DraftcertError(f"{where}{fault} ({reason(error)})") from error


def read_json(path: str | Path) -> Any:
    """The JSON document in a file.

    Raises:
        DraftcertError: no such file, or no JSON in it; the message names the file and the place.
    """
    return parse_json(read_bytes(path), str(path), " is damaged: it should hold JSON")


@contextmanager
def json_lines(path: str | Path, head: Any) -> Iterator[tuple[list[Any], Callable[[Any], None]]]:
    """A log of JSON documents, one a line with its checksum: those that are in it, and a function that adds one.

    The first document is `head`, which says what run the log belongs to. A document that was added survives a kill of
    the process. A line that was being written is torn: it has no end, and it is cut off when the log is opened again.
    Other lines that are damaged are moved to `<name>.damaged`; if the first is, the whole log.

    Raises:
        DraftcertError: the log has another head, cannot be written, or another process is adding to it.
    """
    path = Path(path)
    with locked(path.with_name(f"{path.name}.lock"), f"{path}", wait=False):
        remove_partial(path.parent, f"{path.name}.")
        whole = _whole_lines(path)
        documents = [_unsealed(line) for line in whole]
        if documents and documents[0] is None:
            set_aside(path, "the run begins anew")
            whole, documents = [], []
        elif None in documents:
            _move_damaged(path, whole, documents)
            whole, documents = _whole_lines(path), [each for each in documents if each is not None]
        found = [document for (document,) in filter(None, documents)]
        require_same(str(path), found[0] if found else head, head)
        try:
            file = path.open("ab")
        except OSError as error:
            raise DraftcertError(f"cannot write {path}: {reason(error)}") from error

        def add(document: Any) -> None:
            file.write(_sealed(document))
            file.flush()

        with file:
            file.truncate(sum(map(len, whole)))
            if not found:
                add(head)
            yield found[1:], add


def require_same(where: str, before: Any, asked: Any) -> None:
    """Refuse to go on with what another run has begun.

    Raises:
        DraftcertError: the two differ as JSON; the message names the first place where they do.
    """
    differ = _difference(before, json.loads(json.dumps(asked)))
    if differ is not None:
        place, found, wanted = differ
        found, wanted = (json.dumps(value)[:300] for value in (found, wanted))
        raise DraftcertError(
            f"{where} is of another run, {place and f'{place} = '}{found}, not {wanted}: give another one"
        )


def _difference(before: Any, asked: Any, place: str = "") -> tuple[str, Any, Any] | None:
    """The first place where two JSON values differ, and what stands there; `None` stands for what is missing."""
    if isinstance(before, dict) and isinstance(asked, dict):
        parts = [
            (f"{place}{place and '.'}{key}", before.get(key), asked.get(key))
            for key in dict.fromkeys([*asked, *before])
        ]
    elif isinstance(before, list) and isinstance(asked, list):
        parts = [(f"{place}[{index}]", *pair) for index, pair in enumerate(itertools.zip_longest(before, asked))]
    else:
        return None if before == asked else (place, before, asked)
    return next(filter(None, (_difference(found, wanted, at) for at, found, wanted in parts)), None)


def _sealed(document: Any) -> bytes:
    """A line of a log."""
    text = json.dumps(document).encode()
    return b'{"sha256": "' + hashlib.sha256(text).hexdigest()[:16].encode() + b'", "value": ' + text + b"}\n"


def _unsealed(line: bytes) -> tuple[Any] | None:
    """The document in a line of a log; `None` where the line is not as it was written."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        document = json.loads(line)["value"]
        if _sealed(document) == line:
            return (document,)
    return None


def _whole_lines(path: Path) -> list[bytes]:
    content = read_bytes(path) if path.exists() else b""
    return content[: content.rfind(b"\n") + 1].splitlines(keepends=True)


def _move_damaged(path: Path, lines: list[bytes], documents: list[Any]) -> None:
    """Take the damaged lines out of a log, of which another file keeps them."""
    damaged = [line for line, document in zip(lines, documents, strict=True) if document is None]
    aside = path.with_name(f"{path.name}.damaged")
    write_whole(aside, b"".join(damaged))
    write_whole(path, b"".join(line for line in lines if line not in damaged))
    print(
        f"{len(damaged)} lines of {visible(str(path))} are damaged: they are moved to {visible(aside.name)}, and what "
        "they held is computed again",
        file=sys.stderr,
    )


def _sync(path: Path) -> None:
    if os.name == "posix":  # elsewhere a folder cannot be opened
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
