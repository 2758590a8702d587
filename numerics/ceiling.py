"""What no drafter can exceed, from the target alone: its largest probability, or its entropy (S7).

Pankratov and Alistarh (arXiv 2512.11718) bound the expected tokens by `(mu + mu_2) ln P / mu^2 + O(1)`, with `P` nodes,
the mean entropy `mu` and the mean square `mu_2` of the logarithm of probability, where the next-token distributions are
independent and alike. The constant is not given, so no number follows from it. `most_tokens` needs no such assumption,
grows as `ln P / mu`, and has its constant: the price is `ln V / mu`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import arb

from ..theory import DraftcertError
from ..theory.numbers import whole_number
from .balls import precision, to_fmpq
from .certificate import check_digits
from .enclosure import Enclosure, is_certain
from .row import read_number


def most_accepted(nodes: int, largest: Any) -> Fraction:
    """The expected number of tokens that a tree of so many nodes can have accepted at most, in one pass.

    For a target that is sampled and never gives a token more than the probability `largest`, and a tree that is a
    function of the text: level d of it accepts at most `min(1, n_d largest^d)` with n_d nodes, so the levels are filled
    one after the other. Drafts that are sampled themselves are not bound by it, and a greedy target accepts at most
    the longest path.

    Args:
        nodes: drafted tokens of the tree, at least 1.
        largest: the largest probability of a next token anywhere below the root, in (0, 1], read exactly.

    Raises:
        DraftcertError: no nodes, or a probability outside (0, 1].

    >>> most_accepted(1, "0.9"), most_accepted(8, "0.5")
    (Fraction(9, 10), Fraction(9, 4))

    Source: S7 of `draftcert.theory`.
    """
    nodes = whole_number(nodes, "nodes", 1)
    share = read_number(largest, "largest")
    if not 0 < share <= 1:
        raise DraftcertError(f"largest = {largest}: a probability lies in (0, 1]")
    left, total, level = Fraction(nodes), 0, share
    while left * level > 1:  # more nodes than this level can use
        total, left, level = total + 1, left - 1 / level, level * share
    return total + left * level


def most_tokens(nodes: int, vocab_size: int, entropy: Any, digits: int = 50) -> Enclosure:
    """The expected number of tokens that a pass can output at most, the one that the target adds included.

    A pass over a tree of so many nodes, a function of the text, outputs one of `(nodes + 1) (vocab_size - 1) + 1` words
    of a target that is sampled, so no more nats than the logarithm of that, also on average over the passes of a text.
    A uniform target and a full tree attain it.

    Args:
        nodes: drafted tokens of the tree; 0 is decoding without drafts.
        vocab_size: tokens of the vocabulary, at least 2.
        entropy: of the target's next-token distributions, in nats: the least there is, or the mean along the output.
        digits: correct digits wanted.

    Returns:
        The enclosure; infinite at an entropy of 0.

    Raises:
        DraftcertError: a negative number of nodes, a vocabulary of one token, an entropy below 0 or above that of the
            uniform distribution.

    >>> print(most_tokens(64, 49152, "1.2", digits=5), most_tokens(6, 2, "0.6931", digits=5))
    12.481 3.0002

    Source: S7 of `draftcert.theory`; compare arXiv 2512.11718.
    """
    nodes = whole_number(nodes, "nodes", 0)
    vocab_size = whole_number(vocab_size, "vocab_size", 2)
    digits = check_digits(digits)
    each = to_fmpq(read_number(entropy, "entropy"))
    if each < 0 or arb(each) > arb(vocab_size).log():
        raise DraftcertError(f"entropy = {entropy}: over {vocab_size} tokens it lies between 0 and their logarithm")
    if each == 0:
        return Enclosure(arb("inf"), digits)
    bits = 64 + 4 * digits
    while True:
        with precision(bits):
            ball = arb((nodes + 1) * (vocab_size - 1) + 1).log() / each
        if is_certain(ball, digits):
            return Enclosure(ball, digits)
        bits *= 2
