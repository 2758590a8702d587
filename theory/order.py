"""The order between rules (T6): which rule accepts, on every target, only tokens that another accepts too.

If `narrow` implies `wide` in this sense, then C is never higher under `narrow`: accepted sets are level sets of one
order, so the wide rule's rejected drafts are rejected by the narrow one. `CONDITIONS` gives for every ordered pair of
families the parameters for which the implication holds on all targets over any vocabulary, with the reason. It is exact
in both directions, except from `typical_floor` with a positive floor, where it is sufficient only: for every other
choice of parameters `implication` finds a target that refutes the implication and checks it in exact arithmetic.

The logit ratio of `mars` is free: nothing ties it to the probabilities (they are blind to a shift of the logits).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import Any, cast

import sympy
from sympy import And, Eq, Ge, Gt, Integer, Le, Lt, Min, Or, Rational, Symbol, ceiling, false, true
from sympy.logic.boolalg import Boolean

from .errors import DraftcertError
from .parse import parse_rule
from .rule import Rule, compare
from .rules import RULES


@dataclass(frozen=True)
class Condition:
    """For which parameters the narrow family implies the wide one, and why. Wide parameters carry a prime."""

    holds: Boolean
    reason: str
    necessary: bool = True


def prime_symbol(name: str) -> Symbol:
    """The wide rule's parameter of this name."""
    return Symbol(name + "'", nonnegative=True)


t, alpha, k, tau, theta, epsilon, delta, floor = (
    Symbol(name, nonnegative=True) for name in ("t", "alpha", "k", "tau", "theta", "epsilon", "delta", "floor")
)
t_, alpha_, k_, tau_, theta_, epsilon_, delta_, floor_ = (
    prime_symbol(name) for name in ("t", "alpha", "k", "tau", "theta", "epsilon", "delta", "floor")
)


def concentrated(s: sympy.Expr, f: sympy.Expr) -> sympy.Expr:
    """The largest exp(-H_f) of a target that has a token of probability s: all other mass on one token."""
    return (s + f) ** s * (1 - s + f) ** (1 - s)


def equal(left: sympy.Expr, right: sympy.Expr | int) -> Boolean:
    """`left = right` as a condition."""
    return cast("Boolean", Eq(left, right))


POSITIVE = Or(equal(epsilon_, 0), equal(delta_, 0))
"""The wide typical rule has threshold 0: it accepts every token of positive probability."""


def _typical(holds: Boolean, floor_value: sympy.Expr) -> Boolean:
    return cast("Boolean", holds.xreplace({floor_: floor_value}))


