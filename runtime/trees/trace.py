"""What a decoder did: one record a target pass, and counts over all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from math import exp, inf
from pathlib import Path
from typing import Any

import torch
from rich.text import Text
from rich.tree import Tree as RichTree

from ...support.files import replacing
from ...theory.errors import DraftcertError
from ..generated import torch_formulas
from ..rows.records import RowStats
from .tree import Tree

SUSPICIOUS_STREAK = 50
"""Steps in a row without one accepted token from which a drafter is flagged."""
ENOUGH = 50
"""Drafted tokens, or paths, from which on a share of them says something."""


@dataclass(frozen=True)
class Seconds:
    """Wall time of one step: drafting, the target's forward pass, verification, cache and learning."""

    draft: float
    target: float
    verify: float
    commit: float

    @property
    def total(self) -> float:
        """The whole step."""
        return self.draft + self.target + self.verify + self.commit


@dataclass(frozen=True)
class Step:
    """One target pass over one sequence.

    `row`: the sequence within the batch. `prefix`: tokens before the root. `path`: accepted nodes, root first, and
    `token` the target's token after them. `tokens`: what was committed, shorter than `path` only where the end of the
    sequence or the budget cut it. `rows`: statistics of the target's logits after every node. The first step of a
    sequence is its prompt: a tree of one node.
    """

    row: int
    prefix: int
    tree: Tree
    path: tuple[int, ...]
    token: int
    tokens: tuple[int, ...]
    rows: RowStats
    seconds: Seconds

    @property
    def accepted(self) -> int:
        """Drafted nodes the target accepted."""
        return len(self.path) - 1

    @property
    def truncated(self) -> int:
        """Verified tokens that were cut off by the end of the sequence or the budget."""
        return len(self.path) - len(self.tokens)


