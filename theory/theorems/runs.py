"""B1 run length, B2's continuous form, B4 what lists of the most likely tokens determine."""

from sympy import Max, Rational, S, log, oo, symbols

from ..formulas import CERTIFICATE, PAPER
from ..functions import Bennett
from ..theorem import (
    DRAFT,
    THRESHOLD,
    AtLeast,
    Evident,
    Growth,
    LowerBound,
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
    UpperBound,
    Value,
    Witness,
    WorkedRow,
)
from .evidence import NOTHING, above_log
from .symbols import b, c, p, q

# ---- B1 --------------------------------------------------------------------------------------------------------

_budget, _divergence, _certificate = symbols("epsilon D C", nonnegative=True)
_certified, _breaks, _runs = symbols("L k R", nonnegative=True)

B1 = Theorem(
    name="B1",
    title="Run length",
    statement=(
        "If KL <= eps at every step, a run of accepted drafts continues over every step whose certificate exceeds eps. "
        "If k of N steps have C <= eps, the other N - k lie in at most k + 1 runs, so their mean length, and the "
        "longest, is at least (N - k)/(k + 1)."
    ),
    hypotheses=("KL(p||q) <= eps at every step",),
    derivation=(),
    conclusions=(
        AtLeast(
            _certificate,
            _divergence,
            (
                Range(_budget, S.Zero, oo),
                Range(_divergence, S.Zero, _budget),
                Range(_certificate, _budget, oo, open_below=True),
            ),
            Evident((_certificate - _budget) + (_budget - _divergence)),
            strict=True,
        ),
        AtLeast(
            _certified / _runs,
            _certified / (_breaks + 1),
            (
                Range(_certified, S.Zero, oo, integer=True),
                Range(_breaks, S.Zero, oo, integer=True),
                Range(_runs, S.One, _breaks + 1),
            ),
            Evident(_certified * (_breaks + 1 - _runs) / (_runs * (_breaks + 1))),
        ),
    ),
    formal=("guarantee_of_candidates", "B1_step", "B1_run_lengths"),
    citation=PAPER,
)

# ---- B2, continuous --------------------------------------------------------------------------------------------

_cut, _rate, _below = symbols("v r_v D_v", nonnegative=True)
_weight, _spared = symbols("w y", nonnegative=True)
_ANY_WEIGHT = Range(_weight, S.Zero, S.One)
_SHARED = (Range(_cut, S.Zero, oo), Range(_rate, S.Zero, S.One), Range(_below, S.Zero, oo))
_ANY_CERTIFICATE = Range(_certificate, S.Zero, oo)

