"""The kernel: decides every claim of a theorem by itself and is the only place that mints `Proved`.

What it trusts: Python, sympy's polynomial arithmetic and derivatives, python-flint's balls, and the records' meaning as
written in `theory.theorem`. What it does not trust: any prose, evidence or worked value in a theorem. The one analytic
fact used for sums of any length is that `p ln(p/q)` is a closed convex function, so comparing terms where `p, q > 0`
covers zeros. `signs` reads signs, `logs` decides equalities, `balls` subdivides; equalities and signs get a second
opinion in ball arithmetic at random exact points, which also finds counterexamples.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, replace
from fractions import Fraction
from functools import cache, partial
from importlib.metadata import version
from itertools import islice

import sympy
from flint import arb

from ..theory.errors import DraftcertError
from ..theory.exact import exact_certificate
from ..theory.formula import Formula
from ..theory.pool import select_pool
from ..theory.theorem import (
    DRAFT,
    THRESHOLD,
    AtLeast,
    Certificate,
    Claim,
    Domain,
    Equal,
    Establishes,
    Evidence,
    Evident,
    Family,
    FamilyTokens,
    Formal,
    Growth,
    Infimum,
    Limit,
    LowerBound,
    Optimum,
    Range,
    Role,
    Rows,
    Subdivision,
    SumAtLeast,
    SumEqual,
    SumProof,
    Supremum,
    Theorem,
    TokenClass,
    UpperBound,
    Value,
    Witness,
    WorkedRow,
)
from .balls import ball, evaluate, precision
from .logs import LogForm, elementary
from .rational import Expression
from .signs import NONNEGATIVE, POSITIVE, Signs

ZERO, ONE = sympy.Integer(0), sympy.Integer(1)
POINTS = 12
"""Random exact points of a second opinion."""
FAR_OUT = sympy.Integer(10) ** 6
"""Where a family is looked at whose integer goes to infinity."""
BITS = 200
"""Precision of ball arithmetic at points; a disagreement below 2^-100 of the terms would not be seen there."""

Point = dict[sympy.Basic, Expression]


class ProofError(DraftcertError):
    """A claim is not established. `counterexample` is a point where it fails, if one was found."""

    def __init__(self, reason: str, counterexample: Mapping[sympy.Basic, sympy.Basic] | None = None) -> None:
        self.reason = reason
        self.counterexample = None if counterexample is None else {str(k): str(v) for k, v in counterexample.items()}
        at = "" if self.counterexample is None else f"; it fails at {self.counterexample}"
        super().__init__(reason + at)


_MINT = object()


@dataclass(frozen=True)
class Proved:
    """A formula or theorem, by content hash, that this kernel has established. Only the kernel makes one."""

    kind: str
    name: str
    sha256: str
    method: str
    tools: tuple[str, ...]
    by: tuple[str, ...] = ()
    mint: InitVar[object] = None

    def __post_init__(self, mint: object) -> None:
        """Refuse everybody but the kernel."""
        if mint is not _MINT:
            raise DraftcertError(f"Proved('{self.name}') can only be made by proofs_check.kernel, from a derivation")


TOOLS = tuple(f"{name} {version(name)}" for name in ("sympy", "python-flint"))


# ---- points ----------------------------------------------------------------------------------------------------


@cache
def _points(domain: Domain) -> tuple[Point, ...]:
    """Random exact interior points, the same in every run. A domain in which none is found is refused: it is empty."""
    source = random.Random(repr(domain))
    drawn = (_draw(domain, source) for _ in range(20 * POINTS))
    found = tuple(islice((point for point in drawn if point is not None), POINTS))
    if not found:
        raise ProofError(f"the domain {_text(domain)} has no interior point: a claim about nothing")
    return found


def _draw(domain: Domain, source: random.Random) -> Point | None:
    point: Point = {}
    for each in domain:
        lower, upper = (_rational(end.xreplace(point)) for end in (each.lower, each.upper))
        if each.integer:
            low = int(sympy.ceiling(lower))
            high = low + 5 if upper is None else min(int(sympy.floor(upper)), low + 5)
            if high < low:
                return None
            point[each.symbol] = sympy.Integer(source.randint(low, high))
            continue
        share = sympy.Rational(source.choice((1, 7, 64, source.randint(1, 127), 121, 127)), 128)
        if lower is None:
            lower = (ZERO if upper is None else upper) - 9
        if upper is None:
            upper = lower + 18
        if not lower < upper:
            return None
        point[each.symbol] = lower + share * (upper - lower)
    return point


def _rational(end: Expression) -> Expression:
    """The end itself, or a rational near an irrational one; `None` at infinity."""
    if end.is_infinite:
        return None
    return end if isinstance(end, sympy.Rational) else sympy.Rational(str(end.evalf(40)))


def _text(domain: Domain) -> str:
    return ", ".join(f"{r.lower} <= {r.symbol} <= {r.upper}" for r in domain)


def _at(expression: Expression, point: Mapping[sympy.Basic, sympy.Rational]) -> arb:
    with precision(BITS):
        return evaluate(expression, {symbol: ball(number) for symbol, number in point.items()})


@cache
def _forms(domain: Domain) -> LogForm:
    """What has been decided on a domain is not decided again."""
    return LogForm(Signs(domain, _points(domain)))


# ---- equalities and inequalities -------------------------------------------------------------------------------


def _equal(difference: Expression, domain: Domain, what: str) -> None:
    """Decide that an expression vanishes inside the domain, exactly, with a second opinion at points."""
    difference = sympy.sympify(difference)
    for point in _points(domain):
        value = _at(difference, point)
        if value.is_finite() and not value.contains(0):
            raise ProofError(f"{what}: the sides differ by {value.str(6)}", point)
    if not _forms(domain).is_zero(difference):
        raise ProofError(f"{what}: the sides are not seen to be equal; their difference is {difference}")


def equal_inside(difference: Expression, domain: Domain) -> bool:
    """Whether an expression is seen to vanish inside a domain."""
    try:
        _equal(difference, domain, "equality")
    except DraftcertError:
        return False
    return True


def _at_least(difference: Expression, domain: Domain, by: Evidence, what: str, strict: bool = False) -> None:
    """Decide that an expression is nonnegative on the domain (positive inside when strict)."""
    difference = sympy.sympify(difference)
    for point in _points(domain):
        value = _at(difference, point)
        if value < 0:
            raise ProofError(f"{what}: the difference is {value.str(6)}", point)
    if isinstance(by, Evident):
        form = difference if by.form is None else by.form
        if by.form is not None:
            _equal(difference - form, domain, f"{what}: the form {form}")
        if _forms(domain).signs.bound(form) < (POSITIVE if strict else NONNEGATIVE):
            raise ProofError(f"{what}: the sign of {form} cannot be read off on {_text(domain)}")
    elif isinstance(by, Growth):
        _grows(difference, domain, by, what, strict)
    elif isinstance(by, Subdivision):
        _subdivide(difference, domain, by.pieces, what)
    else:
        raise ProofError(f"{what}: {by!r} is no evidence")


def _grows(difference: Expression, domain: Domain, by: Growth, what: str, strict: bool) -> None:
    others = tuple(each for each in domain if each.symbol != by.symbol)
    found = [each for each in domain if each.symbol == by.symbol]
    if not found or found[0].integer:
        raise ProofError(f"{what}: {by.symbol} is not a continuous variable of {_text(domain)}")
    if any(by.symbol in each.lower.free_symbols | each.upper.free_symbols for each in others):
        raise ProofError(f"{what}: {by.symbol} enters the range of another variable, so it does not range freely")
    end = found[0].upper if by.from_above else found[0].lower
    start = _forms(domain).at_end(difference, by.symbol, end)
    slope = sympy.diff(elementary(difference), by.symbol) * (-1 if by.from_above else 1)
    _at_least(start, others, by.start, f"{what}, at {by.symbol} = {end}")
    _at_least(slope, domain, by.slope, f"{what}, its slope in {by.symbol}", strict)


def _subdivide(difference: Expression, domain: Domain, pieces: int, what: str) -> None:
    """Positive on every piece of a subdivision of the unit cube that parametrises the (bounded) domain."""
    if any(each.integer for each in domain):
        raise ProofError(f"{what}: a domain with integers is not subdivided")
    queue = [tuple((Fraction(0), Fraction(1)) for _ in domain)]
    with precision(64):
        for _ in range(pieces):
            if not queue:
                return
            cube = queue.pop()
            if _over(difference, domain, cube) > 0:
                continue
            widest = max(range(len(cube)), key=lambda i: cube[i][1] - cube[i][0])
            low, high = cube[widest]
            middle = (low + high) / 2
            for half in ((low, middle), (middle, high)):
                queue.append((*cube[:widest], half, *cube[widest + 1 :]))
    if queue:
        raise ProofError(f"{what}: {difference} is not seen to be positive after {pieces} pieces")


def _over(difference: Expression, domain: Domain, cube: tuple[tuple[Fraction, Fraction], ...]) -> arb:
    values: dict[sympy.Basic, arb] = {}
    for each, (low, high) in zip(domain, cube, strict=True):
        share = (arb(low.numerator) / low.denominator).union(arb(high.numerator) / high.denominator)
        lower, upper = evaluate(each.lower, values), evaluate(each.upper, values)
        values[each.symbol] = lower + share * (upper - lower)
    return evaluate(difference, values)


def _closed_ends(left: Expression, right: Expression, domain: Domain, what: str) -> None:
    """Both sides extend to every end that belongs to the domain, and to the same value there."""
    form = _forms(domain)
    for each in domain:
        for end, is_open in ((each.lower, each.open_below), (each.upper, each.open_above)):
            if is_open or each.integer or end.is_infinite or end.has(sympy.Max, sympy.Min):
                continue
            others = tuple(r for r in domain if r != each)
            if any(each.symbol in r.lower.free_symbols | r.upper.free_symbols for r in others):
                continue
            at = f"{what}, at {each.symbol} = {end}"
            try:
                values = [form.at_end(side, each.symbol, end) for side in (left, right)]
            except DraftcertError as error:
                raise ProofError(f"{at}: {error}") from error
            _equal(values[0] - values[1], others, at)


# ---- sums over rows --------------------------------------------------------------------------------------------


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


def _sum_at_least(
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
        if fact.at_least and (equal or not _forms(shared).signs.nonnegative(multiplier)):
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
            _equal(term, domain, place)
        else:
            _at_least(term, domain, proof.slack.get(each.name, Evident()), place)
        if each.count is None and constant != 0:
            raise ProofError(f"{place}: a constant cannot be summed over an unknown number of tokens")
        known += constant * (each.count if each.count is not None else ZERO)
    if equal:
        _equal(known - total, shared, f"{what}, the total")
    else:
        _at_least(known - total, shared, proof.rest, f"{what}, the total")


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


def _divergence(each: TokenClass, draft: Expression) -> Expression:
    """The token's term of KL(p||q); `p ln p - p ln q` so that a token of probability 0 gives 0."""
    return each.probability * (sympy.log(each.probability) - sympy.log(draft)) if each.probability != 0 else ZERO


