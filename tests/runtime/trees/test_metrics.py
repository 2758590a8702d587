"""The decoder's numbers in Prometheus' text format, read back by its own parser."""

from collections import Counter
from http.server import HTTPServer
from threading import Thread
from urllib.request import urlopen

from prometheus_client import MetricsHandler
from prometheus_client.parser import text_string_to_metric_families

from draftcert.runtime.trees.decoder import GreedyTreeDecoder
from draftcert.runtime.trees.metrics import DecoderMetrics
from draftcert.runtime.trees.trace import certificates_met

LABELS = {"model_name": "tiny", "engine": "0"}


def samples(text: str) -> dict[tuple[str, str], float]:
    """Values by name and the one label that is not of every metric."""
    found = {}
    for family in text_string_to_metric_families(text):
        for name, labels, value, *_ in family.samples:
            assert labels.items() >= LABELS.items()
            others = [labels[label] for label in labels if label not in LABELS]
            found[name, *(others or [""])] = value
    return found


def test_what_is_served_is_what_the_steps_hold(tiny):
    decoder, metrics = GreedyTreeDecoder(tiny(), latency=None), DecoderMetrics("tiny")
    steps, ended, prompt = [], Counter(), 0
    for prompts in ([[5, 17, 3]], [[8, 1], [4, 4, 4, 4]]):
        result = decoder.generate(prompts, max_new_tokens=24)
        metrics.observe(result.stats, certificates_met(result.steps))
        steps += result.steps
        ended.update(result.finish_reasons)
        prompt += sum(map(len, prompts))
    with HTTPServer(("127.0.0.1", 0), MetricsHandler.factory(metrics.registry)) as server:
        Thread(target=server.handle_request).start()
        with urlopen(f"http://127.0.0.1:{server.server_port}/metrics") as answer:
            served = answer.read().decode()
    assert served == metrics.text().decode()
    found = samples(served)
    drafts = [step for step in steps if len(step.tree) > 1]
    assert any(step.accepted > 1 for step in drafts)
    spec = "vllm:spec_decode_num_"
    assert found[spec + "drafts_total", ""] == len(drafts)
    assert found[spec + "draft_tokens_total", ""] == sum(len(step.tree) - 1 for step in drafts)
    assert found[spec + "accepted_tokens_total", ""] == sum(step.accepted for step in drafts)
    by_depth = {name[1]: value for name, value in found.items() if name[0] == spec + "accepted_tokens_per_pos_total"}
    assert sum(by_depth.values()) == found[spec + "accepted_tokens_total", ""]
    assert all(value == sum(step.accepted > int(position) for step in drafts) for position, value in by_depth.items())
    assert found["vllm:prompt_tokens_total", ""] == prompt
    assert found["vllm:generation_tokens_total", ""] == 3 * 24
    assert found["vllm:request_success_total", "length"] == ended["length"] == 3
    assert found["draftcert:certificate_nats_count", ""] == 3 * 24
    assert found["draftcert:decode_seconds_total", "target"] > 0
