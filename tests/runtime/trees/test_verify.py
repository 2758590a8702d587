"""The walk through the tree, on tiny arrays: cases that broke other decoders."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from draftcert.runtime.rows import certify
from draftcert.runtime.trees.tree import Tree
from draftcert.runtime.trees.verify import Verification, rank, verify_tree
from draftcert.theory import DraftcertError, Rule, parse_rule
from draftcert.theory.rules import strict_greedy

STRICT = strict_greedy()
V = 5


def predicts(*tokens: int) -> torch.Tensor:
    """Logits whose row i is largest at tokens[i]."""
    logits = torch.zeros(len(tokens), V)
    logits[torch.arange(len(tokens)), torch.tensor(tokens)] = 1.0
    return logits


def test_first_draft_is_judged_by_the_row_before_it() -> None:
    # Row 0 predicts 1. A walk that judges node 1 by its own row would accept 2 and reject 1.
    assert verify_tree(predicts(1, 2), Tree((0, 1), (-1, 0)), STRICT) == Verification((0, 1), 2)
    assert verify_tree(predicts(1, 2), Tree((0, 2), (-1, 0)), STRICT) == Verification((0,), 1)


def test_root_alone_yields_the_greedy_token() -> None:
    assert verify_tree(predicts(3), Tree((0,), (-1,)), STRICT) == Verification((0,), 3)


def test_chain_with_a_rejected_middle_token() -> None:
    # 1 is right, 4 is wrong (2 was), 3 would be right after 4 but hangs on a rejected node.
    tree = Tree((0, 1, 4, 3), (-1, 0, 1, 2))
    path, token = verify_tree(predicts(1, 2, 3, 0), tree, STRICT)
    assert (path, token) == ((0, 1), 2)  # the correction comes from the first rejected position


def test_full_acceptance_ends_in_a_bonus_token() -> None:
    assert verify_tree(predicts(1, 2, 3), Tree((0, 1, 2), (-1, 0, 1)), STRICT) == Verification((0, 1, 2), 3)


def test_depth_one_tree_with_several_children() -> None:
    tree = Tree((0, 4, 3, 2), (-1, 0, 0, 0))
    assert verify_tree(predicts(2, 0, 0, 1), tree, STRICT) == Verification((0, 3), 1)


def test_non_contiguous_path_through_a_branchy_tree() -> None:
    tree = Tree((0, 4, 1, 3, 2, 0), (-1, 0, 0, 1, 2, 4))
    assert verify_tree(predicts(1, 0, 2, 0, 0, 3), tree, STRICT) == Verification((0, 2, 4, 5), 3)


def test_padding_token_zero_is_accepted_only_when_it_is_the_greedy_token() -> None:
    tree = Tree((3, 0), (-1, 0))
    assert verify_tree(predicts(2, 1), tree, STRICT).path == (0,)
    assert verify_tree(predicts(0, 1), tree, STRICT).path == (0, 1)
    with pytest.raises(DraftcertError, match="token -1"):
        Tree((3, -1), (-1, 0))


def test_tie_goes_to_the_lowest_id() -> None:
    logits = torch.tensor([[0.0, 2.0, 2.0, 1.0, 0.0], [0.0, 0.0, 3.0, 3.0, 1.0], [1.0, 0.0, 0.0, 0.0, 0.0]])
    tree = Tree((0, 2, 1), (-1, 0, 0))
    assert verify_tree(logits, tree, STRICT) == Verification((0, 2), 0)
    assert verify_tree(logits[:2], Tree((0, 2), (-1, 0)), STRICT) == Verification((0,), 1)
    assert [rank(logits[0], token) for token in range(V)] == [4, 1, 2, 3, 5]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_dtypes(dtype: torch.dtype) -> None:
    assert verify_tree(predicts(1, 2).to(dtype), Tree((0, 1), (-1, 0)), STRICT) == Verification((0, 1), 2)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.nan, r"logits\[1\]: the logit of token 3 is nan"),
        (torch.inf, r"logits\[1\]: the logit of token 3 is inf"),
        (-torch.inf, r"logits\[1\]: all 5 logits are -inf"),
        (0.0, "row 1 .*everywhere"),
    ],
)
def test_rows_that_determine_nothing_are_refused(value: float, message: str) -> None:
    logits = predicts(1, 2)
    if value != value or value == torch.inf:
        logits[1, 3] = value
    else:
        logits[1] = value
    with pytest.raises(DraftcertError, match=message):
        verify_tree(logits, Tree((0, 1), (-1, 0)), STRICT)


def test_shapes_and_vocabulary_are_checked() -> None:
    with pytest.raises(DraftcertError, match=r"\[2, vocab\], one row a node, not \[1, 5\]"):
        verify_tree(predicts(1), Tree((0, 1), (-1, 0)), STRICT)
    with pytest.raises(DraftcertError, match="token 5"):
        verify_tree(predicts(1, 1), Tree((0, 5), (-1, 0)), STRICT)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Tree, torch.Tensor]:
    tokens, parents = [0], [-1]
    for _ in range(draw(st.integers(0, 10))):
        parent = draw(st.integers(0, len(tokens) - 1))
        free = set(range(V)) - {tokens[n] for n in range(1, len(tokens)) if parents[n] == parent}
        if free:
            tokens.append(draw(st.sampled_from(sorted(free))))
            parents.append(parent)
    values = st.lists(st.integers(-2, 2), min_size=V, max_size=V).filter(lambda row: len(set(row)) > 1)
    rows = [draw(values) for _ in tokens]
    return Tree(tuple(tokens), tuple(parents)), torch.tensor(rows, dtype=torch.float32)


def brute_force(logits: torch.Tensor, tree: Tree) -> Verification:
    """The longest root path on which every token is the first maximum of its parent's row."""

    def right(node: int) -> bool:
        row = logits[tree.parents[node]].tolist()
        return tree.tokens[node] == row.index(max(row))

    paths = [tree.path(node) for node in range(len(tree))]
    best = max((path for path in paths if all(map(right, path[1:]))), key=len)
    row = logits[best[-1]].tolist()
    return Verification(best, row.index(max(row)))


