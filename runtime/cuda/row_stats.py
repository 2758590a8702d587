"""Row statistics on CUDA devices: two launches, no host synchronisation.

`split` gives each program a segment of one row. It reads the segment once, in blocks; lanes sum e^(z - m) and
e^(z - m) (z - m) in float32 with the running maximum m as reference. The k largest are kept as packed keys (ordered
value, 2^32 - 1 - id), whose order is the order of the tokens: value descending, id ascending. Keys are built only in
blocks whose maximum beats the k-th value so far. `merge` joins a row's segments in float64.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .. import reference
from ..kernels import Statistics
from ..reference import RowStats

BLOCK = 1024
"""Logits a program reads at once: 8 bfloat16, or two times 4 float32, for each of 128 threads."""
SPLITS = 16
"""Most segments a row is cut into."""
UNIT = 2.0**-24
"""Unit roundoff of float32."""


@triton.jit
def ordered(x):
    """Signed integers in the order of the floats."""
    bits = (x + 0.0).to(tl.int32, bitcast=True)  # -0 and +0 are one logit
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.int64)


@triton.jit
def from_ordered(bits):
    """The float of an ordered integer."""
    low = bits.to(tl.int32)
    return (low ^ ((low >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)


@triton.jit
def split(
    logits,
    row_stride,
    column_stride,
    size,
    segment,
    sums,
    keys_out,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    SPLITS: tl.constexpr,
):
    """One segment of one row: (m, mass, moment, NaN?) into `sums`, K keys into `keys_out`."""
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    begin = part * segment
    end = tl.minimum(begin + segment, size)
    lanes = tl.arange(0, BLOCK)
    m = tl.full((), -3.0e38, tl.float32)
    mass = tl.zeros((BLOCK,), tl.float32)
    moment = tl.zeros((BLOCK,), tl.float32)
    broken = tl.zeros((BLOCK,), tl.int32)
    top = tl.full((K,), -(2**63), tl.int64)
    last = tl.full((), -(2**32), tl.int64)
    base = logits + row * row_stride
    for start in range(begin, end, BLOCK):
        index = start + lanes
        inside = index < end
        x = tl.load(base + index.to(tl.int64) * column_stride, mask=inside, other=-float("inf")).to(tl.float32)
        broken |= (x != x).to(tl.int32)
        largest = tl.max(x, 0)
        now = tl.maximum(m, tl.minimum(largest, 3.0e38))
        step = tl.maximum(m - now, -1.0e4)
        scale = tl.exp(step)
        moment = (moment + step * mass) * scale
        mass = mass * scale
        m = now
        # e^-10000 is 0: a token of probability zero adds nothing to either sum.
        d = tl.maximum(x - m, -1.0e4)
        e = tl.exp(d)
        mass += e
        moment += e * d
        if ordered(largest) > last:
            padding = tl.full((BLOCK,), -(2**63), tl.int64)
            keys = tl.where(inside, (ordered(x) << 32) | (0xFFFFFFFF - index.to(tl.int64)), padding)
            top = tl.topk(tl.cat(top, tl.topk(keys, K), can_reorder=True), K)
            last = tl.min(top, 0) >> 32  # pyright: ignore[reportOperatorIssue]  # typed as if it could be a tuple
    place = row * SPLITS + part
    tl.store(sums + place * 4, m)
    tl.store(sums + place * 4 + 1, tl.sum(mass, 0))
    tl.store(sums + place * 4 + 2, tl.sum(moment, 0))
    tl.store(sums + place * 4 + 3, tl.max(broken.to(tl.float32), 0))
    tl.store(keys_out + place * K + tl.arange(0, K), top)


@triton.jit
def merge(sums, keys_in, numbers, top_values, top_ids, K: tl.constexpr, SPLITS: tl.constexpr):
    """All segments of one row: (maximum, logsumexp, entropy, mean gap) into `numbers`, and the k largest."""
    row = tl.program_id(0).to(tl.int64)
    parts = tl.arange(0, SPLITS)
    base = sums + (row * SPLITS + parts) * 4
    m = tl.load(base).to(tl.float64)
    mass = tl.load(base + 1).to(tl.float64)
    moment = tl.load(base + 2).to(tl.float64)
    broken = tl.max(tl.load(base + 3), 0) > 0  # pyright: ignore[reportOperatorIssue]  # typed as if it could be a tuple
    reference = tl.max(m, 0)
    step = tl.maximum(m - reference, -1.0e4)  # pyright: ignore[reportOperatorIssue]  # typed as if it could be a tuple
    scale = tl.exp(step)
    total = tl.sum(mass * scale, 0)
    gap = tl.sum(-(moment + step * mass) * scale, 0) / total  # pyright: ignore[reportOperatorIssue]  # typed as if it could be a tuple
    keys = tl.load(keys_in + row * (SPLITS * K) + tl.arange(0, SPLITS * K))
    top = tl.topk(keys, K)  # descending
    values = from_ordered(top >> 32).to(tl.float64)  # pyright: ignore[reportOperatorIssue]  # typed as if it could be a tuple
    largest = tl.where(broken, float("nan"), tl.max(values, 0))
    shift = tl.log(total)
    tl.store(numbers + row * 4, largest)
    tl.store(numbers + row * 4 + 1, reference + shift)
    tl.store(numbers + row * 4 + 2, shift + gap)
    tl.store(numbers + row * 4 + 3, gap)
    slots = row * K + tl.arange(0, K)
    tl.store(top_values + slots, values)
    tl.store(top_ids + slots, 0xFFFFFFFF - (top & 0xFFFFFFFF))  # pyright: ignore[reportOperatorIssue]  # typed as if it could be a tuple


def statistics(rows: Tensor, k: int, temperature: float = 1.0, draft: Tensor | None = None) -> Statistics:
    """`runtime.kernels.statistics` on the device: the reference where a temperature or float64 logits need it."""
    plain = temperature == 1 and rows.dtype != torch.float64 and k <= 256 and rows.shape[0] > 0
    stats = row_stats(rows, k) if plain else reference.statistics(rows, k, temperature)
    if draft is None:
        return Statistics(stats)
    return Statistics(stats, *reference.divergence(rows, draft, temperature))


def row_stats(rows: Tensor, k: int, splits: int = SPLITS, block: int = BLOCK) -> RowStats:
    """The two launches. `splits` and `block` are powers of two."""
    count, size = rows.shape
    kept = triton.next_power_of_2(max(k, 2))
    block = max(min(block, triton.next_power_of_2(size)), kept)
    segment = triton.cdiv(triton.cdiv(size, block), splits) * block
    sums = rows.new_empty(count, splits, 4, dtype=torch.float32)
    keys = rows.new_empty(count, splits, kept, dtype=torch.int64)
    numbers = rows.new_empty(count, 4, dtype=torch.float64)
    top_values = rows.new_empty(count, kept, dtype=torch.float64)
    top_ids = rows.new_empty(count, kept, dtype=torch.int64)
    shape: dict[str, Any] = {"K": kept, "SPLITS": splits}
    blocked: dict[str, Any] = shape | {"BLOCK": block}
    split[(count, splits)](rows, rows.stride(0), rows.stride(1), size, segment, sums, keys, **blocked)
    merge[(count,)](sums, keys, numbers, top_values, top_ids, **shape)
    maximum, logsumexp, entropy, gap = numbers.unbind(-1)
    # A weight e^d passes one subtraction, the exponential, a rescaling for each block and the sums: at most
    # (4 blocks + 32 + 4 |d|) u of itself, and sum p d^2 <= D G + D^2 / V with D = 2 ln V + 2.
    blocks, reach = segment // block + math.log2(block), 2 * math.log(size) + 2
    relative = UNIT * (4 * blocks + 32)
    return RowStats(
        max=maximum,
        argmax=top_ids[:, 0],
        logsumexp=logsumexp,
        entropy=entropy,
        top_values=top_values[:, :k],
        top_ids=top_ids[:, :k],
        logsumexp_error=relative + 4 * UNIT * gap,
        entropy_error=relative * (1 + 2 * gap) + 4 * UNIT * (reach * gap + reach**2 / size + gap),
    )
