"""Reading rules, presets included."""

from fractions import Fraction
from math import exp, log, sqrt
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Rational

from draftcert.theory import RULES, DraftcertError, Rule, parse_rule
from draftcert.theory.conditions import RankCondition, ThresholdCondition
from draftcert.theory.exact import vanishes
from draftcert.theory.presets import PRESETS

atoms = st.sampled_from(
    ["strict_greedy", "additive(3/10)", "top_m(2)", "absolute(1/2)", "multiplicative(1/10)", "typical(9/100, 3/10)"]
)
expressions = st.recursive(
    atoms,
    lambda inner: st.tuples(inner, st.sampled_from("&|"), inner).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
    max_leaves=5,
)


@settings(deadline=None, max_examples=40)
@given(expressions, st.lists(st.integers(0, 9), min_size=2, max_size=4).filter(any))
def test_round_trip(text: str, weights: list[int]):
    rule = parse_rule(text)
    again = parse_rule(str(rule))
    row = [f"{w}/{sum(weights)}" for w in weights]
    assert again == rule
    assert again.accepts == rule.accepts
    assert again.accepted_count(row) == rule.accepted_count(row)


def test_precedence():
    assert str(parse_rule("top_m(1) | top_m(3) & additive(0.1)")) == "top_m(1) | top_m(3) & additive(1/10)"
    assert str(parse_rule("(top_m(1) | top_m(3)) & additive(0.1)")) == "(top_m(1) | top_m(3)) & additive(1/10)"
    row = ["2/5", "3/10", "3/10"]
    assert parse_rule("top_m(1) | top_m(3) & additive(0.1)").accepted_count(row) == 3
    assert parse_rule("top_m(3) | top_m(1) & additive(0)").accepted_count(row) == 3
    assert parse_rule("(top_m(3) | top_m(1)) & additive(0)").accepted_count(row) == 1


def test_numbers_stay_exact():
    third, scientific = parse_rule("additive(1/3)"), parse_rule("typical_floor(.09, 3e-1, 1e-5)")
    assert str(third) == "additive(1/3)"
    assert str(scientific) == "typical_floor(9/100, 3/10, 1/100000)"
    assert parse_rule("additive(t=0.3)") == parse_rule("additive(3/10)")


def test_a_rule_passes_through():
    rule = RULES["additive"](0)
    assert parse_rule(rule) is rule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fuzzy(0.1)", "divergence between target and draft"),
        ("fuzzy_speculative_decoding(0.1)", "divergence between target and draft"),
        ("rejection_sampling", "probability min"),
        ("ensemble(0.5)", "mixture of target and draft"),
        ("nothing(1)", "no rule is called 'nothing'; there are absolute"),
        ("top_m()", r"give exactly the parameters of top_m\(k\)"),
        ("top_m(1, 2)", r"give exactly the parameters of top_m\(k\)"),
        ("top_m", r"give exactly the parameters of top_m\(k\)"),
        ("top_m(m=1)", r"give exactly the parameters of top_m\(k\)"),
        ("medusa_typical(0.09)", r"parameters of medusa_typical\(posterior_threshold, posterior_alpha\)"),
        ("additive(t=0.1, t=0.2)", "given twice|repeated"),
        ("top_m(0)", "lies outside"),
        ("top_m(1", "cannot read"),
        ("", "cannot read"),
        ("1", "as a rule"),
        ("top_m(1) + additive(0)", "as a rule"),
        ("not top_m(1)", "as a rule"),
        ("additive('0.1')", "is not a number"),
        ("additive(*[1])", "is not a number"),
        ("additive(__import__('os'))", "is not a number"),
        ("additive(1/0)", "is not a number"),
        ("additive(nan)", "is not a number"),
        ("additive(1e-9999999)", "more than 4000 digits"),
        ("top_m(1e99999999)", "more than 4000 digits"),
        ("top_m(1e3999" + "9" * 5000 + ")", "more than 4000 digits"),
        ("top_m(" + "9" * 5000 + ")", "more than 4000 digits"),
        (" | ".join(["strict_greedy"] * 199), "199 atoms: at most 64"),
        ("&".join(["mars(1)"] * 2000), "2000 atoms: at most 64"),
        ("(" * 5000 + "top_m(1)" + ")" * 5000, "more than 32 parentheses"),
        ("~" * 9000 + "top_m(1)", "cannot read"),
        ("x" * 10**7, "longer than 20000 characters"),
        ("top_m(1)\0", "it goes on"),
        ("top_m(1) top_m(2)", "as a rule"),
        ("\N{FULLWIDTH LATIN SMALL LETTER T}op_m(2)", "cannot read"),
        ("top_m(\N{SUPERSCRIPT TWO})", "is not a number"),
    ],
)
def test_refused(text: str, message: str):
    with pytest.raises(DraftcertError, match=message) as refused:
        parse_rule(text)
    assert len(str(refused.value)) < 500


