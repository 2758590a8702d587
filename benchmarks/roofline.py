"""Predicts the row kernels' share of the memory roofline on an H100 and an H200, without one.

    python benchmarks/roofline.py --output benchmarks/results/roofline.json

How often each loop and each rare branch runs is counted by running the real kernels in Triton's interpreter on rows: of
a language model (SmolLM2-135M, with its own vocabulary of 49,152) and random ones (normal, Student's t with 4 degrees
of freedom, 151,936 tokens). How many instructions that makes is counted in the machine code for compute capability 9.0:
its blocks and loops are found from the branches. A division of a logit's time into issue slots and bytes follows:

- An issue slot is one instruction of one lane, so that a warp's instruction takes 32. A multiprocessor issues for 4
  warps a cycle. Whatever is not in a loop or in one of the two rare branches is taken to run once, slow paths of
  divisions included.
- The memory moves the logits, what the first launch leaves for the second (written and read) and the logits that are
  read again, in sectors of 32 bytes, as if none of it was still in the cache.

The predicted time is the longer of the two. Not in it: the launches themselves and the chain of dependent steps of the
second one, during which the memory rests; `gpu.py` measures it all and prints this prediction beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch

VOCABULARY = 151_936
ROWS = 512
KINDS = {
    "row_stats": ("SmolLM2", "normal", "Student t"),
    "certify strict_greedy": ("SmolLM2", "normal"),
    "certify typical(0.09, 0.3) with a drafter": ("SmolLM2", "normal"),
}
"""Each call, and the rows it is counted on."""
KEPT = {call: 16 + call.startswith("certify") for call in KINDS}
"""How many logits a call keeps: k, and for a certificate one competitor more."""


@dataclass(frozen=True)
class Device:
    """Multiprocessors, their clock in hertz, and the memory's bytes a second, as the vendor states them."""

    processors: int
    clock: float
    bandwidth: float


DEVICES = {"H100 SXM": Device(132, 1.755e9, 3.35e12), "H200": Device(132, 1.755e9, 4.8e12)}

MARKS = {
    "blocks after the first": "next_x = tl.load",
    "last blocks": "inside = whole + places",
    "halvings": "middle = (low + high",
    "shares": "item = first +",
    "takings": "id = tl.min(",
    "sorts": "kept = tl.topk(",
    "refined": "maximum, draft_maximum =",
    "masses again": "mass += tl.exp",
    "terms again": "log_p =",
}
"""What is counted, and how its line in the kernels begins."""


# ---- How often: the kernels in the interpreter ----------------------------------------------------------------------


def logits_of(kind: str, count: int) -> torch.Tensor:
    """Rows of bfloat16."""
    if kind == "SmolLM2":
        return model_rows(count)
    torch.manual_seed(0)
    if kind == "normal":
        return (3 * torch.randn(count, VOCABULARY)).bfloat16()
    return torch.distributions.StudentT(4.0).sample((count, VOCABULARY)).bfloat16()


def model_rows(count: int) -> torch.Tensor:
    """Logits of the model after the words of a text."""
    from draftcert.runtime.models import load_model

    target = load_model()
    tokens = target.encode("The kernels read a row of logits once. What do they leave for the second launch?")
    with torch.no_grad():
        return target.model(tokens).logits[0, -count:].bfloat16()


