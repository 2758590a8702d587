"""Each formula of the theory against certified optima; the only place that mints `Agreed`.

A claim says which arguments a formula takes on a solved row and which number it must then equal (or bound). Both forms
of the formula are held to it, in ball arithmetic: value and radius.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.metadata import version
from math import isqrt
from pathlib import Path
from types import MappingProxyType
from typing import Any

import mpmath
from flint import arb, fmpq

from ..support.files import write_whole
from ..theory import FORMULAS, DraftcertError, Formula
from ..theory.divergences import DIVERGENCE_FORMULAS
from ..theory.formula import AGREED_DIGITS
from ..theory.margins import MARGIN_FORMULAS, SUPREMUM_FORMULAS
from ..theory.pool import Pool, select_pool
from .balls import ball_function, bounds, precision, sum_balls, to_fmpq
from .divergence import DIVERGENCES, Divergence, kl
from .families import FAMILIES, make_row
from .polish import Optimum, certified_digits, least, polish
from .program import Solution, solve
from .row import ExactRow, read_row

COMPARED: Mapping[str, Formula] = MappingProxyType(
    {**FORMULAS, **MARGIN_FORMULAS, **SUPREMUM_FORMULAS, **DIVERGENCE_FORMULAS}
)
"""The formulas that are compared, by name."""
WORKING_DIGITS = 2 * AGREED_DIGITS + 10
"""Digits of the optimum itself: the level is known to half of them."""
LEDGER = Path(__file__).parent / "ledger.json"
TOOLS = ("cvxpy", "clarabel", "mpmath", "python-flint", "sympy")


@dataclass(frozen=True)
class Solved:
    """A row, how many tokens are accepted, the number of candidates, and the certified optimum of its program."""

    row: ExactRow
    accepted: int
    candidates: int
    optimum: Optimum
    divergence: Divergence = field(default_factory=kl)

    @property
    def p(self) -> list[fmpq]:
        """The probabilities in descending order."""
        return [fmpq(weight, self.row.total) for weight in self.row.ranked]

    @property
    def pool(self) -> tuple[Pool[fmpq], list[fmpq]]:
        """The theory's pool, and its probabilities."""
        accepted, competitors = self.p[: self.accepted], self.p[self.accepted :][: self.candidates]
        pool = select_pool(accepted, competitors)
        return pool, self._moved(pool)

    def power_pool(self, order: Fraction) -> tuple[Pool[arb], list[fmpq]]:
        """The same where the level is a power mean: the pool of powers of this order, of logarithms for order 0."""
        power = (lambda p: arb(p).log()) if order == 0 else (lambda p: arb(p) ** arb(to_fmpq(order)))
        split, end = self.accepted, self.accepted + self.candidates
        pool = select_pool([power(p) for p in self.p[:split]], [power(p) for p in self.p[split:end]])
        return pool, self._moved(pool)

    def _moved(self, pool: Pool[Any]) -> list[fmpq]:
        end = self.accepted + self.candidates
        return self.p[: pool.accepted] + self.p[end - pool.competitors : end]


def solve_row(row: ExactRow, accepted: int, candidates: int, divergence: Divergence | None = None) -> Solved | None:
    """Solve for every choice of competitors and certify the least; None when nothing can be rejected."""
    divergence = divergence or kl()
    optimum = certify(row, accepted, solve(row, accepted, candidates, divergence=divergence), divergence)
    return None if optimum is None else Solved(row, accepted, candidates, optimum, divergence)


def certify(
    row: ExactRow, accepted: int, solutions: Iterable[Solution], divergence: Divergence, digits: int = WORKING_DIGITS
) -> Optimum | None:
    """The certified optimum over all choices of competitors, from a solver's answers."""
    finite = (solution for solution in solutions if solution.draft is not None)
    return least([polish(row, row.order[:accepted], solution, divergence, digits) for solution in finite])


@dataclass(frozen=True)
class Claim:
    """What a formula says of a solved row: its arguments, one tuple per term of its sum, and the number it gives.

    `reference` is an enclosure of that number; with `bound`, the formula is only at least that number.
    """

    terms: Sequence[tuple[Any, ...]]
    reference: arb
    bound: bool = False


