"""transformers' Trainer: what it minimises is the hinge by its definition, and a drafter gets better by it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import kl_div

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
TEXTS = (
    "The moons of Jupiter are Io, Europa, Ganymede and Callisto, and many smaller ones.",
    "To add two numbers in Python, write a function that returns their sum.",
    "One, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve.",
    "A magpie is a bird of the crow family that is known for its long tail.",
)


def by_definition(target: torch.Tensor, draft: torch.Tensor) -> torch.Tensor:
    """For each row KL(target || draft) above the certificate of strict greedy, by the closed form of two tokens."""
    target, draft = target.double().log_softmax(-1), draft.double().log_softmax(-1)
    divergence = kl_div(draft, target, log_target=True, reduction="none").sum(-1)
    top = target.exp().topk(2).values
    certificate = (top * (top / top.mean(-1, keepdim=True)).log()).sum(-1)
    return (divergence - certificate).clamp(min=0)


@pytest.fixture(scope="module")
def target(folder: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


@pytest.fixture
def drafter(target: Any) -> Any:
    """The target's first and last layers, as weights of their own."""
    config = type(target.config)(**target.config.to_dict() | {"num_hidden_layers": 4})
    small = type(target)(config)
    kept = {"0": "0", "1": "1", "2": "28", "3": "29"}
    full = target.state_dict()
    small.load_state_dict(
        {name: full[".".join(str(kept.get(part, part)) for part in name.split("."))] for name in small.state_dict()}
    )
    return small


def trainer(drafter: Any, target: Any, folder: Path, out: Path, **options: Any) -> Any:
    from draftcert.integrations.trainer import CertificateTrainer

    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    settings = {"per_device_train_batch_size": 4, "learning_rate": 3e-4, "report_to": [], "use_cpu": True}
    return CertificateTrainer(
        drafter,
        transformers.TrainingArguments(out, **settings, **options),
        target=target,
        plain=0.0,
        train_dataset=[dict(tokenizer(text)) for text in TEXTS],
        data_collator=transformers.DataCollatorWithPadding(tokenizer),
    )


def test_a_drafter_is_trained(
    target: Any, drafter: Any, folder: Path, tmp_path: Path, record_property: Callable[..., None]
):
    run = trainer(drafter, target, folder, tmp_path, max_steps=8, logging_steps=1, save_strategy="no")
    batch = run.data_collator(list(run.train_dataset))
    before = target.get_input_embeddings().weight.clone()

    def judged() -> float:
        with torch.no_grad():
            rows = [model(**batch).logits[batch["attention_mask"].bool()] for model in (target, drafter.eval())]
        return float(by_definition(*rows).mean())

    start = judged()
    run.train()
    end = judged()
    logged = [each["loss"] for each in run.state.log_history if "loss" in each]
    assert logged[0] == pytest.approx(start, rel=1e-3)
    assert end < 0.7 * start
    assert torch.equal(before, target.get_input_embeddings().weight)
    record_property("ran", f"8 steps of Trainer: the hinge falls from {start:.2f} to {end:.2f} nats")


def test_padding_and_accumulation_change_nothing(target: Any, drafter: Any, folder: Path, tmp_path: Path):
    run = trainer(drafter, target, folder, tmp_path)
    batch = run.data_collator(list(run.train_dataset))
    with torch.no_grad():
        loss = run.compute_loss(drafter, batch)
        pad = {"input_ids": 7, "attention_mask": 0}
        wider = {name: torch.nn.functional.pad(batch[name], (0, 5), value=value) for name, value in pad.items()}
        assert float(run.compute_loss(drafter, wider)) == pytest.approx(float(loss), rel=1e-5)
        unmasked = {"input_ids": batch["input_ids"][:1, :9]}
        masked = unmasked | {"attention_mask": torch.ones(1, 9, dtype=torch.long)}
        assert float(run.compute_loss(drafter, unmasked)) == pytest.approx(float(run.compute_loss(drafter, masked)))
    assert not run.model_accepts_loss_kwargs
