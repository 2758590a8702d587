"""What a server's top log-probabilities determine: certificates, exactly or as intervals, and ties.

Only the listed tokens are known, and only to the precision they were printed in. Both are told apart: where the list
determines the certificate the interval has the width of the rounding, elsewhere that of the unseen tail. KL(target ||
draft) cannot be found from such lists, so nothing here says that a drafter is certified.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..numerics import MeanKLGuarantee, certificate_from_top_logprobs
from ..theory import DraftcertError, Rule, parse_rule
from .responses import TopLogprobs, read_responses, rounding


@dataclass(frozen=True)
class Position:
    """One position of a response.

    `lower`, `upper`: the certificate in nats. `determined`: whether the list fixes it but for rounding. `gap`: by how
    much the most likely token leads, in nats. `tie`: "exact", "within rounding", "near" or "".
    """

    where: str
    token: str
    top: str
    gap: float
    tie: str
    lower: float
    upper: float
    determined: bool


@dataclass(frozen=True)
class LogprobsAudit:
    """All positions of a file, under one rule."""

    rule: Rule
    candidates: int
    positions: list[Position]

    def summary(self) -> dict[str, Any]:
        """Counts, and the mean KL that guarantees acceptance on these positions (by the lower ends)."""
        ties = Counter(position.tie for position in self.positions if position.tie)
        guarantee = MeanKLGuarantee(position.lower for position in self.positions)
        return {
            "rule": str(self.rule),
            "candidates": self.candidates,
            "positions": len(self.positions),
            "determined": sum(position.determined for position in self.positions),
            "not_the_most_likely_token": sum(position.token != position.top for position in self.positions),
            "ties": dict(sorted(ties.items())),
            "mean_kl_for": {f"{share} %": guarantee.mean_kl(Fraction(share, 100)) for share in (50, 80, 95)},
        }

    def as_dict(self) -> dict[str, Any]:
        """The summary and every position, as plain data."""
        return {"summary": self.summary(), "positions": [vars(position) for position in self.positions]}


def audit_logprobs(
    file: str | Path,
    rule: Rule | str = "strict_greedy",
    candidates: int = 1,
    vocabulary: int | None = None,
    near: float = 0.05,
) -> LogprobsAudit:
    """Certificates of every position in a file of server responses.

    `vocabulary`: the number of tokens, if known, narrows intervals. `near`: a lead of fewer nats than this is called
    near: noise of the hardware may change which token is chosen there.

    Raises:
        DraftcertError: as `read_responses`; a rule that needs logits; a list that contradicts the vocabulary. The
            message names the line and the position.
    """
    rule = parse_rule(rule)
    positions = [_position(row, rule, candidates, vocabulary, near) for row in read_responses(file)]
    return LogprobsAudit(rule, candidates, positions)


def _position(row: TopLogprobs, rule: Rule, candidates: int, vocabulary: int | None, near: float) -> Position:
    # A token of probability zero says nothing that the remaining mass does not.
    listed = [entry for entry in row.entries[: row.contiguous] if entry.logprob > -math.inf]
    if not listed:
        raise DraftcertError(f"{row.where}: no token has a probability above 0")
    logprobs = [entry.logprob for entry in listed]
    error = rounding(logprobs)
    try:
        found = [
            certificate_from_top_logprobs(shifted, rule, candidates, vocabulary=vocabulary)
            for shifted in _rounded_either_way(logprobs, error)
        ]
    except DraftcertError as problem:
        raise DraftcertError(f"{row.where}: {problem}") from problem
    lower, upper = min(float(each.lower) for each in found), max(float(each.upper) for each in found)
    gap = logprobs[0] - logprobs[1] if len(logprobs) > 1 else math.inf
    return Position(
        row.where,
        row.chosen.token,
        listed[0].token,
        gap,
        "exact" if gap == 0 else "within rounding" if gap <= 2 * error * (1 + 1e-9) else "near" if gap <= near else "",
        max(0.0, lower - _slack(lower, error)) if math.isfinite(lower) else lower,
        upper + _slack(upper, error) if math.isfinite(upper) else upper,
        all(each.exact for each in found),
    )


def _rounded_either_way(logprobs: list[float], error: float) -> list[list[float]]:
    """The printed list, and the lists that round to it with the fewest and the most accepted tokens.

    Thresholds are a probability, or move with the most likely token: so all others are moved with it, and against it.
    """
    lists = [logprobs]
    for top, others in ((error, -error), (-error, error), (error, error), (-error, -error)):
        first = logprobs[0] + top
        lists.append([first, *(min(value + others, first) for value in logprobs[1:])])
    return [_at_most_one(moved) for moved in lists]


def _at_most_one(logprobs: list[float]) -> list[float]:
    """Scaled down to a total of 1 where rounding took it above; a certificate scales by as much."""
    total = math.fsum(map(math.exp, logprobs))
    return logprobs if total <= 1 else [value - math.log(total) for value in logprobs]


def _slack(value: float, error: float) -> float:
    """By how much a certificate moves when every log-probability does by `error`, the accepted tokens kept.

    dC / d ln p_x = p_x ln(p_x / c) over the pool, whose absolute values sum to at most C + 2 sum_M p ln(c/p)
    <= C + 2 m c / e < C + 1, since m c <= 1. Twice that covers the higher orders.
    """
    return 2 * error * (value + 1)
