"""`Rule`: an acceptance rule as data, from which the convex program, the reference, the kernels and the docs are made.

A rule is a Boolean expression of sympy in the judged token's PROBABILITY or RANK and the row's statistics. Every
condition cuts the same order (probability descending, ties by lowest id), so the accepted tokens are always its first
`n`: intersection of rules is the least `n`, union the greatest. Strictness is the relation itself (`>=` or `>`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import mpmath
import sympy
from sympy.logic.boolalg import Boolean

from .errors import DraftcertError
from .pool import select_pool
from .statistics import LOGIT_RATIO, PROBABILITY, RANK, TOP, Entropy


@dataclass(frozen=True)
class Parameter:
    """A parameter of a rule: its symbol, the set of values it may take and what it means."""

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
class ThresholdCondition:
    """Accepted iff `p(x) >= threshold` (or `>` when strict)."""

    threshold: sympy.Expr
    strict: bool


@dataclass(frozen=True)
class RankCondition:
    """Accepted iff the token is among the `limit` most likely."""

    limit: sympy.Expr


@dataclass(frozen=True)
class RowCondition:
    """Accepts every token of a row where `holds`, and none elsewhere."""

    holds: Boolean


Condition = ThresholdCondition | RankCondition | RowCondition


def _condition(relation: Boolean) -> Condition:
    """Read one relation as a cut of the order, or say why it is not one."""
    if relation in (sympy.true, sympy.false):
        return RowCondition(relation)
    if not isinstance(relation, (sympy.Ge, sympy.Gt, sympy.Le, sympy.Lt)):
        raise DraftcertError(f"'{relation}' is not an order comparison: a rule is built from >=, >, <=, <, &, |")
    gts, lts = cast("sympy.Expr", relation.gts), cast("sympy.Expr", relation.lts)
    strict = isinstance(relation, (sympy.Gt, sympy.Lt))
    token = relation.free_symbols & {PROBABILITY, RANK}
    if gts == PROBABILITY and not lts.free_symbols & {PROBABILITY, RANK}:
        return ThresholdCondition(lts, strict)
    if lts == RANK and not gts.free_symbols & {PROBABILITY, RANK}:
        return RankCondition(gts - 1 if strict else gts)
    if not token:
        return RowCondition(relation)
    raise DraftcertError(
        f"'{relation}' does not cut the order of the target: an accepted set must hold every token at least as likely "
        "as an accepted one, so a condition bounds p_x from below or r_x from above by statistics of the row"
    )


def fold_conditions(
    accepts: Boolean,
    count: Callable[[Condition], Any],
    minimum: Callable[[Any, Any], Any],
    maximum: Callable[[Any, Any], Any],
) -> Any:
    """The accepted count of a rule from the counts of its conditions: `&` is the minimum, `|` the maximum.

    This is the one place that gives the connectives a meaning; exact, tensor and generated code all fold with it.
    """
    if isinstance(accepts, (sympy.And, sympy.Or)):
        combine = minimum if isinstance(accepts, sympy.And) else maximum
        parts = sorted(accepts.args, key=sympy.default_sort_key)
        result = fold_conditions(parts[0], count, minimum, maximum)  # type: ignore[arg-type]
        for part in parts[1:]:
            result = combine(result, fold_conditions(part, count, minimum, maximum))  # type: ignore[arg-type]
        return result
    return count(_condition(accepts))


def conditions(accepts: Boolean) -> tuple[Condition, ...]:
    """All conditions of a rule, in a fixed order."""
    found: list[Condition] = []
    fold_conditions(accepts, lambda condition: found.append(condition), lambda a, b: None, lambda a, b: None)
    return tuple(found)


def _is_union(expression: str) -> bool:
    """Whether a rule's text has a `|` outside all parentheses."""
    depth = 0
    for sign in expression:
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "|" and depth == 0:
            return True
    return False


