"""S6 what a relaxed rule may cost in log-loss, and S7 what no drafter can exceed."""

from sympy import S, log, oo, symbols

from ..functions import Bennett
from ..rules.absolute import tau
from ..rules.additive import t
from ..rules.multiplicative import alpha
from ..theorem import (
    AtLeast,
    Equal,
    Evident,
    Range,
    Role,
    Rows,
    Step,
    SumAtLeast,
    SumFact,
    SumProof,
    Theorem,
    TokenClass,
)
from .evidence import NOTHING
from .symbols import N, g, top

# ---- S6 --------------------------------------------------------------------------------------------------------

_passed = symbols("p_x", positive=True)
_least = symbols("theta", positive=True)
_PARAMETER = {
    each: Range(each, S.Zero, S.One, open_below=True, open_above=each is not alpha) for each in (alpha, t, tau, _least)
}
_TOP = Range(top, S.Zero, S.One, open_below=True)
_below_top = log(top / _passed)

S6 = Theorem(
    name="S6",
    title="Log-loss that a rule allows",
    statement=(
        "A rule that lets the token x pass where the target's likeliest has p_1 costs ln(p_1/p_x) nats of log-loss: at "
        "most R = ln(p_1/theta) if theta > 0 is the threshold of the rule at this target, and R = 0 if nothing but the "
        "likeliest tokens is accepted. Sharp: at most ln(1/alpha) for multiplicative(alpha); ln(p_1/(p_1 - t)) for "
        "additive(t), which is infinite as p_1 goes to t; ln((1 - tau)/tau) for absolute(tau), tau <= 1/2, and with a "
        "margin g = p_1 - p_2, ln((1 + g - tau)/(2 tau)) if 1 - g >= 3 tau, else ln((g + tau)/tau). top-m(k), k >= 2, "
        "allows any loss. Summed along a text it bounds how far its tokens lie below the likeliest ones, each given "
        "the text before it. It says nothing of the likelihood of another text as a whole."
    ),
    hypotheses=("p_x >= theta", "p_1 >= p_x"),
    derivation=(
        Step(
            "With margin g and a token x besides the two likeliest, 2 p_1 - g + p_x <= 1.",
            AtLeast(
                log((1 + g - tau) / (2 * tau)),
                _below_top,
                (
                    Range(g, S.Zero, S.One, open_above=True),
                    Range(tau, S.Zero, (1 - g) / 3, open_below=True),
                    Range(_passed, tau, (1 - g) / 3),
                    Range(top, _passed + g, (1 + g - _passed) / 2),
                ),
                Evident(log((1 + g - tau) * _passed / (2 * tau * top))),
            ),
            "it grows with p_1 and falls with p_x",
        ),
        Step(
            "If x is the second token itself, p_1 = p_x + g.",
            AtLeast(
                log((g + tau) / tau),
                log((g + _passed) / _passed),
                (Range(g, S.Zero, S.One), Range(tau, S.Zero, S.One, open_below=True), Range(_passed, tau, S.One)),
                Evident(log((g + tau) * _passed / (tau * (g + _passed)))),
            ),
            "it falls with p_x",
        ),
        Step(
            "Of the two the former is the larger where 1 - g >= 3 tau, so that there is such a third token.",
            AtLeast(
                (1 + g - tau) / (2 * tau),
                (g + tau) / tau,
                (Range(g, S.Zero, S.One), Range(tau, S.Zero, (1 - g) / 3, open_below=True)),
                Evident((1 - g - 3 * tau) / (2 * tau)),
            ),
            "their difference is (1 - g - 3 tau)/(2 tau)",
        ),
    ),
    conclusions=(
        AtLeast(
            log(top / _least),
            _below_top,
            (_PARAMETER[_least], Range(_passed, _least, S.One), Range(top, _passed, S.One)),
            Evident(log(_passed / _least)),
        ),
        AtLeast(
            log(1 / alpha),
            _below_top,
            (_PARAMETER[alpha], _TOP, Range(_passed, alpha * top, top)),
            Evident(log(_passed / (alpha * top))),
        ),
        Equal(log(1 / (1 + alpha)) - log(alpha / (1 + alpha)), log(1 / alpha), (_PARAMETER[alpha],)),
        AtLeast(
            log(top / (top - t)),
            _below_top,
            (_PARAMETER[t], Range(top, t, S.One, open_below=True), Range(_passed, top - t, top)),
            Evident(log(_passed / (top - t))),
        ),
        AtLeast(
            log((1 - tau) / tau),
            _below_top,
            (
                Range(tau, S.Zero, S.Half, open_below=True),
                Range(_passed, tau, S.Half),
                Range(top, _passed, 1 - _passed),
            ),
            Evident(log((1 - tau) * _passed / (tau * top))),
        ),
    ),
    formal=("S6_log_loss", "S6_sharp", "S6_along_a_text"),
)

