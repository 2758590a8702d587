"""The committed record of what has been proved, keyed by content hash. A run of `check` reproduces it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from ..support.files import read_json
from ..theory import Formula
from .formal import FormalAudit, statements
from .mutation import Tally, explanation
from .prover import Proved

PATH = Path(__file__).resolve().with_name("ledger.json")

Entries = dict[str, dict[str, Any]]


def entries(proved: Iterable[Proved], audit: FormalAudit | None = None, mutations: Tally | None = None) -> Entries:
    """What the ledger says of a run: what was proved, with what Coq confirmed and which mutations went through.

    It says nothing of what did not run, so a ledger that was written without Coq shows it.
    """
    found = {
        each.sha256: {"kind": each.kind, "name": each.name, "method": each.method}
        | {
            key: list(names)
            for key, names in (("claimed", each.claimed), ("by", each.by), ("formal", each.formal))
            if names
        }
        for each in proved
    }
    if audit:
        found |= {
            sha256: {"kind": "coq", "name": name, "method": "coqc, coqchk", "version": audit.version}
            for name, sha256 in statements().items()
            if audit.theorems.get(name)
        }
    survivors: dict[tuple[str, str], list[str]] = {}
    for each in mutations.survivors if mutations else ():
        why = explanation(each) or "not explained"
        survivors.setdefault((each.theorem, why), []).append(f"{each.place}: {each.change}")
    found |= {
        hashlib.sha256(f"{theorem}: {why}".encode()).hexdigest(): {
            "kind": "survivors",
            "name": theorem,
            "why": why,
            "changes": changes,
        }
        for (theorem, why), changes in survivors.items()
    }
    return dict(sorted(found.items(), key=lambda item: (item[1]["kind"], item[1]["name"], item[0])))


def differences(found: Entries, before: Entries, kinds: Iterable[str]) -> tuple[str, ...]:
    """In words, how a run's entries differ from those of a ledger, in the kinds that ran."""
    found, before = (_comparable(each, set(kinds)) for each in (found, before))
    return tuple(
        f"{(found.get(key) or before[key])['name']} ({key[:12]}) is {state}"
        for key in sorted(found.keys() | before.keys())
        for state in [
            "not in the committed ledger"
            if key not in before
            else "in the committed ledger but was not proved now"
            if key not in found
            else "recorded differently"
        ]
        if found.get(key) != before.get(key)
    )


def _comparable(entries: Entries, kinds: set[str]) -> Entries:
    """Without what did not run, and without what differs between versions of Coq."""
    left_out = {"version"} if "coq" in kinds else {"version", "formal"}
    return {
        sha256: {key: value for key, value in entry.items() if key not in left_out}
        for sha256, entry in entries.items()
        if entry["kind"] in kinds
    }


def text(found: Entries) -> str:
    """The file's content."""
    return json.dumps(found, indent=1) + "\n"


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
