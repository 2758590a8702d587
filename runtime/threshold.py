"""From a rule's predicate to logit gaps: a token is accepted iff `max z - z` is at most the rule's gap.

A threshold tau on probabilities is the gap `ln(p_(1) / tau)`. In this form additive(0) accepts the ties of the maximum
and nothing else, and multiplicative(alpha) compares with the constant -ln alpha, at any precision of the logits. Gaps
are computed as enclosures (lower, upper): the lower one never accepts a token that the rule rejects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import sympy
import torch
from sympy.codegen.cfunctions import log1p
from torch import Tensor

from ..theory import DraftcertError, Rule
from ..theory.rule import Condition, RankCondition, RowCondition, ThresholdCondition, fold_conditions
from ..theory.statistics import TOP, Entropy


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


Known = Mapping[sympy.Basic, Enclosure]
"""What is known of each row: an enclosure for `log(TOP)`, for `LOGIT_RATIO` and for each `Entropy(floor)`."""

LOG_TOP = sympy.log(TOP)


@lru_cache(maxsize=1024)
def gap(threshold: sympy.Basic) -> sympy.Basic:
    """`ln(p_(1) / threshold)`, written so that it is well conditioned; the accepted gaps are those up to it."""
    if isinstance(threshold, (sympy.Min, sympy.Max)):
        turned = sympy.Max if isinstance(threshold, sympy.Min) else sympy.Min
        return turned(*(gap(part) for part in threshold.args))
    ratio = sympy.expand(sympy.sympify(threshold) / TOP)
    if not ratio.free_symbols and ratio.is_positive is False:
        return sympy.oo
    rest = ratio - 1
    if isinstance(ratio, sympy.Add) and not any(term.is_number for term in rest.as_ordered_terms()):
        logarithm: Any = log1p(rest)
        return -logarithm
    return sympy.expand_log(-sympy.log(ratio), force=True)


def enclose(expression: Any, known: Known, like: Tensor) -> Enclosure:
    """The value of an expression in the statistics of rows, by interval arithmetic; `like` has the rows' shape."""
    if expression in known:
        return known[expression]
    if expression == TOP:
        return _monotone(torch.exp, known[LOG_TOP])
    if expression.is_number:
        return _constant(expression, like)
    parts = [enclose(part, known, like) for part in expression.args]
    if isinstance(expression, sympy.Add):
        return _fold(parts, lambda a, b: Enclosure.widened(a.lower + b.lower, a.upper + b.upper))
    if isinstance(expression, sympy.Mul):
        return _fold(parts, _product)
    if isinstance(expression, sympy.Min):
        return _fold(parts, lambda a, b: Enclosure(a.lower.minimum(b.lower), a.upper.minimum(b.upper)))
    if isinstance(expression, sympy.Max):
        return _fold(parts, lambda a, b: Enclosure(a.lower.maximum(b.lower), a.upper.maximum(b.upper)))
    for function, monotone in ((sympy.exp, torch.exp), (sympy.log, _log), (log1p, _log1p)):
        if isinstance(expression, function):
            return _monotone(monotone, parts[0])
    if isinstance(expression, sympy.Pow) and expression.exp == -1:
        low, high = parts[0]
        safe = (low > 0) | (high < 0)
        return Enclosure.widened(*(torch.where(safe, bound.reciprocal(), torch.nan) for bound in (high, low)))
    raise DraftcertError(f"no enclosure is defined for {type(expression).__name__} in the threshold '{expression}'")


@lru_cache(maxsize=1024)
def _nearest(expression: Any) -> tuple[float, bool]:
    """The float nearest to a constant, and whether it is the constant."""
    nearest = float(expression.evalf(30))
    return nearest, bool(expression.is_infinite or (expression.is_Rational and sympy.Rational(nearest) == expression))


def _constant(expression: Any, like: Tensor) -> Enclosure:
    number, exact = _nearest(expression)
    value = torch.full_like(like, number)
    return Enclosure(value, value) if exact else Enclosure.widened(value, value)


def _fold(parts: list[Enclosure], combine: Callable[[Enclosure, Enclosure], Enclosure]) -> Enclosure:
    result = parts[0]
    for part in parts[1:]:
        result = combine(result, part)
    return result


def _product(a: Enclosure, b: Enclosure) -> Enclosure:
    corners = torch.stack([x * y for x in a for y in b])
    return Enclosure.widened(corners.amin(0), corners.amax(0))


