# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false
# Reductions of Triton are typed as if they could give tuples, and the counters of its loops as Python's.
"""The k largest logits of a row, exactly and without sorting it, from the largest logit of each group of logits.

The k-th largest of the groups' maxima is a lower bound of the k-th largest logit: k groups have a logit that reaches
it. So only groups whose maximum reaches the bound are read again, about k of them with a few hundred logits each, and
only logits that reach it are kept, about k again. They are gathered in a short list of keys
(ordered value, 2^32 - 1 - id), whose order is the order of the tokens: value descending, id ascending. When the list
is full, as it is where very many logits are equal, its k-th largest key becomes the bound and the others go.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .split import BLOCK, EACH, LANES

NOTHING = tl.constexpr(-(2**63))
"""Below the key of every logit."""
LOWEST = tl.constexpr(-(2**31))
"""Below every logit as an ordered integer."""
ITEMS = tl.constexpr(128)
"""Lanes' shares of blocks that are read again at once."""


@triton.jit
def ordered(x):
    """Signed integers in the order of the floats."""
    bits = (x + 0.0).to(tl.int32, bitcast=True)  # -0 and +0 are one logit
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def from_ordered(place):
    """The float of an ordered integer."""
    return (place ^ ((place >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)


@triton.jit
def reached_by(k, values):
    """A number that at least k of the values reach, as an ordered integer: their k-th largest but for the last 16 bits.

    Values of bfloat16 have no such bits. The least integer where there are not as many values.
    """
    places = ordered(values) >> 16
    low, high = tl.min(places, 0), tl.max(places, 0)
    if tl.sum((places >= low).to(tl.int32), 0) < k:
        low = low * 0 - 32768
        high = low
    while low < high:
        middle = (low + high + 1) >> 1
        enough = tl.sum((places >= middle).to(tl.int32), 0) >= k
        low = tl.where(enough, middle, low)
        high = tl.where(enough, high, middle - 1)
    # A lane whose logits are all -inf has the lowest finite float as its maximum.
    return tl.where(low <= -32640, -32768, low) << 16


@triton.jit
def largest(
    at,
    column_stride,
    size,
    segment,
    maxima,
    groups,
    keys,
    k,
    K: tl.constexpr,
    ROOM: tl.constexpr,
    VECTOR: tl.constexpr,
    SPLITS: tl.constexpr,
):
    """The keys of the k largest logits of the row `at`, descending, in a tensor of K; `maxima` are those of its groups.

    `groups` and `keys` are memory for this row: SPLITS * LANES integers, ROOM keys.
    """
    GROUPS: tl.constexpr = SPLITS * LANES
    tops = tl.load(maxima + tl.arange(0, GROUPS))
    least = reached_by(k, tops)
    reaching = (ordered(tops) >= least).to(tl.int32)
    tl.store(groups + tl.cumsum(reaching, 0) - 1, tl.arange(0, GROUPS), mask=reaching > 0)
    tl.debug_barrier()
    shares = segment // BLOCK
    count = tl.sum(reaching, 0) * shares
    bound = (tl.maximum(least, LOWEST + 1).to(tl.int64) << 32) - 1  # wanted are keys above it
    held = count * 0
    VECTORS: tl.constexpr = ITEMS * (EACH // VECTOR)
    slots, places = tl.arange(0, ROOM), tl.arange(0, VECTOR)[None, None, :]
    for first in range(0, count, ITEMS):
        item = first + tl.arange(0, ITEMS)
        group = tl.load(groups + item // shares, mask=item < count, other=0)
        begin = (group // LANES) * segment + (item % shares) * BLOCK + (group % LANES) * VECTOR
        vector = begin[:, None] + tl.arange(0, EACH // VECTOR)[None, :] * (LANES * VECTOR)
        index = vector[:, :, None] + places
        inside = (item < count)[:, None, None] & (index < size)
        x = tl.load(at + index.to(tl.int64) * column_stride, mask=inside, other=0).to(tl.float32)
        value = tl.where(inside, ordered(x), LOWEST)
        # The largest logit of each vector goes to the list, then the next one of those that have more to give.
        best = tl.max(value, 2)
        while tl.max(tl.max(best, 1), 0) >= ((bound + 1) >> 32).to(tl.int32):
            id = tl.min(tl.where(value == best[:, :, None], places, VECTOR), 2)
            key = (best.to(tl.int64) << 32) | (0xFFFFFFFF - (vector + id).to(tl.int64))
            wanted = tl.reshape((key > bound).to(tl.int32), (VECTORS,))
            place = tl.reshape(held + tl.cumsum(wanted, 0) - wanted, (ITEMS, EACH // VECTOR))
            taken = (key > bound) & (place < ROOM)
            tl.store(keys + place, key, mask=taken)
            done = taken | (key <= bound)
            held = tl.minimum(held + tl.sum(wanted, 0), ROOM)
            if held == ROOM:
                tl.debug_barrier()
                kept = tl.topk(tl.load(keys + slots), K)
                tl.debug_barrier()
                tl.store(keys + tl.arange(0, K), kept)
                bound = tl.sum(tl.where(tl.arange(0, K) == k - 1, kept, 0), 0)
                held = held * 0 + K
            value = tl.where((places == id[:, :, None]) & done[:, :, None], LOWEST, value)
            best = tl.max(value, 2)
    tl.debug_barrier()
    return tl.topk(tl.load(keys + slots, mask=slots < held, other=NOTHING), K)
