"""`ExactRow`: a target distribution as integer weights over their sum, read from any input without rounding."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import mpmath
import numpy as np

from ..theory import DraftcertError
from ..theory.errors import Argument
from ..theory.numbers import exact_number, shown, truth_value

EPSILON = float(np.finfo(np.float64).eps)
MOST_BITS = 2**29
"""Of all exact probabilities of a row together, over their common denominator: what takes some seconds."""


@dataclass(frozen=True)
class ExactRow:
    """Probabilities `weights[x] / total`, exact; `order` lists the tokens most likely first, ties by lowest id."""

    weights: tuple[int, ...]
    total: int
    order: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.weights)

    @cached_property
    def ranked(self) -> tuple[int, ...]:
        """The weights in descending order."""
        return tuple(map(self.weights.__getitem__, self.order))

    @property
    def text(self) -> list[str]:
        """The exact probabilities as fractions, which `read_row` reads back."""
        return [str(self.probability(token)) for token in range(len(self))]

    def probability(self, token: int) -> Fraction:
        """The exact probability of a token."""
        return Fraction(self.weights[token], self.total)


def read_row(probabilities: Any, *, normalize: bool = False) -> ExactRow:
    """Read a distribution exactly.

    Floats (Python, numpy, torch) mean the binary fraction they store, text means the decimal or fraction written
    ('0.1', '1/10', '1e-300'), ints, `Fraction`, `Decimal` and sympy rationals mean themselves. Exact input must sum to
    exactly 1. Input with floats may miss 1 by `max(V, 16)` times the machine epsilon of its type (at most 1/4), the
    rounding of a softmax over V tokens, and is divided by its exact sum. `normalize` divides by any positive sum.

    Raises:
        DraftcertError: no token, more than one axis, a negative, infinite, NaN or unreadable entry (with its index),
            or a wrong sum.

    >>> read_row(["1/2", 0.25, "0.25"]).weights
    (2, 1, 1)
    """
    truth_value(normalize, "normalize")
    if hasattr(probabilities, "detach"):
        values, epsilon = from_torch(probabilities)
    elif isinstance(probabilities, np.ndarray):
        values, epsilon = (
            probabilities,
            float(np.finfo(probabilities.dtype).eps) if probabilities.dtype.kind == "f" else 0,
        )
    elif isinstance(probabilities, (str, bytes)) or not isinstance(probabilities, Iterable):
        raise DraftcertError(f"{shown(probabilities)} is not a sequence of probabilities")
    else:
        values = list(probabilities)
        epsilon = max((_epsilon(value) for value in values), default=0.0)
        if values and set(map(type, values)) == {float}:
            values = np.array(values)
    shape = np.shape(values) if isinstance(values, np.ndarray) else (len(values),)
    if len(shape) != 1:
        raise DraftcertError(f"one target distribution has one axis; got an array of shape {shape}")
    if shape[0] == 0:
        raise DraftcertError("the target distribution is empty: it needs at least one token")
    if isinstance(values, np.ndarray) and values.dtype in (np.float16, np.float32, np.float64):
        weights, unit = integers_of_floats(values)
    else:
        weights, unit = _integers(values)
    total = sum(weights)
    _check_sum(total, unit, len(weights), epsilon, normalize)
    shared = math.gcd(*weights)
    weights = [weight // shared for weight in weights] if shared > 1 else weights
    order = sorted(range(len(weights)), key=weights.__getitem__, reverse=True)  # stable: ties keep the lowest id first
    return ExactRow(tuple(weights), total // shared, tuple(order))


def read_number(value: Any, what: str) -> Fraction:
    """One finite number, exact, of any type that `read_row` takes or mpmath; `what` names it in the error."""
    if isinstance(value, (str, Decimal)):
        return exact_number(str(value), what)
    if isinstance(value, bool):
        raise DraftcertError(f"{what} = {value} is not a finite number")
    try:
        if hasattr(value, "as_integer_ratio"):
            return Fraction(*value.as_integer_ratio())
        if hasattr(value, "man_exp") and mpmath.isfinite(value):
            mantissa, exponent = value.man_exp
            return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
        return Fraction(int(value.p), int(value.q))  # sympy and python-flint rationals
    except (ValueError, OverflowError, AttributeError, TypeError, ZeroDivisionError) as error:
        raise DraftcertError(f"{what} = {shown(value)} is not a finite number") from error


def read_divergence(value: Any, what: str) -> Fraction | None:
    """A number of nats from 0 up, exact; `None` for infinity."""
    try:
        infinite = bool(value == math.inf)
    except (TypeError, ValueError, RuntimeError, ArithmeticError):  # arrays; a Decimal that signals
        infinite = False
    exact = None if infinite else read_number(value, what)
    if exact is not None and exact < 0:
        raise DraftcertError(f"{what} = {shown(value)}: a divergence is not negative")
    return exact


def from_torch(tensor: Any) -> tuple[np.ndarray, float]:
    """The numbers of a tensor, and the relative rounding of its type."""
    import torch  # present, since a tensor was given

    tensor = tensor.detach().cpu()
    if not tensor.is_floating_point():
        return tensor.numpy(), 0.0
    return tensor.double().numpy(), float(torch.finfo(tensor.dtype).eps)  # float64 holds every bfloat16 exactly


def _epsilon(value: Any) -> float:
    if isinstance(value, np.floating):
        return float(np.finfo(value.dtype).eps)
    return EPSILON if isinstance(value, float) else 0.0


def integers_of_floats(array: np.ndarray) -> tuple[list[int], int]:
    """Mantissas shifted to the common exponent: `array[x] = weights[x] / unit`."""
    array = array.astype(np.float64)
    if not np.isfinite(array).all() or (array < 0).any():
        bad = int(np.flatnonzero(~np.isfinite(array) | (array < 0))[0])
        raise DraftcertError(f"probability {bad} is {array[bad]}; probabilities are finite and not negative")
    fractions, exponents = np.frexp(array)
    mantissas = np.ldexp(fractions, 53).astype(np.int64).tolist()
    lowest = int(exponents[array > 0].min(initial=1))
    weights = [m << (e - lowest) if m else 0 for m, e in zip(mantissas, exponents.tolist(), strict=True)]
    shift = 53 - lowest
    return (weights, 1 << shift) if shift >= 0 else ([weight << -shift for weight in weights], 1)


def _integers(values: Sequence[Any] | np.ndarray) -> tuple[list[int], int]:
    exact = [read_number(value, f"probability {token}") for token, value in enumerate(values)]
    for token, value in enumerate(exact):
        if value < 0:
            raise DraftcertError(
                f"probability {token} is {number_text(value)}; probabilities are finite and not negative"
            )
    unit = 1
    for denominator in {value.denominator for value in exact}:
        unit = math.lcm(unit, denominator)
        if unit.bit_length() * len(exact) > MOST_BITS:
            raise DraftcertError(
                f"the common denominator of {len(exact)} probabilities has more than {MOST_BITS // len(exact)} bits: "
                "give decimals, or fractions of one denominator"
            )
    return [value.numerator * (unit // value.denominator) for value in exact], unit


def _check_sum(total: int, unit: int, tokens: int, epsilon: float, normalize: bool) -> None:
    missing = abs(Fraction(total, unit) - 1)
    if total > 0 and (normalize or missing <= min(Fraction(max(tokens, 16)) * Fraction(epsilon), Fraction(1, 4))):
        return
    advice = (Argument("normalize", True), " divides by the sum") if total > 0 else ("at least one must be positive",)
    raise DraftcertError(f"the probabilities sum to {number_text(Fraction(total, unit))}, not 1; ", *advice)


def number_text(value: Fraction) -> str:
    """The fraction itself when short, and else enough digits to see how far from 1 it is."""
    if max(value.numerator, value.denominator) < 10**9:
        return str(value)
    if abs(value - 1) < 1e-6:
        return f"1 {'+' if value > 1 else '-'} {_digits(abs(value - 1), 3)}"
    return _digits(value, 12)


def _digits(value: Fraction, digits: int) -> str:
    """So many digits of a number that may be too small, or too large, for a float."""
    with mpmath.workdps(digits + 5):
        return str(mpmath.nstr(mpmath.mpf(value.numerator) / value.denominator, digits)).replace(".0e", "e")
