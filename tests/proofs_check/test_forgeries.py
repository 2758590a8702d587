"""Forged developments and theorems: each is refused, and for the reason that its file gives.

`forgeries/honest` is a small development that passes. A file of `forgeries/coq` says why the audit must refuse it and
which files of the honest one it replaces or adds; `forgeries/theorems.py` holds forged theorems and formulas.
"""

import re
import shutil
from pathlib import Path

import pytest

from draftcert.proofs_check import formal
from draftcert.proofs_check.vernacular import problems_of

FORGERIES = Path(__file__).with_name("forgeries")
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
