"""Distil a small drafter for SmolLM2 on the CPU, once with plain KL and once with the certificate hinge, and compare.

The drafter is the target's first layers with a trained adapter in front of the target's own head (early exit). Both
runs start from the same weights, see the same positions in the same order for the same number of steps, and are judged
on prompts that neither has seen.

Example: python examples/distil_drafter.py --prompts 4 --tokens 8 --steps 2

What it found with its default settings is in docs/audit.md.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from draftcert.audit import load_prompts
from draftcert.audit.losses import certificate_hinge
from draftcert.audit.run import greedy
from draftcert.numerics import MeanKLGuarantee
from draftcert.runtime.models import LoadedModel, load_model
from draftcert.runtime.rows import certify


@dataclass(frozen=True)
class Outcome:
    """A drafter on unseen positions: mean KL in nats and three acceptances under strict greedy, one candidate."""

    loss: str
    mean_kl: float
    guaranteed: float
    certified: float
    measured: float
    seconds: float


class Adapter(nn.Module):
    """A residual network that turns an early layer's state into a guess of the last layer's."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(size)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.down.bias)

    def forward(self, state: Tensor) -> Tensor:
        """States `[rows, size]` in and out."""
        return state + self.down(nn.functional.silu(self.up(self.norm(state))))


@torch.no_grad()
def states(target: LoadedModel, layer: int, prompts: int, tokens: int) -> tuple[list[Tensor], list[Tensor]]:
    """For each prompt the states after `layer` and the final ones, at the positions that predict the target's text."""
    early, final = [], []
    for prompt in load_prompts()[:prompts]:
        ids = torch.tensor([prompt.token_ids(target.tokenizer)])
        written, _ = greedy(target, ids, tokens)
        text = torch.cat([ids, written[None, :-1]], 1)
        hidden = target.model(text, output_hidden_states=True, use_cache=False).hidden_states
        early.append(hidden[layer][0, ids.shape[1] - 1 :])
        final.append(hidden[-1][0, ids.shape[1] - 1 :])  # after the last norm
    return early, final


def train(
    name: str, loss: Callable[[Tensor, Tensor], Tensor], adapter: Adapter, target: LoadedModel, data, options
) -> Outcome:
    """Train a copy of the adapter with one loss and judge it on the unseen positions."""
    adapter = copy.deepcopy(adapter)
    norm, head = target.model.model.norm, target.model.lm_head
    (early, final), (unseen_early, unseen_final) = data
    optimizer = torch.optim.AdamW(adapter.parameters(), lr=options.learning_rate)
    order = torch.Generator().manual_seed(options.seed)
    start = time.perf_counter()
    for step in range(options.steps):
        rows = torch.randint(len(early), (options.batch,), generator=order)
        with torch.no_grad():
            target_logits = head(final[rows])
        value = loss(target_logits, head(norm(adapter(early[rows]))))
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        if options.verbose and step % 20 == 0:
            print(f"{name}, step {step}: {value.item():.4f}", flush=True)
    seconds = time.perf_counter() - start
    kl, certificates, hits = [], [], []
    with torch.no_grad():
        for begin in range(0, len(unseen_early), 64):
            target_logits = head(unseen_final[begin : begin + 64])
            draft_logits = head(norm(adapter(unseen_early[begin : begin + 64])))
            found = certify(target_logits, "strict_greedy", draft_logits=draft_logits)
            kl.append(found.kl)
            certificates.append(found.value)
            hits.append(target_logits.argmax(-1) == draft_logits.argmax(-1))
    kl, certificates = torch.cat(kl), torch.cat(certificates)
    mean_kl = float(kl.mean())
    return Outcome(
        name,
        mean_kl,
        float(MeanKLGuarantee(certificates.numpy()).acceptance(mean_kl)),
        float((kl < certificates).double().mean()),
        float(torch.cat(hits).double().mean()),
        seconds,
    )


def main() -> None:
    """Run both and print the comparison, whichever wins."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="smollm2", help="a Llama-like model")
    parser.add_argument("--layer", type=int, default=28, help="layers of the target that the drafter uses")
    parser.add_argument("--prompts", type=int, default=40, help="every fourth is kept for judging")
    parser.add_argument("--tokens", type=int, default=64, help="greedy tokens a prompt")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--plain", type=float, default=0.1, help="weight of plain KL beside the hinge")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    target = load_model(options.target)
    target.model.requires_grad_(False)
    early, final = states(target, options.layer, options.prompts, options.tokens)
    seen = [index for index in range(len(early)) if index % 4]
    unseen = [index for index in range(len(early)) if not index % 4]
    data = [(torch.cat([early[i] for i in part]), torch.cat([final[i] for i in part])) for part in (seen, unseen)]
    adapter = Adapter(data[0][0].shape[1])

    def plain_kl(target_logits: Tensor, draft_logits: Tensor) -> Tensor:
        return nn.functional.kl_div(
            draft_logits.log_softmax(-1), target_logits.log_softmax(-1), log_target=True, reduction="batchmean"
        )

    def hinge(target_logits: Tensor, draft_logits: Tensor) -> Tensor:
        return certificate_hinge(target_logits, draft_logits, plain=options.plain)

    outcomes = [
        train(name, loss, adapter, target, data, options)
        for name, loss in (("plain KL", plain_kl), ("certificate hinge", hinge))
    ]
    if options.json:
        print(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
        return
    print(f"{len(data[0][0])} positions to train on, {len(data[1][0])} unseen ones to judge on")
    print(f"{'loss':<18} {'mean KL':>8} {'guaranteed':>11} {'certified':>10} {'measured':>9} {'seconds':>8}")
    for each in outcomes:
        print(
            f"{each.loss:<18} {each.mean_kl:>8.3f} {each.guaranteed:>11.3f} {each.certified:>10.3f} "
            f"{each.measured:>9.3f} {each.seconds:>8.0f}"
        )


if __name__ == "__main__":
    main()
