"""Drafters: best-first growth, what they learn, and that none can change the output."""

import pickle
from collections.abc import Callable, Sequence
from itertools import product
from math import ceil, log
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from draftcert.numerics import certificate
from draftcert.runtime.trees.decoder import GreedyTreeDecoder
from draftcert.runtime.trees.drafters import (
    Assistant,
    Combined,
    Drafter,
    Observation,
    PromptLookup,
    TokenRecycling,
    cached_successors,
    drafter_by_name,
    grow,
    keep_layers,
    prior,
    successor_table,
)
from draftcert.runtime.trees.forward import TreeForward
from draftcert.runtime.trees.tree import Tree
from draftcert.support import cache
from draftcert.theory import DraftcertError


@given(st.lists(st.floats(0.01, 0.9), min_size=1, max_size=3), st.integers(1, 10), st.integers(0, 3))
def test_growth_takes_the_most_likely_nodes(chances: list[float], nodes: int, depth: int) -> None:
    tree = grow(0, lambda path: list(enumerate(chances)), nodes, depth)
    everything = sorted(
        (
            _product(chances[token] for token in path)
            for d in range(depth + 1)
            for path in product(range(len(chances)), repeat=d)
        ),
        reverse=True,
    )
    assert tree.probabilities == pytest.approx(everything[:nodes])
    assert max(tree.depths) <= depth


def _product(factors: Any) -> float:
    result = 1.0
    for factor in factors:
        result *= factor
    return result


def observation(tree: Tree, path: tuple[int, ...], *successors: list[int]) -> Observation:
    chances = [[0.9, 0.05, 0.02][: len(ids)] for ids in successors]
    return Observation(tree, path, list(successors), chances)


def test_token_recycling_remembers_accepted_and_rejected_nodes() -> None:
    drafter = TokenRecycling(longest=1)
    assert drafter.propose([1, 2], 8, 4).tokens == (2,)
    tree = Tree((2, 5, 6), (-1, 0, 0))
    drafter.observe([1, 2], observation(tree, (0, 1), [5, 6], [7, 8], [9, 4]))
    drafted = drafter.propose([3, 2], 9, 2)
    children = {drafted.tokens[child] for child in drafted.children[0]}
    assert children == {5, 6}
    assert {drafted.tokens[n] for n in range(len(drafted)) if drafted.depths[n] == 2} == {7, 8, 9, 4}


def test_token_recycling_prefers_the_longer_context() -> None:
    drafter = TokenRecycling(longest=2)
    root = Tree((2,), (-1,))
    drafter.observe([1, 2], observation(root, (0,), [5, 6]))
    drafter.observe([9, 2], observation(root, (0,), [7, 8]))
    assert [token for token, _ in drafter.successors([1, 2], ())] == [5, 6, 7, 8]
    assert [token for token, _ in drafter.successors([4, 2], ())] == [7, 8]
    drafter.clear()
    assert not drafter.successors([1, 2], ())


def test_hit_rates_learn_which_successors_are_right() -> None:
    drafter = TokenRecycling(longest=1)
    root = Tree((2,), (-1,))
    for _ in range(60):  # the second successor is right every time
        drafter.observe([2], observation(root, (0,), [5, 6]))
        drafter.table[(2,)].reverse()
    first, second = (chance for _, chance in drafter.successors([2], ()))
    assert first < 0.3 < 0.7 < second


def test_certificate_guided_widths() -> None:
    drafter = TokenRecycling(shape="certificate-guided", longest=1)
    root = Tree((2,), (-1,))
    for top, second in ((1.0, 0.0), (0.9, 0.03), (0.75, 0.2), (0.4, 0.4)):
        chances = [top, second, *[(1 - top - second) / 6] * 6]
        observed = Observation(root, (0,), [list(range(8))], [chances])
        exact = float(certificate(chances, "strict_greedy"))
        assert observed.certificate(0) == pytest.approx(exact, abs=1e-6)
        drafter.observe([2], observed)
        assert len(drafter.successors([2], ())) == max(1, ceil(8 * (1 - exact / log(2))))
    drafter.observe([2], Observation(root, (0,), [[5]], [[1.0]]))
    assert len(drafter.successors([2], ())) == 1


