"""`draftcert audit logprobs` on answers of two real servers on SmolLM2: llama.cpp's own and llama-cpp-python's.

The answers in `recorded/` were given by llama-server 0.5.0 (commit 0c1e570) and llama-cpp-python 0.3.36 to `REQUESTS`;
`truth.json` holds certificates of the whole row of 49,152 log-probabilities at the first position of `completions`, by
`numerics.certificate`. Where a server is installed it is asked again, and its answers are judged by its own whole row.
"""

import importlib.util
import json
import math
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from draftcert.audit.logprobs import audit_logprobs
from draftcert.audit.responses import TopLogprobs, normalizer_error, read_positions
from draftcert.numerics import certificate
from draftcert.runtime.models import default_gguf
from draftcert.theory import DraftcertError

RECORDED = Path(__file__).with_name("recorded")
VOCABULARY = 49_152
FRANCE = {"prompt": "The capital of France is", "temperature": 0}
RIVER = {"messages": [{"role": "user", "content": "Name a river in Italy."}], "max_tokens": 3}
REQUESTS = {
    "completions.json": ("/v1/completions", {**FRANCE, "max_tokens": 4, "logprobs": 10}),
    "completions.sse": ("/v1/completions", {**FRANCE, "max_tokens": 4, "logprobs": 10, "stream": True}),
    "chat.json": ("/v1/chat/completions", {**RIVER, "temperature": 0, "logprobs": True, "top_logprobs": 5}),
    "sampled.json": (
        "/v1/chat/completions",
        {**RIVER, "temperature": 1.5, "seed": 5, "logprobs": True, "top_logprobs": 3},
    ),
}
NATIVE = {"native.json": ("/completion", {**FRANCE, "n_predict": 4, "n_probs": 10})}
# Its next tokens are bytes of characters: several of one text, which share a key of the answer.
BYTES = {
    "bytes.json": ("/v1/completions", {"prompt": "日本語の文章", "max_tokens": 4, "temperature": 0, "logprobs": 10})
}
SERVERS = {"llama_server": {**REQUESTS, **NATIVE}, "llama_cpp_python": {**REQUESTS, **BYTES}}
RULES = (
    ("strict_greedy", 1),
    ("strict_greedy", 4),
    ("additive(0.3)", 1),
    ("multiplicative(0.1)", 2),
    ("top_m(2)", 2),
    ("absolute(0.05)", 1),
    ("medusa_typical(0.09, 0.3)", 2),
    ("tensorrt_llm_relaxed(10, 0.6)", 1),
)


def recorded():
    return [(server, name) for server, requests in SERVERS.items() for name in requests]


def lists(file):
    """The positions of a file, each with its list."""
    positions = read_positions(file)
    read = [position for position in positions if isinstance(position, TopLogprobs)]
    assert len(read) == len(positions)
    return read


@pytest.mark.parametrize(("server", "name"), recorded())
def test_each_recorded_answer_is_read_and_judged(server, name):
    file = RECORDED / server / name
    positions = lists(file)
    assert len(positions) == SERVERS[server][name][1].get("max_tokens", 4)
    judged = audit_logprobs(file, vocab_size=VOCABULARY).positions
    for position, found in zip(positions, judged, strict=True):
        if not position.contiguous:
            assert (found.lower, found.upper, found.determined, found.top) == (0, math.inf, False, None)
            continue
        first, second = (math.exp(entry.logprob) for entry in position.entries[:2])
        middle = (first + second) / 2
        strict = first * math.log(first / middle) + second * math.log(second / middle)
        assert found.determined
        assert found.lower < strict < found.upper
        assert found.upper - found.lower < 2.1 * (normalizer_error(VOCABULARY) * strict + 1e-6)
        assert found.token == position.chosen.token
        if SERVERS[server][name][1].get("temperature") == 0 and server == "llama_server":
            assert found.token == found.top


