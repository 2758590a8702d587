"""Log-loss of rules: by the definition on small rows, and by searches over targets."""

import math
import random
from fractions import Fraction

import pytest

from draftcert.numerics import log_loss, log_loss_bound
from draftcert.theory import DraftcertError, parse_rule

RULES = (
    "strict_greedy",
    "multiplicative(0.3)",
    "additive(0.25)",
    "absolute(0.2)",
    "absolute(0.5)",
    "top_m(3)",
    "top_m(2) & additive(0.3)",
    "absolute(0.3) | multiplicative(0.6)",
    "typical(0.3, 0.2)",
)


def targets(number):
    source = random.Random(5)
    for _ in range(number):
        weights = sorted((source.randint(0, 40) for _ in range(source.randint(2, 5))), reverse=True)
        if sum(weights):
            yield [Fraction(weight, sum(weights)) for weight in weights]


@pytest.mark.parametrize("text", RULES)
def test_a_row_by_definition_and_below_every_bound(text):
    rule = parse_rule(text)
    bound = float(log_loss_bound(rule))
    for row in targets(150):
        accepted = row[: max(1, rule.accepted_count(row))]
        costs = [math.inf if p == 0 else math.log(row[0] / p) for p in accepted]
        found = float(log_loss(row, rule, digits=20))
        assert found == pytest.approx(max(costs), abs=1e-12)
        for each in (
            bound,
            float(log_loss_bound(rule, top=row[0])),
            float(log_loss_bound(rule, margin=row[0] - row[1])),
        ):
            assert found <= each + 1e-12


@pytest.mark.parametrize(
    ("text", "known", "row"),
    [
        ("multiplicative(0.3)", {}, ["10/13", "3/13"]),
        ("multiplicative(0.3)", {"top": "1/2"}, ["1/2", "7/20", "3/20"]),
        ("multiplicative(0.3)", {"margin": "7/13"}, ["10/13", "3/13"]),
        ("additive(0.25)", {"top": "0.4"}, ["0.4", "0.15", "0.15", "0.15", "0.15"]),
        ("absolute(0.2)", {}, ["0.8", "0.2"]),
        ("absolute(0.2)", {"margin": "0.1"}, ["0.45", "0.35", "0.2"]),
        ("absolute(0.2)", {"margin": "0.5"}, ["0.7", "0.2", "0.1"]),
        ("absolute(0.2)", {"margin": "0.7"}, ["0.85", "0.15"]),
        ("absolute(0.6)", {}, ["0.6", "0.4"]),
    ],
)
def test_attained(text, known, row):
    assert str(log_loss_bound(text, **known)) == str(log_loss(row, text))


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("additive(0.25)", {}),
        ("additive(0.25)", {"top": "0.25"}),
        ("additive(0.25)", {"margin": "0.25"}),
        ("top_m(2)", {}),
        ("top_m(2)", {"top": "0.9"}),
        ("typical(0.3, 0.2)", {}),
        ("mars(0.9)", {}),
        ("absolute(0)", {}),
    ],
)
def test_without_bound(text, known):
    assert float(log_loss_bound(text, **known)) == math.inf


def test_without_loss():
    assert log_loss(["1/2", "1/2"], "multiplicative(1)").ball == 0
    assert log_loss(["0.5", "0.3", "0.2"], "absolute(0.9)").ball == 0
    assert log_loss_bound("strict_greedy").ball == 0
    assert log_loss_bound("additive(0.25)", margin="0.26").ball == 0
    assert float(log_loss(["1", "0"], "top_m(2)")) == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: log_loss_bound("additive(0.3)", top=0), "top = 0"),
        (lambda: log_loss_bound("additive(0.3)", top=math.nan), "top = nan"),
        (lambda: log_loss_bound("additive(0.3)", margin=1.1), r"margin = 1\.1"),
        (lambda: log_loss_bound("additive(0.3)", top=0.5, margin=0.1), "give one of them"),
        (lambda: log_loss([0.5, 0.6], "additive(0.3)"), "sum to"),
        (lambda: log_loss(["0.5", "0.5"], "mars(0.9)"), "raw logits"),
    ],
)
def test_refused(call, message):
    with pytest.raises(DraftcertError, match=message):
        call()