def frequencies(kind: str, count: int, call: str) -> dict[str, Any]:
    """Runs of each mark for one row, in the mean, when the kernels are those for `ROWS` rows."""
    from draftcert.runtime.rows.cuda import launch
    from draftcert.runtime.rows.cuda.select import ITEMS
    from draftcert.runtime.rows.cuda.split import BLOCK, EACH
    from draftcert.runtime.rows.program import program
    from draftcert.theory import DraftcertError, parse_rule

    rows = logits_of(kind, count)
    draft = (rows.float() + 0.3 * torch.randn(rows.shape)).bfloat16() if "drafter" in call else None
    plan = launch.Plan.of(torch.empty(ROWS, rows.shape[1], dtype=rows.dtype, device="meta"), KEPT[call])

    def run() -> object:
        if call == "row_stats":
            return launch.statistics(rows, KEPT[call], plan=plan)
        steps = program(parse_rule(call.split(" ", 1)[1].removesuffix(" with a drafter")))
        return launch.certificates(rows, draft, steps, 1, 1.0, True, KEPT[call], plan)

    runs = traced(run)
    shares = groups_read_again(rows, plan, KEPT[call]) * (plan.segment // int(BLOCK))
    if sum(-(-int(n) // int(ITEMS)) for n in shares) != runs["shares"]:
        raise DraftcertError("the groups that are read again are not those of the kernel")
    return {
        "vocabulary": rows.shape[1],
        "splits": plan.splits,
        "segment": plan.segment,
        "vectors read again": float(shares.double().mean()) * int(EACH) / plan.vector,
        "runs": {mark: runs[mark] / count for mark in MARKS},
    }


def groups_read_again(rows: torch.Tensor, plan: Any, k: int) -> torch.Tensor:
    """How many lanes of a row have a maximum that reaches the k-th largest maximum: exactly, as these are bfloat16."""
    length = plan.splits * plan.segment
    padded = torch.full((len(rows), length), -torch.inf)
    padded[:, : rows.shape[1]] = rows.float()
    maxima = padded.view(len(rows), plan.splits, -1, 32, plan.vector).amax((2, 4)).flatten(1)
    return (maxima >= maxima.topk(k).values[:, -1:]).sum(-1)


def traced(call: Callable[[], object]) -> Counter[str]:
    """How often the marked lines run during a call in the interpreter."""
    folder, names = (
        Path(__file__).resolve().parents[1] / "runtime" / "rows" / "cuda",
        ("split.py", "select.py", "refine.py"),
    )
    marked = {
        (name, number): mark
        for name in names
        for number, line in enumerate((folder / name).read_text().splitlines(), 1)
        for mark, start in MARKS.items()
        if line.strip().startswith(start)
    }
    runs: Counter[str] = Counter()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        name = Path(frame.f_code.co_filename).name
        if name not in names:
            return None
        if event == "line" and (name, frame.f_lineno) in marked:
            runs[marked[name, frame.f_lineno]] += 1
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    return runs


# ---- How many: the machine code -------------------------------------------------------------------------------------


class Code:
    """Instructions in blocks, with the blocks that dominate each, its loops and its branches that may be left out."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        parsed = [re.match(r"\s+/\*([0-9a-f]+)\*/\s+(@!?U?P\w+\s+)?([A-Z0-9_.]+)\s*(.*?);", line) for line in lines]
        self.instructions = [(int(m[1], 16), bool(m[2]), m[3], m[4]) for m in parsed if m]
        targets = {
            address: target for address, _, _, rest in self.instructions if (target := _target(rest)) is not None
        }
        ends = {a + 16 for a, _, name, _ in self.instructions if name.split(".")[0] in ("BRA", "EXIT", "RET", "CALL")}
        starts = sorted({0, *targets.values(), *ends} & {address for address, *_ in self.instructions})
        self.blocks: dict[int, list[tuple[int, bool, str, str]]] = {start: [] for start in starts}
        for instruction in self.instructions:
            self.blocks[max(start for start in starts if start <= instruction[0])].append(instruction)
        self.next = {start: self._successors(block, targets) for start, block in self.blocks.items()}
        self.dominators = self._dominators()

    def _successors(self, block: list[tuple[int, bool, str, str]], targets: dict[int, int]) -> set[int]:
        address, predicated, name, _ = block[-1]
        kind, following = name.split(".")[0], {address + 16} & set(self.blocks)
        if kind in ("EXIT", "RET"):
            return following if predicated else set()
        if kind in ("BRA", "CALL"):
            jump = {targets[address]} if address in targets else set()
            return jump | following if predicated or kind == "CALL" else jump
        return following

    def _dominators(self) -> dict[int, set[int]]:
        reachable, waiting = {0}, [0]
        while waiting:
            new = self.next[waiting.pop()] - reachable
            reachable |= new
            waiting += new
        before = {b: {a for a in reachable if b in self.next[a]} for b in reachable}
        found = {b: {0} if b == 0 else set(reachable) for b in reachable}
        changed = True
        while changed:
            changed = False
            for b in sorted(reachable - {0}):
                now = {b} | set.intersection(*(found[a] for a in before[b]))
                changed, found[b] = changed or now != found[b], now
        return found

    def loops(self) -> list[set[int]]:
        """The blocks of each loop, by the place of its first block."""
        found: dict[int, set[int]] = {}
        for end, dominating in self.dominators.items():
            for head in self.next[end] & dominating:
                body, waiting = {head, end}, [end]
                while waiting:
                    at = waiting.pop()
                    new = {a for a in self.dominators if at in self.next[a]} - body if at != head else set()
                    body |= new
                    waiting += new
                found[head] = found.get(head, set()) | body
        return [found[head] for head in sorted(found)]

    def optional(self, within: set[int], instruction: str) -> set[int]:
        """The largest part of `within` that a branch can leave out and that has such an instruction."""
        parts = []
        for head in within:
            part = {b for b in within if head in self.dominators[b]}
            if part != within and any(name.startswith(instruction) for b in part for _, _, name, _ in self.blocks[b]):
                skippable = any(len(self.next[a]) > 1 for a in self.dominators if head in self.next[a])
                rejoins = any(self.next[b] - part for b in part)
                if skippable and rejoins:
                    parts.append(part)
        return max(parts, key=self.size, default=set())

    def size(self, blocks: set[int]) -> int:
        """How many instructions."""
        return sum(len(self.blocks[b]) for b in blocks)

    @property
    def all(self) -> set[int]:
        """Every block that can be reached."""
        return set(self.dominators)


def _target(rest: str) -> int | None:
    found = re.search(r"0x([0-9a-f]+)\)?$", rest.strip())
    return int(found[1], 16) if found and "[" not in rest else None


# ---- Together -------------------------------------------------------------------------------------------------------


def warp_instructions(call: str, found: dict[str, Any]) -> dict[str, float]:
    """Warps' instructions for a row, by kernel."""
    from draftcert.runtime.rows.cuda.compile import machine_code
    from draftcert.runtime.rows.program import program
    from draftcert.theory import parse_rule

    pair, runs, splits = "drafter" in call, found["runs"], found["splits"]

    def compiled(kernel: str, rule: str | None = None) -> tuple[Code, int]:
        steps = None if rule is None else program(parse_rule(rule))
        machine = machine_code(90, "bf16", kernel, KEPT[call], pair, splits, steps)
        return Code(machine.lines), machine.warps

    code, warps = compiled("split")
    (loop,) = code.loops()
    last = code.optional(code.all - loop, "LDG")
    once = code.size(code.all - loop - last)
    result = {
        "split": warps
        * (splits * once + code.size(loop) * runs["blocks after the first"] + code.size(last) * runs["last blocks"])
    }
    rule = None if call == "row_stats" else call.split(" ", 1)[1].removesuffix(" with a drafter")
    code, warps = compiled("finish_statistics" if rule is None else "finish_certificates", rule)
    halving, share, taking = code.loops()
    sort = code.optional(taking, "SHFL")
    result["finish"] = warps * (
        code.size(code.all - halving - share)
        + code.size(halving) * runs["halvings"]
        + code.size(share - taking) * runs["shares"]
        + code.size(taking - sort) * runs["takings"]
        + code.size(sort) * runs["sorts"]
    )
    if pair:
        code, warps = compiled("refine", rule)
        first, second = code.loops()
        again = code.size(code.all - first - second) * runs["refined"]
        loops = code.size(first) * runs["masses again"] + code.size(second) * runs["terms again"]
        result["refine"] = warps * (again + loops)
    return result


def moved_bytes(call: str, found: dict[str, Any]) -> float:
    """Bytes that the memory moves for a row."""
    matrices, size, splits = 2 if "drafter" in call else 1, found["vocabulary"], found["splits"]
    left = 2 * splits * (32 + 6) * 4
    again = found["vectors read again"] * 32 + 2 * matrices * size * 2 * found["runs"]["refined"]
    results = 16 * KEPT[call] + 64
    return matrices * size * 2 + left + again + results


def predict(call: str, found: dict[str, Any]) -> dict[str, Any]:
    """Slots and bytes a logit, and what they make of the two devices."""
    instructions, moved = warp_instructions(call, found), moved_bytes(call, found)
    logits = found["vocabulary"] * (2 if "drafter" in call else 1)
    slots = sum(instructions.values()) * 32 / logits
    shares = {}
    for name, device in DEVICES.items():
        memory = moved / device.bandwidth
        issue = slots * logits / (device.processors * 4 * 32 * device.clock)
        shares[name] = {
            "issue time / memory time": issue / memory,
            "share of the roofline": 2 * logits / device.bandwidth / max(memory, issue),
            "microseconds": ROWS * max(memory, issue) * 1e6,
        }
    return {
        "slots a logit": slots,
        "slots a logit by kernel": {kernel: count * 32 / logits for kernel, count in instructions.items()},
        "bytes a logit": moved / logits,
        "devices": shares,
    }


def counted(rows: int) -> dict[str, Any]:
    """`frequencies` of every kind of rows and every call, from a process in which Triton interprets."""
    command = [sys.executable, __file__, "--count", "--rows", str(rows)]
    done = subprocess.run(
        command, env=os.environ | {"TRITON_INTERPRET": "1"}, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)


def report(rows: int) -> dict[str, Any]:
    """Everything, as a document that JSON can hold."""
    import triton

    found = counted(rows)
    predictions = {
        call: {kind: one | predict(call, one) for kind, one in kinds.items()} for call, kinds in found.items()
    }
    goals = []
    for kind, one in predictions["row_stats"].items():
        if one["vocabulary"] == VOCABULARY:
            slots, shares = one["slots a logit"], one["devices"]
            goals.append({"goal": f"at most 14 slots a logit ({kind})", "found": slots, "met": slots <= 14})
            for device, share in shares.items():
                value = share["share of the roofline"]
                goals.append(
                    {
                        "goal": f"share of the roofline at least 0.85 ({kind}, {device})",
                        "found": value,
                        "met": value >= 0.85,
                    }
                )
    return {
        "versions": {"triton": triton.__version__, "torch": torch.__version__},
        "devices": {name: vars(device) for name, device in DEVICES.items()},
        "rows": ROWS,
        "dtype": "bfloat16",
        "rows counted": rows,
        "predictions": predictions,
        "goals": goals,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4, help="rows of each kind to count")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--count", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.count:
        found = {call: {kind: frequencies(kind, options.rows, call) for kind in kinds} for call, kinds in KINDS.items()}
        print(json.dumps(found))
        return 0
    result = report(options.rows)
    text = json.dumps(result, indent=1) + "\n"
    if options.output:
        options.output.write_text(text)
    for call, kinds in result["predictions"].items():
        for kind, one in kinds.items():
            shares = ", ".join(f"{d} {s['share of the roofline']:.2f}" for d, s in one["devices"].items())
            print(f"{call}, {kind} x {one['vocabulary']}: {one['slots a logit']:.1f} slots a logit, {shares}")
    return 0 if all(goal["met"] for goal in result["goals"]) else 1


if __name__ == "__main__":
    sys.exit(main())