def _pair(solved: Solved) -> tuple[fmpq, fmpq] | None:
    """Sum and margin of the first two tokens, for strict greedy with a single draft."""
    if (solved.accepted, solved.candidates) != (1, 1):
        return None
    return solved.p[0] + solved.p[1], solved.p[0] - solved.p[1]


def _phi(solved: Solved) -> Claim | None:
    pair = _pair(solved)
    return pair and Claim([(pair[1] / pair[0],)], solved.optimum.enclosure / pair[0])


def _strict_greedy(solved: Solved) -> Claim | None:
    pair = _pair(solved)
    return pair and Claim([pair], solved.optimum.enclosure)


def _level(solved: Solved) -> Claim | None:
    """KL is strongly convex: a draft within e of the optimum has its level within sqrt(2 e / p) of the optimal one."""
    pool, pooled = solved.pool
    if not pool.size:
        return None
    low, high = bounds(solved.optimum.enclosure)
    with mpmath.workprec(solved.optimum.bits):
        error = mpmath.sqrt(2 * (high - low) * int(pooled[0].q) / int(pooled[0].p)) * (1 + mpmath.mpf("1e-9"))
    return Claim([(pool.mass, fmpq(pool.size))], arb(solved.optimum.level) + arb(0, mpmath.nstr(error, 20)))


def _certificate(solved: Solved) -> Claim:
    pool, pooled = solved.pool
    return Claim([(p, pool.level) for p in pooled], solved.optimum.enclosure)


def _certificate_of_gaps(solved: Solved) -> Claim:
    pool, pooled = solved.pool
    top = solved.p[0]
    return Claim([(top, p / top - 1, pool.level / top - 1) for p in pooled], solved.optimum.enclosure)


def _ceiling(solved: Solved) -> Claim:
    """A bound, attained by a point mass under strict greedy."""
    top = solved.p[0]
    return Claim([(fmpq(solved.candidates), top)], solved.optimum.enclosure, bound=top < 1 or solved.accepted > 1)


def _kl(solved: Solved) -> Claim:
    p = [fmpq(weight, solved.row.total) for weight in solved.row.weights]
    return Claim([(p, q) for p, q in zip(p, solved.optimum.draft, strict=True) if p or q], solved.optimum.enclosure)


def _kl_of_logs(solved: Solved) -> Claim | None:
    """Only where the target gives every token something: ln(p/q) says nothing of a draft's mass elsewhere."""
    if not solved.p[-1]:
        return None
    return Claim([(p, arb(p / q).log()) for p, q in _kl(solved).terms], solved.optimum.enclosure)


def _one_against_many(solved: Solved) -> Claim | None:
    """One accepted token over equal competitors."""
    p, m = solved.p, solved.candidates
    if solved.accepted != 1 or p[1] != p[m] or p[0] == p[1]:
        return None
    return Claim([(fmpq(m), p[0] - p[1], p[1])], solved.optimum.enclosure)


def _tree_margin(solved: Solved) -> Claim | None:
    """The same without any other token: the extremal target of M7."""
    p, m = solved.p, solved.candidates
    if solved.accepted != 1 or p[1] != p[m] or any(p[m + 1 :]):
        return None
    return Claim([(fmpq(m), p[0] - p[1])], solved.optimum.enclosure)


def _ratio(solved: Solved) -> fmpq | None:
    """The y of a target proportional to (y, 1, ..., 1, 1/y) over m + 1 tokens, the extremal one of M6; y rational."""
    first, m = solved.row.ranked, solved.candidates
    last = first[m]
    if solved.accepted != 1 or any(first[m + 1 :]) or not last or first[0] == last:
        return None
    y = fmpq(isqrt(first[0] * last), last)
    middle = {fmpq(weight) for weight in first[1:m]}
    return y if y * y * last == first[0] and middle <= {y * last} else None


def _tree_ratio(solved: Solved) -> Claim | None:
    y = _ratio(solved)
    return y and Claim([(fmpq(solved.candidates), solved.p[0] - solved.p[solved.candidates])], arb(y - 1))


def _tree_last_margin(solved: Solved) -> Claim | None:
    y = _ratio(solved)
    return y and Claim([(fmpq(solved.candidates), y - 1)], solved.optimum.enclosure)