def test_static_shape_does_not_depend_on_probabilities() -> None:
    shapes = set()
    for top in (0.99, 0.2):
        drafter = TokenRecycling(shape="static", longest=1, successors_kept=3)
        for token in range(8):
            ids = [(token + i) % 8 for i in range(1, 4)]
            drafter.observe([token], Observation(Tree((token,), (-1,)), (0,), [ids], [[top, 0.01, 0.001]]))
        shapes.add(drafter.propose([0], 12, 5).parents)
    assert len(shapes) == 1


def test_prior_is_the_target_after_one_token(tiny: Any) -> None:
    model = tiny()
    model.config.bos_token_id, kept_bos = 5, model.config.bos_token_id
    shares: list[float] = []
    table = successor_table(TreeForward(model), on_progress=shares.append)
    model.config.bos_token_id = kept_bos
    assert len(table) == 61
    assert shares == [1.0]
    assert successor_table(TreeForward(model), seconds=0) == []
    with torch.inference_mode():
        for token in (0, 17, 60):
            chances = model(input_ids=torch.tensor([[5, token]])).logits[0, -1].softmax(-1)
            assert table[token][0] == chances.topk(16).indices.tolist()
            assert table[token][1] == pytest.approx(chances.topk(16).values.tolist(), abs=1e-4)


def test_prior_fills_in_where_nothing_was_seen() -> None:
    drafter = TokenRecycling(prior=[([1, 2], [0.6, 0.3]), ([2], [0.9])], successors_kept=1)
    assert [token for token, _ in drafter.successors([0], ())] == [1]
    assert not drafter.successors([2], ())
    drafter.observe([0], observation(Tree((0,), (-1,)), (0,), [7, 8]))
    assert [token for token, _ in drafter.successors([0], ())] == [7, 1]
    drafter.clear()
    assert [token for token, _ in drafter.successors([0], ())] == [1]


def test_prior_is_kept_by_model(tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "user_cache_path", lambda *_, **__: tmp_path)
    first, other = (cached_successors(TreeForward(tiny("llama", seed))) for seed in (0, 1))
    assert first != other
    monkeypatch.setattr(prior, "successor_table", lambda *_: pytest.fail("computed again"))
    assert cached_successors(TreeForward(tiny("llama", 0))) == first


def test_prompt_lookup_follows_the_latest_longest_match() -> None:
    drafter = PromptLookup(longest=3).begin([1, 2, 3, 9, 2, 3, 8, 1, 2, 3])
    assert isinstance(drafter, PromptLookup)
    assert [token for token, _ in drafter.successors([1, 2, 3, 9, 2, 3, 8, 1, 2, 3], ())] == [9]
    assert [token for token, _ in drafter.successors([7, 2, 3], ())] == [8, 9]
    tree = drafter.propose([1, 2, 3, 9, 2, 3, 8, 1, 2, 3], 4, 3)
    assert tree.tokens[:2] == (3, 9)
    other = PromptLookup().begin([5, 5])
    assert isinstance(other, PromptLookup)
    assert not other.successors([1, 2, 3], ())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none+none", "none is no part of another"),
        ("lookup + none", "none is no part of another"),
        ("layers:\u0661", "cannot read the layers"),
        (5, "drafter = 5: give its name"),
    ],
)
def test_a_name_of_no_drafter_is_told_in_one_line(name: Any, message: str, tiny: Any) -> None:
    with pytest.raises(DraftcertError, match=message):
        drafter_by_name(name, tiny())


@pytest.mark.parametrize("setting", ["fast", "fixed_shapes"])
def test_a_setting_that_only_counts_as_true_is_refused(setting: str, tiny: Any) -> None:
    options: Any = {setting: "no"}
    with pytest.raises(DraftcertError, match=f"{setting} = 'no': give True or False"):
        GreedyTreeDecoder(tiny(), latency=None, **options)


def test_union_raises_the_estimate_of_what_several_name() -> None:
    class Names(PromptLookup):
        def successors(self, context: Sequence[int], path: tuple[int, ...]) -> list[tuple[int, float]]:
            return [(1, 0.5), (2, 0.25)]

    class Others(PromptLookup):
        def successors(self, context: Sequence[int], path: tuple[int, ...]) -> list[tuple[int, float]]:
            return [(1, 0.5), (3, 0.4)]

    assert dict(Combined(Names(), Others()).successors([0], ())) == pytest.approx({1: 0.75, 2: 0.25, 3: 0.4})


