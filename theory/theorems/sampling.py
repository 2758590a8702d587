"""S1 to S3: speculative sampling, the sharp least acceptance of which a divergence or its mean is a guarantee."""

from dataclasses import replace

from sympy import S, log, oo, symbols

from ..functions import Bennett
from ..sampling import KL, LENIENCE, TANGENT, kl, lenience, u, v
from ..theorem import (
    AtLeast,
    Equal,
    Evident,
    Range,
    Role,
    Rows,
    Step,
    SumAtLeast,
    SumEqual,
    SumFact,
    SumProof,
    Theorem,
    TokenClass,
)
from .evidence import NOTHING
from .symbols import p, q

LEVIATHAN = "Leviathan, Kalman and Matias, arXiv 2211.17192; Chen et al., arXiv 2302.01318"

_ANY = Range(p, S.Zero, S.One)
_DRAFTED = Range(q, S.Zero, S.One)
_OFTEN, _OTHER = "drafted too often", "all others"

# ---- S1 --------------------------------------------------------------------------------------------------------

_rejected = symbols("R", positive=True)

S1 = Theorem(
    name="S1",
    title="Speculative sampling accepts all but what is drafted too often",
    statement=(
        "A token x drawn from q is accepted with probability min(1, p(x)/(l q(x))), 0 < l <= 1 the lenience. All in "
        "all sum min(q, p/l) = 1 - R is accepted, where R = sum (q - p/l)_+. Without lenience, l = 1, R is the total "
        "variation of p and q. R is the largest q(B) - p(B)/l over sets B of tokens."
    ),
    hypotheses=("a token is drafted too often if q > p/l", "R is what they have too much"),
    derivation=(),
    conclusions=(
        SumEqual(
            Rows(
                (Range(lenience, S.Zero, S.One, open_below=True), Range(_rejected, S.Zero, S.One)),
                (
                    TokenClass(_OFTEN, Role.REJECTED, None, p, (_ANY, Range(q, p / lenience, oo))),
                    TokenClass(_OTHER, Role.REJECTED, None, p, (_ANY, Range(q, S.Zero, p / lenience))),
                ),
                (
                    SumFact({_OFTEN: q, _OTHER: q}, S.One),
                    SumFact({_OFTEN: q - p / lenience}, _rejected),
                ),
            ),
            {_OFTEN: p / lenience, _OTHER: q},
            1 - _rejected,
            SumProof(facts=(S.One, -S.One)),
        ),
    ),
    formal=("S1_acceptance",),
    citation=LEVIATHAN,
)

# ---- S2 --------------------------------------------------------------------------------------------------------

_RATIOS = (
    Range(u, S.Zero, S.One, open_below=True, open_above=True),
    Range(v, S.One, oo, open_below=True),
)
_ANY_PAIR = Rows(
    _RATIOS,
    (
        TokenClass(_OFTEN, Role.REJECTED, None, p, (_ANY, _DRAFTED)),
        TokenClass(_OTHER, Role.REJECTED, None, p, (_ANY, _DRAFTED)),
    ),
    (SumFact({_OFTEN: q, _OTHER: q}, S.One),),
)
_target = u * (v - 1) / (v - u)
_draft = (v - 1) / (v - u)
_two_coins = _target * log(_target / _draft) + (1 - _target) * log((1 - _target) / (1 - _draft))

# Fedotov, Harremoes and Topsoe write the curve for l = 1 in t; with z = e^(2t), so that t = ln(z)/2:
_z = symbols("z", positive=True)
_t, _coth = log(_z) / 2, (_z + 1) / (_z - 1)
_WITHOUT_LENIENCE = {u: log(_z) / (_z - 1), v: _z * log(_z) / (_z - 1)}


_KL = KL.xreplace({lenience: LENIENCE})

