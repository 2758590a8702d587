"""The committed record of what has been proved, keyed by content hash. A run of `check` reproduces it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from ..support.files import read_json
from ..theory import Formula
from .kernel import Proved

PATH = Path(__file__).resolve().with_name("ledger.json")

Entries = dict[str, dict[str, Any]]


def entries(proved: Iterable[Proved]) -> Entries:
    """What the ledger says of these, without anything that differs between runs."""
    found = {
        each.sha256: {"kind": each.kind, "name": each.name, "method": each.method}
        | ({"by": list(each.by)} if each.by else {})
        for each in proved
    }
    return dict(sorted(found.items(), key=lambda item: (item[1]["kind"], item[1]["name"], item[0])))


def text(proved: Iterable[Proved]) -> str:
    """The file's content."""
    return json.dumps(entries(proved), indent=1) + "\n"


@cache
def committed() -> Entries:
    """The ledger that comes with this copy of the code; empty when there is none."""
    return read_json(PATH) if PATH.exists() else {}


def is_proved(formula: Formula) -> bool:
    """Whether the committed ledger holds this very formula: same expressions, domains and constraint.

    >>> from draftcert.theory import FORMULAS
    >>> is_proved(FORMULAS["phi"])
    True
    """
    return committed().get(formula.sha256, {}).get("kind") == "formula"
