# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false
# Reductions of Triton are typed as if they could give tuples, and the counters of its loops as Python's.
"""A row from its segments, in float64: statistics and largest logits, or with a rule its certificate.

Everything here is rounded against the claim: what a rule asks for are enclosures (enclosures.py), the certificate is
taken at the lower end of ln p_(1) and lowered by what docs/soundness.md allows for its rounding.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ...generated import triton_budgets as budgets
from ...generated.triton_formulas import certificate_of_gaps
from .enclosures import FLOAT64_UNIT, widened
from .select import from_ordered, largest
from .special import expm1
from .split import BLOCK, FIELDS, LANES

FLOAT32_UNIT = tl.constexpr(2.0**-24)
"""Unit roundoff of the sums."""
FARTHEST = tl.constexpr(88.0)
"""Weights of tokens further below the maximum, in units of the temperature, are 0 in float32."""
NUMBERS = tl.constexpr(4)
"""What `refine` is told of a row: maximum, draft maximum, certificate, and whether there is anything to do."""
NO_ROW, NO_DRAFT_ROW, OPEN = tl.constexpr(1), tl.constexpr(2), tl.constexpr(4)
"""Bits of a row's status: no row of logits, no drafter's row of logits, one that its largest logits leave open."""


@triton.jit
def joined(sums, row, temperature, SPLITS: tl.constexpr):
    """Maximum and mass of a row, its mean gap, and how to bring each segment to them: (power, step, segment's mass)."""
    at = sums + (row * SPLITS + tl.arange(0, SPLITS)) * FIELDS
    m, mass = tl.load(at).to(tl.float64), tl.load(at + 1).to(tl.float64)
    maximum = tl.max(m, 0)
    step = m - maximum
    power = tl.exp(tl.maximum(step / temperature, -1.0e4))
    total = tl.sum(mass * power, 0)
    moment = tl.sum((tl.load(at + 2).to(tl.float64) + step * mass) * power, 0)
    return maximum, total, -moment / total / temperature, power, step, mass


@triton.jit
def joined_divergence(sums, row, temperature, total, power, step, mass, SPLITS: tl.constexpr):
    """Draft maximum, KL and the mean of z - y; whether the drafter's row is one, and whether the sums tell its KL."""
    at = sums + (row * SPLITS + tl.arange(0, SPLITS)) * FIELDS + 3
    m, draft_mass = tl.load(at).to(tl.float64), tl.load(at + 1).to(tl.float64)
    cross = tl.load(at + 2).to(tl.float64)
    maximum = tl.max(m, 0)
    draft_step = m - maximum
    draft_total = tl.sum(draft_mass * tl.exp(tl.maximum(draft_step / temperature, -1.0e4)), 0)
    told = tl.sum((tl.abs(cross) < float("inf")).to(tl.int32), 0) == SPLITS
    difference = tl.sum((cross + (step - draft_step) * mass) * power, 0) / total / temperature
    usable = (draft_total > 0.0) & (draft_total < float("inf"))
    return maximum, tl.maximum(difference + tl.log(draft_total / total), 0.0), difference, usable, told


@triton.jit
def pair(sums, row, temperature, total, gap, power, step, mass, sums_error, ln_size, SPLITS: tl.constexpr):
    """Draft maximum, KL and its error, whether KL is to be summed again, and whether the drafter's row is one."""
    # Triton's types say that a call of a kernel's function never returns.
    draft_maximum, kl, difference, usable, told = joined_divergence(  # pyright: ignore[reportGeneralTypeIssues]
        sums, row, temperature, total, power, step, mass, SPLITS
    )
    draft_gap = tl.maximum(difference + gap, 0.0)
    error = budgets.kl(sums_error, budgets.triton_slope(), FLOAT32_UNIT, ln_size, FARTHEST, gap, draft_gap, difference)
    again = usable & ((told == 0) | (error > kl / 128.0))
    return draft_maximum, tl.where(usable, kl, float("nan")), tl.where(usable, error, 0.0), again, usable


@triton.jit
def finish_statistics(
    logits,
    row_stride,
    column_stride,
    size,
    segment,
    sums,
    maxima,
    groups,
    keys,
    temperature_bits,
    k,
    maximum_out,
    argmax,
    logsumexp,
    entropy,
    top_values,
    top_ids,
    logsumexp_error,
    entropy_error,
    kl_out,
    kl_error,
    numbers,
    status,
    K: tl.constexpr,
    ROOM: tl.constexpr,
    VECTOR: tl.constexpr,
    SPLITS: tl.constexpr,
    PAIR: tl.constexpr,
):
    """`RowStats` of one row a program, and with PAIR its divergence."""
    row = tl.program_id(0).to(tl.int64)
    temperature = temperature_bits.to(tl.float64, bitcast=True)
    GROUPS: tl.constexpr = SPLITS * LANES
    top = largest(
        logits + row * row_stride,
        column_stride,
        size,
        segment,
        maxima + row * GROUPS,
        groups + row * GROUPS,
        keys + row * ROOM,
        k,
        K,
        ROOM,
        VECTOR,
        SPLITS,
    )
    values, ids = from_ordered((top >> 32).to(tl.int32)).to(tl.float64), 0xFFFFFFFF - (top & 0xFFFFFFFF)
    slots = tl.arange(0, K)
    first = slots == 0
    maximum, total, gap, power, step, mass = joined(sums, row, temperature, SPLITS)
    shift, ln_size = tl.log(total), tl.log(size.to(tl.float64))
    sums_error = budgets.triton_sums(FLOAT32_UNIT, (segment // BLOCK).to(tl.float64))
    ordinary = (total > 0.0) & (total < float("inf"))
    most = tl.where(total == total, tl.max(values, 0), float("nan")) / temperature
    lse = most + shift
    tl.store(maximum_out + row, most)
    tl.store(argmax + row, tl.sum(tl.where(first, ids, 0), 0))
    tl.store(logsumexp + row, lse)
    tl.store(entropy + row, shift + gap)
    error = budgets.logsumexp(sums_error, budgets.triton_slope(), FLOAT32_UNIT, FLOAT64_UNIT, gap, lse)
    tl.store(logsumexp_error + row, error)
    tl.store(entropy_error + row, budgets.entropy(sums_error, budgets.triton_slope(), FLOAT32_UNIT, ln_size, gap))
    tl.store(top_values + row * k + slots, values / temperature, mask=slots < k)
    tl.store(top_ids + row * k + slots, ids, mask=slots < k)
    state = tl.where(ordinary, 0, NO_ROW)
    if PAIR:
        draft_maximum, kl, error, again, usable = pair(
            sums, row, temperature, total, gap, power, step, mass, sums_error, ln_size, SPLITS
        )
        tl.store(kl_out + row, kl)
        tl.store(kl_error + row, error)
        out = numbers + row * NUMBERS
        tl.store(out, maximum)
        tl.store(out + 1, draft_maximum)
        tl.store(out + 3, (again & ordinary).to(tl.float64))
        state += tl.where(usable, 0, NO_DRAFT_ROW)
    tl.store(status + row, state.to(tl.uint8))


@triton.jit
def project(top_probability, gaps, count, candidates):
    """Theorems T1 to T3 from the gaps of the first tokens: the value, the level and how many tokens are pooled.

    With r = p/p_(1) - 1, sum_A (r - x)_+ falls and sum_M (x - r)_+ grows in x: an accepted token belongs to the pool
    iff the first is below the second at its own r, a competitor iff it is above. `projection.project` and C++ say the
    same.
    """
    index = tl.arange(0, gaps.shape[0])
    r = expm1(-gaps)
    is_accepted = index < count
    is_competitor = (index >= count) & (index < count + candidates)
    above, below = tl.where(is_accepted, r, 0.0), tl.where(is_competitor, r, 0.0)
    above_total, below_total = tl.sum(above, 0), tl.sum(below, 0)
    tail = (count + candidates - 1 - index).to(tl.float64)  # competitors after this one
    accepted_excess = tl.cumsum(above, 0) - (index + 1 + candidates).to(tl.float64) * r + below_total
    competitor_excess = above_total - count.to(tl.float64) * r - (tail * r - (below_total - tl.cumsum(below, 0)))
    pool = (is_accepted & (accepted_excess < 0)) | (is_competitor & (competitor_excess > 0))
    pooled = tl.sum(pool.to(tl.int32), 0).to(tl.float64)
    mean = tl.sum(tl.where(pool, r, 0.0), 0) / tl.maximum(pooled, 1.0)
    value = tl.sum(tl.where(pool, certificate_of_gaps(top_probability, r, mean), 0.0), 0)
    return value, top_probability * (1.0 + mean), pooled


@triton.jit
def finish_certificates(
    logits,
    row_stride,
    column_stride,
    size,
    segment,
    sums,
    maxima,
    groups,
    keys,
    temperature_bits,
    window,
    candidates,
    value_out,
    level_out,
    threshold_out,
    accepted_out,
    exact,
    passes,
    kl_out,
    certified,
    numbers,
    status,
    K: tl.constexpr,
    ROOM: tl.constexpr,
    VECTOR: tl.constexpr,
    SPLITS: tl.constexpr,
    PAIR: tl.constexpr,
    SOUND: tl.constexpr,
    ACCEPTED: tl.constexpr,
):
    """`Certificate` of one row a program, from its `window` largest logits, for the accepted set ACCEPTED."""
    row = tl.program_id(0).to(tl.int64)
    temperature = temperature_bits.to(tl.float64, bitcast=True)
    GROUPS: tl.constexpr = SPLITS * LANES
    top = largest(
        logits + row * row_stride,
        column_stride,
        size,
        segment,
        maxima + row * GROUPS,
        groups + row * GROUPS,
        keys + row * ROOM,
        window,
        K,
        ROOM,
        VECTOR,
        SPLITS,
    )
    maximum, total, gap, power, step, mass = joined(sums, row, temperature, SPLITS)
    shift, ln_size = tl.log(total), tl.log(size.to(tl.float64))
    sums_error = budgets.triton_sums(FLOAT32_UNIT, (segment // BLOCK).to(tl.float64))
    ordinary = (total > 0.0) & (total < float("inf"))
    values, slots = from_ordered((top >> 32).to(tl.int32)).to(tl.float64), tl.arange(0, K)
    most = tl.max(values, 0)
    gaps = tl.where(slots < window, (most - values) / temperature, float("inf"))

    # ln p_(1) is minus the logarithm of the mass: the maximum does not enter.
    error = budgets.logsumexp(sums_error, budgets.triton_slope(), FLOAT32_UNIT, FLOAT64_UNIT, gap, shift)
    log_top = widened(-shift - error, tl.minimum(error - shift, 0.0))
    error = budgets.entropy(sums_error, budgets.triton_slope(), FLOAT32_UNIT, ln_size, gap)
    entropy = widened(shift + gap - error, shift + gap + error)
    second = tl.sum(tl.where(slots == tl.minimum(1, window - 1), values, 0.0), 0)
    ratio = second / most  # 0/0 is NaN, which no comparison accepts
    surely, surely_gap, possibly, possibly_gap = ACCEPTED((log_top, entropy, widened(ratio, ratio)), gaps, window, size)
    if SOUND:
        count, farthest, top_probability = surely, surely_gap, tl.exp(log_top[0])
    else:
        count, farthest, top_probability = possibly, possibly_gap, tl.exp((log_top[0] + log_top[1]) / 2.0)
    value, level, pooled = project(top_probability, gaps, tl.maximum(count, 1), candidates)
    if SOUND:
        value = tl.maximum(value * (1.0 - budgets.certificate(FLOAT64_UNIT, pooled)), 0.0)
    value = tl.where(count == 0, 0.0, value)
    everything = count + candidates > size
    value = tl.where(everything, float("inf"), value)
    tl.store(value_out + row, value)
    tl.store(level_out + row, tl.where(everything, float("nan"), level))
    tl.store(threshold_out + row, top_probability * tl.exp(-farthest))
    tl.store(accepted_out + row, count.to(tl.int64))
    tl.store(exact + row, (surely == possibly).to(tl.int8))
    tl.store(passes + row, tl.full((), 1, tl.uint8))
    # The window shows the competitors unless the accepted tokens fill it up. A token within rounding of a threshold is
    # settled in float64.
    unseen = (window < size) & (count < size) & (count + candidates > window)
    state = tl.where(ordinary, 0, NO_ROW) + tl.where(unseen | (surely != possibly), OPEN, 0)
    if PAIR:
        draft_maximum, kl, error, again, usable = pair(
            sums, row, temperature, total, gap, power, step, mass, sums_error, ln_size, SPLITS
        )
        undecided = (kl - error < value) & (value <= kl + error)
        reported = kl + error if SOUND else kl
        tl.store(kl_out + row, reported)
        tl.store(certified + row, (reported < value).to(tl.int8))
        out = numbers + row * NUMBERS
        tl.store(out, maximum)
        tl.store(out + 1, draft_maximum)
        tl.store(out + 2, value)
        tl.store(out + 3, ((again | (usable & undecided)) & ordinary).to(tl.float64))
        state += tl.where(usable, 0, NO_DRAFT_ROW)
    tl.store(status + row, state.to(tl.uint8))
