"""vLLM on the CPU: our drafts change nothing of its greedy output; its certificates are those of its own numbers."""

import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from math import exp, log
from pathlib import Path
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest

# With threads that are bound to processors a busy machine makes all wait for the slowest.
os.environ |= {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}
vllm = pytest.importorskip("vllm")
pytest.importorskip("vllm.exceptions")
NEW = 48


@pytest.fixture(scope="module")
def engine(folder: Path) -> Callable[..., Any]:
    def make(**options: Any) -> Any:
        settings = {"dtype": "float32", "enforce_eager": True, "max_model_len": 1024, "disable_log_stats": False}
        return vllm.LLM(str(folder), **settings, **options)

    return make


def greedy(llm: Any, prompts: list[list[int]], **options: Any) -> list[Any]:
    params = [vllm.SamplingParams(temperature=0, max_tokens=NEW, **options) for _ in prompts]
    for number, each in enumerate(params):
        if each.extra_args:
            each.extra_args = {"draftcert": f"prompt {number}"}
    inputs = [vllm.TokensPrompt(prompt_token_ids=prompt) for prompt in prompts]
    return [found.outputs[0] for found in llm.generate(inputs, params, use_tqdm=False)]


def counted(llm: Any) -> dict[str, float]:
    """Drafts, drafted and accepted tokens by vLLM's own metrics."""
    names = {f"vllm:spec_decode_num_{each}": each for each in ("drafts", "draft_tokens", "accepted_tokens")}
    return {names[metric.name]: metric.value for metric in llm.get_metrics() if metric.name in names}


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture(scope="module")
def plain(engine: Callable[..., Any], prompts: list[list[int]], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The engine's own output, then the same with certificates: both, and the lines that were written."""
    file = tmp_path_factory.mktemp("vllm") / "certificates.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAFTCERT_CERTIFICATES", str(file))
        llm = engine()
        silent = greedy(llm, prompts, logprobs=2)
        assert file.read_text() == ""
        watched = greedy(llm, prompts, logprobs=2, extra_args={"draftcert": "x"})
    with pytest.raises(vllm.exceptions.VLLMValidationError, match="DRAFTCERT_CERTIFICATES=FILE"):
        greedy(llm, prompts, extra_args={"draftcert": "x"})
    return silent, watched, read(file)


def test_the_probe_changes_nothing(plain: Any):
    silent, watched, _ = plain
    assert [each.token_ids for each in silent] == [each.token_ids for each in watched]
    assert [each.cumulative_logprob for each in silent] == [each.cumulative_logprob for each in watched]


def test_certificates_are_those_of_the_engines_log_probabilities(plain: Any, record_property: Callable[..., None]):
    _, watched, lines = plain
    by_place = {(line["request"], line["position"]): line for line in lines}
    assert len(by_place) == len(lines) == sum(len(each.token_ids) for each in watched)
    for number, output in enumerate(watched):
        for position, (token, top) in enumerate(zip(output.token_ids, output.logprobs, strict=True)):
            line = by_place[f"prompt {number}", position]
            first, second = sorted((exp(each.logprob) for each in top.values()), reverse=True)[:2]
            mean = (first + second) / 2  # the closest draft that takes another token has both at their mean
            assert line["token"] == token
            assert line["certificate"] == pytest.approx(
                first * log(first / mean) + second * log(second / mean), rel=1e-3, abs=1e-6
            )
    record_property("ran", f"{len(lines)} certificates, each that of the engine's own log-probabilities")


def test_of_a_prompt_in_pieces_the_last_line_of_a_position_counts(
    engine: Callable[..., Any], prompts: list[list[int]], plain: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DRAFTCERT_CERTIFICATES", str(tmp_path / "certificates.jsonl"))
    llm = engine(max_num_batched_tokens=16, enable_prefix_caching=False)
    watched = greedy(llm, prompts, extra_args={"draftcert": "x"})
    lines = read(tmp_path / "certificates.jsonl")
    last = {(line["request"], line["position"]): line["token"] for line in lines}
    assert len(last) < len(lines)
    for number, output in enumerate(watched):
        assert [last[f"prompt {number}", place] for place in range(len(output.token_ids))] == list(output.token_ids)


def test_one_worker_of_a_tensor_parallel_group_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from draftcert.integrations.vllm import Probe

    monkeypatch.setenv("DRAFTCERT_CERTIFICATES", str(tmp_path / "certificates.jsonl"))
    groups = [SimpleNamespace(rank=rank, tensor_parallel_size=2) for rank in range(4)]
    probes = [Probe(SimpleNamespace(parallel_config=group), "cpu", False).probe for group in groups]
    assert [probe is not None for probe in probes] == [True, False, True, False]


def test_drafts_change_nothing_and_are_accepted(
    engine: Callable[..., Any], prompts: list[list[int]], plain: Any, record_property: Callable[..., None]
):
    counts = {}
    settings = {"num_speculative_tokens": 8}
    for name, method in {
        "draftcert": {"method": "custom_class", "model": "draftcert.integrations.vllm.Proposer"},
        "its n-grams": {"method": "ngram", "prompt_lookup_max": 3, "prompt_lookup_min": 1},
    }.items():
        llm = engine(speculative_config=settings | method)
        assert [each.token_ids for each in greedy(llm, prompts)] == [each.token_ids for each in plain[0]], name
        counts[name] = counted(llm)
        del llm
    ours = counts["draftcert"]
    assert 0 < ours["accepted_tokens"] <= ours["draft_tokens"]
    shown = (f"{name} {of['accepted_tokens']:.0f} of {of['draft_tokens']:.0f}" for name, of in counts.items())
    record_property("ran", f"greedy output unchanged; drafted tokens accepted: {', '.join(shown)}")


def test_its_server(
    folder: Path, prompts: list[list[int]], plain: Any, tmp_path: Path, record_property: Callable[..., None]
):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder), "--port", str(port)]
    command += ["--host", "127.0.0.1", "--dtype", "float32", "--enforce-eager", "--max-model-len", "1024"]
    file = tmp_path / "certificates.jsonl"
    environment = os.environ | {"DRAFTCERT_CERTIFICATES": str(file), "VLLM_ENABLE_V1_MULTIPROCESSING": "1"}

    def ask(path: str, body: dict[str, Any] | None = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=900) as reply:
            return reply.read()

    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=environment) as server,
    ):
        try:
            end = monotonic() + 900
            while True:
                try:
                    ask("/health")
                    break
                except (urllib.error.URLError, ConnectionError):
                    assert server.poll() is None and monotonic() < end, (tmp_path / "log").read_text()[-3000:]  # noqa: PT018
                    sleep(1)
            asked = {"model": str(folder), "prompt": prompts[0], "temperature": 0, "max_tokens": NEW}
            reply = json.loads(ask("/v1/completions", asked | {"vllm_xargs": {"draftcert": "over HTTP"}}))
        finally:
            server.terminate()
    assert reply["choices"][0]["text"] == plain[0][0].text
    lines = read(file)
    assert [line["token"] for line in lines] == list(plain[0][0].token_ids)
    assert {line["request"] for line in lines} == {"over HTTP"}
    record_property("ran", "certificates of a request to its server")
