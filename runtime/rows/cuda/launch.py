"""The launches: `split`, then one of the two that finish a row, then `refine` where there is a drafter.

Whatever the kernels write is allocated here and never touched by torch's arithmetic. Besides the results there is a
status of each row, by which the operators on tensors refuse rows that are no rows of logits, and settle rows that their
largest logits leave open.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, fields
from typing import Any

import torch
import triton
from torch import Tensor

from ..program import Program
from ..records import Certificate, RowStats, Statistics
from .enclosures import accepted_set, served
from .merge import NO_DRAFT_ROW, NO_ROW, NUMBERS, finish_certificates, finish_statistics
from .refine import refine
from .split import BLOCK, FIELDS, LANES, split

PROGRAMS = 8192
"""Segments of all rows together that keep every multiprocessor busy to the end: 24 warps on each of 132, 2.6 times."""
REFUSED = NO_ROW.value | NO_DRAFT_ROW.value
"""The status of rows that are no rows of logits."""
MOST_SPLITS = 128
MOST_KEPT = 256
TEMPERATURES = 2.0**-60, 2.0**60
"""Beyond, quotients leave the range of float32: the reference serves those."""
SPLIT: dict[str, Any] = {"num_warps": 1, "enable_fp_fusion": True}
FINISH: dict[str, Any] = {"num_warps": 4, "enable_fp_fusion": False}
REFINE: dict[str, Any] = {"num_warps": 8, "enable_fp_fusion": False}
"""How each kernel is compiled: its warps, and whether a product and a sum may be rounded once."""


def serves(rows: Tensor, k: int, temperature: float, draft: Tensor | None = None, program: Program = ()) -> bool:
    """Whether the kernels take these rows; the reference takes all others, such as those of float64."""
    least, most = TEMPERATURES
    types = (rows.dtype, rows.dtype if draft is None else draft.dtype)
    return (
        torch.float64 not in types
        and types[0] == types[1]
        and k <= MOST_KEPT
        and rows.shape[0] > 0
        and least <= temperature <= most
        and served(program)
    )


def list_sizes(k: int) -> tuple[int, int]:
    """The k largest logits as a power of two, and the room of the list they are gathered in."""
    width = int(triton.next_power_of_2(max(k, 2)))
    return width, max(2 * width, 64)


@dataclass(frozen=True)
class Plan:
    """How rows are cut: into `splits` segments of `segment` logits, read in vectors of `vector`."""

    splits: int
    segment: int
    vector: int

    @staticmethod
    def of(rows: Tensor, k: int, draft: Tensor | None = None) -> Plan:
        """Enough segments for the device, and so many groups that the k largest logits lie in few of them."""
        count, size = rows.shape
        blocks = triton.cdiv(size, int(BLOCK))
        wanted = max(triton.cdiv(PROGRAMS, count), triton.cdiv(16 * k, int(LANES)))
        splits = int(min(triton.next_power_of_2(min(wanted, blocks)), MOST_SPLITS))
        vector = 16 // rows.element_size()
        matrices = (rows,) if draft is None else (rows, draft)
        aligned = all(m.stride(1) == 1 and m.stride(0) % vector == 0 and m.data_ptr() % 16 == 0 for m in matrices)
        return Plan(splits, int(triton.cdiv(blocks, splits)) * int(BLOCK), vector if aligned else 1)


class Pass:
    """The first launch, and what it leaves for the second."""

    def __init__(
        self, rows: Tensor, k: int, temperature: float, draft: Tensor | None, plan: Plan | None = None
    ) -> None:
        count, size = rows.shape
        self.plan = plan = plan or Plan.of(rows, k, draft)
        self.rows, self.draft, self.count, self.size = rows, draft, count, size
        self.temperature = struct.unpack("q", struct.pack("d", temperature))[0]
        width, room = list_sizes(k)
        groups = plan.splits * int(LANES)
        self.sums = rows.new_empty(count, plan.splits, int(FIELDS), dtype=torch.float32)
        self.maxima = rows.new_empty(count, groups, dtype=torch.float32)
        self.memory = rows.new_empty(count, groups, dtype=torch.int32), rows.new_empty(count, room, dtype=torch.int64)
        self.numbers = rows.new_empty(count if draft is not None else 0, int(NUMBERS), dtype=torch.float64)
        self.status = rows.new_empty(count, dtype=torch.uint8)
        self.matrix = rows, rows.stride(0), rows.stride(1)
        self.matrices = self.matrix + (self.matrix if draft is None else (draft, draft.stride(0), draft.stride(1)))
        self.shape: dict[str, Any] = {"VECTOR": plan.vector, "SPLITS": plan.splits, "PAIR": draft is not None}
        self.lists: dict[str, Any] = {"K": width, "ROOM": room}
        rate = math.log2(math.e) / temperature
        split[(count, plan.splits)](
            *self.matrices,
            size,
            plan.segment,
            rate,
            self.sums,
            self.maxima,
            **self.shape,
            **SPLIT,
        )

    def finish(self, kernel: Any, *arguments: Any, **constants: Any) -> None:
        """The second launch."""
        kernel[(self.count,)](
            *self.matrix,
            self.size,
            self.plan.segment,
            self.sums,
            self.maxima,
            *self.memory,
            self.temperature,
            *arguments,
            self.numbers,
            self.status,
            **self.lists,
            **self.shape,
            **constants,
            **FINISH,
        )

    def refine(self, kl: Tensor, other: Tensor, sound: bool, certify: bool) -> None:
        """The third launch."""
        refine[(self.count,)](
            *self.matrices,
            self.size,
            self.temperature,
            self.numbers,
            kl,
            other,
            other,
            **{"SOUND": sound, "CERTIFY": certify},
            **REFINE,
        )


def statistics(
    rows: Tensor, k: int, temperature: float = 1.0, draft: Tensor | None = None, plan: Plan | None = None
) -> tuple[Statistics, Tensor]:
    """`rows.dispatch.statistics` of a matrix that `serves` takes, and the status of each row."""
    first = Pass(rows, k, temperature, draft, plan)
    number = [rows.new_empty(len(rows), dtype=torch.float64) for _ in range(7)]
    top_values = rows.new_empty(len(rows), k, dtype=torch.float64)
    ids = rows.new_empty(len(rows), dtype=torch.int64), rows.new_empty(len(rows), k, dtype=torch.int64)
    maximum, logsumexp, entropy, logsumexp_error, entropy_error, kl, kl_error = number
    stats = RowStats(maximum, ids[0], logsumexp, entropy, top_values, ids[1], logsumexp_error, entropy_error)
    first.finish(finish_statistics, k, *(getattr(stats, field.name) for field in fields(stats)), kl, kl_error)
    if draft is None:
        return Statistics(stats), first.status
    first.refine(kl, kl_error, sound=False, certify=False)
    return Statistics(stats, kl, kl_error), first.status


def certificates(
    rows: Tensor,
    draft: Tensor | None,
    program: Program,
    candidates: int,
    temperature: float,
    sound: bool,
    window: int,
    plan: Plan | None = None,
) -> tuple[Certificate, Tensor]:
    """`Certificate` of a matrix that `serves` takes, from its `window` largest logits, and the status of each row."""
    first = Pass(rows, window, temperature, draft, plan)

    def column(dtype: torch.dtype) -> Tensor:
        return rows.new_empty(len(rows), dtype=dtype)

    value, level, threshold, kl = (column(torch.float64) for _ in range(4))
    accepted, exact, passes, certified = map(column, (torch.int64, torch.bool, torch.uint8, torch.bool))
    columns = (value, level, threshold, accepted, exact.view(torch.int8), passes)
    last = kl, certified.view(torch.int8)
    constants = {"SOUND": sound, "ACCEPTED": accepted_set(program)}
    first.finish(finish_certificates, window, candidates, *columns, *last, **constants)
    if draft is None:
        return Certificate(value, level, threshold, accepted, exact, passes), first.status
    first.refine(*last, sound=sound, certify=True)
    return Certificate(value, level, threshold, accepted, exact, passes, kl, certified), first.status