def _conditions() -> Iterator[tuple[tuple[str, str], Condition]]:
    """Every pair. `typical` is `typical_floor` with floor 0, so both are written once, in the floor."""
    argmax = "the argmax has the largest probability and rank 1"
    accepts_argmax = Or(POSITIVE, And(equal(floor_, 0), Lt(delta_, 1)))
    argmax_typical = (
        "exp(-H) <= p_(1), so delta exp(-H) < p_(1) for delta < 1; at delta = 1, or with a positive floor, a uniform "
        "target over a large vocabulary rejects its argmax"
    )
    zeros = "the narrow rule can accept a token of probability zero, which no strict threshold admits"
    ties = "a tie of many tokens is accepted as a whole"
    flat = "the narrow rule accepts a token of any uniform target, however small 1/V is"
    second = "with z_(1) < 0 the second token is accepted whatever its probability"
    dust = (
        "dust (little mass on very many tokens) drives exp(-H) to 0 and lets any token through, however small beside "
        "the largest"
    )

    strict: dict[str, Condition] = {
        "strict_greedy": Condition(true, argmax),
        "additive": Condition(true, argmax),
        "multiplicative": Condition(true, argmax),
        "top_m": Condition(true, argmax),
        "absolute": Condition(equal(tau_, 0), flat),
        "typical_floor": Condition(accepts_argmax, argmax_typical),
        "mars": Condition(true, argmax),
    }
    maxima_only = "at t = 0 only maxima are accepted; for t > 0 a flat target accepts everything, even zeros"
    additive: dict[str, Condition] = {
        "strict_greedy": Condition(false, ties),
        "additive": Condition(Le(t, t_), "the threshold p_(1) - t falls in t"),
        "multiplicative": Condition(Or(equal(t, 0), equal(alpha_, 0)), maxima_only),
        "top_m": Condition(false, ties),
        "absolute": Condition(equal(tau_, 0), flat),
        "typical_floor": Condition(And(equal(t, 0), accepts_argmax), f"{maxima_only}; {argmax_typical}"),
        "mars": Condition(false, ties),
    }
    multiplicative: dict[str, Condition] = {
        "strict_greedy": Condition(false, ties),
        "additive": Condition(
            Ge(t_ * (1 + alpha), 1 - alpha),
            "p_x >= alpha p_(1) and p_(1) + p_x <= 1 give p_(1) - p_x <= (1 - alpha)/(1 + alpha), as two tokens do",
        ),
        "multiplicative": Condition(Ge(alpha, alpha_), "the threshold alpha p_(1) rises in alpha"),
        "top_m": Condition(false, ties),
        "absolute": Condition(equal(tau_, 0), flat),
        "typical_floor": Condition(
            And(
                Gt(alpha, 0),
                Or(POSITIVE, And(equal(floor_, 0), Lt(delta_, 1), Ge(alpha, delta_))),
            ),
            "p_x >= alpha p_(1) >= delta exp(-H), both equalities only for a uniform target and delta = 1; many equal "
            "tokens and one at alpha p_(1) bring exp(-H) arbitrarily close to p_(1)",
        ),
        "mars": Condition(false, ties),
    }
    top_m: dict[str, Condition] = {
        "strict_greedy": Condition(equal(k, 1), "top_m(1) is strict greedy"),
        "additive": Condition(Or(equal(k, 1), equal(t_, 1)), zeros + " (a point mass)"),
        "multiplicative": Condition(Or(equal(k, 1), equal(alpha_, 0)), zeros + " (a point mass)"),
        "top_m": Condition(Le(k, k_), "ranks up to k are ranks up to k'"),
        "absolute": Condition(equal(tau_, 0), flat),
        "typical_floor": Condition(And(equal(k, 1), accepts_argmax), f"{argmax_typical}; for k > 1, {zeros}"),
        "mars": Condition(equal(k, 1), "mars may reject the second token"),
    }
    concave = (
        "a token of probability s has exp(-H_f) <= (s+f)^s (1-s+f)^(1-s), attained by two tokens, and ln s minus the "
        "logarithm of that is concave in s, so it suffices to look at s = tau and s = epsilon"
    )
    absolute: dict[str, Condition] = {
        "strict_greedy": Condition(Gt(2 * tau, 1), "two tokens cannot both have more than half the mass"),
        "additive": Condition(Ge(t_, 1 - 2 * tau), "p_(1) <= 1 - p_x, so p_(1) - p_x <= 1 - 2 tau"),
        "multiplicative": Condition(Le(alpha_ * (1 - tau), tau), "p_(1) <= 1 - p_x, so p_x/p_(1) >= tau/(1 - tau)"),
        "top_m": Condition(Gt((k_ + 1) * tau, 1), "k + 1 tokens of at least tau have mass (k + 1) tau"),
        "absolute": Condition(Ge(tau, tau_), "a higher threshold"),
        "typical_floor": Condition(
            Or(
                Gt(tau, epsilon_),
                And(
                    Gt(tau, delta_ * concentrated(tau, floor_)),
                    Gt(epsilon_, delta_ * concentrated(epsilon_, floor_)),
                ),
            ),
            concave,
        ),
        "mars": Condition(Gt(2 * tau, 1), "two tokens cannot both have more than half the mass"),
    }
    typical: dict[str, Condition] = {
        "strict_greedy": Condition(false, "p = (2, 2, 1)/5 has exp(-H) < 2/5"),
        "additive": Condition(equal(t_, 1), dust),
        "multiplicative": Condition(equal(alpha_, 0), dust),
        "top_m": Condition(false, "p = (2, ..., 2, 1)/(2k + 3) has exp(-H) < p_(1), so all its maxima are accepted"),
        "absolute": Condition(equal(tau_, 0), dust),
        "typical_floor": Condition(
            Or(
                POSITIVE,
                And(
                    equal(floor_, 0),
                    Le(delta_, delta),
                    Or(
                        Le(epsilon_, epsilon),
                        And(
                            Ge(epsilon, delta_ * concentrated(epsilon, Integer(0))), Or(Lt(epsilon_, 1), Lt(delta_, 1))
                        ),
                    ),
                ),
            ),
            "a lower threshold at every entropy; or epsilon so high that no token lies between the two thresholds",
        ),
        "mars": Condition(false, "p = (2, 2, 2, 1)/7 has exp(-H) < 2/7, so three tokens are accepted"),
    }
    least = Min(epsilon, delta * floor)
    bounded = "exp(-H_f) >= f, so an accepted token has more than min(epsilon, delta f)"
    half = And(Ge(2 * epsilon, 1), Ge(2 * delta * floor, 1))
    floored: dict[str, Condition] = {
        "strict_greedy": Condition(half, bounded, necessary=False),
        "additive": Condition(Ge(t_, 1 - 2 * least), f"{bounded}, and p_(1) <= 1 - p_x", necessary=False),
        "multiplicative": Condition(Le(alpha_, least), bounded, necessary=False),
        "top_m": Condition(Ge((k_ + 1) * least, 1), bounded, necessary=False),
        "absolute": Condition(Le(tau_, least), bounded, necessary=False),
        "typical_floor": Condition(
            Or(POSITIVE, And(Le(floor_, floor), Le(delta_, delta), Le(epsilon_, epsilon))),
            "the threshold rises in epsilon, delta and the floor",
            necessary=False,
        ),
        "mars": Condition(half, bounded, necessary=False),
    }
    mars: dict[str, Condition] = {
        "strict_greedy": Condition(false, second),
        "additive": Condition(equal(t_, 1), second),
        "multiplicative": Condition(equal(alpha_, 0), second),
        "top_m": Condition(Ge(k_, 2), "at most two tokens are accepted"),
        "absolute": Condition(equal(tau_, 0), flat),
        "typical_floor": Condition(false, zeros),
        "mars": Condition(Ge(theta, theta_), "a higher ratio is asked for"),
    }
    narrow = {
        "strict_greedy": strict,
        "additive": additive,
        "multiplicative": multiplicative,
        "top_m": top_m,
        "absolute": absolute,
        "typical": typical,
        "typical_floor": floored,
        "mars": mars,
    }
    for name, row in narrow.items():
        for wide, condition in row.items():
            yield (name, wide), condition
        general = row["typical_floor"]
        yield (name, "typical"), Condition(_typical(general.holds, Integer(0)), general.reason, general.necessary)