@dataclass
class DecodeStats:
    """Counts over all steps, each taken from a step's record and from nothing else.

    `proposed` counts the drafted nodes that were really sent through the target, `accepted` those of them on accepted
    paths (also where the end of the sequence cut them off; `truncated` counts these and a cut following token).
    `proposed_at_depth[d]` counts steps whose tree reached depth d + 1, `accepted_at_depth[d]` those whose path did.
    `tried_at_depth[d]` counts steps whose path reached depth d at a node with children. `judged` counts drafted nodes
    whose parent was accepted, `likely` those of them that are among the kept, likeliest tokens of the target there.
    `ignored`: settings that had no effect, with the reason.
    """

    sequences: int = 0
    prompt_tokens: int = 0
    new_tokens: int = 0
    target_passes: int = 0
    proposed: int = 0
    accepted: int = 0
    truncated: int = 0
    drafted_steps: int = 0
    zero_streak: int = 0
    longest_zero_streak: int = 0
    proposed_at_depth: list[int] = field(default_factory=list)
    accepted_at_depth: list[int] = field(default_factory=list)
    tried_at_depth: list[int] = field(default_factory=list)
    seconds_draft: float = 0.0
    seconds_target: float = 0.0
    seconds_verify: float = 0.0
    seconds_commit: float = 0.0
    finish_reasons: dict[str, int] = field(default_factory=dict)
    judged: int = 0
    likely: int = 0
    ignored: dict[str, str] = field(default_factory=dict)

    def add(self, step: Step) -> None:
        """Count one step of one sequence (`target_passes` and the times are counted by pass, not here)."""
        self.new_tokens += len(step.tokens)
        self.proposed += len(step.tree) - 1
        self.accepted += step.accepted
        self.truncated += step.truncated
        deepest = max(step.tree.depths)
        for counts, reached in ((self.proposed_at_depth, deepest), (self.accepted_at_depth, step.accepted)):
            counts.extend([0] * (deepest - len(counts)))
            for depth in range(reached):
                counts[depth] += 1
        self.tried_at_depth.extend([0] * (deepest - len(self.tried_at_depth)))
        for depth, parent in enumerate(step.path):
            if children := step.tree.children[parent]:
                self.tried_at_depth[depth] += 1
                kept = set(step.rows.top_ids[parent].tolist())
                self.judged += len(children)
                self.likely += sum(step.tree.tokens[child] in kept for child in children)
        if len(step.tree) > 1:
            self.drafted_steps += 1
            self.zero_streak = 0 if step.accepted else self.zero_streak + 1
            self.longest_zero_streak = max(self.longest_zero_streak, self.zero_streak)

    def add_pass(self, seconds: Seconds) -> None:
        """Count one target pass over the whole batch."""
        self.target_passes += 1
        self.seconds_draft += seconds.draft
        self.seconds_target += seconds.target
        self.seconds_verify += seconds.verify
        self.seconds_commit += seconds.commit

    @property
    def seconds(self) -> float:
        """Wall time of all passes."""
        return self.seconds_draft + self.seconds_target + self.seconds_verify + self.seconds_commit

    @property
    def tokens_per_pass(self) -> float:
        """New tokens a target pass, the pass over the prompt included; 0 before the first."""
        return self.new_tokens / self.target_passes if self.target_passes else 0.0

    @property
    def tokens_per_second(self) -> float:
        """New tokens a second of the passes."""
        return self.new_tokens / self.seconds if self.seconds else 0.0

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted of the proposed nodes, between 0 and 1; `None` if nothing was proposed."""
        return self.accepted / self.proposed if self.proposed else None

    @property
    def suspicious(self) -> bool:
        """Whether so many drafts in a row were rejected whole that the drafter is more likely broken than unlucky."""
        return self.longest_zero_streak >= SUSPICIOUS_STREAK

    @property
    def acceptance_by_depth(self) -> list[float]:
        """Of the paths that reached depth d and could go on, the share that did (d = 0: from the root)."""
        pairs = zip(self.accepted_at_depth, self.tried_at_depth, strict=True)
        return [hits / tried if tried else 0.0 for hits, tried in pairs]

    @property
    def warnings(self) -> list[str]:
        """What looks wrong with the drafter or the settings, each in a sentence; none if all is well."""
        found = [f"{setting} is ignored: {reason}" for setting, reason in self.ignored.items()]
        if self.suspicious:
            found.append(
                f"no drafted token was accepted in {self.longest_zero_streak} steps on end: the drafter does not fit"
            )
        if self.judged >= ENOUGH and self.likely < 0.05 * self.judged:
            found.append(
                f"of {self.judged} drafted tokens {self.likely} are among the target's likeliest: do the drafter's ids "
                "mean the target's tokens?"
            )
        shares = self.acceptance_by_depth
        for depth in range(1, len(shares)):
            if self.tried_at_depth[depth] >= ENOUGH and shares[depth] < 0.1 * shares[depth - 1]:
                found.append(
                    f"acceptance falls from {shares[depth - 1]:.0%} at depth {depth} to {shares[depth]:.0%} behind it: "
                    "the drafter goes wrong after its own tokens"
                )
        return found

    @property
    def overhead(self) -> float:
        """Share of the time that was not the target's forward pass."""
        return 1 - self.seconds_target / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class NodeReason:
    """Why a node of a step was accepted or not.

    `target` is the target's greedy token at the node's parent, and `margin` its lead in logits over the second.
    `rank` and `probability` are the drafted token's there; `None` where it was not among the kept ones. `certificate`
    is the strict certificate of the parent's row, `tie` whether its two largest logits are equal.
    """

    node: int
    token: int
    accepted: bool
    reached: bool
    target: int
    rank: int | None
    probability: float | None
    margin: float
    certificate: float
    tie: bool


def reasons(step: Step) -> list[NodeReason]:
    """One reason for every drafted node of a step, in the order of the nodes.

    A node is `reached` if its parent was accepted: only then did the target's prediction decide about it.
    """
    rows, path = step.rows, set(step.path)
    certificates = strict_certificates(top_probabilities(rows)).tolist()
    result = []
    for node in range(1, len(step.tree)):
        parent, token = step.tree.parents[node], step.tree.tokens[node]
        ids, values = rows.top_ids[parent].tolist(), rows.top_values[parent].tolist()
        logsumexp = float(rows.logsumexp[parent])
        place = ids.index(token) if token in ids else None
        result.append(
            NodeReason(
                node=node,
                token=token,
                accepted=node in path,
                reached=parent in path,
                target=ids[0],
                rank=None if place is None else place + 1,
                probability=None if place is None else exp(values[place] - logsumexp),
                margin=values[0] - values[1] if len(values) > 1 else inf,
                certificate=certificates[parent],
                tie=len(values) > 1 and values[0] == values[1],
            )
        )
    return result


