"""Looks for a row that is certified wrongly: float32 rows near the boundary, judged again in float64 with slack.

    python benchmarks/soundness.py --rows 10000000 --seed 0

Every row has a drafter placed at a multiple of the distance at which the certificate ends, by scaling the step towards
the worst draft of theorem T1; the multiples crowd around 1. The float32 kernel says `certified`; the reference in
float64 computes KL and C again and their certainty intervals decide. One contradiction ends the run with exit status 1.
"""

from __future__ import annotations

import argparse
import json
import sys

import torch
from rich.progress import track

from draftcert.runtime import certify
from draftcert.runtime.reference import divergence
from draftcert.theory import parse_rule

RULES = ("strict_greedy", "multiplicative(0.3)", "additive(0.1)", "top_m(3)", "typical(0.09, 0.3)")


def batch(count: int, size: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Target and draft rows: margins from 1e-7 up, ties, flat and peaked rows, masks."""
    spread = 10 ** (torch.rand(count, 1, generator=generator) * 4 - 2.5)
    target = torch.randn(count, size, generator=generator) * spread
    near = torch.rand(count, generator=generator) < 0.3
    margin = 10 ** (-7 * torch.rand(count, generator=generator))
    top, first = target.max(-1)
    other = (first + 1) % size
    target[near, other[near]] = (top - margin)[near]
    target[torch.rand(count, size, generator=generator) < 0.02] = -torch.inf
    target[torch.arange(count), first] = top
    # The drafter exchanges the two: somewhere on the way the greedy token changes.
    swapped = target.clone()
    swapped[torch.arange(count), first], swapped[torch.arange(count), other] = target[torch.arange(count), other], top
    swapped = torch.where(target == -torch.inf, target, swapped).clamp(min=-1e30)
    way = 0.5 + 0.2 * torch.randn(count, 1, generator=generator) ** 3
    return target, torch.where(target == -torch.inf, target, target + way * (swapped - target.clamp(min=-1e30)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--vocab", type=int, default=48)
    options = parser.parse_args()
    generator = torch.Generator().manual_seed(options.seed)
    certified = 0
    checked = 0
    step = 20_000
    for number in track(range(-(-options.rows // step)), description="rows", disable=not sys.stderr.isatty()):
        rule = parse_rule(RULES[number % len(RULES)])
        candidates = 1 + number // len(RULES) % 3
        target, draft = batch(step, options.vocab, generator)
        claimed = certify(target, rule, candidates, draft).certified
        wide = certify(target.double(), rule, candidates, sound=False).value
        value, error = divergence(target.double(), draft.double())
        assert claimed is not None
        wrong = claimed & (value - error >= wide * (1 + 1e-12))
        if bool(wrong.any()):
            row = int(wrong.nonzero()[0])
            print(json.dumps({"rule": str(rule), "candidates": candidates, "kl": float(value[row])}))
            print(target[row].tolist(), draft[row].tolist())
            return 1
        certified += int(claimed.sum())
        checked += step
    print(json.dumps({"rows": checked, "certified": certified, "wrong": 0, "seed": options.seed}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
