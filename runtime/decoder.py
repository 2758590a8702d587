"""`GreedyTreeDecoder`: greedy decoding with one target pass over a whole draft tree per step.

Each step: the drafter proposes a tree; the target evaluates all its nodes in one pass, each attending to the committed
tokens and its own ancestors; `walk` accepts the path the rule allows; the cache keeps the accepted path; the target's
token after it is the next root.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import torch

from ..theory.errors import DraftcertError
from ..theory.rule import Rule
from ..theory.rules import strict_greedy
from .cache import TreeCache
from .drafters import Drafter, Observation, TokenRecycling
from .models import LoadedModel
from .trace import DecodeStats, Seconds, Step
from .tree import Tree
from .verify import Verification, greedy_tokens, walk

_TOP_KEPT = 16
"""Most likely tokens kept of every row: what steps record and drafters learn from."""


@dataclass
class Generation:
    """What `generate` returns.

    `sequences` `[batch, length]`: prompt and new tokens, shorter rows padded on the right. `tokens`: the new tokens of
    each sequence, unpadded. `finish_reasons`: "eos", "length" or "interrupted" for each.
    """

    sequences: torch.Tensor
    tokens: list[list[int]]
    finish_reasons: list[str]
    steps: list[Step]
    stats: DecodeStats


@dataclass
class _Sequence:
    row: int
    prompt: list[int]
    drafter: Drafter
    budget: int
    context: list[int] = field(default_factory=list)
    finish_reason: str = "interrupted"

    @property
    def remaining(self) -> int:
        return self.budget - (len(self.context) - len(self.prompt))


class GreedyTreeDecoder:
    """Decode a transformers causal language model with draft trees.

    `target`: the model, or what `load_model` returns. `drafter`: anything with the `Drafter` protocol, Token Recycling
    if not given. `rule`: under strict greedy the output is the target's own greedy output, whatever the drafter; a
    relaxed rule may differ from it. `max_nodes`: nodes of a tree, the root included, at most.

    Raises:
        DraftcertError: a target whose cache cannot take drafts back, or that takes no positions.

    Example::

        target = load_model()
        result = GreedyTreeDecoder(target).generate(target.encode("What is a magpie?"), max_new_tokens=64)
        print(target.decode(result.tokens[0]), result.stats.tokens_per_pass)
    """

    def __init__(
        self,
        target: Any,
        drafter: Drafter | None = None,
        rule: Rule | None = None,
        max_nodes: int = 16,
    ):
        self.target = target.model if isinstance(target, LoadedModel) else target
        self.drafter = TokenRecycling() if drafter is None else drafter
        self.rule = strict_greedy() if rule is None else rule
        if max_nodes < 1:
            raise DraftcertError(f"max_nodes = {max_nodes}: a tree has at least its root")
        self.max_nodes = max_nodes
        self._engine = TreeForward(self.target)

    def generate(
        self,
        input_ids: torch.Tensor | Sequence[int] | Sequence[Sequence[int]],
        max_new_tokens: int = 128,
        eos_token_id: int | Sequence[int] | None = None,
        on_step: Callable[[Step], None] | None = None,
        keep_steps: bool = True,
    ) -> Generation:
        """Decode one prompt or a batch of prompts of any lengths.

        Args:
            input_ids: token ids `[length]` or `[batch, length]`, or a list of prompts of different lengths.
            max_new_tokens: exactly so many new tokens, fewer only if the end-of-sequence token comes.
            eos_token_id: one id or several; the model's own if not given; `()` for none.
            on_step: called with every step as it is committed (for streaming: `step.tokens`).
            keep_steps: keep the steps in the result; without, memory does not grow with the length.

        Ctrl-C ends generation with what was committed, finish reason "interrupted".

        Raises:
            DraftcertError: an empty prompt, a token outside the vocabulary, a budget below 0 or beyond the model's
                positions, a broken draft tree, NaN logits.
        """
        prompts = _prompts(input_ids)
        steps: list[Step] = []
        stats = DecodeStats(sequences=len(prompts))
        sequences = self._start(prompts, max_new_tokens)
        stats.prompt_tokens = sum(map(len, prompts))
        try:
            for step in self._run(sequences, self._eos(eos_token_id), stats):
                if keep_steps:
                    steps.append(step)
                if on_step is not None:
                    on_step(step)
        except KeyboardInterrupt:
            pass
        for sequence in sequences:
            stats.finish_reasons[sequence.finish_reason] = stats.finish_reasons.get(sequence.finish_reason, 0) + 1
        return Generation(
            sequences=_padded([sequence.context for sequence in sequences], self._engine.pad_token),
            tokens=[sequence.context[len(sequence.prompt) :] for sequence in sequences],
            finish_reasons=[sequence.finish_reason for sequence in sequences],
            steps=steps,
            stats=stats,
        )

    def _start(self, prompts: list[list[int]], budget: int) -> list[_Sequence]:
        if budget < 0:
            raise DraftcertError(f"max_new_tokens = {budget}: give 0 or more")
        for row, prompt in enumerate(prompts):
            if not prompt:
                raise DraftcertError(f"prompt {row} is empty: greedy decoding starts from at least one token")
            if not 0 <= min(prompt) <= max(prompt) < self._engine.vocabulary:
                bad = next(token for token in prompt if not 0 <= token < self._engine.vocabulary)
                raise DraftcertError(
                    f"prompt {row} has token {bad}, but the target's vocabulary is 0 to {self._engine.vocabulary - 1}"
                )
            if len(prompt) + budget > self._engine.max_positions:
                raise DraftcertError(
                    f"prompt {row} of {len(prompt)} tokens and max_new_tokens = {budget} exceed the target's "
                    f"{self._engine.max_positions} positions"
                )
        return [
            _Sequence(row, prompt, self.drafter.begin(prompt), budget, list(prompt))
            for row, prompt in enumerate(prompts)
        ]

    def _eos(self, given: int | Sequence[int] | None) -> frozenset[int]:
        if given is None:
            config = getattr(self.target, "generation_config", None) or self.target.config
            given = config.eos_token_id
        return frozenset((given,) if isinstance(given, int) else given or ())

    @torch.inference_mode()
    def _run(self, sequences: list[_Sequence], eos: frozenset[int], stats: DecodeStats) -> Iterator[Step]:
        for sequence in sequences:
            if sequence.budget == 0:
                sequence.finish_reason = "length"
        active = [sequence for sequence in sequences if sequence.budget]
        if not active:
            return
        cache = self._engine.new_cache([len(s.prompt) for s in active], active[0].budget + self.max_nodes)
        trees = [Tree((s.prompt[-1],), (-1,)) for s in active]
        start = drafted = perf_counter()
        logits = self._engine.prefill([s.prompt for s in active], cache)
        while True:
            passed = perf_counter()
            results, observed = [], []
            for sequence, tree, rows in zip(active, trees, logits, strict=True):
                outcome = walk(rows, tree, self.rule, greedy_tokens(rows))
                results.append((outcome, _top(rows)))
            verified = perf_counter()
            for index, (sequence, tree, (outcome, top)) in enumerate(zip(active, trees, results, strict=True)):
                sequence.drafter.observe(sequence.context, _observation(tree, outcome, top))
                if len(tree) == 1 and len(sequence.context) == len(sequence.prompt):
                    cache.lengths[index] = len(sequence.prompt)
                else:
                    cache.commit(index, outcome.path)
                kept = _kept([*(tree.tokens[node] for node in outcome.path[1:]), outcome.token], sequence, eos)
                observed.append((sequence, len(sequence.context) - 1, kept))
                sequence.context.extend(kept)
            committed = perf_counter()
            seconds = Seconds(drafted - start, passed - drafted, verified - passed, committed - verified)
            stats.add_pass(seconds)
            for (sequence, prefix, kept), tree, (outcome, top) in zip(observed, trees, results, strict=True):
                step = Step(sequence.row, prefix, tree, *outcome, tuple(kept), *top, seconds)
                stats.add(step)
                yield step
            start = perf_counter()
            going = [index for index, sequence in enumerate(active) if sequence.finish_reason == "interrupted"]
            if not going:
                return
            if len(going) < len(active):
                active = [active[index] for index in going]
                cache.keep(going)
            trees = [self._propose(sequence) for sequence in active]
            drafted = perf_counter()
            logits = self._engine(trees, cache)

    def _propose(self, sequence: _Sequence) -> Tree:
        # A path of d nodes commits d + 1 tokens: deeper ones than the budget allows would be thrown away.
        depth = sequence.remaining - 1
        tree = sequence.drafter.propose(sequence.context, self.max_nodes, depth)
        if tree.tokens[0] != sequence.context[-1]:
            raise DraftcertError(
                f"the drafter's tree starts from token {tree.tokens[0]}, but the last committed token is {sequence.context[-1]}"
            )
        if len(tree) > self.max_nodes or max(tree.depths) > depth:
            raise DraftcertError(
                f"the drafter proposed {len(tree)} nodes to depth {max(tree.depths)}, but was asked for at most "
                f"{self.max_nodes} to depth {depth}"
            )
        tree.check_vocabulary(self._engine.vocabulary)
        return tree


class TreeForward:
    """One pass of a transformers causal model over the nodes of draft trees: masks, positions, cache."""

    def __init__(self, model: Any):
        self.model = model.eval()
        self.config = model.config.get_text_config(decoder=True)
        self.vocabulary = model.get_output_embeddings().weight.shape[0]
        self.max_positions = getattr(self.config, "max_position_embeddings", None) or 2**62
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
        self._cache_name = "cache" if "cache" in accepted else "past_key_values"
        self._windows = _windows(model, self.config)

    def new_cache(self, prompts: Sequence[int], extra: int) -> TreeCache:
        """A cache for prompts of these lengths with `extra` tokens each."""
        return TreeCache(self.config.num_hidden_layers, len(prompts), max(prompts) + extra)

    def prefill(self, prompts: list[list[int]], cache: TreeCache) -> list[torch.Tensor]:
        """Pass over the prompts, the shorter ones padded on the right where nothing attends to; the last rows' logits."""
        lengths = [len(prompt) for prompt in prompts]
        tokens = _padded(prompts, self.pad_token).to(self.model.device)
        single = len(set(lengths)) == 1
        keep: Any = 1 if single else 0
        logits = self._forward(tokens, None, torch.arange(max(lengths))[None].expand(len(prompts), -1), cache, keep)
        return [logits[row, -1:] if single else logits[row, length - 1 : length] for row, length in enumerate(lengths)]

    def __call__(self, trees: Sequence[Tree], cache: TreeCache) -> list[torch.Tensor]:
        """Logits `[nodes, vocab]` of every tree, evaluated behind the committed tokens of its row of the cache."""
        nodes, longest = max(map(len, trees)), max(cache.lengths)
        batch, span = len(trees), longest + nodes
        tokens = torch.full((batch, nodes), self.pad_token)
        key_positions = torch.arange(span).repeat(batch, 1)
        mask = torch.zeros(batch, 1, nodes, span, dtype=torch.bool)
        for row, (tree, length) in enumerate(zip(trees, cache.lengths, strict=True)):
            size = len(tree)
            tokens[row, :size] = torch.tensor(tree.tokens)
            key_positions[row, length : length + size] = tree.positions(length)
            mask[row, 0, :size, :length] = True
            mask[row, 0, :size, length : length + size] = tree.ancestor_mask()
            # Padding attends to the first token: a row of the softmax must not be empty. Nothing attends to padding.
            mask[row, 0, size:, 0] = True
        starts = torch.tensor(cache.lengths)[:, None]
        positions = key_positions.gather(1, starts + torch.arange(nodes))
        masks: Any = {}
        for kind, window in self._windows.items():
            distance = positions[:, None, :, None] - key_positions[:, None, None, :]
            masks[kind] = (mask if window is None else mask & (distance < window)).to(self.model.device)
        attention = masks if len(masks) > 1 else next(iter(masks.values()))
        logits = self._forward(tokens.to(self.model.device), attention, positions, cache, 0)
        return [logits[row, : len(tree)] for row, tree in enumerate(trees)]

    def _forward(
        self, tokens: torch.Tensor, mask: Any, positions: torch.Tensor, cache: TreeCache, keep: int
    ) -> torch.Tensor:
        return self.model(
            input_ids=tokens,
            attention_mask=mask,
            position_ids=positions.to(self.model.device),
            use_cache=True,
            logits_to_keep=keep,
            **{self._cache_name: cache},
        ).logits


