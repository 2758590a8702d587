import json

import pytest
import sympy

from draftcert.numerics import decide, validate
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
    assert report.ok, report.failures
    assert calls[-1] == (len(report.outcomes), len(report.outcomes))
    assert {row.family for row in report.table} == set(FAMILIES)
    assert min(row.worst_digits for row in report.table) >= 50
    assert all(not row.missed and row.mutants >= 10 for row in report.mutations)
    data, page = report.write(tmp_path)
    assert json.loads(data.read_text())["ok"] is True
    assert "all agree" in page.read_text()
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
    monkeypatch.setattr("draftcert.numerics.validate.run_case", lambda case: pytest.fail("computed again"))
    assert validate(small, 2, processes=1, results=file, rules=["strict_greedy"]) == whole


def test_a_wrong_threshold_is_found_and_reproducible(small, monkeypatch):
    """The accepted set is off by one token in the formula only: the attack and the program both see it."""
    right = decide.RowStatistics.count
    case = next(case for case in cases(small, 0, ["top_m(1)"]) if case.tokens == 3)
    monkeypatch.setattr(
        "draftcert.numerics.certificate.pooled_value",
        lambda weights, level, total, digits: certificate([1, 0], "strict_greedy").ball,
    )
    outcome = run_case(case)
    assert outcome.failure
    assert sum(map(sympy.Rational, outcome.failure["probabilities"])) == 1
    assert right is decide.RowStatistics.count


def test_attack_refutes_a_certificate_that_claims_too_much():
    found = certificate(["0.5", "0.3", "0.2"], "strict_greedy")
    import random

    attack(found, random.Random(0))
    wrong = certificate(["0.5", "0.3", "0.2"], "top_m(2)")
    pretending = type(wrong)(
        wrong.ball, wrong.digits, wrong.rule, 1, wrong.level, found.accepted, found.competitors, wrong.pool, wrong.row
    )
    with pytest.raises(DraftcertError, match="is rejected"):
        attack(pretending, random.Random(0))


def test_worst_case_ties_are_rejections():
    half = [sympy.Rational(1, 2)] * 2
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
    assert report.outcomes == () or report.ok


def test_full_profile_is_tens_of_thousands():
    plan = PROFILES["full"]
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
