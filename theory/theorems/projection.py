"""T1 level projection, T2 worst competitors, T3 closed form, T4 ceilings."""

from dataclasses import replace
from itertools import product

import sympy
from sympy import Max, Rational, S, log, oo

from ..formulas import CEILING, CERTIFICATE, CERTIFICATE_OF_GAPS, LEVEL
from ..functions import Bennett
from ..theorem import (
    DRAFT,
    THRESHOLD,
    AtLeast,
    Equal,
    Establishes,
    Evident,
    ExactValue,
    Family,
    FamilyTokens,
    Optimum,
    Range,
    Role,
    Rows,
    Step,
    SumAtLeast,
    SumEqual,
    SumFact,
    SumProof,
    Supremum,
    Theorem,
    TokenClass,
    UpperBound,
    Value,
    Witness,
    WorkedRow,
)
from .evidence import NOTHING, above_log
from .symbols import E, N, a, c, m, mass, n, p, q, r, top

HERE = "draftcert"


def _unmoved_slack() -> Evident:
    return Evident(DRAFT * Bennett(p / DRAFT - 1))


# ---- T1 --------------------------------------------------------------------------------------------------------

_PROJECTED = Rows(
    parameters=(Range(c, S.Zero, S.One, open_below=True),),
    classes=(
        TokenClass("accepted above the level", Role.ACCEPTED, None, p, (Range(p, c, S.One),)),
        TokenClass("accepted below the level", Role.ACCEPTED, None, p, (Range(p, S.Zero, c),)),
        TokenClass("competitor below the level", Role.COMPETITOR, None, p, (Range(p, S.Zero, c),)),
        TokenClass("competitor above the level", Role.COMPETITOR, None, p, (Range(p, c, S.One),)),
        TokenClass("other", Role.REJECTED, None, p, (Range(p, S.Zero, S.One),)),
    ),
    facts=(SumFact({"accepted above the level": p / c - 1, "competitor below the level": p / c - 1}),),
)
_MOVED = ("accepted above the level", "competitor below the level")
_KEPT = ("accepted below the level", "competitor above the level", "other")
_MOVED_SLACK = p * above_log(DRAFT / c) + (p / c - 1) * (THRESHOLD - DRAFT)

_T1 = ExactValue(
    rows=_PROJECTED,
    value=Value(terms=dict.fromkeys(_MOVED, CERTIFICATE.expression)),
    lower=SumProof(
        mass=S.One,
        draft_mass=-S.One,
        facts=(-THRESHOLD,),
        slack={**dict.fromkeys(_MOVED, Evident(_MOVED_SLACK)), **{name: _unmoved_slack() for name in _KEPT}},
        rest=NOTHING,
    ),
    upper=Witness(
        draft={**dict.fromkeys(_MOVED, c), **dict.fromkeys(_KEPT, p)},
        threshold=c,
        mass=SumProof(mass=S.One, facts=(-c,)),
        divergence=SumProof(facts=(S.Zero,), slack=dict.fromkeys(_MOVED + _KEPT, NOTHING)),
    ),
    example=Family(
        domain=(),
        at={c: Rational(11, 40)},
        tokens=(
            FamilyTokens("accepted above the level", Rational(1, 2), S.One, pooled=True),
            FamilyTokens("competitor above the level", Rational(9, 20), S.One, pooled=False),
            FamilyTokens("competitor below the level", Rational(1, 20), S.One, pooled=True),
        ),
    ),
)

# Uniqueness: what a rejected draft q, separated by t, has over the projection is at least a sum of gaps.
_separator = sympy.Symbol("t", positive=True)
_OFF = Rows(
    (*_PROJECTED.parameters, Range(_separator, S.Zero, S.One)),
    tuple(
        TokenClass(name, Role.REJECTED, None, p, (Range(p, low, high), Range(q, least, most)))
        for name, low, high, least, most in (
            (_MOVED[0], c, S.One, S.Zero, _separator),
            (_MOVED[1], S.Zero, c, _separator, S.One),
            ("unmoved", S.Zero, S.One, S.Zero, S.One),
        )
    ),
    (SumFact(dict.fromkeys(_MOVED, p / c - 1)), SumFact(dict.fromkeys((*_MOVED, "unmoved"), q), S.One)),
)
_UNIQUE = SumAtLeast(
    _OFF,
    {
        **dict.fromkeys(_MOVED, p * log(c / q) - p * above_log(q / c)),
        "unmoved": p * log(p / q) - q * Bennett(p / q - 1),
    },
    S.Zero,
    SumProof(
        mass=S.One,
        facts=(-_separator, -S.One),
        slack={**dict.fromkeys(_MOVED, Evident((p / c - 1) * (_separator - q))), "unmoved": NOTHING},
        rest=NOTHING,
    ),
)