def _monotone(function: Callable[[Tensor], Tensor], x: Enclosure) -> Enclosure:
    return Enclosure.widened(function(x.lower), function(x.upper))


def _log(x: Tensor) -> Tensor:
    return torch.log(x.clamp(min=0))


def _log1p(x: Tensor) -> Tensor:
    return torch.log1p(x.clamp(min=-1))


def rank_limit(condition: RankCondition) -> int:
    """How many tokens a rank condition lets through."""
    if not condition.limit.is_Integer:
        raise DraftcertError(
            f"a rule that accepts the {condition.limit} most likely tokens has no fixed number of them"
        )
    return int(condition.limit)


@lru_cache(maxsize=256)
def largest_rank(rule: Rule) -> int:
    """The largest number of tokens that a rank condition of the rule speaks of."""
    return max((rank_limit(c) for c in rule.conditions if isinstance(c, RankCondition)), default=0)


@lru_cache(maxsize=256)
def floored_entropies(rule: Rule) -> dict[sympy.Basic, float]:
    """The rule's entropies `-sum p ln(p + f)` with their floors f > 0: each is a further sum over the row."""
    found: dict[sympy.Basic, Any] = {entropy: entropy.args[0] for entropy in rule.accepts.atoms(Entropy)}
    return {entropy: float(floor) for entropy, floor in found.items() if floor != 0}


@dataclass(frozen=True)
class AcceptedSet:
    """The first `count` tokens of the order are accepted, those up to `gap` below the maximum.

    `decided` is False where a token lies so near to the threshold that float64 cannot tell on which side.
    """

    count: Tensor
    gap: Tensor
    decided: Tensor


def accepted_set(rule: Rule, gaps: Tensor, known: Known, size: int, *, sound: bool) -> AcceptedSet:
    """Evaluate a rule on rows given the gaps of their most likely tokens.

    `gaps` `[rows, window]` ascends and starts with 0; counts that reach beyond the window are reported as `window`
    unless the condition accepts all `size` tokens of the vocabulary.
    """
    window = gaps.shape[-1]
    row = gaps[..., 0]
    rounded_up = gaps * (1 + torch.finfo(torch.float64).eps)

    def everything(holds: Tensor) -> tuple[Tensor, Tensor]:
        return torch.where(holds, size, 0), torch.where(holds, torch.inf, -torch.inf)

    def evaluate(condition: Condition) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        if isinstance(condition, RankCondition):
            limit = min(rank_limit(condition), size)
            cut = torch.full_like(row, limit).long(), gaps[..., min(limit, window) - 1]
            return cut, cut
        if isinstance(condition, RowCondition):
            surely, possibly = _holds(condition.holds, known, row)
            return everything(surely), everything(possibly)
        bound = enclose(gap(condition.threshold), known, row)
        return _cut(condition, rounded_up, bound.lower), _cut(condition, gaps, bound.upper)

    def _cut(condition: ThresholdCondition, distance: Tensor, bound: Tensor) -> tuple[Tensor, Tensor]:
        bound = bound[..., None]
        inside = distance < bound if condition.strict else distance <= bound
        count = inside.sum(-1)
        return torch.where(bound[..., 0] == torch.inf, size, count), bound[..., 0]

    def combine(choose: Callable[[Tensor, Tensor], Tensor]):
        return lambda a, b: tuple(
            tuple(choose(x, y) for x, y in zip(s, t, strict=True)) for s, t in zip(a, b, strict=True)
        )

    lower, upper = fold_conditions(rule.accepts, evaluate, combine(torch.minimum), combine(torch.maximum))
    count, bound = lower if sound else upper
    return AcceptedSet(count, bound, lower[0] == upper[0])


def _holds(relation: sympy.Basic, known: Known, like: Tensor) -> tuple[Tensor, Tensor]:
    """Whether a condition on the row alone surely holds, and whether it may."""
    if relation in (sympy.true, sympy.false):
        holds = torch.full_like(like, relation == sympy.true, dtype=torch.bool)
        return holds, holds
    difference = enclose(relation.gts - relation.lts, known, like)  # type: ignore[attr-defined]
    if isinstance(relation, (sympy.StrictGreaterThan, sympy.StrictLessThan)):
        return difference.lower > 0, difference.upper > 0
    return difference.lower >= 0, difference.upper >= 0
