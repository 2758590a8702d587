"""Explicit families of rows: they are what they say, and their certificate is the value claimed."""

from __future__ import annotations

from dataclasses import replace

import sympy

from ...theory.pool import select_pool
from ...theory.theorem import Evident, Family, FamilyTokens, Range, Role, Rows, TokenClass, Value
from .compare import decide_at_least, decide_closed_ends, decide_equal, forms
from .errors import ProofError
from .points import points_of, value_at
from .rational import ONE, ZERO, Expression
from .sums import is_integer

FAR_OUT = sympy.Integer(10) ** 6
"""Where a family is looked at whose integer goes to infinity."""


def _family(rows: Rows, family: Family, what: str) -> Expression:
    """The certificate of a family, from the definition by T1 and T3, after checking that it consists of such rows."""
    what = f"{what}, family"
    for each in rows.parameters:
        if each.symbol not in family.at:
            raise ProofError(f"{what}: {each.symbol} is not given")
    known = {each.symbol for each in family.domain}
    parts = (*family.at.values(), *(t.probability for t in family.tokens), *(t.count for t in family.tokens))
    if unknown := {s for part in parts for s in part.free_symbols} - known:
        raise ProofError(f"{what}: {sorted(map(str, unknown))} are no variables of it")
    for each in rows.parameters:
        _inside(each, family.at[each.symbol], family, what)
        if each.integer and not is_integer(family.at[each.symbol], family.domain):
            raise ProofError(f"{what}: {each.symbol} = {family.at[each.symbol]} is not an integer")
    for each in rows.classes:
        tokens = [t for t in family.tokens if t.of == each.name]
        if each.count is not None:
            number = sympy.Add(*(t.count for t in tokens))
            missing = number - each.count.xreplace(family.at)
            decide_equal(missing, family.domain, f"{what}: number of tokens of '{each.name}'")
        for token in tokens:
            _token_belongs(each, token, family, what)
    mass = sympy.Add(*(t.count * t.probability for t in family.tokens))
    decide_equal(mass - 1, family.domain, f"{what}: mass")
    for fact in rows.facts:
        total = sympy.Add(*(_fact_term(rows, fact, t, family) * t.count for t in family.tokens))
        short = total - fact.total.xreplace(family.at)
        if fact.at_least:
            decide_at_least(short, family.domain, Evident(), f"{what}: a fact on sums")
        else:
            decide_equal(short, family.domain, f"{what}: a fact on sums")
    value = _pooled_value(rows, family, what)
    _family_by_pool(rows, family, value, what)
    return value


def _inside(each: Range, value: Expression, family: Family, what: str, of: str | None = None) -> None:
    place = f"{what}: {of or each.symbol} = {value} within its range"
    for bound, above, is_open in ((each.lower, False, each.open_below), (each.upper, True, each.open_above)):
        ends = bound.args if isinstance(bound, sympy.Min if above else sympy.Max) else (bound,)
        for end in ends:
            if end.is_infinite:
                continue
            at = end.xreplace(family.at)
            decide_at_least(at - value if above else value - at, family.domain, Evident(), place, strict=is_open)


def _token_belongs(each: TokenClass, token: FamilyTokens, family: Family, what: str) -> None:
    decide_at_least(token.count, family.domain, Evident(), f"{what}: number of tokens in '{each.name}'")
    if not is_integer(token.count, family.domain):
        raise ProofError(f"{what}: {token.count} is not a whole number of tokens in '{each.name}'")
    if not each.ranges:
        at = each.probability.xreplace(family.at)
        decide_equal(token.probability - at, family.domain, f"{what}: the probability of '{each.name}'")
    elif len(each.ranges) == 1 and each.ranges[0].symbol == each.probability:
        _inside(each.ranges[0], token.probability, family, what, f"a token of '{each.name}'")
    else:
        raise ProofError(f"{what}: class '{each.name}' is not given by the range of its probability")


def _fact_term(rows: Rows, fact, token: FamilyTokens, family: Family) -> Expression:
    each = next(c for c in rows.classes if c.name == token.of)
    own = {r.symbol: token.probability for r in each.ranges}
    return fact.terms.get(each.name, ZERO).xreplace({**family.at, **own})


