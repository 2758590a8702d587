"""Forged developments and theorems: each is refused, and for the reason that its file gives.

`forgeries/honest` is a small development that passes. A file of `forgeries/coq` says why the audit must refuse it and
which files of the honest one it replaces or adds; `forgeries/theorems.py` holds forged theorems and formulas.
"""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from draftcert.proofs_check import check, formal
from draftcert.proofs_check.vernacular import problems_of
from draftcert.theory import FORMULAS
from draftcert.theory.theorems import THEOREMS
from tests.proofs_check.forgeries.theorems import FORGED

FORGERIES = Path(__file__).with_name("forgeries")
pytestmark = pytest.mark.usefixtures("compiled_once")
needs_coq = pytest.mark.skipif(formal.coq_version() is None, reason=f"Coq is not installed: {formal.INSTALL}")


def forged(file: Path, folder: Path) -> str:
    """The forged development in a folder; the answer is the reason to refuse it."""
    shutil.copytree(FORGERIES / "honest", folder)
    head, *parts = re.split(r"^--- (.*)\n", file.read_text(), flags=re.M)
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        (folder / name).write_text(text)
    return head.removeprefix("refused: ").strip()


def test_the_honest_development_has_no_problem_to_be_seen_without_coq():
    assert list(problems_of(FORGERIES / "honest")) == []


@needs_coq
def test_the_honest_development_passes():
    audit = formal.audit_coq(FORGERIES / "honest")
    assert audit.problems == ()
    assert audit.theorems == {"grows": True, "doubles": True}


@pytest.mark.parametrize("file", sorted((FORGERIES / "coq").iterdir()), ids=lambda file: file.stem)
def test_a_forged_development_is_refused(file: Path, tmp_path: Path):
    folder = tmp_path / "coq"
    reason = forged(file, folder)
    problems = list(problems_of(folder))
    if not problems:
        if formal.coq_version() is None:
            pytest.skip(f"Coq is not installed: {formal.INSTALL}")
        audit = formal.audit_coq(folder)
        problems = list(audit.problems)
        assert not any(audit.theorems.values())
    assert any(reason in problem for problem in problems), problems


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_theorem_is_refused(name: str):
    forgery = FORGED[name]()
    formulas = {forgery.formula.name: forgery.formula} if forgery.formula else {}
    report = check(coq=False, theorems={forgery.theorem.name: forgery.theorem}, formulas=formulas)
    (judged,) = report.formulas or report.theorems
    assert not judged.proved
    failures = [outcome.failure for theorem in report.theorems for outcome in theorem.outcomes]
    failures += [formula.failure for formula in report.formulas]
    assert any(forgery.reason in failure for failure in failures if failure), failures


@pytest.mark.parametrize("field", ["statement", "title", "hypotheses"])
def test_words_are_part_of_a_theorem(field: str):
    theorem = THEOREMS["T5"]
    assert replace(theorem, **{field: ("another",) if field == "hypotheses" else "another"}).sha256 != theorem.sha256


def test_words_and_unit_are_part_of_a_formula():
    formula = FORMULAS["ceiling"]
    for changed in (replace(formula, statement="C >= ln(1 + m p_(1))"), replace(formula, unit="bits")):
        assert changed.sha256 != formula.sha256


def test_bounds_are_part_of_a_theorem():
    theorem = THEOREMS["M1"]
    first, *others = theorem.bounds
    for bounds in ((), (replace(first, sharp=False), *others), (replace(first, where=()), *others)):
        assert replace(theorem, bounds=bounds).sha256 != theorem.sha256
