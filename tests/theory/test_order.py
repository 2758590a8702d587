"""T6: the order between rules. Every verdict is checked by exact evaluation, whichever way it goes."""

from dataclasses import replace
from fractions import Fraction

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from draftcert.theory import RULES, DraftcertError, parse_rule
from draftcert.theory.exact import exact_certificate
from draftcert.theory.order import Target, diagram, implication, order_fact
from draftcert.theory.rule import OrderFact, RuleFamily, primed
from draftcert.theory.rules.typical_floor import concentrated
from draftcert.theory.theorems import THEOREMS
from draftcert.theory.theorems.order import ARROWS

NAMES = list(RULES)
PAIRS = [(a, b) for a in NAMES for b in NAMES]
FACTS = {(a, b): fact for a, b in PAIRS if (fact := order_fact(RULES[a], RULES[b]))}
unit = st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), Fraction(1)])
weights = st.lists(st.integers(0, 9), min_size=1, max_size=5).filter(any)


def instance(data: st.DataObject, name: str):
    values = [data.draw(st.integers(1, 4) if p.name == "k" else unit) for p in RULES[name].parameters]
    return RULES[name](*values)


def test_what_is_known():
    assert len(FACTS) >= 64, "less is known than of every pair of the first eight families"
    sufficient = {pair for pair, fact in FACTS.items() if not fact.necessary}
    assert {a for a, b in sufficient if "entropy_power" not in (a, b)} == {"typical_floor"}


def needs_an_inequality(pair: tuple[str, str]) -> bool:
    """Whether the condition compares more than one parameter with a number, or with the same one of the wide rule."""
    for relation in FACTS[pair].holds.atoms(sympy.core.relational.Relational):
        names = {side.name.rstrip("'") for side in relation.args if isinstance(side, sympy.Symbol)}
        if len(names) > 1 or not all(side.is_Symbol or side.is_number for side in relation.args):
            return True
    return False


def test_every_arrow_that_needs_an_inequality_has_its_claims_in_t6():
    """`check` decides these claims; here they are found."""
    assert {pair for pair in FACTS if needs_an_inequality(pair)} <= set(ARROWS) <= set(FACTS)
    assert not any(FACTS[pair].holds == sympy.false for pair in ARROWS)
    places = {place for place, _ in THEOREMS["T6"].claims()}
    assert {place for used in ARROWS.values() for place in used} == {p for p in places if not p.startswith("formal")}


@pytest.mark.parametrize("narrow", NAMES)
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_exactly_one_of_reason_and_counterexample(narrow: str, data: st.DataObject):
    """The conditions are necessary and sufficient: where one fails a counterexample is found, and it is genuine."""
    wide = data.draw(st.sampled_from(NAMES))
    verdict = implication(instance(data, narrow), instance(data, wide))
    if (fact := FACTS.get((narrow, wide))) and fact.necessary:
        assert verdict.holds is not None, f"{verdict.narrow} => {verdict.wide} is undecided"
    if verdict.holds:
        row = data.draw(weights)
        probabilities = [Fraction(w, sum(row)) for w in row]
        ratio = data.draw(st.fractions(-2, 2, max_denominator=10))
        assert verdict.narrow.accepted_count(probabilities, ratio) <= verdict.wide.accepted_count(probabilities, ratio)
    elif verdict.counterexample is not None:
        target = verdict.counterexample
        assert sum(p * n for p, n in zip(target.probabilities, target.multiplicities, strict=True)) == 1
        assert target.accepted(verdict.narrow) > target.accepted(verdict.wide)


@pytest.mark.parametrize(
    ("narrow", "wide", "holds"),
    [
        ("multiplicative(1/2)", "additive(1/3)", True),  # (1 - alpha)/(1 + alpha) exactly
        ("multiplicative(1/2)", "additive(333/1000)", False),
        ("absolute(1/2)", "additive(0)", True),  # two tokens of exactly one half tie
        ("absolute(1/2)", "strict_greedy", False),
        ("absolute(501/1000)", "strict_greedy", True),
        ("absolute(1/3)", "top_m(3)", True),
        ("absolute(1/3)", "top_m(2)", False),
        ("absolute(1/4)", "multiplicative(1/3)", True),  # tau/(1 - tau) exactly
        ("absolute(1/4)", "multiplicative(334/1000)", False),
        ("multiplicative(0.3)", "typical(0.09, 0.3)", True),
        ("multiplicative(0.29)", "typical(0.09, 0.3)", False),
        ("multiplicative(1)", "typical(1, 1)", False),  # uniform: the strict inequality rejects all
        ("strict_greedy", "typical(1, 1)", False),
        ("typical(1, 1)", "multiplicative(1)", False),  # dust brings exp(-H) below the second token
        ("strict_greedy", "typical(1, 0.999)", True),
        ("strict_greedy", "typical_floor(0.09, 0.3, 1e-5)", False),
        ("strict_greedy", "additive(0)", True),
        ("additive(0)", "strict_greedy", False),
        ("top_m(1)", "strict_greedy", True),
        ("strict_greedy", "top_m(1)", True),
        ("typical(0.5, 1)", "typical(0.9, 1)", True),  # no token lies between the thresholds
        ("typical(0.4, 1)", "typical(0.9, 1)", False),
        ("typical(0.5, 1)", "typical(1, 1)", False),  # a point mass is rejected on the right
        ("typical_floor(0.09, 0.3, 1e-5)", "typical(0.09, 0.3)", True),
        ("typical(0.09, 0.3)", "typical_floor(0.09, 0.3, 1e-5)", False),
        ("typical_floor(1, 1, 1/2)", "strict_greedy", True),
        ("entropy_power(1, 1/2, 1/10)", "additive(1/2)", True),  # an accepted token has at least 10^-(1/2)
        ("entropy_power(1, 1/2, 1/10)", "multiplicative(2/5)", True),
        ("entropy_power(1, 1/2, 1/10)", "top_m(3)", True),
        ("mars(0.9)", "top_m(2)", True),
        ("mars(0.5)", "mars(0.9)", False),
        ("tensorrt_llm_relaxed(10, 0.6)", "additive(0.6)", True),
        ("tensorrt_llm_relaxed(10, 0.6)", "top_m(9) | additive(0.6)", True),
        ("tensorrt_llm_relaxed(10, 0.6)", "top_m(9)", False),
        ("top_m(2) | absolute(0.4)", "top_m(2)", True),
        ("additive(0.1)", "additive(0.2) & multiplicative(0.1)", False),
    ],
)
def test_boundaries(narrow: str, wide: str, holds: bool):
    assert implication(narrow, wide).holds is holds


