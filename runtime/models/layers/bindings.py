"""Layers of a decoder on a CPU for the few rows of a draft tree, in float32 arithmetic.

For few rows the time goes into reading the weights; these kernels read them once, at the speed of the memory and as
they are stored, where a matrix library needs them as float32 and takes up to twice as long for that. `layers.h` says
what they compute.
"""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from ....theory.imports import optional
from ...compiling import sources
from ...native import load, loaded_if_possible

FLOAT32, FLOAT16, BFLOAT16 = 0, 1, 30
"""gguf's numbers for how weights are stored; the kernels know others too (`row_bytes`)."""


class Matrix(ctypes.Structure):
    """`draftcert_matrix`."""

    _fields_ = [("data", ctypes.c_void_p), ("format", ctypes.c_int64)]


class Norm(ctypes.Structure):
    """`draftcert_norm`."""

    _fields_ = [("weight", ctypes.c_void_p), ("size", ctypes.c_int64), ("epsilon", ctypes.c_float)]


SIZES = ("heads", "key_heads", "dimension", "intermediate", "rotary")
FACTORS = ("scale", "softcap", "linear", "cubic", "residual")
NORMS = ("attention_norm", "attended_norm", "mlp_norm", "transformed_norm", "query_norm", "key_norm")
MATRICES = ("query", "key", "value", "output", "gate", "up", "down")