def _rows_are_sound(rows: Rows, what: str) -> None:
    """Probabilities are nonnegative, counts are numbers of tokens, and there is something accepted and a competitor."""
    for each in rows.classes:
        domain = _class_domain(rows, each, False)
        place = f"{what}, class '{each.name}'"
        _at_least(each.probability, domain, Evident(), f"{place}: probability")
        if each.count is not None:
            _at_least(each.count, rows.parameters, Evident(), f"{place}: number of tokens")
            if not _is_integer(each.count, rows.parameters):
                raise ProofError(f"{place}: {each.count} is not a whole number of tokens")
        if reserved := {DRAFT, THRESHOLD} & {r.symbol for r in domain}:
            raise ProofError(f"{place}: {reserved} are the draft's")
    roles = {each.role for each in rows.classes}
    if not {Role.ACCEPTED, Role.COMPETITOR} <= roles:
        raise ProofError(f"{what}: a row needs accepted tokens and competitors")


def _is_integer(count: Expression, domain: Domain) -> bool:
    integers = {each.symbol for each in domain if each.integer}
    if not count.free_symbols <= integers or not count.is_polynomial():
        return False
    return bool(count.is_Integer) or all(c.is_Integer for c in sympy.Poly(count, *sorted(integers, key=str)).coeffs())


