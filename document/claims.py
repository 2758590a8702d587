"""What a claim says, as lines of words and formulas that any format can print."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import sympy
from sympy import Symbol

from ..proofs_check.formal import words as words_of_coq
from ..theory.rule import RuleFamily
from ..theory.theorem import (
    AtLeast,
    Claim,
    Domain,
    Equal,
    ExactValue,
    Family,
    Formal,
    Infimum,
    Limit,
    LowerBound,
    OfRule,
    Optimum,
    Rows,
    RuleBound,
    Subdivision,
    SumAtLeast,
    SumEqual,
    Theorem,
    UpperBound,
)
from ..theory.theorems import THEOREMS
from .printing import SumOver

C = Symbol("C")


@dataclass(frozen=True)
class Line:
    """Words, then a formula (either may be missing)."""

    words: str = ""
    formula: sympy.Basic | None = None


@dataclass(frozen=True)
class Tokens:
    """A row of the table of token classes: what they are, how many, their probability."""

    role: str
    count: sympy.Basic | str
    probability: sympy.Basic
    range: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Told:
    """A claim told: the formulas, where they hold, the rows they speak of and the rows that attain them.

    A `folded` one is a case among many, shown when asked for.
    """

    lines: tuple[Line, ...]
    where: tuple[Line, ...] = ()
    rows: tuple[Tokens, ...] = ()
    family: tuple[Tokens, ...] = ()
    family_note: str = ""
    folded: bool = False


def relation(kind: type, *sides: sympy.Basic) -> sympy.Basic:
    """A relation that is printed as it is written, not simplified."""
    return kind(*sides, evaluate=False)


def domain_lines(domain: Domain) -> tuple[Line, ...]:
    """The ranges of the variables."""
    lines = []
    for each in domain:
        inner = sympy.Interval(each.lower, each.upper, each.open_below, each.open_above or each.upper == sympy.oo)
        if inner is sympy.S.EmptySet or isinstance(inner, sympy.FiniteSet):
            inner = sympy.FiniteSet(each.lower)
        words = "integer" if each.integer else "finite" if each.open_above and each.upper == sympy.oo else ""
        lines.append(Line(words, relation(sympy.Contains, each.symbol, inner)))
    return tuple(lines)


def _row_tokens(rows: Rows, by_role: bool = True) -> tuple[Tokens, ...]:
    """The classes of a row; in a sum over a row nobody is accepted or rejected, so their names tell more."""
    return tuple(
        Tokens(
            each.role.value if by_role else each.name,
            "any number" if each.count is None else each.count,
            each.probability,
            domain_lines(each.ranges),
        )
        for each in rows.classes
    )


def _family(family: Family, rows: Rows) -> tuple[tuple[Tokens, ...], str]:
    roles = {each.name: each.role.value for each in rows.classes}
    tokens = tuple(
        Tokens(roles.get(t.of, t.of) + (", moved" if t.pooled else ""), t.count, t.probability) for t in family.tokens
    )
    return tokens, "attained" if family.limit is None else f"approached in the limit of {family.limit}"


def _sum(terms: Mapping[str, sympy.Expr]) -> sympy.Expr:
    return sympy.Add(*(SumOver(Symbol(name), term) for name, term in terms.items() if term != 0))  # type: ignore[arg-type]


def _of_rule(bound: RuleBound) -> Told:
    """What a theorem says of a rule: a number, or where the value is told."""
    words = f"{bound.end.value} for {_called(bound.rule, tuple(each.symbol for each in bound.rule.parameters))}"
    words += ", margin to the last candidate" if bound.known == "coverage" else ""
    formula = None
    if isinstance(bound.value, OfRule):
        words += f": that of {_called(bound.value.family, bound.value.arguments)}"
    elif isinstance(bound.value, tuple):
        names = [name for name, theorem in THEOREMS.items() if any(c in bound.value for c in theorem.conclusions)]
        words += f": {'the larger of those of ' if len(names) > 1 else 'as in '}{' and '.join(names)}"
    else:
        formula = relation(sympy.Eq, C, bound.value)
    words += "" if bound.sharp else " (valid, not known to be sharp)"
    words += "" if bound.attained or not bound.sharp else " (approached)"
    given = tuple(Line(formula=relation(sympy.Eq, symbol, value)) for symbol, value in bound.at.items())
    return Told((Line(words, formula),), (*domain_lines(bound.where), *given))


def _called(family: RuleFamily, arguments: tuple[sympy.Expr, ...]) -> str:
    return f"{family.name}({', '.join(map(str, arguments))})" if arguments else family.name


def tell(claim: Claim | RuleBound) -> Told:
    """The claim in words and formulas."""
    if isinstance(claim, RuleBound):
        return _of_rule(claim)
    if isinstance(claim, Equal):
        return Told((Line(formula=relation(sympy.Eq, claim.left, claim.right)),), domain_lines(claim.domain))
    if isinstance(claim, AtLeast):
        sign = sympy.Gt if claim.strict else sympy.Ge
        return Told((Line(formula=relation(sign, claim.left, claim.right)),), domain_lines(claim.domain))
    if isinstance(claim, Limit):
        end = next(r.upper if claim.at_upper else r.lower for r in claim.domain if r.symbol == claim.symbol)
        side = "-" if claim.at_upper else "+"
        left = sympy.Limit(claim.expression, claim.symbol, end, side)
        return Told((Line(formula=relation(sympy.Eq, left, claim.value)),), domain_lines(claim.domain))
    if isinstance(claim, Formal):
        return Told((Line(f"proved in Coq: {claim.lemma}"),))
    if isinstance(claim, Optimum):
        draft = relation(sympy.Eq, Symbol("q"), sympy.Tuple(*claim.draft))
        value = relation(sympy.Eq, C, claim.value)
        return Told((Line("minimiser", draft), Line("value", value)), domain_lines(claim.domain), folded=True)
    by_role = not isinstance(claim, (SumEqual, SumAtLeast))
    rows, where = _row_tokens(claim.rows, by_role), domain_lines(claim.rows.parameters)
    if isinstance(claim, SumEqual):
        return Told((Line(formula=relation(sympy.Eq, _sum(claim.left), claim.right)),), where, rows)
    if isinstance(claim, SumAtLeast):
        return Told((Line(formula=relation(sympy.Ge, _sum(claim.left), claim.right)),), where, rows)
    if isinstance(claim, (LowerBound, UpperBound, ExactValue)):
        sign = {LowerBound: sympy.Ge, UpperBound: sympy.Le, ExactValue: sympy.Eq}[type(claim)]
        family = _family(claim.example, claim.rows)[0] if isinstance(claim, ExactValue) else ()
        total = claim.value.total if not claim.value.terms else claim.value.total + _sum(claim.value.terms)
        return Told((Line(formula=relation(sign, C, total)),), where, rows, family, "for example" if family else "")
    word = "inf" if isinstance(claim, Infimum) else "sup"
    tokens, note = _family(claim.family, claim.rows)
    return Told((Line(formula=relation(sympy.Eq, Symbol(f"{word} C"), claim.value)),), where, rows, tokens, note)


def evidence(theorem: Theorem) -> list[tuple[str, str]]:
    """The kinds of evidence that a theorem's claims have, each with what it is evidence of.

    >>> evidence(THEOREMS["T5"])[0]
    ('symbolic', 'step 1, conclusion 1')
    """
    places: defaultdict[str, list[str]] = defaultdict(list)
    for place, claim in theorem.claims():
        if not isinstance(claim, Formal):
            places["ball arithmetic" if _subdivides(claim) else "symbolic"].append(place)
    found = [(kind, ", ".join(named)) for kind, named in places.items()]
    if theorem.worked_points:
        found.append(("exact arithmetic", f"worked points: {len(theorem.worked_points)}"))
    said = words_of_coq()
    found += [(f"formal proof in Coq, {name}", said[name]) for name in theorem.formal]
    return found if theorem.formal else [*found, ("no formal proof", "nothing of it is stated in Coq")]


def _subdivides(part: Any) -> bool:
    """Whether ball arithmetic on a subdivision of the domain is part of the evidence."""
    if isinstance(part, Mapping):
        part = tuple(part.values())
    if isinstance(part, tuple):
        return any(map(_subdivides, part))
    if not is_dataclass(part) or isinstance(part, RuleFamily):
        return False
    return isinstance(part, Subdivision) or any(_subdivides(getattr(part, each.name)) for each in fields(part))