def _pooled_value(rows: Rows, family: Family, what: str) -> Expression:
    """T3 on the tokens marked as pooled, once T1 confirms the marks: the mean separates pooled from unpooled."""
    roles = {each.name: each.role for each in rows.classes}
    pooled = [t for t in family.tokens if t.pooled]
    if any(roles[t.of] is Role.REJECTED for t in pooled):
        raise ProofError(f"{what}: a token that is neither accepted nor a competitor is pooled")
    if {roles[t.of] for t in pooled} != {Role.ACCEPTED, Role.COMPETITOR}:
        raise ProofError(f"{what}: the pool needs accepted tokens and competitors")
    mass = sympy.Add(*(t.count * t.probability for t in pooled))
    level = mass / sympy.Add(*(t.count for t in pooled))
    for token in family.tokens:
        role = roles[token.of]
        if role is Role.REJECTED:
            continue
        above = (role is Role.ACCEPTED) == token.pooled
        margin = token.probability - level if above else level - token.probability
        side = "above" if above else "below"
        place = f"{what}: '{token.of}' at {token.probability} lies {side} the level {level}"
        decide_at_least(sympy.cancel(margin), family.domain, Evident(), place)
    return sympy.Add(
        *(t.count * t.probability * (sympy.log(t.probability) - sympy.log(level)) for t in pooled if t.probability != 0)
    )


def _family_by_pool(rows: Rows, family: Family, value: Expression, what: str) -> None:
    """Second opinion: exact rows of the family through `select_pool`, and the competitors are the most likely ones."""
    roles = {each.name: each.role for each in rows.classes}
    far_out = tuple(replace(r, lower=FAR_OUT) if r.integer and r.symbol == family.limit else r for r in family.domain)
    for point in points_of(far_out):
        groups: dict[Role, list[Expression]] = {role: [] for role in Role}
        for token in family.tokens:
            at, count = token.probability.xreplace(point), sympy.Integer(token.count.xreplace(point))
            if not isinstance(at, sympy.Rational):
                return  # an irrational family: its exact arithmetic is the claim itself
            groups[roles[token.of]] += [at] * (min(1, int(count)) if roles[token.of] is Role.REJECTED else int(count))
        accepted, competitors = (sorted(groups[r], reverse=True) for r in (Role.ACCEPTED, Role.COMPETITOR))
        if groups[Role.REJECTED] and max(groups[Role.REJECTED]) > min(competitors):
            raise ProofError(f"{what}: a rejected token is more likely than a competitor", point)
        pool = select_pool(accepted, competitors)
        tokens = accepted[: pool.accepted] + competitors[len(competitors) - pool.competitors :]
        exact = sympy.Add(*(p * sympy.log(p / pool.level) for p in tokens if p != 0))
        if not value_at(value - exact, point).contains(0):
            raise ProofError(f"{what}: its certificate is {exact}, not {value.xreplace(point)}", point)


def decide_attained(rows: Rows, value: Value, family: Family, what: str) -> None:
    """The family's certificate is the value, in the limit if the family says so, at the closed ends too."""
    reached = _family(rows, family, what)
    claimed = value.total.xreplace(family.at) + sympy.Add(*(_value_term(rows, value, t, family) for t in family.tokens))
    what = f"{what}, family: its certificate against the value"
    if family.limit is None:
        decide_equal(reached - claimed, family.domain, what)
        decide_closed_ends(reached, claimed, family.domain, what)
        return
    others = tuple(each for each in family.domain if each.symbol != family.limit)
    place = next((each for each in family.domain if each.symbol == family.limit), None)
    if place is None or family.limit in claimed.free_symbols:
        raise ProofError(f"{what}: the value still speaks of {family.limit}")
    if any(place.symbol in each.lower.free_symbols | each.upper.free_symbols for each in others):
        raise ProofError(f"{what}: {place.symbol} bounds another variable, so it has no limit by itself")
    if place.integer:
        # n -> oo as 1/n -> 0: only the signs for large n matter, so the bounds of n become bounds of 1/n.
        if place.upper != sympy.oo:
            raise ProofError(f"{what}: {place.symbol} does not go to infinity")
        small = sympy.Dummy("u", positive=True)
        reached = reached.xreplace({place.symbol: 1 / small})
        place = Range(small, ZERO, 1 / sympy.Max(ONE, place.lower))
    limit = forms((*others, place)).at_end(reached, place.symbol, place.lower)
    decide_equal(limit - claimed, others, what)


def _value_term(rows: Rows, value: Value, token: FamilyTokens, family: Family) -> Expression:
    each = next(c for c in rows.classes if c.name == token.of)
    term = value.terms.get(each.name, ZERO)
    if token.probability == 0 or term == 0:
        return ZERO  # a sum of p ln(p/c): a token of probability 0 adds nothing
    own = {r.symbol: token.probability for r in each.ranges}
    return token.count * term.xreplace({**family.at, **own})


def decide_covered(rows: Rows, value: Expression, family: Family, what: str) -> None:
    """The value speaks of given parameters; the family must have a member for each of their values."""
    for each in rows.parameters:
        if each.symbol not in value.free_symbols:
            continue
        if each not in family.domain or family.at.get(each.symbol) != each.symbol:
            raise ProofError(f"{what}: the family does not cover all values of {each.symbol} that the bound speaks of")
