"""What may be given to a decoder, in every form; threads; training mode."""

import copy
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from draftcert.runtime.models import LoadedModel
from draftcert.runtime.trees.decoder import GreedyTreeDecoder
from draftcert.runtime.trees.drafters import Assistant, Combined, TokenRecycling
from draftcert.theory import DraftcertError

PROMPT = [5, 17, 3, 17, 3, 42]


@pytest.mark.parametrize(
    "given",
    [
        PROMPT,
        tuple(PROMPT),
        [PROMPT],
        np.array(PROMPT),
        np.array([PROMPT], dtype=np.uint8),
        torch.tensor(PROMPT, dtype=torch.int32),
        torch.tensor([PROMPT]),
        [torch.tensor(PROMPT)],
        [np.int64(token) for token in PROMPT],
        [torch.tensor(token) for token in PROMPT],
        {"input_ids": PROMPT},
        {"input_ids": [PROMPT], "attention_mask": [[1] * 6]},
        transformers.BatchEncoding({"input_ids": torch.tensor([PROMPT]), "attention_mask": torch.ones(1, 6)}),
        transformers.BatchEncoding({"input_ids": PROMPT, "attention_mask": [1] * 6}),
        {"input_ids": [[60, 60, *PROMPT]], "attention_mask": np.array([[0, 0] + [1] * 6])},
    ],
    ids=repr,
)
def test_prompts_in_every_form(given: Any, tiny: Any, hf_greedy: Any) -> None:
    assert GreedyTreeDecoder(tiny()).generate(given, 12).tokens == [hf_greedy(tiny(), PROMPT, 12)]


@pytest.mark.parametrize(("many", "end"), [(np.int64(5), np.int64(60)), (torch.tensor(5), torch.tensor(60)), (5, 60)])
def test_numbers_in_every_form(many: Any, end: Any, tiny: Any) -> None:
    decoder = GreedyTreeDecoder(tiny(), max_nodes=many)
    assert decoder.generate(PROMPT, many, eos_token_id=end).tokens == decoder.generate(PROMPT, 5, [60]).tokens


def test_without_a_budget_as_much_as_is_usual_or_fits(tiny: Any, hf_greedy: Any) -> None:
    decoder = GreedyTreeDecoder(tiny())
    assert decoder.generate(PROMPT, None).tokens == [hf_greedy(tiny(), PROMPT, 128)]
    long = [random.Random(0).randrange(61) for _ in range(250)]
    for prompt, budget, new in ((long, None, 7), (long, 7, 7), ([1], 256, 256), (long[:128] * 2, None, 1)):
        assert decoder.generate(prompt, budget).tokens == [hf_greedy(tiny(), prompt, new)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input_ids": "text"}, "as token ids, not as text"),
        ({"input_ids": 5}, "not int"),
        ({"input_ids": None}, "not NoneType"),
        ({"input_ids": [1, [2]]}, "mix tokens and prompts"),
        ({"input_ids": [1.5]}, "prompt 0 has 1.5"),
        ({"input_ids": np.array([1.0])}, "prompt 0 has 1.0"),
        ({"input_ids": [True]}, "prompt 0 has True"),
        ({"input_ids": ["w1"]}, "prompt 0 has 'w1'"),
        ({"input_ids": {}}, "no input_ids"),
        ({"input_ids": torch.zeros(1, 1, 1, dtype=torch.long)}, "prompt 0 has"),
        ({"max_new_tokens": 3.7}, "max_new_tokens = 3.7"),
        ({"max_new_tokens": True}, "max_new_tokens = True"),
        ({"max_new_tokens": "3"}, "max_new_tokens = '3'"),
        ({"max_new_tokens": torch.tensor(2.0)}, "max_new_tokens = tensor"),
        ({"eos_token_id": 1.5}, "eos_token_id = 1.5"),
        ({"eos_token_id": [2, -1]}, "eos_token_id = -1"),
        ({"max_new_tokens": None, "max_length": "long"}, "max_length"),
        ({"attention_mask": torch.ones(1, 3)}, r"attention_mask is \[1, 3\]"),
        ({"attention_mask": torch.ones(2, 6)}, r"attention_mask is \[2, 6\]"),
        ({"attention_mask": torch.zeros(1, 1, 6, 6)}, r"attention_mask is \[1, 1, 6, 6\]"),
        ({"input_ids": {"input_ids": PROMPT, "attention_mask": "all"}}, "cannot read attention_mask"),
        ({"stop_strings": ["w3"]}, "tokenizer"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_what_means_nothing_is_refused_in_one_line(arguments: dict[str, Any], message: str, tiny: Any) -> None:
    with pytest.raises(DraftcertError, match=message) as refused:
        GreedyTreeDecoder(tiny()).generate(**{"input_ids": PROMPT, "max_new_tokens": 4} | arguments)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_nodes": 2.5}, "max_nodes = 2.5"),
        ({"max_nodes": 0}, "max_nodes = 0"),
        ({"max_nodes": 10**12}, "max_nodes = 1000000000000: give a whole number from 1 to 4096"),
        ({"drafter": 3}, "is a name: 3 is neither"),
        ({"drafter": "recycling:later"}, "recycling takes"),
        ({"drafter": "smollm2"}, "as load_model returns it"),
        ({"rule": 3}, "rule"),
        ({"rule": "greed"}, "no rule is called"),
        ({"latency": "guessed"}, "latency = 'guessed'"),
        ({"choice": "best"}, "no walk is called 'best'"),
    ],
)
def test_decoders_that_cannot_be_made(arguments: dict[str, Any], message: str, tiny: Any) -> None:
    with pytest.raises(DraftcertError, match=message):
        GreedyTreeDecoder(tiny(), **arguments)
    with pytest.raises(DraftcertError, match="causal language model"):
        GreedyTreeDecoder(arguments)


