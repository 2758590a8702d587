"""Times of the kernels against reading the logits once, eager torch and torch.compile.

All competitors are timed in turn on the same tensors, round after round, each round in an order of its own: a busy
moment hits all of them, and none always finds the caches as the same other one left them. The goals are about quotients
of two: those are timed right after one another, since a shared machine is slower in one second than in the next.
"""

from __future__ import annotations

import platform
import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...theory.errors import DraftcertError
from ...theory.imports import optional
from ..compiling import compiler_version
from .certify import certify, row_stats
from .cpu import bindings

VOCABULARY = 151_936
SHAPES = ((1, VOCABULARY), (64, VOCABULARY), (64, 49_152))
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
INSTRUCTION_SETS = ("portable", "AVX2", "AVX-512")
READ, COPY, EAGER, COMPILED = "x.sum()", "copy", "eager torch", "torch.compile"
STATS, STRICT, TYPICAL = "row_stats", "certify strict_greedy", "certify typical"


@dataclass(frozen=True)
class Time:
    """Median and quartiles, in milliseconds, or of a quotient."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Goal:
    """What the quotient of two times should be at most, or at least."""

    rows: int
    dtype: str | None
    slow: str
    fast: str
    bound: float
    at_most: bool

    def speaks_of(self, rows: int, size: int, dtype: str) -> bool:
        """Whether it is about logits of this shape and type."""
        return (rows, size) == (self.rows, VOCABULARY) and self.dtype in (None, dtype)

    def __str__(self) -> str:
        relation = "at most" if self.at_most else "at least"
        shape = f"{self.rows} rows" + (f", {self.dtype}" if self.dtype else "")
        return f"{self.slow} / {self.fast} {relation} {self.bound:g} ({shape})"


GOALS = (
    Goal(64, "float32", STATS, READ, 1.35, True),
    Goal(64, "bfloat16", STATS, READ, 1.8, True),
    Goal(64, None, EAGER, STATS, 30, False),
    Goal(1, None, EAGER, STATS, 12, False),
    Goal(64, None, COMPILED, STATS, 5, False),
    Goal(64, None, STRICT, STATS, 1.1, True),
    Goal(64, None, TYPICAL, STATS, 1.1, True),
)
"""For a vocabulary of `VOCABULARY` tokens, K = 16 and 2 threads."""


def eager(logits: Tensor, k: int) -> tuple[Tensor, ...]:
    """The statistics of `row_stats` by torch's own operators, without the order of ties."""
    log_p = torch.log_softmax(logits.float(), -1)
    entropy = -(log_p.exp() * log_p).sum(-1)
    return logits.argmax(-1), torch.logsumexp(logits.float(), -1), entropy, *logits.topk(k)


def logits_like(rows: int, size: int, dtype: torch.dtype, device: str = "cpu") -> Tensor:
    """Like the logits of a language model: a bell curve with a few tokens far above it."""
    logits = torch.randn(rows, size, generator=torch.Generator().manual_seed(0)) * 2
    logits[:, ::9973] += 12
    return logits.to(device, dtype)


def competitors(logits: Tensor, k: int, compiled: bool) -> dict[str, Callable[[], object]]:
    """Name to call, all on the same logits."""
    copy = torch.empty_like(logits)
    found: dict[str, Callable[[], object]] = {
        READ: lambda: logits.sum(),
        COPY: lambda: copy.copy_(logits),
        STATS: lambda: row_stats(logits, k),
        STRICT: lambda: certify(logits, "strict_greedy", k=k),
        TYPICAL: lambda: certify(logits, "typical(0.09, 0.3)", k=k),
        EAGER: lambda: eager(logits, k),
    }
    if compiled:
        torch.compiler.reset()
        fused = torch.compile(eager, dynamic=False)
        found[COMPILED] = lambda: fused(logits, k)
    return found


def interleaved(
    calls: Mapping[str, Callable[[], object]], rounds: int, timed: Callable[[Callable[[], object]], float]
) -> dict[str, Time]:
    """Each call in every round, after two rounds that do not count; `timed` gives milliseconds."""
    order, shuffle = list(calls), random.Random(0).shuffle
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 2):
        shuffle(order)
        for name in order:
            milliseconds = timed(calls[name])
            if number >= 2:
                taken[name].append(milliseconds)
    return {name: _quartiles(values) for name, values in taken.items()}


def quotient(
    slow: Callable[[], object], fast: Callable[[], object], rounds: int, timed: Callable[[Callable[[], object]], float]
) -> Time:
    """Of two calls right after one another, either being first in turn, after two rounds that do not count."""
    found = []
    for number in range(rounds + 2):
        times = {call: timed(call) for call in ((slow, fast) if number % 2 else (fast, slow))}
        found.append(times[slow] / times[fast])
    return _quartiles(found[2:])


def _quartiles(values: Sequence[float]) -> Time:
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Time(median, low, high)


def wall(call: Callable[[], object]) -> float:
    """Milliseconds of a call that returns when it is done."""
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e3


