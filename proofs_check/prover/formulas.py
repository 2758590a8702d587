"""Formulas: what establishes one, and that its two forms agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import sympy

from ...theory.errors import DraftcertError
from ...theory.formula import Formula
from ...theory.theorem import (
    MARGIN,
    Domain,
    Equal,
    Establishes,
    ExactValue,
    Infimum,
    LowerBound,
    Optimum,
    Range,
    Rows,
    SumAtLeast,
    SumEqual,
    Supremum,
    Theorem,
    UpperBound,
    Value,
)
from .claims import decide
from .compare import decide_equal, forms
from .errors import ProofError
from .points import points_of, value_at
from .rational import ONE, Expression
from .sums import divergence_term


def speaks_of(theorem: Theorem, established: Establishes) -> str:
    """What the theorem's conclusions say that the formula is: of rows, in a form that no other formula would fit.

    That its text occurs in a true equation says nothing: it occurs in `F - F = 0` too. So the formula has to be

    - the value of a claim about the certificate, or the level of the nearest rejected draft in one;
    - what all tokens of a row have of the divergence KL(p||q), by its definition;
    - the least sum over all drafts of terms that do not depend on it, or its D_a = ln(sum p^a q^(1-a)) / (a - 1);
    - the parameter of a family of rows by which these have the margin.

    Raises:
        ProofError: no conclusion says any of this.
    """
    formula = established.formula.expression.xreplace(established.renamed)
    for claim in theorem.conclusions:
        if isinstance(claim, OfCertificate) and (how := _of_certificate(claim, formula, established)):
            return how
        if isinstance(claim, SumEqual) and _is_divergence(claim, formula):
            return "divergence"
        if isinstance(claim, (SumAtLeast, SumEqual)) and _is_least_sum(claim, formula, established):
            return "least divergence"
    raise ProofError(
        f"{theorem.name}: no conclusion says of rows what {established.formula.name} = {formula} is; an equation in "
        "which it occurs does not"
    )


OfCertificate = ExactValue | LowerBound | UpperBound | Infimum | Supremum | Optimum
"""The claims about the certificate of rows, or of one row."""


def _of_certificate(claim: OfCertificate, formula: Expression, established: Establishes) -> str | None:
    value = claim.value
    if formula in ((value.total, *value.terms.values()) if isinstance(value, Value) else (value,)):
        return {LowerBound: "lower bound", UpperBound: "upper bound"}.get(type(claim), type(claim).__name__.lower())
    if isinstance(claim, ExactValue) and formula == claim.upper.threshold:
        return "level"
    parameter = established.parameter
    if parameter is not None and isinstance(claim, (Infimum, Supremum)) and parameter in claim.family.at:
        domain, what = formula_domain(established.formula), f"{established.formula.name}: the family's margin"
        first, *_, last = (token.probability for token in claim.family.tokens)
        decide_equal((first - last).xreplace({parameter: formula}) - MARGIN, domain, what)
        # Several parameters may give this margin; the family has those of one range.
        (inside,) = (each for each in claim.family.domain if each.symbol == parameter)
        for point in points_of(domain):
            if not value_at(formula - inside.lower, point) >= 0:
                raise ProofError(f"{what}: {parameter} is below its least value {inside.lower}", point)
        return "parameter of an extremal family"
    return None


def _is_divergence(claim: SumEqual, formula: Expression) -> bool:
    """Whether it says that the formula's sum is that of `p ln p - p ln q`, q being a draft: what has mass one."""
    return claim.right == 0 and any(
        claim.left == {c.name: divergence_term(c, draft[c.name]) - formula for c in claim.rows.classes}
        for draft in _drafts(claim.rows)
    )


def _is_least_sum(claim: SumAtLeast | SumEqual, formula: Expression, established: Establishes) -> bool:
    own = formula.free_symbols
    if not own or any(own & term.free_symbols for term in claim.left.values()):
        return False
    if not all(value_at(formula, point).is_finite() for point in points_of(claim.rows.parameters)):
        return False
    if claim.right == formula:
        return True
    orders = [order for order in established.renamed.values() if order.is_Rational and order != 1]
    return any(
        claim.left == {c.name: sign * c.probability**a * draft[c.name] ** (1 - a) for c in claim.rows.classes}
        and claim.right == sign * sympy.exp((a - 1) * formula)
        for draft in _drafts(claim.rows)
        for a in orders
        for sign in (sympy.sign(a - 1),)
    )


def _drafts(rows: Rows) -> list[Mapping[str, Expression]]:
    """The facts that give every token something, one in all."""
    names = {each.name for each in rows.classes}
    return [f.terms for f in rows.facts if f.total == 1 and not f.at_least and f.terms.keys() == names]


def covers(theorem: Theorem, established: Establishes) -> tuple[str, ...]:
    """The arguments that are given by numbers where the theorem speaks of the formula: it is not shown for others.

    Raises:
        ProofError: the other arguments do not take all values there, as where one of them is a function of another.
    """
    arguments = [each.symbol for each in established.formula.arguments]
    given = {symbol: sympy.sympify(established.renamed.get(symbol, symbol)) for symbol in arguments}
    free = [symbol for symbol in arguments if given[symbol].free_symbols]
    variables = sorted({symbol for value in given.values() for symbol in value.free_symbols}, key=str)
    if sympy.Matrix([[sympy.diff(given[symbol], v) for v in variables] for symbol in free]).rank() < len(free):
        raise ProofError(f"{theorem.name}: the arguments of {established.formula.name} do not vary freely there")
    return tuple(f"{symbol} = {given[symbol]}" for symbol in arguments if symbol not in free)


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
            difference = formula.expression - formula.stable
            either = (difference, difference.xreplace(established.renamed))
            for claim in theorem.conclusions:
                if (
                    isinstance(claim, SumEqual)
                    and claim.right == 0
                    and set(claim.left.values()) in ({either[0]}, {either[1]})
                ):
                    return
    raise ProofError(f"{what}: no theorem concludes that its two forms have the same sum")
