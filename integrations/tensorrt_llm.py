"""Drafts for TensorRT-LLM's PyTorch backend, by its plug-in point for drafters. Not run here: it needs a GPU.

`LLM(model, speculative_config=speculative_config())` decodes with our drafters. It is written, and tested against a
stand-in, after the `Drafter` of `tensorrt_llm/_torch/speculative/drafter.py` and the `UserProvidedDecodingConfig` of
`tensorrt_llm/llmapi` as published with 1.2.
"""

from __future__ import annotations

from typing import Any

from ..theory.imports import optional
from .texts import TextDrafter

with optional("tensorrt-llm"):
    from tensorrt_llm._torch.speculative.drafter import Drafter  # pyright: ignore[reportMissingImports]
    from tensorrt_llm.llmapi import UserProvidedDecodingConfig  # pyright: ignore[reportMissingImports]


class TextsDrafter(Drafter):
    """What TensorRT-LLM asks for drafts before each pass of the target."""

    def __init__(self, drafter: Any = "recycling+lookup", longest: int = 8, likely: float = 0.3):
        super().__init__()
        self.texts, self.max_draft_len, self.likely = TextDrafter(drafter), longest, likely

    def prepare_draft_tokens(self, scheduled_requests: Any, resource_manager: Any = None) -> None:
        """Give each request that generates its draft; one that has to end soon gets none beyond its end."""
        requests = list(scheduled_requests.generation_requests)
        texts = [list(request.get_tokens(0)) for request in requests]
        for request, text, chain in zip(
            requests, texts, self.texts.chains(texts, self.max_draft_len, self.likely), strict=True
        ):
            room = request.py_orig_prompt_len + request.py_max_new_tokens - len(text) - 1
            request.py_draft_tokens = chain[: max(room, 0)]


def speculative_config(drafter: Any = "recycling+lookup", longest: int = 8, likely: float = 0.3) -> Any:
    """What `LLM` takes as its `speculative_config`: drafts of `longest` tokens at most, none less likely."""
    return UserProvidedDecodingConfig(max_draft_len=longest, drafter=TextsDrafter(drafter, longest, likely))
