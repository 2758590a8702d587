"""Witness files of all kinds of rows are confirmed, and refused when a digit is changed; what one costs.

    python benchmarks/witnesses.py --certificates 10000 --output benchmarks/results/witnesses.json

Every file is confirmed by `numerics/verify.py`, compared with the certificate's own digits, and refused after one of
its digits was changed. The time of one is measured at 49,152 tokens, for every validated rule. The run stops at the
first file for which any of this fails.
"""

import argparse
import json
import platform
import random
import statistics
import tempfile
import time
from collections import Counter
from decimal import Decimal
from functools import partial
from pathlib import Path

import numpy as np

from draftcert.numerics import certificate
from draftcert.numerics.certificate import ExactCertificate
from draftcert.numerics.verify import verify
from draftcert.theory.presets import example_rules

MOST_TOKENS = 49_152
RUNS = 5


def softmax(logits: np.ndarray) -> np.ndarray:
    scores = np.exp(logits - logits.max())
    return scores / scores.sum()


def target(kind: str, tokens: int, rng: np.random.Generator) -> np.ndarray:
    """A row: logits as a model's, few different ones, near ties, all the same, or hardly any mass beside one token."""
    if kind == "random":
        return softmax(rng.standard_t(4, tokens) * 2)
    if kind == "tied":
        return softmax(rng.integers(0, 4, tokens) * np.log(2))
    if kind == "near tie":
        return softmax(rng.integers(0, 3, tokens) * 3 + rng.standard_normal(tokens) * 1e-14)
    if kind == "uniform":
        return np.full(tokens, 1 / tokens)
    return softmax(np.where(np.arange(tokens) == rng.integers(tokens), 0, rng.uniform(-800, -300, tokens)))


def with_a_digit_changed(text: str) -> str:
    place = random.choice([place for place, character in enumerate(text) if character.isdigit()])
    return text[:place] + random.choice([digit for digit in "0123456789" if digit != text[place]]) + text[place + 1 :]


def judge(found: ExactCertificate, text: str) -> None:
    """Stop the run unless the file is confirmed, says what the certificate says, and is refused when changed."""
    said = verify(text).split()
    value = "inf" if said[2] == "infinite" else said[2]
    assert Decimal(value) == Decimal(str(found)), (found.rule, value, str(found))
    changed = with_a_digit_changed(text)
    try:
        verify(changed)
    except ValueError:
        return
    raise AssertionError(f"a changed file is confirmed: {changed[:1000]}")


def sweep(certificates: int, file: Path) -> dict[str, int]:
    """How many files of every kind of row were written and judged."""
    rng, counts = np.random.default_rng(0), Counter()
    rules = example_rules()
    for n in range(certificates):
        kind = ("random", "tied", "near tie", "uniform", "degenerate")[n % 5]
        # Most rows are small; each hundredth is as large as any.
        tokens = int(2 * (MOST_TOKENS / 2) ** (rng.uniform() ** 3)) if n % 100 else MOST_TOKENS
        rule, candidates = rules[n % len(rules)], int(rng.integers(1, min(tokens, 9)))
        ratio = "19/20" if rule.needs_logits else None
        row = target(kind, tokens, rng)
        found = certificate(row, rule, candidates, int(rng.integers(1, 60)), logit_ratio=ratio, witness=file)
        judge(found, file.read_text())
        counts[kind] += 1
        if (n + 1) % 500 == 0:
            print(f"{n + 1} confirmed, and refused when changed", flush=True)
    return dict(counts)


def times(file: Path) -> list[dict]:
    """Seconds at 49,152 tokens, by rule: to certify, to write the file as well, and to confirm it; and its size."""
    row, rows = target("random", MOST_TOKENS, np.random.default_rng(0)), []
    for rule in example_rules():
        ratio = "19/20" if rule.needs_logits else None
        call = partial(certificate, row, rule, 4, logit_ratio=ratio)
        calls = {
            "certify_s": call,
            "with_witness_s": partial(call, witness=file),
            "verify_s": lambda: verify(file.read_text()),
        }
        taken: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(RUNS):
            for name, run in calls.items():
                start = time.perf_counter()
                run()
                taken[name].append(time.perf_counter() - start)
        medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
        rows.append({"rule": str(rule), "candidates": 4} | medians | {"bytes": file.stat().st_size})
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--certificates", type=int, default=1000)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    random.seed(0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "witness.json"
        about = {
            "machine": platform.platform(),
            "python": platform.python_version(),
            "tokens": MOST_TOKENS,
            "times": times(file),
            "confirmed_and_refused_when_changed": sweep(options.certificates, file),
        }
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
