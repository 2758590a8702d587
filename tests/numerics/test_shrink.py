from hypothesis import given
from hypothesis import strategies as st

from draftcert.numerics.shrink import BUDGET, shrink

weights = st.lists(st.integers(0, 10**30), min_size=2, max_size=8).map(tuple)


@given(weights, st.data())
def test_what_is_left_fails_and_nothing_can_be_left_out(start, data):
    """For a property that a larger weight or a further token never ends."""
    limit = data.draw(st.integers(0, max(start)))
    calls = []

    def fails(found):
        calls.append(found)
        return sum(weight >= limit for weight in found) >= 1

    smallest = shrink(start, fails, least=2)
    assert fails(smallest)
    assert len(smallest) == 2
    assert len(calls) <= BUDGET + 1
    assert sum(smallest) <= sum(start)
    assert shrink(start, fails, least=2) == smallest


def test_finds_the_simplest():
    assert shrink((10**300 + 1, 12345, 9, 3), lambda w: max(w) >= 7, least=2) == (7, 0)
    assert shrink((500, 300, 200), lambda w: len(w) == 3 and w[0] > w[1] > w[2]) == (2, 1, 0)
    assert shrink((5, 5), lambda w: w == (5, 5)) == (5, 5)