def solved_program(above: int, below: int, under: int, over: int) -> Optimum:
    """The convex program solved for a small index set, in the case that these tokens lie above and below the level.

    `above` + `below` accepted tokens, `under` + `over` competitors. Probabilities are written in units of the level:
    surpluses `x` of pooled accepted tokens, deficits `d` of pooled competitors, which balance.
    """
    x = sympy.symbols(f"x1:{above + 1}", nonnegative=True)
    free = sympy.symbols(f"d1:{under}", nonnegative=True)
    v = sympy.symbols(f"v1:{below + 1}", nonnegative=True)
    w = sympy.symbols(f"w1:{over + 1}", nonnegative=True)
    surplus, given = sympy.Add(*x), sympy.Add(*free)
    deficits = (*free, surplus - given)
    last = sympy.Add(*x[:-1])
    domain = [Range(each, S.Zero, S.One) for each in free]
    domain += [Range(each, S.Zero, (1 + given) / above) for each in x[:-1]]
    domain += [Range(x[-1], Max(0, given - last) if under > 1 else S.Zero, 1 + given - last)]
    domain += [Range(each, S.Zero, S.One) for each in (*v, *w)]
    accepted = [1 + each for each in x] + [1 - each for each in v]
    competitors = [1 - each for each in deficits] + [1 + each for each in w]
    weight = sympy.expand(sympy.Add(*accepted, *competitors))
    domain += [Range(c, S.Zero, 1 / weight, open_below=True)]
    # Stationarity asks that the multipliers move the surpluses to the deficits: a transport plan, here the product one.
    plan = [[xi * di / surplus for xi in x] + [S.Zero] * below for di in deficits]
    plan += [[S.Zero] * (above + below)] * over
    pooled = [each * c for each in (*accepted[:above], *competitors[:under])]
    return Optimum(
        domain=tuple(domain),
        accepted=tuple(each * c for each in accepted),
        competitors=tuple(each * c for each in competitors),
        others=(1 - weight * c,),
        draft=(
            *([c] * above),
            *(each * c for each in accepted[above:]),
            *([c] * under),
            *(each * c for each in competitors[under:]),
            1 - weight * c,
        ),
        multipliers=tuple(tuple(row) for row in plan),
        mass_multiplier=S.One,
        value=sympy.Add(*(each * log(each / c) for each in pooled)),
    )


_CASES = tuple(case for case in product((1, 2), (0, 1), (1, 2), (0, 1)) if sum(case) <= 4)


def _case_words(above: int, below: int, under: int, over: int) -> str:
    return (
        f"the convex program with {above + below} accepted tokens, {above} of them above the level, and {under + over} "
        f"competitors, {under} of them below it"
    )


