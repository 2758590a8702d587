import math
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest
import sympy
from sympy import Ge, Gt, Interval, Le

from draftcert import numerics, support, theory
from draftcert.numerics import certificate, margin_bounds
from draftcert.numerics.margins import MarginBound, _Case, _family, _has_rows, _holds, _stated_value, parameters_of
from draftcert.theory import DraftcertError, Rule, RuleFamily
from draftcert.theory.rule import Parameter
from draftcert.theory.statistics import PROBABILITY, RANK, TOP
from draftcert.theory.theorem import CANDIDATES, MARGIN, VOCABULARY, End
from draftcert.theory.theorems import THEOREMS
from draftcert.theory.theorems.symbols import n

STATED = [bound for theorem in THEOREMS.values() for bound in theorem.bounds]
FAMILIES = list({bound.rule.name: bound.rule for bound in STATED}.values())
RULES = (
    "strict_greedy",
    "additive(3/10)",
    "multiplicative(1/10)",
    "multiplicative(2/5)",
    "top_m(2)",
    "top_m(3)",
    "absolute(1/10)",
    "absolute(1/2)",
    "typical(9/100, 3/10)",
    "top_m(3) & additive(3/5)",
    "top_m(2) | multiplicative(2/5)",
)


@pytest.mark.parametrize(
    ("rule", "candidates", "known", "margin", "infimum"),
    [
        *(("strict_greedy", 2, "coverage", margin, value) for margin, value in (("0.05", 0.00188), ("0.9", 0.76429))),
        *(("strict_greedy", 4, "coverage", margin, value) for margin, value in (("0.2", 0.05021), ("0.5", 0.32205))),
        *(("strict_greedy", 8, "coverage", margin, value) for margin, value in (("0.05", 0.00562), ("0.9", 1.67732))),
        *(("additive(0.3)", 1, "top2", g, v) for g, v in (("0.05", 0.0882), ("0.2", 0.066414), ("0.4", 0.082283))),
    ],
)
def test_worked_values(rule, candidates, known, margin, infimum):
    low, _ = margin_bounds(rule, candidates, margin=margin, known=known)
    assert float(low) == pytest.approx(infimum, abs=6e-6)


def targets_with_gap(draw, margin, known_rank, tokens):
    """A random target whose largest probability is exactly `margin` above the one of rank `known_rank`."""
    heights = sorted((Fraction(draw.randint(0, 50) ** draw.choice((1, 2))) for _ in range(tokens)), reverse=True)
    low = heights[known_rank - 1]
    heights[known_rank:] = [min(h, low) for h in heights[known_rank:]]
    # p = s * heights with p_1 set to p_known + margin: solve for s from the total
    rest = sum(heights[1:]) + low
    if not rest:
        return None
    scale = (1 - margin) / rest
    target = [low * scale + margin, *(h * scale for h in heights[1:])]
    return target if target[0] >= max(target[1:]) else None


@pytest.mark.parametrize("rule", RULES)
def test_no_target_crosses_the_bounds(rule):
    draw = random.Random(rule)
    for _ in range(25):
        margin, m, tokens = Fraction(draw.randint(0, 20), 20), draw.randint(1, 3), draw.randint(2, 7)
        target = targets_with_gap(draw, margin, 2, max(tokens, m + 1))
        if target is None:
            continue
        low, high = margin_bounds(rule, m, margin=margin, digits=15)
        value = certificate([*target, *[0] * 6], rule, m, digits=15).value  # zeros: the vocabulary is never too small
        assert low.lower <= value * (1 + mpmath.mpf("1e-14")), (target, m)
        assert value <= high.upper * (1 + mpmath.mpf("1e-14")), (target, m)


