"""The decoder on tiny random models: exact output, budget, stops, counts."""

import copy
import gc
import random
import resource
import sys
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from draftcert.runtime.trees.decoder import GreedyTreeDecoder
from draftcert.runtime.trees.drafters import Drafter, Observation
from draftcert.runtime.trees.forward import TreeForward
from draftcert.runtime.trees.trace import Step
from draftcert.runtime.trees.tree import Tree
from draftcert.theory import DraftcertError, parse_rule

PROMPT = [5, 17, 3, 17, 3, 42]


class Oracle:
    """A drafter that knows the right continuation and hides it among wrong branches."""

    def __init__(self, answer: Sequence[int], vocabulary: int = 61, seed: int = 0):
        self.answer, self.vocabulary, self.random = list(answer), vocabulary, random.Random(seed)
        self.start = 0

    def begin(self, prompt: Sequence[int]) -> Drafter:
        own = copy.copy(self)
        own.start, own.random = len(prompt), random.Random(self.random.random())
        return own

    def propose(self, context: Sequence[int], max_nodes: int, max_depth: int) -> Tree:
        right = self.answer[len(context) - self.start :]
        tokens, parents, depths, taken = [context[-1]], [-1], [0], {}
        on_path, along = 0, 0
        while len(tokens) < max_nodes:
            if self.random.random() < 0.4 and along < min(max_depth, len(right)):
                parent, token = on_path, right[along]
                fresh = token not in taken.setdefault(parent, {})
                taken[parent].setdefault(token, len(tokens))
                on_path, along = taken[parent][token], along + 1
                if not fresh:
                    continue
            else:
                parent, token = self.random.randrange(len(tokens)), self.random.randrange(self.vocabulary)
                if depths[parent] >= max_depth or token in taken.setdefault(parent, {}):
                    if max_depth == 0:
                        break
                    continue
                taken[parent][token] = len(tokens)
            tokens.append(token)
            parents.append(parent)
            depths.append(depths[parent] + 1)
        return Tree(tuple(tokens), tuple(parents))

    def observe(self, context: Sequence[int], observation: Observation) -> None:
        pass


def test_every_architecture_gives_its_own_greedy_output(architecture: str, tiny: Any, hf_greedy: Any) -> None:
    model = tiny(architecture)
    expected = hf_greedy(model, PROMPT, 40)
    recycled = GreedyTreeDecoder(model, max_nodes=12).generate(PROMPT, max_new_tokens=40)
    assert recycled.tokens == [expected]
    guided = GreedyTreeDecoder(model, Oracle(expected), max_nodes=12).generate(PROMPT, max_new_tokens=40)
    assert guided.tokens == [expected]
    assert guided.stats.accepted > 20  # the oracle's long paths were really walked
    assert any(b != a + 1 for step in guided.steps for a, b in zip(step.path, step.path[1:], strict=False))


@pytest.mark.parametrize("new", [0, 1, 2, 3, 17])
def test_budget_is_exact(new: int, tiny: Any, hf_greedy: Any) -> None:
    model = tiny()
    answer = hf_greedy(model, PROMPT, 30)
    result = GreedyTreeDecoder(model, Oracle(answer)).generate(PROMPT, max_new_tokens=new)
    assert result.tokens == [answer[:new]]
    assert result.sequences.tolist() == [PROMPT + answer[:new]]
    assert result.finish_reasons == ["length"]


def test_first_end_of_sequence_stops_wherever_it_comes_from(tiny: Any, hf_greedy: Any) -> None:
    model = tiny()
    answer = hf_greedy(model, PROMPT, 30)
    for place, eos in enumerate(answer):
        if eos in answer[:place]:
            continue
        result = GreedyTreeDecoder(model, Oracle(answer, seed=place)).generate(PROMPT, 30, eos_token_id=[eos, 60])
        first = next(index for index, token in enumerate(answer) if token in (eos, 60))
        assert result.tokens == [answer[: first + 1]]
        assert result.finish_reasons == ["eos"]
        check_counts(result.stats, result.steps)


def check_counts(stats: Any, steps: list[Step]) -> None:
    assert stats.target_passes == len(steps)
    assert stats.new_tokens == sum(len(step.tokens) for step in steps)
    assert stats.new_tokens == stats.target_passes + stats.accepted - stats.truncated
    assert stats.proposed == sum(len(step.tree) - 1 for step in steps)
    assert stats.acceptance_rate is None or 0 <= stats.acceptance_rate <= 1
    assert all(0 <= a <= p for a, p in zip(stats.accepted_at_depth, stats.proposed_at_depth, strict=True))
    assert sum(stats.accepted_at_depth) == stats.accepted
    assert 0 <= stats.overhead <= 1


def test_steps_are_the_output(tiny: Any, hf_greedy: Any) -> None:
    model = tiny()
    answer = hf_greedy(model, PROMPT, 30)
    seen: list[Step] = []
    result = GreedyTreeDecoder(model, Oracle(answer)).generate(PROMPT, 30, on_step=seen.append)
    assert seen == result.steps
    assert [token for step in seen for token in step.tokens] == result.tokens[0]
    assert [step.prefix for step in seen] == [
        len(PROMPT) - 1 + sum(len(s.tokens) for s in seen[:i]) for i in range(len(seen))
    ]
    check_counts(result.stats, result.steps)


