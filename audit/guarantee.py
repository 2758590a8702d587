"""Rules, certificates and guarantees over a whole audit, also for rules that were not measured.

The most likely tokens kept at each position show a subset of what a rule accepts, and a certificate only falls when
fewer tokens are accepted. So what is computed from them is exact where they show the accepted set and its competitors,
and a lower bound elsewhere; acceptance is undercounted in the same way, never over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sympy
import torch

from ..runtime.reference import project
from ..runtime.threshold import LOG_TOP, Enclosure, accepted_set
from ..theory import Rule
from ..theory.presets import MEDUSA_FLOOR
from ..theory.statistics import Entropy
from .measure import is_hit
from .records import Audit


@dataclass(frozen=True)
class Judged:
    """A rule and width on every position of an audit."""

    certificates: np.ndarray
    accepted: np.ndarray
    hits: np.ndarray | None


class Judge:
    """Judges any rule of the target's probabilities on the positions of an audit.

    In float64 from the statistics as they were measured: unlike an audit's own columns, not rounded against the claim.
    """

    def __init__(self, audit: Audit) -> None:
        self._log = torch.tensor(audit.column("top_logprobs"))
        self._gaps = self._log[:, :1] - self._log
        statistics = {
            LOG_TOP: self._log[:, 0],
            Entropy(0): torch.tensor(audit.column("entropy")),
            Entropy(sympy.Rational(MEDUSA_FLOOR)): torch.tensor(audit.column("floored_entropy")),
        }
        self._known = {name: Enclosure.widened(value, value) for name, value in statistics.items()}
        self._ranks = torch.tensor(audit.column("draft_target_ranks")) if audit.has_draft else None

    def __call__(self, rule: Rule, width: int) -> Judged:
        """Certificates, accepted tokens and hits of a rule with `width` candidates, or lower bounds of them."""
        kept = self._log.shape[1]
        accepted = accepted_set(rule, self._gaps, self._known, kept, sound=True).count
        # At least `width` of the kept tokens must be left as competitors.
        seen = accepted.clamp(max=kept - width)
        value = project(self._log[:, 0].exp(), self._gaps, seen.clamp(min=1), width).value
        certificates = torch.where(accepted == 0, 0.0, value.clamp(min=0))
        hits = None if self._ranks is None else is_hit(self._ranks, accepted, width).numpy()
        return Judged(certificates.numpy(), accepted.numpy(), hits)


class Guarantee:
    """What a mean KL guarantees on N positions with these certificates (the mean-KL theorem).

    At most k positions can be rejected, k the largest number with `C_(1) + ... + C_(k) <= N eps`, ascending. This is
    `numerics.guaranteed_acceptance` and `mean_kl_for` for whole curves over many positions, in float64.
    """

    def __init__(self, certificates: np.ndarray) -> None:
        # Rounded against the claim: n additions may err by n units in the last place.
        slack = 1 - len(certificates) * np.finfo(np.float64).eps
        self._sums = np.cumsum(np.sort(certificates)) * slack

    def acceptance(self, mean_kl: float | Sequence[float] | np.ndarray) -> np.ndarray:
        """The guaranteed share of accepted positions at each mean KL."""
        size = len(self._sums)
        return 1 - np.searchsorted(self._sums, np.asarray(mean_kl) * size, side="right") / size

    def mean_kl(self, acceptance: float) -> float:
        """The mean KL below which at least this acceptance is guaranteed; 0 where none is."""
        size = len(self._sums)
        rejected = math.floor(size * (1 - acceptance) + 1e-9)
        return math.inf if rejected >= size else float(self._sums[rejected]) / size


def mean_run(inside: np.ndarray, prompt: np.ndarray) -> float:
    """Mean length of the runs of consecutive positions of one prompt that are `inside`; 0 without any."""
    follows = np.r_[False, (prompt[1:] == prompt[:-1]) & inside[:-1]]
    starts = inside & ~follows
    return float(inside.sum() / starts.sum()) if starts.any() else 0.0


def statistic(values: np.ndarray, name: str) -> float:
    """`mean` or a percentile such as `p5`, infinities included: one infinite value makes the mean infinite."""
    if name == "mean":
        return float(values.mean())
    # "lower" never averages a finite with an infinite neighbour.
    return float(np.percentile(values, float(name[1:]), method="lower"))
