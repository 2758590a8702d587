"""`Theorem`: a result as data. Every claim in it has a meaning of its own, which a checker decides without the prose.

The claims speak about rows: a target `p` over finitely many tokens, split into classes (`TokenClass`) that are
accepted, competitors or otherwise rejected. A draft `q` is REJECTED by a row when some `t` has `q <= t` on all accepted
tokens and `q >= t` on all competitors; the certificate `C` of the row is the infimum of `KL(p||q)` over such `q`.

Evidence (`by`, `lower`, `upper`, ...) says how a claim can be seen to hold. It is never believed: a claim without
sufficient evidence is not proved, and wrong evidence cannot make a false claim pass.

Sums over a class whose size is not known are compared term by term (`SumProof`). Terms are written in the class's own
probability and in `DRAFT`, `THRESHOLD`; they are compared where `p, q > 0`. That covers zeros too, since `p ln(p/q)` is
a closed convex function, with `0 ln 0 = 0` and `+oo` at `q = 0 < p`.

A theorem also says for which acceptance rules its claims are bounds of the certificate from a margin (`RuleBound`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Literal

import sympy

from .errors import DraftcertError
from .formula import Formula
from .formulas import g, m
from .rule import RuleFamily

DRAFT = sympy.Symbol("q_x", positive=True)
"""The draft's probability of a token, in terms of sums."""

THRESHOLD = sympy.Symbol("t_q", positive=True)
"""A number that separates the draft: `q <= t` on accepted tokens, `q >= t` on competitors."""

MARGIN, CANDIDATES = g, m
VOCABULARY = sympy.Symbol("V", positive=True)
"""Number of tokens of the vocabulary."""


@dataclass(frozen=True)
class Range:
    """A variable between two bounds, which may use the variables before it (and Max, Min of several bounds)."""

    symbol: sympy.Symbol
    lower: sympy.Expr
    upper: sympy.Expr
    open_below: bool = False
    open_above: bool = False
    integer: bool = False


Domain = tuple[Range, ...]


# ---- evidence of an inequality ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evident:
    """The difference of the sides equals `form`, whose sign can be read off: sums and products of signed parts."""

    form: sympy.Expr | None = None


@dataclass(frozen=True)
class Growth:
    """The difference, as a function of `symbol`, is `start` at one end of its range and grows from there.

    `symbol` is the last variable of the domain (or enters no other variable's bounds). With `from_above`, it starts at
    the upper bound and the slope is negative. Nested twice it is convexity at a touching point.
    """

    symbol: sympy.Symbol
    start: Evidence
    slope: Evidence
    from_above: bool = False


@dataclass(frozen=True)
class Subdivision:
    """Ball arithmetic on a subdivision of the domain, which must be bounded, with a difference that stays positive."""

    pieces: int = 4096


Evidence = Evident | Growth | Subdivision


# ---- claims about expressions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Equal:
    """`left = right` on the domain, its closed ends included."""

    left: sympy.Expr
    right: sympy.Expr
    domain: Domain


@dataclass(frozen=True)
class AtLeast:
    """`left >= right` on the domain (`>` when strict, inside it)."""

    left: sympy.Expr
    right: sympy.Expr
    domain: Domain
    by: Evidence = Evident()
    strict: bool = False


@dataclass(frozen=True)
class Limit:
    """`expression -> value` as `symbol` goes to an end of its range, the other variables fixed."""

    expression: sympy.Expr
    symbol: sympy.Symbol
    at_upper: bool
    value: sympy.Expr
    domain: Domain


# ---- claims about rows -----------------------------------------------------------------------------------------


class Role(Enum):
    """What a token is to the rejected draft."""

    ACCEPTED = "accepted"
    COMPETITOR = "competitor"
    REJECTED = "rejected"


@dataclass(frozen=True)
class TokenClass:
    """Tokens of a row: how many (`None`: any finite number), their role, and the range of each one's probability.

    `probability` is the symbol of `ranges`, or an expression in the parameters when there is nothing left to range.
    """

    name: str
    role: Role
    count: sympy.Expr | None
    probability: sympy.Expr
    ranges: Domain = ()


