"""The decoder's numbers as Prometheus metrics, under vLLM's names where they mean the same.

A position is a depth of the tree, so that of several branches one token a depth is accepted at most. The rest, the
target's passes, their time and the certificates met, goes under names of draftcert's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...theory.imports import optional
from .trace import DecodeStats

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

BUCKETS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""Of certificates, in nats: those of strict greedy and one candidate end at ln 2."""
FINISHED = {"eos": "stop", "stopped": "stop", "length": "length", "interrupted": "abort"}
"""vLLM's words for how a sequence ended."""


class DecoderMetrics:
    """Counts over everything that was observed, in a `registry` of its own unless one is given.

    `prometheus_client` writes and serves it: `start_http_server(9000, registry=metrics.registry)`, or
    `MetricsHandler.factory(metrics.registry)`, a handler for `http.server`.

    >>> metrics = DecoderMetrics("smollm2")
    >>> metrics.observe(DecodeStats(drafted_steps=2, proposed=6, accepted=3, accepted_at_depth=[2, 1]))
    >>> labels = {"model_name": "smollm2", "engine": "0"}
    >>> metrics.registry.get_sample_value("vllm:spec_decode_num_accepted_tokens_total", labels)
    3.0

    Raises:
        DraftcertError: prometheus_client is not installed.
    """

    registry: CollectorRegistry

    def __init__(self, model_name: str, registry: CollectorRegistry | None = None) -> None:
        with optional("metrics"):
            from prometheus_client import CollectorRegistry, Counter, Histogram
        self.registry = CollectorRegistry() if registry is None else registry
        self._labels = {"model_name": model_name, "engine": "0"}

        def counter(name: str, documentation: str, *labels: str) -> Any:
            found = Counter(name, documentation, [*self._labels, *labels], registry=self.registry)
            return found if labels else found.labels(**self._labels)

        self._drafts = counter("vllm:spec_decode_num_drafts", "Drafts verified: steps with a drafted token.")
        self._drafted = counter("vllm:spec_decode_num_draft_tokens", "Drafted tokens sent through the target.")
        self._accepted = counter("vllm:spec_decode_num_accepted_tokens", "Drafted tokens that the target accepted.")
        self._accepted_at = counter(
            "vllm:spec_decode_num_accepted_tokens_per_pos", "Accepted tokens by their depth in the draft.", "position"
        )
        self._prompt = counter("vllm:prompt_tokens", "Tokens of prompts.")
        self._new = counter("vllm:generation_tokens", "New tokens.")
        self._finished = counter("vllm:request_success", "Sequences by how they ended.", "finished_reason")
        self._passes = counter("draftcert:target_passes", "Passes of the target.")
        self._seconds = counter("draftcert:decode_seconds", "Wall time of the passes, by what it went to.", "phase")
        self._certificates = Histogram(
            "draftcert:certificate_nats",
            "Strict greedy's certificates at committed tokens, in nats.",
            [*self._labels],
            buckets=BUCKETS,
            registry=self.registry,
        ).labels(**self._labels)

    def observe(self, stats: DecodeStats, certificates: Iterable[float] = ()) -> None:
        """Add what one generation counted, and the certificates that were met in it or by a probe."""
        self._drafts.inc(stats.drafted_steps)
        self._drafted.inc(stats.proposed)
        self._accepted.inc(stats.accepted)
        for position, accepted in enumerate(stats.accepted_at_depth):
            self._accepted_at.labels(**self._labels, position=str(position)).inc(accepted)
        self._prompt.inc(stats.prompt_tokens)
        self._new.inc(stats.new_tokens)
        for reason, sequences in stats.finish_reasons.items():
            self._finished.labels(**self._labels, finished_reason=FINISHED[reason]).inc(sequences)
        self._passes.inc(stats.target_passes)
        for phase in ("draft", "target", "verify", "commit"):
            self._seconds.labels(**self._labels, phase=phase).inc(getattr(stats, f"seconds_{phase}"))
        for certificate in certificates:
            self._certificates.observe(certificate)

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        with optional("metrics"):
            from prometheus_client import generate_latest
        return generate_latest(self.registry)
