"""`shrink`: from an input on which something fails to a smaller and simpler one on which it still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

BUDGET = 400
"""Tries in total: a failure is shrunk as far as they go."""


def shrink(weights: Sequence[int], fails: Callable[[tuple[int, ...]], bool], least: int = 1) -> tuple[int, ...]:
    """The simplest weights, at least `least` of them, that are found from `weights` with `fails` still true.

    Passes of single steps are repeated until none helps: all weights rounded together, one left out, one made simpler.
    The same input gives the same result.

    >>> shrink((314159, 271828, 141421), lambda weights: weights[0] > 2 * min(weights), least=2)
    (1, 0)
    """
    current, left = tuple(weights), BUDGET
    tried = {current}
    improved = True
    while improved:
        improved = False
        for attempt in _simpler(current, least):
            if attempt in tried:
                continue
            if not left:
                return current
            tried.add(attempt)
            left -= 1
            if fails(attempt):
                current, improved = attempt, True
                break
    return current


def _simpler(weights: tuple[int, ...], least: int) -> Iterator[tuple[int, ...]]:
    """Steps from the boldest to the smallest."""
    if len(weights) > least:
        yield from (weights[:x] + weights[x + 1 :] for x in range(len(weights)))
    total = sum(weights)
    for parts in (10, 100, 1000, 10**6, 10**12):
        if parts < total:
            yield tuple((2 * weight * parts + total) // (2 * total) for weight in weights)
    for x, weight in enumerate(weights):
        steps = {0, 1, 2, weight // 2, weight - 1, *(_rounded(weight, digits) for digits in (1, 2, 4, 8))}
        yield from ((*weights[:x], step, *weights[x + 1 :]) for step in sorted(steps) if 0 <= step < weight)


def _rounded(weight: int, digits: int) -> int:
    """Down to so many decimal digits."""
    unit = 10 ** max(0, len(str(weight)) - digits)
    return weight // unit * unit
