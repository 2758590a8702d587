"""`margin_bounds`: the sharp range of the certificate when only a margin of the target is known.

What is known stands in the theorems (`theory.theorem.RuleBound`): for which rules, margins and vocabularies a claim
gives an end of the range, and the extremal targets that reach it. Here these targets are evaluated, exactly. Masses
that are left out are spread over tokens too small to matter, for a vocabulary that may be of any size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import sympy
from flint import arb
from sympy.logic.boolalg import Boolean

from ..theory import DraftcertError, Rule, RuleFamily, parse_rule
from ..theory.errors import Argument
from ..theory.exact import logarithms, sign
from ..theory.numbers import shown, whole_number
from ..theory.rule import AllOf, AnyOf, Atom
from ..theory.theorem import (
    CANDIDATES,
    MARGIN,
    VOCABULARY,
    End,
    ExactValue,
    Family,
    Infimum,
    Margin,
    OfRule,
    Range,
    Role,
    RuleBound,
    Supremum,
)
from .balls import ball_function, precision, to_fmpq
from .certificate import check_digits, projected
from .decide import accepted_count
from .enclosure import Enclosure, is_certain
from .row import read_number, read_row

Values = Mapping[Any, Any]
"""Exact numbers by symbol."""
LAST_BITS = 1 << 16
"""A stated value is given up with an error if it still may be 0 at this precision."""
MOST_LISTED = 100_000
"""Tokens of an extremal row that are listed one by one."""
Extreme = ExactValue | Infimum | Supremum


@dataclass(frozen=True)
class MarginBound(Enclosure):
    """An infimum or supremum of the certificate over all targets with a margin.

    `accepted` and `competitors` are the masses of the extremal target's tokens; the rest of its mass is spread thin.

    >>> least, largest = margin_bounds("strict_greedy", margin="0.5", digits=6)
    >>> print(least, least.attained, largest, largest.attained)
    0.130812 True 0.346574 False
    """

    attained: bool
    """Whether a target attains it; else it is only approached."""
    sharp: bool
    """Whether it is the infimum or supremum; else only a valid bound."""
    accepted: tuple[Fraction, ...] | None = None
    competitors: tuple[Fraction, ...] | None = None


def margin_bounds(
    rule: Rule | str,
    candidates: int = 1,
    *,
    margin: Any,
    known: Margin = "top2",
    vocab_size: int | None = None,
    digits: int = 50,
) -> tuple[MarginBound, MarginBound]:
    """The infimum and supremum of the certificate, in nats, over all targets with this margin.

    Over vocabularies of any size that leave `candidates` rejected tokens where the rule alone does not forbid it, or
    over one of a given size, in which a target may also leave fewer, so that it cannot be rejected.

    Args:
        rule: a rule or its text. Of an intersection the infimum is sharp and of a union the supremum, since the
            certificate is the least or greatest of the parts; the other bound is valid, and not sharp.
        candidates: how many tokens the drafter proposes.
        margin: `p_(1) - p_(2)` for `top2`, `p_(1) - p_(m+1)` for `coverage` with m candidates; in [0, 1], read exactly.
        known: which margin is known. What the theory states for `coverage` speaks of strict greedy.
        vocab_size: number of tokens, more than `candidates`; any if not given. What is only approached as vocabularies
            grow is valid for one of a given size, and not sharp.
        digits: correct digits of the bounds.

    Raises:
        DraftcertError: a margin outside [0, 1], no candidates, too small a vocabulary, or a rule without a bound
            from this margin.

    >>> low, high = margin_bounds("strict_greedy", margin="0.5", digits=6)
    >>> str(low), str(high), high.attained
    ('0.130812', '0.346574', False)

    >>> str(margin_bounds("strict_greedy", margin="0.5", vocab_size=3, digits=6)[1])
    '0.160621'

    Source: Sharma 2026, arXiv 2606.30265 (M1, M6); the others `draftcert.theory`.
    """
    exact = read_number(margin, "margin")
    if not 0 <= exact <= 1:
        raise DraftcertError(
            Argument("margin", margin), ": a difference of two probabilities, largest first, lies in [0, 1]"
        )
    candidates = whole_number(candidates, "candidates", 1)
    if vocab_size is not None:
        more = f", more than the {candidates} candidates"
        vocab_size = whole_number(vocab_size, "vocab_size", candidates + 1, why=more)
    digits = check_digits(digits)
    if not isinstance(known, str) or known not in ("top2", "coverage"):
        raise DraftcertError(f"known = {shown(known)}: give 'top2' or 'coverage'")
    values = {
        MARGIN: sympy.Rational(exact.numerator, exact.denominator),
        CANDIDATES: sympy.Integer(candidates),
        VOCABULARY: sympy.oo if vocab_size is None else sympy.Integer(vocab_size),
    }
    case = _Case(values, known, digits)
    low, high = (case.tightest(parse_rule(rule), end) for end in (End.INFIMUM, End.SUPREMUM))
    return low, high


@dataclass(frozen=True)
class _Case:
    """What is known of the target and the drafter: the margin, the candidates and the vocabulary, by symbol."""

    values: Values
    known: Margin
    digits: int

    def tightest(self, rule: Rule, end: End) -> MarginBound:
        """The best bound that theorems state for a rule, or its parts give: a sharp one where there is any."""
        found = [*self._stated(rule, end)]
        if not found and isinstance(rule, (AllOf, AnyOf)):
            # The certificate is the least (greatest) of those of the parts, and so is its infimum (supremum).
            part_end = End.INFIMUM if isinstance(rule, AllOf) else End.SUPREMUM
            best = _extreme((self.tightest(part, end) for part in rule.parts), part_end)
            found = [best if part_end is end else _weakened(best)]
        if not found:
            raise DraftcertError(
                f"no bound is known for {rule} from a margin of the target alone, which is known='{self.known}'"
            )
        sharp = [bound for bound in found if bound.sharp] or found
        best = _extreme(sharp, End.SUPREMUM if end is End.INFIMUM else End.INFIMUM)
        # No certificate lies beyond 0 and infinity, so a bound that does not either is reached.
        trivial = best.ball == 0 if end is End.SUPREMUM else not best.ball.is_finite()
        return replace(best, attained=True, sharp=True) if trivial else best

    def _stated(self, rule: Rule, end: End) -> Iterator[MarginBound]:
        """The bounds of all theorems that hold in this case."""
        for stated in _rule_bounds():
            if stated.end is not end or stated.known != self.known:
                continue
            if (parameters := parameters_of(rule, stated.rule)) is None:
                continue
            values = self.all_values(stated, parameters)
            if _holds(stated, rule, values):
                yield from self._evaluated(stated, values)

    def all_values(self, stated: RuleBound, parameters: Values) -> Values:
        """The values of all symbols that the bound speaks of."""
        values = {**self.values, **parameters}
        for symbol, expression in stated.at.items():
            values[symbol] = _at(expression, values)
        return values

    def _evaluated(self, stated: RuleBound, values: Values) -> Iterator[MarginBound]:
        if isinstance(stated.value, OfRule):
            other = stated.value.family(*(_at(argument, values) for argument in stated.value.arguments))
            bounds = [self.tightest(other, stated.end)]
        elif isinstance(stated.value, tuple):
            bounds = [self._certificate(each, values) for each in stated.value if _has_rows(each, values)]
        else:
            bounds = [MarginBound(self._number(stated.value, values), self.digits, True, True)]
        if bounds:
            best = _extreme(bounds, stated.end)
            yield replace(best, attained=best.attained and stated.attained) if stated.sharp else _weakened(best)

    def _certificate(self, claim: Extreme, values: Values) -> MarginBound:
        """The certificate of a claim's extremal rows, or its value where these are irrational."""
        family = _family(claim)
        if family.limit is not None:
            values = {**values, family.limit: sympy.oo}
        roles = {each.name: each.role for each in claim.rows.classes}
        masses: dict[Role, list[Any]] = {role: [] for role in Role}
        attained = True
        for token in family.tokens:
            if roles[token.of] is not Role.REJECTED and (count := int(_at(token.count, values))):
                if count > MOST_LISTED:
                    raise DraftcertError(f"a margin bound of more than {MOST_LISTED} accepted tokens or candidates")
                masses[roles[token.of]] += [_at(token.probability, values)] * count
                attained &= not _is_limit(token.probability, values)
        # What is only approached as the tokens grow in number is out of reach in a vocabulary of a given size.
        sharp = attained or self.values[VOCABULARY] == sympy.oo
        accepted, competitors = masses[Role.ACCEPTED], masses[Role.COMPETITOR]
        if not all(mass.is_Rational for mass in accepted + competitors):
            return MarginBound(self._number(_stated_value(claim), values), self.digits, attained, sharp)
        above, below = (tuple(Fraction(int(x.p), int(x.q)) for x in group) for group in (accepted, competitors))
        return MarginBound(projected(above, below, self.digits), self.digits, attained, sharp, above, below)

    def _number(self, expression: sympy.Expr, values: Values) -> arb:
        """The value of an expression in ball arithmetic, until its digits are proven."""
        if expression == sympy.oo:
            return arb("inf")
        symbols = tuple(sorted(expression.free_symbols, key=str))
        function = ball_function(expression, symbols)
        bits = int(3.33 * self.digits) + 64
        while bits < LAST_BITS + 8 * self.digits:
            with precision(bits):
                ball = arb(function(*(_ball(values[symbol]) for symbol in symbols)))
            if is_certain(ball, self.digits):
                return ball
            bits *= 2
        raise DraftcertError(f"{expression} is not told from 0 at {bits} bits: let a bound of its own state 0 there")


