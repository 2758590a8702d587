"""The user's cache folder, and values in it that are computed or measured once per machine or model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from platformdirs import user_cache_path

from .files import read_json, write_whole

Value = TypeVar("Value")


def cache_folder(kind: str = ".") -> Path:
    """The folder of one kind of cached things, made if there is none."""
    folder = user_cache_path("draftcert") / kind
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def cached(
    kind: str, identity: dict[str, Any], parse: Callable[[Any], Value], make: Callable[[], Any], refresh: bool = False
) -> Value:
    """What `make` once made for this identity, read back by `parse`; made anew if there is none or it is damaged.

    `make` returns plain data for JSON. `refresh` makes it anew in any case.
    """
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:24]
    path = cache_folder(kind) / f"{digest}.json"
    if not refresh:
        try:
            return parse(read_json(path)["value"])
        except (ValueError, KeyError, TypeError):
            pass
    value = make()
    write_whole(path, json.dumps({"identity": identity, "value": value}))
    return parse(value)
