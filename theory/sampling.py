"""Verification by sampling: two ratios target/draft are enough to describe the worst drafters, in these expressions.

In the worst case the ratio is `u < 1` on the tokens that are drafted too often and `v > 1` on all others. The lenience
`l` with which such a drafter is the worst one is the logarithmic mean of the two. That they are what they say is S2.
"""

import sympy
from sympy import log

u, v = sympy.symbols("u v", positive=True)
lenience = sympy.Symbol("l", positive=True)
kl = sympy.Symbol("D", nonnegative=True)

LENIENCE = (v - u) / log(v / u)
"""The lenience that belongs to two ratios."""

KL = log(v) - u * (v - 1) / lenience
"""KL(p||q), in nats, of the pair of distributions with these ratios."""

ACCEPTANCE = (1 - u + u * (v - 1) / lenience) / (v - u)
"""Acceptance of that pair: the sum of min(q, p/l)."""

TANGENT = (1 - u + log(v) - kl) / (v - u)
"""What all pairs with KL(p||q) <= D are accepted with at least: a tangent of the curve of least acceptance."""
