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
from .printing import SumOver, fits, latex


@dataclass(frozen=True)
class Line:
    """Words, then a formula in LaTeX (either may be missing)."""

    words: str = ""
    formula: str = ""


@dataclass(frozen=True)
class Tokens:
    """A row of the table of token classes: what they are, how many (empty: any number), their probability in LaTeX."""

    role: str
    count: str
    probability: str
    range: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Told:
    """A claim told: the formulas, where they hold, the rows they speak of with what is known of these, and the rows
    that attain them.

    A `folded` one is a case among many, shown when asked for.
    """

    lines: tuple[Line, ...]
    where: tuple[Line, ...] = ()
    rows: tuple[Tokens, ...] = ()
    facts: tuple[Line, ...] = ()
    family: tuple[Tokens, ...] = ()
    family_note: str = ""
    folded: bool = False


def relation(sign: str, left: sympy.Basic | str, right: sympy.Basic | str) -> str:
    """Two sides as they are written, not simplified into each other."""
    return " ".join(side if isinstance(side, str) else latex(side) for side in (left, sign, right))


def domain_lines(domain: Domain) -> tuple[Line, ...]:
    """The ranges of the variables."""
    lines = []
    for each in domain:
        inner = sympy.Interval(each.lower, each.upper, each.open_below, each.open_above or each.upper == sympy.oo)
        if inner is sympy.S.EmptySet or isinstance(inner, sympy.FiniteSet):
            inner = sympy.FiniteSet(each.lower)
        unbounded, words = each.upper == sympy.oo, ""
        if each.integer and each.lower.is_Integer and unbounded:
            inner = sympy.Range(each.lower, sympy.oo)
        elif each.integer:
            words = "integer"
        elif each.open_above and unbounded:
            words = "finite"
        lines.append(Line(words, relation(r"\in", each.symbol, inner)))
    return tuple(lines)


def _row_tokens(rows: Rows, roles: bool) -> tuple[Tokens, ...]:
    """The classes of a row, with what they are to the rejected draft where there is one."""
    return tuple(
        Tokens(
            f"{each.name} ({each.role.value})" if roles and each.role.value not in each.name else each.name,
            "" if each.count is None else latex(each.count),
            latex(each.probability),
            domain_lines(each.ranges),
        )
        for each in rows.classes
    )


def _family(family: Family, rows: Rows) -> tuple[tuple[Tokens, ...], str]:
    roles = {each.name: each.role.value for each in rows.classes}
    tokens = tuple(
        Tokens(roles.get(t.of, t.of) + (", moved" if t.pooled else ""), latex(t.count), latex(t.probability))
        for t in family.tokens
    )
    return tokens, "Attained" if family.limit is None else f"Approached in the limit of {family.limit}"


def _sum(terms: Mapping[str, sympy.Expr], rows: Rows) -> sympy.Expr:
    """The terms summed over their classes; classes of one term are summed together."""
    classes: defaultdict[sympy.Expr, list[str]] = defaultdict(list)
    for name, term in terms.items():
        if term != 0:
            classes[term].append(name)
    every = len(rows.classes) > 1
    sums = (
        SumOver(Symbol("all tokens" if every and len(names) == len(rows.classes) else ", ".join(names)), term)
        for term, names in classes.items()
    )
    return sympy.Add(*sums)  # type: ignore[arg-type]


_TURNED = {"=": "=", r"\geq": r"\leq"}


def _balanced(terms: Mapping[str, sympy.Expr], sign: str, right: sympy.Expr, rows: Rows) -> str:
    """A relation between sums over a row: what one side takes away the other adds."""
    if right != 0 and right.could_extract_minus_sign() and all(t.could_extract_minus_sign() for t in terms.values()):
        return relation(_TURNED[sign], _sum({name: -term for name, term in terms.items()}, rows), -right)
    if right != 0:
        return relation(sign, _sum(terms, rows), right)
    taken = {
        name: sympy.Add(*(-part for part in sympy.Add.make_args(term) if part.could_extract_minus_sign()))
        for name, term in terms.items()
    }
    added = {name: term + taken[name] for name, term in terms.items()}
    if not any(added.values()):
        sign, added, taken = _TURNED[sign], taken, added
    return relation(sign, _sum(added, rows), _sum(taken, rows))


def _named(sign: str, left: sympy.Expr, right: sympy.Expr) -> tuple[Line, tuple[Line, ...]]:
    """A relation between two expressions; where these are too wide for a line, parts of them have names."""
    formula = relation(sign, left, right)
    if fits(formula):
        return Line(formula=formula), ()
    free = {str(symbol) for side in (left, right) for symbol in side.free_symbols}
    names = (Symbol(letter) for letter in "ABDFJKQ" if letter not in free)
    parts, sides = sympy.cse((left, right), names)
    return Line(formula=relation(sign, *sides)), tuple(Line(formula=relation("=", *part)) for part in parts)


