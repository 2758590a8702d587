import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from draftcert.audit.judge import Judge
from draftcert.audit.measure import Grid, measure
from draftcert.audit.records import Audit
from draftcert.audit.tables import mean_run, statistic
from draftcert.numerics import MeanKLGuarantee, margin_bounds
from draftcert.runtime import row_stats
from draftcert.runtime.rows import certify
from draftcert.theory import parse_rule

RULES = ("strict_greedy", "additive(0.3)", "multiplicative(0.1)", "top_m(2)", "medusa_typical(0.09, 0.3)")

ROUNDED = 5e-6
"""Relative: the measured certificates are rounded down by the error of a float32 kernel's logsumexp, which is at most
this (docs/soundness.md, "The certificate"); the judge's are computed from the nearest one."""


@pytest.fixture(scope="module")
def audit(audited):
    return Audit.open(audited)


def test_rules_judged_from_kept_tokens_are_exact_or_below(audit):
    judge = Judge(audit)
    for text in RULES:
        for candidates in (1, 2, 4):
            judged = judge(parse_rule(text), candidates)
            exact = audit.certificates(text, candidates)
            assert (judged.certificates <= exact * (1 + ROUNDED)).all()
            seen = audit.column(f"accepted_size|{text}") + candidates <= 16
            assert judged.certificates[seen] == pytest.approx(exact[seen], rel=ROUNDED, abs=1e-15)
            hits = audit.column(f"hit|{text}|{candidates}")
            assert not (judged.hits & ~hits).any()
            assert (judged.hits == hits)[seen].all()


def test_the_mean_kl_is_rounded_up_by_no_more_than_its_arithmetic(audit):
    exact = sum(map(Fraction, audit.column("kl").tolist())) / len(audit)
    assert 0 < Fraction(audit.mean_kl) - exact < Fraction(1, 10**15)


def test_what_is_certified_hits_and_what_is_guaranteed_is_reached(audit):
    for _, _, cell in audit.configuration.grid.cells():
        certified, hit = audit.column(f"certified|{cell}"), audit.column(f"hit|{cell}")
        assert not (certified & ~hit).any()
        assert MeanKLGuarantee(audit.column(f"C|{cell}")).acceptance(audit.mean_kl) <= hit.mean()
    assert audit.column("certified|strict_greedy|8").any()


def test_certificates_lie_within_the_margin_s_bounds(audit):
    margins = (audit.column("top1") - audit.column("top2")).tolist()
    for margin, value in zip(margins, audit.certificates("strict_greedy", 1).tolist(), strict=True):
        low, high = margin_bounds("strict_greedy", margin=margin, digits=15)
        assert float(low.value) - 1e-12 <= value <= float(high.value) + 1e-12


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_columns_are_those_of_their_definitions(dtype):
    generator = torch.Generator().manual_seed(11)
    target, draft = (torch.randn(60, 90, generator=generator, dtype=dtype) * 3 for _ in range(2))
    columns = measure(target, draft, Grid(("strict_greedy",), (1,)))
    p, q = (torch.softmax(rows.double(), -1) for rows in (target, draft))
    for column, exact, (this, other) in (
        ("kl", (p * (p / q).log()).sum(-1), (target, draft)),
        ("reverse_kl", (q * (q / p).log()).sum(-1), (draft, target)),
    ):
        # Rounded up by the bound of its error: the true value is at most twice that below.
        nearest = certify(this, "strict_greedy", draft_logits=other, sound=False).kl
        assert nearest is not None
        bound = columns[column] - nearest.numpy()
        above = columns[column] - exact.numpy()
        assert ((above >= 0) & (above <= 2 * bound)).all()
        assert (bound <= 1e-4 * exact.numpy()).all()
    entropy_error = row_stats(target).entropy_error.numpy()
    assert (np.abs(columns["entropy"] + (p * p.log()).sum(-1).numpy()) <= entropy_error).all()
    assert columns["floored_entropy"] == pytest.approx(-(p * (p + 1e-5).log()).sum(-1).numpy(), rel=1e-13)
    assert columns["total_variation"] == pytest.approx(((p - q).abs().sum(-1) / 2).numpy(), rel=1e-13)


def test_runs_end_with_their_prompt():
    inside = np.array([1, 1, 0, 1, 1, 1, 0], dtype=bool)
    assert mean_run(inside, np.zeros(7)) == 2.5
    assert mean_run(inside, np.array([0, 0, 0, 0, 1, 1, 1])) == pytest.approx(5 / 3)
    assert mean_run(~inside & inside, np.zeros(7)) == 0


def test_a_percentile_never_mixes_a_number_with_infinity():
    assert statistic(np.array([0.0, 1.0, math.inf, math.inf]), "p50") == 1.0
    assert statistic(np.array([0.0, math.inf]), "mean") == math.inf
