import dataclasses
import json
import math
import random
import sys
from fractions import Fraction
from itertools import islice
from typing import Any, cast

import numpy as np
import pytest
import sympy
from flint import fmpq

from draftcert.numerics import sampling_acceptance, sharpness, validate
from draftcert.numerics.agreement import COMPARED, solve_row
from draftcert.numerics.attack import attack, is_rejected
from draftcert.numerics.balls import to_mpf
from draftcert.numerics.certificate import certificate
from draftcert.numerics.divergence import DIVERGENCES
from draftcert.numerics.families import FAMILIES, make_row
from draftcert.numerics.program import Solution
from draftcert.numerics.row import read_row
from draftcert.numerics.sharpness import searches
from draftcert.numerics.validation import PROFILES, Case, Profile, _solver_digits, cases, reproduce, run_case
from draftcert.theory import DraftcertError, parse_rule
from draftcert.theory.presets import example_rules


@pytest.fixture
def small(monkeypatch):
    """A profile of a few cases; the command line's are larger."""
    monkeypatch.setitem(PROFILES, "small", Profile(2, (2, 3, 4, 5)))
    return "small"


def test_families_are_distributions_and_reproducible():
    for family in FAMILIES.values():
        for index in range(5):
            tokens = max(family.least, 2 + index)
            row = make_row(family, 0, index, tokens)
            assert len(row) == tokens
            assert sum(row.weights) == row.total
            assert row == make_row(family, 0, index, tokens)


@pytest.mark.parametrize("name", PROFILES)
def test_every_divergence_meets_every_size(name, monkeypatch):
    sizes = PROFILES[name].sizes
    monkeypatch.setitem(PROFILES, "endless", Profile(None, sizes))
    drawn = islice(cases("endless", 0), 3 * len(DIVERGENCES) * len(sizes) * len(FAMILIES))
    met = {(case.tokens, case.divergence) for case in drawn if case.family == "generic"}
    assert met == {(size, divergence) for size in sizes for divergence in DIVERGENCES}


def test_agrees_and_reports(small, tmp_path):
    calls = []
    report = validate(small, 1, processes=1, progress=lambda done, total: calls.append((done, total)))
    assert not report.failures
    assert calls[-1] == (len(report.outcomes), len(report.outcomes))
    assert len(report.outcomes) > 2 * len(FAMILIES)  # so few do not notice every mutant
    assert {row.family for row in report.table} == set(FAMILIES)
    assert min(row.worst_digits for row in report.table) >= 50
    assert {row.formula for row in report.mutations} == set(COMPARED)
    assert all(row.mutants >= 10 for row in report.mutations)
    assert report.ok
    few = dataclasses.replace(report, outcomes=report.outcomes[: len(FAMILIES)])
    assert any(row.missed for row in few.mutations)
    assert not few.ok
    assert dataclasses.replace(few, whole=False).ok  # fewer rules, or a soak that ends when it may
    data, page = report.write(tmp_path)
    assert (document := json.loads(data.read_text()))["cases"] == len(report.outcomes)
    assert document["judged"]["rules"] == [[str(rule), rule.sha256] for rule in example_rules()]
    assert set(COMPARED) >= set(document["judged"]["formulas"])
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
    case = next(case for case in cases(small, 0, [parse_rule("strict_greedy")]) if case.family == "generic")
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


def test_a_failure_is_shrunk_to_a_minimal_input(monkeypatch):
    """The level is off by 1e-12 where three or more tokens are moved: small weights show it."""
    level = COMPARED["level"]
    n = level.arguments[1].symbol
    wrong = level.expression * (1 + (n - 1) * (n - 2) * sympy.Rational(1, 10**12))
    module = sys.modules[run_case.__module__]
    monkeypatch.setattr(module, "COMPARED", {"level": dataclasses.replace(level, expression=wrong)})
    outcomes = (run_case(Case("generic", index, 0, 6, parse_rule("strict_greedy"), 4)) for index in range(9))
    failure = next(outcome.failure for outcome in outcomes if outcome.failure)
    assert len(failure["probabilities"]) == 6
    minimal = failure["minimal"]
    weights = [Fraction(p) for p in minimal["probabilities"]]
    assert len(weights) == 5
    assert max(weight.denominator for weight in weights) <= 20
    assert sum(weights) == 1
    assert minimal["digits"] < 13
    assert reproduce(json.loads(json.dumps(minimal))).failure == minimal
    monkeypatch.undo()
    assert reproduce(minimal).failure is None


