"""One pass of a transformers causal model over the nodes of draft trees: masks, positions, cache."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from ...theory.errors import DraftcertError
from ...theory.imports import optional
from ..models.digests import content
from ..models.graphs import Graphs
from ..models.layers.description import NotDescribedError
from ..models.layers.few_rows import FewRows
from .tree import Tree

if TYPE_CHECKING:
    from ..models.caches import TreeCache

_PIECE = 128
"""Tokens of a prompt that `FewRows` takes at once: more are no faster, and need more memory."""
Seen = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Whether a token at the first position sees one at the second, which is not behind it."""


class TreeForward:
    """A target or draft model that evaluates trees. Logits `[nodes, vocab]` of every tree come back.

    `fast`: use the faster forward pass `FewRows` instead of transformers' where the model is described; else
    `not_fast` says why it is not. `fixed_shapes`: trees are padded to 1, 2, 4, 8, ... nodes and attend over the whole
    cache, so that on a GPU each such pass is one CUDA graph.

    Raises:
        DraftcertError: a model whose state cannot be taken back, that takes no positions, or no tree mask.
    """

    def __init__(self, model: Any, fast: bool = True, fixed_shapes: bool = False):
        self.model = model
        self.config = model.config.get_text_config(decoder=True)
        self.vocab_size = model.get_output_embeddings().weight.shape[0]
        self.max_positions = most_positions(model)
        pad = getattr(model.generation_config, "pad_token_id", None)
        self.pad_token = 0 if pad is None else pad
        accepted = inspect.signature(model.forward).parameters
        name = type(model).__name__
        if "position_ids" not in accepted:
            raise DraftcertError(f"{name} takes no position_ids, so nodes of one depth cannot share their position")
        if self.config._attn_implementation not in ("sdpa", "eager"):
            raise DraftcertError(
                f"{name} uses the attention '{self.config._attn_implementation}', which takes no tree mask: load it "
                "with attn_implementation='sdpa' or 'eager'"
            )
        self._cache_name = next((word for word in ("cache", "past_key_values") if word in accepted), None)
        if self._cache_name is None:
            raise DraftcertError(f"{name} takes no cache, so every token would cost a pass over the whole text")
        self._seen = _seen(model, self.config)
        # As transformers makes masks for each: eager attention adds them to the scores.
        self._additive = self.config._attn_implementation == "eager"
        self.few_rows: FewRows | None = None
        self.not_fast: str | None = "not asked for"
        if fast and not fixed_shapes:
            try:
                self.few_rows, self.not_fast = FewRows(model), None
            except NotDescribedError as reason:
                self.not_fast = str(reason)
        self.fixed_shapes = fixed_shapes
        self._graphs = Graphs(self.fixed_pass, model.device)
        self._kept: TreeCache | None = None

    @property
    def same_bits(self) -> str | None:
        """Names all that a row of logits depends on, to the last bit, beside its text; `None`: also on its company."""
        if self.few_rows is None:
            return None
        facts = [content(self.model), *self.few_rows.arithmetic()]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]

    def new_cache(self, prompts: Sequence[int], extra: int) -> TreeCache:
        """A cache for prompts of these lengths with `extra` tokens each.

        With fixed shapes it is that of the last sequences where that suits: what was recorded for it stays good.
        """
        with optional("hf"):
            from ..models.caches import TreeCache

        if self.few_rows is not None:
            self.few_rows.look_up()  # numbers may have changed in place since the last sequences
        batch, capacity = len(prompts), max(prompts) + extra
        if not self.fixed_shapes:
            return TreeCache(self.config.num_hidden_layers, batch, capacity)
        if self._kept is None or len(self._kept.lengths) != batch or self._kept.capacity < capacity:
            self._kept = TreeCache(self.config.num_hidden_layers, batch, 1 << (capacity - 1).bit_length())
        self._kept.lengths[:] = [0] * batch
        return self._kept

    def prefill(self, prompts: list[list[int]], cache: TreeCache) -> list[torch.Tensor]:
        """Pass over the prompts, shorter ones padded on the right where nothing attends; the last tokens' logits."""
        if self.few_rows is not None:
            logits = self._in_pieces(prompts, cache)
            cache.lengths[:] = [0] * len(prompts)
            return logits
        lengths = [len(prompt) for prompt in prompts]
        tokens = padded(prompts, self.pad_token).to(self.model.device)
        last = sorted({length - 1 for length in lengths})
        positions = torch.arange(max(lengths)).expand(len(prompts), -1)
        # With a list of positions only those reach the vocabulary; a single one is a slice for older transformers.
        keep = 1 if len(last) == 1 else torch.tensor(last, device=self.model.device)
        logits = self._forward(tokens, None, positions, cache, keep)
        return [logits[row, (at := last.index(length - 1)) : at + 1] for row, length in enumerate(lengths)]

    def _in_pieces(self, prompts: list[list[int]], cache: TreeCache) -> list[torch.Tensor]:
        """The last tokens' logits, by passes over what the cache does not yet hold of the prompts."""
        logits: dict[int, torch.Tensor] = {}
        while len(logits) < len(prompts):
            # A prompt that is through while others are not goes on with padding, which nothing will see.
            pieces = [p[at : at + _PIECE] or [self.pad_token] for p, at in zip(prompts, cache.lengths, strict=True)]
            rows = self([_chain(piece) for piece in pieces], cache, only_last=True)
            for row, (prompt, piece) in enumerate(zip(prompts, pieces, strict=True)):
                if row not in logits:
                    cache.lengths[row] += len(piece)
                    if cache.lengths[row] == len(prompt):
                        logits[row] = rows[row]
        return [logits[row] for row in range(len(prompts))]

    def begin(
        self, prompts: list[list[int]], cache: TreeCache, before: list[list[tuple[torch.Tensor, torch.Tensor]]] | None
    ) -> list[torch.Tensor]:
        """`prefill`, where states of the prompts' beginnings may be there `before`; all of the prompts is committed."""
        if before is None:
            logits = self.prefill(prompts, cache)
        else:
            for row, states in enumerate(before):
                cache.begin(row, states)
            if self.few_rows is not None:
                return self._in_pieces(prompts, cache)
            left = [prompt[length:] for prompt, length in zip(prompts, cache.lengths, strict=True)]
            logits = self([_chain(tokens) for tokens in left], cache, only_last=True)
        cache.lengths[:] = map(len, prompts)
        return logits

    def __call__(self, trees: Sequence[Tree], cache: TreeCache, only_last: bool = False) -> list[torch.Tensor]:
        """Logits `[nodes, vocab]` of every tree, evaluated behind the committed tokens of its row of the cache.

        `only_last`: `[1, vocab]`, those of the last node, at the cost of one row's.
        """
        nodes, longest = max(map(len, trees)), max(cache.lengths)
        if self.fixed_shapes:
            nodes = 1 << (nodes - 1).bit_length()
            cache.reserve(longest + nodes)
        batch, span = len(trees), cache.capacity if self.fixed_shapes else longest + nodes
        tokens = torch.full((batch, nodes), self.pad_token)
        key_positions = torch.arange(span).repeat(batch, 1)
        mask = torch.zeros(batch, 1, nodes, span, dtype=torch.bool)
        for row, (tree, length) in enumerate(zip(trees, cache.lengths, strict=True)):
            size = len(tree)
            tokens[row, :size] = torch.tensor(tree.tokens)
            key_positions[row, length : length + size] = tree.positions(length)
            mask[row, 0, :size, :length] = True
            mask[row, 0, :size, length : length + size] = tree.ancestor_mask()
            # Padding attends to itself: a row of the softmax must not be empty. Nothing else attends to padding.
            mask[row, 0].diagonal(length)[size:] = True
        places = torch.tensor(cache.lengths)[:, None] + torch.arange(nodes)
        positions = key_positions.gather(1, places).clamp_(max=self.max_positions - 1)
        queries, keys = positions[:, None, :, None], key_positions[:, None, None, :]
        masks = {kind: mask if seen is None else mask & seen(queries, keys) for kind, seen in self._seen.items()}
        if self.few_rows is not None:
            ends = torch.tensor([len(tree) - 1 for tree in trees]) if only_last else None
            logits = self.few_rows(tokens, masks, positions, cache, ends)
        else:
            if self._additive:
                masks = {kind: _added(mask, self.model.dtype) for kind, mask in masks.items()}
            if self.fixed_shapes and cache.filled:
                logits = self._graphs({"tokens": tokens, "positions": positions, "places": places} | masks, cache)
            else:
                masks = {kind: mask.to(self.model.device) for kind, mask in masks.items()}
                logits = self._forward(tokens.to(self.model.device), self._one_or_all(masks), positions, cache, 0)
        of_trees = [logits[row, : len(tree)] for row, tree in enumerate(trees)]
        return [rows[-1:] for rows in of_trees] if only_last else of_trees

    def fixed_pass(self, inputs: dict[str, torch.Tensor], cache: TreeCache) -> torch.Tensor:
        """A pass whose shapes and work on the host depend on the shapes of `inputs` alone, hence can be recorded."""
        masks = self._one_or_all({kind: inputs[kind] for kind in self._seen})
        cache.places = inputs["places"]
        try:
            return self._forward(inputs["tokens"], masks, inputs["positions"], cache, 0)
        finally:
            cache.places = None

    @staticmethod
    def _one_or_all(masks: dict[str, torch.Tensor]) -> Any:
        """A mask for each kind of attention where there are several, as transformers' models take them."""
        return masks if len(masks) > 1 else next(iter(masks.values()))

    def _forward(
        self, tokens: torch.Tensor, mask: Any, positions: torch.Tensor, cache: TreeCache, keep: int | torch.Tensor
    ) -> torch.Tensor:
        return self.model(
            input_ids=tokens,
            attention_mask=mask,
            position_ids=positions.to(self.model.device),
            use_cache=True,
            logits_to_keep=keep,
            **{str(self._cache_name): cache},
        ).logits


