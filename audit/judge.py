"""Rules and certificates over a whole audit, also for rules that were not measured.

The most likely tokens stored at each position show a subset of what a rule accepts, and a certificate only falls when
fewer tokens are accepted. So what is computed from them is exact where they show the accepted set and its competitors,
and a lower bound elsewhere; acceptance is undercounted in the same way, never over.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch

from ..runtime.rows.program import program
from ..runtime.rows.projection import project
from ..runtime.rows.threshold import Enclosure, Known, accepted_set
from ..theory import Rule
from ..theory.conditions import RankCondition
from ..theory.presets import MEDUSA_FLOOR
from .measure import is_hit
from .records import Audit


@dataclass(frozen=True)
class Judged:
    """A rule and number of candidates on every position of an audit."""

    certificates: np.ndarray
    accepted: np.ndarray
    log_loss: np.ndarray
    """Nats that a token the rule lets pass can cost against the likeliest: exact where the kept tokens show all that
    may be accepted, an upper bound from the rule's threshold elsewhere, infinite without one."""
    certified: np.ndarray | None
    hits: np.ndarray | None


class Judge:
    """Judges any rule of the target's probabilities on the positions of an audit.

    In float64 from the statistics as they were measured: unlike an audit's own columns, not rounded against the claim.
    """

    def __init__(self, audit: Audit) -> None:
        self._log = torch.tensor(audit.column("top_logprobs"))
        self._gaps = self._log[:, :1] - self._log
        entropies = {0.0: audit.column("entropy"), float(Fraction(MEDUSA_FLOOR)): audit.column("floored_entropy")}
        self._known = Known(
            log_top=Enclosure.widened(self._log[:, 0], self._log[:, 0]),
            entropies={floor: Enclosure.widened(*[torch.tensor(value)] * 2) for floor, value in entropies.items()},
        )
        self._kl = audit.column("kl") if audit.has_draft else None
        self._ranks = torch.tensor(audit.column("draft_target_ranks")) if audit.has_draft else None

    def __call__(self, rule: Rule, candidates: int) -> Judged:
        """What a rule with `candidates` candidates gives at each position, or lower bounds of it."""
        stored = self._log.shape[1]
        accepted = accepted_set(program(rule), self._gaps, self._known, stored, sound=True).count
        # At least `candidates` of the stored tokens must be left as competitors.
        seen = accepted.clamp(max=stored - candidates)
        value = project(self._log[:, 0].exp(), self._gaps, seen.clamp(min=1), candidates).value
        certificates = torch.where(accepted == 0, 0.0, value.clamp(min=0)).numpy()
        certified = None if self._kl is None else self._kl < certificates
        hits = None if self._ranks is None else is_hit(self._ranks, accepted, candidates).numpy()
        return Judged(certificates, accepted.numpy(), self._log_loss(rule).numpy(), certified, hits)

    def _log_loss(self, rule: Rule) -> torch.Tensor:
        stored = self._log.shape[1]
        may_pass = accepted_set(program(rule), self._gaps, self._known, stored, sound=False)
        shown = self._gaps.gather(-1, (may_pass.count - 1).clamp(min=0).unsqueeze(-1)).squeeze(-1)
        by_rank = any(isinstance(each, RankCondition) and each.limit > stored for each in rule.conditions)
        beyond = torch.full_like(shown, torch.inf) if by_rank else may_pass.gap
        return torch.where(may_pass.count < stored, shown, torch.maximum(shown, beyond))
