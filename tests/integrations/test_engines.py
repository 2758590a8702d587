"""Adapters without their engines, what they share, and the committed table."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from draftcert.integrations.probe import CertificateProbe
from draftcert.integrations.texts import TextDrafter
from draftcert.runtime.trees.drafters import PromptLookup, TokenRecycling
from draftcert.theory import DraftcertError
from tests.engines.run import ENGINES, RESULTS, ROOT, TABLE, table

SHARED = ("__init__", "probe", "texts")
MISSING = ("vllm", "lm_eval", "llama_cpp", "tensorrt_llm")


def test_each_engine_has_an_adapter_a_page_and_tests_and_the_table_is_that_of_the_runs():
    adapters = {path.stem: path for path in (ROOT / "integrations").glob("*.py") if path.stem not in SHARED}
    assert set(adapters) == set(ENGINES)
    for name, path in adapters.items():
        assert len(path.read_text().splitlines()) <= 80, name
        assert (ROOT / "docs" / "engines" / f"{name}.md").is_file()
        assert ENGINES[name].needs_gpu or (ROOT / "tests" / "engines" / f"test_{name}.py").is_file()
    rows = json.loads(RESULTS.read_text())
    assert TABLE.read_text() == table(rows)
    assert rows.keys() <= ENGINES.keys()  # an engine has its row once it ran
    assert all(row["result"].endswith(" passed") for row in rows.values())


@pytest.mark.parametrize("adapter", MISSING)
def test_an_engine_that_is_not_installed_is_asked_for_in_one_line(adapter: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, adapter, None)
    monkeypatch.delitem(sys.modules, f"draftcert.integrations.{adapter}", raising=False)
    extra = adapter.replace("_", "-")  # older pips find no other name
    with pytest.raises(DraftcertError, match=rf"^[^\n]*: pip install 'draftcert\[{extra}\]'$"):
        importlib.import_module(f"draftcert.integrations.{adapter}")


def test_sglang_that_is_not_installed_is_asked_for_where_it_is_registered(monkeypatch: pytest.MonkeyPatch):
    from draftcert.integrations.sglang import register

    monkeypatch.setitem(sys.modules, "sglang", None)
    with pytest.raises(DraftcertError, match=r"pip install 'draftcert\[sglang\]'$"):
        register()


class Recorded(PromptLookup):
    """Prompt lookup that writes down which texts begin, with what they hold."""

    def __init__(self, begun: list[list[int]]):
        super().__init__()
        self.begun = begun

    def begin(self, prompt: Any) -> Any:
        self.begun.append(list(prompt))
        return super().begin(prompt)


def test_texts_go_on_whatever_row_they_are_in():
    begun: list[list[int]] = []
    drafter = TextDrafter(Recorded(begun))
    texts = [[1, 2, 3, 1, 2], [5, 6, 7, 5], [1, 2, 3, 1, 2]]  # two requests of the same prompt
    drafter.chains(texts, 4)
    assert begun == texts
    moved = [[*texts[2], 9, 8], [*texts[0], 3, 1], [*texts[1], 6]]
    assert drafter.chains(moved, 2, likely=0.01) == [[], [2, 3], [7, 5]]
    assert len(begun) == 3
    drafter.chains([moved[1], [4, 4]], 2)
    assert begun[3:] == [[4, 4]]
    drafter.chains([moved[2]], 2)  # it was left out in between: preempted, or a request of the same text
    assert begun[4:] == [moved[2]]


def test_what_was_added_is_learned_as_the_decoder_would_have():
    text = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]
    drafter = TextDrafter(TokenRecycling())
    assert drafter.chains([text[:4]], 3) == [[]]
    drafter.chains([text], 3)
    (tree,) = drafter.trees([[*text, 5]], 4, 3)
    table = vars(drafter.drafter)["table"]
    pairs = {context: [token for token, _ in entry] for context, entry in table.items() if len(context) == 2}
    assert pairs == {(1, 5): [9], (5, 9): [2], (9, 2): [6], (2, 6): [5], (6, 5): [3], (5, 3): [5], (4, 1): [5]}
    assert tree.tokens == (5, 3, 5, 3)  # the 5 that came last was followed by 3


def test_a_chain_ends_where_it_is_no_longer_likely():
    text = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3]
    long, short = (TextDrafter("lookup").chains([text], 5, likely)[0] for likely in (0.01, 0.5))
    assert long == [4, 5, 6, 7, 8]
    assert 0 < len(short) < len(long)
    assert long[: len(short)] == short


@pytest.mark.parametrize("name", ["layers:0-3", "recycling:prior", "smollm2", "nonsense"])
def test_a_drafter_made_of_the_target_is_refused(name: str):
    with pytest.raises(DraftcertError, match=name):
        TextDrafter(name)


def test_a_row_without_a_certificate_is_written_down_and_stops_nothing(tmp_path: Path):
    file = tmp_path / "certificates.jsonl"
    probe = CertificateProbe(file, "top_m(2)")
    watch = probe.watching("a\nb", start=2)
    rows = [torch.tensor([0.0, float("nan"), 1.0]), torch.tensor([3.0, 2.0]), torch.tensor([3.0, 2.0, 1.0])]
    for position, row in enumerate(rows):
        assert watch([0, 0, *[1] * position], row) is row
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["position"] for line in lines] == [0, 1, 2]
    assert "nan" in lines[0]["refused"]
    assert lines[1]["certificate"] == "inf"
    assert 0 < lines[2]["certificate"] < 1
    assert lines[2]["accepted"] == 2
    with pytest.raises(DraftcertError, match="cannot write certificates"):
        CertificateProbe(tmp_path)
