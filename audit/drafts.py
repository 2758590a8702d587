"""Draft models of an audit: a second model, or the target with layers left out (`self:skip=10-19`)."""

from __future__ import annotations

from typing import Any

from ..runtime.models import LoadedModel, load_model
from ..runtime.trees.drafters.assistant import skip_layers
from ..theory.errors import DraftcertError

SKIP = "self:skip="


def load_draft(name: str, target: LoadedModel) -> Any:
    """The draft model called `name`: what `load_model` reads, or `self:skip=` with layers such as `10-19` or `3,5,7-9`.

    Raises:
        DraftcertError: no such model or layers, or a drafter whose token ids mean other tokens than the target's.
    """
    if name.startswith(SKIP):
        layers = range(target.model.config.get_text_config(decoder=True).num_hidden_layers)
        skipped = read_layers(name.removeprefix(SKIP), len(layers))
        return skip_layers(target.model, [layer for layer in layers if layer not in skipped])
    parameter = next(target.model.parameters())
    loaded = load_model(name, parameter.dtype, parameter.device)
    require_same_tokens(target, loaded)
    return loaded.model


def require_same_tokens(target: LoadedModel, draft: LoadedModel) -> None:
    """Refuse a drafter with another vocabulary: its probabilities would be those of other tokens."""
    ours, theirs = target.tokenizer.get_vocab(), draft.tokenizer.get_vocab()
    # The lowest id is named: a tokenizer's vocabulary comes in no fixed order.
    moved = (token for token, number in ours.items() if theirs.get(token, number) != number)
    wrong = min(moved, key=ours.__getitem__, default=None)
    if wrong is None and len(ours.keys() & theirs.keys()) < min(len(ours), len(theirs)):
        wrong = min(theirs.keys() - ours.keys(), key=theirs.__getitem__)
    if wrong is not None:
        raise DraftcertError(
            f"target {target.name} and drafter {draft.name} have different vocabularies: token {wrong!r} is "
            f"{ours.get(wrong, 'missing')} in the target and {theirs.get(wrong, 'missing')} in the drafter"
        )


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
