"""`generate` of transformers with draft trees gives what it gives by greedy decoding, with every option there is.

Modelled on transformers' own tests of greedy and assisted generation (tests/generation/test_utils.py).
"""

import queue
from typing import Any

import pytest
import torch
import transformers
from transformers import LogitsProcessor, LogitsProcessorList, StoppingCriteria, StoppingCriteriaList
from transformers.generation.streamers import BaseStreamer

from draftcert.integrations.transformers import FOLDER, _learned, generate
from draftcert.runtime.trees.decoder import GreedyTreeDecoder
from draftcert.theory import DraftcertError
from tests.runtime.trees.test_decoder import Oracle

PROMPT = [5, 17, 3, 17, 3, 42]
BATCH = {
    "input_ids": torch.tensor([[5, 17, 3, 17, 3, 42], [0, 0, 0, 7, 8, 7], [0, 0, 0, 0, 0, 9]]),
    "attention_mask": torch.tensor([[1] * 6, [0, 0, 0, 1, 1, 1], [0] * 5 + [1]]),
}
ONE = {"input_ids": torch.tensor([PROMPT])}


def greedy(model: Any, **options: Any) -> Any:
    return model.generate(**{"max_new_tokens": 24, "do_sample": False, "pad_token_id": 0} | options)


def by_trees(model: Any, **options: Any) -> Any:
    return greedy(model, custom_generate=generate, **options)


def ends(model: Any) -> list[int]:
    """Tokens that come early, and in the middle, of the greedy output."""
    new = greedy(model, **ONE)[0, len(PROMPT) :].tolist()
    return [new[4], next(token for token in new[8:] if token not in new[:8])]


OPTIONS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "max_length": {"max_length": 17, "max_new_tokens": None},
    "repetition": {"repetition_penalty": 1.3},
    "repetition below 1": {"repetition_penalty": 0.8},
    "n-grams": {"no_repeat_ngram_size": 2},
    "suppressed": {"suppress_tokens": list(range(1, 40))},
    "suppressed at first": {"begin_suppress_tokens": list(range(0, 50, 2))},
    "bad words": {"bad_words_ids": [[token] for token in range(20, 61)] + [[3, 17]]},
    "biased": {"sequence_bias": [[[7], 5.0], [[3, 5], -4.0]]},
    "forced end": {"forced_eos_token_id": 9},
    "least": {"min_new_tokens": 9, "eos_token_id": list(range(0, 61, 3))},
    "least length": {"min_length": 12, "eos_token_id": list(range(0, 61, 3))},
    "decaying": {"exponential_decay_length_penalty": (2, 1.5), "eos_token_id": 11},
    "renormalised": {"renormalize_logits": True, "repetition_penalty": 1.2},
    "watermark": {"watermarking_config": transformers.WatermarkingConfig(bias=4.0)},
    "several": {"repetition_penalty": 1.2, "no_repeat_ngram_size": 3, "min_new_tokens": 5, "eos_token_id": [4, 8]},
}


