import math

import numpy as np
import pytest

from draftcert.audit.judge import Judge
from draftcert.audit.records import Audit
from draftcert.audit.tables import mean_run, statistic
from draftcert.numerics import MeanKLGuarantee, margin_bounds
from draftcert.theory import parse_rule

RULES = ("strict_greedy", "additive(0.3)", "multiplicative(0.1)", "top_m(2)", "medusa_typical(0.09, 0.3)")

ROUNDED = 2e-4
"""Certificates are rounded down and divergences up by what float32 logits may be off by."""


@pytest.fixture(scope="module")
def audit(audited):
    return Audit.open(audited)


def test_rules_judged_from_kept_tokens_are_exact_or_below(audit):
    judge = Judge(audit)
    for text in RULES:
        for width in (1, 2, 4):
            judged = judge(parse_rule(text), width)
            exact = audit.certificates(text, width)
            assert (judged.certificates <= exact * (1 + ROUNDED)).all()
            seen = audit.column(f"accepted_size|{text}") + width <= 16
            assert judged.certificates[seen] == pytest.approx(exact[seen], rel=ROUNDED, abs=1e-15)
            hits = audit.column(f"hit|{text}|{width}")
            assert not (judged.hits & ~hits).any()
            assert (judged.hits == hits)[seen].all()


def test_what_is_certified_hits_and_what_is_guaranteed_is_reached(audit):
    for _, _, _, cell in audit.configuration.grid.cells():
        certified, hit = audit.column(f"certified|{cell}"), audit.column(f"hit|{cell}")
        assert not (certified & ~hit).any()
        assert MeanKLGuarantee(audit.column(f"C|{cell}")).acceptance(audit.mean_kl) <= hit.mean()
    assert audit.column("certified|strict_greedy|8").any()


def test_certificates_lie_within_the_margin_s_bounds(audit):
    margins = (audit.column("top1") - audit.column("top2")).tolist()
    for margin, value in zip(margins, audit.certificates("strict_greedy", 1).tolist(), strict=True):
        low, high = margin_bounds("strict_greedy", gap=margin, digits=15)
        assert float(low.value) - 1e-12 <= value <= float(high.value) + 1e-12


def test_divergences_are_those_of_their_definitions(audit, tiny_model, prompts):
    import torch

    from draftcert.audit.drafts import load_draft
    from draftcert.runtime.models import load_model

    target = load_model(tiny_model)
    ids = target.encode(prompts[0].text)
    with torch.inference_mode():
        p = torch.softmax(target.model(ids).logits[0, -1].double(), -1)
        q = torch.softmax(load_draft("self:skip=2", target)(ids).logits[0, -1].double(), -1)
    assert audit.column("kl")[0] == pytest.approx(float((p * (p / q).log()).sum()), rel=ROUNDED)
    assert audit.column("reverse_kl")[0] == pytest.approx(float((q * (q / p).log()).sum()), rel=ROUNDED)
    assert audit.column("total_variation")[0] == pytest.approx(float((p - q).abs().sum() / 2), rel=ROUNDED)
    assert audit.column("entropy")[0] == pytest.approx(float(-(p * p.log()).sum()), rel=ROUNDED)
    assert audit.column("floored_entropy")[0] == pytest.approx(float(-(p * (p + 1e-5).log()).sum()), rel=ROUNDED)


def test_runs_end_with_their_prompt():
    inside = np.array([1, 1, 0, 1, 1, 1, 0], dtype=bool)
    assert mean_run(inside, np.zeros(7)) == 2.5
    assert mean_run(inside, np.array([0, 0, 0, 0, 1, 1, 1])) == pytest.approx(5 / 3)
    assert mean_run(~inside & inside, np.zeros(7)) == 0


def test_a_percentile_never_mixes_a_number_with_infinity():
    assert statistic(np.array([0.0, 1.0, math.inf, math.inf]), "p50") == 1.0
    assert statistic(np.array([0.0, math.inf]), "mean") == math.inf