class Layer(ctypes.Structure):
    """`draftcert_layer`: what is described, the cache and which of its places are seen."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in SIZES),
        *((name, ctypes.c_float) for name in FACTORS),
        *((name, Norm) for name in NORMS),
        *((name, Matrix) for name in MATRICES),
        *((f"{name}_bias", ctypes.c_void_p) for name in MATRICES),
        *((name, ctypes.c_void_p) for name in ("cosine", "sine")),
        ("capacity", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("keys", "values", "starts", "places")),
    ]


class Shape(ctypes.Structure):
    """`draftcert_shape`."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("layers", "batch", "nodes", "hidden", "span")),
        ("lengths", ctypes.c_void_p),
    ]


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled kernels, or `None` after one warning that says why there are none."""
    return loaded_if_possible(
        lambda: load("layer kernels", sources("layer kernels"), _loaded),
        "trees pass through transformers' slower layers",
    )


def _loaded(path: str) -> ctypes.CDLL:
    kernels = ctypes.CDLL(path)
    array, count, integer = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
    matrix = ctypes.POINTER(Matrix)
    kernels.draftcert_layers.argtypes = [ctypes.POINTER(Shape), ctypes.POINTER(Layer), array, integer, integer]
    kernels.draftcert_normed.argtypes = [array, ctypes.POINTER(Norm), array, count, integer]
    kernels.draftcert_softcap.argtypes = [array, count, ctypes.c_float, integer, integer]
    kernels.draftcert_linear.argtypes = [array, matrix, array, array, count, count, count, integer, integer]
    kernels.draftcert_row_bytes.argtypes = [count, count]
    kernels.draftcert_row_bytes.restype = count
    kernels.draftcert_expand.argtypes = [matrix, count, count, array, integer, integer]
    kernels.draftcert_same.argtypes = [matrix, count, count, array, integer, integer]
    return kernels


def row_bytes(format: int, size: int) -> int | None:
    """Bytes of a row of `size` weights in gguf's format of that number; `None` where the kernels cannot read such rows.

    >>> row_bytes(FLOAT32, 64), row_bytes(3, 64), row_bytes(3, 65), row_bytes(29, 256)  # 3: Q4_1; 29: IQ1_M
    (256, 40, None, None)
    """
    kernels = library()
    found = -1 if kernels is None else kernels.draftcert_row_bytes(format, size)
    return None if found < 0 else found


@dataclass(frozen=True, eq=False)
class Stored:
    """A weight `[out, size]` as a checkpoint stores it: bytes `[out, row_bytes]` of gguf's format of that number.

    >>> weight = torch.tensor([[1.0, -2.0, 0.5]])
    >>> stored = Stored(weight.bfloat16().view(torch.uint8), BFLOAT16, 3)
    >>> stored.expanded(), stored.holds(weight), stored.holds(2 * weight)
    (tensor([[ 1.0000, -2.0000,  0.5000]]), True, False)
    """

    rows: Tensor
    format: int
    size: int

    @classmethod
    def dense(cls, weight: Tensor) -> Stored:
        """A float32 tensor as it is."""
        return cls(weight.view(torch.uint8), FLOAT32, weight.shape[1])

    def matrix(self) -> Matrix:
        """What kernels read; this object must outlive it."""
        return Matrix(self.rows.data_ptr(), self.format)

    def expanded(self, level: int = -1) -> Tensor:
        """The float32 numbers that these weights are, as gguf dequantises them, to the last bit."""
        kernels = library()
        if kernels is None:
            with optional("hf"):
                import gguf

            numbers = gguf.dequantize(self.rows.numpy(), gguf.GGMLQuantizationType(self.format))
            return torch.from_numpy(numbers).view(-1, self.size)
        output = torch.empty(len(self.rows), self.size)
        numbers = (len(self.rows), self.size, output.data_ptr(), torch.get_num_threads(), level)
        if kernels.draftcert_expand(self.matrix(), *numbers):
            raise RuntimeError(f"no kernel of level {level} for weights of format {self.format}")
        return output

    def holds(self, weight: Tensor) -> bool:
        """Whether `weight` is what is stored here, to the last bit."""
        kernels = library()
        if kernels is None or not suits(weight) or weight.shape != (len(self.rows), self.size):
            return False
        numbers = (*weight.shape, weight.data_ptr(), torch.get_num_threads(), -1)
        return kernels.draftcert_same(self.matrix(), *numbers) == 1


def linear(input: Tensor, weight: Tensor | Stored, bias: Tensor | None = None, level: int = -1) -> Tensor:
    """`torch.nn.functional.linear` of few rows: `input` `[rows, in]` and `weight` `[out, in]`, dense float32 on a CPU.

    A row's result is the same to the last bit whatever rows come with it, and however the weight is stored. `level`: as
    in `layers.h`.

    Raises:
        RuntimeError: no compiled kernels, or a machine without that instruction set.

    >>> linear(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]))
    tensor([[11., 17., 23.]])
    """
    rows, size = input.shape
    stored = weight if isinstance(weight, Stored) else Stored.dense(weight)
    output = torch.empty(rows, out := len(stored.rows))
    pointers = (input.data_ptr(), stored.matrix(), None if bias is None else bias.data_ptr(), output.data_ptr())
    kernels = library()
    if kernels is None or kernels.draftcert_linear(*pointers, rows, size, out, torch.get_num_threads(), level):
        raise RuntimeError(f"no kernel of level {level} for {rows} rows times {out} x {size}")
    return output


def normed(input: Tensor, norm: Norm, level: int = -1) -> Tensor:
    """Rows `[rows, size]` through the norm.

    Raises:
        RuntimeError: no compiled kernels, or a machine without that instruction set.
    """
    output, kernels = torch.empty_like(input), library()
    if kernels is None or kernels.draftcert_normed(input.data_ptr(), norm, output.data_ptr(), len(input), level):
        raise RuntimeError(f"no kernel of level {level} for norms")
    return output


def softcap(numbers: Tensor, cap: float, level: int = -1) -> None:
    """Replace each number x by cap tanh(x / cap).

    Raises:
        RuntimeError: no compiled kernels, or a machine without that instruction set.

    >>> numbers = torch.tensor([0.5, -300.0])
    >>> softcap(numbers, 30.0)
    >>> numbers
    tensor([  0.5000, -30.0000])
    """
    kernels, threads = library(), torch.get_num_threads()
    if kernels is None or kernels.draftcert_softcap(numbers.data_ptr(), numbers.numel(), cap, threads, level):
        raise RuntimeError(f"no kernel of level {level} for softcaps")


def run_layers(shape: Shape, layers: ctypes.Array[Layer], hidden: Tensor, level: int = -1) -> None:
    """`hidden` `[batch, nodes, hidden]` through all layers, in place, keys and values into the cache.

    Raises:
        RuntimeError: no compiled kernels, or a machine without that instruction set.
    """
    kernels = library()
    if kernels is None or kernels.draftcert_layers(shape, layers, hidden.data_ptr(), torch.get_num_threads(), level):
        raise RuntimeError(f"no kernel of level {level} for layers")


def suits(parameter: Tensor | None) -> bool:
    """Whether the kernels take this parameter: where it lies there are its numbers, and nothing computes them."""
    return parameter is None or (
        type(parameter) in (torch.Tensor, torch.nn.Parameter)
        and parameter.dtype == torch.float32
        and parameter.device.type == "cpu"
        and parameter.is_contiguous()
    )