T1 = Theorem(
    name="T1",
    title="Level projection",
    statement=(
        "Let A and M be disjoint, M not empty. The least KL(p||q) over q with q_i >= q_a for all i in M, a in A is "
        "attained at q_a = min(p_a, c), q_i = max(p_i, c), q_j = p_j else; here sum_A (p_a - c)_+ = sum_M (c - p_i)_+. "
        "Its value is the sum of p ln(p/c) over the tokens that c moves. It is unique where p > 0: any rejected draft "
        "has more by at least a sum of gaps p (u - 1 - ln u), u = q/q*, each positive unless q = q*."
    ),
    hypotheses=("p is a distribution on finitely many tokens", "c > 0 solves the level equation"),
    derivation=(
        Step(
            "The logarithm lies below its tangent: u - 1 - ln u >= 0.",
            AtLeast(p - 1 - log(p), S.Zero, (Range(p, S.Zero, oo, open_below=True),), Evident(above_log(p))),
            "u h(1/u - 1) with Bennett's h(x) = (1+x) ln(1+x) - x, which is convex with minimum h(0) = 0",
        ),
        *(
            Step(
                f"It touches its tangent nowhere else: u - 1 - ln u > 0 {where}.",
                AtLeast(p - 1 - log(p), S.Zero, (domain,), Evident(above_log(p)), strict=True),
                "h(x) > 0 for x != 0",
            )
            for where, domain in (
                ("above 1", Range(p, S.One, oo, open_below=True)),
                ("below 1", Range(p, S.Zero, S.One, open_below=True, open_above=True)),
            )
        ),
        *(
            Step(
                f"The Karush-Kuhn-Tucker system solved: {_case_words(*case)}.",
                solved_program(*case),
                "stationarity p/q = 1 + (sum of multipliers) makes pooled tokens equal; the multipliers move the "
                "surpluses p_a/c - 1 to the deficits 1 - p_i/c",
            )
            for case in _CASES
        ),
    ),
    conclusions=(_T1, _UNIQUE),
    worked_points=(
        WorkedRow(
            ("1/2", "9/20", "1/20"),
            1,
            2,
            log(Rational(20, 11)) / 2 + log(Rational(2, 11)) / 20,
            "trap (a): the competitor .45 lies above the level 11/40",
        ),
        WorkedRow(
            ("8/20", "7/20", "5/20"),
            2,
            1,
            Rational(2, 5) * log(Rational(6, 5)) + Rational(7, 20) * log(Rational(21, 20)) + log(Rational(3, 4)) / 4,
            "trap (b): the second accepted token is pooled too",
        ),
        WorkedRow(("1/2", "1/2"), 1, 1, S.Zero, "a tie moves nothing"),
        WorkedRow(("1", "0", "0"), 1, 2, log(3), "a point mass"),
    ),
    formal=("T1_level_exists", "T1_projection"),
)

# ---- T2 --------------------------------------------------------------------------------------------------------

_pi, _pj, _qi, _qj = sympy.symbols("p_i p_j q_i q_j", positive=True)

T2 = Theorem(
    name="T2",
    title="The worst competitors",
    statement=(
        "Among all sets M of m rejected tokens the m most likely ones give the least value: if i is in M, j is not, "
        "and p_j >= p_i, then exchanging them does not raise the least divergence."
    ),
    hypotheses=("i and j are rejected, p_j >= p_i", "q is feasible for M: q_i >= q_a for all accepted a"),
    derivation=(),
    conclusions=(
        AtLeast(
            _pi * log(_pi / _qi) + _pj * log(_pj / _qj),
            _pi * log(_pi / _qj) + _pj * log(_pj / _qi),
            (
                Range(_pi, S.Zero, S.One, open_below=True),
                Range(_pj, _pi, S.One),
                Range(_qj, S.Zero, S.One, open_below=True),
                Range(_qi, _qj, S.One),
            ),
            Evident((_pj - _pi) * log(_qi / _qj)),
        ),
    ),
    worked_points=(
        WorkedRow(("1/2", "9/20", "1/20"), 1, 1, log(Rational(20, 19)) / 2 + Rational(9, 20) * log(Rational(18, 19))),
        WorkedRow(("1/2", "1/4", "1/4"), 1, 2, log(Rational(3, 2)) / 2 + log(Rational(3, 4)) / 2),
    ),
    formal=("T2_worst_competitors", "T2_among_competitors"),
)

# ---- T3 --------------------------------------------------------------------------------------------------------

_NUMBER = Range(n, S(2), oo, integer=True)
_MASS = Range(mass, S.Zero, S.One, open_below=True)
_ANY = (Range(p, S.Zero, S.One),)
_OTHERS = TokenClass("other", Role.REJECTED, None, p, _ANY)
_POOL = Rows(
    parameters=(_NUMBER, _MASS),
    classes=(TokenClass("pool", Role.REJECTED, n, p, _ANY), _OTHERS),
    facts=(SumFact({"pool": p}, mass),),
)
_MOMENTS = Rows(
    parameters=(_NUMBER, _MASS, Range(E, -oo, S.Zero)),
    classes=(TokenClass("pool", Role.REJECTED, None, p, _ANY), _OTHERS),
    facts=(SumFact({"pool": p}, mass), SumFact({"pool": p * log(p)}, E)),
)
_GAPS = Rows(
    parameters=(
        _NUMBER,
        Range(top, S.Zero, S.One, open_below=True),
        Range(a, -S.One, S.Zero, open_below=True),
    ),
    classes=(
        TokenClass("pool", Role.REJECTED, n, top * (1 + r), (Range(r, -S.One, S.Zero),)),
        _OTHERS,
    ),
    facts=(SumFact({"pool": r}, n * a),),
)
_MEAN = {c: mass / n}

