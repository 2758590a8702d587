"""Weights that multiply as they are stored: the same bits as float32 numbers that gguf makes of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch

from benchmarks.same_bits import FORMATS, random_rows
from draftcert.runtime.models import load_model
from draftcert.runtime.models.layers import bindings
from draftcert.runtime.models.layers.bindings import Stored, linear
from draftcert.runtime.trees.decoder import GreedyTreeDecoder
from draftcert.runtime.trees.forward import TreeForward
from draftcert.runtime.trees.tree import Tree
from tests.runtime.gguf_files import by_transformers, write

LEVELS = {"portable": 0, "AVX2": 1, "AVX-512": 2}
TREE = Tree((5, 17, 3, 9, 17, 42), (-1, 0, 0, 1, 2, 2))
PROMPT = [7, 12, 60, 33, 8]


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """NaN and -0 included."""
    return tensor.view(torch.int32)


def skip_without(level: int) -> None:
    try:
        linear(torch.ones(1, 1), torch.ones(1, 1), level=level)
    except RuntimeError:
        pytest.skip("this machine lacks the instruction set")


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_expanded_as_gguf_dequantises(format: gguf.GGMLQuantizationType, level: int) -> None:
    """Any bits, scales included: infinite ones and subnormal ones too."""
    skip_without(level)
    width = bindings.row_bytes(format, size := 2304)
    assert width is not None
    rows = np.random.default_rng(0).integers(0, 256, (70, width), dtype=np.uint8)
    with np.errstate(all="ignore"):
        expected = torch.from_numpy(gguf.dequantize(rows, format))
    found = Stored(torch.from_numpy(rows), format, size).expanded(level)
    nan = expected.isnan()
    assert torch.equal(found.isnan(), nan)
    assert torch.equal(bits(found)[~nan], bits(expected)[~nan])
    assert int(expected.isfinite().sum()) > 0


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_products_are_those_of_float32(format: gguf.GGMLQuantizationType, level: int) -> None:
    skip_without(level)
    rows = random_rows(format, 37, 1792)
    dense, stored = torch.from_numpy(gguf.dequantize(rows, format)), Stored(torch.from_numpy(rows), format, 1792)
    assert stored.holds(dense)
    bias = torch.randn(37)
    for count in (1, 2, 7, 20, 65):
        x = torch.randn(count, 1792)
        assert torch.equal(linear(x, stored, bias, level), linear(x, dense, bias, level))


@pytest.mark.parametrize("size", [1, 15, 33, 70])
@pytest.mark.parametrize("format", FORMATS[:3], ids=lambda format: format.name)
def test_rows_of_any_size_without_blocks(format: gguf.GGMLQuantizationType, size: int) -> None:
    rows = random_rows(format, 5, size)
    stored = Stored(torch.from_numpy(rows), format, size)
    assert torch.equal(stored.expanded(), torch.from_numpy(gguf.dequantize(rows, format)).view(5, size))


def test_a_format_that_the_kernels_do_not_read() -> None:
    assert bindings.row_bytes(gguf.GGMLQuantizationType.IQ1_M, 256) is None
    assert bindings.row_bytes(gguf.GGMLQuantizationType.Q4_K, 128) is None


def logits(model: Any, level: int = -1) -> torch.Tensor:
    """Of a tree behind a prompt, through the layers for few rows."""
    forward = TreeForward(model)
    assert forward.few_rows is not None
    forward.few_rows.level = level
    cache = forward.new_cache([len(PROMPT)], 32)
    with torch.inference_mode():
        forward.begin([PROMPT], cache, None)
        return forward([TREE], cache)[0]


def formats_read(model: Any) -> list[int]:
    """In the first layer and of the last product."""
    forward = TreeForward(model)
    assert forward.few_rows is not None
    layer, head = forward.few_rows._layers[0], forward.few_rows._head
    read = {layer.query.format, layer.down.format, head.format if isinstance(head, Stored) else 0}
    assert read <= set(forward.few_rows.described()[1])
    return [layer.query.format, layer.down.format, head.format if isinstance(head, Stored) else 0]


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the user's."""
    monkeypatch.setattr("draftcert.support.cache.user_cache_path", lambda *_, **__: tmp_path / "cache")
    return tmp_path