def test_a_crash_is_a_failure_with_its_input(monkeypatch):
    module = sys.modules[run_case.__module__]
    monkeypatch.setattr(module, "certify", lambda *_: 1 / 0)
    failure = run_case(Case("ties", 0, 0, 4, parse_rule("top_m(2)"), 1)).failure
    assert failure
    assert failure["error"].startswith("ZeroDivisionError")
    assert failure["minimal"]["tokens"] == 2


def test_sampling_is_judged_by_convex_programs(monkeypatch):
    case = next(case for case in cases("quick", 0) if case.family == "extremal" and case.index == 1)
    assert run_case(case).failure is None
    module = sys.modules[run_case.__module__]
    monkeypatch.setattr(module, "sampling_acceptance", lambda kl, *at, **row: sampling_acceptance(kl * 2, *at, **row))
    failure = run_case(case).failure
    assert failure
    assert "sampling at" in failure["error"]


def test_bounds_are_part_of_a_run(monkeypatch, tmp_path):
    monkeypatch.setitem(PROFILES, "small", Profile(0, (2,), search_every=40))
    rules = ["strict_greedy", "typical(1, 1/2)"]
    monkeypatch.setattr(sharpness, "VOCABULARIES", (3, 10**100))
    monkeypatch.setattr(sharpness, "GENERATIONS", 60)
    file = tmp_path / "results.jsonl"
    report = validate("small", 0, processes=1, results=file, rules=rules)
    assert len(report.reached) == len(list(searches([*map(parse_rule, rules)]))[::40])
    assert {row.rule for row in report.sharpness} == {"strict_greedy", "typical(1, 1/2)"}
    assert not report.whole
    assert sum(row.bounds for row in report.sharpness) == len(report.reached)
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:4]) + "\n")
    assert validate("small", 0, processes=2, results=file, rules=rules) == report
    data, page = report.write(tmp_path)
    assert len(json.loads(data.read_text())["reached"]) == len(report.reached)
    assert page.read_text().count("data:image/png;base64,iVBOR") == 2
    assert "valid, not sharp" in page.read_text()
    broken = dataclasses.replace(report.reached[0], failure={"error": "a target lies beyond the bound"})
    assert not dataclasses.replace(report, reached=(broken, *report.reached[1:])).ok


def test_only_what_a_solver_claims_to_be_optimal_counts():
    solved = solve_row(read_row(["0.5", "0.3", "0.2"]), 1, 1)
    assert solved
    optimum = solved.optimum
    best = float(to_mpf(optimum.enclosure))

    def digits(*answers):
        solutions = [Solution(value, np.ones(3), (token,), "made up", claimed) for token, value, claimed in answers]
        return _solver_digits(optimum, solutions)

    assert optimum.competitors == (1,)
    assert digits((1, best, True), (2, 0.5, True)) == 16
    assert digits((1, best + 1e-6, True), (2, 0.5, True)) == pytest.approx(6)
    assert digits((1, 0.4, False), (2, 0.5, True)) is None
    assert digits((1, best, True), (2, best - 0.01, True)) == pytest.approx(2)  # no choice may be cheaper
    assert digits((1, 1.0, False), (2, best - 0.01, True)) == pytest.approx(2)


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
    for seed in (-1, True, 0.5, "0"):  # of which numpy's generators refuse some: that is no failure of a formula
        with pytest.raises(DraftcertError, match="seed = "):
            validate("quick", cast(Any, seed))
    for hours in (math.nan, -1, "1"):
        with pytest.raises(DraftcertError, match="hours = "):
            validate("soak", hours=cast(Any, hours))
    for rules in ([], "strict_greedy"):
        with pytest.raises(DraftcertError, match="rules = "):
            validate("quick", rules=rules)
    report = validate("soak", hours=1e-5, processes=1)
    # How many cases fit depends on the machine; too few notice every false formula, none may fail.
    assert all(outcome.failure is None for outcome in report.outcomes)


def test_full_profile_is_tens_of_thousands():
    plan = PROFILES["full"]
    assert plan.per_family is not None
    assert plan.per_family * len(FAMILIES) >= 20_000
    assert max(plan.large) == 262_144
