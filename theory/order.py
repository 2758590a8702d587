"""The order between rules (T6): which rule accepts, on every target, only tokens that another accepts too.

If `narrow` implies `wide` in this sense, then C is never higher under `narrow`: accepted sets are level sets of one
order, so the wide rule's rejected drafts are rejected by the narrow one. What is known of two families stands in their
files (`OrderFact`): for which parameters the implication holds on all targets over any vocabulary, with the reason. It
is exact in both directions: for every other choice of parameters `implication` finds a target that refutes the
implication and checks it in exact arithmetic. From `typical_floor` with a positive floor, and from and to
`entropy_power`, it is sufficient only.

The logit ratio of `mars` is free: nothing ties it to the probabilities (they are blind to a shift of the logits).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import Any, cast

import sympy
from sympy import And, Eq, Ge, Gt, Integer, Le, Lt, Or, Rational, ceiling, false, true
from sympy.logic.boolalg import Boolean

from .errors import DraftcertError
from .exact import compare
from .parse import parse_rule
from .presets import example_rules
from .rule import AllOf, AnyOf, OrderFact, Rule, RuleFamily, primed
from .rules import RULES


def order_fact(narrow: RuleFamily, wide: RuleFamily) -> OrderFact | None:
    """What is known of whether the first family implies the second; `None` if nothing.

    A name in a family's facts means the registered family of this name, so a fact is used only where the family at hand
    is that one.
    """
    if _registered(wide) and (fact := narrow.implies.get(wide.name)):
        return fact
    if _registered(narrow) and (fact := wide.implied_by.get(narrow.name)):
        return fact
    if wide.special_case is None:
        return None
    name, values = wide.special_case
    if (general := order_fact(narrow, RULES[name])) is None:
        return None
    fixed = {primed(parameter): Rational(value) for parameter, value in values.items()}
    return OrderFact(cast("Boolean", general.holds.xreplace(fixed)), general.reason, general.necessary)


def _registered(family: RuleFamily) -> bool:
    return family.name in RULES and RULES[family.name] == family


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
    """Whether `narrow` implies `wide`: `holds` with its reason, or a target that refutes it, or (rarely) neither.

    >>> implication("strict_greedy", "top_m(2)").holds
    True
    >>> implication("top_m(2)", "strict_greedy").holds
    False
    """

    narrow: Rule
    wide: Rule
    holds: bool | None
    reason: str
    counterexample: Target | None = None


def decide(condition: Boolean, values: Mapping[sympy.Symbol, sympy.Expr]) -> bool:
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
    """The reason why one rule implies another, from what is known of families and the meaning of `&` and `|`."""
    if narrow == wide:
        return "they are the same rule"
    if isinstance(wide, AllOf):
        return _all_reasons(_proved(narrow, part) for part in wide.parts)
    if isinstance(narrow, AnyOf):
        return _all_reasons(_proved(part, wide) for part in narrow.parts)
    if isinstance(narrow, AllOf):
        return next((reason for part in narrow.parts if (reason := _proved(part, wide))), None)
    if isinstance(wide, AnyOf):
        return next((reason for part in wide.parts if (reason := _proved(narrow, part))), None)
    (first,), (second,) = narrow.atoms, wide.atoms
    if (fact := order_fact(first.family, second.family)) is None:
        return None
    values: dict[sympy.Symbol, Any] = {**first.values}
    values |= {primed(parameter.name): second.values[parameter.symbol] for parameter in second.family.parameters}
    return fact.reason if decide(fact.holds, values) else None


def _all_reasons(reasons: Iterator[str | None]) -> str | None:
    found = list(reasons)
    return None if None in found else "; ".join(dict.fromkeys(map(str, found)))


def _targets(narrow: Rule, wide: Rule) -> Iterator[Target]:
    """Targets at which rules with these parameters can differ, the simple ones first.

    Whole-numbered parameters are taken for ranks; any other one for a probability, a difference or a ratio of
    probabilities, a ratio of logits, a factor: what it is called does not matter.
    """
    ranks, numbers = {1, 2}, set[Any]()
    for atom in (*narrow.atoms, *wide.atoms):
        for parameter in atom.family.parameters:
            value = atom.values[parameter.symbol]
            if parameter.domain.is_subset(sympy.S.Integers):
                ranks.add(int(value))
            else:
                numbers.add(value)
    known = sorted(numbers)
    inside = [value for value in known if 0 < value < 1] or [Rational(1, 2)]
    products = sorted({a * b for a, b in product(inside, inside)} - numbers)
    ratios = [Integer(2), Integer(0), *known] if narrow.needs_logits | wide.needs_logits else [Integer(2)]

    def target(*groups: tuple[sympy.Expr, int]) -> list[Target]:
        ordered = sorted(groups, reverse=True)
        row, tokens = tuple(p for p, _ in ordered), tuple(n for _, n in ordered)
        return [Target(row, tokens, ratio) for ratio in ratios]

    inverse = sorted({int(ceiling(1 / value)) for value in (*inside, *products)})
    seconds = [Rational(1, 2), Rational(1, 4), *inside, *((1 - value) / n for value in inside for n in (2, 4))]
    seconds += [part for value in inside for part in (value / (1 + value), value / 4)]
    seconds += [value + Rational(1, 2**j) for value in inside for j in range(1, 64, 3)]
    low = [pair for value in inside for pair in ((value / 4, Rational(1, 4)), ((1 - value) / 4, (1 - value) / 4))]
    fractions = [*inside, *((a + b) / 2 for a, b in product(known, known) if a < b)]

    yield from target((Integer(1), 1), (Integer(0), max(ranks)))
    for n in sorted({rank + 1 for rank in ranks} | {n + extra for n in inverse for extra in (0, 1)}):
        yield from target((Rational(1, n), n))
        yield from target((Rational(1, n), n), (Integer(0), 1))
    for tokens, s in product(sorted(ranks), seconds):
        if 0 < tokens * s < 1:
            yield from target((1 - tokens * s, 1), (s, tokens))
    for n in [*sorted(ranks), *inverse]:
        yield from target((Rational(2, 2 * n + 3), n + 1), (Rational(1, 2 * n + 3), 1))
    for tokens, (total, mass) in product(sorted(ranks), low):
        # (mass/N)^mass < s/2, so dust alone brings exp(-H) below s.
        s = total / tokens
        bits = int((2 / s).p.bit_length() / mass) + 1
        yield from target((1 - total - mass, 1), (s, tokens), (mass / 2**bits, 2**bits))
    for tokens, bits in product(sorted({rank + 1 for rank in ranks}), (8, 32)):
        for top in (Rational(1, 2), Rational(1, 4 * tokens)):
            s = Rational(1, 16 * tokens)
            yield from target((top, 1), (s, tokens - 1), ((1 - top - (tokens - 1) * s) / 2**bits, 2**bits))
    for fraction in fractions:
        for bits in (2, 4, 8, 16, 32, 64):
            top = 1 / (2**bits + fraction)
            yield from target((top, 2**bits), (fraction * top, 1))


def implication(narrow: Rule | str, wide: Rule | str) -> Verdict:
    """Whether every token that `narrow` accepts is accepted by `wide`, on all targets over all vocabularies.

    The verdict is open (`holds` is None) where neither a fact of the families nor a target decides it.

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
    for target in _targets(narrow, wide):
        if target.accepted(narrow) > target.accepted(wide):
            return Verdict(narrow, wide, False, f"refuted by {target}", target)
    return Verdict(narrow, wide, None, "neither a reason nor a counterexample is known")


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


def diagram(rules: Sequence[Rule | str] | None = None) -> Diagram:
    """The order between rules, the example rules if none are given: every ordered pair decided by `implication`."""
    parsed = tuple(dict.fromkeys(map(parse_rule, example_rules() if rules is None else rules)))
    if len(parsed) < 2:
        raise DraftcertError(f"a diagram needs two different rules at least, not {', '.join(map(str, parsed))}")
    pairs = [(a, b) for a in parsed for b in parsed if a != b]
    return Diagram(parsed, MappingProxyType({(a, b): implication(a, b) for a, b in pairs}))