def processor() -> str:
    """The processor's name, or at least its architecture."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    kernels = bindings.kernels()
    if kernels is None:
        raise DraftcertError("there is no compiled kernel to measure; the warning above says why")
    return {
        "processor": processor(),
        "instructions": INSTRUCTION_SETS[kernels.draftcert_use_instruction_set(-1)],
        "compiler": compiler_version().splitlines()[0],
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def measure(
    *,
    rounds: int = 30,
    threads: int = 2,
    k: int = 16,
    compiled: bool = True,
    shapes: Iterable[tuple[int, int]] = SHAPES,
) -> dict[str, Any]:
    """All tables: a document that JSON can hold. The number of threads of torch is as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        tables = []
        for rows, size in shapes:
            for name, dtype in DTYPES.items():
                logits = logits_like(rows, size, dtype)
                calls = competitors(logits, k, compiled)
                times = interleaved(calls, rounds, wall)
                compared = dict.fromkeys((goal.slow, goal.fast) for goal in GOALS if goal.speaks_of(rows, size, name))
                tables.append(
                    {
                        "rows": rows,
                        "vocabulary": size,
                        "dtype": name,
                        "megabytes": logits.nbytes / 1e6,
                        "milliseconds": {what: asdict(taken) for what, taken in times.items()},
                        "quotients": {
                            f"{slow} / {fast}": asdict(quotient(calls[slow], calls[fast], rounds, wall))
                            for slow, fast in compared
                            if {slow, fast} <= set(calls)
                        },
                    }
                )
    finally:
        torch.set_num_threads(before)
    return {
        "machine": machine(),
        "threads": threads,
        "k": k,
        "rounds": rounds,
        "tables": tables,
        "goals": goals(tables),
    }


def goals(tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each goal with the quotient found, median and quartiles: the worst one where several tables speak of it."""
    found = []
    for goal in GOALS:
        quotients = [
            table["quotients"][f"{goal.slow} / {goal.fast}"]
            for table in tables
            if goal.speaks_of(table["rows"], table["vocabulary"], table["dtype"])
            and f"{goal.slow} / {goal.fast}" in table["quotients"]
        ]
        if quotients:
            worst = (max if goal.at_most else min)(quotients, key=lambda each: each["median"])
            met = worst["median"] <= goal.bound if goal.at_most else worst["median"] >= goal.bound
            quartiles = [worst["low"], worst["high"]]
            found.append({"goal": str(goal), "found": worst["median"], "quartiles": quartiles, "met": met})
    return found


def markdown(report: dict[str, Any]) -> str:
    """The tables: times, each also as a multiple of reading the logits once, and as the bandwidth it amounts to."""
    machine = ", ".join(f"{name} {value}" for name, value in report["machine"].items())
    lines = [
        f"K = {report['k']}, {report['threads']} threads, {report['rounds']} rounds; milliseconds. {machine}.",
        "",
        f"| rows x vocabulary | what | median | quartiles | {READ} = 1 | GB/s |",
        "|---|---|---|---|---|---|",
    ]
    for table in report["tables"]:
        times = table["milliseconds"]
        for name, taken in times.items():
            lines.append(
                f"| {table['rows']} x {table['vocabulary']} {table['dtype']} | {name} | {taken['median']:.3f} "
                f"| {taken['low']:.3f} to {taken['high']:.3f} | {taken['median'] / times[READ]['median']:.2f} "
                f"| {bandwidth(table, name):.1f} |"
            )
    lines += ["", "| goal | found, timed in pairs | quartiles | |", "|---|---|---|---|"]
    for goal in report["goals"]:
        low, high = goal["quartiles"]
        met = "met" if goal["met"] else "not met"
        lines.append(f"| {goal['goal']} | {goal['found']:.2f} | {low:.2f} to {high:.2f} | {met} |")
    return "\n".join(lines) + "\n"


def bandwidth(table: dict[str, Any], name: str) -> float:
    """Logits read (a copy also writes them), in gigabytes a second."""
    return table["megabytes"] * (2 if name == COPY else 1) / table["milliseconds"][name]["median"]


def plot(report: dict[str, Any], path: Path) -> None:
    """An SVG: bandwidth of every competitor beside the roofline, reading and copying the same logits in one run."""
    with optional("report"):
        from matplotlib.figure import Figure

    tables = report["tables"]
    figure = Figure(figsize=(9, 1.2 + 1.1 * len(tables)), layout="constrained")
    axes = figure.subplots(len(tables), 1, sharex=True, squeeze=False)[:, 0]
    for axis, table in zip(axes, tables, strict=True):
        names = [name for name in table["milliseconds"] if name not in (READ, COPY)][::-1]
        axis.barh(names, [bandwidth(table, name) for name in names], color="tab:blue", height=0.7)
        for name, style in ((READ, "-"), (COPY, "--")):
            axis.axvline(bandwidth(table, name), color="black", linestyle=style, linewidth=1, label=name)
        axis.set_title(f"{table['rows']} x {table['vocabulary']} {table['dtype']}", fontsize=9, loc="left")
        axis.tick_params(labelsize=8)
    axes[0].legend(fontsize=8)
    axes[-1].set_xlabel("gigabytes a second")
    axes[-1].set_xscale("log")
    figure.savefig(path, format="svg", metadata={"Date": None})
