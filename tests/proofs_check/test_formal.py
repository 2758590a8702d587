"""The audit of the Coq sources: what it must notice without running Coq, and with Coq where it is installed."""

import json
import os
import shutil

import pytest

from draftcert.proofs_check import formal
from draftcert.theory import DraftcertError
from draftcert.theory.theorems import THEOREMS


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("Axiom cheat : False.", "assumes"),
        ("Local Parameter x : nat.", "assumes"),
        ("Section A. Variable n : nat. End A.\nVariable m : nat.", "'Variable m :'"),
        ("Hypothesis h : 1 = 2.", "assumes"),
        ("Lemma a : False. Proof. Admitted.", "Admitted"),
        ("Lemma a : False. Proof. admit. Qed.", "admit"),
        ("Lemma a : False. Proof. give_up. Qed.", "give_up"),
        ("Unset Guard Checking.", "switches a check off"),
        ("Unset  Universe\nChecking.", "switches a check off"),
        ("Set Type In Type.", "switches a check off"),
        ("#[bypass_check(guard)] Fixpoint f (n : nat) : nat := f n.", "switches a check off"),
        ('(* a comment with a "string *)" inside *) Axiom cheat : False.', "assumes"),
    ],
)
def test_every_way_to_assume_or_to_switch_off_is_found(source, found):
    assert any(found in problem for problem in formal.scan(source))


def test_comments_strings_and_sections_may_say_what_they_like():
    source = (
        '(* Admitted. (* Axiom x : y. *) *) Definition a := "Axiom. Admitted.". Section S. Variable n : nat. End S.'
    )
    assert list(formal.scan(source)) == []


def test_the_development_is_clean_and_its_statements_are_the_committed_ones():
    for name in formal.source_names():
        assert list(formal.scan((formal.FOLDER / name).read_text())) == [], name
    assert list(formal._statement_problems(formal.FOLDER)) == []


def test_every_formal_name_a_theorem_gives_is_stated_in_coq():
    stated = formal.statements()
    for theorem in THEOREMS.values():
        for name in theorem.formal:
            assert name in stated, f"{theorem.name} refers to {name}"


@pytest.fixture
def copy(tmp_path):
    folder = tmp_path / "coq"
    folder.mkdir()
    for name in [*formal.source_names(), "_CoqProject", formal.STATEMENTS]:
        shutil.copy(formal.FOLDER / name, folder)
    return folder


def test_a_weaker_statement_is_noticed(copy):
    main = copy / "Main.v"
    text = main.read_text()
    assert "x * x / 2 <= PHI x" in text
    main.write_text(text.replace("x * x / 2 <= PHI x", "x * x / 4 <= PHI x"))
    assert list(formal._statement_problems(copy)) == ["Main.v: the statement of phi_bounds is not the committed one"]


def test_a_weaker_notation_changes_every_statement(copy):
    main = copy / "Main.v"
    text = main.read_text()
    weaker = text.replace(
        "(forall i, (i < V)%nat -> 0 < p i -> 0 < q i)", "(forall i, (i < V)%nat -> 0 < q i -> 0 < q i)"
    )
    assert weaker != text
    main.write_text(weaker)
    assert len(list(formal._statement_problems(copy))) == len(json.loads((copy / formal.STATEMENTS).read_text()))


def test_a_removed_theorem_is_noticed(copy):
    main = copy / "Main.v"
    text = main.read_text()
    start, end = text.index("Theorem phi_bounds"), text.index("Theorem phi_convexity")
    main.write_text(text[:start] + text[end:])
    assert "Main.v no longer states phi_bounds" in list(formal._statement_problems(copy))


def test_axioms_are_read_and_strange_ones_reported():
    output = "Axioms:\nClassicalDedekindReals.sig_not_dec\n  : forall P : Prop, {~ ~ P} + {~ P}\ncheat : False\n"
    assert formal.axioms_of(output) == {"cheat", "ClassicalDedekindReals.sig_not_dec"}
    problems = list(formal._assumption_problems(output, formal.FOLDER))
    assert problems == ["the theorems rest on the axiom cheat"]
    assert list(formal._assumption_problems("", formal.FOLDER)) == ["Print Assumptions said nothing"]


needs_coq = pytest.mark.skipif(formal.coq_version() is None, reason=f"Coq is not installed: {formal.INSTALL}")


@needs_coq
def test_a_false_lemma_does_not_get_through(copy):
    sums = copy / "Sums.v"
    sums.write_text(sums.read_text() + "\nLemma cheat : (1 = 2)%nat.\nProof. reflexivity. Qed.\n")
    audit = formal.audit_coq(copy)
    assert any("Sums.v does not compile" in problem for problem in audit.problems)
    assert not any(audit.theorems.values())


@needs_coq
def test_a_weakened_definition_does_not_get_through(copy):
    definitions = copy / "Definitions.v"
    text = definitions.read_text()
    weaker = text.replace("KL_finite V p q -> x <= KL V p q).", "KL_finite V p q -> x <= KL V p q + 1).")
    assert weaker != text
    definitions.write_text(weaker)
    audit = formal.audit_coq(copy)
    assert any("does not compile" in problem for problem in audit.problems)
    assert not any(audit.theorems.values())


def test_without_coq_the_audit_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(os.environ, "PATH", "")
    with pytest.raises(DraftcertError, match="libcoq-interval"):
        formal.audit_coq()
