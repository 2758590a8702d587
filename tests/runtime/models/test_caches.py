"""The cache on toy states: writing behind the committed tokens, compaction, growth, ragged batches."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from draftcert.runtime.models.caches import TreeCache
from draftcert.theory import DraftcertError


def states(values: list[list[float]]) -> torch.Tensor:
    """Keys `[batch, 1, tokens, 1]` that carry these numbers."""
    return torch.tensor(values)[:, None, :, None]


def committed(cache: TreeCache, row: int, layer: int = 0) -> list[float]:
    return cache.layers[layer].buffers[1][row, 0, : cache.lengths[row], 0].tolist()  # type: ignore[union-attr]


@given(st.lists(st.sets(st.integers(0, 5), min_size=1, max_size=6), min_size=1, max_size=6))
def test_compaction_keeps_exactly_the_accepted_states(paths: list[set[int]]) -> None:
    cache = TreeCache(layers=2, capacity=2)
    expected: list[float] = []
    for number, path in enumerate(paths):
        values = [100.0 * number + column for column in range(6)]
        for layer in range(2):
            keys, _ = cache.update(states([values]), states([values]), layer)
            assert keys.shape[2] == len(expected) + 6
            assert keys[0, 0, :, 0].tolist() == expected + values
        cache.commit(0, sorted(path))
        expected += [values[node] for node in sorted(path)]
        assert [committed(cache, 0, layer) for layer in range(2)] == [expected, expected]


def test_rows_of_different_lengths_and_dropped_rows() -> None:
    cache = TreeCache(layers=1, batch=3, capacity=4)
    rows = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]
    cache.update(states(rows), states(rows), 0)
    for row, path in enumerate(([0], [0, 2], [0, 1, 2])):
        cache.commit(row, path)
    cache.update(states([[10.0, 11.0]] * 3), states([[10.0, 11.0]] * 3), 0)
    cache.commit(1, [1])
    cache.keep([1, 2])
    assert cache.lengths == [3, 3]
    assert [committed(cache, row) for row in range(2)] == [[4.0, 6.0, 11.0], [7.0, 8.0, 9.0]]


def test_a_path_that_does_not_ascend_is_refused() -> None:
    with pytest.raises(DraftcertError, match="ascends"):
        TreeCache(layers=1).commit(0, [0, 2, 1])
