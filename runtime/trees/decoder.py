"""`GreedyTreeDecoder`: greedy decoding with one target pass over a whole draft tree per step.

Each step: the drafter proposes a tree; the target evaluates all its nodes in one pass, each attending to the committed
tokens and its own ancestors; `walk` accepts the path the rule allows; the cache keeps the accepted path; the target's
token after it is the next root.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal

import torch

from ...support.files import reading
from ...theory.errors import DraftcertError
from ...theory.imports import optional
from ...theory.numbers import truth_value, whole_number
from ...theory.parse import parse_rule
from ...theory.rule import Rule
from ...theory.rules import strict_greedy
from ..models import LoadedModel
from ..models.digests import structure
from ..models.evaluating import evaluating
from ..names import Walk, check_walk
from ..rows.certify import row_stats
from ..rows.records import RowStats
from .drafters import Combined, Drafter, Observation, PromptLookup, TokenRecycling, drafter_by_name, require_own_tokens
from .forward import TreeForward, most_positions, padded
from .latency import Latency, cached_latency
from .request import Request, plain_data, read_prompts, read_request, with_stop_strings
from .self_test import self_test
from .trace import DecodeStats, Seconds, Step, top_probabilities
from .tree import Tree
from .verify import Verification, greedy_tokens, walk

_TOP_KEPT = 16
"""How many of the most likely tokens of every row are remembered: what steps record and drafters learn from."""
_USUAL_BUDGET = 128
"""New tokens where nothing says how many."""
_MOST_NODES = 4096
"""Of a tree; every pass has a mask of their square, and the cache room for them."""
_FEWEST_ASKED = 8
"""Nodes that a drafter is asked for at least: as many as may be worth their while where none were before."""
_ROOM = 1024
"""New tokens for which a cache has room from the start."""


@dataclass
class Generation:
    """What `generate` returns.

    `sequences` `[batch, length]`: inputs and new tokens, shorter rows padded on the right. `tokens`: the new tokens of
    each sequence, unpadded. `finish_reasons`: "eos", "length", "stopped" (by another criterion) or "interrupted" for
    each. `past_key_values`: transformers' cache, for the next turn. `scores` and `logits`, if asked for: for every
    new token the rows `[batch, vocab]` it was chosen from, with and without logits processors; 0 for what had ended.
    """

    sequences: torch.Tensor
    tokens: list[list[int]]
    finish_reasons: list[str]
    steps: list[Step]
    stats: DecodeStats
    past_key_values: Any = None
    scores: tuple[torch.Tensor, ...] | None = None
    logits: tuple[torch.Tensor, ...] | None = None


@dataclass
class _Sequence:
    """`ids` `[1, longest]`: the row as given and new tokens, `length` of them so far. `context`: without padding.

    `nodes_asked`: how many nodes the drafter is asked for in the next step.
    """

    row: int
    ids: torch.Tensor
    length: int
    context: list[int]
    drafter: Drafter
    nodes_asked: int
    tokens: list[int] = field(default_factory=list)
    finish_reason: str = "interrupted"
    rows: dict[str, list[torch.Tensor]] = field(default_factory=lambda: {"scores": [], "logits": []})
    states: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)

    @property
    def remaining(self) -> int:
        return self.ids.shape[1] - self.length


class GreedyTreeDecoder:
    """Decode a transformers causal language model with draft trees.

    `target`: the model, or what `load_model` returns. `drafter`: anything with the `Drafter` protocol, or a name; if
    not given, Token Recycling and prompt lookup together. `rule`: a rule or its text; under strict greedy the output is
    the target's own greedy output, whatever the drafter; a relaxed rule may differ from it. `choice`: which path a
    relaxed rule takes (`verify`). `max_nodes`: nodes of a tree, the root included, at most. `latency`: only as many
    nodes as pay for themselves by this table of the target's latency, or by the one "measured" on this machine (once,
    then cached); `None`: as many as there may be. `fast`: use the forward pass of `FewRows` where it describes the
    model; without, transformers' own. `fixed_shapes`: passes of few fixed shapes, which on a GPU are recorded as CUDA
    graphs.

    What is assumed of the model is tried on it (`self_test`), again when a call finds it changed. Any number of threads
    may use one decoder.

    Raises:
        DraftcertError: a target whose cache cannot take drafts back, or whose logits of tree nodes are not its own; a
            drafter whose token ids mean other tokens.

    >>> from draftcert.runtime.models import load_model
    >>> target = load_model()
    >>> result = GreedyTreeDecoder(target).generate(target.encode("What is a magpie?"), max_new_tokens=12)
    >>> target.decode(result.tokens[0])
    'A magpie is a mythical creature in folklore and mythology.'
    """

    def __init__(
        self,
        target: Any,
        drafter: Drafter | str | None = None,
        rule: Rule | str | None = None,
        max_nodes: int = 32,
        latency: Latency | Literal["measured"] | None = "measured",
        fast: bool = True,
        fixed_shapes: bool = False,
        choice: Walk = "likeliest",
    ):
        self.target = target.model if isinstance(target, LoadedModel) else target
        if not hasattr(self.target, "generate") or not hasattr(self.target, "config"):
            raise DraftcertError(f"a target is a causal language model of transformers, not {type(target).__name__}")
        self.max_nodes = whole_number(max_nodes, "max_nodes", 1, _MOST_NODES)
        check_walk(choice)
        if latency != "measured" and not isinstance(latency, Latency | None):
            raise DraftcertError(f"latency = {latency!r}: give a Latency, 'measured' or None")
        self.choice: Walk = choice
        self.rule = strict_greedy() if rule is None else parse_rule(rule)
        self._fast, self._fixed_shapes = truth_value(fast, "fast"), truth_value(fixed_shapes, "fixed_shapes")
        self._idle: list[tuple[str, TreeForward]] = []
        with self._engine(reach=0) as engine, evaluating(self.target):
            drafter = drafter_by_name(drafter, target) if isinstance(drafter, str) else drafter
            self.drafter = Combined(TokenRecycling(), PromptLookup()) if drafter is None else drafter
            if not isinstance(self.drafter, Drafter):
                raise DraftcertError(f"a drafter begins, proposes and observes, or is a name: {drafter!r} is neither")
            require_own_tokens(self.drafter, target)
            self.latency = cached_latency(engine, self.max_nodes) if latency == "measured" else latency

    def generate(
        self,
        input_ids: Any,
        max_new_tokens: int | None = None,
        eos_token_id: int | Sequence[int] | torch.Tensor | None = None,
        on_step: Callable[[Step], None] | None = None,
        keep_steps: bool = True,
        **options: Any,
    ) -> Generation:
        """Decode one prompt or a batch of prompts of any lengths.

        Args:
            input_ids: token ids `[length]` or `[batch, length]`, a list of prompts of different lengths, or all that a
                tokenizer returns, its mask included.
            max_new_tokens: exactly so many new tokens, fewer only if a sequence ends. Where nothing says how many:
                128, or as many as the model has positions for.
            eos_token_id: one id or several; the model's own if not given; `()` for none.
            on_step: called with every step as it is committed (for streaming: `step.tokens`).
            keep_steps: keep the steps in the result; without, memory does not grow with the length.
            options: what transformers' `generate` takes: a `generation_config` or its entries, `attention_mask`,
                `logits_processor`, `stopping_criteria`, `stop_strings` with a `tokenizer`, `streamer`,
                `past_key_values`, `output_scores` and `output_logits` with `return_dict_in_generate`.

        Ctrl-C ends generation with what was committed, finish reason "interrupted".

        Raises:
            DraftcertError: an empty prompt, a token outside the vocabulary, a budget below 0 or beyond the model's
                positions, a broken draft tree, NaN logits, an option that draft trees cannot honour.
        """
        prompts, mask = read_prompts(input_ids)
        width = max(map(len, prompts))
        configured = getattr(getattr(self.target, "generation_config", None), "pad_token_id", None)
        pad = 0 if configured is None else configured
        given = torch.tensor([[*[pad] * (width - len(prompt)), *prompt] for prompt in prompts])
        # Only of a batch in one tensor it is left to transformers to find the padding, by its token.
        if mask is None and (not isinstance(input_ids, torch.Tensor) or len(prompts) == 1):
            mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        mask = options.pop("attention_mask", mask)
        if mask is not None:
            with reading("attention_mask"):
                mask = torch.as_tensor(plain_data(mask), device=self.target.device)
            if mask.shape not in (given.shape, (1, width), (width,)):
                raise DraftcertError(f"attention_mask is {list(mask.shape)}, but input_ids {list(given.shape)}")
            options["attention_mask"] = mask.expand(len(given), -1)
        options |= self._lengths(max_new_tokens, options, width)
        if eos_token_id is not None:
            ends = plain_data(eos_token_id)
            ends = ends if isinstance(ends, list) else [ends]
            options["eos_token_id"] = [whole_number(end, "eos_token_id", 0) for end in ends] or None
        options = with_stop_strings(self.target, options)
        streamer, found = options.pop("streamer", None), []
        if options.get("max_new_tokens") == 0:
            return Generation(given, [[] for _ in prompts], ["length"] * len(prompts), [], DecodeStats(len(prompts)))
        if streamer is not None:
            streamer.put(given)

        def decode(model: Any, input_ids: torch.Tensor, **prepared: Any) -> torch.Tensor:
            found.append(None)  # from here on errors are the decoder's, and mean what they say
            found[0] = self._decode(read_request(input_ids, streamer=streamer, **prepared), on_step, keep_steps)
            return found[0].sequences

        # Drafts are checked against the greedy token, whatever the model's own configuration would have.
        greedy = {} if options.get("generation_config") else {"do_sample": False}
        try:
            self.target.generate(given.to(self.target.device), custom_generate=decode, **(greedy | options))
        except (TypeError, ValueError, RuntimeError) as error:
            if found or isinstance(error, DraftcertError):
                raise
            raise DraftcertError(f"generate refuses its arguments: {' '.join(str(error).split())}") from error
        generation: Generation = found[0]
        if greedy and getattr(self.target.generation_config, "do_sample", False):
            generation.stats.ignored["do_sample"] = "the model's configuration samples, and this is greedy decoding"
        if not isinstance(input_ids, torch.Tensor) and any(len(prompt) < width for prompt in prompts):
            rows = [[*prompt, *new] for prompt, new in zip(prompts, generation.tokens, strict=True)]
            generation.sequences = padded(rows, pad)
        return generation

    def custom_generate(
        self,
        model: Any,
        input_ids: torch.Tensor,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        streamer: Any = None,
        **options: Any,
    ) -> Any:
        """What `model.generate(..., custom_generate=decoder.custom_generate)` calls; it returns what `generate` does.

        Raises:
            DraftcertError: as `generate`, and a model other than this decoder's.

        >>> from draftcert.runtime.models import load_model
        >>> target = load_model()
        >>> decoder, ids = GreedyTreeDecoder(target), target.encode("Name a moon.")
        >>> found = target.model.generate(ids, max_new_tokens=8, custom_generate=decoder.custom_generate)
        >>> bool((found == target.model.generate(ids, max_new_tokens=8)).all())
        True
        """
        if model is not self.target:
            raise DraftcertError("this decoder was made for another model: make one for the model that generates")
        prepared = {"logits_processor": logits_processor, "stopping_criteria": stopping_criteria} | options
        outside = _handed_to_generate(inspect.currentframe())
        if outside.get("assistant_model") is not None:
            raise DraftcertError("assistant_model cannot be honoured: give the decoder an Assistant as its drafter")
        streamer = outside.get("streamer") if streamer is None else streamer
        request = read_request(input_ids, generation_config=generation_config, streamer=streamer, **prepared)
        found = self._decode(request, None, keep_steps=False)
        if not generation_config.return_dict_in_generate:
            return found.sequences
        with optional("hf"):
            from transformers.generation.utils import GenerateDecoderOnlyOutput

        cache = "cache" if "cache" in inspect.signature(GenerateDecoderOnlyOutput).parameters else "past_key_values"
        facts = {"scores": found.scores, "logits": found.logits, cache: found.past_key_values}
        return GenerateDecoderOnlyOutput(sequences=found.sequences, **facts)  # type: ignore[arg-type]

    @property
    def same_bits(self) -> str | None:
        """A name for the model as it stands and its arithmetic, where both leave outputs no room: else `None`.

        Any two outputs for one prompt and settings by decoders of one such name are the same: with trees or without,
        alone or in a batch. It takes strict greedy acceptance and the forward pass `FewRows`, which gives a row of
        logits the same bits in any company.
        """
        with self._engine(reach=0) as engine:
            return engine.same_bits if self.rule == strict_greedy() else None

    @contextmanager
    def _engine(self, reach: int) -> Iterator[TreeForward]:
        """An engine for the model as it stands, tried up to texts of length `reach`, that no other call uses."""
        now = structure(self.target)
        self_test(self.target, reach, self._fast, self._fixed_shapes, now)
        engine = None
        while engine is None and self._idle:
            with suppress(IndexError):  # another thread took it
                of, idle = self._idle.pop()
                engine = idle if of == now else None
        engine = engine or TreeForward(self.target, self._fast, self._fixed_shapes)
        try:
            yield engine
        finally:
            self._idle.append((now, engine))

    def _lengths(self, max_new_tokens: Any, options: dict[str, Any], width: int) -> dict[str, Any]:
        for name in ("max_length", "min_length", "min_new_tokens"):
            if options.get(name) is not None:
                options[name] = whole_number(options[name], name, 0)
        if max_new_tokens is not None:
            return {"max_new_tokens": whole_number(max_new_tokens, "max_new_tokens", 0)}
        known = (options.get("generation_config"), getattr(self.target, "generation_config", None))
        names = ("max_length", "max_new_tokens")
        if any(
            options.get(name) is not None or any(getattr(c, name, None) is not None for c in known) for name in names
        ):
            return {}
        return {"max_new_tokens": max(1, min(_USUAL_BUDGET, most_positions(self.target) - width + 1))}

    def _decode(self, request: Request, on_step: Callable[[Step], None] | None, keep_steps: bool) -> Generation:
        steps: list[Step] = []
        prompts, width = request.prompts, request.given.shape[1]
        stats = DecodeStats(sequences=len(prompts), prompt_tokens=sum(map(len, prompts)))
        budget, most = request.max_length - width, most_positions(self.target)
        for row, prompt in enumerate(prompts):
            if len(prompt) + budget - 1 > most:  # the last token needs no position: nothing follows it
                raise DraftcertError(
                    f"prompt {row} of {len(prompt)} tokens and {budget} new ones exceed the target's {most} positions"
                )
        reach = max(map(len, prompts)) + budget
        with evaluating(self.target), self._engine(reach) as engine:
            sequences = self._start(request, engine)
            try:
                for step in self._run(sequences, request, engine, stats):
                    if keep_steps:
                        steps.append(step)
                    if on_step is not None:
                        on_step(step)
            except KeyboardInterrupt:
                pass
        if request.streamer is not None:
            request.streamer.end()
        for sequence in sequences:
            stats.finish_reasons[sequence.finish_reason] = stats.finish_reasons.get(sequence.finish_reason, 0) + 1
        return Generation(
            sequences=_beside(request, [sequence.tokens for sequence in sequences]),
            tokens=[sequence.tokens for sequence in sequences],
            finish_reasons=[sequence.finish_reason for sequence in sequences],
            steps=steps,
            stats=stats,
            past_key_values=request.refill([(s.states, len(s.tokens)) for s in sequences]),
            **{name: _stacked([s.rows[name] for s in sequences]) for name in request.rows_kept},
        )

    def _start(self, request: Request, engine: TreeForward) -> list[_Sequence]:
        for row, prompt in enumerate(request.prompts):
            if (bad := next((token for token in prompt if not 0 <= token < engine.vocab_size), None)) is not None:
                raise DraftcertError(
                    f"prompt {row} has token {bad}, but the target's vocabulary is 0 to {engine.vocab_size - 1}"
                )
        batch, given = request.given.shape
        room = request.given.new_zeros(batch, request.max_length)
        room[:, :given] = request.given
        return [
            _Sequence(row, room[row : row + 1], given, list(prompt), self.drafter.begin(prompt), self.max_nodes)
            for row, prompt in enumerate(request.prompts)
        ]

    @torch.inference_mode()
    def _run(
        self, sequences: list[_Sequence], request: Request, engine: TreeForward, stats: DecodeStats
    ) -> Iterator[Step]:
        active = list(sequences)
        cache = engine.new_cache([len(s.context) for s in active], min(active[0].remaining, _ROOM) + self.max_nodes)
        trees = [Tree((s.context[-1],), (-1,)) for s in active]
        start = drafted = perf_counter()
        logits = engine.begin(request.prompts, cache, request.states_before())
        first = True
        while True:
            passed = perf_counter()
            results = [self._verify(*item, request) for item in zip(active, trees, logits, strict=True)]
            verified = perf_counter()
            done: list[tuple[_Sequence, int, list[int]]] = []
            for index, (sequence, tree, (outcome, rows, known)) in enumerate(zip(active, trees, results, strict=True)):
                sequence.drafter.observe(sequence.context, _observation(tree, outcome.path, rows))
                if not first:
                    cache.commit(index, outcome.path)
                prefix = len(sequence.context) - 1
                tokens = [*(tree.tokens[node] for node in outcome.path[1:]), outcome.token]
                done.append((sequence, prefix, self._commit(sequence, tokens, known, request)))
                if sequence.finish_reason != "interrupted" and request.past is not None:
                    sequence.states = cache.states(index, len(sequence.context) - 1)
            committed = perf_counter()
            seconds = Seconds(drafted - start, passed - drafted, verified - passed, committed - verified)
            stats.add_pass(seconds)
            for (sequence, prefix, taken), tree, (outcome, rows, _) in zip(done, trees, results, strict=True):
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
            trees, first = [self._propose(sequence, engine, stats) for sequence in active], False
            drafted = perf_counter()
            logits = engine(trees, cache)

    def _verify(
        self, sequence: _Sequence, tree: Tree, rows: torch.Tensor, request: Request
    ) -> tuple[Verification, RowStats, list[bool]]:
        """The path that is accepted, and the statistics of the rows by which it was: processed ones where asked for.

        Last, for each drafted token of the path whether the text ends with it; empty where no criterion was asked yet.
        """
        kept = min(_TOP_KEPT, rows.shape[-1])
        if not request.processors and not request.rows_kept:
            stats = row_stats(rows, kept)
            greedy = greedy_tokens(rows, stats)
            return walk(tree, self.rule, lambda node: (rows[node], greedy[node]), self.choice), stats, []
        # As transformers does: in float32, and each processor and criterion once for every token, behind the tokens
        # before it; so a criterion is asked during the walk, and nothing is asked behind where it ends the text.
        raw, rows = rows, rows.to(sequence.ids.device, torch.float32, copy=True)
        chosen: dict[int, int] = {}
        ended = {0: False}

        def row_of(node: int) -> tuple[torch.Tensor, int]:
            if node not in chosen:
                path = tree.path(node)
                end = sequence.length + len(path) - 1
                sequence.ids[0, sequence.length : end] = sequence.ids.new_tensor(
                    [tree.tokens[step] for step in path[1:]]
                )
                ids = sequence.ids[:, :end]
                if node:
                    scores = _scores(request, [*sequence.rows["scores"], *(rows[step] for step in path[:-1])])
                    ended[node] = ended[path[-2]] or request.ends(sequence.row, ids, scores)
                if not ended[node]:
                    rows[node] = request.processed(sequence.row, ids, rows[node : node + 1])[0]
                one = rows[node : node + 1]
                chosen[node] = greedy_tokens(one, row_stats(one, min(2, rows.shape[-1])))[0]
            return rows[node], chosen[node]

        outcome = walk(tree, self.rule, row_of, self.choice)
        for name, source in (("scores", rows), ("logits", raw.float())):
            if name in request.rows_kept:
                sequence.rows[name] += [source[node].clone() for node in outcome.path]
        return outcome, row_stats(rows, kept), [ended[node] for node in outcome.path[1:]]

    def _commit(self, sequence: _Sequence, tokens: list[int], known: list[bool], request: Request) -> list[int]:
        """Take the verified tokens one by one, until a criterion ends the sequence.

        `known`: what the criteria said of the first tokens, as `_verify` gives it; of the others they are asked here.
        """
        for count, token in enumerate(tokens, 1):
            sequence.ids[0, sequence.length] = token
            sequence.length += 1
            sequence.context.append(token)
            sequence.tokens.append(token)
            if request.streamer is not None:
                request.streamer.put(torch.tensor([token]))
            if count <= len(known):
                ended = known[count - 1]
            else:
                scores = _scores(request, sequence.rows["scores"][: len(sequence.tokens)])
                ended = request.ends(sequence.row, sequence.ids[:, : sequence.length], scores)
            if ended:
                full = not sequence.remaining
                sequence.finish_reason = "eos" if token in request.eos else "length" if full else "stopped"
                for rows in sequence.rows.values():
                    del rows[len(sequence.tokens) :]
                return tokens[:count]
        return tokens

    def _propose(self, sequence: _Sequence, engine: TreeForward, stats: DecodeStats) -> Tree:
        # A path of d nodes commits d + 1 tokens: deeper ones than the budget allows would be thrown away.
        depth = sequence.remaining - 1
        tree = sequence.drafter.propose(sequence.context, sequence.nodes_asked, depth)
        if tree.tokens[0] != sequence.context[-1]:
            raise DraftcertError(
                f"the drafter's tree starts from token {tree.tokens[0]}, but the last committed token is "
                f"{sequence.context[-1]}"
            )
        if len(tree) > sequence.nodes_asked or max(tree.depths) > depth:
            raise DraftcertError(
                f"the drafter proposed {len(tree)} nodes to depth {max(tree.depths)}, but was asked for at most "
                f"{sequence.nodes_asked} to depth {depth}"
            )
        tree.check_vocabulary(engine.vocab_size)
        if self.latency is None:
            return tree
        if tree.probabilities is None:
            stats.ignored["latency"] = "the drafter gives its trees no probabilities"
            return tree
        # Nodes that are pruned cost the drafter time: of a size that was enough it is asked for the double at most.
        pruned = self.latency.prune(tree)
        sequence.nodes_asked = min(self.max_nodes, max(_FEWEST_ASKED, 2 * len(pruned)))
        return pruned


def _handed_to_generate(frame: Any) -> dict[str, Any]:
    """What `generate` was called with: from a function that decodes in its place, transformers keeps the streamer."""
    while frame is not None and not (frame.f_code.co_name == "generate" and "custom_generate" in frame.f_locals):
        frame = frame.f_back
    return dict(frame.f_locals) if frame is not None else {}


def _scores(request: Request, rows: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...] | None:
    """What a criterion is told of the rows `[vocab]` of a sequence's new tokens: nothing where they are not kept."""
    return tuple(row[None] for row in rows) if "scores" in request.rows_kept else None


def _beside(request: Request, tokens: Sequence[Sequence[int]]) -> torch.Tensor:
    """The given rows with their new tokens behind them."""
    return torch.cat([request.given, padded(tokens, request.pad).to(request.given)], dim=1)


def _stacked(rows: Sequence[Sequence[torch.Tensor]]) -> tuple[torch.Tensor, ...]:
    """Rows `[vocab]` of every sequence and token as one `[batch, vocab]` a token."""
    count, empty = max(map(len, rows)), torch.zeros_like(rows[0][0])
    return tuple(torch.stack([row[at] if at < len(row) else empty for row in rows]) for at in range(count))


def _observation(tree: Tree, path: tuple[int, ...], rows: RowStats) -> Observation:
    return Observation(tree, path, rows.top_ids.tolist(), top_probabilities(rows).tolist())
