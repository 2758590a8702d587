"""Checks and times the Triton kernels on a CUDA device; says so and ends with status 2 where there is none.

    python benchmarks/gpu.py --output benchmarks/results/gpu --prompts spec_bench.jsonl

Every shape is checked against the float64 reference on the same device, then timed by events in shuffled rounds beside
reading and copying the same logits, eager torch and torch.compile. Launches are counted by torch's profiler, and the
launches are captured in a CUDA graph and replayed, which a synchronisation with the host would forbid. Beside the times
stand those that `roofline.py` predicts without a GPU. With prompts the decoder is measured too: `decoding.py` in
bfloat16 with its passes recorded as CUDA graphs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch._C._autograd import DeviceType

from draftcert.runtime.rows import benchmark, reference
from draftcert.runtime.rows.benchmark import COMPILED, COPY, EAGER, READ, STATS
from draftcert.theory import DraftcertError

SHAPES = tuple((rows, benchmark.VOCABULARY) for rows in (1, 64, 512, 2048))
DTYPES = (torch.bfloat16, torch.float32)
PAIR = "row_stats with KL"
PREDICTED = Path(__file__).with_name("results") / "roofline.json"


def milliseconds(call: Callable[[], object]) -> float:
    """Time on the device, by events."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)


def check(rows: torch.Tensor, draft: torch.Tensor, k: int, temperature: float) -> None:
    """The kernels against the float64 reference on the same device."""
    from draftcert.runtime.rows.cuda import launch

    (found, _), expected = launch.statistics(rows, k, temperature, draft), reference.statistics(rows, k, temperature)
    what = f"on {tuple(rows.shape)} {rows.dtype} at temperature {temperature}"
    for name in ("max", "argmax", "top_values", "top_ids"):
        if not torch.equal(getattr(found.stats, name), getattr(expected, name)):
            raise DraftcertError(f"{name} differs from the reference {what}")
    for name in ("logsumexp", "entropy"):
        difference = (getattr(found.stats, name) - getattr(expected, name)).abs()
        if bool((difference > getattr(found.stats, f"{name}_error")).any()):
            raise DraftcertError(f"{name} misses its bound {what}")
    kl, error = reference.divergence(rows, draft, temperature)
    if found.kl is None or found.kl_error is None or bool(((found.kl - kl).abs() > found.kl_error + error).any()):
        raise DraftcertError(f"the divergence misses its bound {what}")


def launches(call: Callable[[], object]) -> int:
    """Kernels that one call starts on the device."""
    call()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
        torch.cuda.synchronize()
    return sum(event.device_type == DeviceType.CUDA for event in profile.events() or ())


def captured(rows: torch.Tensor, k: int) -> bool:
    """Whether the launches replay from a CUDA graph to the same statistics."""
    from draftcert.runtime.rows.cuda import launch

    expected = launch.statistics(rows, k)[0].stats
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = launch.statistics(rows, k)[0].stats
    graph.replay()
    torch.cuda.synchronize()
    return all(torch.equal(getattr(found, name), value) for name, value in vars(expected).items())


def measure(rounds: int, k: int) -> dict[str, Any]:
    """Everything, as a document that JSON can hold."""
    from draftcert.runtime.rows.cuda import launch

    tables = []
    for count, size in SHAPES:
        for dtype in DTYPES:
            rows = benchmark.logits_like(count, size, dtype, "cuda")
            draft = (rows.float() + 0.1 * torch.randn_like(rows, dtype=torch.float32)).to(dtype)
            for temperature in (1.0, 0.7):
                check(rows[:64], draft[:64], k, temperature)
            calls = benchmark.competitors(rows, k, compiled=True)
            ours: dict[str, Callable[[], object]] = {
                STATS: lambda rows=rows: launch.statistics(rows, k),
                PAIR: lambda rows=rows, draft=draft: launch.statistics(rows, k, 1.0, draft),
            }
            calls = {name: calls[name] for name in (READ, COPY, EAGER, COMPILED)} | ours
            times = benchmark.interleaved(calls, rounds, milliseconds)
            tables.append(
                {
                    "rows": count,
                    "vocabulary": size,
                    "dtype": str(dtype).removeprefix("torch."),
                    "megabytes": rows.nbytes / 1e6,
                    "milliseconds": {name: asdict(taken) for name, taken in times.items()},
                    "kernels": {name: launches(call) for name, call in ours.items()},
                    "replays from a CUDA graph": captured(rows, k),
                }
            )
    machine = {"processor": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda}
    return {"machine": machine, "threads": 0, "k": k, "rounds": rounds, "tables": tables, "goals": goals(tables)}


def goals(tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The goals of a GPU: bandwidth for many rows of bfloat16, speed against eager torch for 64."""
    found = []
    for table in tables:
        shape = f"{table['rows']} rows, {table['dtype']}"
        if table["rows"] >= 512 and table["dtype"] == "bfloat16":
            share = benchmark.bandwidth(table, STATS) / benchmark.bandwidth(table, COPY)
            found.append(
                {"goal": f"share of the copy bandwidth at least 0.85 ({shape})", "found": share, "met": share >= 0.85}
            )
        if table["rows"] == 64:
            ratio = table["milliseconds"][EAGER]["median"] / table["milliseconds"][STATS]["median"]
            found.append({"goal": f"{EAGER} / {STATS} at least 10 ({shape})", "found": ratio, "met": ratio >= 10})
    return found


def predictions(tables: list[dict[str, Any]]) -> list[str]:
    """What roofline.py predicts for rows like these on this device, a line each beside what was measured."""
    stored = json.loads(PREDICTED.read_text())
    lines = []
    for table in tables:
        if (table["rows"], table["dtype"]) != (stored["rows"], stored["dtype"]):
            continue
        measured = table["milliseconds"][STATS]["median"]
        for device, found in stored["predictions"]["row_stats"]["normal"]["devices"].items():
            if device.split()[0] in torch.cuda.get_device_name():
                lines.append(
                    f"{STATS} of {table['rows']} rows: measured {measured:.4f} ms, predicted for {device} "
                    f"{found['microseconds'] / 1e3:.4f} ms and the chain of the second launch"
                )
    return lines


def decoding(prompts: Path, output: Path | None) -> list[str]:
    """The command that measures the decoder; its exit status 1 says that an output differs from greedy."""
    command = [sys.executable, str(Path(__file__).with_name("decoding.py")), str(prompts), "--per-category", "10"]
    command += ["--device", "cuda", "--dtype", "bfloat16", "--cuda-graphs"]
    return command if output is None else [*command, "--output", f"{output}-decoding.json"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=int, default=16, help="K")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--output", type=Path, help="path without suffix of the .json, .md and .svg files")
    parser.add_argument("--prompts", type=Path, help="decode these too: 10 of each category, as decoding.py does")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA device: nothing was measured", file=sys.stderr)
        return 2
    report = measure(options.rounds, options.keep)
    text = benchmark.markdown(report)
    print(text, *predictions(report["tables"]), sep="\n")
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
        options.output.with_suffix(".md").write_text(text)
        benchmark.plot(report, options.output.with_suffix(".svg"))
    if options.prompts is None:
        return 0
    return subprocess.run(decoding(options.prompts, options.output), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
