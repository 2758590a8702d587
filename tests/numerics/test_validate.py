import dataclasses
import json
import random
import sys
from fractions import Fraction

import pytest
from flint import fmpq

from draftcert.numerics import validate
from draftcert.numerics.agreement import COMPARED
from draftcert.numerics.attack import attack, is_rejected
from draftcert.numerics.certificate import certificate
from draftcert.numerics.families import FAMILIES, make_row
from draftcert.numerics.validate import PROFILES, Profile, cases, run_case
from draftcert.theory import DraftcertError


@pytest.fixture
def small(monkeypatch):
    """A profile of a few cases; the command line's are larger."""
    monkeypatch.setitem(PROFILES, "small", Profile(2, (2, 3)))
    return "small"


def test_families_are_distributions_and_reproducible():
    for family in FAMILIES.values():
        for index in range(5):
            tokens = max(family.least, 2 + index)
            row = make_row(family, 0, index, tokens)
            assert len(row) == tokens
            assert sum(row.weights) == row.total
            assert row == make_row(family, 0, index, tokens)


def test_agrees_and_reports(small, tmp_path):
    calls = []
    report = validate(small, 1, processes=1, progress=lambda done, total: calls.append((done, total)))
    assert not report.failures
    assert calls[-1] == (len(report.outcomes), len(report.outcomes))
    assert {row.family for row in report.table} == set(FAMILIES)
    assert min(row.worst_digits for row in report.table) >= 50
    assert {row.formula for row in report.mutations} == set(COMPARED)
    assert all(row.mutants >= 10 for row in report.mutations)
    assert report.ok == (not any(row.missed for row in report.mutations))
    data, page = report.write(tmp_path)
    assert json.loads(data.read_text())["cases"] == len(report.outcomes)
    assert all(family in page.read_text() for family in FAMILIES)
    assert "data:image/png;base64,iVBOR" in page.read_text()


def test_layout_and_resume_change_nothing(small, tmp_path):
    file = tmp_path / "results.jsonl"
    whole = validate(small, 2, processes=1, results=file, rules=["strict_greedy"])
    lines = file.read_text().splitlines()
    # killed in the middle of a line
    file.write_text("\n".join(lines[: len(lines) // 2]) + "\n" + lines[len(lines) // 2][:20])
    resumed = validate(small, 2, processes=2, results=file, rules=["strict_greedy"])
    assert resumed == whole
    assert sorted(file.read_text().splitlines()) == sorted(lines)
    with pytest.raises(DraftcertError, match="another run"):
        validate(small, 3, results=file, rules=["strict_greedy"])


def test_nothing_is_computed_twice(small, tmp_path, monkeypatch):
    file = tmp_path / "results.jsonl"
    whole = validate(small, 2, processes=1, results=file, rules=["strict_greedy"])
    monkeypatch.setattr(sys.modules[run_case.__module__], "run_case", lambda case: pytest.fail("computed again"))
    assert validate(small, 2, processes=1, results=file, rules=["strict_greedy"]) == whole


def test_a_wrong_certificate_fails_with_its_input(small, monkeypatch):
    """A certificate that averages one token too few is noticed, and the failure makes the case again."""
    case = next(case for case in cases(small, 0, ["strict_greedy"]) if case.family == "generic")
    assert run_case(case).failure is None
    module = sys.modules[run_case.__module__]
    right = module.certificate_of_row

    def wrong(*arguments):
        found = right(*arguments)
        return dataclasses.replace(found, ball=found.ball * fmpq(999_999, 1_000_000))

    monkeypatch.setattr(module, "certificate_of_row", wrong)
    failure = run_case(case).failure
    assert failure
    assert failure["digits"] < 7
    assert sum(map(Fraction, failure["probabilities"])) == 1


def test_attack_refutes_a_certificate_that_claims_too_much():
    found = certificate(["0.5", "0.3", "0.2"], "strict_greedy")
    attack(found, random.Random(0))
    claiming = dataclasses.replace(found, ball=found.ball * fmpq(1_000_001, 1_000_000))
    with pytest.raises(DraftcertError, match="is rejected"):
        attack(claiming, random.Random(0))


def test_worst_case_ties_are_rejections():
    half = [fmpq(1, 2)] * 2
    assert is_rejected(half, {0}, 1)
    assert not is_rejected(half, {0, 1}, 1)
    assert not is_rejected(half, {0}, 2)


def test_unknown_profile_and_soak():
    with pytest.raises(DraftcertError, match="no profile"):
        validate("slow")
    with pytest.raises(DraftcertError, match="soak"):
        validate("soak")
    with pytest.raises(DraftcertError, match="soak"):
        validate("quick", hours=1)
    report = validate("soak", hours=1e-5, processes=1)
    # How many cases fit depends on the machine; too few notice every false formula, none may fail.
    assert all(outcome.failure is None for outcome in report.outcomes)


def test_full_profile_is_tens_of_thousands():
    plan = PROFILES["full"]
    assert plan.per_family is not None
    assert plan.per_family * len(FAMILIES) >= 20_000
    assert max(plan.large) == 262_144


def test_ray_cluster_of_two_nodes(small):
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 80_000_000})
    try:
        cluster.add_node(num_cpus=1, object_store_memory=80_000_000)
        cluster.wait_for_nodes()
        ray.init(cluster.address, log_to_driver=False)
        assert len([node for node in ray.nodes() if node["Alive"]]) == 2
        ray.shutdown()
        rules = ["strict_greedy"]
        assert validate(small, 4, ray=cluster.address, rules=rules) == validate(small, 4, processes=1, rules=rules)
    finally:
        ray.shutdown()
        cluster.shutdown()