def _lower(rows: Rows, value: Value, proof: SumProof, what: str) -> None:
    """`KL(p||q) >= value` for every row and every rejected draft of it, by weak duality term by term."""
    _rows_are_sound(rows, what)
    if any(part.has(DRAFT, THRESHOLD) for part in (value.total, *value.terms.values())):
        raise ProofError(f"{what}: the bound depends on the draft")
    terms = {c.name: _divergence(c, DRAFT) - value.terms.get(c.name, ZERO) for c in rows.classes}
    _sum_at_least(rows, terms, value.total, proof, f"{what}, lower bound", with_draft=True)


def _upper(rows: Rows, value: Value, witness: Witness, what: str) -> None:
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
        _at_least(draft, domain, Evident(), place, strict=strict)
        if each.role is Role.ACCEPTED:
            _at_least(witness.threshold - draft, domain, Evident(), f"{place} against the threshold")
        if each.role is Role.COMPETITOR:
            _at_least(draft - witness.threshold, domain, Evident(), f"{place} against the threshold")
    drafts = {each.name: _draft_of(witness, each, what) for each in rows.classes}
    _sum_at_least(rows, drafts, ONE, witness.mass, f"{what}: the draft's mass", equal=True)
    gains = {c.name: value.terms.get(c.name, ZERO) - _divergence(c, drafts[c.name]) for c in rows.classes}
    _sum_at_least(rows, gains, -value.total, witness.divergence, f"{what}: the draft's divergence")