S2 = Theorem(
    name="S2",
    title="Least acceptance of speculative sampling",
    statement=(
        "For numbers u < 1 < v whose logarithmic mean (v - u)/ln(v/u) is the lenience l, every pair of distributions "
        "is accepted with probability at least (1 - u + ln v - KL(p||q))/(v - u). Equality holds where p/q is u on "
        "some tokens and v on all others: with KL(p||q) = D of this pair, nothing better can be said of a pair with "
        "KL(p||q) <= D. For every l in (0, 1] and every D > 0 there is one such pair of numbers. The least acceptance "
        "is a convex function of D, the largest of these straight lines; without lenience it is 1 - tau(D), tau the "
        "largest total variation."
    ),
    hypotheses=(
        "B is any set of tokens (those drafted too often are the worst)",
        "l = (v - u)/ln(v/u)",
    ),
    derivation=(
        Step(
            "The drafter with ratios u on B and v elsewhere has q(B) = (v-1)/(v-u) and p(B) = u q(B).",
            Equal(u * _draft + v * (1 - _draft), S.One, _RATIOS),
            "both distributions have mass one",
        ),
        Step(
            "Without lenience, v = z u, its total variation is (t/2) (1 - (coth t - 1/t)^2), z = e^(2t).",
            Equal(
                (_draft - _target).xreplace(_WITHOUT_LENIENCE),
                _t / 2 * (1 - (_coth - 1 / _t) ** 2),
                (Range(_z, S.One, oo, open_below=True),),
            ),
            "u = ln z/(z-1), so that the logarithmic mean of u and z u is one",
        ),
        Step(
            "and its divergence ln(t/sinh t) + t coth t - t^2/sinh^2 t, where ln(t/sinh t) = ln u + t.",
            Equal(
                (1 - _target).xreplace(_WITHOUT_LENIENCE) * log(_z),
                _t + _t * _coth - _t**2 * (_coth**2 - 1),
                (Range(_z, S.One, oo, open_below=True),),
            ),
            "D = p(B) ln u + (1 - p(B)) ln v, with ln v = ln u + ln z",
        ),
    ),
    conclusions=(
        SumAtLeast(
            _ANY_PAIR,
            {_OFTEN: p * log(p / q) - (v - u) * q + log(v / u) * p, _OTHER: p * log(p / q)},
            log(v) + 1 - v,
            SumProof(
                mass=1 + log(v),
                facts=(-v,),
                slack={
                    _OFTEN: Evident(q * u * Bennett(p / (q * u) - 1)),
                    _OTHER: Evident(q * v * Bennett(p / (q * v) - 1)),
                },
                rest=NOTHING,
            ),
        ),
        Equal(_two_coins, _KL, _RATIOS),
        Equal(1 - _draft + _target / LENIENCE, TANGENT.xreplace({kl: _KL}), _RATIOS),
    ),
    formal=("S2_least_acceptance", "S2_sharp", "S2_one_pair"),
    citation="Fedotov, Harremoes and Topsoe, IEEE Trans. Inf. Theory 49 (2003) 1491-1498, for l = 1; draftcert",
)

# ---- S2r -------------------------------------------------------------------------------------------------------

_mass, _share = symbols("s b", positive=True)
_PROPER = tuple(Range(each, S.Zero, S.One, open_below=True, open_above=True) for each in (_mass, _share))
_SPLIT = Rows(
    _PROPER,
    (
        TokenClass(_OFTEN, Role.REJECTED, None, p, (_ANY, _DRAFTED)),
        TokenClass(_OTHER, Role.REJECTED, None, p, (_ANY, _DRAFTED)),
    ),
    (
        SumFact({_OFTEN: p}, _mass),
        SumFact({_OTHER: p}, 1 - _mass),
        SumFact({_OFTEN: q}, _share),
        SumFact({_OTHER: q}, 1 - _share),
    ),
)
_inside, _outside = _mass / _share, (1 - _mass) / (1 - _share)
_COINS = _mass * log(_inside) + (1 - _mass) * log(_outside)

S2_ROW = Theorem(
    name="S2r",
    title="Least acceptance of speculative sampling for a given target",
    statement=(
        "If a set B of tokens has mass s in the target and b in the draft, KL(p||q) is at least that of the two coins, "
        "s ln(s/b) + (1-s) ln((1-s)/(1-b)), with equality where q is proportional to p on B and outside. So the least "
        "acceptance of a target p at KL(p||q) <= D is the least 1 - b + s/l over the masses s = p(B) of its sets of "
        "tokens, b the largest number with a divergence of D from s. It is convex in s: of all masses only the two "
        "next to the best one count. Sets of few tokens are enumerated; for many the value lies between that of any "
        "set and S2."
    ),
    hypotheses=("s = p(B), b = q(B), both inside (0, 1)",),
    derivation=(
        Step(
            "For any u < v, b is at most an affine function of s, and it is the least of these: so b is concave in s.",
            AtLeast(
                _COINS - (v - u) * _share + log(v / u) * _mass,
                log(v) + 1 - v,
                (*_RATIOS, *_PROPER),
                Evident(_share * u * Bennett(_inside / u - 1) + (1 - _share) * v * Bennett(_outside / v - 1)),
            ),
            "S2 for two tokens, where D = KL of the coins",
        ),
    ),
    conclusions=(
        SumAtLeast(
            _SPLIT,
            {_OFTEN: p * log(p / q), _OTHER: p * log(p / q)},
            _COINS,
            SumProof(
                facts=(log(_inside) + 1, log(_outside) + 1, -_inside, -_outside),
                slack={
                    _OFTEN: Evident(q * _inside * Bennett(p / (q * _inside) - 1)),
                    _OTHER: Evident(q * _outside * Bennett(p / (q * _outside) - 1)),
                },
                rest=NOTHING,
            ),
        ),
        SumEqual(
            replace(_SPLIT, facts=_SPLIT.facts[:2]),
            {_OFTEN: p * log(p / (p / _inside)), _OTHER: p * log(p / (p / _outside))},
            _COINS,
            SumProof(facts=(log(_inside), log(_outside))),
        ),
    ),
    formal=("S2_coins", "S2r_convexity", "S2r_two_masses"),
)

