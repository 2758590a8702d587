"""Changed theorems do not get through."""

from dataclasses import replace

import pytest

from draftcert.proofs_check import ProofError
from draftcert.proofs_check.mutation import Mutant, Tally, formula_mutants, mutants
from draftcert.theory import FORMULAS
from draftcert.theory.theorems import THEOREMS


@pytest.mark.parametrize("name", ["T0", "T2", "T3", "T4", "T5"])
def test_every_change_of_a_theorem_is_noticed(name):
    found = list(mutants(THEOREMS[name]))
    assert len(found) >= 15
    assert [m for m in found if not m.caught] == []


@pytest.mark.parametrize("name", ["phi", "strict_greedy", "ceiling", "certificate", "kl"])
def test_every_change_of_a_stable_form_is_noticed(name):
    found = list(formula_mutants(FORMULAS[name], tuple(THEOREMS.values())))
    assert found
    assert [m for m in found if not m.caught] == []


def test_a_theorem_that_does_not_hold_has_no_mutants():
    theorem = THEOREMS["T2"]
    (claim,) = theorem.conclusions
    wrong = replace(theorem, conclusions=(replace(claim, left=claim.right, right=claim.left),))
    with pytest.raises(ProofError):
        next(mutants(wrong))


def test_the_share_counts_survivors():
    caught, survived = Mutant("T", "", "", True), Mutant("T", "", "", False)
    assert Tally((caught, caught, caught, survived)).share == 0.75
    assert Tally((caught, survived)).survivors == (survived,)