B2_CONTINUOUS = Theorem(
    name="B2c",
    title="Mean-KL guarantee for any distribution of contexts",
    statement=(
        "Let C be the certificate of a context drawn from any distribution. A drafter that is rejected at rate r has "
        "mean KL >= v r - E (v - C)_+ for every v >= 0. The largest of these bounds is the Lorenz curve of the "
        "certificates, L(r), the integral of their quantile function from 0 to r: mean KL <= eps gives a rejection "
        "rate of at most (eps + E (v - C)_+)/v for every v > 0, and the mean KL that guarantees an acceptance rate "
        "above 1 - r is any below L(r). Attained by rejecting the contexts with C <= v at their certificates."
    ),
    hypotheses=(
        "contexts have weights w of sum 1; D is the KL of one, y at least (v - C)_+",
        "a context is rejected only if its KL is at least its certificate",
    ),
    derivation=(),
    conclusions=(
        SumAtLeast(
            Rows(
                _SHARED,
                (
                    TokenClass(
                        "rejected",
                        Role.REJECTED,
                        None,
                        _weight,
                        (
                            _ANY_WEIGHT,
                            _ANY_CERTIFICATE,
                            Range(_divergence, _certificate, oo),
                            Range(_spared, Max(S.Zero, _cut - _certificate), oo),
                        ),
                    ),
                    TokenClass(
                        "accepted",
                        Role.REJECTED,
                        None,
                        _weight,
                        (_ANY_WEIGHT, Range(_divergence, S.Zero, oo), Range(_spared, S.Zero, oo)),
                    ),
                ),
                (
                    SumFact({"rejected": _weight}, _rate),
                    SumFact({"rejected": _weight * _spared, "accepted": _weight * _spared}, _below),
                ),
            ),
            {"rejected": _weight * _divergence, "accepted": _weight * _divergence},
            _cut * _rate - _below,
            SumProof(
                facts=(_cut, -S.One),
                slack={
                    "rejected": Evident(
                        _weight * ((_divergence - _certificate) + (_spared - (_cut - _certificate))),
                    ),
                    "accepted": Evident(_weight * (_divergence + _spared)),
                },
                rest=NOTHING,
            ),
        ),
        SumEqual(
            Rows(
                _SHARED,
                (TokenClass("C at most v", Role.REJECTED, None, _weight, (_ANY_WEIGHT, _ANY_CERTIFICATE)),),
                (
                    SumFact({"C at most v": _weight}, _rate),
                    SumFact({"C at most v": _weight * (_cut - _certificate)}, _below),
                ),
            ),
            {"C at most v": _weight * _certificate},
            _cut * _rate - _below,
            SumProof(facts=(_cut, -S.One)),
        ),
    ),
    formal=("B2_guarantee", "B2_tight", "B2c_lorenz_bound", "B2c_lorenz_curve", "B2c_attained"),
)

# ---- B4 --------------------------------------------------------------------------------------------------------

_unseen = symbols("h", positive=True)
_tail, _drafted = symbols("P_t Q_t", positive=True)
_ratio = b / c
_MOVED = ("accepted above the level", "listed competitor below the level")
_PARAMETERS = (
    Range(c, S.Zero, S.One, open_below=True),
    Range(_unseen, S.One, oo, integer=True),
    Range(b, S.Zero, c, open_below=True),
)
_HIGH, _LOW, _ANY = Range(p, c, S.One), Range(p, S.Zero, c), Range(p, S.Zero, S.One)
_LEVEL = SumFact(dict.fromkeys(_MOVED, p / c - 1), _unseen * (1 - _ratio))
_VALUE = Value(_unseen * b * log(_ratio), dict.fromkeys(_MOVED, CERTIFICATE.expression))


def _listed(unseen: Range, *facts: SumFact) -> Rows:
    """Rows whose level is known with all unlisted competitors at b; what the level does not move may have any role."""
    return Rows(
        _PARAMETERS,
        (
            TokenClass(_MOVED[0], Role.ACCEPTED, None, p, (_HIGH,)),
            TokenClass(_MOVED[1], Role.COMPETITOR, None, p, (_LOW,)),
            TokenClass("unlisted competitor", Role.COMPETITOR, _unseen, p, (unseen,)),
            TokenClass("any other", Role.REJECTED, None, p, (_ANY,)),
        ),
        (_LEVEL, *facts),
    )


