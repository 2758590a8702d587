import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, fmpq

from draftcert.numerics import certificate, margin_bounds, sharpness
from draftcert.numerics.sharpness import Search, Targets, Values, search, searches
from draftcert.theory import DraftcertError, parse_rule
from draftcert.theory.presets import example_rules

STRICT = parse_rule("strict_greedy")
BOUNDED = [
    rule for rule in example_rules() if not {"entropy_power", "typical_floor"} & {a.family.name for a in rule.atoms}
]
"""Those that have bounds from a margin."""
ONE = Fraction(1)


@pytest.fixture
def short(monkeypatch):
    """Fewer vocabularies, so that a search takes a fraction of a second."""
    monkeypatch.setattr(sharpness, "VOCABULARIES", (5, 10**100))
    monkeypatch.setattr(sharpness, "GENERATIONS", 60)


@pytest.mark.parametrize("tokens", [3, 8, 16, 40, 10**100])
def test_targets_keep_the_margin(tokens):
    draw = np.random.default_rng(tokens % 1000)
    for rank in range(2, min(tokens, 6) + 1):
        space = Targets(Fraction(3, 7), rank, tokens)
        for unknowns in draw.random((5, space.unknowns)) ** 3:
            exact, rough = space.exactly(unknowns), space.of(unknowns[None])[0]
            assert sum(p * times for p, times in zip(exact, space.multiplicities, strict=True)) == 1
            assert exact == sorted(exact, reverse=True)
            assert exact[-1] >= 0
            assert exact[0] - exact[rank - 1] == Fraction(3, 7)
            assert rough == pytest.approx([float(p) for p in exact], rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("rule", example_rules(), ids=str)
def test_fast_values_are_certificates(rule):
    """Floating point, exact, and `certificate` on the whole row."""
    draw = np.random.default_rng(0)
    for tokens, m in ((3, 1), (6, 2), (16, 4), (40, 3)):
        for supremum in (False, True):
            space = Targets(Fraction(draw.integers(1, 19).item() * 7 + 1, 140), 2, tokens)
            values = Values(rule, m, space, ONE, supremum)
            points = draw.random((4, space.unknowns)) ** 2
            for rough, unknowns in zip(values.of(space.of(points), 0.0), points, strict=True):
                target = space.exactly(unknowns)
                exact = float(values.exactly(target))
                assert min(exact, sharpness.HUGE) == pytest.approx(rough, rel=1e-9, abs=1e-13)
                row = [p for p, times in zip(target, space.multiplicities, strict=True) for _ in range(times)]
                whole = certificate(row + [Fraction(0)] * (0 if space.tail else m), rule, m, 12, logit_ratio=ONE)
                if np.isfinite(exact) and np.isfinite(float(whole)):
                    assert exact == pytest.approx(float(whole), rel=1e-11)
                else:  # a vocabulary that is accepted as a whole
                    assert len(certificate(row, rule, 1, 12, logit_ratio=ONE).accepted) == tokens


@pytest.mark.parametrize("rule", example_rules(), ids=str)
def test_fast_values_of_just_so_many_tokens(rule):
    draw = np.random.default_rng(1)
    for tokens, m in ((3, 2), (6, 4), (12, 3)):
        values = Values(rule, m, Targets(Fraction(1, 7), 2, tokens), ONE, True, any_size=False)
        points = draw.random((6, values.space.unknowns))
        for rough, unknowns in zip(values.of(values.space.of(points), 0.0), points, strict=True):
            exact = float(certificate(values.space.exactly(unknowns), rule, m, 12, logit_ratio=ONE))
            assert min(exact, sharpness.HUGE) == pytest.approx(rough, rel=1e-9, abs=1e-13)
            assert float(values.exactly(values.space.exactly(unknowns))) == pytest.approx(exact, rel=1e-11)


def test_sizes_are_limited():
    with pytest.raises(DraftcertError, match="vocab_size = 17"):
        search(Search(STRICT, 1, "top2", "1/2", False, vocab_size=17))


def tightened(bound, supremum):
    """The bound, claiming a thousandth too much."""
    return dataclasses.replace(bound, ball=bound.ball * fmpq(999 if supremum else 1001, 1000))


CASES = [
    ("strict_greedy", "top2", "1/5", 2, False),
    ("strict_greedy", "top2", "1/5", 2, True),
    ("strict_greedy", "top2", "1/2", 1, True),
    ("strict_greedy", "coverage", "1/2", 3, False),
    ("strict_greedy", "coverage", "1/5", 2, True),
    ("additive(3/10)", "top2", "1/5", 1, False),
    ("multiplicative(2/5)", "top2", "1/20", 1, False),
    ("top_m(2)", "top2", "1/2", 2, False),
    ("top_m(3)", "top2", "1/5", 1, True),
    ("absolute(1/12)", "top2", "1/2", 1, False),
    ("absolute(1/2)", "top2", "1/20", 1, True),
    ("typical(1, 1/2)", "top2", "1/2", 1, False),
    ("mars(9/10)", "top2", "1/5", 1, True),
    ("top_m(3) & additive(3/5)", "top2", "1/2", 1, False),
    ("top_m(2) | multiplicative(2/5)", "top2", "1/2", 1, True),
]


@pytest.mark.parametrize(("rule", "known", "margin", "candidates", "supremum"), CASES)
def test_bounds_hold_and_tightened_ones_are_crossed(short, rule, known, margin, candidates, supremum):
    wanted = Search(parse_rule(rule), candidates, known, margin, supremum)
    reached = search(wanted)
    assert reached.failure is None
    assert reached.sharp
    assert reached.nearest is not None
    caught = search(wanted, tightened(wanted.bound, supremum)).failure
    assert caught
    assert caught["error"] == "a target lies beyond the bound"
    masses = [Fraction(p) for p in caught["probabilities"]]
    assert sum(p * times for p, times in zip(masses, caught["multiplicities"], strict=True)) == 1
    assert masses[0] - masses[1 if known == "top2" else candidates] == Fraction(margin)
    worst = float(wanted.bound)
    assert 0 <= (worst - float(caught["certificate"])) * (1 if supremum else -1) < worst / 1000


@pytest.mark.parametrize("rule", BOUNDED, ids=str)
@pytest.mark.parametrize("vocab_size", [2, 3, 4])
def test_bounds_for_so_many_tokens(rule, vocab_size):
    """What the search finds in just so many tokens is the bound wherever it is said to be sharp."""
    for supremum in (False, True):
        wanted = Search(rule, vocab_size - 1 - (vocab_size == 4), "top2", "1/5", supremum, vocab_size=vocab_size)
        reached = search(wanted)
        assert reached.failure is None
        assert reached.tokens == [vocab_size]
        value = float(wanted.bound)
        if reached.sharp and 0 < value < np.inf:
            assert search(wanted, tightened(wanted.bound, supremum)).failure


def test_a_bound_that_is_too_loose_is_not_sharp(short):
    wanted = Search(STRICT, 1, "top2", "1/2", False)
    failure = search(wanted, dataclasses.replace(wanted.bound, ball=arb("0.1"))).failure
    assert failure
    assert "no target comes closer" in failure["error"]
    never = search(wanted, dataclasses.replace(wanted.bound, ball=arb(0), sharp=False))
    assert never.failure is None


def test_a_bound_that_nothing_reaches_is_reported(short):
    """The certificate is never infinite here."""
    wanted = Search(STRICT, 1, "top2", "1/2", True)
    reached = search(wanted, dataclasses.replace(wanted.bound, ball=arb("inf")))
    assert reached.nearest is None
    assert reached.failure


def test_every_bound_is_attacked():
    wanted = list(searches())
    assert {search.rule for search in wanted} == set(BOUNDED)
    assert len({search.key for search in wanted}) == len(wanted) == (len(BOUNDED) + 1) * (4 + 2 + 3 + 4) * 4 * 2
    assert {search.known for search in wanted if search.rule != STRICT} == {"top2"}
    assert not list(searches([parse_rule("typical_floor(1/2, 3/5, 1/100000)")]))
    low, high = margin_bounds("strict_greedy", 2, margin="1/5", digits=20)
    first = Search(STRICT, 2, "top2", "1/5", False)
    assert (str(first.bound), str(dataclasses.replace(first, supremum=True).bound)) == (str(low), str(high))


def test_a_search_depends_on_its_values_alone(short):
    wanted = Search(parse_rule("top_m(2)"), 2, "top2", "1/5", False, seed=3)
    assert search(wanted) == search(wanted)
    assert search(wanted).wanted == wanted.values


@pytest.mark.parametrize(
    ("rule", "candidates", "margin", "vocab_size"),
    [
        ("absolute(1/10)", 1, "1/2", 5),  # (6, 1, 1, 1, 1)/10: all are accepted, the last four on the threshold
        ("absolute(19/20)", 1, "9/10", 4),  # (19, 1, 0, 0)/20 alone has a token that is accepted
        ("absolute(1/3)", 2, "1/5", None),  # (3, 2)/5 with one more token leaves nothing for two rejected candidates
    ],
)
def test_a_bound_that_one_target_on_a_threshold_attains_is_reached(rule, candidates, margin, vocab_size):
    found = search(Search(parse_rule(rule), candidates, "top2", margin, True, 0, vocab_size))
    assert found.failure is None
    assert found.attained