@cache
def _rule_bounds() -> tuple[RuleBound, ...]:
    """What the theorems say of rules. They are loaded when they are first asked for, which takes a second."""
    from ..theory.theorems import THEOREMS

    return tuple(bound for theorem in THEOREMS.values() for bound in theorem.bounds)


def parameters_of(rule: Rule, family: RuleFamily) -> Values | None:
    """The parameters at which a family is this very rule, whatever that was made of; None where there are none.

    >>> from draftcert.theory import RULES
    >>> parameters_of(parse_rule("strict_greedy"), RULES["top_m"])
    {k: 1}
    """
    if isinstance(rule, Atom) and rule.family == family:
        return rule.values
    return _matched(rule.accepts, family)


@lru_cache(maxsize=1024)
def _matched(accepts: Boolean, family: RuleFamily) -> Values | None:
    """The parameters at which a family has this predicate."""
    unknown = {parameter.symbol: sympy.Wild(parameter.name) for parameter in family.parameters}
    found = accepts.match(family.accepts.xreplace(unknown))
    if found is None:
        return None
    values = {symbol: found[wild] for symbol, wild in unknown.items()}
    inside = all(p.domain.contains(values[p.symbol]) == sympy.true for p in family.parameters)
    return values if inside and family.accepts.xreplace(values) == accepts else None