@dataclass(frozen=True)
class Rule:
    """An acceptance rule with all parameters given.

    `accepts` is the predicate; `expression` the text that `parse_rule` reads back to an equal rule.

    >>> from draftcert.theory import parse_rule
    >>> rule = parse_rule("top_m(2) & additive(0.1)")
    >>> rule.accepted_count(["0.4", "0.35", "0.25"])
    2
    """

    expression: str
    accepts: Boolean = field(compare=False)
    deployed_as: str = field(compare=False)
    citation: str = field(compare=False)

    def __post_init__(self) -> None:
        """Refuse a predicate that is not a cut of the target's order by statistics of the row."""
        conditions(self.accepts)
        allowed = {PROBABILITY, RANK, TOP, LOGIT_RATIO}
        if unknown := self.accepts.free_symbols - allowed:
            names = ", ".join(sorted(map(str, unknown)))
            raise DraftcertError(f"rule '{self.expression}' depends on {names}, which is no statistic of a target row")

    def __and__(self, other: Rule) -> Rule:
        """Accept what both accept."""
        return self._combined(other, "&", sympy.And(self.accepts, other.accepts))

    def __or__(self, other: Rule) -> Rule:
        """Accept what either accepts."""
        return self._combined(other, "|", sympy.Or(self.accepts, other.accepts))

    def _combined(self, other: Rule, sign: str, accepts: Boolean) -> Rule:
        # `&` binds tighter than `|`, as in Python: only a union inside an intersection needs its parentheses.
        left, right = (
            f"({rule.expression})" if sign == "&" and _is_union(rule.expression) else rule.expression
            for rule in (self, other)
        )
        citations = "; ".join(dict.fromkeys((self.citation, other.citation)))
        return Rule(f"{left} {sign} {right}", accepts, "", citations)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions the predicate is made of."""
        return conditions(self.accepts)

    @property
    def needs_logits(self) -> bool:
        """Whether the rule speaks of raw logits, so that probabilities do not determine its accepted set."""
        return LOGIT_RATIO in self.accepts.free_symbols

    def __str__(self) -> str:
        """The text `parse_rule` reads."""
        return self.expression

    def accepted_count(
        self, probabilities: Sequence[Any], logit_ratio: Any = None, multiplicities: Sequence[int] | None = None
    ) -> int:
        """How many tokens, most likely first, the rule accepts; exact, for small rows given as exact numbers.

        `multiplicities` says how many tokens have each of the probabilities (one each when left out), so that a row
        over more tokens than can be listed is decided as well.

        `numerics.certificate` does the same at any scale. Comparisons with transcendental thresholds are decided
        exactly (see `compare`).

        Raises:
            DraftcertError: an empty row, a probability outside [0, 1], a rule on logits without `logit_ratio`.
        """
        ratio = None if logit_ratio is None else _rational(logit_ratio, "logit_ratio")
        row = _row(probabilities)
        return _exact_count(self.accepts, row, [1] * len(row) if multiplicities is None else multiplicities, ratio)


def _rational(value: Any, what: str) -> sympy.Rational:
    """An exact number from an int, float (the decimal it prints as), Fraction or text."""
    try:
        exact = sympy.Rational(str(value))
    except (TypeError, ValueError, ZeroDivisionError):
        exact = sympy.nan
    if not isinstance(exact, sympy.Rational) or not exact.is_finite:
        raise DraftcertError(f"{what} = {str(value)!r} is not a number: give a decimal or a fraction such as 3/10")
    return exact


def _row(probabilities: Sequence[Any]) -> list[sympy.Rational]:
    row = [_rational(value, f"the probability of token {token}") for token, value in enumerate(probabilities)]
    if not row:
        raise DraftcertError("an empty row: a target distribution has at least one token")
    for token, value in enumerate(row):
        if not 0 <= value <= 1:
            raise DraftcertError(f"the probability of token {token} = {value} lies outside [0, 1]")
    return row


def _exact_count(
    accepts: Boolean, row: list[sympy.Rational], multiplicities: Sequence[int], logit_ratio: sympy.Rational | None
) -> int:
    groups = sorted(zip(row, multiplicities, strict=True), reverse=True)
    top, size = groups[0][0], sum(multiplicities)

    def evaluate(expression: Any) -> Any:
        if LOGIT_RATIO in expression.free_symbols and logit_ratio is None:
            raise DraftcertError("this rule compares raw logits: give logit_ratio = z_(2)/z_(1)")
        return expression.xreplace({TOP: top} if logit_ratio is None else {TOP: top, LOGIT_RATIO: logit_ratio})

    def entropy(floor: sympy.Expr) -> Logarithms:
        return [(-n * p, p + floor) for p, n in groups if p != 0]

    def against(probability: sympy.Rational, threshold: sympy.Expr) -> int:
        # The parts of a minimum or maximum are compared one by one, so sympy need not order them.
        if isinstance(threshold, (sympy.Min, sympy.Max)):
            signs = [against(probability, part) for part in threshold.args]  # type: ignore[arg-type]
            return max(signs) if isinstance(threshold, sympy.Min) else min(signs)
        return compare(probability, evaluate(threshold), entropy)

    def count(condition: Condition) -> int:
        if isinstance(condition, RankCondition):
            return min(int(evaluate(condition.limit)), size)
        if isinstance(condition, RowCondition):
            return size if bool(evaluate(condition.holds)) else 0
        # Groups are in descending order, so the first one that fails ends the accepted set.
        accepted = 0
        for probability, tokens in groups:
            comparison = against(probability, condition.threshold)
            if comparison < 0 or (condition.strict and comparison == 0):
                break
            accepted += tokens
        return accepted

    return fold_conditions(accepts, count, min, max)


Logarithms = list[tuple[sympy.Expr, sympy.Expr]]
"""`[(coefficient, base), ...]`, rationals: the number `sum coefficient * log(base)`."""


def compare(
    number: sympy.Expr, threshold: sympy.Expr, entropy: Callable[[sympy.Expr], Logarithms] | None = None
) -> int:
    """Sign of `number - threshold`, exactly, for thresholds that are rationals or products of rational powers.

    `exp(-Entropy(f))` of an exact row, which `entropy` gives, is such a product. The logarithm of the ratio is then a
    rational combination of logarithms of primes. These are independent over the rationals: it is zero iff all its
    coefficients are, and else enough digits show its sign.

    Raises:
        DraftcertError: the threshold is of another kind. Never a guess.

    >>> compare(sympy.Rational(1, 2), sympy.sqrt(2) / 2)
    -1
    """
    if threshold.is_Rational:
        return int(sympy.sign(number - threshold))
    if threshold.is_positive:
        if not number.is_positive:
            return -1
        ratio = logarithms(sympy.log(number) - sympy.log(threshold), entropy)
        if ratio is not None:
            return _sign(ratio)
    raise DraftcertError(f"cannot decide whether {number} reaches the threshold {threshold}")


def logarithms(expression: sympy.Expr, entropy: Callable[[sympy.Expr], Logarithms] | None = None) -> Logarithms | None:
    """An expression as a rational combination of logarithms of rationals; None when it is none."""
    found: Logarithms = []
    for term in sympy.Add.make_args(sympy.expand_log(expression, force=True)):
        coefficient, factor = term.as_coeff_Mul()
        if isinstance(factor, Entropy) and entropy is not None:
            found += [(coefficient * weight, base) for weight, base in entropy(factor.args[0])]  # type: ignore[arg-type]
        elif isinstance(factor, sympy.log) and factor.args[0].is_Rational:
            found.append((coefficient, cast("sympy.Expr", factor.args[0])))
        elif coefficient != 0:
            return None
    return found


def _sign(combination: Logarithms) -> int:
    for digits in (30, 300, 3000):
        with mpmath.workdps(digits):
            terms = [(_mpf(coefficient), mpmath.log(_mpf(base))) for coefficient, base in combination]
            total = mpmath.fsum(coefficient * logarithm for coefficient, logarithm in terms)
            error = mpmath.fsum(abs(coefficient) * (1 + abs(logarithm)) for coefficient, logarithm in terms)
            if abs(total) > error * mpmath.mpf(10) ** (5 - digits):
                return int(mpmath.sign(total))
        if _vanishes(combination):
            return 0
    raise DraftcertError("a threshold agrees with a probability to 3000 digits without being equal")


def _mpf(number: Any) -> Any:
    return mpmath.mpf(number.p) / number.q


def _vanishes(combination: Logarithms) -> bool:
    """Whether the combination is zero, by unique factorisation."""
    total: dict[int, sympy.Expr] = {}
    for coefficient, base in combination:
        for prime, power in cast("dict[int, int]", sympy.factorrat(base)).items():
            total[prime] = total.get(prime, sympy.Integer(0)) + power * coefficient
    return not any(total.values())


def exact_certificate(row: Sequence[sympy.Expr], accepted_count: int, candidates: int) -> sympy.Expr:
    """Theorems T1 to T3 on an exact row, as a sympy expression in nats: infinite below `candidates` rejected tokens."""
    ordered = sorted(row, reverse=True)
    accepted, competitors = ordered[:accepted_count], ordered[accepted_count : accepted_count + candidates]
    if len(competitors) < candidates:
        return sympy.oo
    if not accepted:
        return sympy.Integer(0)
    pool = select_pool(accepted, competitors)
    pooled = accepted[: pool.accepted] + competitors[candidates - pool.competitors :]
    return sympy.Add(*(p * sympy.log(p / pool.level) for p in pooled if p != 0))


def bind(name: str, parameters: Sequence[str], values: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a rule or preset by parameter name: all of them, each once, and no others."""
    given = dict(zip(parameters, values, strict=False)) | named
    if len(values) > len(parameters) or set(named) & set(parameters[: len(values)]) or set(given) != set(parameters):
        text = ", ".join([*map(str, values), *(f"{key}={value}" for key, value in named.items())])
        raise DraftcertError(f"{name}({text}): give exactly the parameters of {name}({', '.join(parameters)})")
    return given


