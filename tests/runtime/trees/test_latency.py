"""Cost-aware trees."""

import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftcert.runtime.trees import latency as module
from draftcert.runtime.trees.decoder import GreedyTreeDecoder
from draftcert.runtime.trees.drafters import Drafter, Observation
from draftcert.runtime.trees.forward import TreeForward
from draftcert.runtime.trees.latency import Latency, cached_latency
from draftcert.runtime.trees.tree import Tree
from draftcert.support import cache
from draftcert.theory import DraftcertError


@given(st.lists(st.floats(0, 1), max_size=12), st.lists(st.floats(0.01, 1), min_size=3, max_size=3))
def test_best_size_is_the_best(chances: list[float], seconds: list[float]) -> None:
    latency = Latency((1, 4, 8), tuple(seconds))
    chances = [1.0, *sorted(chances, reverse=True)]
    pace = [sum(chances[:n]) / latency(n) for n in range(1, len(chances) + 1)]
    assert pace[latency.best_size(chances) - 1] == max(pace)


def test_pruning_needs_probabilities() -> None:
    steep = Latency((1, 2), (0.01, 0.1))
    assert steep.prune(Tree((1, 2), (-1, 0))) == Tree((1, 2), (-1, 0))
    assert len(steep.prune(Tree((1, 2), (-1, 0), (1.0, 0.5)))) == 1


@pytest.mark.parametrize(
    ("sizes", "seconds"), [((), ()), ((2,), (1.0,)), ((1, 1), (1.0, 1.0)), ((1,), (0.0,)), ((1, 2), (1.0,))]
)
def test_useless_tables_are_refused(sizes: tuple[int, ...], seconds: tuple[float, ...]) -> None:
    with pytest.raises(DraftcertError):
        Latency(sizes, seconds)


def test_measured_once_and_kept(tmp_path: Path, tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "user_cache_path", lambda *_, **__: tmp_path)
    monkeypatch.setattr(module, "_STEADY", math.inf)  # whatever else this machine does
    forward = TreeForward(tiny())
    latency = cached_latency(forward, 8)
    assert latency.sizes == (1, 2, 4, 6, 8)
    monkeypatch.setattr(module, "measure_latency", lambda *_: pytest.fail("measured again"))
    assert cached_latency(forward, 8) == latency
    (path,) = (tmp_path / "latency").iterdir()
    assert json.loads(path.read_text())["identity"]["nodes"] == 8
    path.write_text("{")
    with pytest.raises(pytest.fail.Exception, match="measured again"):
        cached_latency(forward, 8)


def test_what_was_measured_on_a_busy_machine_serves_but_is_not_kept(
    tmp_path: Path, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "user_cache_path", lambda *_, **__: tmp_path)
    clock = itertools.accumulate(itertools.cycle([0.001, 0.001, 0.05, 0.05]))  # of a pass: 1 or 50 ms
    monkeypatch.setattr(module, "perf_counter", lambda: next(clock))
    latency = cached_latency(TreeForward(tiny()), 4)
    assert not latency.steady
    assert max(latency.seconds) == pytest.approx(0.001)
    assert not list((tmp_path / "latency").iterdir())


def test_a_machine_too_slow_for_the_table_still_learns_what_a_tree_costs(
    tmp_path: Path, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "user_cache_path", lambda *_, **__: tmp_path)
    clock = itertools.count(0, 1.5)  # a pass of any size takes longer than half of the time given
    monkeypatch.setattr(module, "perf_counter", lambda: next(clock))
    latency = cached_latency(TreeForward(tiny()), 8)
    assert latency.sizes == (1, 8)
    assert latency(8) == latency(1)
    assert latency.best_size([1.0, 0.6, 0.3]) == 3
    assert not latency.steady, "one sample says nothing about what else the machine does"
    assert not list((tmp_path / "latency").iterdir())


def test_cost_aware_decoding_is_exact_and_smaller(tiny: Any, hf_greedy: Any) -> None:
    model = tiny()
    steep = Latency((1, 8), (0.01, 0.2))
    costly = GreedyTreeDecoder(model, max_nodes=8, latency=steep).generate([1, 2, 3], 20, eos_token_id=())
    cheap = GreedyTreeDecoder(model, max_nodes=8).generate([1, 2, 3], 20, eos_token_id=())
    assert costly.tokens == cheap.tokens == [hf_greedy(model, [1, 2, 3], 20)]
    assert costly.stats.proposed < cheap.stats.proposed


class Chain:
    """Drafts as many nodes as it is asked for, each with a chance of `chance` where its parent was right."""

    def __init__(self, chance: float):
        self.chance, self.asked = chance, []

    def begin(self, prompt: Sequence[int]) -> Drafter:
        return self

    def propose(self, context: Sequence[int], max_nodes: int, max_depth: int) -> Tree:
        self.asked.append(max_nodes)
        nodes = range(min(max_nodes, max_depth + 1))
        tokens = (context[-1], *(0 for _ in nodes[1:]))
        return Tree(tokens, tuple(node - 1 for node in nodes), tuple(self.chance**node for node in nodes))

    def observe(self, context: Sequence[int], observation: Observation) -> None:
        """Let chances rise after the third pass."""
        self.chance = 1.0 if len(self.asked) >= 3 else self.chance


def test_a_drafter_is_asked_for_what_may_pay(tiny: Any, hf_greedy: Any) -> None:
    model, drafter = tiny(), Chain(0.1)
    latency = Latency((1, 8, 16), (0.01, 0.02, 0.02))
    decoder = GreedyTreeDecoder(model, drafter, max_nodes=24, latency=latency)
    found = decoder.generate([1, 2, 3], 60, eos_token_id=())
    assert found.tokens == [hf_greedy(model, [1, 2, 3], 60)]
    # First all that may be; then, as one was enough, the least; when all of those pay, twice as many, up to all.
    assert drafter.asked[:6] == [24, 8, 8, 8, 16, 24]
