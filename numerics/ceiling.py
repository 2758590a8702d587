"""What no drafter can exceed: accepted tokens of a tree of given size, from the target alone (S7)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..theory import DraftcertError
from .row import read_number


def most_accepted(nodes: int, largest: Any) -> Fraction:
    """The expected number of tokens that a tree of so many nodes can have accepted at most, in one pass.

    For a target that is sampled and never gives a token more than the probability `largest`, and a tree that is a
    function of the text: level d of it accepts at most `min(1, n_d largest^d)` with n_d nodes, so the levels are filled
    one after the other. Drafts that are sampled themselves are not bound by it, and a greedy target accepts at most
    the longest path.

    The bound of arXiv 2512.11718, `(mu + mu_2) log N / mu^2` with the mean entropy `mu` and the mean squared logarithm
    of probability `mu_2`, is for targets whose next-token distributions are independent and alike, and holds up to an
    additive constant: no number of accepted tokens follows from it.

    Args:
        nodes: drafted tokens of the tree, at least 1.
        largest: the largest probability of a next token anywhere below the root, in (0, 1], read exactly.

    Raises:
        DraftcertError: no nodes, or a probability outside (0, 1].

    >>> most_accepted(1, "0.9"), most_accepted(8, "0.5")
    (Fraction(9, 10), Fraction(9, 4))

    Source: S7 of `draftcert.theory`; compare arXiv 2512.11718.
    """
    if isinstance(nodes, bool) or not isinstance(nodes, int) or nodes < 1:
        raise DraftcertError(f"nodes = {nodes!r}: give a whole number, at least 1")
    share = read_number(largest, "largest")
    if not 0 < share <= 1:
        raise DraftcertError(f"largest = {largest}: a probability lies in (0, 1]")
    left, total, level = Fraction(nodes), 0, share
    while left * level > 1:  # more nodes than this level can use
        total, left, level = total + 1, left - 1 / level, level * share
    return total + left * level
