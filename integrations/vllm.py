"""Drafts for vLLM, and certificates of its logits, by its two published plug-in points.

`speculative_config={"method": "custom_class", "model": "draftcert.integrations.vllm.Proposer",
"num_speculative_tokens": 8}` decodes with our drafters. By the entry point `vllm.logits_processors` an engine writes
down the certificates of requests with `extra_args={"draftcert": NAME}` in the file that `DRAFTCERT_CERTIFICATES` names.
"""

from __future__ import annotations

import os
from typing import Any

from ..theory.errors import DraftcertError
from ..theory.imports import optional
from .probe import CertificateProbe
from .texts import TextDrafter

with optional("vllm"):
    from vllm.v1.sample.logits_processor import AdapterLogitsProcessor  # pyright: ignore[reportMissingImports]

FILE = "DRAFTCERT_CERTIFICATES"  # whoever starts the engine says where it writes, not a request


class Proposer:
    """What `speculative_config` names as its model. Derive from it for another `drafter` or another `likely`."""

    drafter: Any = "recycling+lookup"
    likely = 0.3

    def __init__(self, vllm_config: Any):
        self.longest = vllm_config.speculative_config.num_speculative_tokens
        self.most = vllm_config.model_config.max_model_len
        self.texts = TextDrafter(self.drafter)

    def load_model(self, model: Any) -> None:
        """Nothing: there is no draft model."""

    def propose(
        self, sampled_token_ids: list[list[int]], num_tokens_no_spec: Any, token_ids_cpu: Any, slot_mappings: Any = None
    ) -> list[list[int]]:
        """For each request its draft; none for one that is reading its prompt, whose `sampled_token_ids` are none.

        `num_tokens_no_spec` `[requests]`: tokens of each; `token_ids_cpu` `[requests, longest]`: which. Both of numpy.
        """
        lengths = num_tokens_no_spec.tolist()
        rows = [row for row, new in enumerate(sampled_token_ids) if new and lengths[row] < self.most]
        texts = [token_ids_cpu[row, : lengths[row]].tolist() for row in rows]
        found = dict(zip(rows, self.texts.chains(texts, self.longest, self.likely), strict=True))
        return [found.get(row, []) for row in range(len(sampled_token_ids))]


class Probe(AdapterLogitsProcessor):
    """Writes down the certificates of requests that ask for it, and changes nothing. vLLM finds it by itself."""

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Refuse a request for certificates where there is no file for them."""
        if _asked(sampling_params) is not None and FILE not in os.environ:
            raise DraftcertError(f"a request asks for certificates: start the engine with {FILE}=FILE to write to")

    def __init__(self, vllm_config: Any, *arguments: Any):
        super().__init__(vllm_config, *arguments)
        parallel = vllm_config.parallel_config  # all workers of a tensor-parallel group see the same rows: one writes
        first = parallel.rank % parallel.tensor_parallel_size == 0
        self.probe = CertificateProbe(os.environ[FILE]) if first and FILE in os.environ else None

    def is_argmax_invariant(self) -> bool:
        """No, though it is: vLLM leaves out in greedy decoding what does not change the argmax."""
        return False

    def new_req_logits_processor(self, params: Any) -> Any:
        """What sees each row of a request, or `None` if it does not ask."""
        request = _asked(params)
        return None if request is None or self.probe is None else self.probe.watching(str(request))


def _asked(params: Any) -> Any:
    return (params.extra_args or {}).get("draftcert")
