"""What a model is, by its contents: two that decode alike have one identity, wherever they are and however called."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import torch

from ...theory.errors import DraftcertError

_NAMES = ("_name_or_path", "transformers_version")
"""Of a configuration: where it was found, and who wrote it."""


def identity(model: Any, tokenizer: Any = None) -> dict[str, str]:
    """SHA-256 digests of a loaded model's weights and configuration, and of its tokenizer, if that is given.

    Raises:
        DraftcertError: some of the weights are on no device, so that they cannot be read.
    """
    found = {"weights": _weights(model), "configuration": _digest(_configuration(model))}
    return found if tokenizer is None else found | {"tokenizer": _digest(_tokens(tokenizer))}


def _weights(model: Any) -> str:
    """In the dtype they are loaded in, tied ones once."""
    digest = hashlib.sha256()
    for name, parameter in model.named_parameters():
        if parameter.is_meta:
            raise DraftcertError(
                f"the weights '{name}' are not in memory, so the model cannot be told apart: use more GPUs"
            )
        digest.update(json.dumps([name, str(parameter.dtype), list(parameter.shape)]).encode())
        digest.update(parameter.detach().reshape(-1).contiguous().view(torch.uint8).cpu().numpy())
    return digest.hexdigest()


def _configuration(model: Any) -> Any:
    described = {key: value for key, value in model.config.to_dict().items() if key not in _NAMES}
    return [described, getattr(model.generation_config, "eos_token_id", None)]


def _tokens(tokenizer: Any) -> Any:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    tokens = tokenizer.get_vocab() if backend is None else backend.to_str()
    return [tokens, tokenizer.chat_template, str(tokenizer.special_tokens_map)]


def _digest(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True, default=str).encode()).hexdigest()
