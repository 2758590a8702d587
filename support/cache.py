"""The user's cache folder, and values in it that are computed or measured once per machine or model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from platformdirs import user_cache_path

from ..theory.errors import DraftcertError
from .files import SEAL, is_sealed, read_json, reason, replacing, seal, set_aside

Value = TypeVar("Value")


def cache_folder(kind: str = ".") -> Path:
    """The folder of one kind of cached things, made if there is none.

    Raises:
        DraftcertError: it cannot be made.
    """
    folder = user_cache_path("draftcert") / kind
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DraftcertError(
            f"cannot make the cache folder {folder}: {reason(error)}. Set XDG_CACHE_HOME to one that can be written"
        ) from error
    return folder


def cached(
    kind: str,
    identity: dict[str, Any],
    parse: Callable[[Any], Value],
    make: Callable[[], Any],
    refresh: bool = False,
    keep: Callable[[Any], bool] = lambda value: True,
) -> Value:
    """What `make` once made for this identity, read back by `parse`; made anew if there is none or it is damaged.

    `make` returns plain data for JSON, and `keep` says whether it is to serve again. `refresh` makes it anew in any
    case. An entry that is damaged is set aside.
    """
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:24]
    path = cache_folder(kind) / f"{digest}.json"
    if path.exists() and not refresh:
        with suppress(ValueError, KeyError, TypeError):
            if is_sealed(path):
                return parse(read_json(path)["value"])
        set_aside(path, "what it held is made again")
    value = make()
    if keep(value):
        with replacing(path) as partial:
            partial.write_text(json.dumps({"identity": identity, "value": value, "seal": SEAL}))
            seal(partial)
    return parse(value)
