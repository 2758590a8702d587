"""What a server's top log-probabilities determine: certificates, exactly or as intervals, and ties.

Only the listed tokens are known, and only to the precision of the server's arithmetic and of the printed decimals. Both
are told apart: where the list determines the certificate the interval has the width of that rounding, elsewhere that of
the unseen tail. KL(target ||
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
from .responses import TopLogprobs, normalizer_error, read_responses, rounding


@dataclass(frozen=True)
class Position:
    """One position of a response.

    `lower`, `upper`: the certificate in nats. `determined`: whether the list fixes it but for rounding. `gap`: by how
    much the most likely token `top` leads, in nats; both `None` where that token may be missing from the list. `tie`:
    "exact", "within rounding", "near" or "".
    """

    where: str
    token: str
    top: str | None
    gap: float | None
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
            "not_the_most_likely_token": sum(each.top not in (None, each.token) for each in self.positions),
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
    vocab_size: int | None = None,
    near: float = 0.05,
) -> LogprobsAudit:
    """Certificates of every position in a file of server responses.

    `vocab_size`: the number of tokens, if known, narrows intervals. `near`: a lead of fewer nats than this is called
    near: noise of the hardware may change which token is chosen there.

    Raises:
        DraftcertError: as `read_responses`; a rule that needs logits; a list that contradicts the vocabulary. The
            message names the line and the position.
    """
    rule = parse_rule(rule)
    positions = [_position(row, rule, candidates, vocab_size, near) for row in read_responses(file)]
    return LogprobsAudit(rule, candidates, positions)


def _position(row: TopLogprobs, rule: Rule, candidates: int, vocab_size: int | None, near: float) -> Position:
    if not row.contiguous:
        return Position(row.where, row.chosen.token, None, None, "", 0.0, math.inf, False)
    # A token of probability zero says nothing that the remaining mass does not.
    listed = [entry for entry in row.entries[: row.contiguous] if entry.logprob > -math.inf]
    if not listed:
        raise DraftcertError(f"{row.where}: no token has a probability above 0")
    logprobs = [entry.logprob for entry in listed]
    error = rounding(logprobs)
    lists = _possible(logprobs, error, vocab_size)
    try:
        found = [certificate_from_top_logprobs(each, rule, candidates, vocab_size=vocab_size) for each in lists]
        fewest, most = min(each.fewest for each in found), max(each.most for each in found)
        if fewest < most:
            # What is accepted turns within the rounding or with the unseen tail: the ends on every list.
            at_least, at_most = (
                [
                    certificate_from_top_logprobs(each, f"top_m({count})", candidates, vocab_size=vocab_size)
                    for each in lists
                ]
                for count in (max(fewest, 1), min(most, len(listed)))
            )
        else:
            at_least = at_most = found
    except DraftcertError as problem:
        raise DraftcertError(f"{row.where}: {problem}") from problem
    lower = min(float(each.lower) for each in at_least) if fewest else 0.0
    upper = max(float(each.upper) for each in (found if most > len(listed) else at_most))
    gap = logprobs[0] - logprobs[1] if len(logprobs) > 1 else math.inf
    return Position(
        row.where,
        row.chosen.token,
        listed[0].token,
        gap,
        "exact" if gap == 0 else "within rounding" if gap <= 2 * error * (1 + 1e-9) else "near" if gap <= near else "",
        max(0.0, lower - _slack(lower, error)) if math.isfinite(lower) else lower,
        upper + _slack(upper, error) if math.isfinite(upper) else upper,
        fewest == most and all(each.exact for each in found),
    )


def _possible(logprobs: list[float], error: float, vocab_size: int | None) -> list[tuple[float, ...]]:
    """The lists at the ends of what a list may have been before rounding.

    Thresholds are a probability, or move with the most likely token: so all others are moved with it, and against it.
    Then all are moved together, as far as the server's sum over the row may be off and the masses stay possible: the
    listed ones at most 1, and at least that with unlisted tokens no likelier than the last.
    """
    off = normalizer_error(vocab_size)
    lists = []
    for top, others in ((error, -error), (-error, error), (error, error), (-error, -error)):
        first = logprobs[0] + top
        moved = [first, *(min(value + others, first) for value in logprobs[1:])]
        listed = math.fsum(map(math.exp, moved))
        most = math.inf if vocab_size is None else listed + (vocab_size - len(moved)) * math.exp(moved[-1])
        highest = min(off, -math.log(listed))
        lowest = min(max(-off, -math.log(most)), highest) if most > 0 else highest
        lists += [tuple(value + shift for value in moved) for shift in (lowest, highest)]
    return lists


def _slack(value: float, error: float) -> float:
    """By how much a certificate moves when every log-probability does by `error`, the accepted tokens kept.

    dC / d ln p_x = p_x ln(p_x / c) over the pool, whose absolute values sum to at most C + 2 sum_M p ln(c/p)
    <= C + 2 m c / e < C + 1, since m c <= 1. Twice that covers the higher orders.
    """
    return 2 * error * (value + 1)
