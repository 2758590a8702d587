"""Looks for a row that is certified wrongly: rows near the boundary, judged again by the float64 reference with slack.

    python benchmarks/soundness.py --rows 10000000 --seed 0 --output benchmarks/results/soundness.json

Every row has a drafter somewhere on the way to exchanging the target's two most likely tokens: somewhere on it the
certificate ends. The kernel says `certified` of logits stored in float32, bfloat16 or float16; the reference in torch
computes KL and C again in float64, and its own bounds decide. One contradiction ends the run with exit status 1.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import sys
import time
from pathlib import Path

import torch
from rich.progress import track

from draftcert.runtime.rows import certify, operators
from draftcert.runtime.rows.program import encoded
from draftcert.runtime.rows.reference import divergence
from draftcert.theory.presets import example_rules

RULES = [rule for rule in example_rules() if not rule.needs_logits]
CANDIDATES = (1, 2, 3)
SIZES = (5, 16, 48, 48, 200)
DTYPES = (torch.float32, torch.float32, torch.bfloat16, torch.float16)
TEMPERATURES = (1.0, 1.0, 0.6)
KEPT = 16
STEP = 20_000


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
    parser.add_argument("--output", type=Path, help="where the result is written as JSON")
    options = parser.parse_args()
    start = time.perf_counter()
    generator = torch.Generator().manual_seed(options.seed)
    cases = list(itertools.product(TEMPERATURES, DTYPES, SIZES, CANDIDATES, RULES))
    order = torch.randperm(len(cases), generator=generator).tolist()
    checked = certified = passes = 0
    for number in track(range(-(-options.rows // STEP)), description="rows", disable=not sys.stderr.isatty()):
        temperature, dtype, size, candidates, rule = cases[order[number % len(cases)]]
        target, draft = (rows.clamp(max=torch.finfo(dtype).max).to(dtype) for rows in batch(STEP, size, generator))
        claimed = certify(target, rule, candidates, draft, temperature)
        # The reference only: other statistics, other projection.
        steps = encoded(rule)
        wide = operators.certify_by_tensors(target.double(), None, steps, candidates, temperature, False, KEPT)[0]
        value, error = divergence(target.double(), draft.double(), temperature)
        assert claimed.certified is not None
        wrong = claimed.certified & (value - error >= wide * (1 + 1e-12))
        if bool(wrong.any()):
            row = int(wrong.nonzero()[0])
            print(json.dumps({"rule": str(rule), "candidates": candidates, "temperature": temperature}))
            print(target[row].tolist(), draft[row].tolist())
            return 1
        certified += int(claimed.certified.sum())
        passes += int((claimed.passes == 2).sum())
        checked += STEP
    result = {"rows": checked, "certified": certified, "wrong": 0, "second passes": passes, "seed": options.seed}
    result |= {"seconds": round(time.perf_counter() - start), "torch": torch.__version__, "machine": platform.machine()}
    print(json.dumps(result))
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