def strict_certificates(probabilities: torch.Tensor) -> torch.Tensor:
    """Strict greedy's certificates in nats, from the largest probabilities `[..., k]` of rows, descending (T5).

    Infinite where k is 1: no other token is known.
    """
    if probabilities.shape[-1] < 2:
        return probabilities.new_full(probabilities.shape[:-1], inf)
    top, second = probabilities[..., :2].unbind(-1)
    return torch_formulas.strict_greedy(top + second, top - second)


def top_probabilities(rows: RowStats) -> torch.Tensor:
    """The largest probabilities `[rows, k]` of recorded rows."""
    return (rows.top_values - rows.logsumexp[:, None]).exp()


def certificates_met(steps: Iterable[Step]) -> list[float]:
    """Strict greedy's certificate at every committed token, in nats."""
    met = (top_probabilities(step.rows)[list(step.path[: len(step.tokens)])] for step in steps)
    return [certificate for rows in met for certificate in strict_certificates(rows).tolist()]


def as_json(step: Step) -> dict[str, Any]:
    """A step as plain data: what one line of a trace file holds."""
    return {
        "row": step.row,
        "prefix": step.prefix,
        "tokens": list(step.tokens),
        "tree": {"tokens": list(step.tree.tokens), "parents": list(step.tree.parents)},
        "draft_probabilities": step.tree.probabilities,
        "path": list(step.path),
        "next": step.token,
        "truncated": step.truncated,
        "nodes": [asdict(reason) for reason in reasons(step)],
        "certificates": strict_certificates(top_probabilities(step.rows)).tolist(),
        "seconds": asdict(step.seconds),
    }


class TraceWriter:
    """Writes steps to a file as JSON lines; use as a context manager and give as `on_step`.

    The file is there when the block has ended, well or not, with the steps until then; a process that is killed, or
    fails before its first step, leaves what was there before.
    """

    def __init__(self, path: str | Path):
        self.path, self._empty = Path(path), True

    def __enter__(self) -> TraceWriter:
        """Begin the file, before the first step is made."""
        if self.path.is_dir():
            raise DraftcertError(f"cannot write {self.path}: it is a folder")
        with ExitStack() as stack:
            partial = stack.enter_context(replacing(self.path))
            self._file = stack.enter_context(partial.open("w", encoding="utf-8"))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        """End the file with the steps until now, whatever ended the run; one that made no step leaves none."""
        if self._empty:
            self._stack.__exit__(*error)
        else:
            self._stack.close()

    def __call__(self, step: Step) -> None:
        """Append one step."""
        self._empty = False
        self._file.write(json.dumps(as_json(step)) + "\n")


def draw_tree(step: Step, decode: Callable[[Sequence[int]], str] | None = None) -> RichTree:
    """A step's tree for the terminal (rich): accepted nodes green, rejected red with what the target wanted instead."""

    def text(token: int) -> str:
        return repr(decode([token])) if decode else str(token)

    why = {reason.node: reason for reason in reasons(step)}
    branches = {0: RichTree(Text(text(step.tree.tokens[0]), "bold"))}
    for node in range(1, len(step.tree)):
        reason = why[node]
        chance = "" if reason.probability is None else f" p={reason.probability:.3f} rank {reason.rank}"
        if reason.accepted:
            label = Text.assemble((text(reason.token), "green"), (chance, "dim"))
        elif reason.reached:
            label = Text.assemble((text(reason.token), "red"), (f"{chance}, target {text(reason.target)}", "dim"))
        else:
            label = Text(text(reason.token), "dim")
        branches[node] = branches[step.tree.parents[node]].add(label)
    branches[step.path[-1]].add(Text.assemble((text(step.token), "bold green"), (" from the target", "dim")))
    return branches[0]
