"""Certified evaluations per second: `certificate` against mpmath alone and against one cvxpy solve, in one run.

python benchmarks/numerics.py [--seconds 2] [--json]
"""

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version

import mpmath
import numpy as np

from draftcert.numerics import certificate
from draftcert.numerics.balls import Mpf
from draftcert.numerics.program import solve
from draftcert.numerics.row import read_row

DIGITS = 50


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


def rate(call: Callable[[], object], seconds: float) -> dict[str, float]:
    """Median and 90th percentile of the time of one call, and calls per second."""
    call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return {
        "calls": len(times),
        "per_second": 1 / statistics.median(times),
        "median_s": statistics.median(times),
        "p90_s": sorted(times)[int(0.9 * (len(times) - 1))],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="per row")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    for tokens in (8, 1000, 262_144):
        logits = np.random.default_rng(0).standard_t(4, tokens) * 2
        scores = np.exp(logits - logits.max())
        target = scores / scores.sum()
        plain, row = target.tolist(), read_row(target)
        for rule in ("strict_greedy", "typical(0.09, 0.3)"):
            for candidates in (1, 4):
                methods: dict[str, Callable[[], object]] = {
                    "certificate": partial(certificate, target, rule, candidates, DIGITS)
                }
                if rule == "strict_greedy":
                    methods["mpmath"] = partial(by_mpmath, plain, 1, candidates)
                    if tokens <= 1000:
                        methods["cvxpy"] = partial(solve, row, 1, candidates)
                for method, call in methods.items():
                    about = {"tokens": tokens, "rule": rule, "candidates": candidates, "method": method}
                    rows.append(about | rate(call, options.seconds))
                    if not options.json:
                        line = (
                            "{tokens:>7} {rule:<20} m={candidates} {method:<12} {per_second:>10.1f}/s  p90 {p90_s:.4f}s"
                        )
                        print(line.format(**rows[-1]), flush=True)
    if options.json:
        tools = {name: version(name) for name in ("python-flint", "mpmath", "cvxpy", "clarabel", "numpy")}
        print(json.dumps({"digits": DIGITS, "machine": platform.processor(), "tools": tools, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
