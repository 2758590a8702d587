"""llama-cpp-python: with our drafts its output stays greedy; measured against its own prompt lookup.

Its kernels for one row and for several round differently, so that a pass with a draft, whoever made it, can turn a near
tie. What such passes change of the logits is measured, and every token must be the likeliest within that.
"""

import json
from collections.abc import Callable
from math import exp, log
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy
import pytest

llama_cpp = pytest.importorskip("llama_cpp")
NEW = 64


@pytest.fixture(scope="module")
def llama() -> Any:
    """The model, with room for the logits of all tokens; what drafts for it is set by each test."""
    from draftcert.runtime.models import default_gguf

    return llama_cpp.Llama(
        str(default_gguf()), n_ctx=512, n_threads=1, n_threads_batch=1, logits_all=True, verbose=False
    )


class Counted(llama_cpp.llama_speculative.LlamaDraftModel):
    """A draft model that counts its calls, each of which goes before one pass of the target, and what it drafts."""

    def __init__(self, inner: Any):
        self.inner, self.passes, self.drafted = inner, 0, 0

    def __call__(self, input_ids: Any, /, **kwargs: Any) -> Any:
        found = self.inner(input_ids, **kwargs)
        self.passes, self.drafted = self.passes + 1, self.drafted + len(found)
        return found


def greedy(llama: Any, prompt: list[int], draft: Any = None, **options: Any) -> list[int]:
    """New tokens by its `generate`, on whose loop its completions stand."""
    llama.draft_model = draft
    llama.reset()
    found: list[int] = []
    for token in llama.generate(prompt, temp=0.0, top_k=1, **options):
        if token == llama.token_eos() or len(found) == NEW:
            break
        found.append(token)
    return found


def excess(llama: Any, prompt: list[int], written: list[int]) -> tuple[Any, Any]:
    """For each written token how far it lies below the likeliest, and twice what a pass over many tokens changes."""
    rows = []
    for pieces in ([[token] for token in prompt + written], [prompt + written]):
        llama.reset()
        for piece in pieces:
            llama.eval(piece)
        rows.append(llama.scores[len(prompt) - 1 :][: len(written)].astype(numpy.float64))
    one_by_one, at_once = rows
    gaps = one_by_one.max(-1) - one_by_one[range(len(written)), written]
    return gaps, 2 * abs(one_by_one - at_once).max(-1)


def test_drafts_leave_the_output_the_targets_own_and_save_passes(
    llama: Any, prompts: list[list[int]], record_property: Callable[..., None]
):
    from draftcert.integrations.llama_cpp import DraftModel

    said = {}
    its_own = llama_cpp.llama_speculative.LlamaPromptLookupDecoding(num_pred_tokens=10)
    for name, model in {"ours": DraftModel(), "its prompt lookup": its_own}.items():
        counted, start = Counted(model), perf_counter()
        outputs = [greedy(llama, prompt, counted) for prompt in prompts]
        written, seconds = sum(map(len, outputs)), perf_counter() - start
        said[name] = (written / counted.passes, counted.drafted / written, written / seconds)
        for prompt, output in zip(prompts, outputs, strict=True):
            gaps, noise = excess(llama, prompt, output)
            assert (gaps <= noise.max()).all(), name
            assert (gaps > 0).mean() < 0.1, name
    assert said["ours"][0] > 1.2
    shown = (
        f"{name} {passes:.2f} tokens a pass with {drafted:.2f} drafted a token, {speed:.0f} tokens/s"
        for name, (passes, drafted, speed) in said.items()
    )
    record_property("ran", f"greedy output, up to its kernels' rounding; {'; '.join(shown)}")


def test_the_probe_changes_nothing_and_certifies_its_logits(
    llama: Any, prompts: list[list[int]], tmp_path: Path, record_property: Callable[..., None]
):
    from draftcert.integrations.probe import CertificateProbe

    probe = CertificateProbe(tmp_path / "certificates.jsonl")
    watched = llama_cpp.LogitsProcessorList([probe.watching("list", len(prompts[0]))])
    plain = greedy(llama, prompts[0])
    assert greedy(llama, prompts[0], logits_processor=watched) == plain
    lines = [json.loads(line) for line in (tmp_path / "certificates.jsonl").read_text().splitlines()]
    assert [line["position"] for line in lines] == list(range(len(lines)))
    assert [line["token"] for line in lines][: len(plain)] == plain
    rows = llama.scores[len(prompts[0]) - 1 :][: len(lines)].astype(numpy.float64)
    for line, row in zip(lines, rows, strict=True):
        first, second = sorted(exp(value) for value in row - numpy.logaddexp.reduce(row))[:-3:-1]
        mean = (first + second) / 2  # the closest draft that takes another token has both at their mean
        expected = first * log(first / mean) + second * log(second / mean)
        assert line["certificate"] == pytest.approx(expected, rel=1e-5)
    record_property("ran", f"{len(lines)} certificates, each that of its own logits")
