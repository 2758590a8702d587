"""Rules against their definitions in words, written down a second time in fractions and mpmath."""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from draftcert.theory import RULES, DraftcertError, RuleFamily
from draftcert.theory.exact import compare, exact_certificate
from draftcert.theory.pool import select_pool
from draftcert.theory.rule import WorkedPoint, bind
from draftcert.theory.statistics import LOGIT_RATIO, PROBABILITY, RANK, TOP, Entropy

Row = list[Fraction]
Real = Any  # mpmath has no types


@pytest.fixture(autouse=True, scope="module")
def digits():
    with mpmath.workdps(60):
        yield


def typical_threshold(row: Row, epsilon: Fraction, delta: Fraction, floor: Fraction) -> Real:
    with mpmath.workdps(60):
        entropy = -mpmath.fsum(
            mpmath.mpf(p.numerator) / p.denominator * mpmath.log(to_mpf(p + floor)) for p in row if p
        )
        return min(to_mpf(epsilon), to_mpf(delta) * mpmath.exp(-entropy))


def to_mpf(value: Fraction) -> Real:
    return mpmath.mpf(value.numerator) / value.denominator


def power_threshold(row: Row, epsilon: Fraction, alpha: Fraction, floor: Fraction) -> Real:
    with mpmath.workdps(60):
        powers = (to_mpf(p + floor) ** to_mpf(p) for p in row if p)
        return min(to_mpf(epsilon), mpmath.fprod(powers) ** to_mpf(alpha))


def below(p: Fraction, threshold: Real) -> bool:
    """`p < threshold`, a difference within rounding being a tie."""
    return threshold - to_mpf(p) > mpmath.mpf(10) ** -50


def above(p: Fraction, threshold: Real) -> bool:
    """`p > threshold`, a difference within rounding being a tie."""
    return to_mpf(p) - threshold > mpmath.mpf(10) ** -50


def rank(row: Row, token: int) -> int:
    return 1 + sum(p > row[token] or (p == row[token] and other < token) for other, p in enumerate(row))


# What a rule is in words, written down again: (row, token, logit ratio, parameters) -> accepted.
DEFINITIONS: dict[str, Callable[..., bool]] = {
    "strict_greedy": lambda row, x, _: x == row.index(max(row)),
    "additive": lambda row, x, _, t: row[x] >= max(row) - t,
    "multiplicative": lambda row, x, _, alpha: row[x] >= alpha * max(row),
    "top_m": lambda row, x, _, k: rank(row, x) <= k,
    "absolute": lambda row, x, _, tau: row[x] >= tau,
    "typical": lambda row, x, _, e, d: above(row[x], typical_threshold(row, e, d, Fraction(0))),
    "typical_floor": lambda row, x, _, e, d, f: above(row[x], typical_threshold(row, e, d, f)),
    "entropy_power": lambda row, x, _, e, a, f: not below(row[x], power_threshold(row, e, a, f)),
    "mars": lambda row, x, ratio, theta: rank(row, x) == 1 or (rank(row, x) == 2 and ratio > theta),
}


