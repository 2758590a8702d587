"""The CPU kernel of linear layers: right, and the same to the last bit whatever rows come along."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from draftcert.runtime.cpu import linear as module
from draftcert.runtime.cpu.linear import MOST_ROWS, linear

LEVELS = {"portable": 0, "AVX2": 1, "AVX-512": 2}


def by_kernel(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, level: int) -> torch.Tensor:
    run = module.kernel()
    assert run is not None
    y = torch.full((len(x), len(w)), torch.nan)
    at = None if bias is None else bias.data_ptr()
    if run(x.data_ptr(), w.data_ptr(), at, y.data_ptr(), len(x), x.shape[1], len(w), 2, level):
        pytest.skip("this machine lacks the instruction set")
    return y


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
@given(st.integers(1, 20), st.integers(1, 70), st.integers(1, 19), st.booleans(), st.integers(0, 2**31))
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
@given(st.integers(1, 40), st.integers(1, 70), st.integers(1, 9), st.integers(0, 2**31))
def test_a_row_does_not_depend_on_its_neighbours(level: int, rows: int, size: int, out: int, seed: int) -> None:
    source = torch.Generator().manual_seed(seed)
    x, w = torch.randn(rows, size, generator=source), torch.randn(out, size, generator=source)
    together = by_kernel(x, w, None, level)
    for row in range(rows):
        assert torch.equal(by_kernel(x[row : row + 1], w, None, level), together[row : row + 1])


def test_what_the_kernel_does_not_take_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        pytest.fail("the kernel was called")

    monkeypatch.setattr(module, "kernel", lambda: refuse)
    w, bias = torch.randn(6, 5), torch.randn(6)
    many = torch.randn(MOST_ROWS + 1, 5)
    assert torch.equal(linear(many, w, bias), torch.nn.functional.linear(many, w, bias))
    halves = torch.randn(2, 5, dtype=torch.bfloat16)
    assert torch.equal(linear(halves, w.bfloat16()), torch.nn.functional.linear(halves, w.bfloat16()))
    turned = torch.randn(5, 6).T
    assert torch.equal(linear(many[:2], turned), torch.nn.functional.linear(many[:2], turned))
    monkeypatch.setattr(module, "kernel", lambda: None)
    assert torch.equal(linear(many[:2], w), torch.nn.functional.linear(many[:2], w))
