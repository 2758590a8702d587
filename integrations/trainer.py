"""Training a drafter for acceptance with transformers' Trainer: the certificate hinge in place of cross-entropy."""

from __future__ import annotations

from typing import Any

import torch

from ..audit.losses import certificate_hinge
from ..theory.imports import optional
from ..theory.rule import Rule

with optional("hf"):
    from transformers import Trainer


class CertificateTrainer(Trainer):
    """A Trainer of the drafter `model` against `target`, a causal language model of the same tokens; it stays as it is.

    `rule`, `candidates`, `inside`, `plain`: as `certificate_hinge` takes them. Each token that is not padding is a row;
    labels are not needed. Everything else is Trainer's.

    Raises:
        DraftcertError: as `certificate_hinge`.
    """

    def __init__(
        self,
        model: Any,
        *arguments: Any,
        target: Any,
        rule: Rule | str = "strict_greedy",
        candidates: int = 1,
        inside: float = 1.0,
        plain: float = 0.1,
        **options: Any,
    ):
        super().__init__(model, *arguments, **options)
        self.target = target.to(self.args.device).eval()
        self.hinge = {"rule": rule, "candidates": candidates, "inside": inside, "plain": plain}
        self.model_accepts_loss_kwargs = False  # the loss is a mean: Trainer divides it by the steps it accumulates

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The hinge over the tokens `[batch, length]` of a batch that are not padding, in nats."""
        text = {name: inputs[name] for name in ("input_ids", "attention_mask") if name in inputs}
        rows = text["attention_mask"].bool() if "attention_mask" in text else ...
        with torch.no_grad():
            wanted = self.target(**text).logits[rows]
        found = model(**text)
        loss = certificate_hinge(wanted, found.logits[rows], **self.hinge)
        return (loss, found) if return_outputs else loss