def _family(claim: Extreme) -> Family:
    return claim.example if isinstance(claim, ExactValue) else claim.family


def _stated_value(claim: Extreme) -> sympy.Expr:
    """The value of a claim on its extremal rows, in the variables of these."""
    value = claim.value.total if isinstance(claim, ExactValue) else claim.value
    return _at(value, _family(claim).at)


def _has_rows(claim: Extreme, values: Values) -> bool:
    """Whether its extremal rows exist for these parameters."""
    family = _family(claim)
    return all(_within(each, values) for each in family.domain if each.symbol != family.limit)


def _at(expression: sympy.Expr, values: Values) -> Any:
    return expression.xreplace(values)


def _holds(stated: RuleBound, rule: Rule, values: Values) -> bool:
    """Whether a bound speaks of this case."""
    if not all(_within(each, values) for each in stated.where):
        return False
    if stated.accepts is None:
        return True
    tokens = [(_at(each.probability, values), int(_at(each.count, values))) for each in stated.accepts.tokens]
    row = read_row([probability for probability, count in tokens for _ in range(count)])
    return accepted_count(rule, row) == stated.accepts.accepted


def _within(each: Range, values: Values) -> bool:
    value, strictly_above, strictly_below = values[each.symbol], each.open_below, each.open_above
    above, below = _sign(value, _at(each.lower, values)), _sign(_at(each.upper, values), value)
    return above >= strictly_above and below >= strictly_below


def _sign(left: Any, right: Any) -> int:
    """Of `left - right`, exactly: numbers, infinities, or rational combinations of logarithms."""
    if left == right:
        return 0
    if not (left.is_Rational and right.is_Rational):
        combination = logarithms(left - right)
        if combination is not None:
            return sign(combination)
    return 1 if left > right else -1


def _is_limit(expression: sympy.Expr, values: Values) -> bool:
    """Whether its value is only approached, as some number of tokens goes to infinity."""
    finite = _at(expression, {symbol: value for symbol, value in values.items() if value != sympy.oo})
    return bool(finite.free_symbols)


def _ball(number: Any) -> Any:
    return to_fmpq(number) if number.is_Rational else ball_function(number, ())()


def _extreme(bounds: Iterable[MarginBound], end: End) -> MarginBound:
    """The least or greatest of them; of equal ones the one of which more is known."""
    sign = 1 if end is End.INFIMUM else -1
    return min(bounds, key=lambda bound: (sign * bound.value, not bound.sharp, not bound.attained))


def _weakened(bound: MarginBound) -> MarginBound:
    return replace(bound, attained=False, sharp=False)
