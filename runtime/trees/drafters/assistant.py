"""A second, smaller model as the drafter, and the target itself with layers left out.

Both draft level by level: one pass of the draft model over the newest nodes of its own tree gives the successors of
all of them, with probabilities; the most likely nodes are expanded further. The draft model keeps its own cache and
is brought up to the committed tokens by the same pass.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from ....theory.errors import DraftcertError
from ....theory.numbers import shown
from ...models import LoadedModel
from ...models.evaluating import evaluating
from ..forward import TreeForward
from ..tree import Tree
from .base import Drafter, SuccessorDrafter, Successors

if TYPE_CHECKING:
    from ...models.caches import TreeCache

_log = logging.getLogger(__name__)


class Assistant(SuccessorDrafter):
    """Draft with a transformers causal model of the target's vocabulary.

    `width` successors of a node are considered and `beam` nodes of a level expanded, `depth` levels deep, or until the
    draft model gives no path so far a probability of `confidence`. Where the two vocabularies differ in size (one is
    padded), only ids that both have are drafted. `draft`: the model, or what `load_model` returns; then a decoder whose
    target was loaded too refuses it if its ids mean other tokens.

    Raises:
        DraftcertError: a draft model that cannot take drafts back.
    """

    _cache: TreeCache  # of one sequence: `begin` makes it

    def __init__(
        self,
        draft: Any,
        target_vocab_size: int | None = None,
        width: int = 4,
        beam: int = 2,
        depth: int = 4,
        confidence: float = 0.2,
    ):
        self.loaded = draft if isinstance(draft, LoadedModel) else None
        self.model = draft if self.loaded is None else self.loaded.model
        self.engine: Callable[[], TreeForward] = partial(TreeForward, self.model)
        self.forward = self.engine()
        self.width, self.beam, self.depth, self.confidence = width, beam, depth, confidence
        self.vocab_size = min(self.forward.vocab_size, target_vocab_size or self.forward.vocab_size)
        if target_vocab_size not in (None, self.forward.vocab_size):
            _log.warning(
                "the target has %d token ids and the draft model %d: only the %d shared ones are drafted",
                target_vocab_size,
                self.forward.vocab_size,
                self.vocab_size,
            )
        self._found: dict[tuple[int, ...], Successors] = {}

    def begin(self, prompt: Sequence[int]) -> Drafter:
        """A drafter with an engine, of the model as it stands, and a cache of its own for this sequence."""
        fresh = copy.copy(self)
        fresh.forward = self.engine()
        fresh._cache = fresh.forward.new_cache([len(prompt)], 64)
        fresh._found = {}
        return fresh

    def prepare(self, context: Sequence[int], max_nodes: int, max_depth: int) -> None:
        """Run the draft model over what was committed since, then level by level over its own most likely nodes."""
        self._found = {}
        fresh = list(context[self._cache.lengths[0] :])
        # A token that the draft model does not have, or no position for: it cannot go on from here.
        max_depth = min(max_depth, self.forward.max_positions - len(context))
        if max(fresh) >= self.forward.vocab_size or max_depth < 1:
            return
        with evaluating(self.model):
            self._look_ahead(context, fresh, max_depth)

    def _look_ahead(self, context: Sequence[int], fresh: list[int], max_depth: int) -> None:
        if self._cache.lengths[0]:
            chain = Tree(tuple(fresh), tuple(range(-1, len(fresh) - 1)))
            rows = self.forward([chain], self._cache)[0][-1:]
        else:
            rows = self.forward.prefill([fresh], self._cache)[0]
        # The root stays uncommitted: it is node 0 of the draft model's own tree at every level.
        self._cache.commit(0, range(len(fresh) - 1))
        level: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
        tokens, parents = [context[-1]], [-1]
        nodes: dict[tuple[int, ...], int] = {(): 0}
        for depth in range(min(self.depth, max_depth)):
            if depth > 0:
                for path, _ in level:
                    parents.append(nodes[path[:-1]])
                    nodes[path] = len(tokens)
                    tokens.append(path[-1])
                logits = self.forward([Tree(tuple(tokens), tuple(parents))], self._cache)[0]
                rows = logits[[nodes[path] for path, _ in level]]
            top = rows[:, : self.vocab_size].float().softmax(-1).topk(min(self.width, self.vocab_size))
            likely: list[tuple[tuple[int, ...], float]] = []
            for (path, mass), ids, chances in zip(level, top.indices.tolist(), top.values.tolist(), strict=True):
                self._found[path] = list(zip(ids, chances, strict=True))
                likely += [((*path, token), mass * chance) for token, chance in self._found[path]]
            level = sorted(likely, key=lambda item: -item[1])[: self.beam]
            if level[0][1] < self.confidence:
                return

    def successors(self, context: Sequence[int], path: tuple[int, ...]) -> Successors:
        """What the draft model found likely after this path; nothing where it did not look."""
        return self._found.get(path, ())


def keep_layers(model: Any, layers: Sequence[int]) -> Any:
    """The model with only these of its layers, sharing all weights; a draft model that needs no training.

    Source: Zhang et al. 2024 (Draft & Verify, arXiv 2309.08168); which layers to keep is the caller's choice.

    Raises:
        DraftcertError: layers the model does not have, none at all, or a model that mixes kinds of layers.
    """
    model = model.model if isinstance(model, LoadedModel) else model
    config = model.config.get_text_config(decoder=True)
    count = config.num_hidden_layers
    if not layers or sorted(set(layers)) != list(layers) or not 0 <= layers[0] <= layers[-1] < count:
        raise DraftcertError(
            f"keep layers in ascending order out of 0 to {count - 1}, not {shown(list(layers)) if layers else 'none'}"
        )
    if len(set(getattr(config, "layer_types", None) or ())) > 1:
        raise DraftcertError("layers of different kinds take different masks by their place: none can be left out")
    thin, base = _shallow(model), _shallow(model.base_model)
    for name, child in model._modules.items():
        if child is model.base_model:
            thin._modules[name] = base
    for name, child in base._modules.items():
        if isinstance(child, torch.nn.ModuleList) and len(child) == count:
            base._modules[name] = torch.nn.ModuleList([child[index] for index in layers])
            return thin
    raise DraftcertError(f"{type(model).__name__} keeps its {count} layers in no list that could be shortened")


def _shallow(module: Any) -> Any:
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    # Where a model is spread over devices, accelerate's hook replaces `forward` by one bound to the original.
    if twin.__dict__.pop("_hf_hook", None) is not None:
        del twin.__dict__["forward"], twin.__dict__["_old_forward"]
    return twin
