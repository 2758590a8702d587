"""B2 the mean-KL guarantee, B5 numerical noise."""

from sympy import S, oo, symbols

from ..formulas import PAPER
from ..theorem import (
    AtLeast,
    Evident,
    Range,
    Role,
    Rows,
    Step,
    SumAtLeast,
    SumProof,
    Theorem,
    TokenClass,
)
from .evidence import NOTHING
from .symbols import N

# ---- B2 --------------------------------------------------------------------------------------------------------

cutoff = symbols("v", nonnegative=True)
certificate = symbols("C", nonnegative=True)
_EXCHANGED = Rows(
    (Range(cutoff, S.Zero, oo), Range(N, S.One, oo, integer=True)),
    (
        TokenClass("rejected only", Role.REJECTED, N, certificate, (Range(certificate, cutoff, oo),)),
        TokenClass("cheapest only", Role.REJECTED, N, certificate, (Range(certificate, S.Zero, cutoff),)),
    ),
)
_mean, _least, _total, _contexts = symbols("epsilon L T N_c", positive=True)

B2 = Theorem(
    name="B2",
    title="Mean-KL guarantee",
    statement=(
        "Over N contexts with certificates C_1, ..., C_N, a drafter of mean KL at most eps is rejected in at most k of "
        "them, where k is the largest number with C_(1) + ... + C_(k) <= N eps in ascending order. Some drafter "
        "attains it. A mean KL below (C_(1) + ... + C_(k+1))/N therefore guarantees an acceptance rate of 1 - k/N."
    ),
    hypotheses=("a context is rejected only if its KL is at least its certificate",),
    derivation=(
        Step(
            "The mean of the divergences is at least the rejected ones' certificates over N.",
            AtLeast(
                _total / _contexts,
                _least / _contexts,
                (Range(_contexts, S.One, oo, integer=True), Range(_least, S.Zero, oo), Range(_total, _least, oo)),
                Evident((_total - _least) / _contexts),
            ),
            "divergences are nonnegative, and where a context is rejected at least its certificate",
        ),
    ),
    conclusions=(
        SumAtLeast(
            _EXCHANGED,
            {"rejected only": certificate, "cheapest only": -certificate},
            S.Zero,
            SumProof(
                constants={"rejected only": cutoff, "cheapest only": -cutoff},
                slack={
                    "rejected only": Evident(certificate - cutoff),
                    "cheapest only": Evident(cutoff - certificate),
                },
                rest=NOTHING,
            ),
        ),
    ),
    formal=("B2_guarantee", "B2_tight", "B2_inverse"),
)

# ---- B5 --------------------------------------------------------------------------------------------------------

_first_noise, _other_noise, _lowest = symbols("d_1 d_x l", real=True)
_width, _gap = symbols("w G", nonnegative=True)
_NOISE = (
    Range(_width, S.Zero, oo),
    Range(_lowest, -oo, oo),
    Range(_first_noise, -oo, _lowest + _width),
    Range(_other_noise, _lowest, oo),
    Range(_gap, _width, oo),
)

B5 = Theorem(
    name="B5",
    title="Numerical noise",
    statement=(
        "Two evaluations z, z' of one model give the same greedy token whenever max(z - z') - min(z - z') < z_(1) - "
        "z_(2), in particular whenever 2 max|z - z'| < z_(1) - z_(2), or KL(p||p') < C(p) for strict greedy."
    ),
    hypotheses=("G = z_1 - z_x for a token x other than the greedy one", "the noise z - z' spans at most w"),
    derivation=(),
    conclusions=(
        AtLeast(
            _gap - _first_noise + _other_noise,
            S.Zero,
            _NOISE,
            Evident((_gap - _width) + (_lowest + _width - _first_noise) + (_other_noise - _lowest)),
        ),
    ),
    formal=("guarantee", "B5_same_greedy_token", "B5_logits"),
    citation=PAPER,
)
