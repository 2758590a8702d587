"""Records of steps: reasons, trace files, drawings."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from draftcert.runtime import row_stats
from draftcert.runtime.trees.decoder import GreedyTreeDecoder
from draftcert.runtime.trees.trace import DecodeStats, Seconds, Step, TraceWriter, draw_tree, reasons
from draftcert.runtime.trees.tree import Tree
from draftcert.theory import DraftcertError


def step() -> Step:
    logits = torch.tensor([[0.6, 0.3, 0.1], [0.25, 0.25, 0.5], [0.4, 0.4, 0.2], [0.2, 0.3, 0.5]]).log()
    tree = Tree((0, 0, 1, 1), (-1, 0, 0, 2))
    return Step(0, 4, tree, (0, 1), 2, (0, 2), row_stats(logits, 3), Seconds(0.1, 0.7, 0.1, 0.1))


def test_reasons() -> None:
    accepted, rejected, unreached = reasons(step())
    assert (accepted.accepted, accepted.reached, accepted.rank, accepted.target) == (True, True, 1, 0)
    assert accepted.certificate == pytest.approx(0.6 * 0.28768207 + 0.3 * -0.40546511)
    assert (rejected.accepted, rejected.reached, rejected.rank, rejected.target) == (False, True, 2, 0)
    assert rejected.probability == pytest.approx(0.3)
    assert rejected.margin == pytest.approx(0.6931472)
    assert (unreached.reached, unreached.tie, unreached.certificate) == (False, True, 0.0)


def test_counts_come_from_the_record() -> None:
    stats = DecodeStats()
    assert stats.acceptance_rate is None
    stats.add(step())
    stats.add_pass(step().seconds)
    assert (stats.proposed, stats.accepted, stats.truncated, stats.new_tokens) == (3, 1, 0, 2)
    assert (stats.proposed_at_depth, stats.accepted_at_depth) == ([1, 1], [1, 0])
    assert stats.overhead == pytest.approx(0.3)
    assert stats.tokens_per_pass == 2


def test_zero_streaks_are_counted() -> None:
    stats = DecodeStats()
    nothing = Step(0, 4, step().tree, (0,), 2, (2,), step().rows, step().seconds)
    for item in (nothing, nothing, step(), nothing):
        stats.add(item)
    assert (stats.zero_streak, stats.longest_zero_streak, stats.suspicious) == (1, 2, False)
    for _ in range(50):
        stats.add(nothing)
    assert stats.suspicious


def chain(right: int, accepted: int, wrong: int = 1) -> Step:
    """A step with a chain of `right` likely tokens and so many that are not, of which the first are accepted."""
    logits = torch.zeros(right + wrong + 1, 61)
    logits[:, 1], logits[:, 2:20] = 9.0, 1.0
    tree = Tree((0, *[1] * right, *[60] * wrong), tuple(range(-1, right + wrong)))
    path = tuple(range(accepted + 1))
    return Step(0, 4, tree, path, 1, (1,) * len(path), row_stats(logits, 16), step().seconds)


def warned(*steps: Step, times: int = 60) -> list[str]:
    stats = DecodeStats()
    for each in steps * times:
        stats.add(each)
    return stats.warnings


def test_what_looks_wrong_is_said_and_nothing_else() -> None:
    assert warned(chain(3, 3, 0), chain(3, 2, 0), chain(3, 1, 0)) == []
    assert warned(step()) == []
    assert warned(chain(2, 1), times=3) == []
    (cliff,) = warned(chain(3, 1))
    assert cliff.startswith("acceptance falls from 100% at depth 1 to 0%")
    streak, ids = warned(chain(0, 0))
    assert streak == "no drafted token was accepted in 60 steps on end: the drafter does not fit"
    assert ids.startswith("of 60 drafted tokens 0 are among the target's likeliest")
    stats = DecodeStats(ignored={"latency": "no reason"})
    assert stats.warnings == ["latency is ignored: no reason"]


def test_acceptance_by_depth() -> None:
    stats = DecodeStats()
    for each in (chain(2, 2), chain(2, 1), chain(2, 0), chain(0, 0)):
        stats.add(each)
    assert stats.acceptance_by_depth == [0.5, 0.5, 0.0]
    assert DecodeStats().acceptance_by_depth == []


def test_trace_file(tmp_path: Path, tiny: Any) -> None:
    with TraceWriter(tmp_path / "trace.jsonl") as write:
        result = GreedyTreeDecoder(tiny()).generate([1, 2, 3], 12, eos_token_id=(), on_step=write)
    lines = [json.loads(line) for line in (tmp_path / "trace.jsonl").read_text().splitlines()]
    assert [token for line in lines for token in line["tokens"]] == result.tokens[0]
    assert [len(line["nodes"]) + 1 for line in lines] == [len(s.tree) for s in result.steps]
    for place in (tmp_path / "no" / "trace", tmp_path, tmp_path / "trace.jsonl" / "below"):
        with pytest.raises(DraftcertError, match="cannot write"), TraceWriter(place):
            pass
    before = (tmp_path / "trace.jsonl").read_text()

    def fails(steps: int) -> None:
        with TraceWriter(tmp_path / "trace.jsonl") as write:
            for _ in range(steps):
                write(step())
            assert (tmp_path / "trace.jsonl").read_text() == before, "as it was until the block ends"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails(0)
    assert (tmp_path / "trace.jsonl").read_text() == before
    with pytest.raises(ZeroDivisionError):
        fails(1)
    assert len((tmp_path / "trace.jsonl").read_text().splitlines()) == 1


def test_drawing_shows_every_node_and_what_the_target_wanted() -> None:
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(draw_tree(step(), lambda ids: f"[{ids[0]}]"))
    text = console.export_text()
    assert text.count("'[1]'") == 2
    assert "target '[0]'" in text
    assert "'[2]' from the target" in text