def by_predicate(family: RuleFamily) -> Callable[..., bool]:
    """The definition of a family that is not written down here: its predicate in mpmath, token by token."""

    def holds(predicate: Any, known: dict[Any, Any]) -> bool:
        if isinstance(predicate, (sympy.And, sympy.Or)):
            parts = [holds(part, known) for part in predicate.args]
            return all(parts) if isinstance(predicate, sympy.And) else any(parts)
        if predicate in (sympy.true, sympy.false):
            return bool(predicate)
        sides = (
            sympy.lambdify(list(known), side, "mpmath")(*known.values()) for side in (predicate.gts, predicate.lts)
        )
        difference = mpmath.mpf(next(sides)) - next(sides)
        tie = abs(difference) < mpmath.mpf(10) ** -50
        strict = isinstance(predicate, (sympy.Gt, sympy.Lt))
        return not strict if tie else difference > 0

    def accepts(row: Row, token: int, ratio: Fraction | None, *parameters: Fraction) -> bool:
        symbols = [parameter.symbol for parameter in family.parameters]
        predicate: Any = family.accepts.xreplace(
            {symbol: sympy.Rational(value) for symbol, value in zip(symbols, parameters, strict=True)}
        )
        known = {PROBABILITY: to_mpf(row[token]), RANK: rank(row, token), TOP: to_mpf(max(row))}
        known |= {} if ratio is None else {LOGIT_RATIO: to_mpf(ratio)}
        for entropy in predicate.atoms(Entropy):
            name = sympy.Dummy()
            predicate = predicate.xreplace({entropy: name})
            floor = Fraction(str(entropy.args[0]))
            known[name] = -mpmath.fsum(to_mpf(p) * mpmath.log(to_mpf(p + floor)) for p in row if p)
        return holds(predicate, known)

    return accepts


def definition(family: RuleFamily) -> Callable[..., bool]:
    return DEFINITIONS.get(family.name) or by_predicate(family)


def certificate_by_bisection(row: Row, accepted: list[int], candidates: int) -> Real:
    """T1 with the level found by bisection, on the m most likely rejected tokens."""
    inside = [row[x] for x in accepted]
    outside = sorted((p for x, p in enumerate(row) if x not in accepted), reverse=True)[:candidates]
    if len(outside) < candidates:
        return mpmath.inf
    if not inside:
        return mpmath.mpf(0)
    low, high = Fraction(0), Fraction(1)
    for _ in range(200):
        level = (low + high) / 2
        excess = sum(max(p - level, 0) for p in inside) - sum(max(level - p, 0) for p in outside)
        low, high = (level, high) if excess > 0 else (low, level)
    moved = [p for p in inside if p > low] + [p for p in outside if p < low]
    return mpmath.fsum(to_mpf(p) * mpmath.log(to_mpf(p / low)) for p in moved if p)


POINTS = [
    pytest.param(family, point, id=f"{family.name}-{i}")
    for family in RULES.values()
    for i, point in enumerate(family.worked_points)
]


@pytest.mark.parametrize(("family", "point"), POINTS)
def test_worked_point(family: RuleFamily, point: WorkedPoint):
    row = [Fraction(p) for p in point.probabilities]
    ratio = None if point.logit_ratio is None else Fraction(point.logit_ratio)
    parameters = [Fraction(a) for a in point.arguments]
    accepted = [x for x in range(len(row)) if definition(family)(row, x, ratio, *parameters)]
    assert tuple(accepted) == point.accepted
    expected = certificate_by_bisection(row, accepted, point.candidates)
    if point.certificate == sympy.oo:
        assert expected == mpmath.inf
    else:
        assert abs(expected - mpmath.mpf(str(point.certificate.evalf(40)))) < mpmath.mpf(10) ** -35


@pytest.mark.parametrize("family", RULES.values(), ids=list(RULES))
def test_worked_points_cover_ties_and_zeros(family: RuleFamily):
    rows = [[Fraction(p) for p in point.probabilities] for point in family.worked_points]
    assert len(rows) >= 3
    assert any(row.count(max(row)) > 1 for row in rows), "no point with a tie of the largest"
    if not family.accepts.has(LOGIT_RATIO):  # a logit is finite, so no probability is zero
        assert any(0 in row for row in rows), "no point with a probability of zero"


@pytest.mark.parametrize("family", RULES.values(), ids=list(RULES))
def test_worked_points_cover_the_traps(family: RuleFamily):
    """(a) a competitor above the level is not moved; (b) another accepted token above the level is moved."""
    kept = moved = 0
    for point in family.worked_points:
        row = sorted(map(Fraction, point.probabilities), reverse=True)
        accepted, competitors = row[: len(point.accepted)], row[len(point.accepted) :][: point.candidates]
        if not accepted or len(competitors) < point.candidates:
            continue
        pool = select_pool(accepted, competitors)
        kept += competitors[0] > pool.level
        moved += pool.accepted > 1
    assert kept, "no point with a competitor above the level"
    several = any(len(point.accepted) > 1 for point in family.worked_points)
    assert moved or not several, "no point where another accepted token is moved"


