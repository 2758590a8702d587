"""Passes of a model beside what the machine can do: weights read from memory, multiply-adds in registers.

    python benchmarks/limits.py --output benchmarks/results/limits.json

A model of the shapes of `--model` is passed over 1 to 32 rows with its weights as its checkpoint stores them, and with
random ones in each of `--formats`. A pass must read the weights once, and do two operations for each weight and row:
its two limits are those bytes by the measured bandwidth, and those operations by the measured peak. Reads, peak and all
passes take turns, so that a machine that slows down slows all of them down; a ratio is one of times of the same turn,
and the median of all turns is told. `best` are the ratios of the shortest times: what remains where others use the
machine less.
"""

from __future__ import annotations

import argparse
import copy
import ctypes
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import gguf
import torch
from rich.progress import track
from same_bits import random_rows

from draftcert.runtime.compiling import FLAGS, compiler, compiler_version
from draftcert.runtime.models import load_model
from draftcert.runtime.models.layers.bindings import Stored
from draftcert.runtime.rows.benchmark import processor
from draftcert.runtime.trees.forward import TreeForward
from draftcert.runtime.trees.tree import Tree
from draftcert.support.files import write_whole

CONTEXT = 16
ROWS = (1, 2, 4, 6, 8, 12, 16, 24, 32)
READ = 1 << 28
"""Bytes that are read at once: more than caches hold."""
STEPS = 1_000_000
"""Multiply-adds in each register for a measurement of the peak: some milliseconds."""
AS_STORED = "as stored"


