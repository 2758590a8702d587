"""What an acceptance predicate is made of: conditions that cut the order of the target, joined by `&` and `|`.

Every condition cuts the same order (probability descending, ties by lowest id), so the accepted tokens are always its
first `n`: of an intersection the least `n`, of a union the greatest. Strictness is the relation itself (`>=` or `>`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import sympy
from sympy.logic.boolalg import Boolean

from .errors import DraftcertError
from .statistics import PROBABILITY, RANK


@dataclass(frozen=True)
class ThresholdCondition:
    """Accepted iff `p(x) >= threshold` (or `>` when strict)."""

    threshold: sympy.Expr
    strict: bool


@dataclass(frozen=True)
class RankCondition:
    """Accepted iff the token is among the `limit` most likely."""

    limit: sympy.Expr


@dataclass(frozen=True)
class RowCondition:
    """Accepts every token of a row where `holds`, and none elsewhere."""

    holds: Boolean


Condition = ThresholdCondition | RankCondition | RowCondition


def _condition(relation: Boolean) -> Condition:
    """Read one relation as a cut of the order, or say why it is not one."""
    if relation in (sympy.true, sympy.false):
        return RowCondition(relation)
    if not isinstance(relation, (sympy.Ge, sympy.Gt, sympy.Le, sympy.Lt)):
        raise DraftcertError(f"'{relation}' is not an order comparison: a rule is built from >=, >, <=, <, &, |")
    gts, lts = cast("sympy.Expr", relation.gts), cast("sympy.Expr", relation.lts)
    strict = isinstance(relation, (sympy.Gt, sympy.Lt))
    token = relation.free_symbols & {PROBABILITY, RANK}
    if gts == PROBABILITY and not lts.free_symbols & {PROBABILITY, RANK}:
        return ThresholdCondition(lts, strict)
    if lts == RANK and not gts.free_symbols & {PROBABILITY, RANK}:
        return RankCondition(gts - 1 if strict else gts)
    if not token:
        return RowCondition(relation)
    raise DraftcertError(
        f"'{relation}' does not cut the order of the target: an accepted set must hold every token at least as likely "
        "as an accepted one, so a condition bounds p_x from below or r_x from above by statistics of the row"
    )


def fold_conditions(
    accepts: Boolean,
    count: Callable[[Condition], Any],
    minimum: Callable[[Any, Any], Any],
    maximum: Callable[[Any, Any], Any],
) -> Any:
    """The accepted count of a rule from the counts of its conditions: `&` is the minimum, `|` the maximum.

    This is the one place that gives the connectives a meaning; exact, tensor and generated code all fold with it.
    """
    if isinstance(accepts, (sympy.And, sympy.Or)):
        combine = minimum if isinstance(accepts, sympy.And) else maximum
        parts = sorted(accepts.args, key=sympy.default_sort_key)
        result = fold_conditions(parts[0], count, minimum, maximum)  # type: ignore[arg-type]
        for part in parts[1:]:
            result = combine(result, fold_conditions(part, count, minimum, maximum))  # type: ignore[arg-type]
        return result
    return count(_condition(accepts))


def conditions(accepts: Boolean) -> tuple[Condition, ...]:
    """All conditions of a rule, in a fixed order."""
    found: list[Condition] = []
    fold_conditions(accepts, lambda condition: found.append(condition), lambda a, b: None, lambda a, b: None)
    return tuple(found)
