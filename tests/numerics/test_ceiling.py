"""Judged by a linear program over levels, and by the best trees of concrete targets."""

import heapq
import random

import numpy as np
import pytest
from scipy.optimize import linprog

from draftcert.numerics import most_accepted
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


def test_no_tree_of_a_random_target_accepts_more():
    source = random.Random(1)
    for _ in range(30):
        row = np.random.default_rng(source.randrange(1000)).dirichlet([0.7] * 4)
        nodes, reached, frontier = source.randint(1, 30), 0.0, [-1.0]
        expanded = []
        while len(expanded) <= nodes:
            best = -heapq.heappop(frontier)
            expanded.append(best)
            for share in row:
                heapq.heappush(frontier, -best * share)
        reached = sum(expanded[1:])
        assert reached <= float(most_accepted(nodes, float(row.max()))) + 1e-12


@pytest.mark.parametrize("given", [(0, 0.5), (True, 0.5), (2.0, 0.5), (3, 0), (3, 1.5), (3, "x")])
def test_refused(given):
    with pytest.raises(DraftcertError):
        most_accepted(*given)