def limits() -> ctypes.CDLL:
    """The loops of limits.cpp, compiled for this very processor."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "limits.so")
        subprocess.run(
            [*compiler(), *FLAGS, "-march=native", "-fopenmp", Path(__file__).with_suffix(".cpp"), "-o", library],
            check=True,
        )
        found = ctypes.CDLL(str(library))
    found.limits_read.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int]
    found.limits_multiply_add.argtypes = [ctypes.c_int64, ctypes.c_int]
    found.limits_multiply_add.restype = ctypes.c_double
    return found


def in_format(model: Any, name: str) -> Any:
    """A model of the same shapes whose matrices are random and stored in that format."""
    format, made = gguf.GGMLQuantizationType[name], copy.deepcopy(model)
    for seed, weight in enumerate(made.parameters()):
        if weight.ndim == 2:
            rows = torch.from_numpy(random_rows(format, weight.shape[0], weight.shape[1], seed))
            stored = Stored(rows, int(format), weight.shape[1])
            weight.data, weight.stored = stored.expanded(), stored
    return made


def a_pass(model: Any, name: str) -> tuple[dict[str, int], Callable[[int], Any]]:
    """What a pass reads and multiplies, and a pass over so many rows."""
    forward = TreeForward(model)
    if forward.few_rows is None:
        raise SystemExit(f"{name}: {forward.not_fast}")
    embedding, head = (layer.weight for layer in (model.get_input_embeddings(), model.get_output_embeddings()))
    matrices = (weight for weight in model.parameters() if weight.ndim == 2)
    weights = [weight for weight in matrices if weight is head or weight is not embedding]
    cache = forward.new_cache([CONTEXT], max(ROWS))
    forward.prefill([[1] * CONTEXT], cache)
    cache.lengths[:] = [CONTEXT]
    trees = {rows: Tree(tuple(range(1, rows + 1)), tuple(range(-1, rows - 1))) for rows in ROWS}
    facts = {
        "bytes": sum(weight.stored.rows.numel() if hasattr(weight, "stored") else weight.nbytes for weight in weights),
        "weights": sum(weight.numel() for weight in weights),
    }
    return facts, lambda rows: forward([trees[rows]], cache)


def seconds(run: Callable[[], Any]) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start


def summarise(formats: dict[str, dict[str, int]], operations: float, turns: list[dict[str, float]]) -> dict[str, Any]:
    """Bandwidth, peak, and of each format and number of rows the time and its ratios to the limits and to one row."""
    shortest = {name: min(turn[name] for turn in turns) for name in turns[0]}

    def told(ratio: Callable[[dict[str, float]], float]) -> dict[str, float]:
        return {"median": statistics.median(map(ratio, turns)), "best": ratio(shortest)}

    def row(name: str, facts: dict[str, int], rows: int) -> dict[str, Any]:
        def read(times: dict[str, float]) -> float:
            return times["read"] * facts["bytes"] / READ

        def multiply(times: dict[str, float]) -> float:
            return times["multiply-add"] * 2 * facts["weights"] * rows / operations

        return {
            "format": name,
            "rows": rows,
            "milliseconds": told(lambda times: 1e3 * times[f"{name}, {rows}"]),
            "of_one_row": told(lambda times: times[f"{name}, {rows}"] / times[f"{name}, 1"]),
            "of_bandwidth": told(lambda times: times[f"{name}, {rows}"] / read(times)),
            "of_greater_limit": told(lambda times: times[f"{name}, {rows}"] / max(read(times), multiply(times))),
        }

    return {
        "bandwidth": told(lambda times: READ / times["read"]),
        "peak": told(lambda times: operations / times["multiply-add"]),
        "passes": [row(name, facts, rows) for name, facts in formats.items() for rows in ROWS],
    }


def as_markdown(report: dict[str, Any]) -> str:
    machine, summary = report["machine"], report["summary"]
    lines = [
        f"{report['settings']['model']} on {machine['processor']}, {machine['threads']} threads, torch "
        f"{machine['torch']}; {report['settings']['turns']} turns. Memory is read at "
        f"{summary['bandwidth']['median'] / 1e9:.1f} GB/s (at best {summary['bandwidth']['best'] / 1e9:.1f}), the peak "
        f"is {summary['peak']['median'] / 1e9:.0f} GFLOP/s ({summary['peak']['best'] / 1e9:.0f}). Medians of ratios "
        "within a turn; in brackets those of the shortest times.",
        "",
        "| weights | rows | ms | x one row | x bytes / bandwidth | x greater limit |",
        "|---|---|---|---|---|---|",
    ]
    for found in summary["passes"]:
        ratios = ("of_one_row", "of_bandwidth", "of_greater_limit")
        cells = [f"{found[name]['median']:.2f} ({found[name]['best']:.2f})" for name in ratios]
        time = f"{found['milliseconds']['median']:.1f} ({found['milliseconds']['best']:.1f})"
        lines.append(f"| {found['format']} | {found['rows']} | {time} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--formats", nargs="*", default=["F32", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_1"])
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "limits.json")
    options = parser.parse_args()
    target, machine, threads = load_model(options.model), limits(), torch.get_num_threads()
    models = {AS_STORED: target.model} | {name: in_format(target.model, name) for name in options.formats}
    passes = {name: a_pass(model, name) for name, model in models.items()}
    numbers = torch.ones(READ // 4)
    runs: dict[str, Callable[[], Any]] = {
        "read": lambda: machine.limits_read(numbers.data_ptr(), READ // 4, threads),
        "multiply-add": lambda: machine.limits_multiply_add(STEPS, threads),
        **{f"{name}, {rows}": partial(run, rows) for name, (_, run) in passes.items() for rows in ROWS},
    }
    operations = machine.limits_multiply_add(1, threads) * STEPS
    for run in runs.values():
        run()
    turns = [
        {name: seconds(run) for name, run in runs.items()} for _ in track(range(options.turns), description="measuring")
    ]
    formats = {name: facts for name, (facts, _) in passes.items()}
    report = {
        "machine": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "threads": threads,
            "torch": torch.__version__,
            "compiler": compiler_version().splitlines()[0],
        },
        "settings": {"model": target.name, "turns": options.turns, "context": CONTEXT, "formats": formats},
        "summary": summarise(formats, operations, turns),
    }
    write_whole(options.output, json.dumps(report, indent=1) + "\n")
    write_whole(options.output.with_suffix(".md"), as_markdown(report))
    print(as_markdown(report))


if __name__ == "__main__":
    main()
