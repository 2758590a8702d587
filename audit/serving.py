"""Is a drafter worth serving? Tokens a pass, break-even cost and speed-up, from an audit's accepted positions.

Each node on the path of the drafter's first choices has so many candidates, the width; the others have none. Costs are
counted in passes of the target over a single token: a step of the drafter costs `draft`, a pass that checks a draft
`verify`. A draft of L tokens that yields T tokens a pass is T/(L draft + verify) times as fast as decoding alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ..numerics import MeanKLGuarantee
from ..theory import DraftcertError, parse_rule
from ..theory.numbers import real_number
from .judge import Judge
from .measure import RULES
from .records import Audit

LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16)
MOST_NODES = 64
"""A GPU checks so many in about the time of one: with more the cost of a pass would depend on their number."""
RESAMPLES, SEED = 1000, 0


@dataclass(frozen=True)
class Costs:
    """What a step of the drafter and a pass that checks a draft cost, in passes of the target over one token."""

    draft: float
    verify: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is no cost."""
        object.__setattr__(self, "draft", real_number(self.draft, "draft_cost"))
        object.__setattr__(self, "verify", real_number(self.verify, "verify_cost"))
        if not (0 <= self.draft < math.inf and 0 < self.verify < math.inf):
            raise DraftcertError(f"costs {self.draft} and {self.verify}: give numbers of target passes, not negative")

    def speed_up(self, length: int, tokens: float) -> float:
        """How many times as fast as the target alone, with so many tokens a pass for drafts of this length."""
        return tokens / (length * self.draft + self.verify)


@dataclass(frozen=True)
class Drafts:
    """Drafts of one length and width under strict greedy: tokens a pass as counted, with a 95 % interval.

    The interval is a bootstrap over prompts: it says how far another sample of such prompts may differ.
    """

    length: int
    width: int
    tokens: float
    low: float
    high: float
    most: float
    """What no drafter exceeds at this length, since a greedy target accepts at most the longest path (S7)."""
    guaranteed: float
    """What the mean KL guarantees; the first choices alone account for it."""

    @property
    def share(self) -> float:
        """Of what is possible at this length, the share that is reached."""
        return self.tokens / self.most

    @property
    def break_even(self) -> float:
        """The cost of a draft step at which drafting is as fast as the target alone, if a check costs one pass."""
        return (self.tokens - 1) / self.length


def drafts_by_length(audit: Audit, widths: tuple[int, ...] = (1,)) -> list[Drafts]:
    """Strict greedy with drafts of each length and width, over the target's own text.

    By the mean-KL theorem at most k of N positions are rejected, and a pass that is not cut short by one yields L + 1
    tokens: so there are at most k + N/(L + 1) passes.

    Raises:
        DraftcertError: an audit without a drafter.
    """
    if not audit.has_draft:
        raise DraftcertError("this audit has no drafter, so nothing can be said of serving one: audit with --drafter")
    ranks, prompts = audit.column("draft_rank"), audit.column("prompt")
    by_prompt = [ranks[prompts == prompt] for prompt in np.unique(prompts)]
    sizes = np.array([len(each) for each in by_prompt])
    guarantee = MeanKLGuarantee(Judge(audit)(parse_rule(RULES[0]), 1).certificates)
    rejected = 1 - float(guarantee.acceptance(audit.mean_kl))
    chosen = np.random.default_rng(SEED).integers(len(sizes), size=(RESAMPLES, len(sizes)))
    found = []
    for length, width in product(LENGTHS, widths):
        if length * width > MOST_NODES:
            continue
        passes = np.array([passes_over(each, length, width) for each in by_prompt])
        resampled = sizes[chosen].sum(1) / passes[chosen].sum(1)
        low, high = np.quantile(resampled, (0.025, 0.975)).tolist()
        tokens, most = (float(sizes.sum() / each.sum()) for each in (passes, np.ceil(sizes / (length + 1))))
        found.append(Drafts(length, width, tokens, low, high, most, 1 / (rejected + 1 / (length + 1))))
    return found


def passes_over(ranks: np.ndarray, length: int, width: int = 1) -> int:
    """Passes of the target over a text whose tokens have these ranks in the drafter, with drafts of this length.

    >>> passes_over(np.array([1, 1, 3, 1, 1, 1]), 2), passes_over(np.array([1, 3, 1, 1]), 2, 3)
    (2, 2)
    """
    passes = position = 0
    while position < len(ranks):
        drafted = ranks[position : position + length]
        missed = np.flatnonzero(drafted > 1)
        kept = int(missed[0]) + int(drafted[missed[0]] <= width) if len(missed) else len(drafted)
        position += kept + 1  # the pass itself yields one more token
        passes += 1
    return passes


@dataclass(frozen=True)
class Served:
    """The fastest drafts at some costs, and how many times as fast as the target alone, with a 95 % interval."""

    drafts: Drafts
    costs: Costs

    @classmethod
    def fastest(cls, audit: Audit, costs: Costs) -> Served:
        """Of all lengths, and of the numbers of candidates that were audited, as counted."""
        found = drafts_by_length(audit, tuple(sorted({1, *audit.configuration.grid.candidates})))
        return cls(max(found, key=lambda each: costs.speed_up(each.length, each.tokens)), costs)

    @property
    def speed_up(self) -> float:
        """As counted."""
        return self.costs.speed_up(self.drafts.length, self.drafts.tokens)

    @property
    def interval(self) -> list[float]:
        """The ends of its interval."""
        return [self.costs.speed_up(self.drafts.length, tokens) for tokens in (self.drafts.low, self.drafts.high)]

    def as_dict(self) -> dict[str, Any]:
        """As plain data."""
        derived = {"share": self.drafts.share, "break_even": self.drafts.break_even}
        return vars(self.drafts) | derived | {"speed_up": self.speed_up, "speed_up_interval": self.interval}

    def __str__(self) -> str:
        low, high = self.interval
        width = "" if self.drafts.width == 1 else f" with {self.drafts.width} candidates"
        return (
            f"Drafts of {self.drafts.length} tokens{width} are the fastest: {self.drafts.tokens:.3g} tokens a pass, "
            f"{self.speed_up:.2f} times the target alone (95 %: {low:.2f} to {high:.2f}); worth it while a draft step "
            f"costs less than {self.drafts.break_even:.3g} of a target pass, if a check costs one"
        )


@dataclass(frozen=True)
class Largest:
    """With sampling at temperature 1: what nobody exceeds with so many candidates, and what this drafter reaches."""

    candidates: int
    most: float
    """The mean mass of the target's likeliest tokens (S7)."""
    reached: float | None
    """The mean mass of the drafter's likeliest, of those whose probabilities the audit kept; none without a drafter."""

    @property
    def share(self) -> float | None:
        """Of what is possible, the share that is reached."""
        return None if self.reached is None else self.reached / self.most


def largest_acceptance(audit: Audit) -> list[Largest]:
    """By the numbers of candidates that were audited, as far as the audit kept so many probabilities."""
    masses = np.exp(audit.column("top_logprobs"))
    kept = masses.shape[1]
    most, reached = masses.cumsum(1).mean(0), None
    if audit.has_draft:
        ranks = audit.column("draft_target_ranks")
        drafted = np.where(ranks <= kept, np.take_along_axis(masses, ranks.clip(max=kept) - 1, 1), 0)
        reached = drafted.cumsum(1).mean(0)
    return [
        Largest(m, float(most[m - 1]), None if reached is None else float(reached[m - 1]))
        for m in audit.configuration.grid.candidates
        if m <= kept
    ]
