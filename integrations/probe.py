"""What adapters share that watch an engine: the certificates of the rows it chooses its tokens from."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ..runtime.rows.certify import certify
from ..theory.errors import DraftcertError
from ..theory.parse import parse_rule
from ..theory.rule import Rule


class CertificateProbe:
    """Writes down, row by row, how far a drafter might have been from the engine's target; the rows stay as they are.

    `file`: JSON Lines, each appended by one write, so that several engines may share it. `rule` and `candidates`: what
    would accept the drafts.

    Raises:
        DraftcertError: no such rule, or a file that cannot be written.

    >>> probe = CertificateProbe("certificates.jsonl")
    >>> probe("question 1", 0, torch.tensor([0.6, 0.4]).log())
    >>> print(Path("certificates.jsonl").read_text().strip())
    {"request": "question 1", "position": 0, "token": 0, "certificate": 0.02013..., "accepted": 1}
    """

    def __init__(self, file: str | Path, rule: Rule | str = "strict_greedy", candidates: int = 1):
        self.rule, self.candidates = parse_rule(rule), candidates
        try:
            self._file = Path(file).open("ab", buffering=0)  # noqa: SIM115 (open as long as the engine)
        except OSError as error:
            raise DraftcertError(f"cannot write certificates to {file}: {error.strerror}") from error

    def __call__(self, request: str, position: int, row: Any) -> None:
        """Write the certificate of the row `[vocab]` that gives the token at `position` of what `request` generates.

        `certificate` is in nats, "inf" where every drafter is accepted. Of a row that has none, one with NaN for
        instance, the line says why: what only watches must not stop an engine. An engine that computes a position anew,
        or reads a prompt in pieces, shows it several times: the last line counts.
        """
        facts: dict[str, Any] = {"request": request, "position": position}
        try:
            row = torch.as_tensor(row)
            found = certify(row, self.rule, self.candidates)
            value = float(found.value)
            facts |= {"token": int(row.argmax()), "certificate": value if math.isfinite(value) else "inf"}
            facts |= {"accepted": int(found.accepted)}
        except DraftcertError as error:
            facts |= {"refused": str(error)}
        self._file.write(f"{json.dumps(facts)}\n".encode())

    def watching(self, request: str, start: int = 0) -> Callable[[Any, Any], Any]:
        """A logits processor, of the tokens so far and a row, that shows each row to the probe and returns it.

        `start`: how many of the tokens are the prompt's, where an engine hands those out too.
        """

        def watch(tokens: Any, row: Any) -> Any:
            self(request, len(tokens) - start, row)
            return row

        return watch
