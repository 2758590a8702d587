"""Adapters of engines that need a GPU, against stand-ins written from what the engines publish.

SGLang 0.5.23: `SpeculativeAlgorithm.register`, `CustomSpecAlgo` and what `NGRAMWorker` asks of its corpus. TensorRT-LLM
1.2: `Drafter` and `UserProvidedDecodingConfig`. The stand-ins verify as the engines do at temperature 0; they share no
code with our decoder. Their kernels that verify drafts, `verify_tree_greedy` and `mtpGreedySampling` with
`mtpAcceptDraftToken`, are written on lists, and run by the blocks of the pages that ask them the conformance vectors.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy
import pytest
import torch

from draftcert.audit import check_answers
from tests.test_shown import ROOT, blocks, executed

CYCLE = [3, 1, 4, 1, 5, 9, 2, 6]


def target(text: list[int]) -> int:
    """The greedy token after a text: a cycle, left now and then."""
    return 7 if len(text) % 11 == 0 else CYCLE[len(text) % len(CYCLE)]


def greedy(prompt: list[int], new: int) -> list[int]:
    text = list(prompt)
    while len(text) < len(prompt) + new:
        text.append(target(text))
    return text[len(prompt) :]


def modules(monkeypatch: pytest.MonkeyPatch, **contents: dict[str, Any]) -> None:
    """Make modules of these names and contents, and the packages that they lie in."""
    for name, content in contents.items():
        parts = name.split("__")
        for end in range(1, len(parts) + 1):
            name = ".".join(parts[:end])
            if name not in sys.modules:
                monkeypatch.setitem(sys.modules, name, ModuleType(name))
        vars(sys.modules[name]).update(content)


class Algorithms:
    """SGLang's registry: name -> the algorithm, made as `register_algorithm` makes it."""

    def __init__(self) -> None:
        self.known: dict[str, Any] = {}
        self.NGRAM = SimpleNamespace(handle_server_args=lambda arguments: arguments.update(topk=1))

    def register(self, name: str, *, supports_overlap: bool, spec_class: Any) -> Callable[[Any], Any]:
        def decorated(factory: Any) -> Any:
            self.known[name] = spec_class(name=name, factory=factory, supports_overlap=supports_overlap)
            return factory

        return decorated


class Algorithm:
    """SGLang's `CustomSpecAlgo`, as much of it as is asked here."""

    def __init__(self, name: str, factory: Any, *, supports_overlap: bool):
        self.factory = factory

    def is_ngram(self) -> bool:
        return False

    def has_draft_kv(self) -> bool:
        return True

    def handle_server_args(self, server_args: Any) -> None:
        """Nothing."""


class NgramWorker:
    """SGLang's worker for n-grams: what it hands its corpus, and how it verifies the trees it gets, on lists."""

    def __init__(self, nodes: int):
        self.draft_token_num, self.max_trie_depth = nodes, 18
        self.ngram_corpus: Any = None

    def decode(self, prompts: list[list[int]], new: int) -> tuple[list[list[int]], int]:
        texts, passes, n = [list(prompt) for prompt in prompts], 0, self.draft_token_num
        while any(len(text) < len(prompt) + new for text, prompt in zip(texts, prompts, strict=True)):
            self.ngram_corpus.synchronize()
            tails = [text[-self.max_trie_depth :] for text in texts]
            names = [f"request {number}" for number in range(len(texts))]
            tokens, masks = self.ngram_corpus.batch_get(names, tails, [len(text) for text in texts])
            assert tokens.shape == (len(texts) * n,)
            assert masks.shape == (len(texts) * n * n,)
            for text, drafted, mask in zip(texts, tokens.reshape(-1, n), masks.reshape(-1, n, n), strict=True):
                assert drafted[0] == text[-1]
                assert numpy.array_equal(mask, mask & numpy.tri(n, dtype=bool))
                parents = [max((j for j in range(i) if mask[i, j]), default=-1) for i in range(n)]
                node = 0
                while node is not None:
                    text.append(target(text))
                    children = (c for c in range(1, n) if parents[c] == node and drafted[c] == text[-1])
                    node = next(children, None)
            self.ngram_corpus.batch_put(tails)
            passes += 1
        return [text[len(prompt) :][:new] for text, prompt in zip(texts, prompts, strict=True)], passes


def test_sglang(monkeypatch: pytest.MonkeyPatch, record_property: Callable[..., None]):
    from draftcert.integrations.sglang import register

    algorithms = Algorithms()
    modules(
        monkeypatch,
        sglang__srt__speculative__spec_info={"SpeculativeAlgorithm": algorithms},
        sglang__srt__speculative__spec_registry={"CustomSpecAlgo": Algorithm},
        sglang__srt__speculative__ngram_worker={"NGRAMWorker": NgramWorker},
    )
    register()
    algorithm = algorithms.known["DRAFTCERT"]
    arguments: dict[str, int] = {}
    algorithm.handle_server_args(arguments)
    assert (algorithm.is_ngram(), algorithm.has_draft_kv(), arguments) == (True, False, {"topk": 1})
    worker = algorithm.factory(arguments)(nodes=6)
    prompts, passes = [[3, 1, 4], [8, 8, 2, 6, 3], [3, 1, 4]], 0
    for _ in range(2):  # the second time with what was learned
        found, passes = worker.decode(prompts, 60)
        assert found == [greedy(prompt, 60) for prompt in prompts]
        assert passes < 40
    worker.ngram_corpus.erase_match_state(["request 0"])
    record_property("ran", f"60 tokens in {passes} passes of a stand-in for its worker, output that of greedy decoding")


