"""Looks for a target that a list describes and whose certificate the interval leaves out: full rows behind lists.

    python benchmarks/top_logprobs.py --lists 5000 --seed 0 --output benchmarks/results/top_logprobs.json

Each list is rounded (decimals or float32) and judged under a rule whose threshold is aimed at one of its tokens. Behind
it stand `ROWS` full rows that round to it: at corners of the box, inside, and with the unlisted mass packed, spread and
torn. Their certificates are computed from the definition in float64, by code of this file. One outside of its interval
ends the run with exit status 1. The widths are reported beside the best possible ones, which are found by moving the
extreme rows of a list further as long as that helps.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.progress import track

from draftcert.numerics import CertificateInterval, certificate_from_top_logprobs

ROWS = 20
INSIDE = 1 - 1e-6
"""Rows keep away from the very ends of the box, where float64 cannot tell how they round."""
SLACK = 1e-11
"""Of the judge's float64."""
STEPS = 200
Array = np.ndarray


def entropy(p: Array, floor: float = 0.0) -> float:
    """Of a row with zeros."""
    p = p[p > 0]
    return -float(p @ np.log(p + floor))


THRESHOLDS: dict[str, Callable[[Array, float], float]] = {
    "additive({})": lambda p, t: p[0] - t,
    "multiplicative({})": lambda p, alpha: alpha * p[0],
    "absolute({})": lambda p, tau: tau,
    "typical(1, {})": lambda p, delta: delta * math.exp(-entropy(p)),
    "typical_floor(1, {}, 1/100000)": lambda p, delta: delta * math.exp(-entropy(p, 1e-5)),
}
AIMED: dict[str, Callable[[Array, float], float]] = {
    "additive({})": lambda p, x: p[0] - x,
    "multiplicative({})": lambda p, x: x / p[0],
    "absolute({})": lambda p, x: x,
    "typical(1, {})": lambda p, x: x * math.exp(entropy(p)),
    "typical_floor(1, {}, 1/100000)": lambda p, x: x * math.exp(entropy(p, 1e-5)),
}
"""The parameter that puts the threshold at a probability x."""


def accepted(p: Array, name: str, parameter: float) -> int:
    """How many tokens of a row in descending order the rule accepts."""
    threshold = THRESHOLDS[name](p, parameter)
    return int(np.sum(p > threshold if name.startswith("typical") else p >= threshold))


def certificate(p: Array, count: int, candidates: int) -> float:
    """From the definition: the level by bisection, then the sum over what it moves."""
    if len(p) - count < candidates:
        return math.inf
    if count == 0:
        return 0.0
    above, below = p[:count], p[count : count + candidates]
    low, high = float(below[-1]), float(above[0])
    if low >= high:
        return 0.0
    c = high
    for _ in range(60):
        c = (low + high) / 2
        low, high = (c, high) if np.maximum(above - c, 0).sum() > np.maximum(c - below, 0).sum() else (low, c)
    moved = np.concatenate([above[above > c], below[below < c]])
    moved = moved[moved > 0]
    return max(float(moved @ np.log(moved / c)), 0.0)


@dataclass(frozen=True)
class Case:
    """A printed list with the error of each entry, the rule and what is known of the vocabulary."""

    printed: Array
    errors: Array
    name: str
    parameter: float
    candidates: int
    unlisted: int | None

    @property
    def interval(self) -> CertificateInterval:
        """What the library says."""
        return certificate_from_top_logprobs(
            self.printed.tolist(),
            self.name.format(repr(self.parameter)),
            self.candidates,
            vocab_size=None if self.unlisted is None else len(self.printed) + self.unlisted,
            error=self.errors.tolist(),
        )

    def certificate(self, row: Array) -> float:
        """What it is."""
        return certificate(row, accepted(row, self.name, self.parameter), self.candidates)

    def row(self, offsets: Array, tail: Array) -> Array | None:
        """The full row with listed entries moved by these shares of their errors and a tail of this shape, if any."""

        def listed(shift: float) -> Array:
            return np.exp(self.printed + self.errors * np.clip(offsets + shift, -INSIDE, INSIDE))

        def room(p: Array) -> float:
            return len(tail) * p.min()

        low, high = -2.0, 2.0
        if listed(low).sum() > 1 or listed(high).sum() + room(listed(high)) < 1:
            return None
        shift = 0.0
        if listed(0).sum() > 1 or listed(0).sum() + room(listed(0)) < 1:  # moved together until the sum is possible
            for _ in range(60):
                shift = (low + high) / 2
                p = listed(shift)
                short = p.sum() + room(p) < 1
                low, high = (shift, high) if short else (low, shift)
            shift = high
        p = listed(shift)
        left = 1 - p.sum()
        if left < -1e-12 or left > room(p) + 1e-12:
            return None
        return -np.sort(-np.concatenate([p, capped(tail, max(left, 0.0), p.min())]))


def capped(shape: Array, total: float, cap: float) -> Array:
    """Masses of about this shape with this sum, none above the cap."""
    tail = np.zeros(len(shape))
    for _ in range(len(shape)):
        free = tail < cap * (1 - 1e-12)
        missing = total - tail.sum()
        if missing <= 1e-15 or not free.any():
            break
        share = np.where(free, shape + 1e-300, 0)
        tail = np.minimum(tail + missing * share / share.sum(), cap)
    return tail