def test_a_batch_of_ragged_prompts_equals_single_runs(architecture: str, tiny: Any, hf_greedy: Any) -> None:
    model = tiny(architecture)
    prompts = [PROMPT, [7], [1, 2, 3] * 5, [9, 9], [60, 1, 8, 4]]
    expected = [hf_greedy(model, prompt, 20) for prompt in prompts]
    eos = expected[2][7]
    result = GreedyTreeDecoder(model, max_nodes=7).generate(prompts, max_new_tokens=20, eos_token_id=eos)
    for tokens, full in zip(result.tokens, expected, strict=True):
        end = full.index(eos) + 1 if eos in full else 20
        assert tokens == full[:end]
    check = result.sequences[1].tolist()
    assert check[: 1 + len(result.tokens[1])] == [7, *result.tokens[1]]


def test_interrupt_leaves_what_was_committed(tiny: Any, hf_greedy: Any) -> None:
    model = tiny()
    answer = hf_greedy(model, PROMPT, 30)

    def stop(step: Step) -> None:
        if step.prefix > 12:
            raise KeyboardInterrupt

    result = GreedyTreeDecoder(model, Oracle(answer), max_nodes=8).generate(PROMPT, 30, on_step=stop)
    assert result.finish_reasons == ["interrupted"]
    assert 0 < len(result.tokens[0]) < 30
    assert result.tokens[0] == answer[: len(result.tokens[0])]
    check_counts(result.stats, result.steps)


@pytest.mark.parametrize(
    ("prompt", "arguments", "message"),
    [
        ([], {}, "prompt 0 is empty"),
        ([[1], []], {}, "prompt 1 is empty"),
        ([61], {}, "token 61, but the target's vocabulary is 0 to 60"),
        ([-1], {}, "token -1"),
        ([1], {"max_new_tokens": -1}, "max_new_tokens = -1"),
        ([1], {"max_new_tokens": 257}, "256 positions"),
        (torch.zeros(1, 2), {}, "must be integers"),
    ],
)
def test_bad_input_is_refused(prompt: Any, arguments: dict[str, Any], message: str, tiny: Any) -> None:
    with pytest.raises(DraftcertError, match=message):
        GreedyTreeDecoder(tiny()).generate(prompt, **arguments)


class Fixed(Oracle):
    """A drafter that proposes one given tree."""

    def __init__(self, tree: Tree):
        super().__init__(())
        self.tree = tree

    def propose(self, context: Sequence[int], max_nodes: int, max_depth: int) -> Tree:
        return self.tree


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (Tree((60,), (-1,)), "starts from token 60"),
        (Tree((60, *range(20)), (-1, *[0] * 20)), "starts from token 60"),
    ],
)
def test_broken_drafters_are_refused(tree: Tree, message: str, tiny: Any) -> None:
    with pytest.raises(DraftcertError, match=message):
        GreedyTreeDecoder(tiny(), Fixed(tree)).generate([1], max_new_tokens=4, eos_token_id=())


def test_models_that_cannot_take_drafts_back_are_refused() -> None:
    import transformers

    config = transformers.MambaConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1, state_size=2)
    with pytest.raises(DraftcertError, match="Mamba"):
        GreedyTreeDecoder(transformers.AutoModelForCausalLM.from_config(config))
    bloom = transformers.BloomConfig(vocab_size=11, hidden_size=8, n_layer=1, n_head=2)
    with pytest.raises(DraftcertError, match="takes no position_ids"):
        GreedyTreeDecoder(transformers.AutoModelForCausalLM.from_config(bloom))


def test_nan_logits_raise(tiny: Any) -> None:
    model = tiny("llama", 7)
    with torch.no_grad():
        model.lm_head.weight[3] = torch.nan
    with pytest.raises(DraftcertError, match="the logit of token 3 is nan"):
        GreedyTreeDecoder(model).generate(PROMPT, 4)


def without_cache(model: Any, prompt: list[int], new: int) -> list[int]:
    """Greedy decoding as its definition says: the whole text anew for every token."""
    text = list(prompt)
    with torch.inference_mode():
        for _ in range(new):
            text.append(int(model(input_ids=torch.tensor([text]), use_cache=False).logits[0, -1].argmax()))
    return text[len(prompt) :]


def test_soak_of_two_thousand_steps(tiny: Any) -> None:
    model = tiny("llama", 3)
    steps, seed = 0, 0
    while steps < 2000:
        source = random.Random(seed)
        prompt = [source.randrange(61) for _ in range(source.randint(1, 8))]
        answer = without_cache(model, prompt, 120)
        # Branches drawn at random, the right one among them only now and then; each sequence draws its own.
        drafter = Oracle([t if source.random() < 0.8 else (t + 1) % 61 for t in answer], seed=seed)
        seen: list[Step] = []
        decoder = GreedyTreeDecoder(model, drafter, max_nodes=source.randint(2, 12))
        result = decoder.generate([prompt] * 10, 120, (), on_step=seen.append, keep_steps=False)
        assert result.tokens == [answer] * 10
        assert result.steps == []
        steps += len(seen)
        seed += 1