def test_trap_b():
    rule = RULES["additive"]("0.1")
    row = [sympy.Rational(2, 5), sympy.Rational(7, 20), sympy.Rational(1, 4)]
    value = exact_certificate(row, rule.accepted_count(row), 1)
    assert round(float(value), 6) == 0.018085


rows = st.lists(st.integers(0, 12), min_size=1, max_size=6).filter(any).map(lambda w: [Fraction(a, sum(w)) for a in w])
unit = st.fractions(0, 1, max_denominator=12)


def parameters_of(family: RuleFamily) -> st.SearchStrategy[tuple[Any, ...]]:
    whole = [parameter.domain.is_subset(sympy.S.Integers) for parameter in family.parameters]
    return st.tuples(*(st.integers(1, 7) if each else unit for each in whole))


@pytest.mark.parametrize("family", RULES.values(), ids=list(RULES))
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_accepted_count_is_the_definition(family: RuleFamily, data: st.DataObject):
    row = data.draw(rows)
    rule = family(*(parameters := data.draw(parameters_of(family))))
    ratio = data.draw(st.fractions(-2, 2, max_denominator=12)) if rule.needs_logits else None
    count = rule.accepted_count(row, ratio)
    for accepts in (definition(family), by_predicate(family)):
        accepted = {x for x in range(len(row)) if accepts(row, x, ratio, *parameters)}
        assert accepted == {x for x in range(len(row)) if rank(row, x) <= count}


@pytest.mark.parametrize("size", [2, 3, 7, 12])
def test_typical_on_uniform_targets(size: int):
    """Strictness at a transcendental threshold that is exactly 1/V: decided, not guessed."""
    row = [Fraction(1, size)] * size
    assert RULES["typical"](1, 1).accepted_count(row) == 0
    assert RULES["typical"](1, Fraction(999_999, 1_000_000)).accepted_count(row) == size


def test_typical_floor_rejects_everything_on_large_vocabularies():
    """V >= (1 - delta)/(delta f) = 70/3 for delta = 3/10, f = 1/10."""
    rule = RULES["typical_floor"](1, "3/10", "1/10")
    assert rule.accepted_count([Fraction(1, 23)] * 23) == 23
    assert rule.accepted_count([Fraction(1, 24)] * 24) == 0
    assert RULES["typical"](1, "3/10").accepted_count([Fraction(1, 24)] * 24) == 24


def test_compare_decides_a_hair_from_the_threshold():
    third = sympy.Rational(1, 3)
    threshold = sympy.exp(-sympy.log(3))
    hair = sympy.Rational(1, 10**60)
    assert [compare(third + d, threshold) for d in (-hair, 0, hair)] == [-1, 0, 1]
    root = sympy.sqrt(2) / 2
    assert compare(sympy.Rational(7071067811865475244008443621048490392848, 10**40), root) == -1
    assert compare(sympy.Rational(7071067811865475244008443621048490392849, 10**40), root) == 1


def test_compare_refuses_to_guess():
    with pytest.raises(DraftcertError, match="cannot decide"):
        compare(sympy.Rational(1, 2), sympy.Symbol("y", positive=True))


def test_mars_needs_logits():
    rule = RULES["mars"]("0.9")
    assert rule.needs_logits
    assert not RULES["additive"]("0.9").needs_logits
    with pytest.raises(DraftcertError, match="give logit_ratio"):
        rule.accepted_count(["0.5", "0.5"])