@given(cases())
def test_strict_walk_is_the_longest_greedy_path(case: tuple[Tree, torch.Tensor]) -> None:
    tree, logits = case
    assert verify_tree(logits, tree, STRICT) == brute_force(logits, tree)


@given(cases(), st.integers(1, 11))
def test_more_nodes_never_shorten_the_path(case: tuple[Tree, torch.Tensor], nodes: int) -> None:
    tree, logits = case
    pruned = tree.pruned(nodes)
    shorter = verify_tree(logits[: len(pruned)], pruned, STRICT).path
    assert verify_tree(logits, tree, STRICT).path[: len(shorter)] == shorter


def test_a_threshold_that_is_exactly_met_is_met() -> None:
    """p = 1/4 in exact arithmetic; float64 cannot tell ln(1/4) from what it computes for the row."""
    logits = torch.tensor([[1.0, -torch.inf, 1.0, 1.0, 1.0], [0.0, 1.0, 0.0, 0.0, 0.0]])
    assert not certify(logits[:1], "absolute(1/4)").exact
    assert verify_tree(logits, Tree((0, 4), (-1, 0)), "absolute(1/4)").path == (0, 1)
    assert verify_tree(logits, Tree((0, 4), (-1, 0)), "typical_floor(1/4, 1, 1/100000)").path == (0,)


RELAXED = [
    "additive(0.1)", "multiplicative(0.3)", "top_m(2)", "top_m(3) & additive(0.3)", "absolute(0.2)", "typical(0.3, 0.6)"
]  # fmt: skip


def relaxed_brute_force(logits: torch.Tensor, tree: Tree, rule: Rule) -> Verification:
    """Sort the whole row, cut it where exact certification says, take the accepted child that comes first."""
    path = [0]
    while True:
        row = logits[path[-1]]
        order = sorted(range(V), key=lambda token: (-float(row[token]), token))
        accepted = order[: int(certify(row[None], rule).accepted[0])]
        places = {accepted.index(tree.tokens[c]): c for c in tree.children[path[-1]] if tree.tokens[c] in accepted}
        if not places:
            return Verification(tuple(path), order[0])
        path.append(places[min(places)])


@pytest.mark.parametrize("text", RELAXED)
@settings(max_examples=20)
@given(case=cases())
def test_relaxed_walk_takes_the_likeliest_accepted_child(text: str, case: tuple[Tree, torch.Tensor]) -> None:
    tree, logits = case
    rule = parse_rule(text)
    assert verify_tree(logits, tree, rule) == relaxed_brute_force(logits, tree, rule)


def test_relaxed_rules_accept_what_strict_greedy_does_not() -> None:
    logits = torch.tensor([[0.40, 0.35, 0.20, 0.03, 0.02], [0.1, 0.1, 0.6, 0.1, 0.1], [0.6, 0.1, 0.1, 0.1, 0.1]]).log()
    tree = Tree((4, 2, 1), (-1, 0, 0))
    assert verify_tree(logits, tree, STRICT) == Verification((0,), 0)
    assert verify_tree(logits, tree, parse_rule("additive(0.1)")) == Verification((0, 2), 0)
    # Both children are accepted here: the likelier one is taken, though it comes later in the tree.
    assert verify_tree(logits, tree, parse_rule("multiplicative(0.3)")) == Verification((0, 2), 0)
    assert verify_tree(logits, tree, parse_rule("top_m(3)")) == Verification((0, 2), 0)