@dataclass(frozen=True)
class SumFact:
    """A hypothesis on a row: the terms, summed over all tokens, are `total` (with `at_least`: at least `total`)."""

    terms: Mapping[str, sympy.Expr]
    total: sympy.Expr = sympy.S.Zero
    at_least: bool = False


@dataclass(frozen=True)
class Rows:
    """All rows made of these classes, for all parameters in their domain, with mass one and the given facts."""

    parameters: Domain
    classes: tuple[TokenClass, ...]
    facts: tuple[SumFact, ...] = ()


@dataclass(frozen=True)
class SumProof:
    """Why a sum over a row is at least a total: the term of each class minus

        mass * p + draft_mass * q + sum_j facts[j] * (term of fact j) + constants[class]

    is nonnegative by `slack[class]`, and what these add up to (the sums being known) minus the total by `rest`.
    """

    mass: sympy.Expr = sympy.S.Zero
    draft_mass: sympy.Expr = sympy.S.Zero
    facts: tuple[sympy.Expr, ...] = ()
    constants: Mapping[str, sympy.Expr] = field(default_factory=dict)
    slack: Mapping[str, Evidence] = field(default_factory=dict)
    rest: Evidence = Evident()


@dataclass(frozen=True)
class SumEqual:
    """`sum of left = right` for every row, where `left` gives the term of each class."""

    rows: Rows
    left: Mapping[str, sympy.Expr]
    right: sympy.Expr
    by: SumProof


@dataclass(frozen=True)
class SumAtLeast:
    """`sum of left >= right` for every row, where `left` gives the term of each class."""

    rows: Rows
    left: Mapping[str, sympy.Expr]
    right: sympy.Expr
    by: SumProof


@dataclass(frozen=True)
class Witness:
    """A rejected draft for every row: its probability per class, and how its mass and its divergence are seen."""

    draft: Mapping[str, sympy.Expr]
    threshold: sympy.Expr
    mass: SumProof
    divergence: SumProof


@dataclass(frozen=True)
class Value:
    """What a bound is about: `total` plus the sum of `terms` over the row."""

    total: sympy.Expr = sympy.S.Zero
    terms: Mapping[str, sympy.Expr] = field(default_factory=dict)


@dataclass(frozen=True)
class FamilyTokens:
    """Equal tokens of a family: the class they belong to, their probability, their number, whether they are pooled."""

    of: str
    probability: sympy.Expr
    count: sympy.Expr
    pooled: bool


@dataclass(frozen=True)
class Family:
    """Explicit rows that show a bound to be sharp.

    `at` gives the parameters of the rows in terms of the variables of `domain`. With `limit`, the bound is reached only
    in the limit: a continuous variable goes to its lower bound, an integer to infinity.
    """

    domain: Domain
    at: Mapping[sympy.Symbol, sympy.Expr]
    tokens: tuple[FamilyTokens, ...]
    limit: sympy.Symbol | None = None


@dataclass(frozen=True)
class LowerBound:
    """`C >= value` on every row."""

    rows: Rows
    value: Value
    by: SumProof


@dataclass(frozen=True)
class UpperBound:
    """`C <= value` on every row."""

    rows: Rows
    value: Value
    by: Witness


@dataclass(frozen=True)
class ExactValue:
    """`C = value` on every row; `example` is one such row or more, so that there are any."""

    rows: Rows
    value: Value
    lower: SumProof
    upper: Witness
    example: Family


@dataclass(frozen=True)
class Infimum:
    """`inf C = value` over the rows with given parameters: a bound, and a family that attains or approaches it."""

    rows: Rows
    value: sympy.Expr
    lower: SumProof
    family: Family


@dataclass(frozen=True)
class Supremum:
    """`sup C = value` over the rows with given parameters: a bound, and a family that attains or approaches it."""

    rows: Rows
    value: sympy.Expr
    upper: Witness
    family: Family


@dataclass(frozen=True)
class Optimum:
    """A solved case of the convex program for a small index set: the least `KL(p||q)` over rejected `q`.

    `accepted`, `competitors`, `others` are probabilities in the variables of `domain`, with mass one. `draft` is the
    minimiser in the same order, `multipliers[i][a]` belongs to the constraint `q_i >= q_a` of competitor i and accepted
    token a, `mass_multiplier` to the constraint that the draft's mass is one.
    """

    domain: Domain
    accepted: tuple[sympy.Expr, ...]
    competitors: tuple[sympy.Expr, ...]
    others: tuple[sympy.Expr, ...]
    draft: tuple[sympy.Expr, ...]
    multipliers: tuple[tuple[sympy.Expr, ...], ...]
    mass_multiplier: sympy.Expr
    value: sympy.Expr


