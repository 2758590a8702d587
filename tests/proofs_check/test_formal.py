"""The audit of the Coq development itself; what it must refuse is in `test_forgeries.py`."""

import os
import re
import shutil

import pytest

from draftcert.proofs_check import formal
from draftcert.proofs_check.vernacular import PROOFS, SPOKEN, defined_names, problems_of, refused, source_names
from draftcert.theory import DraftcertError

pytestmark = pytest.mark.usefixtures("compiled_once")


def test_the_development_holds_nothing_that_is_not_allowed():
    assert list(problems_of(formal.FOLDER)) == []


def test_every_statement_has_words_a_hash_and_a_proof_of_its_name():
    stated = defined_names(formal.FOLDER / SPOKEN[-1])
    assert sorted(stated) == sorted(formal.statements())
    main = (formal.FOLDER / PROOFS).read_text()
    assert all(re.search(rf"(Theorem|Definition) {name} : Statements\.{name}( :=|\.)", main) for name in stated)


@pytest.mark.parametrize(
    "source",
    [
        "Lemma a : True. Proof. split; [now auto|]. - { exact I. } + all: lra. 2: tauto... Qed.",
        "(* Admitted. (* Axiom x : y. *) *) Section S. Variable n : nat. Let m := n. End S.",
        "From Coq Require Import Reals List. From Draftcert Require Statements. Import ListNotations.",
    ],
)
def test_proofs_may_say_what_they_need(source):
    assert list(refused(source, PROOFS)) == []


def test_a_missing_project_is_a_problem_and_no_crash(tmp_path):
    assert list(problems_of(tmp_path)) == ["there is no _CoqProject"]


SUMMARY = """
CONTEXT SUMMARY
===============

* Theory: Set is predicative

* Axioms:
    Coq.Logic.Classical_Prop.classic
    Coq.Reals.Rdefinitions.RbaseSymbolsImpl.R1

* Constants/Inductives relying on type-in-type: <none>

* Inductives whose positivity is assumed: <none>
"""


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("classic", "classic'", "coqchk: the development rests on the axiom Coq.Logic.Classical_Prop.classic'"),
        ("Coq.Reals.R", "Draftcert.Coq.Reals.R", "the axiom Draftcert.Coq.Reals.Rdefinitions.RbaseSymbolsImpl.R1"),
        ("predicative", "impredicative", "coqchk: the theory is Set is impredicative"),
        ("positivity is assumed: <none>", "positivity is assumed: Draftcert.Sums.t", "assumed: Draftcert.Sums.t"),
        ("* Axioms", "Axioms", "coqchk gives no summary"),
        ("CONTEXT", "", "coqchk gives no summary"),
    ],
)
def test_the_summary_of_coqchk_is_read_and_not_only_its_exit_code(before, after, problem):
    assert list(formal._summary_problems(SUMMARY)) == []
    (found,) = formal._summary_problems(SUMMARY.replace(before, after))
    assert problem in found


needs_coq = pytest.mark.skipif(formal.coq_version() is None, reason=f"Coq is not installed: {formal.INSTALL}")


@needs_coq
def test_the_committed_hashes_are_those_of_the_elaborated_statements(tmp_path):
    for name in SPOKEN:
        shutil.copy(formal.FOLDER / name, tmp_path)
        formal.coqc(tmp_path, name)
    assert formal.hashes(formal.FOLDER, tmp_path) == formal.statements()


@needs_coq
def test_a_statement_changes_with_a_definition_it_rests_on_and_with_no_other(tmp_path):
    weaker = (formal.FOLDER / SPOKEN[0]).read_text().replace("<= KL V p q).", "<= KL V p q + 1).")
    for name in SPOKEN:
        shutil.copy(formal.FOLDER / name, tmp_path)
    (tmp_path / SPOKEN[0]).write_text(weaker)
    for name in SPOKEN:
        formal.coqc(tmp_path, name)
    found = formal.hashes(formal.FOLDER, tmp_path)
    changed = {name for name, sha256 in formal.statements().items() if found[name] != sha256}
    assert {"guarantee", "T2_worst_competitors", "M1_bounds"} <= changed
    assert not {"T1_level_exists", "B5_logits", "phi_bounds"} & changed


@needs_coq
def test_words_without_a_statement_are_not_committed(tmp_path):
    folder = tmp_path / "coq"
    shutil.copytree(formal.FOLDER, folder)
    words = folder / formal.STATEMENTS
    words.write_text(words.read_text().replace("phi_bounds", "phi_limits"))
    with pytest.raises(DraftcertError, match=r"do not both have phi_bounds, phi_limits"):
        formal.commit_statements(folder)


def test_without_coq_the_audit_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(os.environ, "PATH", "")
    with pytest.raises(DraftcertError, match="libcoq-interval"):
        formal.audit_coq()


def test_the_files_are_compiled_in_the_order_of_the_project():
    assert source_names(formal.FOLDER)[:2] == list(SPOKEN)
