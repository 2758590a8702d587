"""Drafters of an audit: a second model, or the target with layers left out (`self:skip=10-19`).

An audit asks of a drafter only its logits along a text that the target wrote, so a drafter here is a function of token
ids; `runtime.drafters` holds those that propose trees.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from ..runtime.models import LoadedModel, load_model
from ..theory.errors import DraftcertError

SKIP = "self:skip="

Draft = Callable[[torch.Tensor, int], torch.Tensor]
"""From token ids `[1, length]` and a number n to the logits `[n, vocab]` after each of the last n tokens."""


def load_draft(name: str, target: LoadedModel) -> Draft:
    """The drafter called `name`: what `load_model` reads, or `self:skip=` with layers such as `10-19` or `3,5,7-9`.

    Raises:
        DraftcertError: no such model or layers, or a drafter whose token ids mean other tokens than the target's.
    """
    if name.startswith(SKIP):
        model = without_layers(target.model, read_layers(name.removeprefix(SKIP), layer_count(target.model)))
    else:
        parameter = next(target.model.parameters())
        loaded = load_model(name, parameter.dtype, parameter.device)
        require_same_tokens(target, loaded)
        model = loaded.model

    def logits(tokens: torch.Tensor, count: int) -> torch.Tensor:
        return model(tokens.to(model.device), use_cache=False, logits_to_keep=count).logits[0]

    return logits


def require_same_tokens(target: LoadedModel, draft: LoadedModel) -> None:
    """Refuse a drafter with another vocabulary: its probabilities would be those of other tokens."""
    ours, theirs = target.tokenizer.get_vocab(), draft.tokenizer.get_vocab()
    wrong = next((token for token, number in ours.items() if theirs.get(token, number) != number), None)
    if wrong is None and len(ours.keys() & theirs.keys()) < min(len(ours), len(theirs)):
        wrong = next(iter(theirs.keys() - ours.keys()))
    if wrong is not None:
        raise DraftcertError(
            f"target {target.name} and drafter {draft.name} have different vocabularies: token {wrong!r} is "
            f"{ours.get(wrong, 'missing')} in the target and {theirs.get(wrong, 'missing')} in the drafter"
        )


def layer_count(model: Any) -> int:
    """Number of transformer layers."""
    return len(model.base_model.layers)


def read_layers(text: str, count: int) -> tuple[int, ...]:
    """Layer numbers from text such as "10-19" or "3,5,7-9", ends included, ascending.

    >>> read_layers("3,5,7-9", 12)
    (3, 5, 7, 8, 9)
    """
    layers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not first.isdecimal() or not last.isdecimal():
            raise DraftcertError(f"cannot read the layers '{text}': give numbers and ranges, such as 10-19 or 3,5,7-9")
        layers.update(range(int(first), int(last) + 1))
    if not layers or max(layers) >= count or len(layers) == count:
        raise DraftcertError(f"layers '{text}': the target has layers 0 to {count - 1}, and one at least must be left")
    return tuple(sorted(layers))


def without_layers(model: Any, skipped: tuple[int, ...]) -> Any:
    """The same model without these layers; weights are shared, the model given is left as it is."""
    shallow, body = _shallow(model), _shallow(model.base_model)
    kept = [number for number in range(layer_count(model)) if number not in skipped]
    body.layers = torch.nn.ModuleList(body.layers[number] for number in kept)
    body.config = copy.copy(body.config)
    body.config.num_hidden_layers = len(kept)
    if getattr(body.config, "layer_types", None):
        body.config.layer_types = [body.config.layer_types[number] for number in kept]
    setattr(shallow, model.base_model_prefix, body)
    return shallow


def _shallow(module: Any) -> Any:
    """A copy of a module whose children can be replaced without touching the original."""
    shallow = copy.copy(module)
    shallow._modules = dict(module._modules)
    return shallow