@dataclass(frozen=True)
class RuleFamily:
    """A rule with its parameters open: what one file under `theory/rules/` defines.

    Calling it with values gives a `Rule`. Building it checks every worked point: the accepted tokens and the exact
    certificate; a family whose points do not hold cannot be imported.
    """

    name: str
    parameters: tuple[Parameter, ...]
    accepts: Boolean
    deployed_as: str
    citation: str
    worked_points: tuple[WorkedPoint, ...]
    doc: str | None = None

    def __post_init__(self) -> None:
        """Check the worked points."""
        for point in self.worked_points:
            self._check(point)

    def __call__(self, *values: Any, **named: Any) -> Rule:
        """The rule with these parameter values (int, float, Fraction or text such as '0.3' or '3/10'), kept exact.

        A float is read as the decimal it prints as: additive(0.3) means 3/10.
        """
        given = bind(self.name, [p.name for p in self.parameters], values, named)
        exact = {p.symbol: self._exact(p, given) for p in self.parameters}
        text = f"({', '.join(map(str, exact.values()))})" if exact else ""
        return Rule(self.name + text, cast("Boolean", self.accepts.xreplace(exact)), self.deployed_as, self.citation)

    def _exact(self, parameter: Parameter, given: dict[str, Any]) -> sympy.Rational:
        value = _rational(given[parameter.name], f"{self.name}: {parameter.name}")
        if parameter.domain.contains(value) != sympy.true:
            raise DraftcertError(
                f"{self.name}: {parameter.name} = {given[parameter.name]} lies outside {sympy.pretty(parameter.domain)}"
            )
        return value

    def _check(self, point: WorkedPoint) -> None:
        rule = self(*point.arguments)
        row = _row(point.probabilities)
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
            if difference is None or not _vanishes(difference):
                raise DraftcertError(f"{rule}: C{point.probabilities} = {value}, not {point.certificate}")
