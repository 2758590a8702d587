"""The two arguments that all bounds rest on, as evidence: the logarithm lies below its tangent, and weak duality.

Weak duality. For every `r > 0`

    p ln(p/q) = q r h(p/(q r) - 1) + p (ln r + 1) - r q      with Bennett's h >= 0,

so a reference row with ratios `r = p*/q*` bounds `KL(p||q)` from below by something linear in `p` and `q`. On accepted
tokens `r >= 1` and `q <= t`, on competitors `r <= 1` and `q >= t`; where the ratios average to one over these, `t`
drops out.
"""

from collections.abc import Mapping

import sympy
from sympy import log

from ..functions import Bennett
from ..theorem import DRAFT, THRESHOLD, Evident, Rows, SumProof

NOTHING = Evident(sympy.S.Zero)
"""The two sides are equal."""


def above_log(u: sympy.Expr) -> sympy.Expr:
    """`u - 1 - ln u >= 0`, zero only at u = 1, written with Bennett's function."""
    return u * Bennett(1 / u - 1)


def log_sum(*parts: tuple[sympy.Expr, sympy.Expr]) -> sympy.Expr:
    """`sum a ln(a/q) - A ln(A/Q) >= 0` over parts `(a, q)` of sums A and Q: the log-sum inequality."""
    whole, draft = (sympy.Add(*side) for side in zip(*parts, strict=True))
    return sympy.Add(*(q * whole / draft * Bennett(a * draft / (q * whole) - 1) for a, q in parts))


def weak_duality(
    rows: Rows,
    ratios: Mapping[str, sympy.Expr],
    mass: sympy.Expr,
    slopes: Mapping[str, sympy.Expr] | None = None,
    anchors: Mapping[str, sympy.Expr] | None = None,
    shown: Mapping[str, sympy.Expr] | None = None,
    rest: Evident = NOTHING,
) -> SumProof:
    """Lower bound of KL from the ratios of a reference row (1 where none is given).

    What is left is `p` times `ln r + 1 - mass` (`slopes`, written so that the sign shows); for tokens that are not
    fixed it is compared with its value where `p` is `anchors[class]`. `shown` writes that difference,
    `slope (p - anchor)`, as a sum of products in which its sign shows.
    """
    slopes, anchors, shown = slopes or {}, anchors or {}, shown or {}
    constants, slack = {}, {}
    for each in rows.classes:
        r = sympy.sympify(ratios.get(each.name, 1))
        p, slope = each.probability, slopes.get(each.name, log(r) + 1 - mass)
        anchor = anchors.get(each.name, p if not each.ranges else sympy.S.Zero)
        constants[each.name] = slope * anchor - (r - 1) * THRESHOLD
        slack[each.name] = Evident(
            DRAFT * r * Bennett(p / (DRAFT * r) - 1)
            + (r - 1) * (THRESHOLD - DRAFT)
            + shown.get(each.name, slope * (p - anchor))
        )
    return SumProof(mass, -sympy.S.One, (), constants, slack, rest)