def test_the_largest_rules_and_numbers_are_read_and_a_little_more_is_not():
    rule = parse_rule(" | ".join(["top_m(2) & additive(0.1)"] * 32))
    assert len(rule.atoms) == 64
    with pytest.raises(DraftcertError, match="65 atoms"):
        _ = rule | parse_rule("strict_greedy")
    deepest = "(" * 32 + "top_m(2)" + ")" * 32
    assert parse_rule(deepest) == parse_rule("top_m(2)")
    with pytest.raises(DraftcertError, match="parentheses"):
        parse_rule(f"({deepest})")
    smallest = parse_rule("additive(1e-3999)")
    assert smallest.accepted_count(["1/2", "1/2"]) == 2
    assert parse_rule(str(smallest)) == smallest
    with pytest.raises(DraftcertError, match="4000 digits"):
        parse_rule("additive(1e-4000)")


def test_a_threshold_that_equals_a_probability_is_found_without_factoring():
    """A number of two large prime factors takes for ever to factor."""
    p, q = 2**127 - 1, 2**521 - 1
    row = [f"{p}/{p * q}", f"{p * q - p}/{p * q}"]
    assert parse_rule(f"multiplicative(1/{q - 1})").accepted_count(row) == 2
    halves = ["1/2", "1/2"]
    assert parse_rule(f"typical(1, {p * q}/{2 * p * q})").accepted_count(halves) == 2
    assert vanishes([(Rational(1), Rational(p * q)), (Rational(-1), Rational(p)), (Rational(-1), Rational(q))])
    assert not vanishes([(Rational(1), Rational(p * q)), (Rational(-2), Rational(p))])


@pytest.mark.parametrize("preset", PRESETS.values(), ids=list(PRESETS))
def test_preset(preset):
    rule = preset(*preset.example)
    assert isinstance(rule, Rule)
    assert parse_rule(str(rule)) == rule
    assert parse_rule(f"{preset.name}({', '.join(preset.example)})") == rule
    assert rule.deployed_as == preset.deployed_as
    assert rule.citation.startswith(preset.citation)
    assert preset.differs
    assert preset.citation
    assert preset.name not in RULES


def test_presets_as_deployed():
    relaxed = parse_rule("tensorrt_llm_relaxed(10, 0.6)")
    assert str(relaxed) == "top_m(10) & additive(3/5)"
    assert parse_rule("tensorrt_llm_relaxed(relaxed_delta=0.6, relaxed_topk=10)") == relaxed
    assert {type(c): getattr(c, "strict", None) for c in relaxed.conditions} == {
        ThresholdCondition: False,
        RankCondition: None,
    }
    medusa = parse_rule("medusa_typical(0.09, 0.3)")
    assert str(medusa) == "typical_floor(9/100, 3/10, 1/100000)"
    assert medusa == parse_rule("vllm_typical(0.09, 0.3)")
    assert [c.strict for c in medusa.conditions if isinstance(c, ThresholdCondition)] == [True]
    assert str(parse_rule("sglang_threshold_single(0.9)")) == "absolute(9/10)"
    assert str(parse_rule("vllm_relaxed_thinking(3, 0.5)")) == "top_m(3) & multiplicative(1/2)"
    for greedy in ("hf_greedy", "vllm_greedy", "sglang_greedy"):
        assert str(parse_rule(greedy)) == "strict_greedy"


def cactus(p: float, q: float, delta: float) -> float:
    """The probability with which Cactus's code accepts a token."""
    return min(1.0, min(1.0, p + sqrt(2 * delta * p * (1 - p))) / q)


@pytest.mark.parametrize("delta", ["0", "0.1", "1", "7"])
def test_cactus_accepts_what_its_preset_does_and_nothing_else_whatever_is_drafted(delta):
    rule, limit = parse_rule(f"cactus({delta})"), 1 / (1 + 2 * Fraction(delta))
    for p in (Fraction(percent, 100) for percent in range(1, 101)):
        row = sorted([p, *[(1 - p) / 100] * 100], reverse=True)
        if p >= row[0] and abs(p - limit) > Fraction(1, 10**9):
            certain = cactus(float(p), 1.0, float(delta)) == 1  # the surer the drafter, the less is accepted
            assert rule.accepted_count(row) == certain


def test_entropy_verification_accepts_what_its_preset_does_whatever_is_drafted_and_the_coin():
    rule, source = parse_rule("vllm_ascend_entropy(0.95, 0.4)"), Random(3)
    seen = set()
    for _ in range(200):
        weights = sorted((Fraction(1 + int(1e6 * source.random() ** 9)) for _ in range(4)), reverse=True)
        row = [weight / sum(weights) for weight in weights]
        lenience = min(exp(0.4 * sum(float(p) * log(p + 1e-10) for p in row)), 0.95)
        accepted = rule.accepted_count(row)
        assert accepted == sum(p >= lenience for p in row)  # where the drafter is sure and the coin is one
        seen.add((accepted, row[0] >= Fraction(95, 100)))
    assert seen == {(0, False), (1, False), (1, True)}  # (1, False): below posterior_threshold, and certain


def test_relaxed_acceptance_with_delta_zero_is_not_strict_greedy():
    """What the deployed kernel does outside thinking: a tied maximum among the top k is accepted."""
    row = ["2/5", "2/5", "1/5"]
    assert parse_rule("tensorrt_llm_relaxed(10, 0)").accepted_count(row) == 2
    assert parse_rule("strict_greedy").accepted_count(row) == 1
