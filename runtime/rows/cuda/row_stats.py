"""Row statistics and divergence on CUDA devices: two launches, a third with drafter logits, no host synchronisation.

`split` gives each program a segment of one row. It reads the segment once, in blocks; lanes sum e^z and e^z z with
z = (x - m) / temperature in float32 and the running maximum m as reference. The k largest are kept as packed keys
(ordered value, 2^32 - 1 - id), whose order is the order of the tokens: value descending, id ascending. Keys are built
only in blocks whose maximum beats the k-th value so far. With drafter logits w the same pass sums e^y and e^z (z - y),
y = (w - their running maximum) / temperature. `merge` joins a row's segments in float64. `refine` takes the rows whose
divergence drowns in the rounding of float32 again in float64; which rows those are only the device knows.

docs/soundness.md derives the rounding budgets.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...generated import torch_budgets as budgets
from ...generated.triton_budgets import kl as kl_budget
from ...generated.triton_budgets import triton_refined_sums, triton_slope
from .. import reference
from ..records import RowStats, Statistics

BLOCK = 1024
"""Logits a program reads at once: 8 bfloat16, or two times 4 float32, for each of 128 threads."""
SPLITS = 16
"""Most segments a row is cut into."""
FLOAT32_UNIT, FLOAT64_UNIT = tl.constexpr(2.0**-24), tl.constexpr(2.0**-53)
"""Unit roundoffs."""
FIELDS = 9
"""Numbers a segment leaves behind, and those of a row."""
TEMPERATURES = 2.0**-60, 2.0**60
"""Beyond, quotients leave the range of float32: the reference serves those."""


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
    draft,
    draft_row_stride,
    draft_column_stride,
    size,
    segment,
    inverse,
    sums,
    keys_out,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    SPLITS: tl.constexpr,
    FIELDS: tl.constexpr,
    PAIR: tl.constexpr,
):
    """One segment of one row: its sums into `sums`, K keys into `keys_out`. `inverse` is 1 / temperature."""
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    begin = part * segment
    end = tl.minimum(begin + segment, size)
    lanes = tl.arange(0, BLOCK)
    m = tl.full((), -3.0e38, tl.float32)
    mass = tl.zeros((BLOCK,), tl.float32)
    moment = tl.zeros((BLOCK,), tl.float32)
    broken = tl.zeros((BLOCK,), tl.int32)
    draft_m = tl.full((), -3.0e38, tl.float32)
    draft_mass = tl.zeros((BLOCK,), tl.float32)
    cross = tl.zeros((BLOCK,), tl.float32)
    missed = tl.zeros((BLOCK,), tl.int32)
    draft_broken = tl.zeros((BLOCK,), tl.int32)
    top = tl.full((K,), -(2**63), tl.int64)
    last = tl.full((), -(2**32), tl.int64)
    base, draft_base = logits + row * row_stride, draft + row * draft_row_stride
    for start in range(begin, end, BLOCK):
        index = start + lanes
        inside = index < end
        x = tl.load(base + index.to(tl.int64) * column_stride, mask=inside, other=-float("inf")).to(tl.float32)
        broken |= (x != x).to(tl.int32)
        largest = tl.max(x, 0)
        now = tl.maximum(m, tl.minimum(largest, 3.0e38))
        step = tl.maximum((m - now) * inverse, -1.0e4)
        scale = tl.exp(step)
        cross = (cross + step * mass) * scale
        moment = (moment + step * mass) * scale
        mass = mass * scale
        m = now
        # e^-87 is the least normal power: a token of probability zero adds next to nothing to any sum.
        z = tl.maximum((x - m) * inverse, -87.0)
        e = tl.exp(z)
        if PAIR:
            at = draft_base + index.to(tl.int64) * draft_column_stride
            w = tl.load(at, mask=inside, other=-float("inf")).to(tl.float32)
            draft_broken |= ((w != w) | (w == float("inf"))).to(tl.int32)
            possible = x > -float("inf")
            missed |= (possible & (w == -float("inf"))).to(tl.int32)
            draft_now = tl.maximum(draft_m, tl.minimum(tl.max(w, 0), 3.0e38))
            draft_step = tl.maximum((draft_m - draft_now) * inverse, -3.0e38)
            cross -= draft_step * mass
            draft_mass = draft_mass * tl.exp(tl.maximum(draft_step, -1.0e4))
            draft_m = draft_now
            y = tl.maximum((w - draft_m) * inverse, -3.0e38)
            draft_mass += tl.exp(tl.maximum(y, -87.0))
            cross += tl.where(possible, e * (z - y), 0.0)
        mass += e
        moment += e * z
        if ordered(largest) > last:
            padding = tl.full((BLOCK,), -(2**63), tl.int64)
            keys = tl.where(inside, (ordered(x) << 32) | (0xFFFFFFFF - index.to(tl.int64)), padding)
            top = tl.topk(tl.reshape(tl.join(top, tl.topk(keys, K)), (2 * K,)), K)
            last = tl.min(top, 0) >> 32  # pyright: ignore[reportOperatorIssue]  # typed as if it could be a tuple
    place = row * SPLITS + part
    out = sums + place * FIELDS
    tl.store(out, m)
    tl.store(out + 1, tl.sum(mass, 0))
    tl.store(out + 2, tl.sum(moment, 0))
    tl.store(out + 3, tl.max(broken.to(tl.float32), 0))
    if PAIR:
        tl.store(out + 4, draft_m)
        tl.store(out + 5, tl.sum(draft_mass, 0))
        tl.store(out + 6, tl.sum(cross, 0))
        tl.store(out + 7, tl.max(missed.to(tl.float32), 0))
        tl.store(out + 8, tl.max(draft_broken.to(tl.float32), 0))
    tl.store(keys_out + place * K + tl.arange(0, K), top)


@triton.jit
def merge(
    sums,
    keys_in,
    inverse,
    relative,
    ln_size,
    numbers,
    top_values,
    top_ids,
    K: tl.constexpr,
    SPLITS: tl.constexpr,
    FIELDS: tl.constexpr,
    PAIR: tl.constexpr,
):
    """All segments of a row: (maximum, ln mass, entropy, mean gap, draft maximum, KL, its error) and the k largest."""
    row = tl.program_id(0).to(tl.int64)
    parts = tl.arange(0, SPLITS)
    base = sums + (row * SPLITS + parts) * FIELDS
    m = tl.load(base).to(tl.float64)
    mass = tl.load(base + 1).to(tl.float64)
    moment = tl.load(base + 2).to(tl.float64)
    broken = tl.max(tl.load(base + 3), 0) > 0  # pyright: ignore[reportOperatorIssue]  # typed as if it could be a tuple
    reference = tl.max(m, 0)
    step = tl.maximum((m - reference) * inverse, -1.0e4)  # pyright: ignore[reportOperatorIssue]  # as above
    scale = tl.exp(step)
    total = tl.sum(mass * scale, 0)
    gap = tl.sum(-(moment + step * mass) * scale, 0) / total  # pyright: ignore[reportOperatorIssue]  # as above
    keys = tl.load(keys_in + row * (SPLITS * K) + tl.arange(0, SPLITS * K))
    top = tl.topk(keys, K)  # descending
    values = from_ordered(top >> 32).to(tl.float64)  # pyright: ignore[reportOperatorIssue]  # as above
    largest = tl.where(broken, float("nan"), tl.max(values, 0))
    shift = tl.log(total)
    out = numbers + row * FIELDS
    tl.store(out, largest)
    tl.store(out + 1, shift)
    tl.store(out + 2, shift + gap)
    tl.store(out + 3, gap)
    if PAIR:
        draft_m = tl.load(base + 4).to(tl.float64)
        draft_mass = tl.load(base + 5).to(tl.float64)
        cross = tl.load(base + 6).to(tl.float64)
        missed = tl.max(tl.load(base + 7), 0) > 0  # pyright: ignore[reportOperatorIssue]  # as above
        draft_reference = tl.max(draft_m, 0)
        unusable = (tl.max(tl.load(base + 8), 0) > 0) | (draft_reference <= -3.0e38)  # pyright: ignore[reportOperatorIssue]  # as above
        draft_step = (draft_m - draft_reference) * inverse  # pyright: ignore[reportOperatorIssue]  # as above
        draft_total = tl.sum(draft_mass * tl.exp(tl.maximum(draft_step, -1.0e4)), 0)
        difference = tl.sum((cross + (step - draft_step) * mass) * scale, 0) / total  # pyright: ignore[reportOperatorIssue]  # as above
        kl = tl.maximum(difference + tl.log(draft_total / total), 0.0)  # pyright: ignore[reportOperatorIssue]  # as above
        draft_gap = tl.maximum(difference + gap, 0.0)
        error = kl_budget(relative, triton_slope(), FLOAT32_UNIT, ln_size, 87.0, gap, draft_gap, difference)
        tl.store(out + 4, draft_reference)
        tl.store(out + 5, tl.where(unusable, float("nan"), tl.where(missed, float("inf"), kl)))
        tl.store(out + 6, tl.where(missed | unusable, 0.0, error))
    slots = row * K + tl.arange(0, K)
    tl.store(top_values + slots, values)
    tl.store(top_ids + slots, 0xFFFFFFFF - (top & 0xFFFFFFFF))  # pyright: ignore[reportOperatorIssue]  # as above


@triton.jit
def refine(
    logits,
    row_stride,
    column_stride,
    draft,
    draft_row_stride,
    draft_column_stride,
    size,
    temperature,
    numbers,
    ln_size,
    BLOCK: tl.constexpr,
    FIELDS: tl.constexpr,
):
    """The divergence of a row whose error is not below 1/128 of it, summed in float64; others are left alone."""
    row = tl.program_id(0).to(tl.int64)
    out = numbers + row * FIELDS
    if tl.load(out + 6) > tl.load(out + 5) / 128:
        m, draft_m, divisor = tl.load(out), tl.load(out + 4), tl.load(temperature)
        lanes = tl.arange(0, BLOCK)
        mass = tl.zeros((BLOCK,), tl.float64)
        moment = tl.zeros((BLOCK,), tl.float64)
        cross = tl.zeros((BLOCK,), tl.float64)
        draft_mass = tl.zeros((BLOCK,), tl.float64)
        for start in range(0, size, BLOCK):
            index = (start + lanes).to(tl.int64)
            inside = index < size
            x = tl.load(logits + row * row_stride + index * column_stride, mask=inside, other=-float("inf"))
            w = tl.load(draft + row * draft_row_stride + index * draft_column_stride, mask=inside, other=-float("inf"))
            z = tl.maximum((x.to(tl.float64) - m) / divisor, -700.0)
            y = tl.maximum((w.to(tl.float64) - draft_m) / divisor, -1.0e300)
            e = tl.exp(z)
            mass += e
            moment += e * z
            draft_mass += tl.exp(tl.maximum(y, -700.0))
            cross += tl.where(x > -float("inf"), e * (z - y), 0.0)
        total = tl.sum(mass, 0)
        gap = -tl.sum(moment, 0) / total  # pyright: ignore[reportOperatorIssue]  # typed as if it could be a tuple
        difference = tl.sum(cross, 0) / total  # pyright: ignore[reportOperatorIssue]  # as above
        kl = difference + tl.log(tl.sum(draft_mass, 0) / total)  # pyright: ignore[reportOperatorIssue]  # as above
        relative = triton_refined_sums(FLOAT64_UNIT, size, BLOCK)
        draft_gap = tl.maximum(difference + gap, 0.0)
        tl.store(out + 5, tl.maximum(kl, 0.0))
        error = kl_budget(relative, triton_slope(), FLOAT64_UNIT, ln_size, 700.0, gap, draft_gap, difference)
        tl.store(out + 6, error)


def statistics(rows: Tensor, k: int, temperature: float = 1.0, draft: Tensor | None = None) -> Statistics:
    """`rows.dispatch.statistics` on the device: by the reference for float64 logits and extreme temperatures."""
    least, most = TEMPERATURES
    others = torch.float64 in (rows.dtype, rows.dtype if draft is None else draft.dtype)
    if others or k > 256 or rows.shape[0] == 0 or not least <= temperature <= most:
        stats = reference.statistics(rows, k, temperature)
        kl, kl_error = (None, None) if draft is None else reference.divergence(rows, draft, temperature)
        return Statistics(stats, kl, kl_error)
    return launch(rows, k, temperature, draft)


def launch(
    rows: Tensor,
    k: int,
    temperature: float = 1.0,
    draft: Tensor | None = None,
    splits: int = SPLITS,
    block: int = BLOCK,
) -> Statistics:
    """The launches. `splits` and `block` are powers of two."""
    count, size = rows.shape
    kept = triton.next_power_of_2(max(k, 2))
    block = max(min(block, triton.next_power_of_2(size)), kept)
    segment = triton.cdiv(triton.cdiv(size, block), splits) * block
    sums = rows.new_empty(count, splits, FIELDS, dtype=torch.float32)
    keys = rows.new_empty(count, splits, kept, dtype=torch.int64)
    numbers = rows.new_empty(count, FIELDS, dtype=torch.float64)
    top_values = rows.new_empty(count, kept, dtype=torch.float64)
    top_ids = rows.new_empty(count, kept, dtype=torch.int64)
    other = rows if draft is None else draft
    matrices = (rows, rows.stride(0), rows.stride(1), other, other.stride(0), other.stride(1))
    shape: dict[str, Any] = {"K": kept, "SPLITS": splits, "FIELDS": FIELDS, "PAIR": draft is not None}
    unit, slope, ln_size = FLOAT32_UNIT.value, budgets.triton_slope(), math.log(size)
    relative = budgets.triton_sums(unit, segment // block, block)
    blocked: dict[str, Any] = shape | {"BLOCK": block}
    split[(count, splits)](*matrices, size, segment, 1 / temperature, sums, keys, **blocked)
    merge[(count,)](sums, keys, 1 / temperature, relative, ln_size, numbers, top_values, top_ids, **shape)
    maximum, shift, entropy, gap = numbers.unbind(-1)[:4]
    logsumexp = maximum / temperature + shift
    stats = RowStats(
        max=maximum / temperature,
        argmax=top_ids[:, 0].clone(),
        logsumexp=logsumexp,
        entropy=entropy.clone(),
        top_values=top_values[:, :k] / temperature,
        top_ids=top_ids[:, :k].clone(),
        logsumexp_error=budgets.logsumexp(relative, slope, unit, reference.UNIT, gap, logsumexp),
        entropy_error=budgets.entropy(relative, slope, unit, ln_size, gap),
    )
    if draft is None:
        return Statistics(stats)
    divisor = torch.full((1,), temperature, dtype=torch.float64, device=rows.device)
    alone: dict[str, Any] = {"BLOCK": block, "FIELDS": FIELDS}
    refine[(count,)](*matrices, size, divisor, numbers, ln_size, **alone)
    return Statistics(stats, kl=numbers[:, 5].clone(), kl_error=numbers[:, 6].clone())