def case(rng: np.random.Generator) -> Case:
    """A random one: from a base row whose own token the threshold is aimed at."""
    tokens = int(rng.choice([2, 3, 5, 8, 12, 40]))
    base = -np.sort(-np.maximum(rng.dirichlet(np.full(tokens, rng.choice([0.1, 0.5, 1.0, 5.0]))), 1e-9))
    base /= base.sum()
    listed = int(rng.integers(1, tokens + 1)) if rng.random() < 0.7 else 1  # of one token: the tail decides
    logs = np.log(base[:listed])
    if (decimals := int(rng.choice([1, 2, 3, 4, 6, 0]))) > 0:
        printed, errors = np.round(logs, decimals), np.full(listed, 0.5 * 10.0**-decimals)
    else:
        printed = logs.astype(np.float32).astype(np.float64)
        errors = np.spacing(np.abs(logs).astype(np.float32)).astype(np.float64) / 2
    name = str(rng.choice(list(AIMED)))
    aim = float(base[rng.integers(tokens)]) * (1 + float(rng.normal()) * errors[0] * float(rng.choice([0, 1, 30])))
    parameter = float(min(max(AIMED[name](base, aim), 0.0), 1.0))
    return Case(
        printed, errors, name, parameter, int(rng.integers(1, 4)), tokens - listed if rng.random() < 0.7 else None
    )


def rows(case: Case, rng: np.random.Generator) -> Iterator[tuple[Array, Array]]:
    """Offsets and tails of what may stand behind a list."""
    count = len(case.printed)
    for number in range(4 * ROWS):
        corners = np.sign(rng.normal(size=count))
        split = np.where(np.arange(count) < rng.integers(count + 1), 1.0, -1.0) * rng.choice([-1, 1])
        together = np.full(count, rng.choice([-1.0, 1.0]))
        offsets = (corners, split, together, rng.uniform(-1, 1, count))[number % 4]
        tokens = case.unlisted if case.unlisted is not None else int(rng.choice([1, 2, 5, 30, 1000]))
        torn = rng.dirichlet(np.full(tokens, 0.2)) if tokens else np.zeros(0)
        stepped = np.where(np.arange(tokens) < rng.integers(4), 1.0, 0.01)  # some at the cap, the others alike
        tail = (np.ones(tokens), 2.0 ** -np.arange(min(tokens, 1000)), torn, stepped)[rng.integers(4)]
        yield offsets, tail


def judged(case: Case, rng: np.random.Generator) -> tuple[list[float], list[tuple[Array, Array]]]:
    """The certificates of `ROWS` full rows behind a list (fewer where hardly any are possible) and what made them."""
    values, origins = [], []
    for offsets, tail in rows(case, rng):
        row = case.row(offsets, tail)
        if row is not None and len(values) < ROWS:
            values.append(case.certificate(row))
            origins.append((offsets, tail))
    return values, origins


def outside(found: CertificateInterval, value: float) -> bool:
    """Whether a certificate contradicts the interval."""
    if math.isinf(value):
        return not (math.isinf(found.upper) or found.conditional)
    return not float(found.lower) - SLACK <= value <= float(found.upper) + SLACK


def improved(case: Case, value: float, origin: tuple[Array, Array], sign: int, rng: np.random.Generator) -> float:
    """A value further up (sign 1) or down (-1), by moving the row that has it as long as that helps."""
    offsets, tail = origin
    for _ in range(STEPS):
        moved = np.clip(offsets + rng.normal(size=len(offsets)) * rng.choice([0.1, 2.0]), -1, 1)
        shape = tail * np.exp(rng.normal(size=len(tail)) * rng.choice([0.0, 1.0, 5.0]))
        row = case.row(moved, shape)
        if row is None or not math.isfinite(further := case.certificate(row)):
            continue
        if (further - value) * sign > 0:
            value, offsets, tail = further, moved, shape
    return value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lists", type=int, default=500)
    parser.add_argument("--best", type=int, default=20, help="one list in so many is compared with the best width")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="where the result is written as JSON")
    options = parser.parse_args()
    start = time.perf_counter()
    rng = np.random.default_rng(options.seed)
    full = wrong = exact = 0
    widths: list[tuple[float, float]] = []
    lists = 0
    for _ in track(range(options.lists), description="lists", disable=not sys.stderr.isatty()):
        drawn = case(rng)
        values, origins = judged(drawn, rng)
        if not values:
            continue
        found = drawn.interval
        lists += 1
        full += len(values)
        exact += found.exact
        contradicted = [value for value in values if outside(found, value)]
        wrong += len(contradicted)
        if contradicted:
            print(drawn, found, contradicted, sep="\n")
        finite = [k for k, value in enumerate(values) if math.isfinite(value)]
        if lists % options.best == 0 and finite and math.isfinite(found.upper):
            least, greatest = (choose(finite, key=values.__getitem__) for choose in (min, max))
            low = improved(drawn, values[least], origins[least], -1, rng)
            high = improved(drawn, values[greatest], origins[greatest], 1, rng)
            widths.append((float(found.upper - found.lower), high - low))
    result = {
        "lists": lists,
        "full rows": full,
        "outside": wrong,
        "exact": exact,
        "compared": len(widths),
        "median width": statistics.median(width for width, _ in widths),
        "median best width": statistics.median(best for _, best in widths),
        "median of width / best": statistics.median(width / best for width, best in widths if best > SLACK),
        "seed": options.seed,
        "seconds": round(time.perf_counter() - start),
    }
    print(json.dumps(result, indent=1))
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