CONDITIONS = MappingProxyType(dict(_conditions()))
"""`(narrow, wide)` -> the condition under which every instance of the first implies the second."""


@dataclass(frozen=True)
class Target:
    """A target that refutes an implication: probabilities, the number of tokens with each, and mars's logit ratio."""

    probabilities: tuple[sympy.Expr, ...]
    multiplicities: tuple[int, ...]
    logit_ratio: sympy.Expr

    def __str__(self) -> str:
        """The distribution, tokens of the same probability together."""
        groups = []
        for probability, tokens in zip(self.probabilities, self.multiplicities, strict=True):
            number = f"2^{tokens.bit_length() - 1}" if tokens > 10**6 and tokens.bit_count() == 1 else str(tokens)
            mass = f"{tokens * probability}/{number}" if tokens > 10**6 else str(probability)
            groups.append(mass if tokens == 1 else f"{mass} ({number} times)")
        return f"({', '.join(groups)})"

    def accepted(self, rule: Rule) -> int:
        """How many tokens the rule accepts here, exactly."""
        return _accepted(self, rule)


@lru_cache(maxsize=10_000)
def _accepted(target: Target, rule: Rule) -> int:
    return rule.accepted_count(target.probabilities, target.logit_ratio, target.multiplicities)


@dataclass(frozen=True)
class Verdict:
    """Whether `narrow` implies `wide`: `holds` with its reason, or a target that refutes it, or (rarely) neither."""

    narrow: Rule
    wide: Rule
    holds: bool | None
    reason: str
    counterexample: Target | None = None


Atom = tuple[str, dict[str, sympy.Expr]]


def _parts(rule: Rule, kind: type[ast.operator]) -> list[Rule]:
    """The operands of the outermost `&` (or `|`) of a rule; itself when it is none."""

    def split(node: ast.expr) -> list[ast.expr]:
        if isinstance(node, ast.BinOp) and isinstance(node.op, kind):
            return [*split(node.left), *split(node.right)]
        return [node]

    return [parse_rule(ast.unparse(node)) for node in split(ast.parse(rule.expression, mode="eval").body)]