def _draft_of(witness: Witness, each: TokenClass, what: str) -> Expression:
    if each.name not in witness.draft:
        raise ProofError(f"{what}: no draft is given for class '{each.name}'")
    return witness.draft[each.name]


# ---- explicit families -----------------------------------------------------------------------------------------


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
        if each.integer and not _is_integer(family.at[each.symbol], family.domain):
            raise ProofError(f"{what}: {each.symbol} = {family.at[each.symbol]} is not an integer")
    for each in rows.classes:
        tokens = [t for t in family.tokens if t.of == each.name]
        if each.count is not None:
            number = sympy.Add(*(t.count for t in tokens))
            _equal(number - each.count.xreplace(family.at), family.domain, f"{what}: number of tokens of '{each.name}'")
        for token in tokens:
            _token_belongs(each, token, family, what)
    mass = sympy.Add(*(t.count * t.probability for t in family.tokens))
    _equal(mass - 1, family.domain, f"{what}: mass")
    for fact in rows.facts:
        total = sympy.Add(*(_fact_term(rows, fact, t, family) * t.count for t in family.tokens))
        short = total - fact.total.xreplace(family.at)
        if fact.at_least:
            _at_least(short, family.domain, Evident(), f"{what}: a fact on sums")
        else:
            _equal(short, family.domain, f"{what}: a fact on sums")
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
            _at_least(at - value if above else value - at, family.domain, Evident(), place, strict=is_open)


def _token_belongs(each: TokenClass, token: FamilyTokens, family: Family, what: str) -> None:
    _at_least(token.count, family.domain, Evident(), f"{what}: number of tokens in '{each.name}'")
    if not _is_integer(token.count, family.domain):
        raise ProofError(f"{what}: {token.count} is not a whole number of tokens in '{each.name}'")
    if not each.ranges:
        at = each.probability.xreplace(family.at)
        _equal(token.probability - at, family.domain, f"{what}: the probability of '{each.name}'")
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
        _at_least(sympy.cancel(margin), family.domain, Evident(), place)
    return sympy.Add(
        *(t.count * t.probability * (sympy.log(t.probability) - sympy.log(level)) for t in pooled if t.probability != 0)
    )