def verify_tree_greedy(predicts: Any, accept_index: Any, accept_token_num: Any, *tree: torch.Tensor) -> None:
    """SGLang's kernel, for one tree."""
    assert {each.dtype for each in (predicts, accept_index, accept_token_num)} == {torch.int32}
    assert {each.dtype for each in tree} == {torch.int64}
    assert {each.shape for each in tree} == {accept_index.shape}
    candidates, retrieve_index, next_token, next_sibling, target_predict = (each[0].tolist() for each in tree)
    last = accept_index[0, 0] = retrieve_index[0]
    node = accepted = 0
    while (node := next_token[node]) != -1:
        while node != -1 and candidates[node] != target_predict[last]:
            node = next_sibling[node]
        if node == -1:
            break
        predicts[last] = target_predict[last]
        accepted += 1
        last = accept_index[0, accepted] = retrieve_index[node]
    accept_token_num[0] = accepted
    predicts[last] = target_predict[last]


def faults_of_the_page(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Run what the page of an engine shows under "Conformance", without its GPU: the cases that it answers wrongly."""
    monkeypatch.chdir(folder)
    block = next(each for each in blocks(ROOT / "docs" / "engines" / f"{name}.md") if "write_answers" in each.text)
    executed(replace(block, text=block.text.replace('"cuda"', '"cpu"')), {})
    found = check_answers("answers.json")
    assert len(found.answered) > 40
    return {each.case.rpartition("/")[2].partition(".")[0] for each in found.faults}


def test_sglang_conformance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    modules(monkeypatch, sgl_kernel={"verify_tree_greedy": verify_tree_greedy})
    # A row that determines no token has an argmax all the same.
    assert faults_of_the_page("sglang", tmp_path, monkeypatch) == {"all_masked", "infinity", "nan"}


class Drafter:
    """TensorRT-LLM's `Drafter`."""

    def __init__(self, max_concurrency: int | None = None):
        self.max_concurrency = max_concurrency


class Request(SimpleNamespace):
    def get_tokens(self, beam: int) -> list[int]:
        assert beam == 0
        return self.text


def test_tensorrt_llm(monkeypatch: pytest.MonkeyPatch, record_property: Callable[..., None]):
    monkeypatch.delitem(sys.modules, "draftcert.integrations.tensorrt_llm", raising=False)
    modules(
        monkeypatch,
        tensorrt_llm___torch__speculative__drafter={"Drafter": Drafter},
        tensorrt_llm__llmapi={"UserProvidedDecodingConfig": SimpleNamespace},
    )
    from draftcert.integrations.tensorrt_llm import speculative_config

    config: Any = speculative_config(longest=4)
    assert isinstance(config.drafter, Drafter)
    drafter: Any = config.drafter
    new, passes = 60, 0
    requests = [
        Request(text=list(prompt), py_orig_prompt_len=len(prompt), py_max_new_tokens=new)
        for prompt in ([3, 1, 4], [8, 8, 2, 6, 3])
    ]
    running = requests
    while running:
        drafter.prepare_draft_tokens(SimpleNamespace(generation_requests=running))
        for request in running:
            assert len(request.py_draft_tokens) <= config.max_draft_len
            for token in [*request.py_draft_tokens, None]:
                request.text.append(target(request.text))
                if request.text[-1] != token:
                    break
            assert len(request.text) <= request.py_orig_prompt_len + new
        running = [each for each in running if len(each.text) < each.py_orig_prompt_len + new]
        passes += 1
    for request in requests:
        prompt = request.text[: request.py_orig_prompt_len]
        assert request.text[len(prompt) :] == greedy(prompt, new)
    assert passes < 40
    record_property(
        "ran", f"60 tokens in {passes} passes of a stand-in for its executor, output that of greedy decoding"
    )


def accepted_draft_tokens(
    logits: Any, draft: Any, buffer: Any, modules: int, batch: int, contexts: int, width: int
) -> Any:
    """TensorRT-LLM's operator, for one request that generates."""
    assert (batch, contexts, len(logits), len(buffer)) == (1, 0, modules + 1, modules + 1)
    assert (draft.dtype, draft.shape, buffer.dtype, logits.shape[1]) == (torch.int32, (modules,), torch.int32, width)
    tokens = logits.argmax(-1).int()
    count = 0
    while count < modules and draft[count] == tokens[count]:
        count += 1
    return torch.where(torch.arange(modules + 1) <= count, tokens, 1)[None], torch.tensor([count + 1])


def test_tensorrt_llm_conformance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    modules(monkeypatch, tensorrt_llm={})
    operators = SimpleNamespace(mtp_sampling_and_accepted_draft_tokens_op=accepted_draft_tokens)
    monkeypatch.setattr(torch.ops, "trtllm", operators, raising=False)
    assert faults_of_the_page("tensorrt_llm", tmp_path, monkeypatch) == {"all_masked", "infinity", "nan"}
