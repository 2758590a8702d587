"""How much of what a theorem says is checked: change one thing in it at a time and see whether the prover notices.

Only what gives a theorem its meaning is changed (sides, values, ranges, roles, numbers of tokens, facts, families, what
is established and cited, worked points), never evidence, which is not believed anyway; and only into something that
says more or something else, since less is true too. A survivor is either a true statement, such as one that lost a
hypothesis it never needed, or a hole in the prover.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import sympy

from ..support.workers import alike, run_tasks
from ..theory.errors import DraftcertError
from ..theory.formula import Formula
from ..theory.theorem import (
    AtLeast,
    Claim,
    Evident,
    Family,
    Formal,
    Growth,
    Optimum,
    Range,
    Role,
    Rows,
    Step,
    Subdivision,
    SumFact,
    SumProof,
    Theorem,
    TokenClass,
    Witness,
    WorkedRow,
)
from .prover import ProofError, cited, decide, decide_formula, equal_inside, speaks_of, worked_point
from .prover.rational import Expression

LITTLE = sympy.Rational(1, 10**20)
"""Relative change of a number that a check in floating point would not notice."""

EVIDENCE = (Evident, Growth, Subdivision, SumProof, Witness)


@dataclass(frozen=True)
class Mutant:
    """One change: where, what, and whether the prover refused the changed claim (`reason`: what it said)."""

    theorem: str
    place: str
    change: str
    caught: bool
    reason: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """What was changed, whatever became of it."""
        return self.theorem, self.place, self.change


@dataclass(frozen=True)
class Tally:
    """All mutants of some theorems."""

    mutants: tuple[Mutant, ...]

    @property
    def share(self) -> float:
        """Share of the changes that were noticed."""
        return sum(each.caught for each in self.mutants) / max(1, len(self.mutants))

    @property
    def survivors(self) -> tuple[Mutant, ...]:
        """Changes that went through."""
        return tuple(each for each in self.mutants if not each.caught)

    @property
    def unexplained(self) -> tuple[Mutant, ...]:
        """Survivors that are not known to be true statements: holes, until shown otherwise."""
        return tuple(each for each in self.survivors if explanation(each) is None)


def changed_expressions(e: Expression) -> Iterator[tuple[str, Expression]]:
    """Signs, constants, off by one, swapped arguments: each changed once, in every place."""
    yield "sign of the whole", -e
    for part in sorted(e.atoms(sympy.Add), key=sympy.default_sort_key):
        for term in part.args:
            yield f"sign of {term} in {part}", e.xreplace({part: part - 2 * term})
    for number in sorted(e.atoms(sympy.Rational), key=sympy.default_sort_key):
        if number not in (-1,):
            yield f"{number} -> {number + 1}", e.xreplace({number: number + 1})
        yield f"{number} changed a little", e.xreplace({number: number + (number or 1) * LITTLE})
    symbols = sorted(e.free_symbols, key=str)
    for symbol in symbols:
        if str(symbol) in ("m", "n", "N", "V"):
            yield f"{symbol} -> {symbol} + 1", e.xreplace({symbol: symbol + 1})
    for one, other in pairwise(symbols):
        yield f"{one} and {other} swapped", e.xreplace({one: other, other: one})


def changed(record: Any) -> Iterator[tuple[str, Any]]:
    """The record with one thing in it changed, in every way."""
    if isinstance(record, (*EVIDENCE, Formal)):
        return
    yield from _own_changes(record)
    if isinstance(record, sympy.Expr):
        yield from changed_expressions(record)
    elif isinstance(record, tuple):
        for i, item in enumerate(record):
            for words, new in changed(item):
                yield words, (*record[:i], new, *record[i + 1 :])
    elif isinstance(record, Mapping):
        for name, item in record.items():
            for words, new in changed(item):
                yield f"{name}: {words}", {**record, name: new}
    elif is_dataclass(record) and not isinstance(record, (type, Range, Step, WorkedRow)):
        for field in fields(record):
            if field.name in _MEANING_ELSEWHERE.get(type(record), ()):
                continue
            for words, new in changed(getattr(record, field.name)):
                yield f"{field.name}: {words}", replace(record, **{field.name: new})


_MEANING_ELSEWHERE = {
    Family: ("domain", "limit"),
    TokenClass: ("name", "probability"),
    Optimum: ("multipliers", "mass_multiplier", "domain"),
}
"""Fields that are names or evidence, or whose change is made in another way."""


def _own_changes(record: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(record, Range):
        yield from _wider(record)
    elif isinstance(record, TokenClass):
        if record.role is not Role.REJECTED:
            other = Role.COMPETITOR if record.role is Role.ACCEPTED else Role.ACCEPTED
            yield f"'{record.name}' as {other.value}", replace(record, role=other)
    elif isinstance(record, Rows):
        for i, fact in enumerate(record.facts):
            yield (
                f"fact {fact.total} dropped",
                replace(record, facts=(*record.facts[:i], SumFact({}), *record.facts[i + 1 :])),
            )
    elif isinstance(record, AtLeast):
        yield "direction", replace(record, left=record.right, right=record.left)
        if not record.strict:
            yield "strict", replace(record, strict=True)
    elif isinstance(record, Family):
        if record.limit is not None:
            yield "limit taken as attained", replace(record, limit=None)
    elif isinstance(record, WorkedRow):
        yield "accepted + 1", replace(record, accepted=record.accepted + 1)
        yield "candidates + 1", replace(record, candidates=record.candidates + 1)
        for words, value in changed_expressions(record.certificate):
            yield words, replace(record, certificate=value)
        for place, text in enumerate(record.probabilities[1:], 1):
            if (p := sympy.Rational(text)) != 0:
                row = list(record.probabilities)
                row[0], row[place] = str(sympy.Rational(row[0]) + p * LITTLE), str(p * (1 - LITTLE))
                yield f"a little of token {place} moved to token 0", replace(record, probabilities=tuple(row))


def _wider(record: Range) -> Iterator[tuple[str, Range]]:
    """A hypothesis dropped: narrower ranges would give weaker theorems, which are true."""
    for side, is_open, all_of_it, beyond in (
        ("lower", "open_below", sympy.S.Zero, -1),
        ("upper", "open_above", sympy.oo if record.integer else sympy.S.One, 1),
    ):
        bound = getattr(record, side)
        if bound.free_symbols:
            yield f"{side} bound of {record.symbol} dropped", replace(record, **{side: all_of_it})
        elif bound.is_finite:
            yield f"{side} bound of {record.symbol} moved", replace(record, **{side: bound + beyond})
        if getattr(record, is_open) and bound.is_finite:
            yield f"{side} end of {record.symbol} closed", replace(record, **{is_open: False})
    if record.integer:
        yield f"{record.symbol} any real number", replace(record, integer=False)


def _citations(theorem: Theorem) -> Iterator[Mutant]:
    """What is established and what is cited, changed."""
    for each in theorem.establishes:
        place = f"formula {each.formula.name}"
        formula = each.formula
        for words, new in changed_expressions(formula.expression):
            if not _same(formula.expression, new):
                wrong = replace(each, formula=replace(formula, expression=new))
                yield _judged(theorem.name, place, words, partial(speaks_of, theorem, wrong))
        for symbol, value in each.renamed.items():
            for words, new in changed_expressions(value):
                if not _same(value, new):
                    wrong = replace(each, renamed={**each.renamed, symbol: new})
                    yield _judged(theorem.name, place, f"{symbol}: {words}", partial(speaks_of, theorem, wrong))
    for lemma in theorem.formal:
        wrong = replace(theorem, formal=(f"{lemma}'",))
        yield _judged(theorem.name, f"formal {lemma}", "another name", partial(cited, wrong))


def mutants(theorem: Theorem) -> Iterator[Mutant]:
    """Every change of one theorem with the prover's answer.

    Raises:
        ProofError: the theorem does not hold as it is.
    """
    for place, claim in theorem.claims():
        if not isinstance(claim, Formal):
            decide(claim, f"{theorem.name}, {place}")
        for words, new in changed(claim):
            if not _same(claim, new):
                yield _judged(theorem.name, place, words, partial(_decide_in, theorem, claim, new, place))
    for i, point in enumerate(theorem.worked_points, 1):
        for words, new in changed(point):
            if not _same(point, new):
                yield _judged(theorem.name, f"worked point {i}", words, partial(worked_point, new, words))
    yield from _citations(theorem)


def _decide_in(theorem: Theorem, old: Claim, new: Claim, place: str) -> None:
    """Decide a claim in another's place; the theorem must still establish all that it did."""
    decide(new, place)
    conclusions = tuple(new if each is old else each for each in theorem.conclusions)
    if conclusions != theorem.conclusions:
        for each in theorem.establishes:
            speaks_of(replace(theorem, conclusions=conclusions), each)


