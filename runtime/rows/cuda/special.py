"""`log1p` and `expm1` for Triton, whose language has neither: well conditioned near 0 by the classical corrections.

ln(1 + x) = x ln(u) / (u - 1) with u = fl(1 + x), and e^x - 1 = x (u - 1) / ln(u) with u = fl(e^x): the error of u
cancels.
Source: Kahan; Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 1.14.1.
"""

import triton
import triton.language as tl


@triton.jit
def log1p(x):
    """ln(1 + x) for x > -1."""
    u = 1.0 + x
    d = u - 1.0
    return tl.where(d == 0.0, x, tl.log(u) * (x / tl.where(d == 0.0, 1.0, d)))


@triton.jit
def expm1(x):
    """e^x - 1."""
    u = tl.exp(x)
    d = u - 1.0
    log_u = tl.log(u)
    near = d * (x / tl.where(log_u == 0.0, 1.0, log_u))
    return tl.where(d == 0.0, x, tl.where(u == 0.0, -1.0, tl.where(tl.abs(x) < 1.0, near, d)))
