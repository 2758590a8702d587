"""Forged theorems and formulas: what a check of them must refuse, and why. `FORGED` names each with its reason."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import sympy
from sympy import S

from draftcert.theory import FORMULAS, Formula
from draftcert.theory.functions import Bennett
from draftcert.theory.theorem import (
    DRAFT,
    Equal,
    Establishes,
    Evidence,
    Evident,
    Infimum,
    LowerBound,
    Range,
    Role,
    Rows,
    SumAtLeast,
    SumEqual,
    SumFact,
    SumProof,
    Theorem,
    TokenClass,
    Value,
)
from draftcert.theory.theorems import THEOREMS

p = sympy.Symbol("p", positive=True)
x, y, g = (sympy.Symbol(name, nonnegative=True) for name in "xyg")
_ANY = Range(p, S.Zero, S.One)
_ROWS = Rows(
    (),
    (TokenClass("a", Role.ACCEPTED, None, p, (_ANY,)), TokenClass("b", Role.COMPETITOR, None, p, (_ANY,))),
)

_NAMES: tuple[str, ...] = ("a", "b")


@dataclass(frozen=True)
class Forgery:
    """A theorem, the formula it is to prove if there is one, and why the check must refuse them."""

    theorem: Theorem
    reason: str
    formula: Formula | None = None


FORGED: dict[str, Callable[[], Forgery]] = {}


def forged(made: Callable[[], Forgery]) -> Callable[[], Forgery]:
    """Keep a forgery under its name."""
    FORGED[made.__name__] = made
    return made


def _theorem(*conclusions: Any, **more: Any) -> Theorem:
    return Theorem("F1", "forged", "C >= 1000", ("none",), (), conclusions, **more)


def _false(expression: sympy.Expr = 7 * x) -> Formula:
    return replace(FORMULAS["phi"], name="false", statement="phi(x) = 7 x", expression=expression, stable=expression)


@forged
def lemma_of_no_such_name() -> Forgery:
    theorem = replace(THEOREMS["T2"], formal=("T2_worst_competitors", "T2_proves_everything"))
    return Forgery(theorem, "the Coq development states no T2_proves_everything")


@forged
def lemma_that_is_none_of_the_statements() -> Forgery:
    return Forgery(replace(THEOREMS["T2"], formal=("top_competitors",)), "states no top_competitors")


@forged
def facts_that_contradict_the_mass() -> Forgery:
    """Mass one and `sum p = 0` give C >= 1000."""
    rows = replace(_ROWS, facts=(SumFact({"a": p, "b": p}, S.Zero),))
    slack: Mapping[str, Evidence] = dict.fromkeys(_NAMES, Evident(DRAFT * Bennett(p / DRAFT - 1)))
    proof = SumProof(mass=S(1001), draft_mass=-S.One, facts=(S(-1000),), slack=slack)
    return Forgery(_theorem(LowerBound(rows, Value(S(1000)), proof)), "no row is found that has mass one and all facts")


@forged
def facts_that_contradict_each_other() -> Forgery:
    facts = (SumFact({"a": p}, S.One / 3), SumFact({"a": p}, S.One / 4))
    claim = SumEqual(replace(_ROWS, facts=facts), {"a": p}, S.Half, SumProof(facts=(S(3), S(-2))))
    return Forgery(_theorem(claim), "no row is found")


@forged
def an_inequality_that_no_row_satisfies() -> Forgery:
    rows = replace(_ROWS, facts=(SumFact({"a": p, "b": p}, S(2), at_least=True),))
    claim = SumAtLeast(rows, {"a": p, "b": p}, S(2), SumProof(facts=(S.One,)))
    return Forgery(_theorem(claim), "no row is found")


@forged
def tokens_too_small_for_the_mass() -> Forgery:
    small = Range(p, S.Zero, S.One / 10)
    classes = tuple(replace(each, count=S(2), ranges=(small,)) for each in _ROWS.classes)
    tenths: dict[str, Any] = dict.fromkeys(_NAMES, -S.One / 10)
    claim = SumAtLeast(Rows((), classes), {}, S(3) / 5, SumProof(mass=S.One, constants=tenths))
    return Forgery(_theorem(claim), "no row is found")


@forged
def formula_in_a_tautology() -> Forgery:
    formula = _false()
    claim = Equal(formula.expression, formula.expression, (Range(x, S.Zero, S.One),))
    theorem = _theorem(claim, establishes=(Establishes(formula),))
    return Forgery(theorem, "no conclusion says of rows what false = 7*x is", formula)


@forged
def formula_that_is_added_on_both_sides() -> Forgery:
    formula = _false(7 * x + 1)
    classes = tuple(replace(each, count=S.One) for each in _ROWS.classes)
    rows = Rows((Range(x, S.Zero, S.One),), classes)
    proof = SumProof(mass=S.One, constants={"a": 7 * x})
    claim = SumEqual(rows, {"a": 7 * x + p, "b": p}, formula.expression, proof)
    return Forgery(_theorem(claim, establishes=(Establishes(formula),)), "no conclusion says of rows", formula)


@forged
def formula_as_its_own_share() -> Forgery:
    """`sum of F/2 over two tokens = F`, for any F."""
    formula = _false()
    classes = tuple(replace(each, count=S.One) for each in _ROWS.classes)
    rows = Rows((Range(x, S.Zero, S.One),), classes)
    half = formula.expression / 2
    constants: dict[str, Any] = dict.fromkeys(_NAMES, half)
    claim = SumEqual(rows, constants, formula.expression, SumProof(constants=constants))
    return Forgery(_theorem(claim, establishes=(Establishes(formula),)), "no conclusion says of rows", formula)


def _of_two_arguments(more: sympy.Expr) -> Formula:
    phi = FORMULAS["phi"]
    second = replace(phi.arguments[0], symbol=y)
    return replace(phi, arguments=(*phi.arguments, second), expression=phi.expression + more, stable=phi.stable + more)


@forged
def formula_that_is_right_for_one_value_of_an_argument() -> Forgery:
    formula = _of_two_arguments(5 * (y - 1))
    theorem = replace(THEOREMS["M1"], establishes=(Establishes(formula, {x: g, y: S.One}),))
    return Forgery(theorem, "phi: it is shown for y = 1 alone", formula)


@forged
def formula_whose_arguments_are_tied() -> Forgery:
    formula = _of_two_arguments(5 * (y - x))
    theorem = replace(THEOREMS["M1"], establishes=(Establishes(formula, {x: g, y: g}),))
    return Forgery(theorem, "the arguments of phi do not vary freely", formula)


@forged
def formula_with_another_stable_form() -> Forgery:
    formula = FORMULAS["phi"]
    wrong = replace(formula, stable=formula.stable * (1 + sympy.Rational(1, 10**20)))
    establishes = (replace(THEOREMS["M1"].establishes[0], formula=wrong),)
    return Forgery(replace(THEOREMS["M1"], establishes=establishes), "the sides differ", wrong)


@forged
def false_equation() -> Forgery:
    return Forgery(_theorem(Equal(x, x * x, (Range(x, S.Zero, S.One),))), "the sides differ")


@forged
def claim_about_no_number() -> Forgery:
    return Forgery(_theorem(Equal(x, 2 * x, (Range(x, S.One, S.Zero),))), "no interior point")


@forged
def sharper_by_a_little() -> Forgery:
    claim: Any = THEOREMS["M1"].conclusions[0]
    wrong = replace(claim, value=claim.value * (1 + sympy.Rational(1, 10**20)))
    return Forgery(replace(THEOREMS["M1"], conclusions=(wrong,), establishes=()), "the difference is")


@forged
def infimum_without_a_family_for_all_margins() -> Forgery:
    claim: Any = THEOREMS["M1"].conclusions[0]
    (margin,) = claim.family.domain
    wrong = replace(claim, family=replace(claim.family, domain=(replace(margin, lower=S.Half),)))
    return Forgery(replace(THEOREMS["M1"], conclusions=(wrong,), establishes=()), "does not cover all values")


@forged
def worked_point_off_by_a_little() -> Forgery:
    point = THEOREMS["T2"].worked_points[0]
    wrong = replace(point, certificate=point.certificate + sympy.Rational(1, 10**30))
    return Forgery(replace(THEOREMS["T2"], worked_points=(wrong,)), "the sides differ")


@forged
def worked_row_without_mass_one() -> Forgery:
    wrong = replace(THEOREMS["T2"].worked_points[0], probabilities=("1/2", "9/20", "1/10"))
    return Forgery(replace(THEOREMS["T2"], worked_points=(wrong,)), "is not a distribution")


@forged
def bound_from_the_other_end() -> Forgery:
    infimum, supremum = THEOREMS["M1"].bounds
    wrong = replace(infimum, value=supremum.value)
    return Forgery(replace(THEOREMS["M1"], bounds=(wrong,)), "the infimum is not what a Supremum gives")


@forged
def bound_from_a_claim_that_nobody_proved() -> Forgery:
    bound = THEOREMS["M1"].bounds[0]
    assert isinstance(bound.value, tuple)
    claim = bound.value[0]
    assert isinstance(claim, Infimum)
    wrong = replace(bound, value=(replace(claim, value=2 * claim.value),))
    return Forgery(replace(THEOREMS["M1"], bounds=(wrong,)), "a claim of a bound")