def formula_mutants(formula: Formula, theorems: tuple[Theorem, ...]) -> Iterator[Mutant]:
    """Every change of a formula's stable form."""
    for words, new in changed_expressions(formula.stable):
        if new != formula.stable and not _equal(new, formula.stable):
            wrong = replace(formula, stable=new)
            yield _judged(formula.name, "stable form", words, partial(decide_formula, wrong, theorems))


_VANISHES = "true: the changed term vanishes in the limit"
_EITHER_ROLE = "true: a draft equal to the threshold is rejected whichever side of it the token has to be on"

_WIDER = "true: it holds on the wider range too, which only says what the variable is"
EXPLAINED = {
    (
        "T7",
        "conclusion 1",
        "rows: classes: 'accepted' as competitor",
    ): "true: a lower bound that holds for one competitor holds when more tokens have to beat the first",
    ("B4", "conclusion 3", "rows: classes: 'accepted above the level' as competitor"): _EITHER_ROLE,
    ("B4", "conclusion 3", "rows: classes: 'listed competitor below the level' as accepted"): _EITHER_ROLE,
    **{
        ("S1", "conclusion 1", f"rows: classes: ranges: {end} bound of q dropped"): _WIDER for end in ("lower", "upper")
    },
    ("S6", "step 1", "domain: upper bound of tau dropped"): _WIDER,
    ("S6", "step 1", "domain: upper bound of p_x dropped"): _WIDER,
    **{
        ("S6", place, "domain: lower bound of p_1 dropped"): _WIDER
        for place in ("step 1", "conclusion 1", "conclusion 5")
    },
    **{("S6", place, "domain: upper bound of p_x dropped"): _WIDER for place in ("conclusion 2", "conclusion 4")},
    ("M7s", "conclusion 2", "expression: sign of b in b + g"): _VANISHES,
    (
        "M7s",
        "conclusion 2",
        "expression: sign of b*m*log(b) in "
        "b*m*log(b) + (b + g)*log(b + g) - (b*(m + 1) + g)*log((b*(m + 1) + g)/(m + 1))",
    ): _VANISHES,
    ("M1", "formula phi", "x: sign of the whole"): "true: phi is even",
    ("B3", "formula renyi", "a: 2 -> 3"): "true: another conclusion is about the order 3",
    ("M5s", "step 1", "domain: lower bound of g dropped"): "true: the square in the form needs no bound",
    (
        "M5s",
        "step 2",
        "rows: classes: count: 1 -> 2",
    ): "true: the bound holds for a second token of the same probability",
    ("M5s", "worked point 1", "accepted + 1"): "true: an accepted token below the level is not moved",
    (
        "M5t",
        "conclusion 3",
        "rows: parameters: upper bound of p_1 dropped",
    ): "true: the mass one bounds the second token",
}
"""Why a survivor is a true statement, by theorem, place and change."""

