"""`Rule`: an acceptance rule as data, from which the convex program, the reference, the kernels and the docs are made.

A rule is a tree: its leaves are atoms (a `RuleFamily` with exact parameters), its inner nodes say that all (`&`) or any
(`|`) of their parts accept. Its meaning is the predicate `accepts`, a Boolean expression of sympy in the judged token's
PROBABILITY or RANK and the row's statistics, and its identity is a hash of that meaning, never a name: two rules are
equal iff they are the same predicate. Text is printed from a rule and read by `parse_rule`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import sympy
from sympy.logic.boolalg import Boolean

from .conditions import Condition, conditions
from .errors import DraftcertError
from .exact import exact_certificate, exact_count, exact_row, logarithms, rational, vanishes
from .names import near
from .numbers import shown
from .statistics import LOGIT_RATIO, PROBABILITY, RANK, TOP


@dataclass(frozen=True)
class Parameter:
    """A parameter of a rule: its symbol, the set of values it may take and what it means.

    >>> from draftcert.theory import RULES
    >>> [(each.name, each.domain) for each in RULES["additive"].parameters]
    [('t', Interval(0, 1))]
    """

    symbol: sympy.Symbol
    domain: sympy.Set
    meaning: str

    @property
    def name(self) -> str:
        """The keyword under which it is given."""
        return str(self.symbol)


@dataclass(frozen=True)
class WorkedPoint:
    """A case worked by hand: the accepted tokens and the exact certificate a rule must give for it.

    `probabilities` are exact (fractions as text); `certificate` is a sympy expression in nats (`oo`: always accepted).
    """

    arguments: tuple[str, ...]
    probabilities: tuple[str, ...]
    accepted: tuple[int, ...]
    certificate: sympy.Expr
    candidates: int = 1
    logit_ratio: str | None = None
    note: str = ""


@dataclass(frozen=True)
class OrderFact:
    """For which parameters every token that one family accepts is accepted by another too, and why.

    `holds` speaks of the parameters of the first (narrow) family by their own names and of those of the second (wide)
    one by `primed` ones. It is decided in exact arithmetic. Where it fails the implication fails on some target, unless
    it is not `necessary`.
    """

    holds: Boolean
    reason: str
    necessary: bool = True


def primed(name: str) -> sympy.Symbol:
    """The symbol in an `OrderFact` of the wide family's parameter of this name."""
    return sympy.Symbol(name + "'", nonnegative=True)


def equal(left: sympy.Expr, right: sympy.Expr | int) -> Boolean:
    """`left = right` as a condition of an `OrderFact`."""
    return cast("Boolean", sympy.Eq(left, right))


