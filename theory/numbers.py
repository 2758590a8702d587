"""Numbers that people write, read exactly and within bounds."""

import operator
import re
from collections.abc import Iterable, Mapping, Set
from fractions import Fraction
from typing import Any

from .errors import Argument, DraftcertError

MOST_DIGITS = 4000
"""A number has at most so many digits where it is written out without an exponent, above and below the line alike.

Python itself refuses to print integers of more than 4300 digits, and `1e-9999999` would fill the memory."""

_LARGEST = 10**MOST_DIGITS

_DECIMAL = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d+))?", re.ASCII)


def exact_number(text: str, what: str) -> Fraction:
    """The number in `text`: a decimal such as `-1.5e-3`, or a fraction of two; `what` names it in the error.

    Raises:
        DraftcertError: no number, a division by zero, or more than 4000 digits.

    >>> exact_number("1e-3/2", "x")
    Fraction(1, 2000)
    >>> exact_number("1e-9999999", "x")
    Traceback (most recent call last):
    draftcert.theory.errors.DraftcertError: x = '1e-9999999' has more than 4000 digits: give fewer
    """
    parts = [_DECIMAL.fullmatch(part.strip()) for part in text.split("/", 2)]
    if len(parts) > 2 or not all(parts):
        raise DraftcertError(f"{what} = {shown(text)} is not a number: give a decimal or a fraction such as 3/10")
    for part in filter(None, parts):
        digits, exponent = len(part[1]), (part[2] or "0").lstrip("+-0") or "0"
        if len(exponent) > len(str(MOST_DIGITS)) or digits + int(exponent) > MOST_DIGITS:
            raise DraftcertError(f"{what} = {shown(text)} has more than {MOST_DIGITS} digits: give fewer")
    value, *divisor = (Fraction(part[0]) for part in filter(None, parts))
    if divisor == [0]:
        raise DraftcertError(f"{what} = {shown(text)} is not a number: it divides by zero")
    return value / divisor[0] if divisor else value


def bounded(value: Fraction, what: str) -> Fraction:
    """The value, if it has no more digits than one that is written may have."""
    if max(abs(value.numerator), value.denominator) > _LARGEST:
        raise DraftcertError(f"{what} has more than {MOST_DIGITS} digits: give fewer")
    return value


def is_digits(text: str) -> bool:
    """Whether a text is one or more of the digits 0 to 9; other scripts have digits too, which `str` takes for such.

    >>> is_digits("12"), is_digits("\u0661\u0662")
    (True, False)
    """
    return text.isascii() and text.isdecimal()


def whole_number(value: Any, name: str, least: int, most: int | None = None, why: str = "") -> int:
    """A whole number of Python, numpy or torch; a float or a truth value is none, however round.

    >>> whole_number(3.0, "candidates", 1, 4)
    Traceback (most recent call last):
    draftcert.theory.errors.DraftcertError: candidates = 3.0: give a whole number from 1 to 4
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except (TypeError, ValueError, RuntimeError):  # torch's tensors of several numbers
        number = None
    if number is None or number < least or (most is not None and number > most):
        wanted = f", {least} or more" if most is None else f" from {least} to {most}"
        raise DraftcertError(Argument(name, shown(value)), f": give a whole number{wanted}{why}")
    return number


def whole_numbers(values: Any, name: str, least: int) -> list[int]:
    """The items of a sequence or an array, each a `whole_number`; the message names the first that is none.

    >>> whole_numbers([3, -1], "tokens", 0)
    Traceback (most recent call last):
    draftcert.theory.errors.DraftcertError: tokens[1] = -1: give a whole number, 0 or more
    """
    return [whole_number(value, f"{name}[{place}]", least) for place, value in enumerate(items(values, name))]


def real_number(value: Any, name: str) -> float:
    """A number of Python, numpy or torch as a float, NaN and infinities too; text and truth values are none.

    >>> real_number("1", "temperature")
    Traceback (most recent call last):
    draftcert.theory.errors.DraftcertError: temperature = '1' is not a number
    """
    try:
        if not isinstance(value, (bool, str, bytes)):
            return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        pass
    raise DraftcertError(Argument(name, shown(value)), " is not a number")


def truth_value(value: Any, name: str) -> bool:
    """`True` or `False`; what only counts as one of them, as text does, is none.

    >>> truth_value("no", "normalize")
    Traceback (most recent call last):
    draftcert.theory.errors.DraftcertError: normalize = 'no': give True or False
    """
    if not isinstance(value, bool):
        raise DraftcertError(Argument(name, shown(value)), ": give True or False")
    return value


def items(values: Any, name: str) -> list[Any]:
    """The items of a sequence or an array, in their order; text and what has no order are refused.

    >>> items("12", "certificates")
    Traceback (most recent call last):
    draftcert.theory.errors.DraftcertError: certificates = '12': give a list
    """
    try:
        if isinstance(values, Iterable) and not isinstance(values, (str, bytes, Mapping, Set)):
            return list(values)
    except TypeError:  # an array without axes
        pass
    raise DraftcertError(Argument(name, shown(values)), ": give a list")


def shown(value: Any, most: int = 60) -> str:
    """A value as messages quote it: only the beginning of one that is long.

    >>> print(shown("ab" * 50, 6))
    'ababab'... (100 characters)
    """
    if isinstance(value, str):
        return repr(value) if len(value) <= most else f"{value[:most]!r}... ({len(value)} characters)"
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."