def _additive_near(solved: Solved) -> Claim | None:
    """The extremal target of M2: two accepted tokens over m equal competitors, the second one pooled."""
    p, m = solved.p, solved.candidates
    if solved.accepted != 2 or len(p) < m + 2 or p[2] != p[m + 1] or any(p[m + 2 :]):
        return None
    t, g = p[0] - p[2], p[0] - p[1]
    return Claim([(fmpq(m), t, g)], solved.optimum.enclosure) if t > 0 and g <= m * t / (m + 1) else None


def _spike(solved: Solved) -> fmpq | None:
    """The margin of two accepted tokens that have all the mass: the extremal target of the suprema."""
    p = solved.p
    if solved.accepted != 2 or any(p[2:]):
        return None
    return p[0] - p[1]


def _spike_pooled(solved: Solved) -> Claim | None:
    g, m = _spike(solved), solved.candidates
    return None if g is None or g > fmpq(m, m + 2) else Claim([(fmpq(m), g)], solved.optimum.enclosure)


def _spike_alone(solved: Solved) -> Claim | None:
    g, m = _spike(solved), solved.candidates
    return None if g is None or g < fmpq(m, m + 2) else Claim([(fmpq(m), g)], solved.optimum.enclosure)


def _renyi(solved: Solved) -> Claim | None:
    order = solved.divergence.order
    if not order:
        return None
    pool, moved = solved.power_pool(order)
    if not moved:
        return None
    a = to_fmpq(order)
    return Claim([(a, sum(moved, fmpq(0)), fmpq(len(moved)), pool.level ** (1 / a))], solved.optimum.enclosure)


def _reverse_kl(solved: Solved) -> Claim | None:
    """Only where all competitors have some probability: else the accepted tokens are held at 0."""
    order = solved.divergence.order
    if order != 0 or not solved.p[solved.accepted + solved.candidates - 1]:
        return None
    pool, moved = solved.power_pool(order)
    if not moved:
        return None
    return Claim([(sum(moved, fmpq(0)), fmpq(len(moved)), pool.level.exp())], solved.optimum.enclosure)


def _total_variation(solved: Solved) -> Claim | None:
    pool, moved = solved.pool
    if solved.divergence.order is not None or not moved:
        return None
    above = moved[: pool.accepted]
    return Claim([(sum(above, fmpq(0)), fmpq(len(above)), pool.level)], solved.optimum.enclosure)


CLAIMS: Mapping[str, Callable[[Solved], Claim | None]] = MappingProxyType(
    {
        "phi": _phi,
        "level": _level,
        "certificate": _certificate,
        "certificate_of_gaps": _certificate_of_gaps,
        "strict_greedy": _strict_greedy,
        "ceiling": _ceiling,
        "kl": _kl,
        "kl_of_logs": _kl_of_logs,
        "one_against_many": _one_against_many,
        "tree_margin": _tree_margin,
        "tree_ratio": _tree_ratio,
        "tree_last_margin": _tree_last_margin,
        "additive_near": _additive_near,
        "spike_pooled": _spike_pooled,
        "spike_alone": _spike_alone,
        "renyi": _renyi,
        "reverse_kl": _reverse_kl,
        "total_variation": _total_variation,
    }
)
"""For every formula by name: its claim on a solved row, None where it says nothing."""


def agreement(formula: Formula, solved: Solved) -> float | None:
    """Digits to which both forms of a formula agree with the certified optimum; None where it makes no claim.

    A bound that holds agrees without limit, and one that fails not at all.
    """
    if (solved.divergence.name == "kl") == (formula.name in DIVERGENCE_FORMULAS):
        return None  # it speaks of another divergence
    arguments = tuple(argument.symbol for argument in formula.arguments)
    with precision(solved.optimum.bits + 64):
        claim = CLAIMS[formula.name](solved)
        if claim is None:
            return None
        functions = [ball_function(form, arguments) for form in (formula.expression, formula.stable)]
        try:
            values = [sum_balls(arb(function(*term)) for term in claim.terms) for function in functions]
        except ZeroDivisionError:  # undefined where it claims a value
            return 0.0
    if not all(value.is_finite() for value in values):
        return 0.0
    if claim.bound:
        return mpmath.inf if all(bounds(value)[1] >= bounds(claim.reference)[0] for value in values) else 0.0
    return certified_digits(claim.reference, *values)


