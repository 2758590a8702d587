"""Changed theorems do not get through."""

import functools
from dataclasses import replace
from typing import Any

import pytest
import sympy
from sympy import S

from draftcert.proofs_check import ProofError
from draftcert.proofs_check.mutation import EXPLAINED, Mutant, Tally, changed, formula_mutants, mutants, tally
from draftcert.theory import FORMULAS
from draftcert.theory.theorem import Range
from draftcert.theory.theorems import THEOREMS


@functools.cache
def mutants_of(name: str) -> tuple[Mutant, ...]:
    """Every change of a theorem, and whether it is noticed; that takes seconds."""
    return tuple(mutants(THEOREMS[name]))


@pytest.mark.parametrize("name", ["T2", "T5", "T6", "B2", "B3t"])
def test_every_change_of_a_theorem_is_noticed(name):
    found = mutants_of(name)
    assert len(found) >= 15
    assert Tally(found).unexplained == ()


def test_small_changes_wider_ranges_and_other_names_are_among_them():
    changes = {(each.place, each.change) for each in mutants_of("T5")}
    assert {
        ("conclusion 1", "rows: parameters: upper bound of s moved"),
        ("formula strict_greedy", "1/2 changed a little"),
        ("formal T5_strict_greedy", "another name"),
        ("worked point 1", "a little of token 1 moved to token 0"),
    } <= changes


def test_a_little_is_noticed_in_a_claim_and_in_a_worked_point():
    little = [each for name in ("T5", "T7") for each in mutants_of(name) if "a little" in each.change]
    assert len(little) >= 20
    assert Tally(tuple(little)).survivors == ()


def test_a_range_is_changed_into_wider_ones():
    open_end = Range(sympy.Symbol("x", positive=True), S.Zero, S.One, open_below=True, integer=False)
    assert [words for words, _ in changed(open_end)] == [
        "lower bound of x moved",
        "lower end of x closed",
        "upper bound of x moved",
    ]
    number = Range(sympy.Symbol("k", positive=True), S.One, sympy.oo, integer=True)
    assert [words for words, _ in changed(number)] == ["lower bound of k moved", "k any real number"]


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
    assert report.share > 0.7
    assert report.unexplained == ()
    ceiling = formula_mutants(FORMULAS["ceiling"], tuple(theorems.values()))
    assert report == Tally((*mutants_of("T2"), *mutants_of("T6"), *ceiling))


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