@pytest.mark.parametrize("server", SERVERS)
def test_a_stream_and_one_answer_say_the_same(server):
    whole, stream = (audit_logprobs(RECORDED / server / f"completions.{ending}") for ending in ("json", "sse"))
    assert [(each.token, each.lower, each.upper) for each in whole.positions] == [
        (each.token, each.lower, each.upper) for each in stream.positions
    ]
    assert "position 3" in whole.positions[3].where
    assert "completions.sse:7," in stream.positions[3].where


def test_a_list_that_lost_a_token_to_another_of_the_same_text_claims_nothing():
    positions = lists(RECORDED / "llama_cpp_python" / "bytes.json")
    assert [len(position.entries) for position in positions] == [9, 3, 1, 1], "ten were asked for"
    assert [position.contiguous for position in positions] == [0, 0, 0, 0]


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("vocabulary", [VOCABULARY, None])
def test_intervals_from_ten_tokens_hold_the_certificate_of_the_whole_row(server, vocabulary):
    truth = json.loads((RECORDED / server / "truth.json").read_text())
    determined = 0
    for rule, candidates in RULES:
        file = RECORDED / server / "completions.json"
        found = audit_logprobs(file, rule, candidates, vocabulary).positions[0]
        assert found.lower <= truth[f"{rule}|{candidates}"] <= found.upper, (rule, candidates)
        determined += found.determined
    assert determined >= 6


def whole_row(answer):
    """The probabilities of a row that lists every token; those of lost ones (one text, one key) share what is left."""
    (position,) = lists(answer)
    row = [math.exp(entry.logprob) for entry in position.entries]
    lost = VOCABULARY - len(row)
    return row + [max(1 - math.fsum(row), 0.0) / max(lost, 1)] * lost


def ask(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return answer.read().decode()


def command(server, port):
    """How to start a server here, or None where it is not installed."""
    try:
        model = str(default_gguf())
    except DraftcertError:
        return None
    if server == "llama_server" and (program := shutil.which("llama-server")):
        return [program, "-m", model, "-a", "smollm2", "--port", port, "-c", "512", "-np", "1", "-t", "1"]
    if server == "llama_cpp_python" and importlib.util.find_spec("llama_cpp") and importlib.util.find_spec("uvicorn"):
        options = ["--logits_all", "true", "--n_ctx", "512", "--n_threads", "1", "--model_alias", "smollm2"]
        return [sys.executable, "-m", "llama_cpp.server", "--model", model, "--port", port, *options]
    return None


@pytest.fixture(params=list(SERVERS))
def live(request):
    """The name and address of a server that was just started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = command(request.param, str(port))
    if started is None:
        pytest.skip(f"{request.param} or the model is not installed")
    process = subprocess.Popen(started, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            try:
                ask(url, "/v1/completions", {"prompt": "a", "max_tokens": 1})
                break
            except (urllib.error.URLError, ConnectionError):
                assert process.poll() is None, f"{request.param} ended with {process.returncode}"
                time.sleep(0.5)
        yield request.param, url
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.model
def test_a_live_server_s_answers_hold_by_its_own_whole_row(live, tmp_path):
    server, url = live
    for name, (path, body) in SERVERS[server].items():
        file = tmp_path / name
        file.write_text(ask(url, path, body))
        assert len(audit_logprobs(file, vocab_size=VOCABULARY).positions) == body.get("max_tokens", 4)
    path, body = NATIVE["native.json"] if server == "llama_server" else REQUESTS["completions.json"]
    full = {**body, "n_predict": 1, "n_probs": VOCABULARY, "max_tokens": 1, "logprobs": VOCABULARY}
    (tmp_path / "full.json").write_text(ask(url, path, full))
    row = whole_row(tmp_path / "full.json")
    assert abs(math.fsum(row) - 1) < normalizer_error(VOCABULARY)
    for rule, candidates in RULES:
        found = audit_logprobs(tmp_path / "completions.json", rule, candidates, VOCABULARY).positions[0]
        truth = float(certificate(row, rule, candidates, normalize=True))
        assert found.lower <= truth <= found.upper, (rule, candidates)
