"""The CPU kernel of linear layers: right, and the same to the last bit whatever rows come along."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from draftcert.runtime.models.layers.bindings import linear, softcap

LEVELS = {"portable": 0, "AVX2": 1, "AVX-512": 2}
SIZES = st.integers(1, 70) | st.sampled_from([768, 769, 1024, 1100])
"""The last three are more than what a kernel takes of a row at once."""


def by_kernel(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, level: int) -> torch.Tensor:
    try:
        return linear(x, w, bias, level)
    except RuntimeError:
        pytest.skip("this machine lacks the instruction set")


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
@given(st.integers(1, 20), SIZES, st.integers(1, 19), st.booleans(), st.integers(0, 2**31))
def test_product_within_the_error_of_its_sums(
    level: int, rows: int, size: int, out: int, biased: bool, seed: int
) -> None:
    source = torch.Generator().manual_seed(seed)
    x, w = torch.randn(rows, size, generator=source), torch.randn(out, size, generator=source)
    bias = torch.randn(out, generator=source) if biased else None
    found = by_kernel(x, w, bias, level)
    added = torch.zeros(out) if bias is None else bias
    expected = x.double() @ w.T.double() + added.double()
    # Each of the size + 1 roundings of a sum is at most 2^-24 of the sum of the absolute terms.
    bound = x.abs().double() @ w.T.abs().double() + added.abs().double()
    assert ((found - expected).abs() <= (size + 1) * 2.0**-24 * bound + 1e-38).all()


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
@given(st.integers(1, 40), SIZES, st.integers(1, 19), st.integers(0, 2**31))
def test_a_row_does_not_depend_on_its_neighbours(level: int, rows: int, size: int, out: int, seed: int) -> None:
    source = torch.Generator().manual_seed(seed)
    x, w = torch.randn(rows, size, generator=source), torch.randn(out, size, generator=source)
    together = by_kernel(x, w, None, level)
    for row in range(rows):
        assert torch.equal(by_kernel(x[row : row + 1], w, None, level), together[row : row + 1])


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
def test_caps_within_four_units_and_each_number_by_itself(level: int) -> None:
    edges = torch.tensor([0.0, 0.625, -0.625, 20.0, -20.0, 1e30, -1e30])
    x = torch.cat([torch.linspace(-12, 12, 200_001), torch.logspace(-30, -1, 10_001), edges])
    found = x.clone()
    try:
        softcap(found, 1.0, level)
    except RuntimeError:
        pytest.skip("this machine lacks the instruction set")
    exact = x.double().tanh()
    unit = exact.float().abs()
    unit = (unit.nextafter(torch.tensor(torch.inf)) - unit).double()
    assert ((found.double() - exact).abs() <= 4 * unit).all()
    softcap(shifted := x[3:].clone(), 1.0, level)
    assert torch.equal(shifted, found[3:])
    softcap(capped := 30 * x[:1000], 30.0, level)
    assert torch.allclose(capped, 30 * found[:1000], rtol=1e-6)
