"""The prover: what it decides, what it refuses, and that nothing else mints."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sympy
from flint import arb
from sympy import Rational, S, exp, log, sqrt

from draftcert.proofs_check import ProofError, Proved
from draftcert.proofs_check.prover import decide, examine, formula_domain, mint_formula
from draftcert.proofs_check.prover.balls import evaluate, precision
from draftcert.proofs_check.prover.logs import LogForm
from draftcert.proofs_check.prover.signs import Signs
from draftcert.proofs_check.prover.witness import decide_inhabited
from draftcert.theory import FORMULAS, DraftcertError
from draftcert.theory.functions import Bennett
from draftcert.theory.theorem import (
    THRESHOLD,
    AtLeast,
    Equal,
    Evident,
    Formal,
    Growth,
    Limit,
    Range,
    Role,
    Subdivision,
    SumFact,
)
from draftcert.theory.theorems import THEOREMS

x, y = sympy.symbols("x y", nonnegative=True)
k = sympy.Symbol("k", positive=True)
z = sympy.Symbol("z", real=True)
UNIT = (Range(x, S.Zero, S.One),)
PHI = ((1 + x) * log(1 + x) + (1 - x) * log(1 - x)) / 2


def conclusion(name: str) -> Any:
    return THEOREMS[name].conclusions[0]


def test_only_the_prover_mints():
    with pytest.raises(DraftcertError, match="only be made by"):
        Proved("formula", "phi", "0", "because", ())
    _, proved = examine(THEOREMS["T2"], {})
    assert proved is not None
    with pytest.raises(DraftcertError, match="only be made by"):
        replace(proved, name="T3")


def test_the_token_of_the_mint_stands_in_one_file():
    root = Path(__file__).parents[2]
    sources = [path for layer in root.glob("*/__init__.py") for path in layer.parent.rglob("*.py")]
    holders = [path.relative_to(root).as_posix() for path in sources if "_MINT" in path.read_text()]
    assert holders == ["proofs_check/prover/mint.py"]


@pytest.mark.parametrize(
    ("left", "right", "domain"),
    [
        (log(6 * x / (1 + x)), log(2) + log(3) + log(x) - log(1 + x), (Range(x, S.Zero, S.One, True),)),
        (log((1 - x) ** 2 / (1 + x)), 2 * log(1 - x) - log(1 + x), (Range(x, S.Zero, S.One, False, True),)),
        (PHI, sympy.Add(*(S.Half * Bennett(part) for part in (x, -x))), UNIT),
        (sqrt(1 + x) ** 3, (1 + x) * sqrt(1 + x), UNIT),
        (1 / (sqrt(1 + x) - 2), (sqrt(1 + x) + 2) / (x - 3), UNIT),
        (log(exp(x)) * exp(-x), x * exp(-x), UNIT),
    ],
)
def test_equalities(left, right, domain):
    assert decide(Equal(left, right, domain)) == "symbolic"
    with pytest.raises(ProofError) as caught:
        decide(Equal(left, right + Rational(1, 10**9), domain))
    assert caught.value.counterexample is not None


def test_equality_is_refused_where_it_breaks_at_a_closed_end():
    claim = Equal(log(x), log(2 * x) - log(2), UNIT)
    with pytest.raises(ProofError, match="at x = 0"):
        decide(claim)
    assert decide(replace(claim, domain=(Range(x, S.Zero, S.One, open_below=True),))) == "symbolic"


def test_unknown_functions_and_symbols_are_refused():
    with pytest.raises(ProofError, match="not a function the checker knows"):
        decide(Equal(sympy.sin(x), x, UNIT))
    with pytest.raises(ProofError, match="no value is given for y"):
        decide(Equal(y, 2 * y - x, UNIT))


def test_a_claim_about_nothing_is_refused():
    with pytest.raises(ProofError, match="no interior point"):
        decide(AtLeast(-x, S.One, (Range(x, S.One, S.Zero),)))


def test_a_symbol_that_leaves_its_assumptions_is_refused():
    with pytest.raises(ProofError, match="assumed otherwise"):
        decide(Equal(sqrt(x**2), x, (Range(x, -S.One, S.One),)))


@pytest.mark.parametrize(
    ("difference", "domain", "level"),
    [
        (1 - x, UNIT, 2),
        (x - y, (*UNIT, Range(y, S.Zero, x)), 2),
        (y - x, (*UNIT, Range(y, S.Zero, x)), 0),
        (1 - x**2, UNIT, 2),
        (x**2 / (1 - x) + 1, UNIT, 2),
        (x - S.Half, UNIT, 0),
        (x * (1 + y**2) + (1 - x) * (2 - y), (*UNIT, Range(y, S.Zero, S.One)), 2),
        (x * y**2 + (1 - x) * (1 - y), (*UNIT, Range(y, S.Zero, S.One)), 2),
        (x * y**2 + (1 - x) * (S.Half - y), (*UNIT, Range(y, S.Zero, S.One)), 0),
        (k + x * y - x, (*UNIT, Range(y, S.Zero, S.One), Range(k, S.One, 2 * S.One, integer=True)), 2),
        (z, (Range(z, -S.One, S.One),), 0),
        (z**2, (Range(z, -S.One, S.One),), 1),
        (z**2 - 2 * z + 1, (Range(z, -S.One, 2 * S.One),), 1),
        (k - 1, (Range(k, S.One, sympy.oo, integer=True),), 1),
        (k * x + 1 - x, (*UNIT, Range(k, S.One, sympy.oo, integer=True)), 2),
        (log(1 + x), UNIT, 2),
        (-log(1 - x), UNIT, 2),
        (-log(1 + x), UNIT, 0),
        (Bennett(-x), UNIT, 2),
        (Bennett(-2 * x), UNIT, 0),
        (1 / (x - S.Half), UNIT, 0),
    ],
)
def test_signs(difference, domain, level):
    assert Signs(domain).bound(difference) == level


@pytest.mark.parametrize(("end", "value"), [(S.Zero, S.Zero), (S.One, log(2))])
def test_values_at_ends(end, value):
    form = LogForm(Signs(UNIT))
    assert form.is_zero(form.at_end(PHI, x, end) - value)


def test_a_pole_has_no_value_at_its_end():
    for expression in (1 / x, log(x), log(x) / (1 + log(x))):
        with pytest.raises(DraftcertError):
            LogForm(Signs(UNIT)).at_end(expression, x, S.Zero)


def test_touching_points_by_growth():
    slope = Growth(x, Evident(S.Zero), Evident())
    claim = AtLeast(PHI, x**2 / 2, UNIT, Growth(x, Evident(S.Zero), slope))
    assert decide(claim) == "symbolic"
    with pytest.raises(ProofError, match="fails at"):
        decide(replace(claim, right=x**2 * Rational(6, 10)))
    with pytest.raises(ProofError):
        decide(replace(claim, left=claim.right, right=claim.left))


def test_growth_needs_a_free_continuous_variable():
    domain = (*UNIT, Range(y, S.Zero, x))
    with pytest.raises(ProofError, match="enters the range"):
        decide(AtLeast(x, S.Zero, domain, Growth(x, Evident(), Evident())))
    with pytest.raises(ProofError, match="not a continuous variable"):
        decide(AtLeast(k, S.One, (Range(k, S.One, sympy.oo, integer=True),), Growth(k, Evident(), Evident())))


def test_subdivision():
    domain = (Range(x, Rational(1, 10), Rational(9, 10)), Range(y, S.Zero, x))
    claim = AtLeast(x * log(2) + y**2 / 100, PHI - Rational(1, 100), domain, Subdivision())
    assert decide(claim) == "ball arithmetic"
    with pytest.raises(ProofError):
        decide(replace(claim, right=PHI + Rational(1, 4)))
    with pytest.raises(ProofError, match="not seen to be positive"):
        decide(AtLeast(x * log(2), PHI, UNIT, Subdivision(pieces=64)))


def test_limits():
    claim = Limit((1 + x) * log(1 + x) / 1 + x * log(x), x, False, S.Zero, (Range(x, S.Zero, S.One, True),))
    assert decide(claim) == "symbolic"
    with pytest.raises(ProofError):
        decide(replace(claim, value=S.One))
    with pytest.raises(ProofError):
        decide(replace(claim, expression=log(x)))


@pytest.mark.parametrize("expression", [PHI, Bennett(x - Rational(1, 2)), log(1 + x) ** 2, sqrt(x + 1), exp(-x)])
def test_balls_enclose(expression):
    with precision(100):
        ball = arb(3).union(arb(5)) / 10
        whole = evaluate(expression, {x: ball})
        for part in ("0.3", "0.37", "0.5"):
            value = expression.subs(x, Rational(part)).evalf(40)
            assert whole.contains(arb(str(value)))
            assert whole.rad() < 1


def test_balls_decide_nothing_outside_the_domain():
    for expression in (log(x - 1), Bennett(x - 3), 1 / (x - Rational(2, 5))):
        assert not evaluate(expression, {x: arb(3).union(arb(5)) / 10}).is_finite()


def test_sums_do_not_take_what_differs_between_tokens():
    claim = conclusion("T1")
    token = claim.rows.classes[0].probability
    with pytest.raises(ProofError, match="differs between tokens"):
        decide(replace(claim, lower=replace(claim.lower, mass=token)))
    with pytest.raises(ProofError, match="differs between tokens"):
        decide(replace(claim, upper=replace(claim.upper, threshold=token)))


def test_a_bound_may_not_speak_of_the_draft():
    claim = conclusion("T5")
    with pytest.raises(ProofError, match="depends on the draft"):
        decide(replace(claim, value=replace(claim.value, total=claim.value.total - THRESHOLD)))


def test_dropping_the_level_equation_is_noticed():
    claim = conclusion("T1")
    rows = replace(claim.rows, facts=(SumFact({}),))
    with pytest.raises(ProofError):
        decide(replace(claim, rows=rows))


def test_averaging_a_competitor_above_the_level_is_noticed():
    """Trap (a): pooling all three tokens of (.5, .45, .05) over-claims."""
    claim = conclusion("T1")
    tokens = tuple(replace(token, pooled=True) for token in claim.example.tokens)
    with pytest.raises(ProofError, match="lies below the level"):
        decide(replace(claim, example=replace(claim.example, tokens=tokens)))


def test_a_family_with_half_a_token_is_refused():
    claim = conclusion("M7")
    first, competitor = claim.family.tokens
    halves = (first, *(replace(competitor, count=competitor.count / 2) for _ in range(2)))
    with pytest.raises(ProofError, match="not a whole number"):
        decide(replace(claim, family=replace(claim.family, tokens=halves)))


def test_a_bound_for_some_margins_only_is_not_the_infimum():
    claim = conclusion("M1")
    (margin,) = claim.family.domain
    narrow = (replace(margin, lower=Rational(1, 2)),)
    with pytest.raises(ProofError, match="does not cover"):
        decide(replace(claim, family=replace(claim.family, domain=narrow)))


def test_swapped_roles_are_noticed():
    claim = conclusion("T5")
    swapped = {Role.ACCEPTED: Role.COMPETITOR, Role.COMPETITOR: Role.ACCEPTED}
    classes = tuple(replace(c, role=swapped.get(c.role, c.role)) for c in claim.rows.classes)
    with pytest.raises(ProofError):
        decide(replace(claim, rows=replace(claim.rows, classes=classes)))


def test_a_coq_theorem_never_passes_here():
    with pytest.raises(ProofError, match="checked by Coq"):
        decide(Formal("T1_projection"))
    outcomes, proved = examine(THEOREMS["T2"], {"T2_worst_competitors": True})
    formal = {o.says: (o.ok, o.method) for o in outcomes if o.place.startswith("formal")}
    assert formal == {
        "T2_worst_competitors": (True, "Coq"),
        "T2_among_competitors": (None, "not checked formally"),
    }
    assert proved is not None
    _, proved = examine(THEOREMS["T2"], {"T2_worst_competitors": False})
    assert proved is None


def test_a_row_is_found_where_the_facts_allow_one():
    """Also where they hold of logarithms or powers, and where a count and the mass leave little room."""
    for name, place in (("M3v", 2), ("MI", 3), ("B3", 0), ("B4", 1), ("T0", 2)):
        decide_inhabited(THEOREMS[name].conclusions[place].rows, name)  # type: ignore[union-attr]


@pytest.mark.parametrize("total", [S.Zero, -S.One, 2 * S.One])
def test_rows_that_do_not_exist_are_refused(total):
    rows = conclusion("T1").rows
    impossible = SumFact({each.name: each.probability for each in rows.classes}, total)
    with pytest.raises(ProofError, match="no row is found"):
        decide_inhabited(replace(rows, facts=(*rows.facts, impossible)), "rows")


def test_the_logarithm_of_a_product_with_an_exponential():
    assert decide(Equal(log(k * exp(-z)), log(k) - z, (Range(k, S.One, S(3)), Range(z, -S.One, S.One)))) == "symbolic"


def test_a_formula_needs_its_theorem_and_its_stable_form():
    phi, theorems = FORMULAS["phi"], tuple(THEOREMS.values())
    _, m1 = examine(THEOREMS["M1"], {})
    assert m1 is not None
    assert mint_formula(phi, theorems, [m1]).by == ("M1",)
    with pytest.raises(ProofError, match="M1 is not proved"):
        mint_formula(phi, theorems, [])
    with pytest.raises(ProofError, match="no theorem establishes"):
        mint_formula(replace(phi, expression=phi.expression / 2), theorems, [m1])
    with pytest.raises(ProofError, match="no theorem establishes"):
        mint_formula(replace(phi, stable=phi.stable / 2), theorems, [m1])


def test_a_constraint_bounds_its_variable():
    domain = formula_domain(FORMULAS["strict_greedy"])
    s, g = (each.symbol for each in domain)
    assert domain[1].upper == s
    assert domain[1].symbol == g