_drift = (_ratio - 1) * THRESHOLD
_unseen_slack = DRAFT * _ratio * Bennett(p / (DRAFT * _ratio) - 1) + (_ratio - 1) * (THRESHOLD - DRAFT)
_listed_slack = {
    **dict.fromkeys(_MOVED, Evident(p * above_log(DRAFT / c) + (p / c - 1) * (THRESHOLD - DRAFT))),
    "any other": Evident(DRAFT * Bennett(p / DRAFT - 1)),
}
_UP_TO_CAP = _listed(Range(p, S.Zero, b))
_UP_TO_MASS = _listed(_ANY, SumFact({"unlisted competitor": -p}, -_unseen * b, at_least=True))
_KEPT = ("accepted below the level", "listed competitor above the level", "other")
_FROM_LEAST = Rows(
    (*_PARAMETERS[:2], Range(b, S.Zero, S.One)),
    (
        TokenClass(_MOVED[0], Role.ACCEPTED, None, p, (_ANY,)),
        TokenClass(_KEPT[0], Role.ACCEPTED, None, p, (_LOW,)),
        TokenClass(_MOVED[1], Role.COMPETITOR, None, p, (_ANY,)),
        TokenClass(_KEPT[1], Role.COMPETITOR, None, p, (_HIGH,)),
        TokenClass("unlisted competitor", Role.COMPETITOR, _unseen, p, (Range(p, b, S.One),)),
        TokenClass(_KEPT[2], Role.REJECTED, None, p, (_ANY,)),
    ),
    (_LEVEL,),
)
_raised = p + c - b
_TWO_LISTS = Rows(
    (Range(_tail, S.Zero, S.One, open_below=True), Range(_drafted, S.Zero, S.One, open_below=True)),
    (
        TokenClass("unlisted", Role.REJECTED, None, p, (_ANY, Range(q, S.Zero, S.One))),
        TokenClass("listed", Role.REJECTED, None, p, (_ANY,)),
    ),
    (SumFact({"unlisted": p}, _tail), SumFact({"unlisted": q}, _drafted)),
)

_cap, _remaining = symbols("k r", positive=True)
_number = symbols("n", positive=True)
_AT_MOST = Range(_cap, S.Zero, S.One, open_below=True)
_REMAINING = Range(_remaining, S.Zero, S.One, open_below=True)
_NUMBER = Range(_number, S.One, oo, integer=True)
_LEFT = SumFact({"unlisted": p}, _remaining)
_BY_CAP = Rows(
    (_AT_MOST, _REMAINING), (TokenClass("unlisted", Role.REJECTED, None, p, (Range(p, S.Zero, _cap),)),), (_LEFT,)
)
_BY_NUMBER = Rows((_NUMBER, _REMAINING), (TokenClass("unlisted", Role.REJECTED, _number, p, (_ANY,)),), (_LEFT,))
_LAST = Rows(
    (_AT_MOST, Range(_unseen, S.One, oo, integer=True), _NUMBER, Range(b, S.Zero, S.One)),
    (
        TokenClass("more likely", Role.REJECTED, _unseen - 1, p, (Range(p, S.Zero, _cap),)),
        TokenClass("unlisted", Role.REJECTED, _number - _unseen + 1, p, (Range(p, S.Zero, b),)),
    ),
)
_even = _remaining / _number