def _family_by_pool(rows: Rows, family: Family, value: Expression, what: str) -> None:
    """Second opinion: exact rows of the family through `select_pool`, and the competitors are the most likely ones."""
    roles = {each.name: each.role for each in rows.classes}
    far_out = tuple(replace(r, lower=FAR_OUT) if r.integer and r.symbol == family.limit else r for r in family.domain)
    for point in _points(far_out):
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
        if not _at(value - exact, point).contains(0):
            raise ProofError(f"{what}: its certificate is {exact}, not {value.xreplace(point)}", point)


def _attained(rows: Rows, value: Value, family: Family, what: str) -> None:
    """The family's certificate is the value, in the limit if the family says so, at the closed ends too."""
    reached = _family(rows, family, what)
    claimed = value.total.xreplace(family.at) + sympy.Add(*(_value_term(rows, value, t, family) for t in family.tokens))
    what = f"{what}, family: its certificate against the value"
    if family.limit is None:
        _equal(reached - claimed, family.domain, what)
        _closed_ends(reached, claimed, family.domain, what)
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
    limit = _forms((*others, place)).at_end(reached, place.symbol, place.lower)
    _equal(limit - claimed, others, what)


def _value_term(rows: Rows, value: Value, token: FamilyTokens, family: Family) -> Expression:
    each = next(c for c in rows.classes if c.name == token.of)
    term = value.terms.get(each.name, ZERO)
    if token.probability == 0 or term == 0:
        return ZERO  # a sum of p ln(p/c): a token of probability 0 adds nothing
    own = {r.symbol: token.probability for r in each.ranges}
    return token.count * term.xreplace({**family.at, **own})


def _covers_given(rows: Rows, value: Expression, family: Family, what: str) -> None:
    """The value speaks of given parameters; the family must have a member for each of their values."""
    for each in rows.parameters:
        if each.symbol not in value.free_symbols:
            continue
        if each not in family.domain or family.at.get(each.symbol) != each.symbol:
            raise ProofError(f"{what}: the family does not cover all values of {each.symbol} that the bound speaks of")


# ---- the convex program of a small index set -------------------------------------------------------------------


def _optimum(claim: Optimum, what: str) -> None:
    """Primal and dual feasibility, complementarity and stationarity, of the program that is built here."""
    target = (*claim.accepted, *claim.competitors, *claim.others)
    a, m = len(claim.accepted), len(claim.competitors)
    shape = [len(row) for row in claim.multipliers]
    if len(claim.draft) != len(target) or shape != [a] * m or not a or not m:
        raise ProofError(f"{what}: drafts or multipliers do not match {a} accepted tokens and {m} competitors")
    domain = claim.domain
    _equal(sympy.Add(*target) - 1, domain, f"{what}: the target's mass")
    _equal(sympy.Add(*claim.draft) - 1, domain, f"{what}: the draft's mass (primal feasibility)")
    gradient = [claim.mass_multiplier - p / q for p, q in zip(target, claim.draft, strict=True)]
    for j, (p, q) in enumerate(zip(target, claim.draft, strict=True)):
        _at_least(p, domain, Evident(), f"{what}: target token {j}")
        _at_least(q, domain, Evident(), f"{what}: draft token {j} (primal feasibility)", strict=True)
    for i in range(m):
        for k in range(a):
            slack, multiplier = claim.draft[a + i] - claim.draft[k], claim.multipliers[i][k]
            pair = f"competitor {i} against accepted {k}"
            _at_least(slack, domain, Evident(), f"{what}: {pair} (primal feasibility)")
            _at_least(multiplier, domain, Evident(), f"{what}: {pair} (dual feasibility)")
            _equal(slack * multiplier, domain, f"{what}: {pair} (complementarity)")
            gradient[k] += multiplier
            gradient[a + i] -= multiplier
    for j, slope in enumerate(gradient):
        _equal(slope, domain, f"{what}: token {j} (stationarity)")
    divergence = sympy.Add(*(p * sympy.log(p / q) for p, q in zip(target, claim.draft, strict=True)))
    _equal(divergence - claim.value, domain, f"{what}: the value")