# ---- S7 --------------------------------------------------------------------------------------------------------

_cut, _most = symbols("v rho", nonnegative=True)
_nodes = symbols("n_d", positive=True)
_kept, _reached = symbols("a pi", nonnegative=True)
_ended, _ends = symbols("e M", positive=True)
_UP_TO_ONE = Range(_reached, S.Zero, S.One)
_SWAPPED = Rows(
    (Range(_cut, S.Zero, S.One), Range(N, S.One, oo, integer=True)),
    (
        TokenClass("among the largest only", Role.REJECTED, N, _reached, (Range(_reached, _cut, S.One),)),
        TokenClass("in the tree only", Role.REJECTED, N, _reached, (Range(_reached, S.Zero, _cut),)),
    ),
)
_LEVEL = Rows(
    (Range(_most, S.Zero, S.One), Range(_nodes, S.One, oo, integer=True)),
    (TokenClass("node of the level", Role.REJECTED, _nodes, _reached, (Range(_reached, S.Zero, _most),)),),
)
_ENDS = Rows(
    (Range(_ends, S.One, oo, integer=True),),
    (
        TokenClass(
            "end of a pass",
            Role.REJECTED,
            _ends,
            _ended,
            (Range(_ended, S.Zero, S.One, open_below=True), Range(_reached, _ended, S.One)),
        ),
    ),
    (SumFact({"end of a pass": _ended}, S.One),),
)

S7 = Theorem(
    name="S7",
    title="Nobody can accept more",
    statement=(
        "Let the tree be a function of the text, as with drafts that are the drafter's likeliest tokens, and let the "
        "output follow the target's distribution. A node is then accepted with no more than the target's probability "
        "of its path. So N nodes accept, in expectation, at most the sum of the N largest path probabilities: one node "
        "p_1, m children of the root the mass of the m likeliest tokens. The tree of these N nodes attains it. If no "
        "token ever exceeds the probability r, level d accepts at most min(1, n_d r^d) with n_d nodes. From entropy: a "
        "pass ends at one of N + 1 nodes, the root among them, and outputs one of (N + 1)(V - 1) + 1 words, its "
        "accepted tokens and the next one of V. So its accepted tokens carry at most ln(N + 1) nats in expectation, "
        "ln(1/p) each, and a pass outputs at most ln((N + 1)(V - 1) + 1)/mu tokens, mu the mean entropy of the target "
        "along its output; a full tree attains that where the target is uniform. A greedy target accepts at most the "
        "longest path. None of this binds drafts that are sampled: one sampled from the target "
        "itself is always accepted (S2 at D = 0)."
    ),
    hypotheses=(
        "pi is the target's probability of the path to a node, a that of its being accepted",
        "a <= pi; rho = r^d is the most that a node of level d can have",
        "e is the probability of one of M ends of a pass: the last node accepted, e <= pi, or the word, e = pi",
    ),
    derivation=(
        Step(
            "What is accepted at a node is at most its path's probability.",
            SumAtLeast(
                Rows(
                    (),
                    (TokenClass("node", Role.REJECTED, None, _reached, (_UP_TO_ONE, Range(_kept, S.Zero, _reached))),),
                ),
                {"node": _reached - _kept},
                S.Zero,
                SumProof(slack={"node": Evident(_reached - _kept)}, rest=NOTHING),
            ),
            "it is part of the event that the target's text goes through the node",
        ),
    ),
    conclusions=(
        SumAtLeast(
            _SWAPPED,
            {"among the largest only": _reached, "in the tree only": -_reached},
            S.Zero,
            SumProof(
                constants={"among the largest only": _cut, "in the tree only": -_cut},
                slack={
                    "among the largest only": Evident(_reached - _cut),
                    "in the tree only": Evident(_cut - _reached),
                },
                rest=NOTHING,
            ),
        ),
        SumAtLeast(
            _LEVEL,
            {"node of the level": -_reached},
            -_nodes * _most,
            SumProof(
                constants={"node of the level": -_most},
                slack={"node of the level": Evident(_most - _reached)},
                rest=NOTHING,
            ),
        ),
        SumAtLeast(
            _ENDS,
            {"end of a pass": _ended * log(_reached)},
            -log(_ends),
            SumProof(
                facts=(1 - log(_ends),),
                constants={"end of a pass": -1 / _ends},
                slack={
                    "end of a pass": Evident(
                        _ended * log(_reached / _ended) + Bennett(_ended * _ends - 1) / _ends,
                    ),
                },
                rest=NOTHING,
            ),
        ),
    ),
    formal=("S7_nobody_accepts_more", "S7_level", "S7_entropy", "S7_full_tree"),
    citation="draftcert; compare arXiv 2512.11718",
)