_NEEDLESS = {
    " moved": "true: the proof does not need this end of the range",
    " closed": "true: sums and inequalities are continued to this end",
    " any real number": "true: it holds between the integers too",
    "strict": "true: the sides are equal nowhere inside",
}
"""Changes that leave a claim as it is and let it say more: where the prover goes on, more was proved than was said."""


def explanation(survivor: Mutant) -> str | None:
    """Why it is a true statement; `None` if nobody knows."""
    needless = (why for ending, why in _NEEDLESS.items() if survivor.change.endswith(ending))
    return EXPLAINED.get(survivor.identity) or next(needless, None)


def tally(
    theorems: Mapping[str, Theorem],
    formulas: Mapping[str, Formula],
    processes: int = 1,
    progress: Callable[[str, int, int], None] | None = None,
) -> Tally:
    """All mutants of these theorems and formulas; `progress(name, done, total)` is called after each of them.

    Raises:
        ProofError: a theorem does not hold as it is.
    """
    every = tuple(theorems.values())
    work = (*every, *formulas.values())
    start = alike(partial(_all_mutants, every))
    found = []
    for done, part in enumerate(run_tasks(work, start, lambda each: each.name, processes=processes, fork=True), 1):
        found += part
        if progress:
            progress(work[done - 1].name, done, len(work))
    return Tally(tuple(found))


def _all_mutants(theorems: tuple[Theorem, ...], changed: Theorem | Formula) -> list[Mutant]:
    return [*(mutants(changed) if isinstance(changed, Theorem) else formula_mutants(changed, theorems))]


def _judged(name: str, place: str, words: str, decided: Any) -> Mutant:
    try:
        decided()
    except ProofError as error:
        return Mutant(name, place, words, True, error.reason)
    except DraftcertError as error:
        return Mutant(name, place, words, True, str(error))
    return Mutant(name, place, words, False)


def _same(old: Any, new: Any) -> bool:
    """Whether only the writing changed: every expression that differs is equal to the old one."""
    if isinstance(old, sympy.Expr) and isinstance(new, sympy.Expr):
        return old == new or _equal(old, new)
    if isinstance(old, tuple):
        return len(old) == len(new) and all(_same(a, b) for a, b in zip(old, new, strict=True))
    if isinstance(old, Mapping):
        return old.keys() == new.keys() and all(_same(old[name], new[name]) for name in old)
    if is_dataclass(old):
        return type(old) is type(new) and all(_same(getattr(old, f.name), getattr(new, f.name)) for f in fields(old))
    return old == new


def _equal(one: Any, other: Any) -> bool:
    symbols = sorted((one - other).free_symbols, key=str)
    return equal_inside(one - other, tuple(Range(symbol, sympy.S.Zero, sympy.S.One) for symbol in symbols))
