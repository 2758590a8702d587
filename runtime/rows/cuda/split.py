# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false
# Reductions of Triton are typed as if they could give tuples, and the counters of its loops as Python's.
"""The pass over the logits: one warp sums a segment of a row and keeps the largest logit of each of its lanes.

A block is 1,024 logits, 32 for each lane in loads of 16 bytes; the loads of the next block are on their way while a
block is summed. Nothing is exchanged between lanes before the end of the segment: each has its own running maximum m
and sums e and e a, a = x - m and e = 2^(rate a) with rate = log2(e) / temperature, in float32. With drafter logits w
the same pass sums f = 2^(rate b), b = w - m', and e (a - b).

The largest logits are not looked for here. A lane's maximum is that of its group of logits, and the k largest maxima
bound the k-th largest logit from below: `merge` reads the few groups again that reach this bound.

The budgets `triton_sums` and `triton_slope` count the roundings that a term passes. Weights below 2^-126 of the maximum
count as 0.

Infinities and NaN come out by themselves: a NaN reaches the mass; -inf has weight 0, and 0 times a difference that is
not finite would be NaN, so that differences are cut at -FAR, where every weight is 0. Where the drafter excludes a
token that the target does not, or its logit is so much lower that a weight which counts as 0 might show (COUNTS, times
the temperature), `cross` is made infinite: `refine` then decides.
"""

from __future__ import annotations

import triton
import triton.language as tl

LANES = tl.constexpr(32)
EACH = tl.constexpr(32)
"""Logits of a block that a lane has."""
BLOCK = tl.constexpr(1024)
LARGEST = tl.constexpr(3.4028234663852886e38)
"""The largest finite float32. A lane's maximum starts at its negative and is never infinite."""
FAR = tl.constexpr(1.0e30)
"""A difference of logits so large that its power is 0 at any temperature served."""
COUNTS = tl.constexpr(1.0e20)
"""A difference of logits over the temperature that times a weight below 2^-126 is nothing."""
FIELDS = tl.constexpr(6)
"""Numbers a segment leaves behind: maximum, mass, moment; draft maximum, draft mass, cross."""


@triton.jit
def offsets(VECTOR: tl.constexpr):
    """Places within a block, `[loads, lanes, logits of a load]`: consecutive lanes read consecutive addresses."""
    loads = tl.arange(0, EACH // VECTOR)[:, None, None]
    lanes = tl.arange(0, LANES)[None, :, None]
    return (loads * LANES + lanes) * VECTOR + tl.arange(0, VECTOR)[None, None, :]


@triton.jit
def lane_sum(x):
    """Over the logits of each lane."""
    return tl.sum(tl.sum(x, 2), 0)


@triton.jit
def lane_max(x):
    """Over the logits of each lane."""
    return tl.max(tl.max(x, 2), 0)


@triton.jit
def raised(m, largest, rate):
    """The new maximum, how far the old one lies below it, and what that is as a factor of weights."""
    now = tl.maximum(m, tl.minimum(largest, LARGEST))
    step = m - now
    return now, step, tl.exp2(tl.maximum(step, -FAR) * rate)


@triton.jit
def absorb(x, w, state, rate, PAIR: tl.constexpr):
    """Add a block to the state (maximum, mass, moment, draft maximum, draft mass, cross) of each lane."""
    m, mass, moment, draft_m, draft_mass, cross = state
    x = x.to(tl.float32)
    # Triton's types say that a call of a kernel's function never returns.
    m, step, scale = raised(m, lane_max(x), rate)  # pyright: ignore[reportGeneralTypeIssues]
    a = x - m[None, :, None]
    e = tl.exp2(a * rate)
    step = tl.maximum(step, -FAR)
    moment = (moment + step * mass) * scale + lane_sum(e * tl.maximum(a, -FAR))
    if PAIR:
        w = w.to(tl.float32)
        draft_m, draft_step, draft_scale = raised(draft_m, lane_max(w), rate)
        b = w - draft_m[None, :, None]
        draft_mass = draft_mass * draft_scale + lane_sum(tl.exp2(b * rate))
        shift = tl.where(mass > 0, (step - draft_step) * mass, 0.0)
        difference = tl.maximum(a - b, -FAR)
        cross = (cross + shift) * scale + lane_sum(e * difference)
        cross = tl.where(lane_max(difference) * rate > COUNTS, float("inf"), cross)
    mass = mass * scale + lane_sum(e)
    return m, mass, moment, draft_m, draft_mass, cross


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
    rate,
    sums,
    maxima,
    VECTOR: tl.constexpr,
    SPLITS: tl.constexpr,
    PAIR: tl.constexpr,
):
    """Program (row, part) sums the logits `[part * segment, (part + 1) * segment)` of a row."""
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    begin = part * segment
    end = tl.minimum(begin + segment, size)
    whole = begin + tl.maximum(end - begin, 0) // BLOCK * BLOCK  # where the last block begins if it is not full
    places = offsets(VECTOR)
    at = logits + row * row_stride + places.to(tl.int64) * column_stride
    draft_at = draft + row * draft_row_stride + places.to(tl.int64) * draft_column_stride
    nothing = tl.zeros((LANES,), tl.float32)
    state = (nothing - LARGEST, nothing, nothing, nothing - LARGEST, nothing, nothing)
    inside = begin + places < end
    x = tl.load(at + begin.to(tl.int64) * column_stride, mask=inside, other=-float("inf"))
    w = x
    if PAIR:
        w = tl.load(draft_at + begin.to(tl.int64) * draft_column_stride, mask=inside, other=-float("inf"))
    for start in range(begin + BLOCK, whole, BLOCK):
        next_x = tl.load(at + tl.cast(start, tl.int64) * column_stride)
        next_w = next_x
        if PAIR:
            next_w = tl.load(draft_at + tl.cast(start, tl.int64) * draft_column_stride)
        state = absorb(x, w, state, rate, PAIR)
        x, w = next_x, next_w
    state = absorb(x, w, state, rate, PAIR)
    if (begin < whole) & (whole < end):
        inside = whole + places < end
        x = tl.load(at + whole.to(tl.int64) * column_stride, mask=inside, other=-float("inf"))
        w = x
        if PAIR:
            w = tl.load(draft_at + whole.to(tl.int64) * draft_column_stride, mask=inside, other=-float("inf"))
        state = absorb(x, w, state, rate, PAIR)
    m, mass, moment, draft_m, draft_mass, cross = state
    place = row * SPLITS + part
    tl.store(maxima + place * LANES + tl.arange(0, LANES), m)
    top, step, scale = raised(m, tl.max(m, 0), rate)
    step = tl.maximum(step, -FAR)
    out = sums + place * FIELDS
    tl.store(out, tl.max(top, 0))
    tl.store(out + 1, tl.sum(mass * scale, 0))
    tl.store(out + 2, tl.sum((moment + step * mass) * scale, 0))
    if PAIR:
        draft_top, draft_step, draft_scale = raised(draft_m, tl.max(draft_m, 0), rate)
        shift = tl.where(mass > 0, (step - draft_step) * mass, 0.0)
        tl.store(out + 3, tl.max(draft_top, 0))
        tl.store(out + 4, tl.sum(draft_mass * draft_scale, 0))
        tl.store(out + 5, tl.sum((cross + shift) * scale, 0))
