"""What `optional` makes of failed imports; lazy names are judged in `test_front_door`."""

import pytest

from draftcert.theory import DraftcertError
from draftcert.theory.imports import optional


def test_a_missing_library_is_one_line_that_says_what_to_install():
    with pytest.raises(DraftcertError) as raised, optional("report"):
        import a_library_of_nobody  # type: ignore[import-not-found] # noqa: F401
    assert str(raised.value) == "No module named 'a_library_of_nobody': pip install 'draftcert[report]'"


def test_what_a_library_says_over_several_lines_becomes_one():
    with pytest.raises(DraftcertError) as raised, optional("hf"):
        raise ImportError("\nThis model requires\n  sentencepiece.\n")
    assert str(raised.value) == "This model requires sentencepiece.: pip install 'draftcert[hf]'"


@pytest.mark.parametrize("statement", ["import draftcert.no_module", "from draftcert.theory.rule import no_name"])
def test_a_fault_of_our_own_is_nothing_to_install(statement: str):
    with pytest.raises(ImportError, match="no_"), optional("hf"):
        exec(statement)
