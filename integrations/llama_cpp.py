"""Drafts for llama-cpp-python, and certificates of its logits.

`Llama(..., draft_model=DraftModel())` decodes with our drafters in place of `LlamaPromptLookupDecoding`;
`LogitsProcessorList([Watched(llama, probe)])` as `logits_processor` writes down the certificates of a completion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..runtime.trees.drafters import Drafter
from ..theory.imports import optional
from .probe import CertificateProbe
from .texts import TextDrafter

with optional("llama_cpp"):
    import numpy
    from llama_cpp.llama_speculative import LlamaDraftModel

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


class Watched:
    """A logits processor that shows each row to a probe and changes nothing.

    `request`: what the lines of the completion are called; `start`: tokens of its prompt.
    """

    def __init__(self, probe: CertificateProbe, request: str, start: int):
        self.probe, self.request, self.start = probe, request, start

    def __call__(self, input_ids: NDArray[numpy.intc], scores: NDArray[numpy.single]) -> NDArray[numpy.single]:
        """The row `[vocab]` as it came."""
        self.probe(self.request, len(input_ids) - self.start, scores)
        return scores
