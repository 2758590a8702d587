"""What is measured or computed once per machine or model, kept as JSON in the user's cache folder."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from platformdirs import user_cache_path

from ..theory.errors import DraftcertError

Value = TypeVar("Value")


def kept(
    kind: str, identity: dict[str, Any], parse: Callable[[Any], Value], make: Callable[[], Any], refresh: bool = False
) -> Value:
    """What `make` once made for this identity, read back by `parse`; made anew if there is none or it is damaged.

    `make` returns plain data for JSON. The file is written whole or not at all, so an interrupted or a concurrent run
    never leaves a broken one.
    """
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:24]
    folder = user_cache_path("draftcert", ensure_exists=True) / kind
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{digest}.json"
    if not refresh:
        try:
            return parse(json.loads(path.read_text())["value"])
        except (OSError, ValueError, KeyError, TypeError, DraftcertError):
            pass
    value = make()
    handle, partial = tempfile.mkstemp(dir=folder)
    with os.fdopen(handle, "w") as file:
        json.dump({"identity": identity, "value": value}, file)
    Path(partial).replace(path)
    return parse(value)
