# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false
# Reductions of Triton are typed as if they could give tuples, and the counters of its loops as Python's.
"""The divergence again, in float64, of rows for which `merge` says that float32 does not tell it: the others end here.

Two passes over the row: the masses, then sum (p d - p + q) with d = ln p - ln q, as the reference has it and with its
budget. The terms are all positive, and the bound of the error vanishes where target and draft coincide.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ...generated import triton_budgets as budgets
from ...generated.triton_formulas import kl as kl_of_probabilities
from ...generated.triton_formulas import kl_of_logs
from .enclosures import FLOAT64_UNIT
from .merge import NUMBERS

WIDTH = tl.constexpr(1024)
"""Logits read at once."""
TINY = tl.constexpr(2.2250738585072014e-308)


@triton.jit
def refine(
    logits,
    row_stride,
    column_stride,
    draft,
    draft_row_stride,
    draft_column_stride,
    size,
    temperature_bits,
    numbers,
    kl_out,
    kl_error,
    certified,
    SOUND: tl.constexpr,
    CERTIFY: tl.constexpr,
):
    """`kl_out` of one row a program; with CERTIFY whether it is `certified`, else `kl_error`."""
    row = tl.program_id(0).to(tl.int64)
    told = numbers + row * NUMBERS
    if tl.load(told + 3) > 0:
        maximum, draft_maximum = tl.load(told), tl.load(told + 1)
        temperature = temperature_bits.to(tl.float64, bitcast=True)
        at, draft_at = logits + row * row_stride, draft + row * draft_row_stride
        lanes = tl.arange(0, WIDTH)
        mass, draft_mass = tl.zeros((WIDTH,), tl.float64), tl.zeros((WIDTH,), tl.float64)
        for start in range(0, size, WIDTH):
            index = (start + lanes).to(tl.int64)
            inside = index < size
            x = tl.load(at + index * column_stride, mask=inside, other=-float("inf")).to(tl.float64)
            w = tl.load(draft_at + index * draft_column_stride, mask=inside, other=-float("inf")).to(tl.float64)
            mass += tl.exp((x - maximum) / temperature)
            draft_mass += tl.exp((w - draft_maximum) / temperature)
        shift, draft_shift = tl.log(tl.sum(mass, 0)), tl.log(tl.sum(draft_mass, 0))
        ln_size = tl.log(size.to(tl.float64))  # no mean gap of a row is larger
        relative = budgets.triton_refined_sums(FLOAT64_UNIT, size.to(tl.float64), WIDTH)
        value, error = tl.zeros((WIDTH,), tl.float64), tl.zeros((WIDTH,), tl.float64)
        unequal = tl.zeros((WIDTH,), tl.int32)
        for start in range(0, size, WIDTH):
            index = (start + lanes).to(tl.int64)
            inside = index < size
            x = tl.load(at + index * column_stride, mask=inside, other=-float("inf")).to(tl.float64)
            w = tl.load(draft_at + index * draft_column_stride, mask=inside, other=-float("inf")).to(tl.float64)
            log_p = (x - maximum) / temperature - shift
            log_q = (w - draft_maximum) / temperature - draft_shift
            p, q = tl.exp(log_p), tl.exp(log_q)
            possible, drafted = x > -float("inf"), w > -float("inf")
            both = possible & drafted
            d = tl.where(both, log_p - log_q, 0.0)
            # Both forms are the same summand. The first never divides by an underflown q, the second never overflows.
            in_logs, rare = kl_of_logs(p, tl.maximum(d, -1.0)), kl_of_probabilities(p, tl.maximum(q, TINY))
            term = tl.where(d >= -1.0, in_logs, rare)
            term = tl.where(both, term, tl.where(possible, float("inf"), q))
            value += term
            unequal |= (x != w).to(tl.int32)
            noise = budgets.log_probability(
                relative, budgets.reference_slope(), FLOAT64_UNIT, FLOAT64_UNIT, ln_size, log_p
            )
            draft_noise = budgets.log_probability(
                relative, budgets.reference_slope(), FLOAT64_UNIT, FLOAT64_UNIT, ln_size, log_q
            )
            noise, draft_noise = tl.where(both, noise, 0.0), tl.where(drafted, draft_noise, 0.0)
            error += budgets.reference_kl_term(FLOAT64_UNIT, p, q, d, noise, draft_noise)
        same = tl.max(unequal, 0) == 0
        kl = tl.where(same, 0.0, tl.sum(value, 0))
        bound = budgets.reference_kl(FLOAT64_UNIT, size.to(tl.float64), tl.sum(error, 0), kl)
        bound = tl.where((kl < float("inf")) & (same == 0), bound, 0.0)
        if CERTIFY:
            reported = kl + bound if SOUND else kl
            tl.store(kl_out + row, reported)
            tl.store(certified + row, (reported < tl.load(told + 2)).to(tl.int8))
        else:
            tl.store(kl_out + row, kl)
            tl.store(kl_error + row, bound)