def test_memory_is_flat_over_ten_thousand_steps(tiny: Any) -> None:
    decoder = GreedyTreeDecoder(tiny(), max_nodes=4)

    def memory_after(steps: int) -> tuple[int, int]:
        """Python's allocated blocks and the process's peak of kilobytes after at least so many more steps."""
        done = 0
        while done < steps:
            prompts = [[first, 5, 17] for first in range(40)]
            stats = decoder.generate(prompts, 60, eos_token_id=(), keep_steps=False).stats
            done += stats.new_tokens - stats.accepted + stats.truncated  # every step commits one token of the target's
        gc.collect()
        return sys.getallocatedblocks(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    memory_after(1000)  # the tables fill with the contexts that occur
    before, after = memory_after(1), memory_after(10_000)
    # A step kept alive is hundreds of blocks, and its rows alone four kilobytes.
    assert after[0] - before[0] < 10_000
    assert after[1] - before[1] < 10_000


def test_relaxed_rules_walk_further(tiny: Any) -> None:
    model = tiny("llama", 3)
    strict = GreedyTreeDecoder(model, Fixed(Tree((0,), (-1,))))
    assert str(strict.rule) == "strict_greedy"
    everything = GreedyTreeDecoder(model, rule=parse_rule("absolute(0)"), max_nodes=8)
    result = everything.generate(PROMPT, 30, eos_token_id=())
    assert len(result.tokens[0]) == 30
    # Every child is accepted, so that every path ends in a leaf.
    assert all(not step.tree.children[step.path[-1]] for step in result.steps)
    assert result.stats.accepted > 0


def test_rules_are_given_as_records_or_texts(fork: Any, tiny: Any) -> None:
    model = tiny("llama", 3)
    assert GreedyTreeDecoder(model, rule="top_m(2)").rule == parse_rule("top_m(2)")
    # Strict at 0.999999 the fork accepts what is tied with the argmax only, as strict greedy does of untied logits.
    result = GreedyTreeDecoder(model, rule=fork("0.999999"), max_nodes=8).generate(PROMPT, 30, eos_token_id=())
    assert result.tokens == GreedyTreeDecoder(model, max_nodes=8).generate(PROMPT, 30, eos_token_id=()).tokens
    with pytest.raises(DraftcertError, match="no rule is called"):
        GreedyTreeDecoder(model, rule="top(2)")


def test_fixed_shapes_give_the_same_output_by_few_shapes(architecture: str, tiny: Any, hf_greedy: Any) -> None:
    model = tiny(architecture)
    prompts = [PROMPT, [7], [1, 2, 3] * 5]
    shapes = set()

    def record(module: Any, arguments: Any, options: dict[str, Any]) -> None:
        masks = options.get("attention_mask")
        for mask in masks.values() if isinstance(masks, dict) else [masks]:
            if mask is not None:
                shapes.add((tuple(options["input_ids"].shape), tuple(mask.shape)))

    decoder = GreedyTreeDecoder(model, max_nodes=8, fixed_shapes=True)
    hook = model.register_forward_pre_hook(record, with_kwargs=True)
    try:
        decoder.generate(prompts, 30, eos_token_id=())  # the model was hooked, so that it is tried anew
        shapes.clear()
        result = decoder.generate(prompts, 30, eos_token_id=())
    finally:
        hook.remove()
    assert result.tokens == [hf_greedy(model, prompt, 30) for prompt in prompts]
    assert shapes
    # Sequences that are done leave the batch.
    assert shapes <= {((batch, n), (batch, 1, n, 64)) for batch in (1, 2, 3) for n in (1, 2, 4, 8)}
    # The next sequences of that number have the same cache, whatever it still holds of the last ones.
    other = [[9, 9], [60, 1, 8, 4], [2]]
    assert decoder.generate(other, 30, eos_token_id=()).tokens == [hf_greedy(model, prompt, 30) for prompt in other]
    forward = TreeForward(model, fixed_shapes=True)
    assert forward.new_cache([2, 4, 1], 30) is forward.new_cache([1, 1, 1], 30)


def test_a_pass_of_fixed_shapes_reads_nothing_on_the_host(architecture: str, tiny: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    forward = TreeForward(tiny(architecture), fixed_shapes=True)
    cache = forward.new_cache([3], 20)
    with torch.inference_mode():
        forward.prefill([[1, 2, 3]], cache)
    cache.lengths[0] = 3
    # Fake tensors have shapes but no numbers: whatever asks for one, as a copy to the host would, raises.
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad():
        whole = {kind: torch.ones(1, 1, 4, cache.capacity, dtype=torch.bool) for kind in forward._seen}
        inputs = {name: torch.arange(4)[None] for name in ("tokens", "positions", "places")} | whole
        for layer in cache.filled:
            layer.buffers = [torch.empty(buffer.shape) for buffer in layer.buffers]
        assert forward.fixed_pass(inputs, cache).shape == (1, 4, 61)
        assert mode is not None
