"""A rule as a program for a stack machine: the one form that the tensors of torch and the kernels evaluate.

A program holds the meaning of a rule whole, as a list of numbers: the operators of torch take it instead of the rule,
so that a compiled or exported call needs nothing else. The conditions of a rule become bounds of the logit gap
`max z - z`: a threshold tau on probabilities is the gap `ln(p_(1) / tau)`. In this form additive(0) accepts the ties of
the maximum and nothing else, and multiplicative(alpha) compares with the constant -ln alpha, at any precision of the
logits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

import sympy
from sympy.codegen.cfunctions import log1p

from ...theory import DraftcertError, Rule
from ...theory.conditions import Condition, RankCondition, RowCondition, fold_conditions
from ...theory.statistics import LOGIT_RATIO, TOP, Entropy

LOG_TOP = sympy.log(TOP)


class Op(IntEnum):
    """What an instruction does; `draftcert_op` in rows/cpu/rows.h has the same numbers.

    The first push an enclosure, the next combine the enclosures on top of the stack, `RANK` to `THRESHOLD` turn them
    into cuts of the order, and the last two combine cuts.
    """

    CONSTANT = 0
    LOG_TOP = 1
    ENTROPY = 2
    LOGIT_RATIO = 3
    ADD = 4
    MULTIPLY = 5
    MINIMUM = 6
    MAXIMUM = 7
    EXP = 8
    LOG = 9
    LOG1P = 10
    RECIPROCAL = 11
    RANK = 12
    ROW = 13
    THRESHOLD = 14
    AND = 15
    OR = 16


class Effect(NamedTuple):
    """What an instruction takes from the stacks of enclosures and of cuts, and leaves on them."""

    enclosures_taken: int = 0
    enclosures_left: int = 0
    cuts_taken: int = 0
    cuts_left: int = 0


EFFECTS = {
    **dict.fromkeys((Op.CONSTANT, Op.LOG_TOP, Op.ENTROPY, Op.LOGIT_RATIO), Effect(enclosures_left=1)),
    **dict.fromkeys((Op.ADD, Op.MULTIPLY, Op.MINIMUM, Op.MAXIMUM), Effect(enclosures_taken=2, enclosures_left=1)),
    **dict.fromkeys((Op.EXP, Op.LOG, Op.LOG1P, Op.RECIPROCAL), Effect(enclosures_taken=1, enclosures_left=1)),
    Op.RANK: Effect(cuts_left=1),
    **dict.fromkeys((Op.ROW, Op.THRESHOLD), Effect(enclosures_taken=1, cuts_left=1)),
    **dict.fromkeys((Op.AND, Op.OR), Effect(cuts_taken=2, cuts_left=1)),
}


class Instruction(NamedTuple):
    """One step. `low` and `high` enclose a constant; `low` alone is the limit of a rank or the floor of an entropy."""

    op: Op
    low: float = 0.0
    high: float = 0.0
    strict: bool = False


Program = tuple[Instruction, ...]

KNOWN = {LOG_TOP: Op.LOG_TOP, LOGIT_RATIO: Op.LOGIT_RATIO}
FUNCTIONS: dict[Any, Op] = {sympy.exp: Op.EXP, sympy.log: Op.LOG, log1p: Op.LOG1P}
FOLDS: dict[Any, Op] = {
    sympy.Add: Op.ADD,
    sympy.Mul: Op.MULTIPLY,
    sympy.Min: Op.MINIMUM,
    sympy.Max: Op.MAXIMUM,
}


@lru_cache(maxsize=1024)
def gap(threshold: sympy.Basic) -> sympy.Basic:
    """`ln(p_(1) / threshold)`, written so that it is well conditioned; the accepted gaps are those up to it.

    Infinite where the threshold is 0: all tokens reach that, and those strictly above it have a probability.
    """
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


def widened(low: float, high: float) -> tuple[float, float]:
    """Two units in the last place outwards."""
    for _ in range(2):
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return low, high


def _constant(expression: Any) -> Instruction:
    nearest = float(expression.evalf(30))
    exact = expression.is_infinite or (expression.is_Rational and sympy.Rational(nearest) == expression)
    return Instruction(Op.CONSTANT, *((nearest, nearest) if exact else widened(nearest, nearest)))


def _expression(expression: Any) -> Program:
    """Instructions that leave the enclosure of an expression in the row's statistics on the stack."""
    if expression in KNOWN:
        return (Instruction(KNOWN[expression]),)
    if isinstance(expression, Entropy):
        floor: Any = expression.args[0]
        return (Instruction(Op.ENTROPY, float(floor)),)
    if expression == TOP:
        return (Instruction(Op.LOG_TOP), Instruction(Op.EXP))
    if expression.is_number:
        return (_constant(expression),)
    parts = [_expression(part) for part in expression.args]
    for kind, op in FOLDS.items():
        if isinstance(expression, kind):
            result = parts[0]
            for part in parts[1:]:
                result += (*part, Instruction(op))
            return result
    for kind, op in FUNCTIONS.items():
        if isinstance(expression, kind):
            return (*parts[0], Instruction(op))
    if isinstance(expression, sympy.Pow) and expression.exp == -1:
        return (*parts[0], Instruction(Op.RECIPROCAL))
    raise DraftcertError(f"no enclosure is defined for {type(expression).__name__} in the threshold '{expression}'")


