"""Entropies of large rows: the fast enclosure must hold the exact value and never change a decision."""

import random
from fractions import Fraction

import pytest
import sympy

from draftcert.numerics import certificate, decide
from draftcert.numerics.balls import precision
from draftcert.numerics.decide import RowStatistics, accepted_count
from draftcert.numerics.families import FAMILIES, make_row
from draftcert.theory import parse_rule

RULES = ("typical(9/100, 3/10)", "typical(1, 1/2)", "typical(1, 1)", "typical_floor(1/2, 3/5, 1/100000)")


@pytest.fixture
def grouped(monkeypatch):
    """Rows of a few tokens take the path of large ones."""
    monkeypatch.setattr(decide, "ALONE", 2)
    monkeypatch.setattr(decide, "GROUP", 3)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("floor", ["0", "1/100000", "1"])
def test_grouped_entropy_encloses_the_entropy(grouped, family, floor):
    for index in range(8):
        statistics = RowStatistics(make_row(family, 0, index, 3 + index))
        rough = statistics._grouped_entropy(sympy.Rational(floor))
        with precision(4000):
            exact = statistics._entropy(sympy.Rational(floor), 4000)
        assert rough.overlaps(exact)
        assert exact.rad() < rough.rad() or len({w for w in statistics.row.weights if w}) <= 3


def test_groups_change_no_decision(monkeypatch):
    draw = random.Random(0)
    rows = [make_row(family, 1, k, draw.randint(4, 12)) for family in FAMILIES.values() for k in range(4)]
    exact = [accepted_count(parse_rule(rule), row) for rule in RULES for row in rows]
    monkeypatch.setattr(decide, "ALONE", 1)
    monkeypatch.setattr(decide, "GROUP", 4)
    assert [accepted_count(parse_rule(rule), row) for rule in RULES for row in rows] == exact


def test_tie_with_the_threshold_stays_a_tie(grouped):
    """exp(-H) = 1/4 exactly: delta = 1/2 puts the threshold on four tokens, and strictness rejects them."""
    weights = [Fraction(1, 2), *[Fraction(1, 8)] * 4, *[Fraction(0)] * 3]
    assert certificate(weights, "typical(1, 1/2)", 1).accepted == (0,)
