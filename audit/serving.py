"""Is a drafter worth serving? Tokens a pass, break-even cost and speed-up, from an audit's accepted positions.

Costs are counted in passes of the target over a single token: a step of the drafter costs `draft`, a pass that checks a
draft `verify`. A draft of L tokens that yields T tokens a pass is T/(L draft + verify) times as fast as decoding alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..numerics import MeanKLGuarantee
from ..theory import DraftcertError, parse_rule
from .judge import Judge
from .measure import RULES
from .records import Audit

LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16)
RESAMPLES, SEED = 1000, 0


@dataclass(frozen=True)
class Costs:
    """What a step of the drafter and a pass that checks a draft cost, in passes of the target over one token."""

    draft: float
    verify: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is no cost."""
        if not (0 <= self.draft < math.inf and 0 < self.verify < math.inf):
            raise DraftcertError(f"costs {self.draft} and {self.verify}: give numbers of target passes, not negative")

    def speed_up(self, length: int, tokens: float) -> float:
        """How many times as fast as the target alone, with so many tokens a pass for drafts of this length."""
        return tokens / (length * self.draft + self.verify)


@dataclass(frozen=True)
class Drafts:
    """Drafts of one length under strict greedy: tokens a pass as counted, with a 95 % interval, and as guaranteed.

    The interval is a bootstrap over prompts: it says how far another sample of such prompts may differ.
    """

    length: int
    tokens: float
    low: float
    high: float
    guaranteed: float

    @property
    def break_even(self) -> float:
        """The cost of a draft step at which drafting is as fast as the target alone, if a check costs one pass."""
        return (self.tokens - 1) / self.length


def drafts_by_length(audit: Audit, lengths: tuple[int, ...] = LENGTHS) -> list[Drafts]:
    """Strict greedy with one candidate, drafts of each length, over the target's own text.

    By the mean-KL theorem at most k of N positions are rejected, and a pass that is not cut short by one yields L + 1
    tokens: so there are at most k + N/(L + 1) passes.

    Raises:
        DraftcertError: an audit without a drafter.
    """
    if not audit.has_draft:
        raise DraftcertError("this audit has no drafter, so nothing can be said of serving one: audit with --drafter")
    hits, prompts = audit.column("draft_rank") == 1, audit.column("prompt")
    by_prompt = [hits[prompts == prompt] for prompt in np.unique(prompts)]
    sizes = np.array([len(each) for each in by_prompt])
    guarantee = MeanKLGuarantee(Judge(audit)(parse_rule(RULES[0]), 1).certificates)
    rejected = 1 - float(guarantee.acceptance(audit.mean_kl))
    chosen = np.random.default_rng(SEED).integers(len(sizes), size=(RESAMPLES, len(sizes)))
    found = []
    for length in lengths:
        passes = np.array([passes_over(each, length) for each in by_prompt])
        resampled = sizes[chosen].sum(1) / passes[chosen].sum(1)
        low, high = np.quantile(resampled, (0.025, 0.975)).tolist()
        found.append(Drafts(length, float(sizes.sum() / passes.sum()), low, high, 1 / (rejected + 1 / (length + 1))))
    return found


def passes_over(hits: np.ndarray, length: int) -> int:
    """Passes of the target over a text whose positions the drafter hits or not, with drafts of this length.

    >>> passes_over(np.array([True, True, False, True, True, True]), 2)
    2
    """
    passes = position = 0
    while position < len(hits):
        drafted = hits[position : position + length]
        kept = len(drafted) if drafted.all() else int(np.argmin(drafted))
        position += kept + 1  # the pass itself yields one more token
        passes += 1
    return passes


def best_length(drafts: list[Drafts], costs: Costs) -> Drafts:
    """The drafts that are fastest at these costs, as counted."""
    return max(drafts, key=lambda each: costs.speed_up(each.length, each.tokens))