# T1 with the level as the mean of the tokens that it moves: `a` accepted ones and n - a competitors, of mass S.
_above = sympy.Symbol("a", positive=True, integer=True)
_VALUE = ExactValue(
    rows=Rows(
        (_NUMBER, Range(_above, S.One, n - 1, integer=True), _MASS),
        tuple(
            replace(
                each,
                count={_MOVED[0]: _above, _MOVED[1]: n - _above}.get(each.name),
                ranges=tuple(
                    replace(r, lower=r.lower.xreplace(_MEAN), upper=r.upper.xreplace(_MEAN)) for r in each.ranges
                ),
            )
            for each in _PROJECTED.classes
        ),
        (SumFact(dict.fromkeys(_MOVED, p), mass),),
    ),
    value=Value(terms={name: CERTIFICATE.expression.subs(_MEAN) for name in _MOVED}),
    lower=replace(
        _T1.lower,
        facts=(-THRESHOLD / LEVEL.expression,),
        constants=dict.fromkeys(_MOVED, THRESHOLD),
        slack={
            **{name: Evident(_MOVED_SLACK.subs(_MEAN)) for name in _MOVED},
            **{name: _unmoved_slack() for name in _KEPT},
        },
    ),
    upper=Witness(
        draft={**dict.fromkeys(_MOVED, LEVEL.expression), **dict.fromkeys(_KEPT, p)},
        threshold=LEVEL.expression,
        mass=SumProof(mass=S.One, facts=(-S.One,), constants=dict.fromkeys(_MOVED, LEVEL.expression)),
        divergence=_T1.upper.divergence,
    ),
    example=replace(_T1.example, at={n: S(2), _above: S.One, mass: Rational(11, 20)}),
)
_JOINING = (_NUMBER, Range(mass, S.Zero, S.One), Range(p, S.Zero, S.One))

T3 = Theorem(
    name="T3",
    title="Closed form",
    statement=(
        "If the pool has n tokens, mass S and E = sum p ln p, then c = S/n and C = E - S ln(S/n). Growing the pool "
        "from the largest accepted token and the smallest competitor, one token on the wrong side of the mean at a "
        "time, ends at the only pool whose mean separates it from the rest."
    ),
    hypotheses=("the pool is the set of tokens that the level of T1 moves",),
    derivation=(
        Step(
            "A token that joins the pool moves the mean towards itself.",
            Equal((mass + p) / (n + 1) - mass / n, (p - mass / n) / (n + 1), _JOINING),
            "the mediant",
        ),
        Step(
            "It stays on its side of the new mean: what was pooled on either side stays where it was.",
            Equal(p - (mass + p) / (n + 1), n * (p - mass / n) / (n + 1), _JOINING),
            "the mediant",
        ),
    ),
    conclusions=(
        _VALUE,
        SumEqual(
            _MOMENTS,
            {"pool": CERTIFICATE.expression.subs(_MEAN)},
            E - mass * log(mass / n),
            SumProof(facts=(-log(mass / n), S.One)),
        ),
        SumEqual(
            _POOL,
            {"pool": (CERTIFICATE.expression - CERTIFICATE.stable).subs(_MEAN)},
            S.Zero,
            SumProof(facts=(S.One,), constants={"pool": -mass / n}),
        ),
        SumEqual(
            _GAPS,
            {"pool": CERTIFICATE_OF_GAPS.expression - CERTIFICATE_OF_GAPS.stable},
            S.Zero,
            SumProof(facts=(top,), constants={"pool": -top * a}),
        ),
    ),
    worked_points=T1.worked_points,
    establishes=(
        Establishes(LEVEL),
        Establishes(CERTIFICATE, _MEAN),
        Establishes(CERTIFICATE_OF_GAPS, {r: p / top - 1, a: LEVEL.expression / top - 1}),
    ),
    formal=("T3_level_is_mean", "T3_closed_form", "T3_search"),
)