@dataclass(frozen=True, eq=False, repr=False)
class Rule:
    """An acceptance rule with all parameters given: an `Atom`, an `AllOf` or an `AnyOf`.

    `deployed_as` and `citation` say where the rule comes from; they are no part of its identity.

    >>> from draftcert.theory import parse_rule
    >>> rule = parse_rule("top_m(2) & additive(0.1)")
    >>> rule.accepted_count(["0.4", "0.35", "0.25"])
    2
    >>> rule == parse_rule("additive(1/10) & top_m(2)")
    True
    """

    deployed_as: str = field(kw_only=True)
    citation: str = field(kw_only=True)

    @cached_property
    def accepts(self) -> Boolean:
        """The predicate."""
        raise NotImplementedError

    @cached_property
    def sha256(self) -> str:
        """Hash of the predicate: the rule's identity in every layer, in caches and in files."""
        return hashlib.sha256(sympy.srepr(self.accepts).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        """Whether the other is a rule with the same predicate."""
        return isinstance(other, Rule) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        """Of the predicate."""
        return hash(self.sha256)

    def __and__(self, other: Rule) -> Rule:
        """Accept what both accept."""
        return all_of(self, other)

    def __or__(self, other: Rule) -> Rule:
        """Accept what either accepts."""
        return any_of(self, other)

    def __repr__(self) -> str:
        """For people: the text."""
        return f"<rule {self}>"

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions the predicate is made of."""
        return conditions(self.accepts)

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """The leaves of the tree, from left to right."""
        raise NotImplementedError

    @property
    def needs_logits(self) -> bool:
        """Whether the rule speaks of raw logits, so that probabilities do not determine its accepted set."""
        return LOGIT_RATIO in self.accepts.free_symbols

    def accepted_count(
        self, probabilities: Sequence[Any], logit_ratio: Any = None, multiplicities: Sequence[int] | None = None
    ) -> int:
        """How many tokens, most likely first, the rule accepts; exact, for small rows given as exact numbers.

        `multiplicities` says how many tokens have each of the probabilities (one each when left out), so that a row
        over more tokens than can be listed is decided as well.

        `numerics.certificate` does the same at any scale. Comparisons with transcendental thresholds are decided
        exactly (see `theory.exact.compare`).

        Raises:
            DraftcertError: an empty row, a probability outside [0, 1], a rule on logits without `logit_ratio`.
        """
        ratio = None if logit_ratio is None else rational(logit_ratio, "logit_ratio")
        row = exact_row(probabilities)
        return exact_count(self.accepts, row, [1] * len(row) if multiplicities is None else multiplicities, ratio)


@dataclass(frozen=True, eq=False, repr=False)
class Atom(Rule):
    """A family with exact parameters."""

    family: RuleFamily
    arguments: tuple[sympy.Rational, ...]

    @cached_property
    def accepts(self) -> Boolean:
        """The family's predicate at these parameters."""
        return cast("Boolean", self.family.accepts.xreplace(self.values))

    @property
    def values(self) -> dict[sympy.Symbol, sympy.Rational]:
        """The parameters by their symbols."""
        return dict(zip((p.symbol for p in self.family.parameters), self.arguments, strict=True))

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """Itself."""
        return (self,)

    def __str__(self) -> str:
        """The text `parse_rule` reads; of a family of your own, which it cannot read, the name and its hash."""
        arguments = f"({', '.join(map(str, self.arguments))})" if self.arguments else ""
        return self.family.label + arguments


@dataclass(frozen=True, eq=False, repr=False)
class AllOf(Rule):
    """Accepts what all of its parts accept: written with `&`."""

    parts: tuple[Rule, ...]

    @cached_property
    def accepts(self) -> Boolean:
        """The conjunction."""
        return cast("Boolean", sympy.And(*(part.accepts for part in self.parts)))

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """Those of all parts."""
        return tuple(atom for part in self.parts for atom in part.atoms)

    def __str__(self) -> str:
        """The text `parse_rule` reads: `&` binds tighter than `|`, as in Python."""
        return " & ".join(f"({part})" if isinstance(part, AnyOf) else str(part) for part in self.parts)


@dataclass(frozen=True, eq=False, repr=False)
class AnyOf(Rule):
    """Accepts what any of its parts accepts: written with `|`."""

    parts: tuple[Rule, ...]

    @cached_property
    def accepts(self) -> Boolean:
        """The disjunction."""
        return cast("Boolean", sympy.Or(*(part.accepts for part in self.parts)))

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """Those of all parts."""
        return tuple(atom for part in self.parts for atom in part.atoms)

    def __str__(self) -> str:
        """The text `parse_rule` reads."""
        return " | ".join(map(str, self.parts))


MOST_ATOMS = 64
"""Of one rule: what is made of a rule, from its hash to its kernels, takes time and space by their number."""


def all_of(*rules: Rule) -> Rule:
    """Accept what all of them accept."""
    return _combined(AllOf, *rules)


def any_of(*rules: Rule) -> Rule:
    """Accept what any of them accepts."""
    return _combined(AnyOf, *rules)


def _combined(kind: type[AllOf] | type[AnyOf], *rules: Rule) -> Rule:
    """The rules as parts of one node, those that are of its kind dissolved in it."""
    if (atoms := sum(len(rule.atoms) for rule in rules)) > MOST_ATOMS:
        raise DraftcertError(f"a rule of {atoms} atoms: at most {MOST_ATOMS} can be joined")
    parts = [part for rule in rules for part in (rule.parts if isinstance(rule, kind) else (rule,))]
    citations = dict.fromkeys(citation for rule in rules for citation in rule.citation.split("; "))
    return kind(tuple(parts), deployed_as="", citation="; ".join(citations))


def bind(name: str, parameters: Sequence[str], values: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a rule or preset by parameter name: all of them, each once, and no others."""
    given = dict(zip(parameters, values, strict=False)) | named
    if len(values) > len(parameters) or set(named) & set(parameters[: len(values)]) or set(given) != set(parameters):
        text = ", ".join([*map(str, values), *(f"{key}={value}" for key, value in named.items())])
        wrong = next((key for key in named if key not in parameters), "")
        hint = f"; for {shown(wrong)} did you mean {close[0]}?" if (close := near(wrong, parameters)) else ""
        raise DraftcertError(
            f"{name}({shown(text)}): give exactly the parameters of {name}({', '.join(parameters)}){hint}"
        )
    return given


def _within(value: sympy.Rational, domain: sympy.Set) -> bool:
    """Whether a set holds the value; of closed intervals sympy's own answer takes most of the time of making a rule."""
    if isinstance(domain, sympy.Interval) and not (domain.left_open or domain.right_open):
        return bool(domain.start <= value) and bool(value <= domain.end)
    return domain.contains(value) == sympy.true


_REGISTERED: dict[str, str] = {}
"""The hashes of the families that `parse_rule` knows, by name."""


def register(family: RuleFamily) -> None:
    """Let a family be printed by its name alone, since `parse_rule` will read it."""
    _REGISTERED[family.name] = family.sha256


@dataclass(frozen=True, eq=False)
class RuleFamily:
    """A rule with its parameters open: what one file under `theory/rules/` defines, or you yourself.

    Calling it with values gives a `Rule`. Building it checks every worked point: the accepted tokens and the exact
    certificate; a family whose points do not hold cannot be imported.

    - `examples`: parameters worth testing, one tuple a rule. Tests, validation, the search for sharpness and the
      benchmark of soundness run on all of them.
    - `implies`, `implied_by`: what is known of its order beside other families, by their names. A pair needs one
      entry, in either file.
    - `special_case`: the name of a more general family, and the values of its further parameters that make it this one.

    >>> from sympy import Ge, Interval, Symbol
    >>> from draftcert.theory.statistics import PROBABILITY, TOP
    >>> alpha = Symbol("alpha", nonnegative=True)
    >>> domain = Parameter(alpha, Interval(0, 1), "least fraction of half the largest probability")
    >>> halved = RuleFamily("halved", (domain,), Ge(PROBABILITY, alpha * TOP / 2), "nobody", "this example", ())
    >>> halved(1).accepted_count(["0.5", "0.3", "0.2"])
    2
    """

    name: str
    parameters: tuple[Parameter, ...]
    accepts: Boolean
    deployed_as: str
    citation: str
    worked_points: tuple[WorkedPoint, ...]
    doc: str | None = None
    examples: tuple[tuple[str, ...], ...] = ()
    implies: Mapping[str, OrderFact] = field(default_factory=dict)
    implied_by: Mapping[str, OrderFact] = field(default_factory=dict)
    special_case: tuple[str, Mapping[str, str]] | None = None

    def __post_init__(self) -> None:
        """Refuse a predicate that is no cut of the target's order by statistics of the row; check the worked points."""
        conditions(self.accepts)
        known = {PROBABILITY, RANK, TOP, LOGIT_RATIO, *(parameter.symbol for parameter in self.parameters)}
        if unknown := self.accepts.free_symbols - known:
            names = ", ".join(sorted(map(str, unknown)))
            raise DraftcertError(f"rule '{self.name}' depends on {names}, which is no statistic of a target row")
        for point in self.worked_points:
            self._check(point)

    def __eq__(self, other: object) -> bool:
        """Whether the other is a family with the same parameters and predicate."""
        return isinstance(other, RuleFamily) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        """Of parameters and predicate."""
        return hash(self.sha256)

    @cached_property
    def sha256(self) -> str:
        """Hash of the parameters and the predicate."""
        meaning = [[p.symbol, p.domain] for p in self.parameters], self.accepts
        return hashlib.sha256(sympy.srepr(meaning).encode()).hexdigest()

    @property
    def label(self) -> str:
        """The name, where `parse_rule` reads it as this family; else the name and the beginning of its hash."""
        return self.name if _REGISTERED.get(self.name) == self.sha256 else f"{self.name}#{self.sha256[:8]}"

    def __call__(self, *values: Any, **named: Any) -> Rule:
        """The rule with these parameter values (int, float, Fraction or text such as '0.3' or '3/10'), kept exact.

        A float is read as the decimal it prints as: additive(0.3) means 3/10.
        """
        given = bind(self.name, [p.name for p in self.parameters], values, named)
        exact = tuple(self._exact(p, given) for p in self.parameters)
        return Atom(self, exact, deployed_as=self.deployed_as, citation=self.citation)

    def _exact(self, parameter: Parameter, given: dict[str, Any]) -> sympy.Rational:
        value = rational(given[parameter.name], f"{self.name}: {parameter.name}")
        if not _within(value, parameter.domain):
            raise DraftcertError(
                f"{self.name}: {parameter.name} = {given[parameter.name]} lies outside {sympy.pretty(parameter.domain)}"
            )
        return value

    def _check(self, point: WorkedPoint) -> None:
        rule = self(*point.arguments)
        row = exact_row(point.probabilities)
        if sum(row) != 1:
            raise DraftcertError(f"{rule}: worked point {point.probabilities} sums to {sum(row)}")
        count = rule.accepted_count(row, point.logit_ratio)
        order = sorted(range(len(row)), key=lambda token: (-row[token], token))
        if tuple(sorted(order[:count])) != point.accepted:
            raise DraftcertError(
                f"{rule} accepts {sorted(order[:count])} at {point.probabilities}, not {point.accepted}"
            )
        value = exact_certificate(row, count, point.candidates)
        if value != point.certificate:
            difference = None if sympy.oo in (value, point.certificate) else logarithms(value - point.certificate)
            if difference is None or not vanishes(difference):
                raise DraftcertError(f"{rule}: C{point.probabilities} = {value}, not {point.certificate}")