# ---- claims, theorems, formulas --------------------------------------------------------------------------------


def decide(claim: Claim, what: str = "claim") -> str:
    """Decide one claim; the answer is how it was established.

    Raises:
        ProofError: it is not established; with the step and, if one was found, a counterexample.
    """
    try:
        return _decide(claim, what)
    except ProofError:
        raise
    except DraftcertError as error:
        raise ProofError(f"{what}: {error}") from error


def _decide(claim: Claim, what: str) -> str:
    if isinstance(claim, Equal):
        _equal(claim.left - claim.right, claim.domain, what)
        _closed_ends(claim.left, claim.right, claim.domain, what)
    elif isinstance(claim, AtLeast):
        _at_least(claim.left - claim.right, claim.domain, claim.by, what, claim.strict)
        return "ball arithmetic" if _has_subdivision(claim.by) else "symbolic"
    elif isinstance(claim, Limit):
        _limit(claim, what)
    elif isinstance(claim, SumEqual):
        _sum_at_least(claim.rows, claim.left, claim.right, claim.by, what, equal=True)
    elif isinstance(claim, SumAtLeast):
        _sum_at_least(claim.rows, claim.left, claim.right, claim.by, what)
    elif isinstance(claim, LowerBound):
        _lower(claim.rows, claim.value, claim.by, what)
    elif isinstance(claim, UpperBound):
        _upper(claim.rows, claim.value, claim.by, what)
    elif isinstance(claim, Certificate):
        _lower(claim.rows, claim.value, claim.lower, what)
        _upper(claim.rows, claim.value, claim.upper, what)
        _attained(claim.rows, claim.value, claim.example, what)
    elif isinstance(claim, Infimum):
        _covers_given(claim.rows, claim.value, claim.family, what)
        _lower(claim.rows, Value(claim.value), claim.lower, what)
        _attained(claim.rows, Value(claim.value), claim.family, what)
    elif isinstance(claim, Supremum):
        _covers_given(claim.rows, claim.value, claim.family, what)
        _upper(claim.rows, Value(claim.value), claim.upper, what)
        _attained(claim.rows, Value(claim.value), claim.family, what)
    elif isinstance(claim, Optimum):
        _optimum(claim, what)
    elif isinstance(claim, Formal):
        raise ProofError(f"{what}: a theorem of the Coq development is checked by Coq, not here")
    else:
        raise ProofError(f"{what}: {type(claim).__name__} is no claim the kernel knows")
    return "symbolic"


def _has_subdivision(by: Evidence) -> bool:
    if isinstance(by, Growth):
        return _has_subdivision(by.start) or _has_subdivision(by.slope)
    return isinstance(by, Subdivision)


def _limit(claim: Limit, what: str) -> None:
    found = [each for each in claim.domain if each.symbol == claim.symbol]
    if not found:
        raise ProofError(f"{what}: {claim.symbol} is not a variable of {_text(claim.domain)}")
    end = found[0].upper if claim.at_upper else found[0].lower
    if end.is_infinite:
        raise ProofError(f"{what}: substitute a variable that goes to 0 for one that goes to infinity")
    others = tuple(each for each in claim.domain if each != found[0])
    reached = _forms(claim.domain).at_end(claim.expression, claim.symbol, end)
    _equal(reached - claim.value, others, what)


