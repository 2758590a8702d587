"""Is it proved? A small kernel decides every claim of the theory; it is the only place that mints `Proved`."""

from .check import Report, check
from .kernel import ProofError, Proved
from .ledger import is_proved

__all__ = ["ProofError", "Proved", "Report", "check", "is_proved"]
