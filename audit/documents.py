"""The JSON documents in a file of server answers: one document, JSON lines, or server-sent events; gzipped or not."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..support.files import LARGEST, STANDARD_INPUT, called, read_bytes, reason
from ..theory.errors import DraftcertError

_LINE_END = re.compile(r"\r\n|\n|\r")
"""Of JSON and of server-sent events. `str.splitlines` splits at U+2028 and others too, which JSON may hold raw."""
_EVENT_FIELD = re.compile(r"(?:event|id|retry)(?::.*)?|:.*")
_GZIP = b"\x1f\x8b"


class Twice(dict[str, Any]):
    """A JSON object in which a key stands more than once: all of its pairs, in order."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def documents(file: Path) -> Iterator[tuple[int, bool, Any]]:
    """The documents of a file with the line each begins on and whether it is an event of a stream.

    A byte-order mark, blank lines, comments and fields of events other than `data` and the closing `[DONE]` are passed
    over; the elements of an array are documents of their own.

    Raises:
        DraftcertError: no such file, not readable, not UTF-8, or not JSON; with the line.
    """
    text, name = _text(file), called(file)
    lines = _LINE_END.split(text)
    if any(line.startswith("data:") for line in lines):
        found = ((number, True, part) for number, part in _events(lines, name))
    else:
        found = ((number, False, part) for number, part in _values(text, name))
    for number, event, document in found:
        for part in document if isinstance(document, list) else [document]:
            yield number, event, part


def _text(file: Path) -> str:
    if str(file) != STANDARD_INPUT and (file.is_dir() or not file.exists()):
        raise DraftcertError(f"no file of server responses at {file}")
    data = read_bytes(file)
    try:
        if data.startswith(_GZIP):
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(LARGEST + 1)
            if len(data) > LARGEST:
                raise DraftcertError(f"{called(file)} holds more than the {LARGEST} bytes that are read")
        return data.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise DraftcertError(f"{called(file)} cannot be read: {error}") from error
    except UnicodeDecodeError as error:
        raise DraftcertError(f"{called(file)} is not UTF-8: {error.reason} at byte {error.start}") from error


def _values(text: str, name: str) -> Iterator[tuple[int, Any]]:
    """JSON values one after another, whatever space is between them."""
    at, line = 0, 1
    while (begin := _NOT_SPACE.search(text, at)) is not None:
        line += _line_ends(text, at, begin.start())
        at = begin.start()
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise DraftcertError(f"{name}:{line}: not JSON ({reason(error)})") from error
        yield line, value
        line += _line_ends(text, at, end)
        at = end


def _events(lines: list[str], name: str) -> Iterator[tuple[int, Any]]:
    """The data of server-sent events, which may go over several lines, and JSON lines between them."""
    begun, first = "", 0
    for number, line in enumerate([*lines, ""], start=1):
        data = line.removeprefix("data:").strip()
        if _EVENT_FIELD.fullmatch(line) or (not data and not begun) or data == "[DONE]":
            continue
        first = first if begun else number
        begun += f"{data}\n"
        try:
            value = _DECODER.decode(begun)
        except (ValueError, RecursionError) as error:
            if data and line.startswith("data:") and number < len(lines) and lines[number].startswith("data:"):
                continue
            raise DraftcertError(f"{name}:{first}: not JSON ({reason(error)})") from error
        yield first, value
        begun = ""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Twice(pairs)


_DECODER = json.JSONDecoder(object_pairs_hook=_object)
_NOT_SPACE = re.compile(r"[^ \t\r\n]")


def _line_ends(text: str, start: int, end: int) -> int:
    return sum(1 for _ in _LINE_END.finditer(text, start, end))