MAKERS: dict[str, Callable[[Any], Drafter]] = {
    "recycling": lambda model: TokenRecycling(),
    "recycling-static": lambda model: TokenRecycling(shape="static"),
    "recycling-guided": lambda model: TokenRecycling(shape="certificate-guided"),
    "recycling-prior": lambda model: TokenRecycling(prior=successor_table(TreeForward(model))),
    "lookup": lambda model: PromptLookup(),
    "itself": lambda model: Assistant(model, width=1, beam=1, depth=4, confidence=0),
    "first-layer": lambda model: Assistant(keep_layers(model, [0]), 61, width=3, beam=3, depth=3),
    "union": lambda model: Combined(Assistant(keep_layers(model, [1])), TokenRecycling(), PromptLookup()),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_no_drafter_changes_the_output(name: str, kind: str, tiny: Any, hf_greedy: Any) -> None:
    model = tiny(kind)
    prompt = [5, 17, 3, 17, 3, 42]
    decoder = GreedyTreeDecoder(model, MAKERS[name](model), max_nodes=9, latency=None)
    cold, warm = (decoder.generate(prompt, 30, eos_token_id=()) for _ in range(2))
    assert cold.tokens == warm.tokens == [hf_greedy(model, prompt, 30)]
    if name == "itself":
        # The prompt, then 29 tokens by paths that are accepted whole: 4 drafted ones and 1 each.
        assert cold.stats.target_passes == 1 + 6


def test_assistant_of_a_smaller_vocabulary_drafts_shared_ids_only(tiny: Any, caplog: pytest.LogCaptureFixture) -> None:
    model = tiny()
    drafter = Assistant(model, target_vocab_size=40).begin([1, 2])
    assert "only the 40 shared ones" in caplog.text
    assert max(drafter.propose([1, 2], 30, 3).tokens) < 40
    assert len(drafter.propose([1, 2, 61], 30, 3)) == 1


def test_assistant_goes_deeper_while_it_is_confident(tiny: Any) -> None:
    deep, shallow = (Assistant(tiny(), confidence=bound).begin([1, 2]).propose([1, 2], 40, 4) for bound in (0.0, 1.01))
    assert max(deep.depths) == 4
    assert max(shallow.depths) == 1
    assert shallow.tokens[1:] == tuple(deep.tokens[child] for child in deep.children[0])


def test_union_refuses_what_proposes_whole_trees_only() -> None:
    class Whole:
        def begin(self, prompt: Sequence[int]) -> Drafter:
            return self

        def propose(self, context: Sequence[int], max_nodes: int, max_depth: int) -> Tree:
            return Tree((context[-1],), (-1,))

        def observe(self, context: Sequence[int], observation: Observation) -> None:
            pass

    with pytest.raises(DraftcertError, match="Whole cannot be combined"):
        Combined(PromptLookup(), Whole())


def test_what_was_learned_can_be_kept(tiny: Any) -> None:
    drafter = Combined(TokenRecycling(), PromptLookup())
    GreedyTreeDecoder(tiny(), drafter).generate([5, 17, 3], 30, eos_token_id=())
    again = pickle.loads(pickle.dumps(drafter))
    assert again.members[0].table == drafter.members[0].table  # type: ignore[attr-defined]
    context = [5, 17, 3, 9]
    assert again.begin(context).propose(context, 12, 4) == drafter.begin(context).propose(context, 12, 4)


def test_layers_that_do_not_exist_are_refused(tiny: Any) -> None:
    for layers in ([], [2], [1, 0], [-1]):
        with pytest.raises(DraftcertError, match="0 to 1"):
            keep_layers(tiny(), layers)
    with pytest.raises(DraftcertError, match="different kinds"):
        keep_layers(tiny("gemma3-window"), [0])
    thin = keep_layers(tiny(), [1])
    assert len(thin.model.layers) == 1
    assert len(tiny().model.layers) == 2
    assert thin.lm_head is tiny().lm_head