B4 = Theorem(
    name="B4",
    title="Only the most likely tokens are known",
    statement=(
        "If the accepted set and all m competitors are listed, C is known exactly. If h competitors are not, let r be "
        "the remaining mass and b the largest that each can have, the least of the last listed probability, the "
        "threshold of the rule, and r/h. Then C is at least its value with the h competitors at b; also when unlisted "
        "tokens may be accepted, since that only raises C. If none of the n unlisted tokens is accepted, none exceeds "
        "k: C is at most its value with the h competitors at (r - (h-1) k)/(n - h + 1), or at 0 if that is negative "
        "or n unknown; attained for h = 1, valid but not sharp for more. If unlisted tokens may be accepted only T4's "
        "ceiling is left, and C = inf where fewer than m tokens may be rejected. The entropy of p lies between that "
        "of the list plus r ln(1/k), which r/k tokens of k attain if that is a whole number, and plus r ln(n/r), "
        "attained. Lumping the unlisted tokens into one bounds KL(p||q) from below only, which must never certify."
    ),
    hypotheses=("c is the level of the listed tokens together with h competitors at b", "b <= c"),
    derivation=(
        Step(
            "Lumping is a lower bound: sum p ln(p/q) >= P ln(P/Q) over the unlisted tokens, of mass P and Q.",
            SumAtLeast(
                _TWO_LISTS,
                {"unlisted": p * log(p / q)},
                _tail * log(_tail / _drafted),
                SumProof(
                    facts=(log(_tail / _drafted) + 1, -_tail / _drafted),
                    slack={
                        "unlisted": Evident(
                            q * _tail / _drafted * Bennett(p * _drafted / (q * _tail) - 1),
                        ),
                    },
                    rest=NOTHING,
                ),
            ),
            "the log-sum inequality; what is lost is unbounded, since one unlisted token can have q = 0",
        ),
        Step(
            "The h-th of the n unlisted tokens, b, is at least (r - (h-1) k)/(n - h + 1).",
            SumAtLeast(
                _LAST,
                {"more likely": -p, "unlisted": -p},
                -(_unseen - 1) * _cap - (_number - _unseen + 1) * b,
                SumProof(
                    constants={"more likely": -_cap, "unlisted": -b},
                    slack={"more likely": Evident(_cap - p), "unlisted": Evident(b - p)},
                    rest=NOTHING,
                ),
            ),
            "h - 1 tokens are at most k, and the n - h + 1 from it on at most b; together they are r",
        ),
        Step(
            "The unlisted tokens add at least r ln(1/k) to the entropy.",
            SumAtLeast(
                _BY_CAP,
                {"unlisted": -p * log(p)},
                -_remaining * log(_cap),
                SumProof(facts=(-log(_cap),), slack={"unlisted": Evident(p * log(_cap / p))}, rest=NOTHING),
            ),
            "-ln p >= ln(1/k) for each of them",
        ),
        Step(
            "They add at most r ln(n/r).",
            SumAtLeast(
                _BY_NUMBER,
                {"unlisted": p * log(p)},
                _remaining * log(_even),
                SumProof(
                    facts=(log(_even) + 1,),
                    constants={"unlisted": -_even},
                    slack={"unlisted": Evident(_even * Bennett(p / _even - 1))},
                    rest=NOTHING,
                ),
            ),
            "p ln p lies above its tangent at r/n",
        ),
    ),
    conclusions=(
        LowerBound(
            _UP_TO_CAP,
            _VALUE,
            SumProof(
                S.One,
                -S.One,
                (-THRESHOLD,),
                {"unlisted competitor": b * log(_ratio) - _drift},
                {**_listed_slack, "unlisted competitor": Evident(_unseen_slack + (p - b) * log(_ratio))},
                NOTHING,
            ),
        ),
        LowerBound(
            _UP_TO_MASS,
            _VALUE,
            SumProof(
                S.One,
                -S.One,
                (-THRESHOLD, -log(_ratio)),
                {"unlisted competitor": -_drift},
                {**_listed_slack, "unlisted competitor": Evident(_unseen_slack)},
                NOTHING,
            ),
        ),
        UpperBound(
            _FROM_LEAST,
            _VALUE,
            Witness(
                draft={**dict.fromkeys(_MOVED, c), **dict.fromkeys(_KEPT, p), "unlisted competitor": _raised},
                threshold=c,
                mass=SumProof(mass=S.One, facts=(-c,), constants={"unlisted competitor": c - b}),
                divergence=SumProof(
                    facts=(S.Zero,),
                    constants={"unlisted competitor": -b * log(_ratio)},
                    slack={
                        **dict.fromkeys(_MOVED + _KEPT, NOTHING),
                        "unlisted competitor": Growth(p, start=NOTHING, slope=Evident(above_log(p / _raised))),
                    },
                    rest=NOTHING,
                ),
            ),
        ),
    ),
    worked_points=(
        WorkedRow(
            ("1/2", "3/10", "1/5"),
            1,
            2,
            log(Rational(3, 2)) / 2 + Rational(3, 10) * log(Rational(9, 10)) + log(Rational(3, 5)) / 5,
            "two tokens listed: the least value, b = r = 1/5",
        ),
        WorkedRow(
            ("1/2", "3/10", "1/10", "1/10"),
            1,
            2,
            log(Rational(5, 3)) / 2 + log(Rational(1, 3)) / 10,
            "the largest value for two unlisted tokens",
        ),
    ),
    formal=(
        "T6_order",
        "B4_multipliers",
        "B4_upper",
        "B4_one_unlisted",
        "B4_lumped",
        "B4_entropy",
        "B4_entropy_attained",
    ),
)
