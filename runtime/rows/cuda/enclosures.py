"""A rule's program (runtime.rows.program) as a function of Triton: enclosures in float64, then cuts of the order.

`accepted_set` prints one function for each program, with one call for each instruction, and compiles it once. An
enclosure is a pair (low, high) that holds the exact number, NaN where nothing is known; a cut is
(tokens surely accepted, up to which gap, tokens possibly accepted, up to which gap). The same programs are evaluated
by tensors of torch in threshold.py and by C++ in cpu/certificate.h, which share no code with this file.
"""

from __future__ import annotations

import functools
import hashlib
import linecache
import math
from typing import Any

import triton
import triton.language as tl

from ...generated import triton_budgets as budgets
from ..program import Op, Program
from .special import log1p as kahan_log1p

FLOAT64_UNIT = tl.constexpr(2.0**-53)
"""Unit roundoff of all that follows the sums."""
BEYOND = tl.constexpr(2.0**1000)
"""Gaps of thresholds from here on are infinite ones, whose enclosure just misses infinity from below."""


@triton.jit
def moved(x, steps):
    """The number that many representable ones further; infinity and NaN in that direction stay."""
    bits = (x + 0.0).to(tl.int64, bitcast=True)
    place = (bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)) + steps
    there = (place ^ ((place >> 63) & 0x7FFFFFFFFFFFFFFF)).to(tl.float64, bitcast=True)
    return tl.where((steps < 0) & (x > -float("inf")) | (steps > 0) & (x < float("inf")), there, x)


@triton.jit
def widened(low, high, steps=2):
    """Outwards by units in the last place: what an operation or a library function may be off by."""
    return moved(low, -steps), moved(high, steps)


@triton.jit
def least(a, b):
    """The smaller number; NaN where one is."""
    return tl.where((a != a) | (a < b), a, b)


@triton.jit
def greatest(a, b):
    """The larger number; NaN where one is."""
    return tl.where((a != a) | (a > b), a, b)


# ---- Instructions on enclosures, by the names of `Op` ---------------------------------------------------------------


@triton.jit
def constant(low, high):
    """A number between the two."""
    return tl.full((), low, tl.float64), tl.full((), high, tl.float64)


@triton.jit
def add(a, b):
    """The sum."""
    return widened(a[0] + b[0], a[1] + b[1])


@triton.jit
def multiply(a, b):
    """The product."""
    w, x, y, z = a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]
    return widened(least(least(w, x), least(y, z)), greatest(greatest(w, x), greatest(y, z)))


@triton.jit
def minimum(a, b):
    """The smaller number."""
    return least(a[0], b[0]), least(a[1], b[1])


@triton.jit
def maximum(a, b):
    """The larger number."""
    return greatest(a[0], b[0]), greatest(a[1], b[1])


@triton.jit
def exp(x):
    """e to the number."""
    return widened(tl.exp(x[0]), tl.exp(x[1]))


@triton.jit
def log(x):
    """The natural logarithm; of what may be negative, as far as it is not."""
    return widened(tl.log(greatest(x[0], 0.0 * x[0])), tl.log(greatest(x[1], 0.0 * x[1])))


@triton.jit
def log1p(x):
    """ln(1 + x)."""
    # Kahan's form passes 5 roundings instead of a library's one or two.
    return widened(_log1p(x[0]), _log1p(x[1]), 8)


@triton.jit
def _log1p(x):
    return tl.where(x <= -1.0, -float("inf"), tl.where(x < float("inf"), kahan_log1p(tl.where(x > -1.0, x, 0.0)), x))


@triton.jit
def reciprocal(x):
    """1 / x where x is surely not 0."""
    nothing = 0.0 * x[0] + float("nan")
    safe = (x[0] > 0) | (x[1] < 0)
    return widened(tl.where(safe, 1.0 / x[1], nothing), tl.where(safe, 1.0 / x[0], nothing))


# ---- Cuts -----------------------------------------------------------------------------------------------------------


@triton.jit
def rank(limit: tl.constexpr, gaps, window, size):
    """The first `limit` tokens."""
    tokens = tl.minimum(size, limit)
    last = tl.arange(0, gaps.shape[0]) == tl.minimum(tokens, window) - 1
    gap = tl.sum(tl.where(last, gaps, 0.0), 0)
    return tokens, gap, tokens, gap


@triton.jit
def row(x, strict: tl.constexpr, size):
    """All tokens if the number is positive (not negative), none otherwise."""
    surely, possibly = (x[0] > 0, x[1] > 0) if strict else (x[0] >= 0, x[1] >= 0)
    far = tl.full((), float("inf"), tl.float64)
    return (
        tl.where(surely, size, 0),
        tl.where(surely, far, -far),
        tl.where(possibly, size, 0),
        tl.where(possibly, far, -far),
    )