def test_drafters_and_rules_by_name(tiny: Any, hf_greedy: Any) -> None:
    for name in ("none", "lookup", "recycling+lookup", "layers:0"):
        assert GreedyTreeDecoder(tiny(), name).generate(PROMPT, 12).tokens == [hf_greedy(tiny(), PROMPT, 12)]


def test_a_drafter_with_fewer_positions_proposes_nothing_beyond_them(tiny: Any, hf_greedy: Any) -> None:
    for kind in ("gpt2", "llama"):
        config = copy.deepcopy(tiny(kind).config)
        config.max_position_embeddings = 16
        short = transformers.AutoModelForCausalLM.from_config(config)
        decoder = GreedyTreeDecoder(tiny(kind), Assistant(short, confidence=0.0))
        steps = decoder.generate(PROMPT, 30).steps
        assert [token for step in steps for token in step.tokens] == hf_greedy(tiny(kind), PROMPT, 30)
        assert all(step.prefix + 1 + max(step.tree.depths) <= 16 for step in steps if len(step.tree) > 1)
        assert all(len(step.tree) == 1 for step in steps if step.prefix >= 15)


def test_a_drafter_whose_ids_mean_other_tokens_is_refused(tiny: Any) -> None:
    class Words:
        def __init__(self, *words: str):
            self.words = words

        def get_vocab(self) -> dict[str, int]:
            return {word: number for number, word in enumerate(self.words)}

    target = LoadedModel(tiny(), Words("a", "b", "c"), "target")
    other = LoadedModel(tiny("llama", 1), Words("a", "c", "b"), "other")
    for drafter in (Assistant(other), Combined(TokenRecycling(), Assistant(other))):
        with pytest.raises(DraftcertError, match="different vocabularies: token 'b'"):
            GreedyTreeDecoder(target, drafter)
    GreedyTreeDecoder(target, Assistant(LoadedModel(other.model, target.tokenizer, "same")))


def test_the_training_mode_is_left_as_it_was_found(tiny: Any, hf_greedy: Any) -> None:
    model = copy.deepcopy(tiny("gpt2"))
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.5
    model.train()
    model.transformer.h[0].eval()
    before = [module.training for module in model.modules()]
    assert GreedyTreeDecoder(model).generate(PROMPT, 20).tokens == [hf_greedy(tiny("gpt2"), PROMPT, 20)]
    assert [module.training for module in model.modules()] == before


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_a_thousand_generations_of_four_threads_are_those_of_one(kind: str, tiny: Any) -> None:
    model = tiny(kind, 3)
    source = random.Random(0)
    prompts = [[source.randrange(61) for _ in range(source.randint(1, 9))] for _ in range(40)]
    decoder = GreedyTreeDecoder(model, max_nodes=6)
    alone = [decoder.generate(prompt, 6, ()).tokens for prompt in prompts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda prompt: decoder.generate(prompt, 6, ()).tokens, prompts * 13))
    assert together == alone * 13
    assert len(decoder._idle) <= 5
