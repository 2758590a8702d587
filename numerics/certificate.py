"""`certificate`: the exact certificate of a target distribution, to any number of digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import lcm
from pathlib import Path
from typing import Any

from flint import arb, fmpq

from ..support.files import write_whole
from ..theory import FORMULAS, DraftcertError, Rule, parse_rule
from ..theory.numbers import whole_number
from ..theory.pool import select_pool
from .balls import bit_size, formula_function, precision, sum_balls, to_fraction
from .decide import accepted_count
from .enclosure import Enclosure, is_certain
from .row import ExactRow, read_number, read_row
from .witness import long_integers, spelled_rule, witness_text

MAX_DIGITS = 100_000


@dataclass(frozen=True)
class ExactCertificate(Enclosure):
    """`C(p) = inf KL(target || draft)` over the drafts that a rule can reject, as a proven enclosure.

    It is infinite when fewer than `candidates` tokens are rejected: then every draft is accepted.

    >>> found = certificate(["0.5", "0.45", "0.05"], "strict_greedy", candidates=2, digits=6)
    >>> print(found, found.accepted, found.competitors, found.pool, found.level)
    0.213681 (0,) (1, 2) (0, 2) 11/40
    """

    rule: Rule
    candidates: int
    level: Fraction | None
    """The level c that the worst draft gives all moved tokens; None when the certificate is infinite."""
    accepted: tuple[int, ...] = field(repr=False)
    """The accepted tokens, most likely first."""
    competitors: tuple[int, ...]
    """The `candidates` most likely rejected tokens: the cheapest to draft wrongly."""
    pool: tuple[int, ...] = field(repr=False)
    """The tokens the worst draft moves to the level, accepted ones first; none where the target itself is rejected."""
    row: ExactRow = field(repr=False)

    @cached_property
    def witness(self) -> tuple[Fraction, ...] | None:
        """The worst draft: the rejected distribution of least divergence, exact. None when nothing can be rejected.

        It is the limit of rejected drafts and rejected itself, since ties of the drafter are resolved against us.
        """
        if self.level is None:
            return None
        moved = set(self.pool)
        return tuple(self.level if x in moved else self.row.probability(x) for x in range(len(self.row)))


def certificate(
    probabilities: Any,
    rule: Rule | str,
    candidates: int = 1,
    digits: int = 50,
    *,
    logits: Any = None,
    logit_ratio: Any = None,
    normalize: bool = False,
    witness: str | Path | None = None,
) -> ExactCertificate:
    """The least KL(target || draft) at which a draft can be rejected, in nats, to `digits` correct digits.

    Every draft with a smaller divergence has an accepted token among its `candidates` most likely tokens, whatever its
    ties; for every larger bound some draft has none. Theorems T1 to T3 of `draftcert.theory`.

    Args:
        probabilities: V target probabilities: floats, fractions, decimal text, numpy, torch; see `read_row` for how
            sums that miss 1 are treated. Zeros are allowed. On tied probabilities the lowest token id ranks first.
        rule: a rule or its text, such as `"strict_greedy"` or `"top_m(10) & additive(0.6)"`.
        candidates: how many of its most likely tokens the drafter proposes (a tree node's children), 1 to V - 1.
        digits: number of correct digits wanted, relative to the value; precision grows until they are proven.
        logits: V raw target logits, for rules that compare logits; only the two largest are used.
        logit_ratio: z_(2)/z_(1) itself, instead of `logits`.
        normalize: divide `probabilities` by their sum.
        witness: a file to write, from which `numerics/verify.py` confirms the result without any of this code
            (`draftcert verify`).

    Returns:
        The enclosure; exactly 0 where the target itself is rejected (a tie, no accepted token), infinite where fewer
        than `candidates` tokens are rejected.

    Raises:
        DraftcertError: input that is no distribution, candidates out of range, missing logits, or a witness file that
            cannot be written.

    >>> print(certificate("0.5 0.45 0.05".split(), "strict_greedy", candidates=2, digits=30))
    0.213681095765888962954404426263

    Source: Sharma 2026, arXiv 2606.30265 (strict greedy); `draftcert.theory` for any rule and number of candidates.
    """
    rule = parse_rule(rule)
    row = read_row(probabilities, normalize=normalize)
    candidates = check_candidates(candidates, len(row))
    digits = check_digits(digits)
    ratio = logit_ratio_of(logits, logit_ratio, len(row)) if rule.needs_logits else None
    found = certificate_of_row(row, rule, candidates, digits, ratio)
    if witness is not None:
        with long_integers():
            write_whole(witness, witness_text(_proof(found, ratio)))
    return found


def check_digits(digits: Any) -> int:
    """Refuse a number of digits that no value can be given to."""
    return whole_number(digits, "digits", 1, MAX_DIGITS)


def check_candidates(candidates: Any, tokens: int) -> int:
    """Refuse a number of candidates a drafter cannot propose."""
    return whole_number(candidates, "candidates", 1, tokens - 1, f", as there are {tokens} tokens")


def certificate_of_row(
    row: ExactRow, rule: Rule, candidates: int, digits: int, logit_ratio: Fraction | None = None
) -> ExactCertificate:
    """`certificate` on a row that is already read."""
    count = accepted_count(rule, row, logit_ratio)
    accepted, competitors = row.order[:count], row.order[count : count + candidates]
    if len(competitors) < candidates:
        return ExactCertificate(arb("inf"), digits, rule, candidates, None, accepted, competitors, (), row)
    if not accepted:
        level = row.probability(competitors[-1])
        return ExactCertificate(arb(0), digits, rule, candidates, level, accepted, competitors, (), row)
    weights = [fmpq(weight) for weight in row.ranked[: count + candidates]]
    selected = select_pool(weights[:count], weights[count:])
    pooled = (*accepted[: selected.accepted], *competitors[candidates - selected.competitors :])
    ball = pooled_value([row.weights[x] for x in pooled], selected.level, row.total, digits)
    level = to_fraction(selected.level) / row.total
    return ExactCertificate(ball, digits, rule, candidates, level, accepted, competitors, pooled, row)


def projected(accepted: Sequence[Fraction], competitors: Sequence[Fraction], digits: int) -> arb:
    """The certificate of masses that need not be all of a target: those of accepted tokens and of the competitors."""
    unit = lcm(*(mass.denominator for mass in (*accepted, *competitors)))
    above, below = (sorted((int(x * unit) for x in masses), reverse=True) for masses in (accepted, competitors))
    pool = select_pool([fmpq(x) for x in above], [fmpq(x) for x in below])
    return pooled_value(above[: pool.accepted] + below[len(below) - pool.competitors :], pool.level, unit, digits)


def pooled_value(weights: list[int], level: fmpq, total: int, digits: int) -> arb:
    """T3: the certificate formula summed over a pool (weights in descending order), until `digits` digits are proven.

    The sum is of second order in the deviations from the level, so it cancels twice the bits by which the largest
    deviation is small: that is how the precision is chosen, and the enclosure has the last word.
    """
    if not weights:
        return arb(0)
    summand = formula_function(FORMULAS["certificate"])
    lost = -2 * min(0, max(bit_size(1 - w / level) for w in (fmpq(weights[0]), fmpq(weights[-1])))) + 2
    bits = int(digits * 3.33) + lost + 2 * len(weights).bit_length() + 32
    while True:
        with precision(bits):
            c = arb(level)
            ball = sum_balls(summand(arb(w), c) for w in weights if w) / total
        if is_certain(ball, digits):
            return ball
        bits += bits // 2


def _proof(found: ExactCertificate, logit_ratio: Fraction | None) -> dict[str, Any]:
    """What a witness file holds of a certificate."""
    row, level = found.row, found.level
    proof: dict[str, Any] = {
        "format": "draftcert witness 1",
        "rule": spelled_rule(found.rule),
        "logit_ratio": None if logit_ratio is None else str(logit_ratio),
        "candidates": found.candidates,
        "row": {"denominator": row.total, "numerators": row.weights},
        "accepted": found.accepted,
        "competitors": found.competitors,
        "draft": None,
        "multipliers": None,
        "certificate": "inf",
    }
    if level is not None:
        proof["draft"] = [[token, str(level)] for token in found.pool]
        proof["multipliers"] = [[token, str(abs(row.probability(token) / level - 1))] for token in found.pool]
        proof["certificate"] = f"{Decimal(str(found)):.{found.digits - 1}e}" if found.pool else "0"
    return proof


def logit_ratio_of(logits: Any, ratio: Any, tokens: int) -> Fraction | None:
    """`z_(2)/z_(1)`, exactly, as it is given or from the logits; None without either."""
    if ratio is not None:
        return read_number(ratio, "logit_ratio")
    if logits is None:
        return None
    exact = sorted((read_number(z, f"logit {x}") for x, z in enumerate(logits)), reverse=True)
    if len(exact) != tokens:
        raise DraftcertError(f"{len(exact)} logits are given for {tokens} probabilities")
    if exact[0] == 0:
        raise DraftcertError("the largest logit is 0: the ratio z_(2)/z_(1) this rule compares does not exist")
    return exact[1] / exact[0]
