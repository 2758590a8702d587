"""Changed theorems do not get through."""

from dataclasses import replace
from typing import Any

import pytest

from draftcert.proofs_check import ProofError
from draftcert.proofs_check.mutation import EXPLAINED, Mutant, Tally, formula_mutants, mutants, tally
from draftcert.theory import FORMULAS
from draftcert.theory.theorems import THEOREMS


@pytest.mark.parametrize("name", ["T0", "T2", "T3", "T5", "T6", "B2", "B2c", "B3r", "B3t"])
def test_every_change_of_a_theorem_is_noticed(name):
    found = list(mutants(THEOREMS[name]))
    assert len(found) >= 15
    assert [m for m in found if not m.caught] == []


@pytest.mark.parametrize("name", ["phi", "strict_greedy", "ceiling", "certificate", "kl"])
def test_every_change_of_a_stable_form_is_noticed(name):
    found = list(formula_mutants(FORMULAS[name], tuple(THEOREMS.values())))
    assert found
    assert [m for m in found if not m.caught] == []


def test_the_report_over_several_processes():
    seen = []
    theorems = {"T2": THEOREMS["T2"], "T6": THEOREMS["T6"]}
    formulas = {"ceiling": FORMULAS["ceiling"]}
    report = tally(theorems, formulas, processes=2, progress=lambda *about: seen.append(about))
    assert seen == [("T2", 1, 3), ("T6", 2, 3), ("ceiling", 3, 3)]
    assert report.share == 1
    assert report.unexplained == ()
    assert report == tally(theorems, formulas)


def test_an_explained_survivor_is_listed_but_no_hole():
    key = next(iter(EXPLAINED))
    survivor, hole = Mutant(*key, False), Mutant(key[0], key[1], "something else", False)
    assert Tally((survivor, hole)).survivors == (survivor, hole)
    assert Tally((survivor, hole)).unexplained == (hole,)


def test_a_theorem_that_does_not_hold_has_no_mutants():
    theorem = THEOREMS["T2"]
    claim: Any = theorem.conclusions[0]
    wrong = replace(theorem, conclusions=(replace(claim, left=claim.right, right=claim.left),))
    with pytest.raises(ProofError):
        next(mutants(wrong))


def test_the_share_counts_survivors():
    caught, survived = Mutant("T", "", "", True), Mutant("T", "", "", False)
    assert Tally((caught, caught, caught, survived)).share == 0.75
    assert Tally((caught, survived)).survivors == (survived,)
