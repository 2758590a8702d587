"""What the prover raises."""

from __future__ import annotations

from collections.abc import Mapping

import sympy

from ...theory.errors import DraftcertError


class ProofError(DraftcertError):
    """A claim is not established. `counterexample` is a point where it fails, if one was found."""

    def __init__(self, reason: str, counterexample: Mapping[sympy.Basic, sympy.Basic] | None = None) -> None:
        self.reason = reason
        self.counterexample = None if counterexample is None else {str(k): str(v) for k, v in counterexample.items()}
        at = "" if self.counterexample is None else f"; it fails at {self.counterexample}"
        super().__init__(reason + at)
