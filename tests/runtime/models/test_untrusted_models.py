"""Files of models from anywhere: what is broken or would never end is named in one line."""

import json
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from draftcert.runtime.models import default_gguf, loading
from draftcert.runtime.models.gguf_header import read_header
from draftcert.runtime.models.loading import load_model
from draftcert.support import cache
from draftcert.theory import DraftcertError


def named(read: Callable[[], Any]) -> bool:
    """Whether what is read is refused: in one line."""
    try:
        read()
    except DraftcertError as error:
        return ("\n" not in str(error) and len(str(error)) < 2000) or pytest.fail(str(error))
    return False


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def gguf(tensors: int = 1, entries: int = 4) -> bytes:
    metadata = [
        text("llama.block_count") + struct.pack("<II", 4, 2),
        text("general.name") + struct.pack("<I", 8) + text("tiny"),
        text("scores") + struct.pack("<IIQ", 9, 6, 3) + struct.pack("<3f", 1, 2, 3),
        text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"),
    ]
    tensor = text("token_embd.weight") + struct.pack("<IQQIQ", 2, 4, 4, 0, 0)
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, entries) + b"".join(metadata) + tensor + bytes(64)


def test_a_header_is_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(gguf())
    assert read_header(tmp_path / "model.gguf") == {"llama.block_count": 2}
    if Path(default_gguf()).exists():
        assert read_header(default_gguf())["llama.block_count"] == 30


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot read"),
        (b"GGUF", "cut short"),
        (b"GGML" + gguf()[4:], "no GGUF file"),
        (gguf(tensors=10**18), "counts 1000000000000000000 entries, which it cannot hold"),
        (gguf(entries=10**18), "cannot hold"),
        (gguf().replace(struct.pack("<IIQ", 9, 6, 3), struct.pack("<IIQ", 9, 0, 2**63)), "cannot hold"),
        (gguf().replace(struct.pack("<IIQ", 9, 6, 3), struct.pack("<IIQ", 9, 9, 2**50)), "cannot hold"),
        (gguf().replace(struct.pack("<IIQ", 9, 6, 3), struct.pack("<IIQ", 9, 77, 1)), "numbered 77"),
        (gguf()[:100], "cut short"),
    ],
    ids=range(9),
)
def test_counts_that_a_file_cannot_hold_are_named(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(content)
    with pytest.raises(DraftcertError, match=message):
        read_header(tmp_path / "model.gguf")


def test_20_000_changed_gguf_headers_are_read_or_named(tmp_path: Path) -> None:
    whole, path = gguf(), tmp_path / "model.gguf"
    draw = random.Random(0)
    refused = 0
    for _ in range(20_000):
        content = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            content[draw.randrange(len(content))] = draw.choice((0, 1, 8, 9, 127, 255, draw.randrange(256)))
        path.write_bytes(content[: draw.choice((len(content), draw.randrange(len(content))))])
        refused += named(lambda: read_header(path))
    assert 5_000 < refused < 20_000


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"num_hidden_layers": 10**9}, "asks for num_hidden_layers = 1000000000: 1 to 1000 are built"),
        ({"vocab_size": 10**12}, "vocab_size"),
        ({"hidden_size": 10**15}, "hidden_size"),
        ({"num_attention_heads": 10**9}, "num_attention_heads|cannot load the model"),
        ({"max_position_embeddings": 10**30}, "max_position_embeddings"),
        ({"hidden_size": 48}, "cannot load the model"),
        ({"hidden_size": "many"}, "cannot load the model"),
        ({"num_hidden_layers": -1}, "num_hidden_layers = -1: 1 to 1000"),
        ({"num_hidden_layers": 5}, "lack the weights"),
        ({"model_type": "unheard-of"}, "cannot load the model"),
    ],
    ids=str,
)
def test_configurations_that_cannot_be_are_named(
    entries: dict[str, Any], message: str, folder: Path, tmp_path: Path
) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | entries))
    with pytest.raises(DraftcertError, match=message) as refused:
        load_model(folder)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"])
def test_changed_files_of_a_model_are_read_or_named(name: str, folder: Path) -> None:
    """Each takes the whole of transformers, tens of milliseconds: some dozens of changes, of which most break it."""
    whole, draw = (folder / name).read_bytes(), random.Random(name)
    refused = 0
    header = min(len(whole), 3000)  # of safetensors, the rest are numbers, any of which may be
    for number in range(30):
        content = bytearray(whole)
        for _ in range(3):
            content[draw.randrange(header)] = draw.randrange(256)
        (folder / name).write_bytes(content if number % 3 else content[: draw.randrange(header)])
        refused += named(lambda: load_model(folder))
    assert refused >= 10


def test_a_damaged_copy_of_a_gguf_file_is_set_aside_and_made_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unpacking itself is replaced: the files of another model stand for what it writes."""
    path = tmp_path / "toy.gguf"
    path.write_bytes(b"weights")
    monkeypatch.setattr(cache, "user_cache_path", lambda *_, **__: tmp_path / "cache")
    made = []

    def unpack(path: Path, target: Path) -> None:
        made.append(target)
        shutil.copytree(folder, target)
        (target / "checksums.json").write_text(json.dumps(loading._checksums(target)))

    monkeypatch.setattr(loading, "_unpack", unpack)
    copy = loading._unpacked(path)
    assert loading._unpacked(path) == copy
    assert len(made) == 1
    for name in ("model.safetensors", "config.json", "checksums.json"):
        content = bytearray((copy / name).read_bytes())
        content[len(content) // 2] ^= 1
        (copy / name).write_bytes(content)
        assert loading._unpacked(path) == copy
        assert (copy / name).read_bytes() != content
    (copy / "model.safetensors").unlink()
    assert loading._unpacked(path) == copy
    assert len(made) == 5
    assert copy.with_name(f"{copy.name}.damaged").is_dir()