@pytest.mark.parametrize(
    ("format", "architecture", "tied"),
    [(format, "llama", number % 2 == 0) for number, format in enumerate(FORMATS)]
    + [(FORMATS[4], "qwen2", False), (FORMATS[9], "qwen2", True)],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_a_gguf_file_decodes_as_its_float32_model(
    format: gguf.GGMLQuantizationType, architecture: str, tied: bool, cached: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Rows that llama.cpp permutes, ties and biases included; the judge is transformers with gguf, bar and all."""
    write(cached / "toy.gguf", format, architecture, tied)
    plain = by_transformers(cached / "toy.gguf")
    assert "0/" in capfd.readouterr().err
    loaded = load_model(cached / "toy.gguf").model
    assert capfd.readouterr().err == ""
    for name, weight in plain.state_dict().items():
        assert torch.equal(bits(loaded.state_dict()[name]), bits(weight)), name
    assert formats_read(loaded) == [format] * 3
    assert formats_read(plain) == [0] * 3
    assert torch.equal(logits(loaded), logits(plain))
    float32 = sum(weight.numel() for weight in plain.parameters()) * 4
    kept = sum(path.stat().st_size for path in (cached / "cache").rglob("*.safetensors"))
    assert kept < float32 / 20


CHANGES: dict[str, Callable[[Any, Any], object]] = {
    "a number": lambda model, layer: layer.mlp.down_proj.weight.data[3, 5].add_(1),
    "in place": lambda model, layer: layer.mlp.down_proj.weight.data.mul_(2),
    "copied": lambda model, layer: layer.mlp.down_proj.weight.data.copy_(torch.randn_like(layer.mlp.down_proj.weight)),
    "moved": lambda model, layer: setattr(layer.mlp.down_proj.weight, "data", layer.mlp.down_proj.weight.data * 2),
    "replaced": lambda model, layer: setattr(
        layer.mlp, "down_proj", torch.nn.Linear(*layer.mlp.down_proj.weight.shape[::-1], bias=False)
    ),
    "assigned": lambda model, layer: model.load_state_dict(
        {name: tensor + 1 for name, tensor in model.state_dict().items()}, assign=True
    ),
    "the head": lambda model, layer: model.lm_head.weight.data.copy_(model.lm_head.weight.data.flip(0)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_weight_that_was_changed_is_read_as_it_stands(change: Callable[[Any, Any], object], cached: Path) -> None:
    """Before the first call, and between two."""
    write(cached / "toy.gguf", gguf.GGMLQuantizationType.Q4_1)
    model = load_model(cached / "toy.gguf").model
    forward = TreeForward(model)

    def now(forward: TreeForward) -> torch.Tensor:
        cache = forward.new_cache([len(PROMPT)], 32)
        with torch.inference_mode():
            return forward.begin([PROMPT], cache, None)[0]

    before = now(forward)
    change(model, model.model.layers[1])
    dense = copy.deepcopy(model)
    assert formats_read(dense) == [0] * 3
    expected = now(TreeForward(dense))
    assert not torch.equal(expected, before)
    assert torch.equal(now(TreeForward(model)), expected)
    if change not in (CHANGES["replaced"], CHANGES["assigned"], CHANGES["moved"]):  # those have other addresses
        assert torch.equal(now(forward), expected)
    prompt = [PROMPT]
    assert (
        GreedyTreeDecoder(model, latency=None).generate(prompt, 12, ()).tokens
        == GreedyTreeDecoder(dense, latency=None, fast=False).generate(prompt, 12, ()).tokens
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_checkpoint_of_half_size_is_read_at_half_size(dtype: torch.dtype, tmp_path: Path, tiny: Any) -> None:
    import tokenizers
    import transformers

    copy.deepcopy(tiny()).to(dtype).save_pretrained(tmp_path)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(61)}, unk_token="w0"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(tmp_path)
    loaded = load_model(tmp_path).model
    assert loaded.dtype == torch.float32
    assert formats_read(loaded) == [bindings.BFLOAT16 if dtype == torch.bfloat16 else bindings.FLOAT16] * 3
    assert torch.equal(logits(loaded), logits(copy.deepcopy(loaded)))


def test_smollm2_is_read_from_its_file(smollm2: Any) -> None:
    assert formats_read(smollm2.model) == [3, 3, 8]
    ids = smollm2.encode("Why is the sea salty?")[0].tolist()
    dense = copy.deepcopy(smollm2.model)
    found, expected = (TreeForward(model) for model in (smollm2.model, dense))
    with torch.inference_mode():
        assert torch.equal(*(f.begin([ids], f.new_cache([len(ids)], 8), None)[0] for f in (found, expected)))