# ---- T4 --------------------------------------------------------------------------------------------------------

_CANDIDATES = Range(m, S.One, oo, integer=True)


def _ceiling_rows(parameters: tuple[Range, ...], largest: sympy.Expr) -> Rows:
    return Rows(
        (_CANDIDATES, *parameters),
        (
            TokenClass("accepted", Role.ACCEPTED, None, p, (Range(p, S.Zero, largest),)),
            TokenClass("competitor", Role.COMPETITOR, m, p, _ANY),
            _OTHERS,
        ),
    )


def _ceiling_draft(largest: sympy.Expr, rest: Evident) -> Witness:
    """Give every competitor as much again as the most likely token has."""
    total = 1 + m * largest
    return Witness(
        draft={"accepted": p / total, "competitor": (p + largest) / total, "other": p / total},
        threshold=largest / total,
        mass=SumProof(mass=1 / total, constants={"competitor": largest / total}),
        divergence=SumProof(
            mass=-log(total),
            slack={"accepted": NOTHING, "competitor": Evident(p * log((p + largest) / p)), "other": NOTHING},
            rest=rest,
        ),
    )


_ANY_TOP = (Range(top, S.Zero, S.One, open_below=True),)
_FEW = (Range(N, S.One, oo, integer=True),)
_WITH_COMPETITOR = (_CANDIDATES, *_ANY_TOP, Range(p, S.Zero, S.One, open_below=True))

T4 = Theorem(
    name="T4",
    title="Ceilings",
    statement=(
        "C <= ln(1 + m p_(1)) <= ln(m + 1) for m candidates under any rule; ln 2 for one candidate. The first is "
        "attained iff p is uniform on the tokens it gives anything, all of these are accepted, and m others are left: "
        "then p_(1) = 1/N for N tokens, whatever the rule. The second is attained by a point mass alone."
    ),
    hypotheses=("no accepted token exceeds p_(1)", "at least m tokens are rejected"),
    derivation=(
        Step(
            "The draft of the bound takes something from every token of p > 0 that is no competitor.",
            AtLeast(p, p / (1 + m * top), _WITH_COMPETITOR, Evident(p * m * top / (1 + m * top)), strict=True),
            "so if it is the nearest draft, which T1 says is the only one where p > 0, then it moves all of these to "
            "the level: they are accepted and equal",
        ),
        Step(
            "A competitor of p > 0 brings the draft's divergence below the bound, by p ln(1 + p_(1)/p).",
            Equal(CEILING.expression - log(p / (p + top) * (1 + m * top)), log(1 + top / p), _WITH_COMPETITOR),
            "so with equality all m competitors have probability 0, and no token that is rejected has any",
        ),
    ),
    conclusions=(
        UpperBound(_ceiling_rows(_ANY_TOP, top), Value(CEILING.expression), _ceiling_draft(top, NOTHING)),
        Supremum(
            _ceiling_rows(_ANY_TOP, top),
            log(m + 1),
            _ceiling_draft(top, Evident(log((m + 1) / (1 + m * top)))),
            Family(
                (_CANDIDATES,),
                {m: m, top: S.One},
                (FamilyTokens("accepted", S.One, S.One, True), FamilyTokens("competitor", S.Zero, m, True)),
            ),
        ),
        Supremum(
            _ceiling_rows(_FEW, 1 / N),
            log(1 + m / N),
            _ceiling_draft(1 / N, NOTHING),
            Family(
                (_CANDIDATES, *_FEW),
                {m: m, N: N},
                (FamilyTokens("accepted", 1 / N, N, True), FamilyTokens("competitor", S.Zero, m, True)),
            ),
        ),
    ),
    worked_points=(
        WorkedRow(("1", "0"), 1, 1, log(2)),
        WorkedRow(("1", "0", "0", "0"), 1, 3, log(4)),
        WorkedRow(("1/2", "1/2", "0"), 2, 1, log(Rational(3, 2)), "two equal accepted tokens: ln(1 + p_(1))"),
    ),
    establishes=(Establishes(CEILING),),
    formal=("T4_ceiling", "T4_attained", "T4_equality"),
)