def _chain(tokens: Sequence[int]) -> Tree:
    return Tree(tuple(tokens), tuple(range(-1, len(tokens) - 1)))


def most_positions(model: Any) -> int:
    """How many tokens a text of the model may have, as its configuration says."""
    return getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None) or 2**62


def _seen(model: Any, config: Any) -> dict[str, Seen | None]:
    """What each kind of attention layer sees of the tokens before it, by their positions; `None`: everything."""
    with optional("hf"):
        from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

    layers = DynamicCache(config=config).layers
    kinds = getattr(config, "layer_types", None) or [""] * len(layers)
    seen: dict[str, Seen | None] = {}
    for kind, layer in zip(kinds, layers, strict=False):
        if type(layer) is DynamicLayer:
            seen["full_attention"] = None
        elif type(layer) is DynamicSlidingWindowLayer:
            # Chunks are kept as windows are: only the mask tells them apart.
            chunked = kind == "chunked_attention"
            reach = layer.sliding_window
            seen["chunked_attention" if chunked else "sliding_attention"] = (_chunk if chunked else _window)(reach)
        else:
            raise DraftcertError(
                f"{type(model).__name__} keeps a {type(layer).__name__}: its state cannot be taken back to before a "
                "rejected draft, so it cannot be decoded with trees"
            )
    return seen or {"full_attention": None}


def _window(size: int) -> Seen:
    return lambda queries, keys: queries - keys < size


def _chunk(size: int) -> Seen:
    return lambda queries, keys: queries // size == keys // size


def _added(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.zeros(mask.shape, dtype=dtype).masked_fill_(~mask, torch.finfo(dtype).min)


def padded(rows: Sequence[Sequence[int]], pad: int) -> torch.Tensor:
    """Token ids `[rows, longest]`, shorter rows filled up on the right."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[pad] * (width - len(row))] for row in rows])
