"""Every type of causal language model that transformers can build: decoded right, or refused by name. None is wrong."""

import json

import pytest
import transformers

from tests.runtime.every_model import TABLE, TYPES, outcome

RECORDED = json.loads(TABLE.read_text(encoding="utf-8"))
SAME = RECORDED["transformers"] == transformers.__version__


@pytest.mark.parametrize("kind", TYPES)
def test_right_or_refused(kind: str) -> None:
    found = {attention: outcome(kind, attention) for attention in ("sdpa", "eager")}
    assert "WRONG" not in found.values()
    if SAME:  # `python -m tests.runtime.every_model` writes the table anew
        assert found == RECORDED["types"][kind]


def test_most_that_can_be_built_are_decoded() -> None:
    words = [each.partition(":")[0] for row in RECORDED["types"].values() for each in row.values()]
    assert words.count("WRONG") == 0
    assert words.count("right") > 0.6 * (len(words) - words.count("not built"))
    assert {RECORDED["types"][kind]["eager"] for kind in ("gemma2", "gpt_oss", "llama4_text", "gemma3_text")} == {
        "right"
    }
    assert RECORDED["types"]["gpt_neo"]["eager"].startswith("refused: GPTNeoForCausalLM with eager attention")