def test_no_target_crosses_the_coverage_bounds():
    draw = random.Random(0)
    for _ in range(25):
        m = draw.randint(1, 4)
        margin = Fraction(draw.randint(0, 20), 20)
        target = targets_with_gap(draw, margin, m + 1, m + 1 + draw.randint(0, 3))
        if target is None:
            continue
        low, high = margin_bounds("strict_greedy", m, margin=margin, known="coverage", digits=15)
        value = certificate(target, "strict_greedy", m, digits=15).value
        assert low.lower <= value * (1 + mpmath.mpf("1e-14")), (target, m)
        assert value <= high.upper * (1 + mpmath.mpf("1e-14")), (target, m)


@pytest.mark.parametrize("rule", RULES)
def test_extremal_targets_reach_sharp_bounds(rule):
    """The extremal masses, the rest spread over many tokens, have the bound as certificate or come close to it."""
    for margin in (Fraction(1, 20), Fraction(1, 5), Fraction(7, 10)):
        for m in (1, 2):
            for bound in margin_bounds(rule, m, margin=margin, digits=15):
                if not (bound.sharp and bound.accepted and bound.competitors):
                    continue
                nudge = 0 if bound.attained else Fraction(1, 10**7)
                masses = [*bound.accepted, *(c - nudge if c > nudge else c for c in bound.competitors)]
                tokens = 5_000
                target = [*masses, *[(1 - sum(masses)) / tokens] * tokens]
                value = float(certificate(target, rule, m, digits=15))
                if math.isfinite(value) and not (rule.startswith("typical") and not bound.attained):
                    assert value == pytest.approx(float(bound), abs=5e-3), (margin, m, bound)


@pytest.mark.parametrize("rule", RULES)
def test_no_target_of_a_vocabulary_crosses_its_bounds(rule):
    """Exactly so many tokens, none added: a target that cannot be rejected counts."""
    draw = random.Random(f"{rule} in few tokens")
    for _ in range(25):
        margin, m = Fraction(draw.randint(0, 20), 20), draw.randint(1, 3)
        tokens = draw.randint(m + 1, 6)
        target = targets_with_gap(draw, margin, 2, tokens)
        if target is None:
            continue
        low, high = margin_bounds(rule, m, margin=margin, vocab_size=tokens, digits=15)
        value = certificate(target, rule, m, digits=15).value
        assert low.lower <= value * (1 + mpmath.mpf("1e-14")), (target, m)
        assert value <= high.upper * (1 + mpmath.mpf("1e-14")), (target, m)


def grid_targets(total: int, tokens: int, most: int) -> Iterator[tuple[int, ...]]:
    """Every way to write `total` as so many numbers from `most` down to 0, largest first."""
    if tokens == 1:
        yield from [(total,)] if total <= most else []
        return
    for first in range(min(total, most), -1, -1):
        yield from ((first, *rest) for rest in grid_targets(total - first, tokens - 1, first))


@pytest.mark.parametrize(
    "rule",
    [
        *("strict_greedy", "additive(3/10)", "additive(11/20)", "multiplicative(2/5)", "top_m(2)", "absolute(1/10)"),
        *("absolute(2/5)", "typical(9/100, 3/10)", "typical(1, 9/20)", "typical(1, 9/10)", "typical(1/4, 1)"),
    ],
)
def test_no_target_on_a_grid_crosses_the_bounds_of_its_vocabulary(rule):
    for tokens in (2, 3, 4):
        for m in range(1, tokens):
            bounds = {}
            for target in grid_targets(10, tokens, 10):
                gap = Fraction(target[0] - target[1], 10)
                if gap not in bounds:
                    bounds[gap] = margin_bounds(rule, m, margin=gap, vocab_size=tokens, digits=15)
                low, high = bounds[gap]
                value = certificate([Fraction(x, 10) for x in target], rule, m, digits=15).value
                assert low.lower <= value * (1 + mpmath.mpf("1e-14")), (target, m)
                assert value <= high.upper * (1 + mpmath.mpf("1e-14")), (target, m)