def worked_point(point: WorkedRow, what: str) -> str:
    """An exact row's certificate, from T1 to T3, against the value the theorem gives for it."""
    row = [sympy.Rational(p) for p in point.probabilities]
    if sum(row) != 1 or min(row) < 0:
        raise ProofError(f"{what}: {point.probabilities} is not a distribution")
    value = exact_certificate(row, point.accepted, point.candidates)
    if value.is_infinite or point.certificate.is_infinite:
        if value != point.certificate:
            raise ProofError(f"{what}: C{point.probabilities} = {value}, not {point.certificate}")
    else:
        _equal(value - point.certificate, (), f"{what}: C{point.probabilities}")
    return "symbolic"


def _conclusion_sides(claim: Claim) -> tuple[Expression, ...]:
    if isinstance(claim, (Infimum, Supremum, Optimum)):
        return (claim.value,)
    if isinstance(claim, (Certificate, LowerBound, UpperBound)):
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
        each, signs = ranges[index], _forms(tuple(ranges[:index])).signs
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


@dataclass(frozen=True)
class Outcome:
    """What became of one claim: `ok` is `None` for a Coq theorem that this run has not checked."""

    place: str
    says: str
    ok: bool | None
    method: str
    seconds: float
    failure: str | None = None
    counterexample: Mapping[str, str] | None = None


FORMAL_UNCHECKED = "not checked formally"


def examine(theorem: Theorem, formal: Mapping[str, bool]) -> tuple[tuple[Outcome, ...], Proved | None]:
    """Decide everything a theorem claims; mint it if all holds. `formal` tells which Coq theorems were audited."""
    outcomes = [*_examined(theorem, formal)]
    if any(each.ok is False for each in outcomes):
        return tuple(outcomes), None
    methods = sorted({each.method for each in outcomes if each.ok and each.method != "Coq"})
    proved = Proved("theorem", theorem.name, theorem.sha256, " + ".join(methods), TOOLS, mint=_MINT)
    return tuple(outcomes), proved


def _examined(theorem: Theorem, formal: Mapping[str, bool]) -> Iterator[Outcome]:
    says = {f"step {i}": step.says for i, step in enumerate(theorem.derivation, 1)}
    for place, claim in theorem.claims():
        words = says.get(place, theorem.statement)
        if isinstance(claim, Formal):
            ok = formal.get(claim.lemma)
            failure = f"Coq does not confirm {claim.lemma}" if ok is False else None
            yield Outcome(place, claim.lemma, ok, FORMAL_UNCHECKED if ok is None else "Coq", 0.0, failure)
            continue
        yield _outcome(place, words, partial(decide, claim, f"{theorem.name}, {place}"))
    for i, point in enumerate(theorem.worked_points, 1):
        words = point.note or "worked point"
        yield _outcome(f"worked point {i}", words, partial(worked_point, point, f"{theorem.name}, worked point {i}"))
    for each in theorem.establishes:
        yield _outcome(f"formula {each.formula.name}", each.formula.statement, partial(speaks_of, theorem, each))


def _outcome(place: str, says: str, decided: Callable[[], str]) -> Outcome:
    start = time.perf_counter()
    try:
        method = decided()
    except ProofError as error:
        seconds = time.perf_counter() - start
        return Outcome(place, says, False, "", seconds, str(error), error.counterexample)
    return Outcome(place, says, True, method, time.perf_counter() - start)


def mint_formula(formula: Formula, theorems: Sequence[Theorem], proved: Sequence[Proved]) -> Proved:
    """Mint a formula: its two forms agree and every theorem that establishes it is proved; there must be one.

    Raises:
        ProofError: one of these does not hold.
    """
    establishing = tuple(t for t in theorems if any(e.formula.sha256 == formula.sha256 for e in t.establishes))
    hashes = {each.sha256 for each in proved if isinstance(each, Proved)}
    if not establishing:
        raise ProofError(f"formula {formula.name}: no theorem establishes it")
    if missing := [t.name for t in establishing if t.sha256 not in hashes]:
        raise ProofError(f"formula {formula.name}: {', '.join(missing)} is not proved")
    decide_formula(formula, establishing)
    names = tuple(t.name for t in establishing)
    return Proved("formula", formula.name, formula.sha256, "symbolic", TOOLS, by=names, mint=_MINT)
