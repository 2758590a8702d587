"""Bounds of the rounding errors of the float32 pass, from its roundings (counted at the head of split.py).

Let u = 2^-24, z = (x - max) / temperature <= 0, y the drafter's, G = sum p |z|, D = sum p |y| and b the blocks of a
segment.

- A weight: 4 u for its power, 31 + b additions, 5 b for rescalings, 10 for the end of the segment: (45 + 6 b + 3 |z|) u
  of itself. 48 instead of 45 is more than all of float64's roundings, weights that count as 0 and second orders, which
  are below 1/1000 of the first.
- The mass, and absolutely its logarithm: (48 + 6 b + 3 G) u.
- A term of the mean gap: 3 for the difference and its product, 2 b for shifts of the reference more than its weight;
  the mean of z^2 is at most L G + 1 for L = 2 ln V + 2, as a token further than L below the maximum has
  p z^2 <= L^2 exp(-L). The entropy is ln(mass) + G, and G is divided by the mass.
- A term e (z - y) of the cross sum: 4 for two differences, theirs and the product, 3 b for shifts, each of |z| + |y|,
  and the weight's, with |z| <= 88: (320 + 9 b) u (|z| + |y|). The divergence adds ln(draft mass / mass), and the mean
  gap of the drafter's own row is at most ln V.
"""

from __future__ import annotations

import triton
import triton.language as tl

U = tl.constexpr(2.0**-24)


@triton.jit
def of_mass(gap, blocks):
    """Of the mass relatively, of its logarithm absolutely."""
    return (48.0 + 6.0 * blocks + 3.0 * gap) * U


@triton.jit
def of_entropy(gap, blocks, ln_size):
    """Of the entropy."""
    terms = ((51.0 + 8.0 * blocks) * gap + 3.0 * ((2.0 * ln_size + 2.0) * gap + 1.0)) * U
    return of_mass(gap, blocks) * (1.0 + gap) + terms


@triton.jit
def of_divergence(gap, difference, blocks, ln_size):
    """Of the divergence, given the mean of z - y."""
    draft_gap = tl.maximum(difference + gap, 0.0)
    terms = (320.0 + 9.0 * blocks) * (gap + draft_gap) * U
    return terms + of_mass(gap, blocks) * (1.0 + tl.abs(difference)) + of_mass(ln_size, blocks)