def _condition(condition: Condition) -> Program:
    if isinstance(condition, RankCondition):
        return (Instruction(Op.RANK, float(rank_limit(condition))),)
    if isinstance(condition, RowCondition):
        relation: Any = condition.holds
        if relation in (sympy.true, sympy.false):
            sign = 1.0 if relation == sympy.true else -1.0
            return (Instruction(Op.CONSTANT, sign, sign), Instruction(Op.ROW))
        strict = isinstance(relation, (sympy.StrictGreaterThan, sympy.StrictLessThan))
        return (*_expression(relation.gts - relation.lts), Instruction(Op.ROW, strict=strict))
    if condition.threshold.is_negative:
        return _condition(RowCondition(sympy.true))
    return (*_expression(gap(condition.threshold)), Instruction(Op.THRESHOLD, strict=condition.strict))


@lru_cache(maxsize=256)
def program(rule: Rule) -> Program:
    """The instructions that leave one cut, the rule's accepted set, on the stack.

    >>> from draftcert.theory import parse_rule
    >>> [step.op.name for step in program(parse_rule("top_m(2) & strict_greedy"))]
    ['RANK', 'RANK', 'AND']
    """
    return fold_conditions(
        rule.accepts,
        _condition,
        lambda a, b: (*a, *b, Instruction(Op.AND)),
        lambda a, b: (*a, *b, Instruction(Op.OR)),
    )


LAST_RANK = 2**31 - 1
"""No vocabulary has so many tokens, so a condition on larger ranks lets through what one on this rank does."""


def rank_limit(condition: RankCondition) -> int:
    """How many tokens a rank condition lets through."""
    if not condition.limit.is_Integer:
        raise DraftcertError(
            f"a rule that accepts the {condition.limit} most likely tokens has no fixed number of them"
        )
    return min(int(condition.limit), LAST_RANK)


def largest_rank(steps: Program) -> int:
    """The largest number of tokens that a rank condition of the rule speaks of."""
    return max((int(step.low) for step in steps if step.op == Op.RANK), default=0)


def floors(steps: Program) -> set[float]:
    """The floors f > 0 of the rule's entropies `-sum p ln(p + f)`: each is a further sum over the row."""
    return {step.low for step in steps if step.op == Op.ENTROPY and step.low != 0}


def uses_logit_ratio(steps: Program) -> bool:
    """Whether the rule compares raw logits."""
    return any(step.op == Op.LOGIT_RATIO for step in steps)


@lru_cache(maxsize=256)
def encoded(rule: Rule) -> list[float]:
    """The program of a rule as the operators of torch take it: op, strict, low and high of each instruction."""
    return [number for step in program(rule) for number in (float(step.op), float(step.strict), step.low, step.high)]


def decoded(numbers: Sequence[float]) -> Program:
    """The program that `encoded` wrote.

    Raises:
        DraftcertError: numbers that are no program, or one that does not leave a single cut on the stack.
    """
    try:
        steps = tuple(
            Instruction(Op(int(op)), low, high, bool(strict))
            for op, strict, low, high in zip(*[iter(numbers)] * 4, strict=True)
        )
    except (ValueError, OverflowError) as error:
        raise DraftcertError(f"these {len(numbers)} numbers are no program of a rule: {error}") from error
    enclosures = cuts = 0
    for step in steps:
        effect = EFFECTS[step.op]
        if step.op == Op.RANK and not 1 <= step.low < math.inf:
            raise DraftcertError(f"the program of a rule accepts the {step.low} most likely tokens")
        if enclosures < effect.enclosures_taken or cuts < effect.cuts_taken:
            raise DraftcertError(f"the program of a rule takes more from its stack than there is at {step.op.name}")
        enclosures += effect.enclosures_left - effect.enclosures_taken
        cuts += effect.cuts_left - effect.cuts_taken
    if enclosures or cuts != 1:
        raise DraftcertError(f"the program of a rule must leave one cut, not {cuts} and {enclosures} enclosures")
    return steps