@pytest.mark.parametrize("text", ["additive(0)", "multiplicative(1)"])
def test_zero_slack_is_strict_greedy_even_where_bfloat16_merges(text: str) -> None:
    logits = torch.tensor([[20.0, 19.9999, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0]])
    merged = logits.softmax(-1).bfloat16()
    assert merged[0, 0] == merged[0, 1]
    tree = Tree((4, 1), (-1, 0))
    assert verify_tree(logits, tree, parse_rule(text)) == verify_tree(logits, tree, STRICT) == Verification((0,), 0)


def test_a_rule_is_given_as_its_text_too():
    logits = torch.tensor([[3.0, 2.9, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    tree = Tree((0, 1, 2), (-1, 0, 0))
    assert verify_tree(logits, tree, "top_m(2)") == verify_tree(logits, tree, parse_rule("top_m(2)"))
    assert verify_tree(logits, tree, "top_m(2)").path == (0, 1)
    with pytest.raises(DraftcertError, match="no rule is called"):
        verify_tree(logits, tree, "top(2)")


def test_a_family_of_one_s_own_decides(fork):
    logits = torch.tensor([[2.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    tree = Tree((0, 1), (-1, 0))
    assert verify_tree(logits, tree, "multiplicative(1)").path == (0, 1)
    assert verify_tree(logits, tree, fork(1)).path == (0,)


# Where a relaxed rule accepts several children, there are several paths.


def all_accepted(logits: torch.Tensor, tree: Tree, rule: Rule) -> list[tuple[int, ...]]:
    """Every path whose nodes are accepted, each by the row of its parent."""

    def accepted(node: int) -> bool:
        row = logits[tree.parents[node]]
        order = sorted(range(V), key=lambda token: (-float(row[token]), token))
        return order.index(tree.tokens[node]) < int(certify(row[None], rule).accepted[0])

    return [path for path in map(tree.path, range(len(tree))) if all(map(accepted, path[1:]))]


@pytest.mark.parametrize("text", RELAXED)
@settings(max_examples=20)
@given(case=cases())
def test_the_longest_path_is_no_shorter_than_any(text: str, case: tuple[Tree, torch.Tensor]) -> None:
    tree, logits = case
    found = verify_tree(logits, tree, text, "longest").path
    paths = all_accepted(logits, tree, parse_rule(text))
    assert found in paths
    assert len(found) == max(map(len, paths))
    assert verify_tree(logits, tree, text).path in paths


@given(cases())
def test_under_strict_greedy_both_walks_are_one(case: tuple[Tree, torch.Tensor]) -> None:
    tree, logits = case
    assert verify_tree(logits, tree, STRICT, "longest") == verify_tree(logits, tree, STRICT)


@pytest.mark.parametrize("text", RELAXED)
@settings(max_examples=20)
@given(case=cases(), nodes=st.integers(1, 11))
def test_more_nodes_never_shorten_the_longest_path(text: str, case: tuple[Tree, torch.Tensor], nodes: int) -> None:
    tree, logits = case
    pruned = tree.pruned(nodes)
    fewer = verify_tree(logits[: len(pruned)], pruned, text, "longest").path
    assert len(verify_tree(logits, tree, text, "longest").path) >= len(fewer)


def test_a_likelier_sibling_can_shorten_the_likeliest_path_only() -> None:
    logits = torch.tensor([[0.4, 0.5, 0.1], [0.97, 0.02, 0.01], [0.97, 0.02, 0.01], [0.1, 0.1, 0.8]]).log()
    rule = "additive(0.2)"
    few, more = Tree((2, 0, 0), (-1, 0, 1)), Tree((2, 0, 0, 1), (-1, 0, 1, 0))
    assert verify_tree(logits[:3], few, rule).path == (0, 1, 2)
    assert verify_tree(logits, more, rule).path == (0, 3)
    assert verify_tree(logits, more, rule, "longest").path == (0, 1, 2)
    with pytest.raises(DraftcertError, match="no walk is called 'best'"):
        verify_tree(logits, more, rule, "best")  # type: ignore[arg-type]


def test_a_tree_as_deep_as_one_likes() -> None:
    deep = Tree((0, *[1] * 3000), tuple(range(-1, 3000)))
    assert len(verify_tree(predicts(*[1] * 3001), deep, "top_m(2)", "longest").path) == 3001