@triton.jit
def threshold(bound, strict: tl.constexpr, gaps, window, size):
    """The tokens whose gap is at most (below) the number."""
    inside = tl.arange(0, gaps.shape[0]) < window
    rounded_up = gaps * (1.0 + budgets.gap(FLOAT64_UNIT))
    # A threshold of 0 or less accepts all tokens. Strictly above 0 are those that have a probability: where the window
    # shows none that has none, the row is settled elsewhere. Whether a computed threshold is 0 or less, its gap does
    # not tell.
    if strict:
        surely = tl.sum((inside & (rounded_up < bound[0])).to(tl.int32), 0)
        possibly = tl.sum((inside & (gaps < bound[1])).to(tl.int32), 0)
        possibly = tl.where((bound[0] < float("inf")) & (bound[1] == float("inf")), size, possibly)
    else:
        surely = tl.sum((inside & (rounded_up <= bound[0])).to(tl.int32), 0)
        possibly = tl.sum((inside & (gaps <= bound[1])).to(tl.int32), 0)
        surely = tl.where(bound[0] >= BEYOND, size, surely)
        possibly = tl.where(bound[1] == float("inf"), size, possibly)
    return surely, bound[0], possibly, bound[1]


@triton.jit
def both(a, b):
    """What both cuts accept."""
    return tl.minimum(a[0], b[0]), least(a[1], b[1]), tl.minimum(a[2], b[2]), least(a[3], b[3])


@triton.jit
def either(a, b):
    """What either cut accepts."""
    return tl.maximum(a[0], b[0]), greatest(a[1], b[1]), tl.maximum(a[2], b[2]), greatest(a[3], b[3])


# ---- The function of a program --------------------------------------------------------------------------------------

KNOWN = {Op.LOG_TOP: "known[0]", Op.ENTROPY: "known[1]", Op.LOGIT_RATIO: "known[2]"}
UNARY = {Op.EXP: "exp", Op.LOG: "log", Op.LOG1P: "log1p", Op.RECIPROCAL: "reciprocal"}
BINARY = {
    Op.ADD: "add",
    Op.MULTIPLY: "multiply",
    Op.MINIMUM: "minimum",
    Op.MAXIMUM: "maximum",
    Op.AND: "both",
    Op.OR: "either",
}


def served(program: Program) -> bool:
    """Whether the function can be printed: an entropy with a floor is a sum over the row that no kernel here takes."""
    return all(step.op != Op.ENTROPY or step.low == 0 for step in program)


def source(program: Program) -> str:
    """The text of `accepted(known, gaps, window, size)`; `known` are the enclosures of ln p_(1), entropy, logit ratio.

    >>> from draftcert.runtime.rows.program import program
    >>> from draftcert.theory import parse_rule
    >>> print(source(program(parse_rule("top_m(2) & multiplicative(1/2)"))))
    def accepted(known, gaps, window, size):
        t0 = constant(0.6931471805599451, 0.6931471805599455)
        t1 = threshold(t0, False, gaps, window, size)
        t2 = rank(2, gaps, window, size)
        t3 = both(t1, t2)
        return t3
    """
    lines, stack = ["def accepted(known, gaps, window, size):"], []

    def call(step: Any) -> str:
        strict = bool(step.strict)
        if step.op == Op.CONSTANT:
            return f"constant({_literal(step.low)}, {_literal(step.high)})"
        if step.op in KNOWN:
            return KNOWN[step.op]
        if step.op == Op.RANK:
            return f"rank({int(step.low)}, gaps, window, size)"
        if step.op == Op.ROW:
            return f"row({stack.pop()}, {strict}, size)"
        if step.op == Op.THRESHOLD:
            return f"threshold({stack.pop()}, {strict}, gaps, window, size)"
        if step.op in UNARY:
            return f"{UNARY[step.op]}({stack.pop()})"
        second, first = stack.pop(), stack.pop()
        return f"{BINARY[step.op]}({first}, {second})"

    for number, step in enumerate(program):
        lines.append(f"    t{number} = {call(step)}")
        stack.append(f"t{number}")
    (result,) = stack
    return "\n".join([*lines, f"    return {result}"])


def _literal(number: float) -> str:
    return repr(number) if math.isfinite(number) else f'float("{number}")'


@functools.lru_cache(maxsize=256)
def accepted_set(program: Program) -> Any:
    """The printed function, for Triton's compiler, which reads the text of what it compiles from `linecache`."""
    text = source(program) + "\n"
    name = f"<accepted set {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, Any] = dict(globals())
    exec(compile(text, name, "exec"), names)
    return triton.jit(names["accepted"])
