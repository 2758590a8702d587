"""Which drafted path the target accepts, and the token that follows it.

From the root on, among the children that the rule accepts, the walk goes to the one the target finds most likely
(ties by lowest id); where no child is accepted it ends, and the target's own greedy token at that node follows. Or it
takes, of all paths whose every node is accepted, the longest, as Medusa does (ties: the one whose first differing node
is likelier). Under strict greedy no two siblings are accepted, so that both are one.

More nodes never shorten the longest accepted path. The likeliest one they can shorten under a relaxed rule: a likelier
sibling draws the walk away from a child that more would have followed.

Every node is judged by the logits of its PARENT: row i of the logits is the target's prediction after node i.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from ...theory.conditions import Condition, RankCondition, fold_conditions
from ...theory.errors import DraftcertError
from ...theory.parse import parse_rule
from ...theory.rule import Rule
from ..names import Walk, check_walk
from ..rows.certify import certify, row_stats
from ..rows.inputs import require_tensor
from ..rows.records import RowStats
from .tree import Tree

if TYPE_CHECKING:
    from jaxtyping import Float

RowOf = Callable[[int], tuple[Tensor, int]]


class Verification(NamedTuple):
    """Outcome of one tree.

    `path`: accepted nodes, beginning with the root 0, which was committed before. `token`: the target's greedy token
    after the last of them. The step commits the tokens of `path[1:]` and then `token`: `len(path)` tokens.
    """

    path: tuple[int, ...]
    token: int


def verify_tree(
    target_logits: Float[Tensor, "nodes vocab"], tree: Tree, rule: Rule | str, choice: Walk = "likeliest"
) -> Verification:
    """Walk the tree by the target's logits.

    Args:
        target_logits: row i is the target's logits after node i. Any float dtype; nothing is rounded.
        tree: the draft.
        rule: the acceptance rule or its text.
        choice: where several children are accepted, follow the "likeliest", or whatever gives the "longest" path.

    Raises:
        DraftcertError: wrong shape, a token outside the vocabulary, a row with NaN, +inf or nothing but -inf, or a row
            of equal values (log-probabilities a server left at 0), which determines no token.

    Source: greedy tree verification, Miao et al. 2024 (SpecInfer, arXiv 2305.09781), for any rule of `theory`.

    >>> import torch
    >>> logits = torch.tensor([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> verify_tree(logits, Tree([0, 1, 2], [-1, 0, 0]), "strict_greedy")
    Verification(path=(0, 1), token=0)
    """
    if not isinstance(tree, Tree):
        raise DraftcertError(f"tree must be a draftcert.Tree, not {type(tree).__name__}")
    require_tensor(target_logits, "target_logits")
    if target_logits.ndim != 2 or target_logits.shape[0] != len(tree):
        raise DraftcertError(
            f"target_logits must be [nodes, vocab] = [{len(tree)}, vocab], one row a node, "
            f"not {list(target_logits.shape)}"
        )
    tree.check_vocabulary(target_logits.shape[1])
    check_walk(choice)
    greedy = greedy_tokens(target_logits, row_stats(target_logits, min(2, target_logits.shape[1])))
    return walk(tree, parse_rule(rule), lambda node: (target_logits[node], greedy[node]), choice)


def greedy_tokens(logits: Float[Tensor, "rows vocab"], stats: RowStats) -> list[int]:
    """The greedy token of each row by its statistics (ties by lowest id).

    Raises:
        DraftcertError: a row of equal values, which determines none.
    """
    # Only where the least of the largest logits equals the maximum can all of them be equal.
    if logits.shape[-1] > 1 and bool((suspect := stats.top_values[:, -1] == stats.max).any()):
        flat = suspect & (logits == logits[:, :1]).all(dim=-1)
        if bool(flat.any()):
            row = int(flat.nonzero()[0])
            raise DraftcertError(
                f"row {row} of the target's logits is {float(logits[row, 0])} everywhere: it determines no token "
                "(log-probabilities that were never filled in?)"
            )
    return stats.argmax.tolist()


def walk(tree: Tree, rule: Rule, row_of: RowOf, choice: Walk = "likeliest") -> Verification:
    """`verify_tree` without the checks; `row_of` gives a node's row and greedy token, and is asked only on the way."""

    def accepted(node: int) -> list[int]:
        """The accepted children of a node, the likeliest first."""
        children = tree.children[node]
        if not children:
            return []
        row, greedy = row_of(node)
        count = accepted_count(row, rule) if fixed is None else fixed
        if count <= 1:
            return [child for child in children if count == 1 and tree.tokens[child] == greedy]
        ranks = {child: rank(row, tree.tokens[child]) for child in children}
        return sorted((child for child in children if ranks[child] <= count), key=ranks.__getitem__)

    fixed, path = fixed_count(rule), (0,)
    if choice == "likeliest":
        while following := accepted(path[-1]):
            path = (*path, following[0])
    else:
        # Every path whose nodes are all accepted, with each node's place among its accepted siblings.
        reached: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {0: (path, ())}
        for node in range(len(tree)):
            if node in reached:
                before, places = reached[node]
                for place, child in enumerate(accepted(node)):
                    reached[child] = (*before, child), (*places, place)
        path, _ = min(reached.values(), key=lambda found: (-len(found[0]), found[1]))
    return Verification(path, row_of(path[-1])[1])


def rank(row: Float[Tensor, " vocab"], token: int) -> int:
    """1-based rank of a token in its row: by logit descending, ties by lowest id."""
    return int((row > row[token]).sum() + (row[:token] == row[token]).sum()) + 1


@lru_cache
def fixed_count(rule: Rule) -> int | None:
    """How many tokens the rule accepts in every row, if only ranks decide that; `None` if the row matters."""
    if not all(isinstance(condition, RankCondition) and condition.limit.is_number for condition in rule.conditions):
        return None
    return fold_conditions(rule.accepts, _limit, min, max)


def _limit(condition: Condition) -> int:
    if not isinstance(condition, RankCondition):
        raise DraftcertError(f"{condition} is no limit on ranks")
    return int(condition.limit)


def accepted_count(row: Float[Tensor, " vocab"], rule: Rule) -> int:
    """How many tokens of one row the rule accepts; also where float64 does not tell, as at a threshold just met."""
    found = certify(row[None], rule)
    if bool(found.exact[0]):
        return int(found.accepted[0])
    from ...numerics.decide import accepted_of_logits  # hardly ever needed, and takes long to load

    return accepted_of_logits(rule, row.tolist())