@pytest.mark.parametrize("size", [1, 2, 5])
def test_everything_accepted_gives_an_infinite_certificate(size: int):
    row = [sympy.Rational(1, size)] * size
    assert exact_certificate(row, RULES["absolute"](0).accepted_count(row), 1) == sympy.oo


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"accepted": (0,)}, r"accepts \[0, 1\]"),
        ({"certificate": sympy.log(2)}, "not log"),
        ({"certificate": sympy.oo}, "not oo"),
        ({"certificate": sympy.pi}, "not pi"),
        ({"probabilities": ("2/5", "7/20", "1/5")}, "sums to 19/20"),
    ],
)
def test_a_wrong_worked_point_cannot_be_registered(change: dict, message: str):
    from dataclasses import replace

    family = RULES["additive"]
    assert replace(family, worked_points=family.worked_points[:1])
    with pytest.raises(DraftcertError, match=message):
        replace(family, worked_points=(replace(family.worked_points[0], **change),))


@pytest.mark.parametrize(
    ("accepts", "message"),
    [
        (PROBABILITY <= TOP / 2, "does not cut the order"),
        (sympy.Ge(RANK, 2), "does not cut the order"),
        (sympy.Ge(PROBABILITY, PROBABILITY * TOP), "does not cut the order"),
        (sympy.Ge(PROBABILITY, sympy.Symbol("draft")), "depends on draft"),
        (sympy.Ne(RANK, 1), "is not an order comparison"),
        (sympy.Symbol("b"), "is not an order comparison"),
    ],
)
def test_what_is_no_level_set_is_refused(accepts, message: str):
    with pytest.raises(DraftcertError, match=message):
        RuleFamily("test", (), accepts, "", "", ())


@pytest.mark.parametrize("row", [[], ["3/2"], ["x"], ["nan"], [2, -1], [None], ["1/0"], [float("inf")]])
def test_bad_rows(row: list):
    with pytest.raises(DraftcertError, match=r"empty row|probability of token"):
        RULES["additive"](0).accepted_count(row)


@pytest.mark.parametrize("value", ["-1/10", "11/10", "nan", "oo", None, "1/0", ""])
@pytest.mark.parametrize("name", ["additive", "multiplicative", "absolute", "mars"])
def test_parameters_outside_their_domain(name: str, value):
    with pytest.raises(DraftcertError, match=f"^{name}: "):
        RULES[name](value)


@pytest.mark.parametrize("value", [0, -1, "3/2"])
def test_top_m_counts(value):
    with pytest.raises(DraftcertError, match="top_m: k"):
        RULES["top_m"](value)


def test_floats_are_the_decimals_they_print_as():
    assert str(RULES["additive"](0.3)) == "additive(3/10)"
    assert RULES["additive"](0.3) == RULES["additive"](Fraction(3, 10)) == RULES["additive"](t="0.30")


def test_bind():
    assert bind("f", ("a", "b"), (1,), {"b": 2}) == {"a": 1, "b": 2}
    for values, named in [((), {}), ((1, 2, 3), {}), ((1,), {"a": 1, "b": 2}), ((1, 2), {"c": 3})]:
        with pytest.raises(DraftcertError, match=r"give exactly the parameters of f\(a, b\)"):
            bind("f", ("a", "b"), values, named)


@settings(deadline=None, max_examples=40)
@given(row=rows, t=unit, k=st.integers(1, 6))
def test_intersection_and_union(row: Row, t: Fraction, k: int):
    a, b = RULES["additive"](t), RULES["top_m"](k)
    counts = sorted([a.accepted_count(row), b.accepted_count(row)])
    assert [(a & b).accepted_count(row), (a | b).accepted_count(row)] == counts


def test_certificate_grows_with_the_rule():
    row = [Fraction(w, 20) for w in (6, 5, 4, 3, 2)]
    exact = [sympy.Rational(p.numerator, p.denominator) for p in row]
    values = [exact_certificate(exact, k, 1) for k in range(6)]
    assert all(float(a) <= float(b) for a, b in pairwise(values))
