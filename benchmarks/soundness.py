"""Looks for a row that is certified wrongly: rows near the boundary, judged by what the rules and C are by definition.

    python benchmarks/soundness.py --rows 10000000 --exact 100000 --output benchmarks/results/soundness.json

Every row has a drafter somewhere on the way to exchanging the target's two most likely tokens: somewhere on it the
certificate ends. Neither judge shares code with the runtime. The fast one evaluates in float64 what a rule's record
says, and finds the level of the nearest rejected draft by bisection, with a slack for its own rounding; the exact one
is `draftcert.numerics`, on rows of few tokens. One row certified wrongly ends the run with exit status 1. Rows that
could be certified and are not are counted.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import sys
import time
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import sympy
import torch
from flint import arb, fmpq
from rich.progress import track

from draftcert.numerics import certificate
from draftcert.numerics.balls import bounds, precision, to_fmpq
from draftcert.runtime.rows import certify
from draftcert.theory import Rule
from draftcert.theory.conditions import Condition, RankCondition, RowCondition, fold_conditions
from draftcert.theory.presets import example_rules
from draftcert.theory.statistics import TOP, Entropy

RULES = [rule for rule in example_rules() if not rule.needs_logits]
CANDIDATES = (1, 2, 3)
SIZES = (5, 16, 48, 48, 200)
DTYPES = (torch.float32, torch.float32, torch.bfloat16, torch.float16)
TEMPERATURES = (1.0, 1.0, 0.6)
STEP, EXACT_STEP = 20_000, 250
SLACK = 1e-9
"""What the fast judge leaves to its own rounding, relative to a threshold or a certificate; to a thousandth of it, in
nats."""
BITS = 1200


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
    way[torch.rand(count, generator=generator) < 0.02] = 0  # the drafter is the target
    return target, torch.where(target == -torch.inf, target, target + way * (swapped - target.clamp(min=-1e30)))


# ---- The fast judge -------------------------------------------------------------------------------------------------


def accepted(rule: Rule, p: torch.Tensor, slack: float) -> torch.Tensor:
    """How many tokens of each row of sorted probabilities the rule accepts, its thresholds lowered by a slack."""
    size = p.shape[-1]

    def value(expression: sympy.Basic) -> torch.Tensor:
        entropies = sorted(expression.atoms(Entropy), key=sympy.default_sort_key)
        symbols = [sympy.Dummy() for _ in entropies]
        floors: list[Any] = [entropy.args[0] for entropy in entropies]
        known = [-torch.special.xlogy(p, p + float(floor)).sum(-1).numpy() for floor in floors]
        plain = expression.subs(dict(zip(entropies, symbols, strict=True)))
        function = sympy.lambdify([TOP, *symbols], plain, "numpy")
        return torch.as_tensor(function(p[:, 0].numpy(), *known), dtype=p.dtype).expand(len(p))

    def count(condition: Condition) -> torch.Tensor:
        if isinstance(condition, RankCondition):
            return torch.full((len(p),), min(int(condition.limit), size))
        if isinstance(condition, RowCondition):
            relation: Any = condition.holds
            if relation in (sympy.true, sympy.false):
                return torch.full((len(p),), size if relation == sympy.true else 0)
            return torch.where(value(relation.gts - relation.lts) > -slack, size, 0)
        threshold = value(condition.threshold)
        least = (threshold - slack * threshold.abs().clamp(min=1e-3 * p[:, 0]))[:, None]
        return ((p > least) if condition.strict else (p >= least)).sum(-1)

    return fold_conditions(rule.accepts, count, torch.minimum, torch.maximum)


def nearest_rejected(p: torch.Tensor, count: torch.Tensor, candidates: int) -> torch.Tensor:
    """C of rows of sorted probabilities: the level at which the accepted tokens give what the competitors take."""
    everything = count + candidates > p.shape[-1]
    p = p[:, : int((count + candidates).max())]  # all other tokens stay
    rank = torch.arange(p.shape[-1])
    above = torch.where(rank < count[:, None], p, 0.0)
    competes = (rank >= count[:, None]) & (rank < count[:, None] + candidates)
    low, high = torch.zeros(len(p), 1, dtype=p.dtype), p[:, :1].clone()
    for _ in range(60):
        c = (low + high) / 2
        surplus = (above - c).clamp(min=0).sum(-1, keepdim=True)
        missing = torch.where(competes, (c - p).clamp(min=0), 0.0).sum(-1, keepdim=True)
        low, high = torch.where(surplus > missing, c, low), torch.where(surplus > missing, high, c)
    q = torch.where(rank < count[:, None], p.minimum(high), torch.where(competes, p.maximum(high), p))
    value = torch.where(p > 0, p * (p.log() - q.log()), 0.0).sum(-1).clamp(min=0)
    value = torch.where(count == 0, 0.0, value)
    return torch.where(everything, torch.inf, value)


def judged_fast(
    target: torch.Tensor, draft: torch.Tensor, rule: Rule, candidates: int, temperature: float
) -> Iterator[tuple[bool, bool]]:
    """Of each row: whether it must not, and whether it can be certified; neither where rounding may decide."""
    log_p, log_q = (torch.log_softmax(rows.double() / temperature, -1) for rows in (target, draft))
    p = log_p.exp()
    kl = torch.where(log_p > -torch.inf, p * (log_p - log_q), 0.0).sum(-1)
    ranked = p.sort(dim=-1, descending=True).values
    most, fewest = (nearest_rejected(ranked, accepted(rule, ranked, slack), candidates) for slack in (SLACK, -SLACK))
    wrong = kl > most * (1 + SLACK) + SLACK / 1e3
    certifiable = kl < fewest * (1 - SLACK) - SLACK / 1e3
    return zip(wrong.tolist(), certifiable.tolist(), strict=True)


# ---- The exact judge ------------------------------------------------------------------------------------------------


def weights(row: list[float], temperature: float) -> list[arb]:
    """e^((x - max)/T) of stored logits."""
    finite = [None if x == -torch.inf else Fraction(x) for x in row]
    top = max(x for x in finite if x is not None)
    return [arb(0) if x is None else arb(to_fmpq((x - top) / Fraction(temperature))).exp() for x in finite]


def judged_exactly(
    target: torch.Tensor, draft: torch.Tensor, rule: Rule, candidates: int, temperature: float
) -> Iterator[tuple[bool, bool]]:
    """As `judged_fast`, to hundreds of digits."""
    for row, other in zip(target.tolist(), draft.tolist(), strict=True):
        with precision(BITS):
            p, q = (weights(logits, temperature) for logits in (row, other))
            sums = sum(p, arb(0)), sum(q, arb(0))
            pairs = [(x / sums[0], y / sums[1]) for x, y in zip(p, q, strict=True) if x > 0]
            infinite = any(y == 0 for _, y in pairs)
            kl = arb("inf") if infinite else sum((x * (x / y).log() for x, y in pairs), arb(0))
            integers = [int(str((x * fmpq(2) ** BITS).mid().floor().fmpq())) for x in p]
        exact = certificate(integers, rule, candidates, 30, normalize=True)
        low, high = bounds(kl)
        yield low >= exact.upper, high < exact.lower * (1 - SLACK)


JUDGES = {"fast": (judged_fast, STEP, SIZES), "exact": (judged_exactly, EXACT_STEP, SIZES[:1])}


def search(judge: str, rows: int, seed: int) -> dict[str, int] | None:
    """What was found in so many rows; `None` after a row that is certified wrongly was printed."""
    judged, step, sizes = JUDGES[judge]
    generator = torch.Generator().manual_seed(seed)
    cases = list(itertools.product(TEMPERATURES, DTYPES, sizes, CANDIDATES, RULES))
    order = torch.randperm(len(cases), generator=generator).tolist()
    found: Counter[str] = Counter()
    for number in track(range(-(-rows // step)), description=judge, disable=not sys.stderr.isatty()):
        temperature, dtype, size, candidates, rule = cases[order[number % len(cases)]]
        target, draft = (rows.clamp(max=torch.finfo(dtype).max).to(dtype) for rows in batch(step, size, generator))
        claimed = certify(target, rule, candidates, draft, temperature)
        assert claimed.certified is not None
        verdicts = judged(target, draft, rule, candidates, temperature)
        for row, (claim, (wrong, certifiable)) in enumerate(zip(claimed.certified.tolist(), verdicts, strict=True)):
            if claim and wrong:
                print(json.dumps({"rule": str(rule), "candidates": candidates, "temperature": temperature}))
                print(target[row].tolist(), draft[row].tolist())
                return None
            found["certified"] += claim
            found["certifiable"] += certifiable
            found["not certified"] += certifiable and not claim
        found["rows"] += step
        found["second passes"] += int((claimed.passes == 2).sum())
    return {"rows": found.pop("rows"), "wrong": 0, **found}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="for the fast judge")
    parser.add_argument("--exact", type=int, default=1_000, help="rows for the exact judge")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="where the result is written as JSON")
    options = parser.parse_args()
    start = time.perf_counter()
    result: dict[str, Any] = {}
    for judge, rows in (("exact", options.exact), ("fast", options.rows)):
        if (found := search(judge, rows, options.seed)) is None:
            return 1
        result[judge] = found
    result |= {"seed": options.seed, "seconds": round(time.perf_counter() - start)}
    result |= {"torch": torch.__version__, "machine": platform.machine()}
    print(json.dumps(result))
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
