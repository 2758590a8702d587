"""The accepted set of rows of logits by tensors of torch: the program of a rule on enclosures.

Gaps are computed as enclosures (lower, upper): the lower one never accepts a token that the rule rejects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from ...theory import DraftcertError
from ..generated import torch_budgets as budgets
from .program import Instruction, Op, Program
from .reference import UNIT

if TYPE_CHECKING:
    from jaxtyping import Bool, Float64, Int64


BEYOND = 2.0**1000
"""Gaps of thresholds from here on are infinite ones, whose enclosure just misses infinity from below."""


class Enclosure(NamedTuple):
    """The exact number lies in [lower, upper]; NaN where nothing is known."""

    lower: Tensor
    upper: Tensor

    @staticmethod
    def widened(lower: Tensor, upper: Tensor) -> Enclosure:
        """Two units in the last place outwards: what a float64 operation or library function may be off by."""
        for _ in range(2):
            lower = torch.nextafter(lower, torch.full_like(lower, -torch.inf))
            upper = torch.nextafter(upper, torch.full_like(upper, torch.inf))
        return Enclosure(lower, upper)


@dataclass(frozen=True)
class Known:
    """Enclosures of what a rule may ask of each row: ln p_(1), the entropies by their floors, z_(2)/z_(1)."""

    log_top: Enclosure
    entropies: Mapping[float, Enclosure]
    logit_ratio: Enclosure | None = None


class Cut(NamedTuple):
    """The first `tokens` of the order, those up to `gap` below the maximum."""

    tokens: Tensor
    gap: Tensor


class Cuts(NamedTuple):
    """The tokens that surely are accepted, and those that may be."""

    surely: Cut
    possibly: Cut


@dataclass(frozen=True)
class AcceptedSet:
    """The first `count` tokens of the order are accepted, those up to `gap` below the maximum.

    `decided` is False where a token lies so near to the threshold that float64 cannot tell on which side.
    """

    count: Int64[Tensor, "*rows"]
    gap: Float64[Tensor, "*rows"]
    decided: Bool[Tensor, "*rows"]


def accepted_set(
    steps: Program, gaps: Float64[Tensor, "*rows window"], known: Known, size: int, *, sound: bool
) -> AcceptedSet:
    """Evaluate the program of a rule on rows given the gaps of their most likely tokens.

    `gaps` ascends and starts with 0; counts that reach beyond the window are reported as `window`
    unless the condition accepts all `size` tokens of the vocabulary.
    """
    stack: list[Any] = []
    for step in steps:
        if step.op <= Op.LOGIT_RATIO:
            stack.append(_known(step, known, gaps[..., 0]))
        elif step.op in BINARY:
            second, first = stack.pop(), stack.pop()
            stack.append(BINARY[step.op](first, second))
        elif step.op in UNARY:
            stack.append(UNARY[step.op](stack.pop()))
        else:
            stack.append(_cuts(step, stack, gaps, size))
    (cuts,) = stack
    count, bound = cuts.surely if sound else cuts.possibly
    return AcceptedSet(count, bound, cuts.surely.tokens == cuts.possibly.tokens)


def _known(step: Instruction, known: Known, like: Tensor) -> Enclosure:
    if step.op == Op.CONSTANT:
        return Enclosure(torch.full_like(like, step.low), torch.full_like(like, step.high))
    if step.op == Op.LOG_TOP:
        return known.log_top
    if step.op == Op.LOGIT_RATIO and known.logit_ratio is not None:
        return known.logit_ratio
    if step.op == Op.ENTROPY and step.low in known.entropies:
        return known.entropies[step.low]
    what = "the logits themselves" if step.op == Op.LOGIT_RATIO else f"the entropy with floor {step.low}"
    raise DraftcertError(f"the rule asks for {what}, which is not known of these rows")


def _cuts(step: Instruction, stack: list[Any], gaps: Tensor, size: int) -> Cuts:
    row, window = gaps[..., 0], gaps.shape[-1]
    if step.op == Op.RANK:
        limit = min(int(step.low), size)
        cut = Cut(torch.full_like(row, limit).long(), gaps[..., min(limit, window) - 1])
        return Cuts(cut, cut)
    enclosure = stack.pop()
    if step.op == Op.ROW:
        holds = (end > 0 if step.strict else end >= 0 for end in enclosure)
        return Cuts(*(Cut(torch.where(h, size, 0), torch.where(h, torch.inf, -torch.inf).to(row)) for h in holds))
    low, high = (bound[..., None] for bound in enclosure)
    rounded_up = gaps * (1 + budgets.gap(UNIT))
    surely, possibly = (rounded_up < low, gaps < high) if step.strict else (rounded_up <= low, gaps <= high)
    # A threshold of 0 or less accepts all tokens. Strictly above 0 are those that have a probability; whether a
    # computed threshold is 0 or less, its gap does not tell.
    everything = enclosure.lower >= (torch.inf if step.strict else BEYOND)
    maybe_everything = (enclosure.upper == torch.inf) & ~(everything & step.strict)
    counts = (
        torch.where(everything & (not step.strict), size, surely.sum(-1)),
        torch.where(maybe_everything, size, possibly.sum(-1)),
    )
    return Cuts(*(Cut(count, bound) for count, bound in zip(counts, enclosure, strict=True)))


def _add(a: Enclosure, b: Enclosure) -> Enclosure:
    return Enclosure.widened(a.lower + b.lower, a.upper + b.upper)


def _multiply(a: Enclosure, b: Enclosure) -> Enclosure:
    corners = torch.stack([x * y for x in a for y in b])
    return Enclosure.widened(corners.amin(0), corners.amax(0))


def _of_enclosures(choose: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Enclosure, Enclosure], Enclosure]:
    return lambda a, b: Enclosure(choose(a.lower, b.lower), choose(a.upper, b.upper))


def _of_cuts(choose: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Cuts, Cuts], Cuts]:
    def combine(a: Cut, b: Cut) -> Cut:
        return Cut(choose(a.tokens, b.tokens), choose(a.gap, b.gap))

    return lambda a, b: Cuts(combine(a.surely, b.surely), combine(a.possibly, b.possibly))


def _monotone(function: Callable[[Tensor], Tensor]) -> Callable[[Enclosure], Enclosure]:
    return lambda x: Enclosure.widened(function(x.lower), function(x.upper))


def _reciprocal(x: Enclosure) -> Enclosure:
    safe = (x.lower > 0) | (x.upper < 0)
    return Enclosure.widened(*(torch.where(safe, bound.reciprocal(), torch.nan) for bound in (x.upper, x.lower)))


BINARY: dict[Op, Callable[[Any, Any], Any]] = {
    Op.ADD: _add,
    Op.MULTIPLY: _multiply,
    Op.MINIMUM: _of_enclosures(torch.minimum),
    Op.MAXIMUM: _of_enclosures(torch.maximum),
    Op.AND: _of_cuts(torch.minimum),
    Op.OR: _of_cuts(torch.maximum),
}
UNARY: dict[Op, Callable[[Enclosure], Enclosure]] = {
    Op.EXP: _monotone(torch.exp),
    Op.LOG: _monotone(lambda x: torch.log(x.clamp(min=0))),
    Op.LOG1P: _monotone(lambda x: torch.log1p(x.clamp(min=-1))),
    Op.RECIPROCAL: _reciprocal,
}
