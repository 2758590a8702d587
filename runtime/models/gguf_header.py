"""The beginning of a GGUF file, read with every length checked against the file, before a library believes them.

The libraries that read GGUF take its counts as they are: a list of 10^18 numbers that are not there keeps them busy,
and filling the memory, for ever. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Any

from ...support.files import reading
from ...theory.errors import DraftcertError

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
_DIMENSIONS = 8
"""Of a tensor, at most; ggml itself has 4."""


def read_header(path: Path) -> dict[str, int]:
    """The whole numbers among a GGUF file's metadata, by their keys.

    Raises:
        DraftcertError: no GGUF file of version 2 or 3, or one whose counts and lengths do not fit into it.
    """
    with reading(path), path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return _Header(content, path).numbers()


class _Header:
    """Reads values from left to right."""

    def __init__(self, content: mmap.mmap, path: Path) -> None:
        self._content, self._path, self._at = content, path, 0

    def numbers(self) -> dict[str, int]:
        if self._bytes(4) != b"GGUF" or self._number("I") not in (2, 3):
            raise DraftcertError(f"{self._path} is no GGUF file of version 2 or 3")
        tensors, entries = self._count(24), self._count(13)
        found: dict[str, int] = {}
        for _ in range(entries):
            key = self._text()
            value = self._value(self._number("I"))
            if isinstance(value, int):
                found[key] = value
        for _ in range(tensors):
            self._text()
            dimensions = self._number("I")
            if dimensions > _DIMENSIONS:
                raise DraftcertError(f"{self._path} holds a tensor of {dimensions} dimensions")
            self._bytes(8 * dimensions + 4 + 8)
        return found

    def _value(self, kind: int, depth: int = 0) -> Any:
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind == _TEXT:
            return self._text()
        if kind != _LIST or depth == _DIMENSIONS:
            raise DraftcertError(f"{self._path} is damaged at byte {self._at}: no kind of value is numbered {kind}")
        kind = self._number("I")
        if kind in _NUMBERS:
            size = struct.calcsize(_NUMBERS[kind])
            self._bytes(size * self._count(size))
            return None
        for _ in range(self._count(8)):
            self._value(kind, depth + 1)
        return None

    def _count(self, least: int) -> int:
        """A number of things, each of which takes at least so many bytes."""
        count = self._number("Q")
        if count > (len(self._content) - self._at) // least:
            raise DraftcertError(
                f"{self._path} is damaged or cut short: it counts {count} entries, which it cannot hold"
            )
        return count

    def _number(self, kind: str) -> Any:
        (value,) = struct.unpack("<" + kind, self._bytes(struct.calcsize("<" + kind)))
        return value

    def _text(self) -> str:
        return self._bytes(self._count(1)).decode()

    def _bytes(self, size: int) -> bytes:
        found = self._content[self._at : self._at + size]
        if len(found) < size:
            raise DraftcertError(f"{self._path} is cut short: it ends at byte {len(self._content)}")
        self._at += size
        return found
