"""Layers of a Llama-like decoder on a CPU for the few rows of a draft tree, in float32.

For up to `MOST_ROWS` rows the time goes into reading the weights; these kernels read them once, at the speed of the
memory, where a matrix library takes up to twice as long. `layers.h` says what they compute.
"""

from __future__ import annotations

import ctypes
import functools
import warnings
from pathlib import Path

import torch
from torch import Tensor

from ....theory.errors import DraftcertError
from ...native import compile_library

HERE = Path(__file__).parent
FILES = ("layers.cpp", "layers.h", "layer_kernel.h")
MOST_ROWS = 64
"""Beyond so many rows the work, no longer the memory, decides, and torch's products are as fast."""


class Layer(ctypes.Structure):
    """`draftcert_layer`: addresses of weights, biases or None, the cache and the mask."""

    _fields_ = [
        (name, ctypes.c_void_p)
        for name in (
            *("attention_norm", "query", "key", "value", "output", "mlp_norm", "gate", "up", "down"),
            *("query_bias", "key_bias", "value_bias", "output_bias", "gate_bias", "up_bias", "down_bias"),
            *("query_norm", "key_norm", "keys", "values", "mask"),
        )
    ]


class Shape(ctypes.Structure):
    """`draftcert_shape`."""

    _fields_ = [
        *(
            (name, ctypes.c_int64)
            for name in (
                *("layers", "batch", "nodes", "hidden", "heads", "key_heads", "dimension", "intermediate"),
                *("capacity", "span"),
            )
        ),
        ("lengths", ctypes.c_void_p),
        ("epsilon", ctypes.c_float),
        ("scale", ctypes.c_float),
    ]


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled kernels, or `None` after one warning where there is no compiler."""
    try:
        kernels = ctypes.CDLL(str(compile_library("layers", [HERE / file for file in FILES])))
    except (RuntimeError, OSError, DraftcertError) as error:
        warnings.warn(f"trees pass through transformers' layers: {error}", RuntimeWarning, stacklevel=2)
        return None
    array, count, integer = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
    kernels.draftcert_layers.argtypes = [
        ctypes.POINTER(Shape), ctypes.POINTER(Layer), array, array, array, integer, integer
    ]  # fmt: skip
    kernels.draftcert_linear.argtypes = [array, array, array, array, count, count, count, integer, integer]
    return kernels


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, level: int = -1) -> Tensor:
    """`torch.nn.functional.linear` of few rows: `input` `[rows, in]` and `weight` `[out, in]`, dense float32 on a CPU.

    A row's result is the same to the last bit whatever rows come with it. `level`: as in `layers.h`.

    Raises:
        RuntimeError: no compiled kernels, or a machine without that instruction set.

    >>> linear(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]))
    tensor([[11., 17., 23.]])
    """
    (rows, size), out = input.shape, weight.shape[0]
    output = torch.empty(rows, out)
    bias_at = None if bias is None else bias.data_ptr()
    pointers = (input.data_ptr(), weight.data_ptr(), bias_at, output.data_ptr())
    kernels = library()
    if kernels is None or kernels.draftcert_linear(*pointers, rows, size, out, torch.get_num_threads(), level):
        raise RuntimeError(f"no kernel of level {level} for {rows} rows times {out} x {size}")
    return output


def run_layers(
    shape: Shape, layers: ctypes.Array[Layer], hidden: Tensor, cosine: Tensor, sine: Tensor, level: int = -1
) -> None:
    """`hidden` `[batch, nodes, hidden]` through all layers, in place, keys and values into the cache.

    Raises:
        RuntimeError: no compiled kernels, or a machine without that instruction set.
    """
    kernels = library()
    pointers = (hidden.data_ptr(), cosine.data_ptr(), sine.data_ptr())
    if kernels is None or kernels.draftcert_layers(
        ctypes.byref(shape), layers, *pointers, torch.get_num_threads(), level
    ):
        raise RuntimeError(f"no kernel of level {level} for layers")


def suits(parameter: Tensor | None) -> bool:
    """Whether the kernels take this parameter."""
    return parameter is None or (
        parameter.dtype == torch.float32 and parameter.device.type == "cpu" and parameter.is_contiguous()
    )
