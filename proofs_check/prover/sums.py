"""Sums over all rows of a kind, decided token by token, and the two bounds of a divergence that are such sums.

The one analytic fact used for sums of any length is that `p ln(p/q)` is a closed convex function, so comparing terms
where `p, q > 0` covers zeros.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy

from ...theory.theorem import (
    DRAFT,
    THRESHOLD,
    Domain,
    Evident,
    Range,
    Role,
    Rows,
    SumProof,
    TokenClass,
    Value,
    Witness,
)
from .compare import decide_at_least, decide_equal, forms
from .errors import ProofError
from .rational import ONE, ZERO, Expression


def _draft_range(role: Role) -> Range:
    lower, upper = {
        Role.ACCEPTED: (ZERO, THRESHOLD),
        Role.COMPETITOR: (THRESHOLD, ONE),
        Role.REJECTED: (ZERO, ONE),
    }[role]
    return Range(DRAFT, lower, upper)


_THRESHOLD_RANGE = Range(THRESHOLD, ZERO, ONE)


def _class_domain(rows: Rows, each: TokenClass, with_draft: bool) -> Domain:
    """Parameters, then the token's own probability; with the draft, the threshold and the token's draft probability."""
    if with_draft:
        return (*rows.parameters, _THRESHOLD_RANGE, *each.ranges, _draft_range(each.role))
    return (*rows.parameters, *each.ranges)


def decide_sum(
    rows: Rows,
    terms: Mapping[str, Expression],
    total: Expression,
    proof: SumProof,
    what: str,
    with_draft: bool = False,
    equal: bool = False,
) -> None:
    """Decide `sum over the row of its terms >= total` (`=`), for every row (and every rejected draft of it)."""
    shared: Domain = (*rows.parameters, _THRESHOLD_RANGE) if with_draft else rows.parameters
    _shared_only(rows, proof, with_draft, what)
    if len(proof.facts) not in (0, len(rows.facts)):
        raise ProofError(f"{what}: {len(proof.facts)} multipliers for {len(rows.facts)} facts")
    used = list(zip(proof.facts, rows.facts, strict=False))
    for multiplier, fact in used:
        if fact.at_least and (equal or not forms(shared).signs.nonnegative(multiplier)):
            raise ProofError(f"{what}: the multiplier {multiplier} of an inequality is not seen to be nonnegative")
    known = proof.mass + (proof.draft_mass if with_draft else ZERO)
    known += sympy.Add(*(multiplier * fact.total for multiplier, fact in used))
    for each in rows.classes:
        constant = proof.constants.get(each.name, ZERO)
        term = terms.get(each.name, ZERO) - proof.mass * each.probability - constant
        term -= sympy.Add(*(multiplier * fact.terms.get(each.name, ZERO) for multiplier, fact in used))
        if with_draft:
            term -= proof.draft_mass * DRAFT
        place = f"{what}, each token of '{each.name}'"
        domain = _class_domain(rows, each, with_draft)
        if equal:
            decide_equal(term, domain, place)
        else:
            decide_at_least(term, domain, proof.slack.get(each.name, Evident()), place)
        if each.count is None and constant != 0:
            raise ProofError(f"{place}: a constant cannot be summed over an unknown number of tokens")
        known += constant * (each.count if each.count is not None else ZERO)
    if equal:
        decide_equal(known - total, shared, f"{what}, the total")
    else:
        decide_at_least(known - total, shared, proof.rest, f"{what}, the total")


def _shared_only(rows: Rows, proof: SumProof, with_draft: bool, what: str) -> None:
    """Multipliers are the same for every token, so they may use nothing of a single one."""
    allowed = {each.symbol for each in rows.parameters} | ({THRESHOLD} if with_draft else set())
    if not with_draft and proof.draft_mass != 0:
        raise ProofError(f"{what}: the mass of a draft is used where there is none")
    if unknown := set(proof.constants) - {each.name for each in rows.classes}:
        raise ProofError(f"{what}: there is no class {sorted(unknown)}")
    for each in (proof.mass, proof.draft_mass, *proof.facts, *proof.constants.values()):
        if own := each.free_symbols - allowed:
            raise ProofError(
                f"{what}: the multiplier {each} uses {sorted(map(str, own))}, which differs between tokens"
            )


def divergence_term(each: TokenClass, draft: Expression) -> Expression:
    """The token's term of KL(p||q); `p ln p - p ln q` so that a token of probability 0 gives 0."""
    return each.probability * (sympy.log(each.probability) - sympy.log(draft)) if each.probability != 0 else ZERO


