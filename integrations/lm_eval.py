"""Draft trees under lm-evaluation-harness: `python -m draftcert.integrations.lm_eval run --model draftcert ...`.

That is the harness's own command with one more model. It is the harness's transformers model, so that prompts, stops
and scores are those of `--model hf`; only what has to be generated is decoded by draft trees.
"""

from __future__ import annotations

from typing import Any

from ..runtime.models import load_model
from ..theory.imports import optional
from .transformers import generate

with optional("lm-eval"):
    import torch
    from lm_eval.__main__ import cli_evaluate  # pyright: ignore[reportMissingImports]
    from lm_eval.api.registry import register_model  # pyright: ignore[reportMissingImports]
    from lm_eval.models.huggingface import HFLM  # pyright: ignore[reportMissingImports]


@register_model("draftcert")
class TreeModel(HFLM):
    """The model that the harness knows as `draftcert`.

    `pretrained`, `dtype`, `device`: as `load_model` takes them. `drafter`, `rule`, `max_nodes`: as `GreedyTreeDecoder`
    takes them; under a relaxed rule scores are its own. The harness gives the rest, as to its transformers model.

    Raises:
        DraftcertError: as `load_model`; a task that samples.
    """

    def __init__(
        self,
        pretrained: str = "smollm2",
        dtype: str = "float32",
        device: str | None = None,
        drafter: str | None = None,
        rule: str | None = None,
        max_nodes: int = 32,
        **options: Any,
    ):
        target = load_model(pretrained, dtype, device or ("cuda" if torch.cuda.is_available() else "cpu"))
        super().__init__(pretrained=target.model, tokenizer=target.tokenizer, **options)
        self.trees = {"custom_generate": generate, "drafter": drafter, "rule": rule, "max_nodes": max_nodes}

    def _model_generate(
        self, context: torch.Tensor, max_length: int, stop: list[str], attention_mask: torch.Tensor, **options: Any
    ) -> torch.Tensor:
        """Each of the prompts `[batch, length]` by itself: a tree is a batch already, and stops know their row."""
        rows = [
            super(TreeModel, self)._model_generate(
                ids[None], max_length, stop, attention_mask=mask[None], **options | self.trees
            )[0]
            for ids, mask in zip(context, attention_mask, strict=True)
        ]
        pad = self.tokenizer.pad_token_id
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad)


if __name__ == "__main__":
    cli_evaluate()
