"""Drafts for llama-cpp-python, and certificates of its logits.

`Llama(..., draft_model=DraftModel())` decodes with our drafters in place of `LlamaPromptLookupDecoding`;
`logits_processor=LogitsProcessorList([probe.watching(NAME, start)])` writes down a completion's certificates, where
`probe` is a `CertificateProbe` and `start` the number of tokens of the prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from ..runtime.trees.drafters import Drafter
from ..theory.imports import optional
from .texts import TextDrafter

with optional("llama-cpp"):
    from llama_cpp.llama_speculative import LlamaDraftModel  # pyright: ignore[reportMissingImports]

if TYPE_CHECKING:
    from numpy.typing import NDArray


class DraftModel(LlamaDraftModel):
    """What `Llama` takes as its `draft_model`.

    `drafter`: as for `TextDrafter`; what it learns is kept from one completion to the next. `longest`: tokens of a
    draft at most; `likely`: it ends where the estimated probability of its acceptance falls below.
    """

    def __init__(self, drafter: Drafter | str = "recycling+lookup", longest: int = 10, likely: float = 0.3):
        self.texts, self.longest, self.likely = TextDrafter(drafter), longest, likely

    def __call__(self, input_ids: NDArray[numpy.intc], /, **kwargs: Any) -> NDArray[numpy.intc]:
        """The draft `[tokens]` that follows the text `[length]`; none where nothing is likely enough."""
        (chain,) = self.texts.chains([input_ids.tolist()], self.longest, self.likely)
        return numpy.array(chain, dtype=numpy.intc)
