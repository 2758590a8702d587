import dataclasses
import json
import random

import mpmath
import pytest
import sympy

from draftcert.numerics import Agreed, agree
from draftcert.numerics.agreement import COMPARED, LEDGER, solve_row
from draftcert.numerics.balls import bounds
from draftcert.numerics.divergence import DIVERGENCES, renyi
from draftcert.numerics.mutation import mutants
from draftcert.numerics.polish import certified_digits, least, polish
from draftcert.numerics.program import Solution, solve
from draftcert.numerics.row import read_row
from draftcert.theory import DraftcertError
from draftcert.theory.formula import AGREED_DIGITS

ROWS = [
    (["0.6", "0.4"], 1, 1),
    (["0.5", "0.45", "0.05"], 1, 2),
    (["0.5", "0.45", "0.05"], 1, 1),
    (["0.4", "0.35", "0.25"], 2, 1),
    (["1", "0", "0"], 1, 2),
    (["0.7", "0.2", "0.1", "0"], 2, 2),
    (["1/3", "1/3", "1/3"], 1, 1),
    (["9/13", "3/13", "1/13"], 1, 2),
    (["0.5", "0.25", "0.25"], 1, 2),
    (["0.5", "0.4", "0.1"], 2, 1),
    (["7/18", "5/18", "3/18", "3/18"], 2, 2),
    (["10/22", "9/22", "1/22", "1/22", "1/22"], 2, 3),
    (["0.5", *["0.01"] * 50], 1, 1),
    (["0.6", "0.4", "0", "0"], 2, 2),
    (["0.9", "0.1", "0", "0"], 2, 2),
]
DIVERGENT_ROWS = [
    (["0.6", "0.4"], 1, 1),
    (["0.5", "0.45", "0.05"], 1, 2),
    (["0.4", "0.35", "0.25"], 2, 1),
    (["0.3", "0.29", "0.28", "0.13"], 3, 1),
    (["7/18", "5/18", "3/18", "3/18"], 2, 2),
]


@pytest.fixture(scope="module")
def solved():
    rows = [solve_row(read_row(p), accepted, candidates) for p, accepted, candidates in ROWS]
    return rows + [
        solve_row(read_row(p), accepted, candidates, make())
        for make in DIVERGENCES.values()
        for p, accepted, candidates in DIVERGENT_ROWS
    ]


@pytest.mark.parametrize("formula", COMPARED.values(), ids=COMPARED)
def test_every_formula_agrees(formula, solved):
    agreed = agree(formula, solved)
    assert agreed.sha256 == formula.sha256
    assert agreed.digits >= AGREED_DIGITS


@pytest.mark.parametrize("formula", COMPARED.values(), ids=COMPARED)
def test_every_mutated_formula_is_refused(formula, solved):
    changed = list(mutants(formula))
    assert len(changed) >= 10
    for mutant in changed:
        with pytest.raises(DraftcertError, match="agrees to"):  # which ends at the first row that tells
            agree(mutant, solved)


def test_agreed_cannot_be_made_up(solved):
    with pytest.raises(DraftcertError, match="cannot be constructed"):
        Agreed("phi", "0" * 64, 50, 1, {})
    agreed = agree(COMPARED["phi"], solved)
    with pytest.raises(DraftcertError, match="frozen"):
        agreed.digits = 1000
    with pytest.raises(DraftcertError, match="no case determines"):
        agree(COMPARED["phi"], [])


def test_a_formula_without_a_claim_is_refused(solved):
    unknown = dataclasses.replace(COMPARED["phi"], name="unheard_of")
    with pytest.raises(DraftcertError, match="no claim"):
        agree(unknown, solved)


def test_failure_holds_the_row(solved):
    wrong = dataclasses.replace(COMPARED["phi"], expression=COMPARED["phi"].expression * sympy.Rational(1, 2))
    with pytest.raises(DraftcertError, match=r"\['3/5', '2/5'\] with 1 accepted tokens and 1 candidates"):
        agree(wrong, solved)


def test_committed_ledger_is_current():
    ledger = json.loads(LEDGER.read_text())
    assert {sha: entry["formula"] for sha, entry in ledger.items()} == {f.sha256: f.name for f in COMPARED.values()}
    assert min(entry["digits"] for entry in ledger.values()) >= AGREED_DIGITS


@pytest.mark.parametrize("name", DIVERGENCES)
def test_polish_encloses_what_the_solver_found(name):
    for p, accepted, candidates in ROWS[:7]:
        row, divergence = read_row(p), DIVERGENCES[name]()
        solutions = [s for s in solve(row, accepted, candidates, divergence=divergence) if s.draft is not None]
        optimum = least([polish(row, row.order[:accepted], s, divergence) for s in solutions])
        if optimum is None:
            assert (name, p[1]) == ("reverse_kl", "0")
            continue
        assert float(bounds(optimum.enclosure)[0]) == pytest.approx(min(s.value for s in solutions), abs=1e-6)
        assert certified_digits(optimum.enclosure) >= AGREED_DIGITS
        assert sum(optimum.draft) == 1
        residuals = dataclasses.astuple(optimum.residuals)
        assert len(residuals) == 4
        assert max(residuals) < mpmath.mpf("1e-50")


def test_polish_finds_the_active_set_from_a_wrong_start():
    """Any start ends at the certified optimum, since the bound of weak duality admits no other."""
    import numpy as np

    row = read_row(["0.4", "0.3", "0.2", "0.06", "0.04"])
    draw = random.Random(0)
    values = []
    for _ in range(5):
        guess = Solution(0.0, np.array([draw.random() for _ in range(5)]), (3, 4), "none")
        values.append(polish(row, row.order[:3], guess, renyi(2)).enclosure)
    assert certified_digits(*values) >= AGREED_DIGITS


def test_tree_trap_is_not_averaged():
    """p = (.5, .45, .05) with two candidates: pooling all three over-claims 0.2429."""
    trap = solve_row(read_row(["0.5", "0.45", "0.05"]), 1, 2)
    assert trap is not None
    assert trap.optimum.pool == (0, 2)
    assert float(bounds(trap.optimum.enclosure)[1]) == pytest.approx(0.2136810957658890)


def test_solvers_agree_on_every_choice_of_competitors():
    row = read_row(["0.4", "0.3", "0.2", "0.1"])
    for first, second in zip(solve(row, 1, 2), solve(row, 1, 2, solver="SCS"), strict=True):
        assert first.competitors == second.competitors
        assert first.value == pytest.approx(second.value, abs=1e-5)
    assert len(solve(row, 1, 2)) == 3
    assert solve(row, 3, 2) == ()


def test_bad_order():
    for order in (0, -1, 1):
        with pytest.raises(DraftcertError, match="Renyi order"):
            renyi(order)