def _atoms(rule: Rule) -> list[Atom]:
    """The family instances a rule is made of."""
    parts = _parts(rule, ast.BitAnd)
    if len(parts) == 1:
        parts = _parts(rule, ast.BitOr)
    if len(parts) > 1:
        return [atom for part in parts for atom in _atoms(part)]
    node = ast.parse(rule.expression, mode="eval").body
    if isinstance(node, ast.Name):
        return [(node.id, {})]
    call = cast("ast.Call", node)
    name = cast("ast.Name", call.func).id
    values: list[sympy.Expr] = [Rational(ast.unparse(argument).replace(" ", "")) for argument in call.args]
    return [(name, dict(zip((p.name for p in RULES[name].parameters), values, strict=True)))]


def decide(condition: Boolean, values: dict[Symbol, sympy.Expr]) -> bool:
    """The truth of a condition at exact parameters."""
    if condition in (true, false):
        return condition == true
    if isinstance(condition, (And, Or)):
        parts = (decide(cast("Boolean", part), values) for part in condition.args)
        return all(parts) if isinstance(condition, And) else any(parts)
    left, right = (cast("sympy.Expr", side.xreplace(values)) for side in condition.args)
    sign = compare(left, right) if left.is_Rational else -compare(right, left)
    return {Eq: sign == 0, Ge: sign >= 0, Gt: sign > 0, Le: sign <= 0, Lt: sign < 0}[type(condition)]


def _proved(narrow: Rule, wide: Rule) -> str | None:
    """The reason why one rule implies another, from the table and the meaning of `&` and `|`."""
    if len(parts := _parts(wide, ast.BitAnd)) > 1:
        reasons = [_proved(narrow, part) for part in parts]
        return None if None in reasons else "; ".join(dict.fromkeys(map(str, reasons)))
    if len(parts := _parts(narrow, ast.BitOr)) > 1:
        reasons = [_proved(part, wide) for part in parts]
        return None if None in reasons else "; ".join(dict.fromkeys(map(str, reasons)))
    if len(parts := _parts(narrow, ast.BitAnd)) > 1:
        return next((reason for part in parts if (reason := _proved(part, wide))), None)
    if len(parts := _parts(wide, ast.BitOr)) > 1:
        return next((reason for part in parts if (reason := _proved(narrow, part))), None)
    ((name, given),), ((wide_name, wide_given),) = _atoms(narrow), _atoms(wide)
    condition = CONDITIONS[name, wide_name]
    values = {Symbol(key, nonnegative=True): value for key, value in given.items()}
    values |= {prime_symbol(key): value for key, value in wide_given.items()}
    return condition.reason if decide(condition.holds, values) else None


def _candidates(narrow: Rule, wide: Rule) -> Iterator[Target]:
    """Targets at which rules with these parameters can differ, the simple ones first."""
    given: dict[str, set[Any]] = {}
    for _, parameters in [*_atoms(narrow), *_atoms(wide)]:
        for name, value in parameters.items():
            given.setdefault(name, set()).add(value)

    def values(*names: str) -> list[Any]:
        return sorted({value for name in names for value in given.get(name, ())})

    def target(*groups: tuple[sympy.Expr, int]) -> list[Target]:
        ordered = sorted(groups, reverse=True)
        row, tokens = tuple(p for p, _ in ordered), tuple(n for _, n in ordered)
        ratios = [Integer(2), Integer(0), *values("theta")] if narrow.needs_logits | wide.needs_logits else [Integer(2)]
        return [Target(row, tokens, ratio) for ratio in ratios]

    ranks = sorted({1, 2, *(int(value) for value in values("k"))})
    levels = values("t", "tau", "epsilon") + [d * f for d in values("delta") for f in values("floor")]
    inverse = sorted({int(ceiling(1 / value)) for value in levels if value > 0})
    seconds = [Rational(1, 2), Rational(1, 4), *values("tau", "epsilon")]
    seconds += [(1 - value) / n for value in values("t") for n in (2, 4)]
    seconds += [value / (1 + value) for value in values("alpha")] + [value / 4 for value in values("alpha")]
    seconds += [value + Rational(1, 2**j) for value in values("epsilon") for j in range(1, 64, 3)]
    low = [(value / 4, Rational(1, 4)) for value in values("tau", "alpha") if value > 0]
    low += [((1 - value) / 4, (1 - value) / 4) for value in values("t") if value < 1]
    deltas = values("delta")
    fractions = values("alpha") + [(a + b) / 2 for a, b in product(deltas, deltas) if a < b]

    yield from target((Integer(1), 1), (Integer(0), max(ranks)))
    for n in sorted({k + 1 for k in ranks} | {n + extra for n in inverse for extra in (0, 1)}):
        yield from target((Rational(1, n), n))
        yield from target((Rational(1, n), n), (Integer(0), 1))
    for s in seconds:
        if 0 < s < 1:
            yield from target((1 - s, 1), (s, 1))
    for n in [*ranks, *inverse]:
        yield from target((Rational(2, 2 * n + 3), n + 1), (Rational(1, 2 * n + 3), 1))
    for s, mass in low:
        # (mass/N)^mass < s/2, so dust alone brings exp(-H) below s.
        bits = int((2 / s).p.bit_length() / mass) + 1
        yield from target((1 - s - mass, 1), (s, 1), (mass / 2**bits, 2**bits))
    for fraction in fractions:
        for bits in (2, 4, 8, 16, 32, 64):
            top = 1 / (2**bits + fraction)
            yield from target((top, 2**bits), (fraction * top, 1))