def test_a_token_that_only_typical_targets_between_the_extremes_accept():
    """The second token of (.75, .25) is rejected, that of (.72, .22, .06) is not: two candidates find no two others."""
    rule, target = "typical(1, 9/20)", ["0.72", "0.22", "0.06"]
    assert certificate(target, rule, 2).value == mpmath.inf
    assert margin_bounds(rule, 2, margin="1/2", vocab_size=3)[1].value == mpmath.inf
    assert margin_bounds(rule, 2, margin="1/2")[1].value < mpmath.inf


@pytest.mark.parametrize("candidates", [1, 2, 3])
def test_a_known_vocabulary_narrows_the_range(candidates):
    """More tokens, a wider range; in very many, the range over any vocabulary."""
    for rule in RULES:
        wide = margin_bounds(rule, candidates, margin="1/5", digits=15)
        former = None
        for tokens in (candidates + 4, candidates + 5, 50, 10**60):
            low, high = margin_bounds(rule, candidates, margin="1/5", vocab_size=tokens, digits=15)
            assert low.value >= wide[0].value * (1 - mpmath.mpf("1e-14"))
            if former and low.sharp and former[0].sharp:
                assert low.value <= former[0].value * (1 + mpmath.mpf("1e-14"))
            former = low, high
        assert low.value == pytest.approx(wide[0].value, rel=1e-12)
        if mpmath.isfinite(wide[1].value):
            assert high.value == pytest.approx(wide[1].value, rel=1e-12)


def test_worked_values_in_few_tokens():
    """M1: s phi(g/s) with s = g + 2 (1-g)/V; the worked points of M3v and M5v; M7 of four equal others."""
    _, high = margin_bounds("strict_greedy", margin="1/2", vocab_size=8, digits=12)
    s = 0.5 + 2 * 0.5 / 8
    x = 0.5 / s
    assert float(high) == pytest.approx(s * ((1 + x) * math.log(1 + x) + (1 - x) * math.log(1 - x)) / 2)
    assert high.attained
    low, _ = margin_bounds("multiplicative(1/2)", margin="1/6", vocab_size=3)
    assert float(low) == pytest.approx(7 / 15 * math.log(4 / 3) + 7 / 30 * math.log(2 / 3))
    low, _ = margin_bounds("multiplicative(1/2)", margin="1/10", vocab_size=3)
    assert float(low) == pytest.approx(sum(p * math.log(3 * p) for p in (0.44, 0.34, 0.22)))
    assert margin_bounds("additive(1/2)", 2, margin="1/4", vocab_size=3)[0].value == mpmath.inf


def test_typical_is_strict_greedy_where_its_worst_target_is_rejected():
    for m in (1, 2, 3):
        low, _ = margin_bounds("typical(1, 1/2)", m, margin="1/2")
        assert str(low) == str(margin_bounds("strict_greedy", m, margin="1/2")[0])
        assert low.sharp
        assert low.accepted
        assert low.competitors
        assert str(certificate([*low.accepted, *low.competitors], "typical(1, 1/2)", m)) == str(low)
    assert not margin_bounds("typical(1, 1/2)", margin="1/5")[0].sharp


def test_typical_with_delta_one_can_reject_all():
    """A uniform target and a point mass lie exactly on the threshold."""
    assert margin_bounds("typical(1, 1)", margin=0)[0].value == 0
    assert [bound.value for bound in margin_bounds("typical(1, 1)", margin=1)] == [0, 0]
    assert certificate([1, 0], "typical(1, 1)").value == 0
    assert margin_bounds("typical(1/2, 1)", margin=0, vocab_size=3)[0].value == 0
    few = margin_bounds("typical(1/4, 1)", margin=0, vocab_size=3)[0]
    assert few.value <= certificate(["1/2", "1/2", "0"], "typical(1/4, 1)").value


@pytest.mark.parametrize("rule", ["multiplicative(0)", "absolute(0)"])
@pytest.mark.parametrize("vocab_size", [None, 4])
def test_a_threshold_of_zero_accepts_everything(rule, vocab_size):
    assert certificate(["0.6", "0.3", "0.1", "0"], rule, 2).value == mpmath.inf
    for bound in margin_bounds(rule, 2, margin="0.3", vocab_size=vocab_size):
        assert bound.value == mpmath.inf
        assert bound.sharp


