"""Weights as their checkpoint stores them, so that kernels can read those few bytes instead of float32 numbers.

A parameter of a model has its stored form beside it, as the attribute `stored` (`layers.bindings.Stored`). It is used
only where it holds, to the last bit, what the parameter holds then; a parameter that was replaced has none.

What lies where in a GGUF file is found by content: names, the order of rows and ties are other people's conventions, a
row's numbers are not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...theory.imports import optional
from .layers.bindings import BFLOAT16, FLOAT16, Stored, library, row_bytes, suits

_PLACES, _REST, _FORMATS = "places.safetensors", "rest.safetensors", "formats"


def keep_places(file: Path, model: Any, folder: Path) -> None:
    """Write into `folder` where in a GGUF file the rows of the model's weights lie, and the weights that do not."""
    with optional("hf"):
        import gguf
        from safetensors.torch import save_file

    content = _content(file)
    known: dict[bytes, tuple[int, int, int]] = {}
    for tensor in gguf.GGUFReader(file).tensors:
        width = row_bytes(tensor.tensor_type, int(tensor.shape[0]))
        if len(tensor.shape) == 2 and width is not None:
            offsets = tensor.data_offset + width * torch.arange(int(tensor.shape[1]))
            stored = _rows(content, offsets, width, int(tensor.tensor_type), int(tensor.shape[0]))
            places = ((stored.format, width, offset) for offset in offsets.tolist())
            known.update(zip(_digests(stored.expanded()), places, strict=True))
    found, formats, rest = {}, {}, {}
    for name, weight in model.named_parameters():
        places = [known.get(digest) for digest in _digests(weight.detach())] if weight.ndim == 2 else [None]
        kinds = {place and place[:2] for place in places}
        if (kind := kinds.pop()) is None or kinds:
            rest[name] = weight.detach()
        else:
            found[name] = torch.tensor([place[-1] for place in places if place])
            formats[name] = kind[1], kind[0], weight.shape[1]
    kept = model.state_dict()
    rest |= {name: buffer for name, buffer in model.named_buffers() if name in kept}
    save_file(found, folder / _PLACES, {_FORMATS: json.dumps(formats)})
    save_file(rest, folder / _REST)


def read_places(file: Path, folder: Path) -> tuple[dict[str, Stored], dict[str, Tensor]]:
    """What `keep_places` wrote: weights in the file, memory-mapped, and the others, by their parameters' names."""
    with optional("hf"):
        from safetensors import safe_open
        from safetensors.torch import load_file

    content = _content(file)
    with safe_open(folder / _PLACES, "pt") as places:
        formats = json.loads(places.metadata()[_FORMATS])
        return {name: _rows(content, places.get_tensor(name), *formats[name]) for name in formats}, load_file(
            folder / _REST
        )


def keep_halves(model: Any) -> None:
    """Give weights a stored form of half the size where nothing is lost: a bfloat16 or float16 checkpoint's."""
    for weight in model.parameters():
        if weight.ndim == 2 and suits(weight) and library() is not None:
            for dtype, format in ((torch.bfloat16, BFLOAT16), (torch.float16, FLOAT16)):
                stored = Stored(weight.detach().to(dtype).view(torch.uint8), format, weight.shape[1])
                if stored.holds(weight):
                    weight.stored = stored
                    break


def _content(file: Path) -> Tensor:
    return torch.from_file(str(file), size=file.stat().st_size, dtype=torch.uint8)


def _rows(content: Tensor, offsets: Tensor, width: int, format: int, size: int) -> Stored:
    """Rows of `width` bytes at these places: the file's own memory where they follow each other, else a copy."""
    if bool((offsets.diff() == width).all()):
        return Stored(content[int(offsets[0]) :][: width * len(offsets)].view(-1, width), format, size)
    return Stored(torch.stack([content[offset : offset + width] for offset in offsets.tolist()]), format, size)


def _digests(weight: Tensor) -> Iterator[bytes]:
    return (hashlib.blake2b(row, digest_size=16).digest() for row in weight.float().contiguous().numpy())