@dataclass(frozen=True)
class Formal:
    """A theorem of the Coq development. It counts only when this run has audited it."""

    lemma: str


# ---- rules -----------------------------------------------------------------------------------------------------


class End(Enum):
    """An end of the range of the certificate over some targets."""

    INFIMUM = "infimum"
    SUPREMUM = "supremum"


@dataclass(frozen=True)
class OfRule:
    """What is known of another rule, its arguments given by the parameters of the rule at hand."""

    family: RuleFamily
    arguments: tuple[sympy.Expr, ...] = ()


@dataclass(frozen=True)
class Accepts:
    """Where the rule accepts just so many tokens of the target that these are, the most likely ones."""

    tokens: tuple[FamilyTokens, ...]
    accepted: int


Margin = Literal["top2", "coverage"]
"""Which margin of the target is known: `p_(1) - p_(2)`, or `p_(1) - p_(m+1)` to the last of m candidates."""


@dataclass(frozen=True)
class RuleBound:
    """A bound of the certificate under a rule, over all targets with a known margin: an end of its range.

    It holds for the rule's parameters, the margin `g`, `m` candidates and `V` tokens (`oo`: a vocabulary of any size)
    within the ranges of `where`, and only where the rule `accepts` what it says of a target. Several may hold at once:
    the sharp ones are equal, the others no better.

    The value is an expression, that `OfRule` another, or the certificate of the extremal rows of claims: the least (for
    an infimum) or greatest of those whose domains hold the parameters too. `at` gives the other variables of the
    claims, each in terms of all these and of the ones before it.

    This applies claims to rules and is no claim itself: the prover decides the claims that its value is taken from, and
    their end. `numerics.margin_bounds` evaluates it, and `numerics.sharpness` tries to refute it.
    """

    rule: RuleFamily
    end: End
    value: sympy.Expr | OfRule | tuple[ExactValue | Infimum | Supremum, ...]
    where: Domain = ()
    at: Mapping[sympy.Symbol, sympy.Expr] = field(default_factory=dict)
    accepts: Accepts | None = None
    known: Margin = "top2"
    attained: bool = True
    """Whether the extremal rows are targets of the rule themselves; else only rows near them are, where the rule
    accepts a competitor that lies on its threshold."""
    sharp: bool = True
    """Whether it is the infimum or supremum; else only a valid bound."""

    def __post_init__(self) -> None:
        """Refuse ranges in which something unknown occurs."""
        known = {MARGIN, CANDIDATES, VOCABULARY, *self.at, *(each.symbol for each in self.rule.parameters)}
        ends = (end for each in self.where for end in (each.symbol, each.lower, each.upper))
        if unknown := {symbol for end in ends for symbol in end.free_symbols} - known:
            raise DraftcertError(
                f"a bound for {self.rule.name} speaks of {sorted(map(str, unknown))}, which is unknown"
            )


def both_ends(
    rule: RuleFamily, value: sympy.Expr | OfRule, where: Domain = (), accepts: Accepts | None = None
) -> tuple[RuleBound, ...]:
    """Infimum and supremum, of the same value or both those of another rule."""
    return tuple(RuleBound(rule, end, value, where, accepts=accepts) for end in End)


Claim = (
    Equal
    | AtLeast
    | Limit
    | SumEqual
    | SumAtLeast
    | LowerBound
    | UpperBound
    | ExactValue
    | Infimum
    | Supremum
    | Optimum
    | Formal
)


@dataclass(frozen=True)
class Step:
    """One numbered line of a derivation: what is claimed, in words and as data, and the reason."""

    says: str
    claim: Claim
    reason: str


@dataclass(frozen=True)
class WorkedRow:
    """An exact row with its certificate: `accepted` most likely tokens are accepted; probabilities as fractions."""

    probabilities: tuple[str, ...]
    accepted: int
    candidates: int
    certificate: sympy.Expr
    note: str = ""