# ---- S3 --------------------------------------------------------------------------------------------------------

_weight, _accepted, _gain, _mean = symbols("w A c D", nonnegative=True)
_divergence = symbols("D_i", real=True)

S3 = Theorem(
    name="S3",
    title="Mean KL and sampling",
    statement=(
        "S2 holds for means over contexts: a drafter whose KL averages D accepts, on average, at least what S2 says of "
        "a single pair with KL(p||q) = D, whatever the lenience. Equal contexts attain it."
    ),
    hypotheses=("contexts have weights w of sum 1, acceptance A and divergence D_i", "c = v - 1 - ln v"),
    derivation=(),
    conclusions=(
        SumAtLeast(
            Rows(
                (*_RATIOS, Range(_gain, S.Zero, oo), Range(_mean, S.Zero, oo)),
                (
                    TokenClass(
                        "context",
                        Role.REJECTED,
                        None,
                        _weight,
                        (
                            Range(_weight, S.Zero, S.One),
                            Range(_accepted, S.Zero, S.One),
                            Range(_divergence, (v - u) * (1 - _accepted) - _gain, oo),
                        ),
                    ),
                ),
                (SumFact({"context": _weight * _divergence}, _mean),),
            ),
            {"context": _weight * _accepted},
            1 - (_mean + _gain) / (v - u),
            SumProof(
                mass=1 - _gain / (v - u),
                facts=(-1 / (v - u),),
                slack={
                    "context": Evident(_weight * (_divergence - ((v - u) * (1 - _accepted) - _gain)) / (v - u)),
                },
                rest=NOTHING,
            ),
        ),
    ),
    formal=("S3_mean", "S3_attained"),
)

# ---- S5 --------------------------------------------------------------------------------------------------------

_before, _ratio, _alpha, _later = symbols("P r alpha alpha_2", nonnegative=True)
_UP_TO_ONE = Range(_before, S.Zero, S.One)

S5 = Theorem(
    name="S5",
    title="Block verification and recursive rejection accept at least as much",
    statement=(
        "Block verification keeps i tokens or more with probability P_i = min(1, P_{i-1} r_i), r_i = p/q of the i-th "
        "token and P_0 = 1; token by token it is the product of min(1, r_i). The former is never less: with r_i <= 1 "
        "both are multiplied by r_i, since P r_i <= 1, and else the product stays while min(1, P r_i) >= P. So S2 to "
        "the power of i, summed, bounds the expected length of either. Recursive rejection of several candidates fails "
        "only if the first candidate fails, whose acceptance is S2's: it accepts at least as often as one candidate. "
        "That is valid and not sharp: in S2's worst case a second draw from q succeeds with the probability 1 - b of "
        "the other tokens."
    ),
    hypotheses=(
        "P_i is the probability that i tokens are kept, given the block (arXiv 2403.10444)",
        "alpha is the acceptance of the first candidate, alpha_2 that of all later ones after its rejection",
    ),
    derivation=(),
    conclusions=(
        AtLeast(
            S.One,
            _before * _ratio,
            (_UP_TO_ONE, Range(_ratio, S.Zero, S.One)),
            Evident((1 - _before) + _before * (1 - _ratio)),
        ),
        AtLeast(_before * _ratio, _before, (_UP_TO_ONE, Range(_ratio, S.One, oo)), Evident(_before * (_ratio - 1))),
        AtLeast(
            1 - (1 - _alpha) * (1 - _later),
            _alpha,
            (Range(_alpha, S.Zero, S.One), Range(_later, S.Zero, S.One)),
            Evident((1 - _alpha) * _later),
        ),
    ),
    formal=("S5_block_verification", "S5_expected_length", "S5_recursive_rejection"),
    citation="Sun et al., arXiv 2403.10444 (block verification); Miao et al., arXiv 2305.09781 (recursive rejection)",
)
