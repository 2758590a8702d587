"""Judged by a linear program over levels, and by the best trees of concrete targets."""

import heapq
import random
from math import log

import numpy as np
import pytest
from scipy.optimize import linprog

from draftcert.numerics import most_accepted, most_tokens
from draftcert.theory import DraftcertError


@pytest.mark.parametrize("largest", ["0.1", "0.5", "0.9", "1"])
@pytest.mark.parametrize("nodes", [1, 2, 7, 40])
def test_a_linear_program_over_the_levels(nodes, largest):
    """Level d is reached with n_d nodes of probability r^d each, and with 1 at most."""
    r, depth = float(largest), nodes
    gains = np.array([r ** (d + 1) for d in range(depth)])
    at_most = [(0, 1 / gain) for gain in gains]
    solved = linprog(-gains, A_ub=np.ones((1, depth)), b_ub=[nodes], bounds=at_most)
    assert float(most_accepted(nodes, largest)) == pytest.approx(-solved.fun, rel=1e-7)


def accepted(row: np.ndarray, nodes: int) -> float:
    """By the best tree of so many nodes, where all next tokens have this distribution."""
    frontier, total = [-share for share in row], 0.0
    heapq.heapify(frontier)
    for _ in range(nodes):
        best = -heapq.heappop(frontier)
        total += best
        for share in row:
            heapq.heappush(frontier, -best * share)
    return total


@pytest.mark.parametrize("seed", range(30))
def test_no_tree_of_a_random_target_accepts_more(seed):
    source = random.Random(seed)
    row = np.random.default_rng(seed).dirichlet([source.choice([0.1, 0.7, 20])] * 4)
    nodes = source.randint(1, 30)
    reached, entropy = accepted(row, nodes), -(row * np.log(row)).sum()
    assert reached <= float(most_accepted(nodes, float(row.max()))) + 1e-12
    assert 1 + reached <= float(most_tokens(nodes, 4, float(entropy), 15)) + 1e-12


@pytest.mark.parametrize(("vocab_size", "depth"), [(2, 0), (2, 1), (2, 5), (4, 2), (7, 3)])
def test_a_full_tree_outputs_as_many_tokens_of_a_uniform_target(vocab_size, depth):
    nodes = sum(vocab_size**level for level in range(1, depth + 1))
    found = most_tokens(nodes, vocab_size, log(vocab_size), 12)
    assert accepted(np.full(vocab_size, 1 / vocab_size), nodes) == pytest.approx(depth)
    assert float(found) == pytest.approx(depth + 1, rel=1e-12)


@pytest.mark.parametrize("given", [(0, 0.5), (True, 0.5), (2.0, 0.5), (3, 0), (3, 1.5), (3, "x")])
def test_refused(given):
    with pytest.raises(DraftcertError):
        most_accepted(*given)


@pytest.mark.parametrize("given", [(-1, 4, 1), (3, 1, 0), (3, 4, -1), (3, 4, 1.4), (3.0, 4, 1), (3, 4, "x")])
def test_no_entropy(given):
    with pytest.raises(DraftcertError):
        most_tokens(*given)


def test_without_entropy_there_is_no_limit():
    assert float(most_tokens(1, 2, 0)) == float("inf")
