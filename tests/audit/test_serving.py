"""What acceptance costs, what sampling guarantees, and whether a drafter is worth serving: on a real small audit."""

import math

import numpy as np
import pytest
import torch

from draftcert.audit.judge import Judge
from draftcert.audit.recommendation import Wanted, recommend, sampling
from draftcert.audit.records import Audit
from draftcert.audit.serving import Costs, best_length, drafts_by_length, passes_over
from draftcert.audit.tables import acceptance_and_cost, ceiling
from draftcert.numerics import log_loss, sampling_acceptance
from draftcert.theory import DraftcertError, parse_rule


@pytest.fixture(scope="module")
def audit(audited):
    return Audit.open(audited)


@pytest.mark.parametrize(
    "text", ["strict_greedy", "multiplicative(0.2)", "additive(0.1)", "top_m(3)", "absolute(0.05)"]
)
def test_log_loss_is_that_of_the_rule_or_above(audit, text):
    rule = parse_rule(text)
    found = Judge(audit)(rule, 1).log_loss
    kept = np.exp(audit.column("top_logprobs"))
    for row, cost in zip(kept, found, strict=True):
        # The tokens that were not kept are put into one that is less likely than any of these, if they can be.
        rest = 1 - row.sum()
        if 0 < rest < row[-1]:
            exact = float(log_loss([*row.tolist(), rest], rule, normalize=True, digits=15))
            assert cost >= exact - 1e-9
            if rule.accepted_count([*map(str, row), "0"]) < len(row):
                assert cost == pytest.approx(exact, abs=1e-9)


def test_a_budget_of_log_loss_is_kept(audit):
    free = recommend(audit, Wanted(0.9, "measured"))
    budget = sorted(each.setting.log_loss for each in free)[len(free) // 2]
    for each in recommend(audit, Wanted(0.9, "measured", log_loss=budget)):
        assert each.setting.log_loss <= budget or not each.reached
    for each in recommend(audit, Wanted(0.01, "measured", log_loss=0.0)):
        assert each.setting.log_loss == 0 or not each.reached
    with pytest.raises(DraftcertError, match=r"log_loss = -1"):
        Wanted(log_loss=-1.0)
    with pytest.raises(DraftcertError, match="log_loss = nan"):
        Wanted(log_loss=math.nan)


def test_sampling_is_guaranteed_below_what_is_measured(audit):
    first, *lenient = sampling(audit)
    assert first.lenience == "1"
    assert first.measured is not None
    assert 0 < first.guaranteed <= first.measured <= 1
    assert first.guaranteed < min(each.guaranteed for each in lenient)
    assert sampling(audit, 0.05)[0].guaranteed <= sampling_acceptance(0.05).upper
    assert sampling(audit, math.inf)[0].guaranteed == 0


def test_rules_that_let_more_pass_cost_more_and_guarantee_more(audit):
    table = acceptance_and_cost(audit)
    rows = [row for row in table.rows if row[0].startswith("multiplicative")]
    assert [row[1] for row in rows] == sorted(row[1] for row in rows)
    assert [row[2] for row in rows] == sorted(row[2] for row in rows)
    assert next(row for row in table.rows if row[0] == "top_m(1)")[1] == 0


def test_a_drafter_is_below_the_ceiling(audit):
    for _, most, reached, share in ceiling(audit).rows:
        assert 0 < reached <= most + 1e-12
        assert share == pytest.approx(reached / most)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_passes_by_walking_through_the_text(length):
    torch.manual_seed(0)
    for _ in range(50):
        hits = (torch.rand(30) < 0.7).numpy()
        passes, kept = 0, 0
        position = 0
        while position < len(hits):
            passes += 1
            for _ in range(length):
                if position < len(hits) and hits[position]:
                    position += 1
                    kept += 1
                else:
                    break
            position += 1
        assert passes_over(hits, length) == passes


def test_drafts_of_every_length(audit):
    found = drafts_by_length(audit)
    for each in found:
        assert 1 <= each.low <= each.tokens <= each.high <= each.length + 1
        assert each.guaranteed <= each.tokens + 1e-9
        assert Costs(each.break_even).speed_up(each.length, each.tokens) == pytest.approx(1)
    assert best_length(found, Costs(0.0)).tokens == max(each.tokens for each in found)
    assert best_length(found, Costs(10.0)).length == 1
    with pytest.raises(DraftcertError, match="costs -1 and 1"):
        Costs(-1)
