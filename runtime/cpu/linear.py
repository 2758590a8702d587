"""Linear layers on a CPU for the few rows of a draft tree, in float32.

For up to `MOST_ROWS` rows the time goes into reading the weight; this kernel reads it once, at the speed of the memory,
where a matrix library takes up to twice as long. Each row's result is the same to the last bit whatever rows come with
it, so that a token is judged alike alone and among the nodes of a tree.
"""

from __future__ import annotations

import ctypes
import functools
import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from . import build

MOST_ROWS = 64
"""Beyond so many rows the work, no longer the memory, decides, and torch's product is as fast."""


@functools.cache
def kernel() -> Callable[..., int] | None:
    """The compiled kernel, or `None` after one warning where there is no compiler."""
    try:
        function = ctypes.CDLL(str(build.compile_library("linear"))).draftcert_linear
    except (RuntimeError, OSError) as error:
        warnings.warn(f"linear layers are torch's own: {error}", RuntimeWarning, stacklevel=2)
        return None
    array, count, integer = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
    function.argtypes = [array, array, array, array, count, count, count, integer, integer]
    function.restype = integer
    return function


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`torch.nn.functional.linear` of few rows: `input` `[rows, in]` and `weight` `[out, in]`, dense float32 on a CPU.

    No gradient is recorded. What does not meet these conditions is left to torch.

    >>> linear(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]))
    tensor([[11., 17., 23.]])
    """
    run = kernel()
    if run is None or len(input) > MOST_ROWS or not suits(weight, bias) or input.dtype != torch.float32:
        return torch.nn.functional.linear(input, weight, bias)
    input = input.contiguous()
    (rows, size), out = input.shape, weight.shape[0]
    output = torch.empty(rows, out)
    bias_at = None if bias is None else bias.data_ptr()
    threads = torch.get_num_threads()
    if run(input.data_ptr(), weight.data_ptr(), bias_at, output.data_ptr(), rows, size, out, threads, -1):
        raise RuntimeError(f"the C++ kernel refused {rows} rows times {out} x {size}")
    return output


def suits(weight: Tensor, bias: Tensor | None = None) -> bool:
    """Whether the kernel takes this layer."""
    return all(
        tensor.dtype == torch.float32 and tensor.device.type == "cpu" and tensor.is_contiguous()
        for tensor in (weight, bias)
        if tensor is not None
    )
