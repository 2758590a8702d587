"""Claims and worked points, decided."""

from __future__ import annotations

import sympy

from ...theory.errors import DraftcertError
from ...theory.exact import exact_certificate
from ...theory.theorem import (
    AtLeast,
    Claim,
    Equal,
    Evidence,
    ExactValue,
    Formal,
    Growth,
    Infimum,
    Limit,
    LowerBound,
    Optimum,
    Subdivision,
    SumAtLeast,
    SumEqual,
    Supremum,
    UpperBound,
    Value,
    WorkedRow,
)
from .compare import decide_at_least, decide_closed_ends, decide_equal, forms
from .errors import ProofError
from .families import decide_attained, decide_covered
from .points import text_of
from .programs import decide_optimum
from .sums import decide_lower, decide_sum, decide_upper
from .witness import decide_inhabited


def decide(claim: Claim, what: str = "claim") -> str:
    """Decide one claim; the answer is how it was established.

    Raises:
        ProofError: it is not established; with the step and, if one was found, a counterexample.
    """
    try:
        return _decide(claim, what)
    except ProofError:
        raise
    except DraftcertError as error:
        raise ProofError(f"{what}: {error}") from error


def _decide(claim: Claim, what: str) -> str:
    if isinstance(claim, Equal):
        decide_equal(claim.left - claim.right, claim.domain, what)
        decide_closed_ends(claim.left, claim.right, claim.domain, what)
    elif isinstance(claim, AtLeast):
        decide_at_least(claim.left - claim.right, claim.domain, claim.by, what, claim.strict)
        return "ball arithmetic" if _has_subdivision(claim.by) else "symbolic"
    elif isinstance(claim, Limit):
        _limit(claim, what)
    elif isinstance(claim, SumEqual):
        decide_sum(claim.rows, claim.left, claim.right, claim.by, what, equal=True)
        decide_inhabited(claim.rows, what)
    elif isinstance(claim, SumAtLeast):
        decide_sum(claim.rows, claim.left, claim.right, claim.by, what)
        decide_inhabited(claim.rows, what)
    elif isinstance(claim, LowerBound):
        decide_lower(claim.rows, claim.value, claim.by, what)
        decide_inhabited(claim.rows, what)
    elif isinstance(claim, UpperBound):
        decide_upper(claim.rows, claim.value, claim.by, what)
        decide_inhabited(claim.rows, what)
    elif isinstance(claim, ExactValue):
        decide_lower(claim.rows, claim.value, claim.lower, what)
        decide_upper(claim.rows, claim.value, claim.upper, what)
        decide_attained(claim.rows, claim.value, claim.example, what)
    elif isinstance(claim, Infimum):
        decide_covered(claim.rows, claim.value, claim.family, what)
        decide_lower(claim.rows, Value(claim.value), claim.lower, what)
        decide_attained(claim.rows, Value(claim.value), claim.family, what)
    elif isinstance(claim, Supremum):
        decide_covered(claim.rows, claim.value, claim.family, what)
        decide_upper(claim.rows, Value(claim.value), claim.upper, what)
        decide_attained(claim.rows, Value(claim.value), claim.family, what)
    elif isinstance(claim, Optimum):
        decide_optimum(claim, what)
    elif isinstance(claim, Formal):
        raise ProofError(f"{what}: a theorem of the Coq development is checked by Coq, not here")
    else:
        raise ProofError(f"{what}: {type(claim).__name__} is no claim the prover knows")
    return "symbolic"


def _has_subdivision(by: Evidence) -> bool:
    if isinstance(by, Growth):
        return _has_subdivision(by.start) or _has_subdivision(by.slope)
    return isinstance(by, Subdivision)


def _limit(claim: Limit, what: str) -> None:
    found = [each for each in claim.domain if each.symbol == claim.symbol]
    if not found:
        raise ProofError(f"{what}: {claim.symbol} is not a variable of {text_of(claim.domain)}")
    end = found[0].upper if claim.at_upper else found[0].lower
    if end.is_infinite:
        raise ProofError(f"{what}: substitute a variable that goes to 0 for one that goes to infinity")
    others = tuple(each for each in claim.domain if each != found[0])
    reached = forms(claim.domain).at_end(claim.expression, claim.symbol, end)
    decide_equal(reached - claim.value, others, what)


def worked_point(point: WorkedRow, what: str) -> str:
    """An exact row's certificate, from T1 to T3, against the value the theorem gives for it."""
    row = [sympy.Rational(p) for p in point.probabilities]
    if sum(row) != 1 or min(row) < 0:
        raise ProofError(f"{what}: {point.probabilities} is not a distribution")
    value = exact_certificate(row, point.accepted, point.candidates)
    if value.is_infinite or point.certificate.is_infinite:
        if value != point.certificate:
            raise ProofError(f"{what}: C{point.probabilities} = {value}, not {point.certificate}")
    else:
        decide_equal(value - point.certificate, (), f"{what}: C{point.probabilities}")
    return "symbolic"
