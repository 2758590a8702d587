"""`Formula`: one expression with its symbols, domains and a floating-point form; its content hash is its identity."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

import sympy
from sympy.logic.boolalg import Boolean

from .errors import DraftcertError


@dataclass(frozen=True)
class Argument:
    """A symbol of a formula: the set it ranges over, the axis it is indexed by (`None`: a number), what it is."""

    symbol: sympy.Symbol
    domain: sympy.Set
    meaning: str
    axis: str | None = None


AGREED_DIGITS = 50
"""Digits, relative to the value, to which a formula must agree with certified optima before it counts."""


@dataclass(frozen=True)
class Formula:
    """A formula of the theory.

    `expression` is the defining form and `stable` the well-conditioned equivalent that is compiled; they are equal on
    the arguments' domains where `constraint` holds. With `sum_over`, both are the summand of a sum over that axis and
    only the sums need be equal, given `constraint` on the moments written in `sympy.Sum`. Values are in nats unless
    `unit` says otherwise.
    """

    name: str
    statement: str
    arguments: tuple[Argument, ...]
    expression: sympy.Expr
    stable: sympy.Expr
    citation: str
    constraint: Boolean = sympy.true
    sum_over: str | None = None
    unit: str = "nats"

    def __post_init__(self) -> None:
        """Refuse a formula that uses a symbol it does not declare, or sums over an axis nothing has."""
        declared = {argument.symbol for argument in self.arguments}
        for form in (self.expression, self.stable, self.constraint):
            if unknown := form.free_symbols - declared:
                raise DraftcertError(f"formula {self.name}: undeclared {', '.join(sorted(map(str, unknown)))}")
        if self.sum_over is not None and self.sum_over not in {argument.axis for argument in self.arguments}:
            raise DraftcertError(f"formula {self.name}: no argument has the axis '{self.sum_over}' it sums over")

    @cached_property
    def sha256(self) -> str:
        """Hash of what the formula means and of the words that say so; its name and its source are left out."""
        meaning = [
            [[sympy.srepr(a.symbol), sympy.srepr(a.domain), a.axis, a.meaning] for a in self.arguments],
            *(sympy.srepr(part) for part in (self.expression, self.stable, self.constraint)),
            self.sum_over,
            self.unit,
            self.statement,
        ]
        return hashlib.sha256(json.dumps(meaning).encode()).hexdigest()
