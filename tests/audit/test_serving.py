"""What acceptance costs, what sampling guarantees, and whether a drafter is worth serving: on a real small audit."""

import json
import math
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest
import torch

from draftcert.audit.judge import Judge
from draftcert.audit.recommendation import Wanted, best_trades, recommend, sampling, trade_off
from draftcert.audit.records import Audit
from draftcert.audit.report import write_report
from draftcert.audit.serving import Costs, Served, drafts_by_length, largest_acceptance, passes_over
from draftcert.audit.tables import acceptance_and_cost
from draftcert.numerics import log_loss, sampling_acceptance
from draftcert.runtime.models import load_model
from draftcert.runtime.trees.drafters import draft_model
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


def test_rules_are_compared_where_they_guarantee_something(audit, monkeypatch):
    monkeypatch.setattr(type(audit), "mean_kl", 1e6)
    table = acceptance_and_cost(audit)
    assert any(row[2] for row in table.rows)
    assert "mean KL 0.1 nats" in table.reading


def test_no_rule_has_more_acceptance_for_less_than_the_best_trades(audit):
    traded = trade_off(audit, 0.2)
    best = best_trades(traded)
    assert 1 < len(best) < len(traded)
    for each in traded:
        assert any(other.log_loss <= each.log_loss and other.guaranteed >= each.guaranteed for other in best)
    for less, more in pairwise(best):
        assert less.log_loss < more.log_loss
        assert less.guaranteed < more.guaranteed


def test_a_drafter_is_below_the_ceiling(audit, tiny_model, prompts):
    """Its likeliest tokens are found again with the models themselves, and count if they are the target's first 16."""
    target, draft = (load_model(str(tiny_model)) for _ in range(2))
    draft = draft_model("layers:0-1,3", target)
    masses = []
    for number, prompt in enumerate(prompts):
        inside = audit.column("prompt") == number
        ids = target.batch(prompt.token_ids(target.tokenizer))
        text = torch.cat([ids, torch.tensor(audit.column("target_token")[inside])[None, :-1]], 1)
        with torch.no_grad():
            rows, drafted = (each(text).logits[0, ids.shape[1] - 1 :] for each in (target.model, draft))
        shares = rows.softmax(-1)
        shares[shares < shares.topk(16).values[:, -1:]] = 0
        masses.append(shares.gather(-1, drafted.topk(8).indices))
    reached = torch.cat(masses).cumsum(-1).mean(0)
    for each in largest_acceptance(audit):
        assert each.reached is not None
        assert each.reached == pytest.approx(float(reached[each.candidates - 1]), rel=1e-4)
        assert each.reached <= each.most + 1e-12
        assert each.share == pytest.approx(each.reached / each.most)


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("length", [1, 2, 5])
def test_passes_by_walking_through_the_text(length, width):
    torch.manual_seed(0)
    for _ in range(50):
        ranks = (1 + (torch.rand(30) * 5 * (torch.rand(30) < 0.5)).long()).numpy()
        passes, position = 0, 0
        while position < len(ranks):
            passes += 1
            for _ in range(length):
                if position == len(ranks) or ranks[position] > width:
                    break
                position += 1
                if ranks[position - 1] > 1:  # a leaf: only the first choices have children
                    break
            position += 1
        assert passes_over(ranks, length, width) == passes


def test_drafts_of_every_length_and_width(audit):
    found = drafts_by_length(audit, (1, 2, 8))
    assert {(each.length, each.width) for each in found} >= {(1, 8), (8, 8), (16, 2)}
    assert all(each.length * each.width <= 64 for each in found)
    for each in found:
        assert 1 <= each.low <= each.tokens <= min(each.high, each.most)
        assert max(each.high, each.most) <= each.length + 1
        assert each.guaranteed <= each.tokens + 1e-9
        assert Costs(each.break_even).speed_up(each.length, each.tokens) == pytest.approx(1)
        assert each.tokens >= max(other.tokens for other in found if other.length == each.length and other.width == 1)
    perfect = len(audit) / sum(math.ceil(np.sum(audit.column("prompt") == number) / 4) for number in range(5))
    assert next(each for each in found if each.length == 3).most == pytest.approx(perfect)
    with pytest.raises(DraftcertError, match=r"costs -1\.0 and 1"):
        Costs(-1)
    for cost in ("0.1", None, True, math.nan):
        with pytest.raises(DraftcertError, match="cost"):
            Costs(cast(Any, cost))


def test_the_fastest_drafts(audit):
    free, dear = Served.fastest(audit, Costs(0.0)), Served.fastest(audit, Costs(10.0))
    assert free.drafts.tokens == max(each.tokens for each in drafts_by_length(audit, (1, 2, 4, 8)))
    assert (free.drafts.width, dear.drafts.length) == (8, 1)
    for each in (free, dear, Served.fastest(audit, Costs(0.1, 1.2))):
        low, high = each.interval
        assert low <= each.speed_up <= high
        assert each.as_dict()["share"] == each.drafts.tokens / each.drafts.most


def test_what_is_possible_stands_in_the_answers_and_the_tables(audit, audited):
    told = {each.question: each for each in write_report(audited).answers}["Is it worth serving"]
    longest = max(drafts_by_length(audit), key=lambda each: each.tokens)
    assert f"{math.floor(1000 * longest.share) / 10:g} % of the possible" in told.text
    assert f"{math.floor(1000 * (largest_acceptance(audit)[0].share or 0)) / 10:g} % of the" in told.text
    report = write_report(audited, costs=Costs(0.05))
    served = Served.fastest(audit, Costs(0.05))
    assert f"{served.speed_up:.2f} times the target alone" in report.overview
    assert json.loads(report.json.read_text())["answers"][-1]["text"] == report.answers[-1].text
    rows = report.summary["tables"]["tokens_a_pass"]
    assert [row[rows["columns"].index("share")] for row in rows["rows"]] == [
        each.share for each in drafts_by_length(audit)
    ]
    write_report(audited)
