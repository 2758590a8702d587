"""The theorems as records: they refuse to be ill-formed, and their hash is what they claim."""

from dataclasses import replace
from typing import Any

import pytest
import sympy

from draftcert.theory import DraftcertError
from draftcert.theory.theorem import AtLeast, Formal, Range, Theorem
from draftcert.theory.theorems import THEOREMS

x, y = sympy.symbols("x y", positive=True)


@pytest.mark.parametrize("name", THEOREMS)
def test_a_theorem_says_what_it_is(name):
    theorem = THEOREMS[name]
    assert theorem.name == name
    assert theorem.title
    assert theorem.statement.endswith(".")
    assert theorem.hypotheses
    assert theorem.formal
    assert not any(isinstance(claim, Formal) for claim in theorem.conclusions)


def test_hash_follows_the_claims_and_their_words():
    theorem = THEOREMS["T2"]
    assert replace(theorem, name="other", citation="other.").sha256 == theorem.sha256
    assert replace(theorem, statement="other.").sha256 != theorem.sha256
    claim: Any = theorem.conclusions[0]
    assert replace(theorem, conclusions=(replace(claim, right=claim.left),)).sha256 != theorem.sha256
    assert replace(theorem, worked_points=()).sha256 != theorem.sha256


def test_no_conclusion_is_refused():
    with pytest.raises(DraftcertError, match="no conclusion"):
        replace(THEOREMS["T2"], conclusions=())


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        ((Range(x, sympy.S.Zero, y), Range(y, sympy.S.Zero, sympy.S.One)), "before it is declared"),
        ((Range(x, sympy.S.Zero, sympy.S.One), Range(x, sympy.S.Zero, sympy.S.One)), "declared twice"),
    ],
)
def test_a_domain_out_of_order_is_refused(domain, message):
    with pytest.raises(DraftcertError, match=message):
        Theorem("X", "title", "x.", (), (), (AtLeast(x, sympy.S.Zero, domain),))
