"""The whole check and its ledger."""

import json
from dataclasses import replace
from typing import Any

import pytest

from draftcert.proofs_check import check, is_proved
from draftcert.proofs_check.formal import FormalAudit, statements
from draftcert.proofs_check.ledger import PATH, committed, differences, entries, text
from draftcert.proofs_check.mutation import Mutant, Tally
from draftcert.theory import DraftcertError
from draftcert.theory.theorems import EVERY_FORMULA, THEOREMS


@pytest.fixture(scope="module")
def report():
    return check(coq=False)


def test_everything_holds_and_the_ledger_is_reproduced(report):
    failures = [o.failure for t in report.theorems for o in t.outcomes if o.failure]
    failures += [f.failure for f in report.formulas if f.failure]
    assert failures == []
    assert report.ledger == ()
    assert report.ok
    assert PATH.read_text() == text(committed())
    assert differences(entries(report.proved), committed(), ["theorem", "formula"]) == ()


def test_the_committed_ledger_was_written_with_coq():
    checked = {entry["name"] for entry in committed().values() if entry["kind"] == "coq"}
    assert checked == set(statements())
    cited = {entry["name"]: entry.get("formal", []) for entry in committed().values() if entry["kind"] == "theorem"}
    assert cited == {name: list(theorem.formal) for name, theorem in THEOREMS.items()}


def test_a_ledger_says_what_ran(report):
    """Without Coq nothing is recorded of it; what an audit refuses is not recorded either."""
    without = entries(report.proved)
    assert not any("formal" in entry or entry["kind"] == "coq" for entry in without.values())
    audit = FormalAudit({"guarantee": True, "phi_bounds": False}, (), "8.16.1", 1.0)
    found = [entry for entry in entries(report.proved, audit).values() if entry["kind"] == "coq"]
    assert found == [{"kind": "coq", "name": "guarantee", "method": "coqc, coqchk", "version": "8.16.1"}]
    kinds = ["theorem", "formula", "coq"]
    assert any("phi_bounds" in line for line in differences(without, committed(), kinds))
    survivor = Tally((Mutant("T1", "conclusion 1", "a hole", False),))
    (entry,) = (each for each in entries((), None, survivor).values())
    assert (entry["name"], entry["why"]) == ("T1", "not explained")


def test_every_theorem_and_formula_is_in_the_report(report):
    assert [t.name for t in report.theorems] == list(THEOREMS)
    assert {f.name for f in report.formulas} == set(EVERY_FORMULA)
    assert all(is_proved(formula) for formula in EVERY_FORMULA.values())


def test_coq_is_reported_as_not_checked(report):
    assert set(report.unchecked) == {name for theorem in THEOREMS.values() for name in theorem.formal}
    assert report.formal is None
    assert report.coq.startswith("not checked formally")
    assert all(o.ok is None for t in report.theorems for o in t.outcomes if o.place.startswith("formal"))


def test_the_report_is_plain_data(report):
    data = json.loads(json.dumps(report.as_json()))
    assert data["ok"] is True
    assert data["theorems"][0]["outcomes"][0]["method"] == "symbolic"


def test_only():
    seen = []
    report = check(only=["ceiling"], coq=False, progress=seen.append)
    assert [t.name for t in report.theorems] == ["T4"]
    assert [f.name for f in report.formulas] == ["ceiling"]
    assert report.ledger is None
    assert seen == list(report.theorems)
    with pytest.raises(DraftcertError, match="no theorem or formula is called 'T99'"):
        check(only="T99", coq=False)


def test_a_false_theorem_fails_with_its_step_and_a_counterexample():
    theorem = THEOREMS["T2"]
    claim: Any = theorem.conclusions[0]
    wrong = replace(theorem, conclusions=(replace(claim, left=claim.right, right=claim.left),))
    report = check(only="T2", coq=False, theorems={"T2": wrong})
    assert not report.ok
    (failed,) = [o for o in report.theorems[0].outcomes if o.ok is False]
    assert failed.place == "conclusion 1"
    assert failed.counterexample is not None
    assert set(failed.counterexample) == {"p_i", "p_j", "q_i", "q_j"}
