"""The row kernels in C++, on tensors.

>>> kernels = library()  # compiled on first use where no wheel brought them
>>> kernels.draftcert_use_instruction_set(0)  # the portable loops
0
>>> kernels.draftcert_use_instruction_set(-1) >= 0  # again the widest that this machine runs
True
"""

from __future__ import annotations

import ctypes
import functools
from typing import NamedTuple

import torch
from torch import Tensor

from ....theory import DraftcertError
from ...compiling import sources
from ...native import load, loaded_if_possible
from ..program import decoded, largest_rank
from ..records import STATISTICS

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
"""In the order of `draftcert_dtype`."""
MOST_KEPT = 512
"""The loops insert into a sorted list: beyond this many kept logits torch's selection is faster."""


class Logits(ctypes.Structure):
    """`draftcert_logits`."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("row_stride", ctypes.c_int64),
        ("column_stride", ctypes.c_int64),
        ("dtype", ctypes.c_int32),
    ]


class Instruction(ctypes.Structure):
    """`draftcert_instruction`."""

    _fields_ = [
        ("op", ctypes.c_int32),
        ("strict", ctypes.c_int32),
        ("low", ctypes.c_double),
        ("high", ctypes.c_double),
    ]


class Rule(ctypes.Structure):
    """`draftcert_rule`."""

    _fields_ = [
        ("program", ctypes.POINTER(Instruction)),
        ("length", ctypes.c_int64),
        ("candidates", ctypes.c_int64),
        ("sound", ctypes.c_int32),
    ]


class Out(ctypes.Structure):
    """`draftcert_out`."""

    _fields_ = [
        (name, ctypes.c_void_p)
        for name in (
            *("max", "argmax", "logsumexp", "logsumexp_error", "entropy", "entropy_error"),
            *("top_values", "top_ids", "status"),
            *("kl", "kl_error", "value", "level", "threshold", "accepted", "exact", "passes", "certified"),
        )
    ]


class Columns(dict[str, Tensor]):
    """Results by their names in `draftcert_out`: an entry, or several, for each row of `logits`."""

    def __init__(self, logits: Tensor):
        self.shape = tuple(logits.shape[:-1])

    def add(self, dtype: torch.dtype, *names: str, width: tuple[int, ...] = ()) -> None:
        """Columns of `dtype`, `width` entries for each row; they keep the order in which they are added."""
        first, *others = names
        self[first] = column = torch.empty(self.shape + width, dtype=dtype)
        for name in others:
            self[name] = torch.empty_like(column)  # half the time of torch.empty, which a call with one row notices

    def out(self) -> Out:
        """What the kernels fill."""
        return Out(**{name: column.data_ptr() for name, column in self.items()})


class Compiled(NamedTuple):
    """A rule's program in the memory of C, and what the number of kept logits must reach beyond `candidates`."""

    steps: ctypes.Array[Instruction]
    largest_rank: int


@functools.cache
def library() -> ctypes.CDLL:
    """The kernels; `rows.h` says what they do.

    Raises:
        NoLibraryError: there are none, and they cannot be compiled or loaded.
    """
    return load("row kernels", sources("row kernels"), _loaded)


def _loaded(path: str) -> ctypes.CDLL:
    kernels = ctypes.CDLL(path)
    kernels.draftcert_use_instruction_set.restype = ctypes.c_int
    kernels.draftcert_use_instruction_set.argtypes = [ctypes.c_int]
    logits, count = ctypes.POINTER(Logits), ctypes.c_int64
    kernels.draftcert_evaluate.restype = count
    kernels.draftcert_evaluate.argtypes = [
        logits, logits, ctypes.POINTER(Rule), count, count, count, ctypes.c_double, ctypes.c_int, ctypes.POINTER(Out)
    ]  # fmt: skip
    return kernels


@functools.cache
def kernels() -> ctypes.CDLL | None:
    """The kernels, or `None` after one warning that says why there are none."""
    return loaded_if_possible(library, "the slower reference in torch is used")


def row_stats(logits: Tensor, k: int) -> tuple[Tensor, ...] | None:
    """The fields of `RowStats`; `None` for what these loops do not serve, or where a row is no row of logits."""
    if not 1 <= k <= MOST_KEPT:
        return None
    columns = Columns(logits)
    columns.add(torch.float64, "max", "logsumexp", "entropy", "logsumexp_error", "entropy_error")
    columns.add(torch.int64, "argmax")
    columns.add(torch.float64, "top_values", width=(k,))
    columns.add(torch.int64, "top_ids", width=(k,))
    filled = _evaluate(logits, None, None, k, 1.0, columns)
    return tuple(columns[name] for name in STATISTICS) if filled else None


def certify(
    target: Tensor, draft: Tensor | None, program: list[float], candidates: int, temperature: float, sound: bool, k: int
) -> tuple[Tensor, ...] | None:
    """The fields of `Certificate`, without `draft` but the last two; `None` as `row_stats`.

    Raises:
        DraftcertError: numbers that are no program, a drafter's logits of another shape.
    """
    if draft is not None and draft.shape != target.shape:
        raise DraftcertError(f"draft logits of shape {tuple(draft.shape)} beside target's of {tuple(target.shape)}")
    compiled = _compiled(tuple(program))
    window = min(target.shape[-1], max(k, compiled.largest_rank) + candidates)
    if window > MOST_KEPT:
        return None
    columns = Columns(target)
    columns.add(torch.float64, "value", "level", "threshold")
    columns.add(torch.int64, "accepted")
    columns.add(torch.bool, "exact")
    columns.add(torch.uint8, "passes")
    if draft is not None:
        columns.add(torch.float64, "kl")
        columns.add(torch.bool, "certified")
    rule = Rule(compiled.steps, len(compiled.steps), candidates, sound)
    return tuple(columns.values()) if _evaluate(target, draft, rule, window, temperature, columns) else None


@functools.lru_cache(maxsize=256)
def _compiled(program: tuple[float, ...]) -> Compiled:
    steps = decoded(program)
    return Compiled(
        (Instruction * len(steps))(*((step.op, step.strict, step.low, step.high) for step in steps)),
        largest_rank(steps),
    )


def _evaluate(
    target: Tensor, draft: Tensor | None, rule: Rule | None, k: int, temperature: float, columns: Columns
) -> bool:
    """Fills the columns; whether the kernels serve these logits and all rows are rows of logits."""
    rows, draft_rows = _matrix(target), None if draft is None else _matrix(draft)
    loaded = kernels()
    if loaded is None or not all(each is None or each.dtype in DTYPES for each in (rows, draft_rows)):
        return False
    refused = loaded.draftcert_evaluate(
        _view(rows),
        None if draft_rows is None else _view(draft_rows),
        rule,
        *rows.shape,
        k,
        temperature,
        torch.get_num_threads(),
        columns.out(),
    )
    return refused == 0


def _matrix(logits: Tensor) -> Tensor:
    return logits if logits.dim() == 2 else logits.reshape(-1, logits.shape[-1])


def _view(rows: Tensor) -> Logits:
    return Logits(rows.data_ptr(), *rows.stride(), DTYPES.index(rows.dtype))