@dataclass(frozen=True)
class Establishes:
    """That a formula is what the theorem speaks about, with its symbols renamed by `renamed`.

    A conclusion about rows must say so: the formula is the value of a bound, a level, a divergence. Or, with
    `parameter`, it is the parameter of an extremal family as a function of the margin to the family's last token.
    """

    formula: Formula
    renamed: Mapping[sympy.Symbol, sympy.Expr] = field(default_factory=dict)
    parameter: sympy.Symbol | None = None


@dataclass(frozen=True)
class Theorem:
    """A result of the theory: hypotheses, conclusions, and the derivation that leads to them.

    Every conclusion is a claim that is decided by itself; the derivation's steps are claims too. `formal` names the Coq
    theorems that state the same for any index set. `bounds` says what follows for the certificates of acceptance rules.

    >>> from draftcert.theory import THEOREMS
    >>> THEOREMS["M7"].title, THEOREMS["M7"].formal
    ('Tree of m candidates, margin to the second token', ('M7_lower_bound', 'M7_sharp'))
    """

    name: str
    title: str
    statement: str
    hypotheses: tuple[str, ...]
    derivation: tuple[Step, ...]
    conclusions: tuple[Claim, ...]
    worked_points: tuple[WorkedRow, ...] = ()
    establishes: tuple[Establishes, ...] = ()
    formal: tuple[str, ...] = ()
    bounds: tuple[RuleBound, ...] = ()
    citation: str = "draftcert"

    def __post_init__(self) -> None:
        """Refuse a theorem that concludes nothing or whose claims use classes or variables they do not declare."""
        if not self.conclusions:
            raise DraftcertError(f"theorem {self.name} has no conclusion")
        for place, claim in self.claims():
            try:
                _check_names(claim)
            except DraftcertError as error:
                raise DraftcertError(f"theorem {self.name}, {place}: {error}") from error

    def claims(self) -> tuple[tuple[str, Claim], ...]:
        """Every claim with its place: `step 1`, ..., `conclusion 1`, ..., `formal NAME`."""
        return (
            *((f"step {i}", step.claim) for i, step in enumerate(self.derivation, 1)),
            *((f"conclusion {i}", claim) for i, claim in enumerate(self.conclusions, 1)),
            *((f"formal {name}", Formal(name)) for name in self.formal),
        )

    @cached_property
    def sha256(self) -> str:
        """Hash of all that is claimed, in words and as data, and how it is shown; only its name and source are not."""
        content = [canonical(getattr(self, f.name)) for f in fields(self) if f.name not in ("name", "citation")]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def canonical(value: Any) -> Any:
    """A record as nested lists of text, the same in every run."""
    if isinstance(value, sympy.Basic):
        return sympy.srepr(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (Formula, RuleFamily)):
        return value.sha256
    if is_dataclass(value):
        return [type(value).__name__, *(canonical(getattr(value, f.name)) for f in fields(value))]
    if isinstance(value, Mapping):
        return sorted(([canonical(key), canonical(item)] for key, item in value.items()), key=repr)
    if isinstance(value, tuple):
        return [canonical(item) for item in value]
    return repr(value)


def _check_names(claim: Claim) -> None:
    """Refuse unknown class names and unordered domains."""
    rows = getattr(claim, "rows", None)
    if rows is None:
        domain = getattr(claim, "domain", ())
        _check_domain(domain)
        return
    _check_domain(rows.parameters)
    names = [each.name for each in rows.classes]
    if len(set(names)) != len(names):
        raise DraftcertError(f"two classes of tokens have the same name in {names}")
    for each in rows.classes:
        _check_domain(rows.parameters + each.ranges)
    used = {name for fact in rows.facts for name in fact.terms}
    if unknown := used - set(names):
        raise DraftcertError(f"facts speak of classes {sorted(unknown)}; there are {names}")


def _check_domain(domain: Domain) -> None:
    known: set[sympy.Basic] = set()
    for each in domain:
        if unknown := (each.lower.free_symbols | each.upper.free_symbols) - known:
            raise DraftcertError(f"the range of {each.symbol} uses {sorted(map(str, unknown))} before it is declared")
        if each.symbol in known:
            raise DraftcertError(f"{each.symbol} is declared twice")
        known.add(each.symbol)
