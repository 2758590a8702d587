"""Certified evaluations per second: `certificate` against mpmath alone and against one cvxpy solve, in one run.

    python benchmarks/numerics.py --seconds 1 --output benchmarks/results/numerics.json

All methods of a row run in turn, so that the machine treats them alike. cvxpy solves one program, for the most likely
competitors. At 262,144 tokens every validated rule is timed.
"""

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path

import mpmath
import numpy as np

from draftcert.numerics import certificate
from draftcert.numerics.balls import Mpf
from draftcert.numerics.program import solve
from draftcert.numerics.row import read_row
from draftcert.theory import parse_rule
from draftcert.theory.presets import example_rules

DIGITS = 50
SIZES = (10, 1000, 262_144)
FEW_RULES = tuple(map(parse_rule, ("strict_greedy", "typical(9/100, 3/10)")))
LEAST_CALLS = 3
TOOLS = ("python-flint", "mpmath", "cvxpy", "clarabel", "numpy")


def by_mpmath(target: list[float], accepted: int, candidates: int, digits: int = DIGITS) -> Mpf:
    """The level by bisection and the sum of logarithms, at a fixed precision; nothing is certified."""
    order = sorted(range(len(target)), key=lambda x: (-target[x], x))
    with mpmath.workdps(digits + 15):
        A = [mpmath.mpf(target[a]) for a in order[:accepted]]
        M = [mpmath.mpf(target[i]) for i in order[accepted : accepted + candidates]]
        low, high = min(M), max(A)
        for _ in range(int(3.33 * (digits + 15))):
            c = (low + high) / 2
            above, below = sum(max(p - c, 0) for p in A), sum(max(c - p, 0) for p in M)
            low, high = (c, high) if above > below else (low, c)
        moved = [p for p in A if p > low] + [p for p in M if p < low]
        return mpmath.fsum(p * mpmath.log(p / low) for p in moved if p)


def rates(calls: dict[str, Callable[[], object]], seconds: float) -> dict[str, dict[str, float]]:
    """For every method: calls, median and 90th percentile of the time of one, and calls per second."""
    times: dict[str, list[float]] = {method: [] for method in calls}
    for call in calls.values():
        call()
    end = time.perf_counter() + seconds
    while min(map(len, times.values())) < LEAST_CALLS or time.perf_counter() < end:
        for method, call in calls.items():
            start = time.perf_counter()
            call()
            times[method].append(time.perf_counter() - start)
    return {
        method: {
            "calls": len(taken),
            "per_second": 1 / statistics.median(taken),
            "median_s": statistics.median(taken),
            "p90_s": sorted(taken)[int(0.9 * (len(taken) - 1))],
        }
        for method, taken in times.items()
    }


def measure(seconds: float, show: Callable[[dict], None]) -> list[dict]:
    """All rows: a vocabulary, rule and number of candidates, by method."""
    rows = []
    for tokens in SIZES:
        logits = np.random.default_rng(0).standard_t(4, tokens) * 2
        scores = np.exp(logits - logits.max())
        target = scores / scores.sum()
        plain, row = target.tolist(), read_row(target)
        for rule, candidates in product(example_rules() if tokens == SIZES[-1] else FEW_RULES, (1, 4)):
            if tokens == SIZES[-1] and candidates > 1 and rule not in FEW_RULES:
                continue
            ratio = "19/20" if rule.needs_logits else None
            calls: dict[str, Callable[[], object]] = {
                "certificate": partial(certificate, target, rule, candidates, DIGITS, logit_ratio=ratio)
            }
            if rule == FEW_RULES[0]:
                calls["mpmath"] = partial(by_mpmath, plain, 1, candidates)
                if tokens < SIZES[-1]:
                    calls["cvxpy"] = partial(solve, row, 1, candidates)
            for method, result in rates(calls, seconds).items():
                rows.append({"tokens": tokens, "rule": str(rule), "candidates": candidates, "method": method} | result)
                show(rows[-1])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="per vocabulary, rule and number of candidates")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    line = "{tokens:>7} {rule:<36} m={candidates} {method:<12} {per_second:>10.1f}/s  p90 {p90_s:.4f}s"
    rows = measure(options.seconds, lambda row: print(line.format(**row), flush=True))
    if options.output:
        about = {
            "digits": DIGITS,
            "machine": platform.platform(),
            "python": platform.python_version(),
            "tools": {name: version(name) for name in TOOLS},
            "rows": rows,
        }
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
