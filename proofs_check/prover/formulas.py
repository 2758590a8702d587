"""Formulas: what establishes one, and that its two forms agree."""

from __future__ import annotations

from dataclasses import replace

import sympy

from ...theory.errors import DraftcertError
from ...theory.formula import Formula
from ...theory.theorem import (
    AtLeast,
    Claim,
    Domain,
    Equal,
    Establishes,
    ExactValue,
    Infimum,
    LowerBound,
    Optimum,
    Range,
    SumAtLeast,
    SumEqual,
    Supremum,
    Theorem,
    UpperBound,
)
from .claims import decide
from .compare import forms
from .errors import ProofError
from .rational import ONE, Expression


def _conclusion_sides(claim: Claim) -> tuple[Expression, ...]:
    if isinstance(claim, (Infimum, Supremum, Optimum)):
        return (claim.value,)
    if isinstance(claim, (ExactValue, LowerBound, UpperBound)):
        return (claim.value.total, *claim.value.terms.values())
    if isinstance(claim, (Equal, AtLeast)):
        return (claim.left, claim.right)
    if isinstance(claim, (SumEqual, SumAtLeast)):
        return (claim.right, *(part for term in claim.left.values() for part in sympy.Add.make_args(term)))
    return ()


def speaks_of(theorem: Theorem, established: Establishes) -> str:
    """Refuse a theorem that claims to establish a formula which no conclusion of it contains."""
    renamed = established.formula.expression.xreplace(established.renamed)
    if not any(renamed == side for claim in theorem.conclusions for side in _conclusion_sides(claim)):
        raise ProofError(f"{theorem.name}: no conclusion speaks of {established.formula.name} = {renamed}")
    return "symbolic"


def formula_domain(formula: Formula) -> Domain:
    """The domain of a formula as ranges, its constraint taken in as bounds."""
    ranges: list[Range] = []
    relations = formula.constraint.args if isinstance(formula.constraint, sympy.And) else (formula.constraint,)
    for argument in formula.arguments:
        ranges.append(_argument_range(argument.symbol, argument.domain))
    for relation in relations:
        # Without an excluded value the domain is larger, so what holds on it is stronger.
        if relation == sympy.true or isinstance(relation, sympy.Ne):
            continue
        _take_in(relation, ranges, formula.name)
    return tuple(ranges)


def _argument_range(symbol: sympy.Symbol, domain: Expression) -> Range:
    if domain == sympy.S.Naturals:
        return Range(symbol, ONE, sympy.oo, integer=True)
    if isinstance(domain, sympy.Interval):
        ends: Expression = domain
        return Range(symbol, ends.start, ends.end, bool(ends.left_open), bool(ends.right_open))
    if domain == sympy.S.Reals:
        return Range(symbol, -sympy.oo, sympy.oo)
    raise DraftcertError(f"the checker does not know the domain {domain} of {symbol}")


def _take_in(relation: sympy.Basic, ranges: list[Range], name: str) -> None:
    """A constraint `a <= b` bounds its later variable by the earlier ones, alone or together with the bound it had."""
    if not isinstance(relation, (sympy.Le, sympy.Ge, sympy.Lt, sympy.Gt)):
        raise DraftcertError(f"formula {name}: the checker does not know the constraint {relation}")
    for index in reversed(range(len(ranges))):
        each, signs = ranges[index], forms(tuple(ranges[:index])).signs
        if relation.lts == each.symbol:
            tighter = signs.nonnegative(each.upper - relation.gts)
            ranges[index] = replace(each, upper=relation.gts if tighter else sympy.Min(each.upper, relation.gts))
            return
        if relation.gts == each.symbol:
            tighter = signs.nonnegative(relation.lts - each.lower)
            ranges[index] = replace(each, lower=relation.lts if tighter else sympy.Max(each.lower, relation.lts))
            return
    raise DraftcertError(f"formula {name}: the constraint {relation} bounds no variable by the ones before it")


def decide_formula(formula: Formula, theorems: tuple[Theorem, ...]) -> None:
    """The stable form equals the defining form: on the domain, or as sums by a conclusion of an establishing theorem.

    `theorems` are the ones that establish the formula; that they hold is decided separately.
    """
    what = f"formula {formula.name}"
    if formula.sum_over is None:
        decide(Equal(formula.expression, formula.stable, formula_domain(formula)), f"{what}: stable form")
        return
    for theorem in theorems:
        for established in theorem.establishes:
            if established.formula.sha256 != formula.sha256:
                continue
            difference = (formula.expression - formula.stable).xreplace(established.renamed)
            for claim in theorem.conclusions:
                if isinstance(claim, SumEqual) and claim.right == 0 and list(claim.left.values()) == [difference]:
                    return
    raise ProofError(f"{what}: no theorem concludes that its two forms have the same sum")
