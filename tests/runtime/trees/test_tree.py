"""Draft trees: what is refused, and who may see whom at which position."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from draftcert.runtime.trees.tree import Tree
from draftcert.theory import DraftcertError


@st.composite
def trees(draw: st.DrawFn, vocabulary: int = 6, max_nodes: int = 12) -> Tree:
    tokens, parents = [draw(st.integers(0, vocabulary - 1))], [-1]
    for _ in range(draw(st.integers(0, max_nodes - 1))):
        parent = draw(st.integers(0, len(tokens) - 1))
        taken = {tokens[node] for node in range(1, len(tokens)) if parents[node] == parent}
        if free := sorted(set(range(vocabulary)) - taken):
            tokens.append(draw(st.sampled_from(free)))
            parents.append(parent)
    return Tree(tuple(tokens), tuple(parents))


@given(trees())
def test_mask_shows_exactly_the_path(tree: Tree) -> None:
    mask = tree.ancestor_mask()
    for node in range(len(tree)):
        assert tuple(mask[node].nonzero().flatten().tolist()) == tree.path(node)


@given(trees(), st.integers(0, 1000))
def test_position_is_prefix_plus_depth(tree: Tree, prefix: int) -> None:
    expected = [prefix + len(tree.path(node)) - 1 for node in range(len(tree))]
    assert tree.positions(prefix).tolist() == expected


def test_siblings_share_a_position_and_do_not_see_each_other() -> None:
    tree = Tree((9, 1, 2, 3, 1, 2), (-1, 0, 0, 0, 2, 2))
    assert tree.positions(5).tolist() == [5, 6, 6, 6, 7, 7]
    mask = tree.ancestor_mask()
    assert not mask[1:4, 1:4].triu(1).any()
    assert not mask[1:4, 1:4].tril(-1).any()
    assert mask[5].tolist() == [True, False, True, False, False, True]


@given(trees(), st.integers(1, 12))
def test_first_nodes_are_a_tree(tree: Tree, nodes: int) -> None:
    pruned = tree.pruned(nodes)
    assert pruned.tokens == tree.tokens[:nodes]
    assert pruned.depths == tree.depths[:nodes]


@pytest.mark.parametrize("chance", [float("nan"), -0.1, float("inf"), "0.5", None, True, [0.5]])
def test_estimates_that_are_no_numbers_are_refused(chance: Any) -> None:
    with pytest.raises(DraftcertError, match=r"probabilities\[1\] = "):
        Tree((7, 3), (-1, 0), (1.0, chance))


@pytest.mark.parametrize(
    ("tokens", "parents", "message"),
    [
        ([], [], "needs its root"),
        ([1, 2], [-1], "2 tokens, 1 parents"),
        ([1, 2], [0, 0], r"parents\[0\] must be -1, not 0"),
        ([1, 2, 3], [-1, 2, 1], "node 1 has parent 2"),
        ([1, 2], [-1, 1], "node 1 has parent 1"),
        ([1, 2], [-1, -1], "node 1 has parent -1"),
        ([1, 2], [-1, 7], "node 1 has parent 7"),
        ([1, -1], [-1, 0], "node 1 has token -1"),
        ([1, 2, 2], [-1, 0, 0], "same token 2"),
    ],
)
def test_broken_trees_are_refused(tokens: list[int], parents: list[int], message: str) -> None:
    with pytest.raises(DraftcertError, match=message):
        Tree(tuple(tokens), tuple(parents))


def test_token_outside_the_vocabulary_is_refused() -> None:
    Tree((0, 4), (-1, 0)).check_vocabulary(5)
    with pytest.raises(DraftcertError, match="node 1 has token 5, but the target's vocabulary ends at 4"):
        Tree((0, 5), (-1, 0)).check_vocabulary(5)


def test_lists_and_tensors_are_taken_as_they_come() -> None:
    tree = Tree(torch.tensor([3, 4]), torch.tensor([-1, 0]))  # type: ignore[arg-type]
    assert tree == Tree((3, 4), (-1, 0))
