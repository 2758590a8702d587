"""What a decoder did: one record a target pass, and counts over all of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from .tree import Tree


@dataclass(frozen=True)
class Seconds:
    """Wall time of one step: drafting, the target's forward pass, verification, cache and learning."""

    draft: float
    target: float
    verify: float
    commit: float

    @property
    def total(self) -> float:
        """The whole step."""
        return self.draft + self.target + self.verify + self.commit


@dataclass(frozen=True)
class Step:
    """One target pass over one sequence.

    `row`: the sequence within the batch. `prefix`: tokens before the root. `path`: accepted nodes, root first, and
    `token` the target's token after them. `tokens`: what was committed, shorter than `path` only when the end-of-
    sequence token or the budget cut it. `top_values`, `top_ids` `[nodes, k]` and `logsumexp` `[nodes]`: the target's
    logits after every node. The first step of a sequence is its prompt: a tree of one node.
    """

    row: int
    prefix: int
    tree: Tree
    path: tuple[int, ...]
    token: int
    tokens: tuple[int, ...]
    top_values: torch.Tensor
    top_ids: torch.Tensor
    logsumexp: torch.Tensor
    seconds: Seconds

    @property
    def accepted(self) -> int:
        """Drafted nodes the target accepted."""
        return len(self.path) - 1

    @property
    def truncated(self) -> int:
        """Verified tokens that were cut off by the end of the sequence or the budget."""
        return len(self.path) - len(self.tokens)


@dataclass
class DecodeStats:
    """Counts over all steps, each taken from a step's record and from nothing else.

    `proposed` counts the drafted nodes that were really sent through the target, `accepted` those of them on accepted
    paths (also where the end of the sequence cut them off; `truncated` counts these and a cut following token).
    `proposed_at_depth[d]` counts steps whose tree reached depth d + 1, `accepted_at_depth[d]` those whose path did.
    """

    sequences: int = 0
    prompt_tokens: int = 0
    new_tokens: int = 0
    target_passes: int = 0
    proposed: int = 0
    accepted: int = 0
    truncated: int = 0
    drafted_steps: int = 0
    zero_streak: int = 0
    longest_zero_streak: int = 0
    proposed_at_depth: list[int] = field(default_factory=list)
    accepted_at_depth: list[int] = field(default_factory=list)
    seconds_draft: float = 0.0
    seconds_target: float = 0.0
    seconds_verify: float = 0.0
    seconds_commit: float = 0.0
    finish_reasons: dict[str, int] = field(default_factory=dict)

    def add(self, step: Step) -> None:
        """Count one step of one sequence (`target_passes` and the times are counted by pass, not here)."""
        self.new_tokens += len(step.tokens)
        self.proposed += len(step.tree) - 1
        self.accepted += step.accepted
        self.truncated += step.truncated
        deepest = max(step.tree.depths)
        for counts, reached in ((self.proposed_at_depth, deepest), (self.accepted_at_depth, step.accepted)):
            counts.extend([0] * (deepest - len(counts)))
            for depth in range(reached):
                counts[depth] += 1
        if len(step.tree) > 1:
            self.drafted_steps += 1
            self.zero_streak = 0 if step.accepted else self.zero_streak + 1
            self.longest_zero_streak = max(self.longest_zero_streak, self.zero_streak)

    def add_pass(self, seconds: Seconds) -> None:
        """Count one target pass over the whole batch."""
        self.target_passes += 1
        self.seconds_draft += seconds.draft
        self.seconds_target += seconds.target
        self.seconds_verify += seconds.verify
        self.seconds_commit += seconds.commit

    @property
    def seconds(self) -> float:
        """Wall time of all passes."""
        return self.seconds_draft + self.seconds_target + self.seconds_verify + self.seconds_commit

    @property
    def tokens_per_pass(self) -> float:
        """New tokens a target pass, the pass over the prompt included; 0 before the first."""
        return self.new_tokens / self.target_passes if self.target_passes else 0.0

    @property
    def tokens_per_second(self) -> float:
        """New tokens a second of the passes."""
        return self.new_tokens / self.seconds if self.seconds else 0.0

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted of the proposed nodes, between 0 and 1; `None` if nothing was proposed."""
        return self.accepted / self.proposed if self.proposed else None

    @property
    def overhead(self) -> float:
        """Share of the time that was not the target's forward pass."""
        return 1 - self.seconds_target / self.seconds if self.seconds else 0.0
