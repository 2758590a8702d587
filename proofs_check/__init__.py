"""Is it proved? A small prover decides every claim of the theory; it is the only place that mints `Proved`."""

from .check import CheckReport, check
from .ledger import is_proved
from .prover import ProofError, Proved

__all__ = ["CheckReport", "ProofError", "Proved", "check", "is_proved"]