def test_a_wider_rule_never_lowers_the_certificate():
    """What the order is for, on all rows of a grid."""
    verdict = implication("multiplicative(1/2)", "additive(1/3)")
    for first in range(1, 8):
        for second in range(8):
            total = first + second + 3
            row = [sympy.Rational(w, total) for w in (first, second, 2, 1)]
            narrow, wide = (
                exact_certificate(row, rule.accepted_count(row), 1) for rule in (verdict.narrow, verdict.wide)
            )
            assert wide == sympy.oo or float(narrow) <= float(wide) + 1e-15


@given(st.lists(st.integers(1, 9), min_size=2, max_size=5), st.fractions(0, 1, max_denominator=9))
def test_concentrated_is_the_largest_exponential_of_minus_entropy(row: list[int], floor: Fraction):
    from math import exp, log

    p = [w / sum(row) for w in row]
    f = float(floor)
    entropy = -sum(x * log(x + f) for x in p)
    s = sympy.Rational(row[0], sum(row))
    assert exp(-entropy) <= float(concentrated(s, sympy.Rational(floor.numerator, floor.denominator))) * (1 + 1e-12)


def test_diagram():
    rules = ("strict_greedy", "additive(0)", "multiplicative(0.9)", "multiplicative(0.3)", "additive(0.1)")
    found = diagram(rules)
    drawn = {(str(v.narrow), str(v.wide)) for v in found.arrows()}
    assert ("strict_greedy", "additive(0)") in drawn
    assert ("strict_greedy", "multiplicative(3/10)") not in drawn  # follows from others
    # The drawn arrows generate every implication.
    reach = {(str(a), str(b)) for (a, b), v in found.verdicts.items() if v.holds}
    closure = set(drawn)
    while more := {(a, d) for a, b in closure for c, d in closure if b == c} - closure:
        closure |= more
    assert closure == reach
    with pytest.raises(DraftcertError, match="two different rules"):
        diagram(["additive(0)", "additive(0.0)"])


def test_one_rule_under_two_names_is_drawn_once():
    assert len(diagram(["strict_greedy", "top_m(1)", "additive(0)"]).rules) == 2


def test_rules_that_accept_the_same_tokens_are_drawn_both_ways():
    """Their predicates differ, so they are two rules."""
    found = diagram(["strict_greedy", "absolute(501/1000) | strict_greedy"])
    assert len(found.arrows()) == 2


def test_every_pair_of_examples_is_decided():
    undecided = {
        (narrow.atoms[0].family.name, wide.atoms[0].family.name)
        for (narrow, wide), verdict in diagram().verdicts.items()
        if verdict.holds is None
    }
    assert undecided == {("entropy_power", "typical_floor")}, "floors of entropies, of which the wide rule's is larger"


@pytest.mark.parametrize("name", ["multiplicative", "additive", "fork"])
def test_what_is_known_of_a_family_is_not_believed_of_another_with_its_name(fork: RuleFamily, name: str):
    """At 1 the strict inequality accepts nothing, so strict greedy does not imply it, but it implies everything."""
    fork = replace(fork, name=name)
    nothing = fork(1)
    assert implication("strict_greedy", nothing).holds is False
    assert implication(nothing, nothing).holds
    assert implication(nothing, "strict_greedy").holds is None  # true, but nobody has said so
    assert implication(fork("1/2"), "strict_greedy").holds is False


def test_a_family_brings_what_is_known_of_its_order(fork: RuleFamily):
    a = sympy.Symbol("a", nonnegative=True)
    known = replace(
        fork,
        name="fork",
        implies={"multiplicative": OrderFact(sympy.Ge(a, primed("alpha")), "a strict inequality accepts less")},
        implied_by={"top_m": OrderFact(sympy.false, "of a uniform target it accepts nothing at 1")},
    )
    assert implication(known("1/2"), "multiplicative(0.4)").reason == "a strict inequality accepts less"
    assert implication(known("1/2"), "multiplicative(0.6)").holds is False
    assert implication("top_m(1)", known(1)).holds is False


def test_counterexample_text():
    dust = Target((sympy.Rational(3, 4), sympy.Rational(1, 4 * 2**40)), (1, 2**40), sympy.Integer(2))
    assert str(dust) == "(3/4, 1/4/2^40 (2^40 times))"
    assert implication(parse_rule("additive(0.1)"), "strict_greedy").reason == "refuted by (1/2 (2 times))"