def implication(narrow: Rule | str, wide: Rule | str) -> Verdict:
    """Whether every token that `narrow` accepts is accepted by `wide`, on all targets over all vocabularies.

    Raises:
        DraftcertError: not rules, as in `parse_rule`.

    >>> implication("tensorrt_llm_relaxed(10, 0.6)", "additive(0.7)").holds
    True
    >>> str(implication("additive(0.1)", "strict_greedy").counterexample)
    '(1/2 (2 times))'
    """
    narrow, wide = parse_rule(narrow), parse_rule(wide)
    if reason := _proved(narrow, wide):
        return Verdict(narrow, wide, True, reason)
    for target in _candidates(narrow, wide):
        if target.accepted(narrow) > target.accepted(wide):
            return Verdict(narrow, wide, False, f"refuted by {target}", target)
    return Verdict(narrow, wide, None, "neither a reason nor a counterexample is known")


DIAGRAM_RULES = (
    "strict_greedy",
    "additive(0)",
    "multiplicative(0.9)",
    "multiplicative(0.5)",
    "multiplicative(0.3)",
    "additive(0.1)",
    "additive(0.6)",
    "top_m(10)",
    "top_m(10) & additive(0.6)",
    "top_m(10) & multiplicative(0.5)",
    "absolute(0.9)",
    "absolute(0.3)",
    "typical(0.09, 0.3)",
    "typical_floor(0.09, 0.3, 1e-5)",
    "mars(0.9)",
)
"""What the computed diagram shows unless it is asked for other rules."""


@dataclass(frozen=True)
class Diagram:
    """All verdicts between some rules."""

    rules: tuple[Rule, ...]
    verdicts: MappingProxyType[tuple[Rule, Rule], Verdict]

    def arrows(self) -> list[Verdict]:
        """The implications that do not follow from two others: the lines of the drawn diagram."""
        holds = {pair for pair, verdict in self.verdicts.items() if verdict.holds}
        equal = {(a, b) for a, b in holds if (b, a) in holds}

        def follows(a: Rule, b: Rule) -> bool:
            return any(
                (a, c) in holds and (c, b) in holds and (c, a) not in equal and (c, b) not in equal
                for c in self.rules
                if c not in (a, b)
            )

        return [self.verdicts[a, b] for a, b in self.verdicts if (a, b) in holds and not follows(a, b)]


def diagram(rules: Sequence[Rule | str] = DIAGRAM_RULES) -> Diagram:
    """The order between rules: every ordered pair decided by `implication`."""
    parsed = tuple(dict.fromkeys(map(parse_rule, rules)))
    if len(parsed) < 2:
        raise DraftcertError(f"a diagram needs two different rules at least, not {', '.join(map(str, parsed))}")
    pairs = [(a, b) for a in parsed for b in parsed if a != b]
    return Diagram(parsed, MappingProxyType({(a, b): implication(a, b) for a, b in pairs}))
