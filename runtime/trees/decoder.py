"""`GreedyTreeDecoder`: greedy decoding with one target pass over a whole draft tree per step.

Each step: the drafter proposes a tree; the target evaluates all its nodes in one pass, each attending to the committed
tokens and its own ancestors; `walk` accepts the path the rule allows; the cache keeps the accepted path; the target's
token after it is the next root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal

import torch

from ...theory.errors import DraftcertError
from ...theory.parse import parse_rule
from ...theory.rule import Rule
from ...theory.rules import strict_greedy
from ..models import LoadedModel
from ..rows.certify import row_stats
from ..rows.records import RowStats
from .drafters import Combined, Drafter, Observation, PromptLookup, TokenRecycling
from .forward import TreeForward, padded
from .latency import Latency, cached_latency
from .trace import DecodeStats, Seconds, Step, strict_certificates
from .tree import Tree
from .verify import greedy_tokens, walk

_TOP_KEPT = 16
"""How many of the most likely tokens of every row are remembered: what steps record and drafters learn from."""


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

    `target`: the model, or what `load_model` returns. `drafter`: anything with the `Drafter` protocol; if not given,
    Token Recycling and prompt lookup together. `rule`: a rule or its text; under strict greedy the output is the
    target's own greedy output, whatever the drafter; a relaxed rule may differ from it. `max_nodes`: nodes of a tree,
    the root included, at most.
    `latency`: cost-aware trees: only as many nodes as pay for themselves by this table of the target's latency, or
    by the one "measured" on this machine (once, then cached). `fast`: use the forward pass of `few_rows` where there is
    one for the model; without, transformers' own. `fixed_shapes`: passes of few fixed shapes, which on a GPU are
    recorded as CUDA graphs.

    Raises:
        DraftcertError: a target whose cache cannot take drafts back, or that takes no positions.

    >>> from draftcert.runtime.models import load_model
    >>> target = load_model()
    >>> result = GreedyTreeDecoder(target).generate(target.encode("What is a magpie?"), max_new_tokens=12)
    >>> target.decode(result.tokens[0])
    'A magpie is a mythical creature in folklore and mythology.'
    >>> result.stats.tokens_per_pass > 1
    True
    """

    def __init__(
        self,
        target: Any,
        drafter: Drafter | None = None,
        rule: Rule | str | None = None,
        max_nodes: int = 16,
        latency: Latency | Literal["measured"] | None = None,
        fast: bool = True,
        fixed_shapes: bool = False,
    ):
        self.target = target.model if isinstance(target, LoadedModel) else target
        self.drafter = Combined(TokenRecycling(), PromptLookup()) if drafter is None else drafter
        self.rule = strict_greedy() if rule is None else parse_rule(rule)
        if max_nodes < 1:
            raise DraftcertError(f"max_nodes = {max_nodes}: a tree has at least its root")
        self.max_nodes = max_nodes
        self._engine = TreeForward(self.target, fast, fixed_shapes)
        self.latency = cached_latency(self._engine, max_nodes) if latency == "measured" else latency

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
            sequences=padded([sequence.context for sequence in sequences], self._engine.pad_token),
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
            if not 0 <= min(prompt) <= max(prompt) < self._engine.vocab_size:
                bad = next(token for token in prompt if not 0 <= token < self._engine.vocab_size)
                raise DraftcertError(
                    f"prompt {row} has token {bad}, but the target's vocabulary is 0 to {self._engine.vocab_size - 1}"
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
            for tree, rows in zip(trees, logits, strict=True):
                stats_of_rows = row_stats(rows, min(_TOP_KEPT, rows.shape[-1]))
                results.append((walk(rows, tree, self.rule, greedy_tokens(rows, stats_of_rows)), stats_of_rows))
            verified = perf_counter()
            for index, (sequence, tree, (outcome, rows)) in enumerate(zip(active, trees, results, strict=True)):
                sequence.drafter.observe(sequence.context, _observation(tree, outcome.path, rows))
                if len(tree) == 1 and len(sequence.context) == len(sequence.prompt):
                    cache.lengths[index] = len(sequence.prompt)
                else:
                    cache.commit(index, outcome.path)
                taken = _taken([*(tree.tokens[node] for node in outcome.path[1:]), outcome.token], sequence, eos)
                observed.append((sequence, len(sequence.context) - 1, taken))
                sequence.context.extend(taken)
            committed = perf_counter()
            seconds = Seconds(drafted - start, passed - drafted, verified - passed, committed - verified)
            stats.add_pass(seconds)
            for (sequence, prefix, taken), tree, (outcome, rows) in zip(observed, trees, results, strict=True):
                step = Step(sequence.row, prefix, tree, outcome.path, outcome.token, tuple(taken), rows, seconds)
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
                f"the drafter's tree starts from token {tree.tokens[0]}, but the last committed token is "
                f"{sequence.context[-1]}"
            )
        if len(tree) > self.max_nodes or max(tree.depths) > depth:
            raise DraftcertError(
                f"the drafter proposed {len(tree)} nodes to depth {max(tree.depths)}, but was asked for at most "
                f"{self.max_nodes} to depth {depth}"
            )
        tree.check_vocabulary(self._engine.vocab_size)
        return tree if self.latency is None else self.latency.prune(tree)


def _prompts(input_ids: Any) -> list[list[int]]:
    if isinstance(input_ids, torch.Tensor):
        if input_ids.is_floating_point() or input_ids.ndim not in (1, 2):
            raise DraftcertError(f"input_ids must be integers [length] or [batch, length], not {list(input_ids.shape)}")
        input_ids = input_ids.tolist()
    rows = list(input_ids)
    if not rows or not isinstance(rows[0], (list, tuple, torch.Tensor)):
        rows = [rows]
    return [[int(token) for token in row] for row in rows]


def _taken(tokens: list[int], sequence: _Sequence, eos: frozenset[int]) -> list[int]:
    """What is committed of the verified tokens: up to the first end of sequence, within the budget."""
    taken = tokens[: sequence.remaining]
    if (end := next((i for i, token in enumerate(taken) if token in eos), None)) is not None:
        sequence.finish_reason = "eos"
        return taken[: end + 1]
    if len(taken) == sequence.remaining:
        sequence.finish_reason = "length"
    return taken


def _observation(tree: Tree, path: tuple[int, ...], rows: RowStats) -> Observation:
    probabilities = (rows.top_values - rows.logsumexp[:, None]).exp()
    return Observation(tree, path, rows.top_ids.tolist(), probabilities.tolist(), strict_certificates(rows).tolist())
