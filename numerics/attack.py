"""Attacks on the guarantee: drafts with a divergence just below the certificate, made to be rejected if any can be."""

from __future__ import annotations

import random

from flint import arb, fmpq

from ..theory import DraftcertError
from .balls import bounds, precision, sum_balls, to_fmpq
from .certificate import ExactCertificate
from .divergence import kl

EPSILONS = (fmpq(1, 10**30), fmpq(1, 10**6), fmpq(1, 10))
"""How far the adversarial drafts step back from the worst draft towards the target."""


def is_rejected(draft: list[fmpq], accepted: set[int], candidates: int) -> bool:
    """Whether some tie-breaking leaves no accepted token among the drafter's `candidates` most likely ones."""
    best = max((draft[a] for a in accepted), default=fmpq(0))
    return sum(q >= best for x, q in enumerate(draft) if x not in accepted) >= candidates


def attack(found: ExactCertificate, draw: random.Random, tries: int = 4) -> None:
    """Try to refute a certificate, with exact drafts and divergences in ball arithmetic.

    The worst draft must be rejected, at no less than the certificate. Mixed with the target it has a smaller
    divergence and must not be rejected; nor must random neighbours of it, where their divergence is below.

    Raises:
        DraftcertError: a draft that refutes it, in full.
    """
    if found.witness is None or not found.pool:
        return
    row, accepted = found.row, set(found.accepted)
    p = [fmpq(weight, row.total) for weight in row.weights]
    worst = [to_fmpq(q) for q in found.witness]
    if not is_rejected(worst, accepted, found.candidates):
        raise DraftcertError(f"the worst draft {found.witness} of {found} is not rejected")
    drafts = [worst]
    drafts += [[(1 - e) * q + e * target for q, target in zip(worst, p, strict=True)] for e in EPSILONS]
    drafts += [_neighbour(worst, draw) for _ in range(tries)]
    below = bounds(found.ball)[0]
    for draft in drafts:
        if is_rejected(draft, accepted, found.candidates) and bounds(_divergence(p, draft, found))[1] < below:
            raise DraftcertError(
                f"KL is below the certificate {found} of {row.text}, but the draft "
                f" {[str(q) for q in draft]} is rejected"
            )


def _divergence(p: list[fmpq], draft: list[fmpq], found: ExactCertificate) -> arb:
    with precision(int(3.33 * found.digits) + 2 * max(found.row.total.bit_length(), 64) + 128):
        return sum_balls(map(kl().term, p, draft))


def _neighbour(worst: list[fmpq], draw: random.Random) -> list[fmpq]:
    """The worst draft with every positive entry changed a little, renormalised."""
    size = 10 ** draw.choice((2, 6, 20))
    changed = [q * (1 + fmpq(draw.randint(-1000, 1000), 1000 * size)) for q in worst]
    total = sum(changed, fmpq(0))
    return [q / total for q in changed]