def test_bad_arguments():
    options: dict[str, Any]
    for options, message in (
        ({"margin": 1.5}, "margin = 1.5"),
        ({"margin": "x"}, "margin = 'x' is not a number"),
        ({"margin": 0.5, "known": "top3"}, "known = 'top3'"),
        ({"margin": 0.5, "candidates": 0}, "candidates = 0"),
        ({"margin": 0.5, "candidates": 2, "vocab_size": 2}, "vocab_size = 2"),
    ):
        with pytest.raises(DraftcertError, match=message):
            margin_bounds("strict_greedy", **options)
    with pytest.raises(DraftcertError, match="coverage"):
        margin_bounds("additive(0.1)", margin=0.5, known="coverage")
    with pytest.raises(DraftcertError, match="no bound is known"):
        margin_bounds("typical_floor(0.09, 0.3, 0.00001)", margin=0.5)


def test_bounds_are_ends_of_each_other():
    low, high = margin_bounds("strict_greedy", 3, margin=1)
    assert str(low) == str(high)
    assert abs(low.value - mpmath.log(4)) < 1e-14
    assert margin_bounds("strict_greedy", margin=0)[0].value == 0
    assert margin_bounds("additive(0.6)", margin=0.1)[0].value == mpmath.inf


def number(draw: random.Random) -> sympy.Expr:
    parts = draw.choice([12, 12, 60, 999])
    return sympy.Integer(draw.randint(0, draw.choice([parts, parts, parts // 4]))) / parts


def cases(family: RuleFamily, count: int) -> Iterator[tuple[Rule, _Case]]:
    """Random rules of a family, candidates and vocabularies, with margins at the ends of what is stated or anywhere."""
    draw = random.Random(family.name)
    stated = [bound for bound in STATED if bound.rule == family]
    ranges = [each for bound in stated for each in bound.where]
    claims = [claim for bound in stated if isinstance(bound.value, tuple) for claim in bound.value]
    ranges += [each for claim in claims for each in _family(claim).domain if each.symbol == MARGIN]
    ends = [end for each in ranges for end in (each.lower, each.upper)]
    while count:
        values: dict[Any, Any] = {CANDIDATES: sympy.Integer(draw.randint(1, 4))}
        values[VOCABULARY] = draw.choice([sympy.oo, values[CANDIDATES] + draw.randint(1, 5)])
        for parameter in family.parameters:
            whole = parameter.domain.is_subset(sympy.S.Integers)
            values[parameter.symbol] = sympy.Integer(draw.randint(1, 4)) if whole else number(draw)
        values[n] = values[VOCABULARY] - values[CANDIDATES] - 1
        margin = draw.choice(ends).xreplace(values) if ends and draw.random() < 0.6 else number(draw)
        if isinstance(margin, sympy.Rational) and 0 <= margin <= 1:
            rule = family(*(values[parameter.symbol] for parameter in family.parameters))
            known = {symbol: values[symbol] for symbol in (CANDIDATES, VOCABULARY)} | {MARGIN: margin}
            yield rule, _Case(known, "top2", 15)
            count -= 1


def close(one: MarginBound, other: MarginBound) -> bool:
    return one.value == other.value or abs(one.value - other.value) < mpmath.mpf("1e-13") * abs(one.value)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_something_is_stated_of_every_case_and_nothing_contradicts(family):
    """What is sharp agrees, at the edges between two bounds too, and what is only valid is no better."""
    for rule, case in cases(family, 100):
        for end, sign in ((End.INFIMUM, 1), (End.SUPREMUM, -1)):
            found = [*case._stated(rule, end)]
            assert found, (rule, case)
            sharp = [bound for bound in found if bound.sharp]
            for bound in sharp:
                assert close(bound, sharp[0]), (rule, case, found)
            for bound in found if sharp else ():
                assert sign * bound.value <= sign * sharp[0].value or close(bound, sharp[0]), (rule, case, found)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_attained_bounds_are_the_certificates_of_their_targets(family):
    for rule, case in cases(family, 100):
        m, tokens = int(case.values[CANDIDATES]), case.values[VOCABULARY]
        for end in End:
            bound = case.tightest(rule, end)
            if not bound.attained or bound.accepted is None or bound.competitors is None:
                continue
            target = [*bound.accepted, *bound.competitors]
            others = 2 * m + 4 if tokens == sympy.oo else int(tokens) - len(target)
            target += [(1 - sum(target)) / max(others, 1)] * others
            found = [certificate(target, rule, m, digits=15, logit_ratio=ratio).value for ratio in (0, 2)]
            assert any(value == bound.value or abs(value - bound.value) < 1e-13 for value in found), (rule, case)


def test_what_claims_state_is_the_certificate_of_their_extremal_rows():
    """The value of the claim in ball arithmetic, and the level projection of the masses of its rows."""
    claims = {id(claim): claim for bound in STATED if isinstance(bound.value, tuple) for claim in bound.value}
    compared = Counter()
    for stated in STATED:
        own = stated.value if isinstance(stated.value, tuple) else ()
        for rule, case in cases(stated.rule, 400):
            if all(compared[id(claim)] >= 4 for claim in own):
                break
            values = case.all_values(stated, parameters_of(rule, stated.rule) or {})
            for claim in own if values[MARGIN] and _holds(stated, rule, values) else ():
                value = _stated_value(claim)
                if _has_rows(claim, values) and all(values[symbol] != sympy.oo for symbol in value.free_symbols):
                    assert case._certificate(claim, values).ball.overlaps(case._number(value, values)), (stated, values)
                    compared[id(claim)] += 1
    assert compared.keys() == claims.keys()


def test_few_tokens_leave_nothing_to_reject():
    """In m + 1 tokens all but the first would have to lie below the threshold, on which they lie at these margins."""
    for rule, m, margin in (
        ("multiplicative(1)", 2, 0),
        ("multiplicative(1/2)", 1, "1/3"),
        ("multiplicative(2/5)", 4, "3/13"),
        ("absolute(1/10)", 2, "7/10"),
    ):
        low, high = margin_bounds(rule, m, margin=margin, vocab_size=m + 1)
        assert low.value == high.value == mpmath.inf
        assert low.attained
        assert low.sharp
        assert margin_bounds(rule, m, margin=margin, vocab_size=m + 2)[0].value < mpmath.inf
    # (.72, .22, .06) has its second token accepted, so that two candidates cannot both be rejected
    assert certificate(["0.72", "0.22", "0.06"], "typical(1, 9/20)", 2).value == mpmath.inf
    assert margin_bounds("typical(1, 9/20)", 2, margin="1/2", vocab_size=3)[1].value == mpmath.inf


def test_who_attains_a_bound():
    """A tie of maxima is accepted; a first token on the threshold is, and its only competitor keeps its margin."""
    low, _ = margin_bounds("multiplicative(1)", margin=0)
    assert (low.value, low.attained, low.sharp) == (0, False, True)
    for vocabulary in (None, 3):
        _, high = margin_bounds("absolute(1/2)", margin="1/20", vocab_size=vocabulary, digits=15)
        assert high.attained
        assert abs(high.value - certificate(["1/2", "9/20", "1/20"], "absolute(1/2)", digits=15).value) < 1e-15
    for vocabulary in (None, 20):  # a second competitor has less and less as the rest is spread ever thinner
        _, high = margin_bounds("absolute(91/100)", 2, margin="9/10", vocab_size=vocabulary)
        assert (high.accepted, high.attained, high.sharp) == ((Fraction(91, 100),), False, vocabulary is None)
    _, high = margin_bounds("strict_greedy", margin=0)
    assert (high.value, high.attained) == (0, True)


def test_a_bound_over_all_margins_helps_where_the_chord_falls_short():
    """M3v: ln(V rho/(A + n rho)), valid in a vocabulary of V = m + n + 1 tokens."""
    low, _ = margin_bounds("multiplicative(1/2)", margin="1/1000", vocab_size=3)
    rho = 0.5 ** (1 / 3)
    assert float(low) == pytest.approx(math.log(3 * rho / (1.5 + rho)))
    assert not low.sharp
    assert low.value > margin_bounds("multiplicative(1/2)", margin="1/1000")[0].value


def shown(bounds: tuple[MarginBound, MarginBound]) -> list[Any]:
    return [(str(bound), bound.attained, bound.sharp, bound.accepted, bound.competitors) for bound in bounds]


def test_the_same_rule_has_the_same_bounds():
    """Whatever it is called: a rule is what it accepts."""
    a, j = sympy.symbols("a j", positive=True)
    mine = RuleFamily("mine", (Parameter(a, Interval(0, 1), "a"),), Ge(PROBABILITY, a * TOP), "me", "me", ())
    for margin in ("1/20", "1/2"):
        found, expected = (margin_bounds(rule, 2, margin=margin) for rule in (mine("2/5"), "multiplicative(2/5)"))
        assert shown(found) == shown(expected)
    first = RuleFamily("first", (Parameter(j, sympy.Range(1, 3), "j"),), Le(RANK, j), "me", "me", ())(1)
    for known in ("top2", "coverage"):
        one, other, expected = (
            margin_bounds(rule, 2, margin="1/5", known=known) for rule in (first, "top_m(1)", "strict_greedy")
        )
        assert shown(one) == shown(other) == shown(expected)
    fork = RuleFamily("multiplicative", mine.parameters, Gt(PROBABILITY, a * TOP), "fork", "me", ())
    with pytest.raises(DraftcertError, match="no bound is known for multiplicative#"):
        margin_bounds(fork(1), margin="1/5")


RULE_FILE = '''
"""Above: a token is accepted iff it has more than the fraction alpha of the largest probability."""

from sympy import Gt, Interval

from ..rule import Parameter, RuleFamily
from ..statistics import PROBABILITY, TOP
from .multiplicative import alpha

RULE = RuleFamily(
    name="above",
    parameters=(Parameter(alpha, Interval(0, 1), "fraction that a token must exceed"),),
    accepts=Gt(PROBABILITY, alpha * TOP),
    deployed_as="nobody",
    citation="this test",
    worked_points=(),
)
'''
THEOREM_FILE = '''
"""X1: above(alpha) has the chord of multiplicative(alpha), and attains it."""

from dataclasses import replace

from sympy import oo

from ..rules.above import RULE
from ..theorem import End, RuleBound
from .margins import M3

X1 = replace(
    M3,
    name="X1",
    title="Above(alpha)",
    bounds=(
        replace(M3.bounds[0], rule=RULE, attained=True),
        RuleBound(RULE, End.SUPREMUM, oo, sharp=False),
    ),
)
'''


def test_a_rule_file_and_a_theorem_file_are_enough(tmp_path):
    """A copy of the package with two more files knows the new rule's bounds."""
    for layer in (support, theory, numerics):
        source = Path(layer.__path__[0])
        shutil.copytree(source, tmp_path / "draftcert" / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "draftcert" / "__init__.py").touch()
    (tmp_path / "draftcert" / "theory" / "rules" / "above.py").write_text(RULE_FILE)
    (tmp_path / "draftcert" / "theory" / "theorems" / "above.py").write_text(THEOREM_FILE)
    program = (
        "from draftcert.numerics import margin_bounds\n"
        "low, high = margin_bounds('above(1/2)', margin='1/4', digits=12)\n"
        "print(low, low.attained, high)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    low, _ = margin_bounds("multiplicative(1/2)", margin="1/4", digits=12)
    assert done.stdout.split() == [str(low), "True", "+inf"]
    assert not low.attained
