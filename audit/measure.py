"""What is measured at a position: the target, divergences, and acceptance by rule and number of candidates.

Pure functions of rows of logits; `audit.run` feeds them with models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from ..runtime import row_stats
from ..runtime.rows import certify
from ..theory import Rule, parse_rule
from ..theory.errors import DraftcertError
from ..theory.numbers import items, whole_number
from ..theory.presets import MEDUSA_FLOOR

RULES = (
    "strict_greedy",
    "additive(0.3)",
    "multiplicative(0.1)",
    "top_m(2)",
    "tensorrt_llm_relaxed(10, 0.6)",
    "sglang_threshold_single(0.9)",
    "medusa_typical(0.09, 0.3)",
)
"""The rules of an audit unless others are given: one of each kind, with the parameters of their deployments."""

CANDIDATES = (1, 2, 4, 8)
"""Candidates per tree node."""

KEPT = 16
"""Most likely tokens of the target kept with each position, from which other rules can be judged later."""


@dataclass(frozen=True)
class Grid:
    """The acceptance rules and numbers of candidates an audit looks at.

    `rules` are records or texts. `recorded` are the hashes of rules by name that a finished audit was made with: only
    then may a name be that of a family which is not here.

    Raises:
        DraftcertError: a text that is no rule, or now another one than recorded; two equal rules; numbers of candidates
            that are equal or below 1.
    """

    rules: tuple[Rule | str, ...] = RULES
    candidates: tuple[int, ...] = CANDIDATES
    recorded: InitVar[Mapping[str, str] | None] = None
    hashes: Mapping[str, str] = field(init=False, compare=False)

    def __post_init__(self, recorded: Mapping[str, str] | None) -> None:
        """Find every rule, and refuse what cannot be told apart."""
        candidates = tuple(whole_number(each, "candidates", 1) for each in items(self.candidates, "candidates"))
        object.__setattr__(self, "rules", tuple(items(self.rules, "rules")))
        object.__setattr__(self, "candidates", candidates)
        if not self.rules or not candidates:
            raise DraftcertError("an audit needs at least one rule and one number of candidates")
        hashes = dict(recorded) if recorded else {str(rule): parse_rule(rule).sha256 for rule in self.rules}
        for name, sha256 in hashes.items():
            if recorded and "#" not in name and parse_rule(name).sha256 != sha256:
                raise DraftcertError(f"the audit's rule '{name}' was another one when the audit was made: run it again")
        if len(set(candidates)) < len(candidates):
            raise DraftcertError(f"candidates must differ: {', '.join(map(str, candidates))}")
        if len(set(hashes.values())) < len(self.rules):
            raise DraftcertError(f"rules must differ, but two of {', '.join(map(str, self.rules))} are one")
        object.__setattr__(self, "hashes", hashes)

    @property
    def names(self) -> tuple[str, ...]:
        """What the rules are called in columns and tables: their texts, as they were given."""
        return tuple(map(str, self.rules))

    def cells(self) -> list[tuple[str, int, str]]:
        """Every (name of a rule, number of candidates, column suffix)."""
        return [(name, candidates, f"{name}|{candidates}") for name in self.names for candidates in self.candidates]


def measure(target_logits: torch.Tensor, draft_logits: torch.Tensor | None, grid: Grid) -> dict[str, np.ndarray]:
    """Measure rows `[positions, vocab]`; the columns of the audit table, one entry a position.

    - `target_token`, `top1`, `top2`, `top10_mass`; `entropy` and Medusa's `floored_entropy` (nats); the 16 most likely
      tokens: `top_ids`, `top_logprobs`.
    - per cell `C|rule|m`: the certificate, rounded down, infinite where the rule cannot reject; `accepted_size|rule`.
    - with a drafter `kl` (target first, rounded up), `reverse_kl`, `total_variation`; `draft_rank`: rank of the
      target's token in the drafter, ties by lowest id; `draft_ids`: the drafter's most likely tokens, as many as the
      most candidates, and `draft_target_ranks`: their ranks in the target.
    - with a drafter per cell `hit|rule|m`: an accepted token is among the drafter's top m; `certified|rule|m`:
      `kl < C`, which implies a hit.

    Raises:
        DraftcertError: shapes that differ, broken logits, as many candidates as tokens.

    >>> columns = measure(torch.tensor([[2.0, 1.0, 0.0]]), None, Grid(("strict_greedy",), (1,)))
    >>> round(float(columns["top1"][0]), 4)
    0.6652
    """
    positions, vocab = target_logits.shape
    stats = row_stats(target_logits, k=min(KEPT, vocab))
    log_top = stats.top_values.double() - stats.logsumexp.double().unsqueeze(-1)
    columns: dict[str, Any] = {
        "target_token": stats.argmax,
        "top1": log_top[:, 0].exp(),
        "top2": log_top[:, 1].exp() if vocab > 1 else torch.zeros(positions),
        "top10_mass": log_top[:, :10].exp().sum(-1),
        "entropy": stats.entropy,
        "floored_entropy": floored_entropy(target_logits),
        "top_ids": stats.top_ids,
        "top_logprobs": log_top,
    }
    kl: torch.Tensor | None = None
    if draft_logits is not None:
        strict = certify(target_logits, RULES[0], draft_logits=draft_logits)
        columns["kl"] = kl = torch.as_tensor(strict.kl)
        columns["reverse_kl"] = certify(draft_logits, RULES[0], draft_logits=target_logits).kl
        columns["total_variation"] = total_variation(target_logits, draft_logits)
        columns["draft_rank"] = ranks(draft_logits, stats.argmax.unsqueeze(-1)).squeeze(-1)
        columns["draft_ids"] = row_stats(draft_logits, k=min(max(grid.candidates), vocab)).top_ids
        columns["draft_target_ranks"] = ranks(target_logits, columns["draft_ids"])
    rules = dict(zip(grid.names, map(parse_rule, grid.rules), strict=True))
    for name, candidates, cell in grid.cells():
        found = certify(target_logits, rules[name], candidates=candidates)
        columns[f"C|{cell}"] = found.value
        columns[f"accepted_size|{name}"] = found.accepted
        if kl is not None:
            columns[f"certified|{cell}"] = kl < found.value
            columns[f"hit|{cell}"] = is_hit(columns["draft_target_ranks"], found.accepted, candidates)
    return {name: torch.as_tensor(column).cpu().numpy() for name, column in columns.items()}


def floored_entropy(logits: torch.Tensor) -> torch.Tensor:
    """What Medusa's code computes in place of the entropy: `-sum p ln(p + floor)`, in float64."""
    probabilities = torch.softmax(logits.double(), -1)
    return -(probabilities * torch.log(probabilities + float(Fraction(MEDUSA_FLOOR)))).sum(-1)


def is_hit(draft_target_ranks: torch.Tensor, accepted: torch.Tensor, candidates: int) -> torch.Tensor:
    """Whether one of the drafter's `candidates` most likely tokens, given by their ranks in the target, is accepted."""
    return (draft_target_ranks[:, :candidates] <= accepted.unsqueeze(-1)).any(-1)


def ranks(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """1-based ranks of the tokens `ids [rows, m]` in their rows `logits [rows, vocab]`, ties by lowest id."""
    tokens = torch.arange(logits.shape[-1], device=logits.device)
    columns = []
    for column in ids.unbind(-1):
        value = logits.gather(-1, column.unsqueeze(-1))
        before = (logits > value) | ((logits == value) & (tokens < column.unsqueeze(-1)))
        columns.append(before.sum(-1) + 1)
    return torch.stack(columns, -1)


def total_variation(target_logits: torch.Tensor, draft_logits: torch.Tensor) -> torch.Tensor:
    """Half the l1 distance of the two distributions, in float64."""
    target, draft = (torch.softmax(rows.double(), -1) for rows in (target_logits, draft_logits))
    return (target - draft).abs().sum(-1) / 2
