"""A decoding trace for the tree viewer of the report: every step of the tree decoder on one prompt, as plain data."""

from __future__ import annotations

from typing import Any

import torch

from ..runtime.models import LoadedModel
from ..runtime.rows.projection import project
from ..runtime.trees.decoder import GreedyTreeDecoder
from ..runtime.trees.drafters import TokenRecycling
from ..runtime.trees.drafters.assistant import Assistant
from ..runtime.trees.trace import Step

TOKENS, NODES, SHOWN = 48, 14, 5
"""New tokens and nodes a tree of a trace, and target tokens shown at each node."""


def decoding_trace(target: LoadedModel, draft: Any, prompt: torch.Tensor) -> dict[str, Any]:
    """Decode `prompt [1, length]` with trees of the draft model, or of Token Recycling without one; describe each step.

    A step holds the committed text `before` it, its `nodes` (parents first; node 0 is the last committed token) and the
    tokens it `committed`. A node holds its `parent`, `token`, whether it was `accepted`, the target's most likely
    tokens after it (`target`, with probabilities) and, where it has children, the `certificate` for that many
    candidates in nats.
    """
    steps: list[Step] = []
    if draft is None:
        name, drafter = "Token Recycling", TokenRecycling()
    else:
        name, drafter = "the audited one", Assistant(draft, target.model.get_output_embeddings().weight.shape[0])
    decoder = GreedyTreeDecoder(target, drafter, max_nodes=NODES, latency=None)  # the same trees on every machine
    decoder.generate(prompt, TOKENS, on_step=steps.append, keep_steps=False)
    tokens = prompt[0].tolist()
    described = []
    for step in steps:
        before = target.decode(tokens[prompt.shape[1] :])
        described.append({"before": before, **_described(step, target)})
        tokens.extend(step.tokens)
    return {
        "prompt": target.decode(prompt[0].tolist()),
        "drafter": name,
        "text": target.decode(tokens[prompt.shape[1] :]),
        "steps": described,
    }


def _described(step: Step, target: LoadedModel) -> dict[str, Any]:
    def text(token: int) -> str:
        return target.tokenizer.decode([token])

    log_probabilities = step.rows.top_values.double() - step.rows.logsumexp.double()[:, None]
    nodes = []
    for node, (token, parent) in enumerate(zip(step.tree.tokens, step.tree.parents, strict=True)):
        row = log_probabilities[node]
        shown = zip(step.rows.top_ids[node, :SHOWN].tolist(), row[:SHOWN].exp().tolist(), strict=True)
        candidates = len(step.tree.children[node])
        nodes.append(
            {
                "parent": parent,
                "token": text(token),
                "accepted": node in step.path,
                "target": [[text(likely), round(probability, 4)] for likely, probability in shown],
                "certificate": _strict_greedy(row, candidates) if 0 < candidates < len(row) else None,
            }
        )
    return {"nodes": nodes, "committed": [text(token) for token in step.tokens]}


def _strict_greedy(log_probabilities: torch.Tensor, candidates: int) -> float:
    gaps = (log_probabilities[0] - log_probabilities)[None]
    projected = project(log_probabilities[:1].exp(), gaps, torch.ones(1, dtype=torch.long), candidates)
    return round(float(projected.value), 4)