@pytest.mark.parametrize("inputs", [ONE, BATCH], ids=["one", "batch"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_output_is_that_of_greedy_decoding(model: Any, options: dict[str, Any], inputs: dict[str, Any]) -> None:
    options = {"max_new_tokens": 24} | options
    expected = greedy(model, **inputs, **options)
    assert torch.equal(by_trees(model, **inputs, **options), expected)
    assert torch.equal(GreedyTreeDecoder(model).generate(inputs, **options).sequences, expected)


@pytest.mark.parametrize(
    "form", [int, lambda end: [end, 60], lambda end: torch.tensor(end), lambda end: torch.tensor([end])]
)
def test_an_end_of_sequence_in_every_form(model: Any, form: Any) -> None:
    for end in ends(model):
        for inputs in (ONE, BATCH):
            expected = greedy(model, **inputs, eos_token_id=form(end))
            assert torch.equal(by_trees(model, **inputs, eos_token_id=form(end)), expected)
        found = GreedyTreeDecoder(model).generate(PROMPT, 24, eos_token_id=form(end))
        assert found.sequences.tolist() == greedy(model, **ONE, eos_token_id=form(end)).tolist()
        assert found.finish_reasons == ["eos"]


def test_a_generation_configuration(model: Any) -> None:
    configuration = transformers.GenerationConfig(max_new_tokens=9, repetition_penalty=1.4, pad_token_id=0)
    expected = model.generate(**ONE, generation_config=configuration)
    assert torch.equal(model.generate(**ONE, generation_config=configuration, custom_generate=generate), expected)
    assert torch.equal(GreedyTreeDecoder(model).generate(ONE, generation_config=configuration).sequences, expected)


def test_the_models_own_configuration_counts(model: Any) -> None:
    before = model.generation_config
    model.generation_config = transformers.GenerationConfig(repetition_penalty=1.5, eos_token_id=3, pad_token_id=0)
    try:
        expected = greedy(model, **ONE)
        assert torch.equal(GreedyTreeDecoder(model).generate(PROMPT, 24).sequences, expected)
    finally:
        model.generation_config = before
    assert not torch.equal(greedy(model, **ONE), expected)


class Counting(LogitsProcessor, StoppingCriteria):
    """Remembers what it was called with; of a state, as users' own processors and criteria may be."""

    def __init__(self, stop_at: int = 99):
        self.calls: list[tuple[int, ...]] = []
        self.told: list[list[int]] = []
        self.stop_at = stop_at

    # Without the `**kwargs` of criteria: transformers refuses a processor with parameters that it cannot fill.
    def __call__(self, input_ids: torch.Tensor, scores: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.calls.append(tuple(input_ids[0].tolist()))
        if scores is None or isinstance(scores, tuple):
            self.told.append([int(row.argmax()) for row in scores or ()])
            return torch.tensor([len(self.calls) >= self.stop_at] * len(input_ids))
        scores[:, len(self.calls) % 61] += 3.0
        return scores


@pytest.mark.parametrize("stop_at", [99, 1, 7])
@pytest.mark.parametrize("kept", [{}, {"return_dict_in_generate": True, "output_scores": True}], ids=["ids", "scores"])
def test_processors_and_criteria_see_each_token_once_in_order(model: Any, stop_at: int, kept: dict[str, Any]) -> None:
    known = greedy(model, **ONE, logits_processor=LogitsProcessorList([Counting()]))[0, len(PROMPT) :].tolist()
    mine, theirs = [(Counting(), Counting(stop_at)) for _ in range(2)]
    asked = ((by_trees, {"drafter": Oracle(known)}, mine), (greedy, {}, theirs))
    outputs = [
        run(
            model,
            **ONE,
            **more,
            **kept,
            logits_processor=LogitsProcessorList([processor]),
            stopping_criteria=StoppingCriteriaList([criterion]),
        )
        for run, more, (processor, criterion) in asked
    ]
    assert torch.equal(*(each.sequences if kept else each for each in outputs))
    assert [each.calls for each in mine] == [each.calls for each in theirs]
    assert [each.told for each in mine] == [each.told for each in theirs]


def test_stop_strings(model: Any, tokenizer: Any) -> None:
    words = [tokenizer.decode([end]) for end in ends(model)]
    expected = greedy(model, **ONE, stop_strings=words, tokenizer=tokenizer)
    assert expected.shape[1] < len(PROMPT) + 24
    found = GreedyTreeDecoder(model).generate(PROMPT, 24, stop_strings=words, tokenizer=tokenizer)
    assert found.sequences.tolist() == expected.tolist()
    assert found.finish_reasons == ["stopped"]
    folder = greedy(
        model, **ONE, stop_strings=words, tokenizer=tokenizer, custom_generate=FOLDER, trust_remote_code=True
    )
    assert torch.equal(folder, expected)


class Heard(BaseStreamer):
    def __init__(self) -> None:
        self.heard: queue.Queue[Any] = queue.Queue()

    def put(self, value: torch.Tensor) -> None:
        self.heard.put(value.tolist())

    def end(self) -> None:
        self.heard.put("end")

    @property
    def everything(self) -> list[Any]:
        return list(self.heard.queue)


def test_a_streamer_hears_what_it_hears_of_greedy_decoding(model: Any) -> None:
    theirs, mine, own, folder = (Heard() for _ in range(4))
    greedy(model, **ONE, streamer=theirs)
    by_trees(model, **ONE, streamer=mine)
    GreedyTreeDecoder(model).generate(ONE, 24, streamer=own)
    greedy(model, **ONE, streamer=folder, custom_generate=FOLDER, trust_remote_code=True)
    assert theirs.everything == mine.everything == own.everything == folder.everything
    assert theirs.everything[-1] == "end"


@pytest.mark.parametrize("inputs", [ONE, BATCH], ids=["one", "batch"])
def test_a_dictionary_is_returned(model: Any, inputs: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"return_dict_in_generate": True, "output_scores": True, "output_logits": True}
    asked |= {"repetition_penalty": 1.3}
    theirs, mine = (run(model, **inputs, **asked) for run in (greedy, by_trees))
    assert type(mine) is type(theirs)
    assert torch.equal(mine.sequences, theirs.sequences)
    for name in ("scores", "logits"):
        assert len(mine[name]) == len(theirs[name]) == 24
        for found, expected in zip(mine[name], theirs[name], strict=True):
            assert torch.allclose(found, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("inputs", [ONE, BATCH], ids=["one", "batch"])
@pytest.mark.parametrize("first", [greedy, by_trees], ids=["greedy", "trees"])
@pytest.mark.parametrize("second", [greedy, by_trees], ids=["greedy", "trees"])
def test_the_cache_serves_the_next_turn(model: Any, inputs: dict[str, Any], first: Any, second: Any) -> None:
    turn = first(model, **inputs, return_dict_in_generate=True, max_new_tokens=9)
    more = torch.tensor([[8, 9, 10]]).expand(len(turn.sequences), -1)
    ids = torch.cat([turn.sequences, more], dim=1)
    mask = torch.ones_like(ids)
    if "attention_mask" in inputs:
        mask[:, : inputs["attention_mask"].shape[1]] = inputs["attention_mask"]
    expected = greedy(model, input_ids=ids, attention_mask=mask)
    cache = turn["cache"] if "cache" in turn else turn["past_key_values"]
    assert cache.get_seq_length() == turn.sequences.shape[1] - 1
    assert torch.equal(second(model, input_ids=ids, attention_mask=mask, past_key_values=cache), expected)
    assert cache.get_seq_length() == expected.shape[1] - 1


def test_a_cache_of_windows_serves_too(tiny_window: Any) -> None:
    for run in (greedy, by_trees):
        turn = by_trees(tiny_window, **ONE, return_dict_in_generate=True)
        ids = torch.cat([turn.sequences, torch.tensor([[8, 9, 10]])], dim=1)
        expected = greedy(tiny_window, input_ids=ids)
        cache = turn["cache"] if "cache" in turn else turn["past_key_values"]
        assert torch.equal(run(tiny_window, input_ids=ids, past_key_values=cache), expected)


@pytest.fixture(scope="module")
def tiny_window() -> Any:
    from tests.runtime.conftest import _tiny

    return _tiny("gemma3-window")


REFUSED: dict[str, dict[str, Any]] = {
    "do_sample": {"do_sample": True},
    "num_beams": {"num_beams": 2},
    "num_return_sequences": {"num_return_sequences": 2, "num_beams": 2},
    "output_attentions": {"output_attentions": True, "return_dict_in_generate": True},
    "output_hidden_states": {"output_hidden_states": True, "return_dict_in_generate": True},
    "prompt_lookup_num_tokens": {"prompt_lookup_num_tokens": 3},
    "cache_implementation": {"cache_implementation": "static"},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_honoured_is_refused_by_name(model: Any, name: str) -> None:
    with pytest.raises(DraftcertError, match=name):
        by_trees(model, **ONE, **REFUSED[name])
    with pytest.raises(DraftcertError, match=name):
        GreedyTreeDecoder(model).generate(ONE, 8, **REFUSED[name])


def test_other_inputs_are_refused_by_name(model: Any) -> None:
    embeddings = model.get_input_embeddings()(ONE["input_ids"])
    with pytest.raises(DraftcertError, match="embeddings"):
        by_trees(model, inputs_embeds=embeddings)
    with pytest.raises(DraftcertError, match="assistant_model"):
        by_trees(model, **ONE, assistant_model=model)
    with pytest.raises(DraftcertError, match="pad on the left"):
        by_trees(model, input_ids=BATCH["input_ids"].flip(1), attention_mask=BATCH["attention_mask"].flip(1))
    with pytest.raises(DraftcertError, match="position_ids"):
        by_trees(model, **ONE, position_ids=torch.arange(6)[None] + 3)
    with pytest.raises(DraftcertError, match=r"Heard.*3 prompts"):
        by_trees(model, **BATCH, streamer=Heard())
    with pytest.raises(DraftcertError, match=r"Counting.*3 prompts"):
        by_trees(model, **BATCH, logits_processor=LogitsProcessorList([Counting()]))
    with pytest.raises(DraftcertError, match="no_such_option"):
        GreedyTreeDecoder(model).generate(PROMPT, 8, no_such_option=3)


def test_drafters_rules_and_sizes_are_taken(model: Any) -> None:
    expected = greedy(model, **ONE)
    for options in ({"drafter": "lookup"}, {"drafter": "none"}, {"drafter": "layers:0"}, {"max_nodes": 3}):
        assert torch.equal(by_trees(model, **ONE, **options), expected)
    relaxed = by_trees(model, **ONE, rule="absolute(0)")
    assert relaxed.shape == expected.shape
    decoder = GreedyTreeDecoder(model)
    assert torch.equal(greedy(model, **ONE, custom_generate=decoder.custom_generate), expected)
    with pytest.raises(DraftcertError, match="another model"):
        greedy(
            transformers.AutoModelForCausalLM.from_config(model.config), custom_generate=decoder.custom_generate, **ONE
        )


def test_a_masked_token_within_a_prompt_is_as_if_it_were_not_there(model: Any) -> None:
    holes = {"input_ids": torch.tensor([[5, 17, 60, 3, 42]]), "attention_mask": torch.tensor([[1, 1, 0, 1, 1]])}
    assert torch.equal(by_trees(model, **holes), greedy(model, **holes))


def test_learning_goes_on_from_call_to_call(model: Any) -> None:
    _learned.pop(model, None)
    by_trees(model, **ONE)
    (table, _) = vars(_learned[model])["members"]
    known = len(table.table)
    by_trees(model, input_ids=torch.tensor([[1, 2, 3]]))
    assert 0 < known < len(table.table)


def test_a_cache_of_the_users_is_filled(model: Any) -> None:
    cache = transformers.DynamicCache(config=model.config)
    first = by_trees(model, **ONE, past_key_values=cache)
    assert cache.get_seq_length() == first.shape[1] - 1
    assert torch.equal(greedy(model, input_ids=first, past_key_values=cache), greedy(model, input_ids=first))
    with pytest.raises(DraftcertError, match="StaticCache"):
        by_trees(model, **ONE, past_key_values=transformers.StaticCache(config=model.config, max_cache_len=64))
    with pytest.raises(DraftcertError, match="give the whole text"):
        by_trees(model, **ONE, past_key_values=cache)
