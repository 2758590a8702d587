"""The symbols of the theorems: those of the formulas, and the ones only a proof needs."""

import sympy

from ..formulas import a, c, d, g, m, mass, n, p, q, r, s, top, x
from ..theorem import VOCABULARY as V

b = sympy.Symbol("b", nonnegative=True)
"""Probability of the competitor that the margin speaks of."""
E = sympy.Symbol("E", real=True)
"""`sum p ln p` over the pool."""
N = sympy.Symbol("N", positive=True)
"""A number of tokens."""

__all__ = ["E", "N", "V", "a", "b", "c", "d", "g", "m", "mass", "n", "p", "q", "r", "s", "top", "x"]
