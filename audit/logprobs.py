"""What a server's top log-probabilities determine: certificates, exactly or as intervals, and ties.

Only the listed tokens are known, and only to the precision of the server's arithmetic and of the printed decimals. Both
are told apart: where the list determines the certificate the interval has the width of that rounding, elsewhere that of
the unseen tail. KL(target || draft) cannot be found from such lists, so nothing here says that a drafter is certified.
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
from ..theory.errors import Argument
from ..theory.numbers import real_number, whole_number
from .responses import Skipped, TopLogprobs, errors, normalizer_error, read_positions

MOST_TOKENS = 2**24
"""Of a vocabulary: a sum over more in single precision says nothing."""


@dataclass(frozen=True)
class Position:
    """One position of a response.

    `lower`, `upper`: the certificate in nats. `determined`: whether the list fixes it but for rounding. `gap`: by how
    much the most likely token `top` leads, in nats; both `None` where that token may be missing from the list. `tie`:
    "exact", "within rounding", "near" or "". `conditional`: `upper` holds if at least as many tokens as there are
    candidates are rejected, which the list does not show; otherwise every draft is accepted.
    """

    where: str
    token: str
    top: str | None
    gap: float | None
    tie: str
    lower: float
    upper: float
    determined: bool
    conditional: bool


@dataclass(frozen=True)
class LogprobsAudit:
    """All positions of a file, under one rule: those with a list, and those that were skipped."""

    rule: Rule
    candidates: int
    positions: list[Position]
    skipped: list[Skipped]

    def summary(self) -> dict[str, Any]:
        """Counts, and the mean KL that guarantees acceptance on the positions with a list (by the lower ends)."""
        ties = Counter(position.tie for position in self.positions if position.tie)
        guarantee = MeanKLGuarantee(position.lower for position in self.positions)
        return {
            "rule": str(self.rule),
            "candidates": self.candidates,
            "positions": len(self.positions),
            "skipped": dict(Counter(each.reason for each in self.skipped)),
            "determined": sum(position.determined for position in self.positions),
            "not_the_most_likely_token": sum(each.top not in (None, each.token) for each in self.positions),
            "ties": dict(sorted(ties.items())),
            "mean_kl_for": {f"{share} %": guarantee.mean_kl(Fraction(share, 100)) for share in (50, 80, 95)},
        }

    def as_dict(self) -> dict[str, Any]:
        """The summary, every position and everything that was skipped, as plain data."""
        return {
            "summary": self.summary(),
            "positions": [vars(position) for position in self.positions],
            "skipped": [vars(each) for each in self.skipped],
        }


def audit_logprobs(
    file: str | Path,
    rule: Rule | str = "strict_greedy",
    candidates: int = 1,
    vocab_size: int | None = None,
    near: float = 0.05,
    asked: int | None = None,
) -> LogprobsAudit:
    """Certificates of every position in a file of server responses.

    `vocab_size`: the number of tokens, if known, narrows intervals. `near`: a lead of fewer nats than this is called
    near: noise of the hardware may change which token is chosen there. `asked`: how many log-probabilities were asked
    for, which shows whether lists that are keyed by text are whole.

    Raises:
        DraftcertError: as `read_positions`; a rule that needs logits; a list that contradicts the vocabulary. The
            message names the line and the position.
    """
    rule = parse_rule(rule)
    candidates = whole_number(candidates, "candidates", 1)
    vocab_size = None if vocab_size is None else whole_number(vocab_size, "vocab_size", 1, MOST_TOKENS)
    asked = None if asked is None else whole_number(asked, "asked", 1)
    if not (near := real_number(near, "near")) >= 0:
        raise DraftcertError(Argument("near", near), ": a lead is a number of nats from 0 up")
    found = read_positions(file, asked)
    return LogprobsAudit(
        rule,
        candidates,
        [_position(each, rule, candidates, vocab_size, near) for each in found if isinstance(each, TopLogprobs)],
        [each for each in found if isinstance(each, Skipped)],
    )


def _position(row: TopLogprobs, rule: Rule, candidates: int, vocab_size: int | None, near: float) -> Position:
    # A token of probability zero says nothing that the remaining mass does not.
    listed = [entry for entry in row.entries[: row.contiguous] if entry.logprob > -math.inf]
    if not listed:
        return Position(row.where, row.chosen.token, None, None, "", 0.0, math.inf, False, False)
    logprobs = [entry.logprob for entry in listed]
    error = errors(logprobs)
    try:
        found = certificate_from_top_logprobs(
            logprobs, rule, candidates, vocab_size=vocab_size, error=error, common_error=normalizer_error(vocab_size)
        )
    except DraftcertError as problem:
        raise DraftcertError(f"{row.where}: ", *problem.args) from problem
    gap = logprobs[0] - logprobs[1] if len(logprobs) > 1 else math.inf
    rounding = sum(error[:2]) * (1 + 1e-9)
    return Position(
        row.where,
        row.chosen.token,
        listed[0].token,
        gap,
        "exact" if gap == 0 else "within rounding" if gap <= rounding else "near" if gap <= near else "",
        *found.floats,
        found.exact,
        found.conditional,
    )