class Agreed:
    """A formula that agrees with certified optima of its convex program. Minted by `agree` alone."""

    __slots__ = ("cases", "digits", "formula", "sha256", "tools")

    formula: str
    sha256: str
    digits: int
    """Certified digits in the worst case."""
    cases: int
    tools: Mapping[str, str]

    def __init__(self, *_: object, **__: object) -> None:
        """Refused: evidence is not typed in."""
        raise DraftcertError("Agreed is the result of numerics.agree(formula), it cannot be constructed")

    def __setattr__(self, name: str, value: object) -> None:
        """Refused: evidence does not change."""
        raise DraftcertError(f"Agreed is frozen: {name} cannot be set")

    def __repr__(self) -> str:
        return f"Agreed({self.formula} {self.sha256[:12]}: {self.digits} digits on {self.cases} cases)"


def agree(formula: Formula, solved: Iterable[Solved]) -> Agreed:
    """Compare a formula with solved rows and mint the result.

    Raises:
        DraftcertError: the formula disagrees somewhere (the message holds the exact row), makes no claim on any of the
            rows, or has no claim at all.
    """
    if formula.name not in CLAIMS:
        raise DraftcertError(f"no claim compares the formula '{formula.name}' with a convex program")
    worst, cases = mpmath.inf, 0
    for each in solved:
        digits = agreement(formula, each)
        if digits is None:
            continue
        if digits < AGREED_DIGITS:
            raise DraftcertError(
                f"{formula.name} agrees to {digits:.1f} digits only, not {AGREED_DIGITS}, on "
                f"{each.row.text} with {each.accepted} accepted tokens and "
                f"{each.candidates} candidates ({each.divergence.name})"
            )
        worst, cases = min(worst, digits), cases + 1
    if worst == mpmath.inf:
        raise DraftcertError(f"{formula.name}: no case determines its value ({cases} cases)")
    agreed = object.__new__(Agreed)
    tools = {"python": platform.python_version(), **{tool: version(tool) for tool in TOOLS}}
    for name, value in {
        "formula": formula.name,
        "sha256": formula.sha256,
        "digits": int(worst),
        "cases": cases,
        "tools": MappingProxyType(tools),
    }.items():
        object.__setattr__(agreed, name, value)
    return agreed


STANDARD = ((2, 1, 1), (3, 1, 1), (3, 1, 2), (4, 1, 1), (4, 2, 2), (5, 1, 3), (5, 3, 1))
"""Tokens, accepted tokens and candidates of the rows the ledger rests on, for every family."""


EXTREMAL = (
    *((w, 1) for w in ([4, 1], [9, 4], [9, 3, 1], [25, 15, 9], [100, 10, 10, 1])),
    *((w, 1) for w in ([7, 2, 2], [1000, 999, 999], [5, 1, 1, 1])),
    *((w, 2) for w in ([5, 4, 2], [6, 6, 1], [7, 5, 3, 3], [10, 9, 1, 1, 1])),
    *((w, 2) for w in ([3, 2, 0], [3, 2, 0, 0], [5, 1, 0], [9, 1, 0, 0], [9, 1, 0, 0, 0])),
)
"""Weights and accepted tokens of targets at which margin bounds are attained; all other tokens are competitors."""


def standard_rows() -> list[Solved]:
    """The solved rows the ledger rests on: the same on every machine."""
    made = [
        solve_row(make_row(family, 0, index, tokens), accepted, candidates, make())
        for make in DIVERGENCES.values()
        for family in FAMILIES.values()
        for index, (tokens, accepted, candidates) in enumerate(STANDARD)
        if tokens >= family.least
    ]
    made += [
        solve_row(read_row(weights, normalize=True), accepted, len(weights) - accepted)
        for weights, accepted in EXTREMAL
    ]
    return [solved for solved in made if solved]


def ledger(solved: Sequence[Solved]) -> dict[str, Any]:
    """What the committed ledger holds: every formula by hash, with its evidence."""
    return {
        agreed.sha256: {
            "formula": agreed.formula,
            "digits": agreed.digits,
            "cases": agreed.cases,
            "method": "exact convex program from the predicate (cvxpy), polished (mpmath), weak duality (python-flint)",
            "tools": dict(agreed.tools),
        }
        for agreed in (agree(formula, solved) for formula in COMPARED.values())
    }


def write_ledger(path: Path = LEDGER) -> None:
    """Write the ledger; the same tools give the same file."""
    write_whole(path, json.dumps(ledger(standard_rows()), indent=2) + "\n")
