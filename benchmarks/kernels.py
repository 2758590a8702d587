"""Time of `row_stats` and `certify` on the CPU against reading the logits once and against eager torch.

    python benchmarks/kernels.py --output benchmarks/results/kernels

All competitors are timed in turn, round after round, on the same tensors: a busy moment hits all of them. Medians and
interquartile ranges in milliseconds; `.json` and `.md` are written.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from rich.progress import track

from draftcert.runtime import certify, row_stats

SHAPES = ((1, 151_936), (64, 151_936), (64, 49_152))
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def eager(logits: torch.Tensor, k: int) -> tuple[torch.Tensor, ...]:
    """The same statistics by torch's own operators, without the order of ties."""
    log_p = torch.log_softmax(logits.float(), -1)
    entropy = -(log_p.exp() * log_p).sum(-1)
    return logits.argmax(-1), torch.logsumexp(logits.float(), -1), entropy, *logits.topk(k)


def competitors(logits: torch.Tensor, k: int, compile: bool) -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {
        "x.sum()": lambda: logits.sum(),
        "row_stats": lambda: row_stats(logits, k),
        "certify strict_greedy": lambda: certify(logits, "strict_greedy", k=k),
        "certify typical": lambda: certify(logits, "typical(0.09, 0.3)", k=k),
        "eager torch": lambda: eager(logits, k),
    }
    if compile:
        compiled = torch.compile(eager)
        found["torch.compile"] = lambda: compiled(logits, k)
    return found


def interleaved(calls: dict[str, Callable[[], object]], rounds: int, label: str) -> dict[str, dict[str, float]]:
    """Median and quartiles in milliseconds of each call, taken in turn."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in track(range(rounds + 2), description=label):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if number >= 2:
                times[name].append((time.perf_counter() - start) * 1e3)
    result = {}
    for name, taken in times.items():
        low, median, high = statistics.quantiles(taken, n=4)
        result[name] = {"median": median, "low": low, "high": high}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", type=int, default=16, help="K")
    parser.add_argument("--compile", action="store_true", help="also time torch.compile")
    parser.add_argument("--output", type=Path, help="path without suffix of the .json and .md files")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    tables = []
    for rows, size in SHAPES:
        for name, dtype in DTYPES.items():
            # Like the logits of a language model: a bell curve with a few tokens far above it.
            logits = torch.randn(rows, size, generator=torch.Generator().manual_seed(0)) * 2
            logits[:, ::9973] += 12
            label = f"{rows} x {size} {name}"
            times = interleaved(competitors(logits.to(dtype), options.keep, options.compile), options.rounds, label)
            tables.append({"rows": rows, "vocab": size, "dtype": name, "milliseconds": times})
    machine = {"torch": torch.__version__, "python": platform.python_version(), "machine": platform.processor()}
    report = {"machine": machine, "threads": options.threads, "k": options.keep, "results": tables}
    text = markdown(report)
    print(text)
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
        options.output.with_suffix(".md").write_text(text)


def markdown(report: dict) -> str:
    """The table, each time also as a multiple of `x.sum()`."""
    lines = [f"K = {report['k']}, {report['threads']} threads, torch {report['machine']['torch']}; milliseconds.", ""]
    lines += ["| rows x vocabulary | what | median | quartiles | x.sum() = 1 |", "|---|---|---|---|---|"]
    for table in report["results"]:
        once = table["milliseconds"]["x.sum()"]["median"]
        for name, time_of in table["milliseconds"].items():
            shape = f"{table['rows']} x {table['vocab']} {table['dtype']}"
            quartiles = f"{time_of['low']:.3f} to {time_of['high']:.3f}"
            lines.append(
                f"| {shape} | {name} | {time_of['median']:.3f} | {quartiles} | {time_of['median'] / once:.2f} |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
