"""Drafters by the names that commands take: what is built in, a second model, or some layers of the target itself."""

from __future__ import annotations

from typing import Any, cast

from ....theory.errors import DraftcertError
from ...models import LoadedModel, load_model
from ...names import LAYERS, draft_models, read_layers, read_recycling
from ..forward import TreeForward
from .assistant import Assistant, keep_layers
from .base import Drafter, SuccessorDrafter
from .combined import Combined
from .prior import cached_successors
from .prompt_lookup import PromptLookup
from .token_recycling import TokenRecycling


def drafter_by_name(text: str, target: Any) -> Drafter:
    """The drafter a text names: parts joined by `+`, or `none`.

    `target`: a model, or what `load_model` returns; `None` where there is none, as for engines that show tokens only.

    The parts: `recycling`, `recycling:prior`, `recycling:SHAPE`, `lookup`, `layers:0-9,20-29` (a draft model made of
    these layers of the target), or a draft model as `load_model` takes it.

    Raises:
        DraftcertError: options, layers or a model that do not exist, or a model whose token ids mean other tokens.
    """
    draft_models(text)  # refuses what is no name
    if text == "none":
        return Combined()
    members = [_member(name.strip(), target) for name in text.split("+")]
    return members[0] if len(members) == 1 else Combined(*members)


def _member(name: str, target: Any) -> SuccessorDrafter:
    if name.partition(":")[0] == "recycling":
        has_prior, shape = read_recycling(name)
        prior = cached_successors(TreeForward(_model(name, target))) if has_prior else None
        return TokenRecycling(shape=cast(Any, shape), prior=prior)
    if name == "lookup":
        return PromptLookup()
    size = _model(name, target).get_output_embeddings().weight.shape[0]
    return Assistant(draft_model(name, target), size)


def _model(name: str, target: Any) -> Any:
    if target is None:
        raise DraftcertError(
            f"drafter '{name}' is made of the target, and there is none here: give recycling or lookup"
        )
    return target.model if isinstance(target, LoadedModel) else target


def draft_model(name: str, target: Any) -> Any:
    """The draft model called `name`: what `load_model` reads, or `layers:` with some of the target's own.

    Raises:
        DraftcertError: no such model or layers, or a model whose token ids mean other tokens than the target's.
    """
    if name.startswith(LAYERS):
        return keep_layers(target, read_layers(name.removeprefix(LAYERS)))
    if not isinstance(target, LoadedModel):
        raise DraftcertError(
            f"drafter '{name}': whether its token ids mean the target's tokens is told by the two tokenizers; give the "
            "target as load_model returns it"
        )
    parameter = next(target.model.parameters())
    loaded = load_model(name, parameter.dtype, parameter.device)
    require_same_tokens(target, loaded)
    return loaded.model


def require_own_tokens(drafter: Any, target: Any) -> None:
    """Refuse a drafter, or a member of one, with a model whose token ids mean other tokens than the target's.

    Raises:
        DraftcertError: the two vocabularies differ. Of models without their tokenizers nothing is known.
    """
    for member in (drafter, *getattr(drafter, "members", ())):
        if isinstance(member, Assistant) and member.loaded is not None and isinstance(target, LoadedModel):
            require_same_tokens(target, member.loaded)


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