def _rows_are_sound(rows: Rows, what: str) -> None:
    """Probabilities are nonnegative, counts are numbers of tokens, and there is something accepted and a competitor."""
    for each in rows.classes:
        domain = _class_domain(rows, each, False)
        place = f"{what}, class '{each.name}'"
        decide_at_least(each.probability, domain, Evident(), f"{place}: probability")
        if each.count is not None:
            decide_at_least(each.count, rows.parameters, Evident(), f"{place}: number of tokens")
            if not is_integer(each.count, rows.parameters):
                raise ProofError(f"{place}: {each.count} is not a whole number of tokens")
        if reserved := {DRAFT, THRESHOLD} & {r.symbol for r in domain}:
            raise ProofError(f"{place}: {reserved} are the draft's")
    roles = {each.role for each in rows.classes}
    if not {Role.ACCEPTED, Role.COMPETITOR} <= roles:
        raise ProofError(f"{what}: a row needs accepted tokens and competitors")


def is_integer(count: Expression, domain: Domain) -> bool:
    """Whether an expression is seen to be an integer: a polynomial of integer variables with integer coefficients."""
    integers = {each.symbol for each in domain if each.integer}
    if not count.free_symbols:
        return bool(count.is_Integer)
    if not count.free_symbols <= integers or not count.is_polynomial():
        return False
    return all(c.is_Integer for c in sympy.Poly(count, *sorted(integers, key=str)).coeffs())


def decide_lower(rows: Rows, value: Value, proof: SumProof, what: str) -> None:
    """`KL(p||q) >= value` for every row and every rejected draft of it, by weak duality term by term."""
    _rows_are_sound(rows, what)
    if any(part.has(DRAFT, THRESHOLD) for part in (value.total, *value.terms.values())):
        raise ProofError(f"{what}: the bound depends on the draft")
    terms = {c.name: divergence_term(c, DRAFT) - value.terms.get(c.name, ZERO) for c in rows.classes}
    decide_sum(rows, terms, value.total, proof, f"{what}, lower bound", with_draft=True)


def decide_upper(rows: Rows, value: Value, witness: Witness, what: str) -> None:
    """Some rejected draft has `KL(p||q) <= value`, for every row."""
    _rows_are_sound(rows, what)
    what = f"{what}, upper bound"
    if own := witness.threshold.free_symbols - {each.symbol for each in rows.parameters}:
        raise ProofError(f"{what}: the threshold uses {sorted(map(str, own))}, which differs between tokens")
    for each in rows.classes:
        draft = _draft_of(witness, each, what)
        domain = _class_domain(rows, each, False)
        place = f"{what}: the draft of '{each.name}'"
        strict = each.probability != 0
        decide_at_least(draft, domain, Evident(), place, strict=strict)
        if each.role is Role.ACCEPTED:
            decide_at_least(witness.threshold - draft, domain, Evident(), f"{place} against the threshold")
        if each.role is Role.COMPETITOR:
            decide_at_least(draft - witness.threshold, domain, Evident(), f"{place} against the threshold")
    drafts = {each.name: _draft_of(witness, each, what) for each in rows.classes}
    decide_sum(rows, drafts, ONE, witness.mass, f"{what}: the draft's mass", equal=True)
    gains = {c.name: value.terms.get(c.name, ZERO) - divergence_term(c, drafts[c.name]) for c in rows.classes}
    decide_sum(rows, gains, -value.total, witness.divergence, f"{what}: the draft's divergence")


def _draft_of(witness: Witness, each: TokenClass, what: str) -> Expression:
    if each.name not in witness.draft:
        raise ProofError(f"{what}: no draft is given for class '{each.name}'")
    return witness.draft[each.name]