def _of_rule(bound: RuleBound) -> Told:
    """What a theorem says of a rule: a number, or where the value is told."""
    words = f"{bound.end.value} for {_called(bound.rule, tuple(each.symbol for each in bound.rule.parameters))}"
    words += ", margin to the last candidate" if bound.known == "coverage" else ""
    formula = ""
    if isinstance(bound.value, OfRule):
        words += f": that of {_called(bound.value.family, bound.value.arguments)}"
    elif isinstance(bound.value, tuple):
        names = [name for name, theorem in THEOREMS.items() if any(c in bound.value for c in theorem.conclusions)]
        words += f": {'the larger of those of ' if len(names) > 1 else 'as in '}{' and '.join(names)}"
    else:
        formula = relation("=", "C", bound.value)
    words += "" if bound.sharp else " (valid, not known to be sharp)"
    words += "" if bound.attained or not bound.sharp else " (approached)"
    given = tuple(Line(formula=relation("=", symbol, value)) for symbol, value in bound.at.items())
    return Told((Line(words, formula),), (*domain_lines(bound.where), *given))


def _called(family: RuleFamily, arguments: tuple[sympy.Expr, ...]) -> str:
    return f"{family.name}({', '.join(map(str, arguments))})" if arguments else family.name


def tell(claim: Claim | RuleBound) -> Told:
    """The claim in words and formulas."""
    if isinstance(claim, RuleBound):
        return _of_rule(claim)
    if isinstance(claim, Equal):
        line, parts = _named("=", claim.left, claim.right)
        return Told((line,), (*parts, *domain_lines(claim.domain)))
    if isinstance(claim, AtLeast):
        line, parts = _named(">" if claim.strict else r"\geq", claim.left, claim.right)
        return Told((line,), (*parts, *domain_lines(claim.domain)))
    if isinstance(claim, Limit):
        end = next(r.upper if claim.at_upper else r.lower for r in claim.domain if r.symbol == claim.symbol)
        left = rf"\lim_{{{latex(claim.symbol)} \to {latex(end)}}} \left({latex(claim.expression)}\right)"
        return Told((Line(formula=relation("=", left, claim.value)),), domain_lines(claim.domain))
    if isinstance(claim, Formal):
        return Told((Line(f"proved in Coq: {claim.lemma}"),))
    if isinstance(claim, Optimum):
        draft = relation("=", "q", sympy.Tuple(*claim.draft))
        value = relation("=", "C", claim.value)
        return Told((Line("minimiser", draft), Line("value", value)), domain_lines(claim.domain), folded=True)
    roles = not isinstance(claim, (SumEqual, SumAtLeast))
    rows, where = _row_tokens(claim.rows, roles), domain_lines(claim.rows.parameters)
    facts = tuple(
        Line(formula=_balanced(each.terms, r"\geq" if each.at_least else "=", each.total, claim.rows))
        for each in claim.rows.facts
    )
    if isinstance(claim, SumEqual):
        return Told((Line(formula=_balanced(claim.left, "=", claim.right, claim.rows)),), where, rows, facts)
    if isinstance(claim, SumAtLeast):
        return Told((Line(formula=_balanced(claim.left, r"\geq", claim.right, claim.rows)),), where, rows, facts)
    if isinstance(claim, (LowerBound, UpperBound, ExactValue)):
        sign = {LowerBound: r"\geq", UpperBound: r"\leq", ExactValue: "="}[type(claim)]
        family = _family(claim.example, claim.rows)[0] if isinstance(claim, ExactValue) else ()
        total = claim.value.total if not claim.value.terms else claim.value.total + _sum(claim.value.terms, claim.rows)
        note = "For example" if family else ""
        return Told((Line(formula=relation(sign, "C", total)),), where, rows, facts, family, note)
    word = r"\inf" if isinstance(claim, Infimum) else r"\sup"
    tokens, note = _family(claim.family, claim.rows)
    return Told((Line(formula=relation("=", f"{word} C", claim.value)),), where, rows, facts, tokens, note)


def numbers(theorem: Theorem) -> dict[str, str]:
    """The numbers of a theorem's equations by the places of its claims: its conclusions, then the steps of its proof.

    >>> numbers(THEOREMS["T5"])
    {'conclusion 1': 'T5.1', 'step 1': 'T5.2'}
    """
    places = [place for place, claim in theorem.claims() if not isinstance(claim, Formal)]
    places.sort(key=lambda place: place.startswith("step"))
    return {place: f"{theorem.name}.{number}" for number, place in enumerate(places, 1)}


def evidence(theorem: Theorem) -> list[tuple[str, str]]:
    """The kinds of evidence that a theorem's claims have, each with the equations or words it is evidence of.

    >>> evidence(THEOREMS["T5"])[0]
    ('symbolic', '(T5.1), (T5.2)')
    """
    numbered = numbers(theorem)
    places: defaultdict[str, list[str]] = defaultdict(list)
    claims = dict(theorem.claims())
    for place, number in numbered.items():
        places["ball arithmetic" if _subdivides(claims[place]) else "symbolic"].append(f"({number})")
    found = [(kind, ", ".join(named)) for kind, named in places.items()]
    if theorem.worked_points:
        found.append(("exact arithmetic", f"worked points: {len(theorem.worked_points)}"))
    said = words_of_coq()
    return found + [(f"formal proof in Coq, {name}", said[name]) for name in theorem.formal]


def _subdivides(part: Any) -> bool:
    """Whether ball arithmetic on a subdivision of the domain is part of the evidence."""
    if isinstance(part, Mapping):
        part = tuple(part.values())
    if isinstance(part, tuple):
        return any(map(_subdivides, part))
    if not is_dataclass(part) or isinstance(part, RuleFamily):
        return False
    return isinstance(part, Subdivision) or any(_subdivides(getattr(part, each.name)) for each in fields(part))
