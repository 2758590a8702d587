"""The rounding budgets of the row kernels: how far each result may be off, stated once, with the derivation.

`runtime.codegen` prints every budget into C++, torch and Triton, where the kernels call it, and quotes it in
docs/soundness.md. Two of them describe a kernel: `c`, by how much its sums are off, and `s`, how fast the error of a
weight e^z grows with |z|. What follows from these is the same for every kernel.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import sympy
from sympy import Abs, Eq, Interval, Piecewise, S, log, oo
from sympy.codegen.cfunctions import log1p, log2

from ...theory import DraftcertError
from ...theory.formula import Argument


@dataclass(frozen=True)
class RoundingBudget:
    """An upper bound of a rounding error, to first order in the unit roundoff unless `derivation` says otherwise.

    `bounds` names what is bounded, and `derivation` says in words why the expression bounds it, in paragraphs. An
    argument without an axis is a number of the call; "rows" is the axis of what each row has, and "vocab" that of what
    each of its tokens has. With `sum_over` the bound is the sum of the expression over that axis.

    Raises:
        DraftcertError: an undeclared symbol, an axis to sum over that no argument has, or a logarithm or a choice of
            something that is no number of the call: the code for torch evaluates these in plain Python.
    """

    name: str
    bounds: str
    arguments: tuple[Argument, ...]
    expression: sympy.Expr
    derivation: str
    sum_over: str | None = None

    def __post_init__(self) -> None:
        """Refuse an expression that cannot be compiled as it is meant."""
        declared = {argument.symbol for argument in self.arguments}
        if unknown := self.expression.free_symbols - declared:
            raise DraftcertError(f"budget {self.name}: undeclared {', '.join(sorted(map(str, unknown)))}")
        if self.sum_over is not None and self.sum_over not in {argument.axis for argument in self.arguments}:
            raise DraftcertError(f"budget {self.name}: no argument has the axis '{self.sum_over}' it sums over")
        numbers = {argument.symbol for argument in self.arguments if argument.axis is None}
        for part in self.expression.atoms(log, log1p, log2, Piecewise):
            if rows := part.free_symbols - numbers:
                raise DraftcertError(
                    f"budget {self.name}: {part} depends on {', '.join(sorted(map(str, rows)))}, no number of the call"
                )

    @cached_property
    def sha256(self) -> str:
        """Hash of all that gives the budget its meaning; names of things and prose are left out."""
        meaning = [
            [[sympy.srepr(a.symbol), sympy.srepr(a.domain), a.axis] for a in self.arguments],
            sympy.srepr(self.expression),
            self.sum_over,
        ]
        return hashlib.sha256(json.dumps(meaning).encode()).hexdigest()


# ---- Symbols --------------------------------------------------------------------------------------------------------

u, w, c, s, V, ln_size, T, F, f, b, B = sympy.symbols("u w c s V ln_V T F f b B", nonnegative=True)
G, D, R, E, S_f, S_d, S_e, S_q, N, K = sympy.symbols("G D R E S S_d S_e S_q N K", nonnegative=True)
X, r, lse, x_max, H_f = sympy.symbols("X r logsumexp x_max H_f", real=True)
n, p, q, e_p, e_q = sympy.symbols("n p q e_p e_q", nonnegative=True)
z, ln_p, d = sympy.symbols("z ln_p d", real=True)

POSITIVE, SIZE, COUNT, PROBABILITY = Interval.open(0, oo), Interval(0, oo), S.Naturals, Interval(0, 1)

SYMBOLS = MappingProxyType(
    {
        argument.symbol: argument
        for argument in (
            Argument(u, POSITIVE, "unit roundoff of the exponentials' type: 2^-24 in float32, 2^-53 in float64"),
            Argument(w, POSITIVE, "unit roundoff of float64, 2^-53"),
            Argument(c, SIZE, "relative error of a kernel's sums of weights, but for what grows with |z|"),
            Argument(s, SIZE, "how many u a weight e^z is off by for each unit of |z|"),
            Argument(V, COUNT, "size of the vocabulary"),
            Argument(ln_size, SIZE, "its logarithm"),
            Argument(T, POSITIVE, "temperature"),
            Argument(F, POSITIVE, "87 in float32 and 700 in float64: exponents below -F count as -F"),
            Argument(f, POSITIVE, "floor of an entropy"),
            Argument(b, S.Naturals0, "how often, at most, the running sums of a row were brought to a larger maximum"),
            Argument(B, COUNT, "how many sums the second pass of a Triton kernel holds side by side"),
            Argument(G, SIZE, "mean gap of the row, sum p |z|, which is at most ln V", axis="rows"),
            Argument(D, SIZE, "sum p |y|, the mean gap of the drafter's logits under the target", axis="rows"),
            Argument(X, S.Reals, "sum p (z - y)", axis="rows"),
            Argument(lse, S.Reals, "the value found", axis="rows"),
            Argument(x_max, S.Reals, "the largest logit", axis="rows"),
            Argument(E, SIZE, "error of ln p_(1)", axis="rows"),
            Argument(R, SIZE, "the largest gap that a threshold of the rule lets in", axis="rows"),
            Argument(n, COUNT, "the number of tokens that the projection pools", axis="rows"),
            Argument(S_f, SIZE, "sum p ln(1 + p/f)", axis="rows"),
            Argument(H_f, S.Reals, "entropy with a floor, -sum p ln(p + f)", axis="rows"),
            Argument(K, SIZE, "the divergence", axis="rows"),
            Argument(S_d, SIZE, "the mean of t A, A = 16 + |a| + |b|, a and b cut at -700", axis="rows"),
            Argument(S_e, SIZE, "the mean of |e^(-d) - 1| A", axis="rows"),
            Argument(S_q, SIZE, "the mean of A^2", axis="rows"),
            Argument(r, S.Reals, "the mean of e^(-d) - 1, which is near 0", axis="rows"),
            Argument(N, SIZE, "the sum of reference_kl_term", axis="rows"),
            Argument(z, Interval(-oo, 0), "a token's (x - max)/T", axis="vocab"),
            Argument(ln_p, S.Reals, "the value found", axis="vocab"),
            Argument(p, PROBABILITY, "a token's target probability", axis="vocab"),
            Argument(q, PROBABILITY, "its draft probability", axis="vocab"),
            Argument(d, S.Reals, "ln p - ln q, or 0 where p is 0", axis="vocab"),
            Argument(e_p, SIZE, "the error of ln p", axis="vocab"),
            Argument(e_q, SIZE, "the error of ln q", axis="vocab"),
        )
    }
)
"""Every symbol of the budgets with its meaning, once."""


def of(*symbols: sympy.Symbol) -> tuple[Argument, ...]:
    """The arguments of a function of these symbols, in this order."""
    return tuple(SYMBOLS[symbol] for symbol in symbols)


MASS = c + s * u * G
"""Relative error of the mass sum e^z, which is the absolute one of its logarithm."""

# ---- Gaps and the certificate ---------------------------------------------------------------------------------------

GAP = RoundingBudget(
    name="gap",
    bounds="the relative error of a gap (max - x)/T in float64",
    arguments=of(w),
    expression=4 * w,
    derivation=(
        "The difference and the quotient are rounded once each, so the gap is at most 1 + 2 w + w^2 times what was "
        "computed. The product with 1 + 4 w, by which a gap is rounded up, keeps 1 + 3 w after its own rounding."
    ),
)

LOWEST_LOGIT = RoundingBudget(
    name="lowest_logit",
    bounds="the error of x_max - R T, so that no logit further down has a gap of R or less",
    arguments=of(w, R, T, x_max),
    expression=8 * w * (R * T + Abs(x_max)),
    derivation=(
        "The two roundings of a gap are worth 2 w R T, the product R T costs another w R T, and the two differences w "
        "(R T + |x_max|) each."
    ),
)

CERTIFICATE = RoundingBudget(
    name="certificate",
    bounds="the relative error of a certificate C = p_(1) (1 + a) sum h((r - a)/(1 + a)), p_(1) given",
    arguments=of(w, n),
    expression=64 * w * (n + 16),
    derivation=(
        "r = expm1(z), a is its mean over the pool, and h Bennett's function. In a, the sum is stationary: dC/da = n - "
        "sum (1 + r)/(1 + a) = 0 at the mean, so that an error of a counts to second order only. So does the choice of "
        "the pool: a token wrongly in or out lies within rounding of the level.\n\n"
        "In r, dC = p_(1) sum ln((1 + r)/(1 + a)) dr, and |dr| <= 4 w |r|: one rounding of the gap, one of the "
        "division by the temperature, and expm1. Write y = (r - a)/(1 + a). The most likely token has r = 0, so |r| <= "
        "(1 + a)(|y| + |y_1|). Near the level sum |y| |y_1| <= sqrt(n) sum y^2 and h(y) is y^2/2 to leading order: a "
        "relative error of at most 8 (sqrt(n) + 1) w. Far below it ln(1 + y) grows, but 1 + r is then a multiple of w "
        "and the logarithm at most 37, against h >= 1 - ln 2: a factor of 40 at most.\n\n"
        "As to h itself, the cut polynomial is off by 2^-55 of it at most (`truncation_bound`, an exact rational), and "
        "both branches are accurate to 9 w. No term is negative, so the sum loses n w."
    ),
)

# ---- What follows from c and s, for every kernel --------------------------------------------------------------------

LOG_MASS = RoundingBudget(
    name="log_mass",
    bounds="the error of ln(mass) = -ln p_(1)",
    arguments=of(c, s, u, G),
    expression=MASS,
    derivation=(
        "A weight e^z is off by s |z| u of itself besides what c holds, so the mass is off by c + s u G of itself and "
        "its logarithm by that absolutely; c has room for the rounding of the logarithm, which is at most ln V. It is "
        "summed as it stands: as max/T - logsumexp it would lose w |max|/T, all of it where logits are large."
    ),
)

LOGSUMEXP = RoundingBudget(
    name="logsumexp",
    bounds="the error of logsumexp",
    arguments=of(c, s, u, w, G, lse),
    expression=MASS + 4 * w * Abs(lse),
    derivation=(
        "The logarithm of the mass is off by c + s u G. The maximum over the temperature is at most |logsumexp| + "
        "ln V: rounding it and its sum with the logarithm costs 2 w |logsumexp|, and w ln V, which c has room for."
    ),
)

LOG_PROBABILITY = RoundingBudget(
    name="log_probability",
    bounds="the error of ln p = z - ln(mass) in float64",
    arguments=of(c, s, u, w, G, ln_p),
    expression=MASS + 3 * w * Abs(ln_p),
    derivation="z is at most |ln p| and rounded twice, the difference once; the logarithm is off by c + s u G.",
)

ENTROPY = RoundingBudget(
    name="entropy",
    bounds="the error of the entropy H = ln(mass) + G",
    arguments=of(c, s, u, ln_size, G),
    expression=MASS * (1 + G) + (c + 3 * u) * G + s * u * ((2 * ln_size + 2) * G + 1) + 6 * u,
    derivation=(
        "The mass is off by c + s u G of itself, which counts once in the logarithm, and G times in G = -sum e^z z / "
        "mass. A term e^z z is off by c + (s |z| + 3) u of itself, as z and the product are rounded too. The mean of "
        "z^2 is at most L G + 1 with L = 2 ln V + 2: a token within L of the maximum has p z^2 <= L p |z|, and one "
        "further down p z^2 <= L^2 e^-L, which is less than 1 for all of them. 6 u are for the logarithm, the last "
        "sums, and tokens too far down for exp, which count as e^-F."
    ),
)

KL = RoundingBudget(
    name="kl",
    bounds="the error of the divergence K = X + ln(draft mass/mass)",
    arguments=of(c, s, u, ln_size, F, G, D, X),
    expression=(c + (s * F + 8) * u) * (G + D) + MASS * (1 + Abs(X)) + c + s * u * ln_size + 8 * u,
    derivation=(
        "A term e^z (z - y) is off by c + s |z| u of itself, |z| <= F; z, y, their difference and the product are "
        "rounded too, by 8 u (|z| + |y|) at most. The mean of |z - y| is at most that of |z| + |y|, which is G + D. "
        "The mass enters X |X| times and the logarithm once; the drafter's mass has a mean gap of its own, at most "
        "ln V. 8 u are for the logarithm and the last sums.\n\n"
        "All of this is first order. Products of two relative errors, each below 1/10,000, are below 1/10,000 of it, "
        "and the constants are rounded up by more. A token further than F below the maximum has a weight of e^-F or "
        "less here. Times a difference z - y of up to 10^20 in float32 and 10^280 in float64 that is below 10^-17, "
        "which 8 u have room for; a row with a larger difference is no finite sum, and is summed as `cpu_refined_kl` "
        "and `refine` do."
    ),
)

# ---- The reference --------------------------------------------------------------------------------------------------

REFERENCE_SLOPE = RoundingBudget(
    name="reference_slope",
    bounds="s, how fast the error of a weight grows, in the reference",
    arguments=of(),
    expression=sympy.Integer(2),
    derivation="The difference max - x is rounded, and its quotient by the temperature.",
)

REFERENCE_SUMS = RoundingBudget(
    name="reference_sums",
    bounds="c, the error of sums, in the reference",
    arguments=of(u, V),
    expression=(V + 16) * u,
    derivation=(
        "exp is accurate to 2 u, and adding V positive terms loses V u at most. In a long row it loses far less, as "
        "torch sums in cascades; in a short one 16 u are enough for the logarithm, 2 u ln V, and the w ln V of the "
        "maximum."
    ),
)

REFERENCE_FLOORED_ENTROPY = RoundingBudget(
    name="reference_floored_entropy",
    bounds="the error of the reference's H_f = -sum p ln(p + f)",
    arguments=of(c, E, H_f, f),
    expression=(E + c) * (1 + Abs(H_f) + f) * 4,
    derivation=(
        "A term changes by |ln(p + f)| + 1 times the relative change of p at most, and sum p |ln(p + f)| <= |H_f| + "
        "2 f, as ln(p + f) <= f where it is positive. p is off by E and by 4 u |ln p| of itself, and sum p |ln p| "
        "(|ln(p + f)| + 1) <= (ln V)^2 + (1 + f) ln V + 1 is less than (1 + f)(V + 16)/2. The sum loses V u of its "
        "terms."
    ),
)

REFERENCE_KL_TERM = RoundingBudget(
    name="reference_kl_term",
    bounds="the error that ln p and ln q cause in the reference's divergence",
    arguments=of(u, p, q, d, e_p, e_q),
    expression=2 * (p * Abs(d) * (e_p + 8 * u) + Abs(p - q) * (e_q + 8 * u)) + (p * e_p + q * e_q) * (e_p + e_q),
    derivation=(
        "The reference sums K = sum (p d - p + q), d = ln p - ln q. To first order a term changes by p d times the "
        "error of ln p and by q - p times that of ln q; both are counted twice, with 8 u for evaluating the term. The "
        "first order vanishes where target and draft coincide to rounding, though K need not be 0 there: the second, "
        "half of p e_p^2 + 2 p e_p e_q + q e_q^2, is added. It is small where q is, however large the error of ln q."
    ),
    sum_over="vocab",
)

REFERENCE_KL = RoundingBudget(
    name="reference_kl",
    bounds="the error of the reference's divergence",
    arguments=of(u, V, N, K),
    expression=N + V * u * K,
    derivation="No term is negative, so the sum of V of them loses at most V u of itself.",
)

# ---- The kernels in C++ ---------------------------------------------------------------------------------------------

CPU_SLOPE = RoundingBudget(
    name="cpu_slope",
    bounds="s in the C++ kernels",
    arguments=of(T),
    expression=Piecewise((3, Eq(T, 1)), (4, True)),
    derivation=(
        "x - max is off by |z| u. Its product with log2(e), a constant that is stored to 0.3 u, is off by 1.3 |z| u; "
        "with another temperature log2(e)/T is rounded first, one u more."
    ),
)

CPU_WEIGHT = RoundingBudget(
    name="cpu_weight",
    bounds="the relative error of a weight e^z in C++",
    arguments=of(u, s, z),
    expression=(sympy.Rational(9, 2) + s * Abs(z)) * u,
    derivation=(
        "A polynomial of the fractional part of z log2(e) costs 4.5 u; with AVX-512 an entry of a table of 2^(i/32), a "
        "shorter polynomial and their product cost 4 u. The rest is the error of the exponent."
    ),
)

CPU_SUMS = RoundingBudget(
    name="cpu_sums",
    bounds="c in the C++ kernels' sums over the target's logits",
    arguments=of(u, w, V, b),
    expression=38 * u + w * (V / 256 + 6 * b + 100),
    derivation=(
        "To the 4.5 u of a weight come at most 33 additions in its type; blocks of 256 logits or more are then added "
        "in float64. Each of the b times that a larger maximum is met, or two segments of a row are joined, costs 6 w: "
        "one addition, the product that shifts z in the terms e^z z and its addition, an exponential, 2 w, and its "
        "product. 100 w are for the sum over lanes and the logarithm."
    ),
)

CPU_PAIR_SUMS = RoundingBudget(
    name="cpu_pair_sums",
    bounds="c in the C++ kernels' sums that the drafter's logits enter",
    arguments=of(u, w, V, b),
    expression=69 * u + w * (V / 256 + 6 * b + 100),
    derivation="As cpu_sums, with 64 additions a block instead of 33: these terms are not added in pairs first.",
)

CPU_REFINED_KL = RoundingBudget(
    name="cpu_refined_kl",
    bounds="the error of the divergence K - (r - ln(1 + r)), K the mean of t, in the C++ kernels' second pass",
    arguments=of(w, V, ln_size, K, S_d, S_e, S_q, r),
    expression=w * (128 * S_d + 8 * S_e + 32 * w * S_q + (V / 256 + 8 * ln_size + 300) * (K + Abs(r))),
    derivation=(
        "The means are those under the target, of the maxima's gaps a = z and b = y in float64. With d = a - b + h, h "
        "a number near ln(draft mass/mass), t = d - 1 + e^(-d) is never negative, and vanishes with d.\n\n"
        "d is off by 4 A w: the differences from the maxima and of a and b are rounded, their quotient by the "
        "temperature, and the sum with h, which is at most ln V. So t is off by |e^(-d) - 1| 4 A w, counted twice, and "
        "to second order by 8 (A w)^2, counted four times, as the first vanishes where d does. A weight e^a is off by "
        "(4.5 + 4 |a|) w of itself, and the e^(-d) e^a of the drafter by (7.5 + 4 |b|) w, so each "
        "by 4 A w. Where |d| < 1/2, t is a series without cancellation, else |d - 1| + e^(-d) is at most 22 t: t "
        "is off by 22 * 4 A w of itself, and by 10 * 4 A w for d. That is 128 A w t.\n\n"
        "The rest is for sums over blocks, for the mass, which is off by (100 + V/256 + 4 ln V) w, and for r, whose "
        "error counts |r|/(1 + r) times, as it vanishes with the derivative of r - ln(1 + r). Tokens more than 700 "
        "below the maximum weigh e^-700, which adds to t where |d| is above 10^280 and else is nothing, and more than "
        "1500 below nothing."
    ),
)

CPU_FLOORED_ENTROPY = RoundingBudget(
    name="cpu_floored_entropy",
    bounds="the error of the C++ kernels' H_f = -ln f - S",
    arguments=of(u, w, s, V, f, G, S_f, H_f, E),
    expression=(
        u * (48 * S_f + s * (S.One + log1p(1 / f)) * G + 9)
        + (S_f + 1) * (E + w * (V / 256 + 100))
        + 4 * w * (Abs(H_f) + Abs(log(f)))
    ),
    derivation=(
        "The terms of S = sum p ln(1 + p/f) are all of one sign; a second traversal sums them in the type of the "
        "weights (in float64 where f is below 2^-60, and again in float64 where a token lies within the error). A term "
        "is off by ln(1 + p/f) + 1 times the relative error of its weight, by 7 u of its logarithm, and by 3 u p for "
        "1 + p/f; with the product and 33 additions that is 46 u S + 8 u, and s u G (ln(1 + 1/f) + 1) as ln(1 + p/f) "
        "<= ln(1 + 1/f). The error E of the mass counts S + 1 times, as do the additions in float64."
    ),
)

# ---- The kernels in Triton ------------------------------------------------------------------------------------------

TRITON_SLOPE = RoundingBudget(
    name="triton_slope",
    bounds="s in the Triton kernels",
    arguments=of(),
    expression=sympy.Integer(3),
    derivation="x - max is rounded, log2(e)/T, and the product of the two.",
)

TRITON_SUMS = RoundingBudget(
    name="triton_sums",
    bounds="c in the Triton kernels' sums, which are in float32",
    arguments=of(u, b),
    expression=u * (9 * b + 48),
    derivation=(
        "A lane reads b blocks of 32 logits. 4 u are for the power of 2 that a weight is, 31 u for adding up a block, "
        "and 9 u for each block: its addition, a power of 4 u that brings the sums to a larger maximum, its product, "
        "and in the terms that z enters three more for the shift of z. The lanes are joined by 5 additions after "
        "another power and its product, 10 u. What is left of 48 u is more than the segments' sums in float64, tokens "
        "with a weight below 2^-126, which count as 0, and second orders."
    ),
)

TRITON_REFINED_SUMS = RoundingBudget(
    name="triton_refined_sums",
    bounds="c in the Triton kernels' second pass, which is in float64",
    arguments=of(w, V, B),
    expression=w * (V / B + 64),
    derivation=(
        "Each of B sums takes V/B terms. The exponential, 2 w, at most 18 additions that join the sums, and the "
        "logarithm, 2 w ln V, cost less than 64 w."
    ),
)

BUDGETS = MappingProxyType(
    {
        budget.name: budget
        for budget in (
            *(GAP, LOWEST_LOGIT, CERTIFICATE),
            *(LOG_MASS, LOGSUMEXP, LOG_PROBABILITY, ENTROPY, KL),
            *(REFERENCE_SLOPE, REFERENCE_SUMS, REFERENCE_FLOORED_ENTROPY, REFERENCE_KL_TERM, REFERENCE_KL),
            *(CPU_SLOPE, CPU_WEIGHT, CPU_SUMS, CPU_PAIR_SUMS, CPU_REFINED_KL, CPU_FLOORED_ENTROPY),
            *(TRITON_SLOPE, TRITON_SUMS, TRITON_REFINED_SUMS),
        )
    }
)
"""All budgets by name."""