def _windows(model: Any, config: Any) -> dict[str, int | None]:
    """The sliding window of each kind of attention layer, `None` for full attention."""
    from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

    windows: dict[str, int | None] = {}
    for layer in DynamicCache(config=config).layers:
        if type(layer) is DynamicLayer:
            windows["full_attention"] = None
        elif type(layer) is DynamicSlidingWindowLayer:
            windows["sliding_attention"] = layer.sliding_window
        else:
            raise DraftcertError(
                f"{type(model).__name__} keeps a {type(layer).__name__}: its state cannot be taken back to before a "
                "rejected draft, so it cannot be decoded with trees"
            )
    return windows or {"full_attention": None}


def _prompts(input_ids: Any) -> list[list[int]]:
    if isinstance(input_ids, torch.Tensor):
        if input_ids.is_floating_point() or input_ids.ndim not in (1, 2):
            raise DraftcertError(f"input_ids must be integers [length] or [batch, length], not {list(input_ids.shape)}")
        input_ids = input_ids.tolist()
    rows = list(input_ids)
    if not rows or not isinstance(rows[0], (list, tuple, torch.Tensor)):
        rows = [rows]
    return [[int(token) for token in row] for row in rows]


def _padded(rows: Sequence[Sequence[int]], pad: int) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[pad] * (width - len(row))] for row in rows])


def _kept(tokens: list[int], sequence: _Sequence, eos: frozenset[int]) -> list[int]:
    """What is committed of the verified tokens: up to the first end of sequence, within the budget."""
    kept = tokens[: sequence.remaining]
    if (end := next((i for i, token in enumerate(kept) if token in eos), None)) is not None:
        sequence.finish_reason = "eos"
        return kept[: end + 1]
    if len(kept) == sequence.remaining:
        sequence.finish_reason = "length"
    return kept


def _top(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    values, ids = rows.float().topk(min(_TOP_KEPT, rows.shape[-1]))
    return values, ids, rows.float().logsumexp(-1)


def _observation(tree: Tree, outcome: Verification, top: tuple[torch.Tensor, ...]) -> Observation:
    values, ids, logsumexp = top
    return Observation(tree, outcome.path, ids.tolist(), (values - logsumexp[:, None]).exp().tolist())
