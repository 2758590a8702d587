"""Checks and times the Triton kernels on a CUDA device; says so and ends with status 2 where there is none.

python benchmarks/gpu.py --output benchmarks/results/gpu
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from draftcert.runtime import reference

SHAPES = ((1, 151_936), (64, 151_936), (512, 151_936), (2048, 151_936))


def milliseconds(call: Callable[[], object], rounds: int = 30) -> float:
    """Median time on the device, by events."""
    taken = []
    for number in range(rounds + 3):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        if number >= 3:
            taken.append(start.elapsed_time(end))
    return statistics.median(taken)


def check(rows: torch.Tensor, k: int) -> None:
    """The kernel against the float64 reference on the same device."""
    from draftcert.runtime.cuda.row_stats import row_stats

    found, expected = row_stats(rows, k), reference.statistics(rows, k)
    for name in ("max", "argmax", "top_values", "top_ids"):
        if not torch.equal(getattr(found, name), getattr(expected, name)):
            raise SystemExit(f"{name} differs from the reference on {tuple(rows.shape)} {rows.dtype}")
    for name in ("logsumexp", "entropy"):
        difference = (getattr(found, name) - getattr(expected, name)).abs()
        if bool((difference > getattr(found, f"{name}_error")).any()):
            raise SystemExit(f"{name} misses its bound on {tuple(rows.shape)} {rows.dtype}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=int, default=16, help="K")
    parser.add_argument("--output", type=Path, help="path without suffix of the .json and .md files")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA device: nothing was measured", file=sys.stderr)
        return 2
    from draftcert.runtime.cuda.row_stats import row_stats

    results = []
    for count, size in SHAPES:
        for dtype in (torch.bfloat16, torch.float32):
            rows = (torch.randn(count, size, device="cuda") * 2).to(dtype)
            check(rows[:64], options.keep)
            copy = torch.empty_like(rows)
            bytes_read = rows.numel() * rows.element_size()
            ours = milliseconds(lambda rows=rows: row_stats(rows, options.keep))
            copied = milliseconds(lambda rows=rows, copy=copy: copy.copy_(rows))
            eager = milliseconds(lambda rows=rows: (torch.log_softmax(rows.float(), -1), rows.topk(options.keep)))
            results.append(
                {
                    "rows": count,
                    "vocab": size,
                    "dtype": str(dtype).removeprefix("torch."),
                    "row_stats": ours,
                    "eager": eager,
                    # A copy reads and writes every byte.
                    "share of the copy bandwidth": (bytes_read / ours) / (2 * bytes_read / copied),
                }
            )
    report = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "results": results}
    lines = [f"{report['device']}, torch {report['torch']}; milliseconds.", ""]
    lines += ["| " + " | ".join(results[0]) + " |", "|" + "---|" * len(results[0])]
    lines += [
        "| " + " | ".join(f"{x:.3f}" if isinstance(x, float) else str(x) for x in row.values()) + " |"
        for row in results
    ]
    print("\n".join(lines))
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
        options.output.with_suffix(".md").write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
