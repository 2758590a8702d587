"""The mint: the only place that makes a `Proved`, of a theorem or a formula of which everything was decided here.

Nothing else has the token that the constructor asks for; whoever wants a `Proved` has to hand in a derivation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass
from functools import partial
from importlib.metadata import version

from ...theory.errors import DraftcertError
from ...theory.formula import Formula
from ...theory.theorem import (
    MARGIN,
    End,
    Establishes,
    ExactValue,
    Formal,
    Infimum,
    RuleBound,
    Supremum,
    Theorem,
)
from ..formal import statements
from .claims import decide, worked_point
from .errors import ProofError
from .formulas import covers, decide_formula, speaks_of

TOOLS = tuple(f"{name} {version(name)}" for name in ("sympy", "python-flint"))


SAMPLES = 3
"""Values of an argument for which a formula has to be shown where no theorem speaks of all."""

_MINT = object()


@dataclass(frozen=True)
class Proved:
    """A formula or theorem, by content hash, that the prover has established. Only the prover makes one."""

    kind: str
    name: str
    sha256: str
    method: str
    tools: tuple[str, ...]
    by: tuple[str, ...] = ()
    claimed: tuple[str, ...] = ()
    """Of a formula: what the theorems by which it is proved say that it is."""
    formal: tuple[str, ...] = ()
    """Of a theorem: the Coq theorems it refers to that this run has checked."""
    mint: InitVar[object] = None

    def __post_init__(self, mint: object) -> None:
        """Refuse everybody but this module."""
        if mint is not _MINT:
            raise DraftcertError(f"Proved('{self.name}') can only be made by proofs_check.prover, from a derivation")


@dataclass(frozen=True)
class Outcome:
    """What became of one claim: `ok` is `None` for a Coq theorem that this run has not checked."""

    place: str
    says: str
    ok: bool | None
    method: str
    seconds: float
    failure: str | None = None
    counterexample: Mapping[str, str] | None = None


FORMAL_UNCHECKED = "not checked formally"


def examine(theorem: Theorem, formal: Mapping[str, bool]) -> tuple[tuple[Outcome, ...], Proved | None]:
    """Decide everything a theorem claims; mint it if all holds.

    `formal` tells what an audit found of the Coq theorems; one that it does not mention counts as not checked, and one
    that Coq does not state as an error.
    """
    outcomes = [*_examined(theorem, formal)]
    if any(each.ok is False for each in outcomes):
        return tuple(outcomes), None
    methods = sorted({each.method for each in outcomes if each.ok and each.method != "Coq"})
    checked = tuple(each.says for each in outcomes if each.ok and each.method == "Coq")
    proved = Proved("theorem", theorem.name, theorem.sha256, " + ".join(methods), TOOLS, formal=checked, mint=_MINT)
    return tuple(outcomes), proved


def _examined(theorem: Theorem, formal: Mapping[str, bool]) -> Iterator[Outcome]:
    says = {f"step {i}": step.says for i, step in enumerate(theorem.derivation, 1)}
    for place, claim in theorem.claims():
        words = says.get(place, theorem.statement)
        if isinstance(claim, Formal):
            yield _formal_outcome(place, claim.lemma, formal)
            continue
        yield _outcome(place, words, partial(decide, claim, f"{theorem.name}, {place}"))
    for i, point in enumerate(theorem.worked_points, 1):
        words = point.note or "worked point"
        yield _outcome(f"worked point {i}", words, partial(worked_point, point, f"{theorem.name}, worked point {i}"))
    for i, bound in enumerate(theorem.bounds, 1):
        words = f"{bound.end.value} of the certificate under {bound.rule.name}"
        yield _outcome(f"bound {i}", words, partial(rests_on_claims, theorem, bound))
    for each in theorem.establishes:
        yield _outcome(f"formula {each.formula.name}", each.formula.statement, partial(speaks_of, theorem, each))


def cited(theorem: Theorem) -> str:
    """Refuse a theorem that cites what the Coq development does not state.

    Raises:
        ProofError: names it.
    """
    if unknown := [name for name in theorem.formal if name not in statements()]:
        raise ProofError(f"{theorem.name}: the Coq development states no {unknown[0]}")
    return "symbolic"


def _formal_outcome(place: str, lemma: str, formal: Mapping[str, bool]) -> Outcome:
    ok = formal.get(lemma) if lemma in statements() else False
    failure = f"Coq does not confirm {lemma}" if lemma in statements() else f"the Coq development states no {lemma}"
    return Outcome(
        place, lemma, ok, FORMAL_UNCHECKED if ok is None else "Coq", 0.0, None if ok is not False else failure
    )


def rests_on_claims(theorem: Theorem, bound: RuleBound) -> str:
    """Refuse a bound whose value is that of claims which do not hold, or which speak of the other end of the range.

    That the rule's targets are the rows of the claims is not decided here: `numerics.sharpness` tries to refute it.
    """
    kind = Infimum if bound.end is End.INFIMUM else Supremum
    fixed = any(each.symbol == MARGIN and each.lower == each.upper for each in bound.where)
    for claim in bound.value if isinstance(bound.value, tuple) else ():
        if not isinstance(claim, (kind, ExactValue)) and not fixed:
            raise ProofError(f"{theorem.name}: the {bound.end.value} is not what a {type(claim).__name__} gives")
        if claim not in theorem.conclusions:
            decide(claim, f"{theorem.name}, a claim of a bound")
    return "symbolic"


def _outcome(place: str, says: str, decided: Callable[[], str]) -> Outcome:
    start = time.perf_counter()
    try:
        method = decided()
    except ProofError as error:
        seconds = time.perf_counter() - start
        return Outcome(place, says, False, "", seconds, str(error), error.counterexample)
    return Outcome(place, says, True, method, time.perf_counter() - start)


def mint_formula(formula: Formula, theorems: Sequence[Theorem], proved: Sequence[Proved]) -> Proved:
    """Mint a formula: its two forms agree and every theorem that establishes it is proved; there must be one.

    Raises:
        ProofError: one of these does not hold.
    """
    establishing = tuple(t for t in theorems if any(e.formula.sha256 == formula.sha256 for e in t.establishes))
    hashes = {each.sha256 for each in proved if isinstance(each, Proved)}
    if not establishing:
        raise ProofError(f"formula {formula.name}: no theorem establishes it")
    if missing := [t.name for t in establishing if t.sha256 not in hashes]:
        raise ProofError(f"formula {formula.name}: {', '.join(missing)} is not proved")
    decide_formula(formula, establishing)
    said = [(t, e) for t in establishing for e in t.establishes if e.formula.sha256 == formula.sha256]
    claimed = tuple(dict.fromkeys(speaks_of(theorem, each) for theorem, each in said))
    names = tuple(t.name for t in establishing)
    return Proved(
        "formula", formula.name, formula.sha256, _how_general(formula, said), TOOLS, names, claimed, mint=_MINT
    )


def _how_general(formula: Formula, said: Sequence[tuple[Theorem, Establishes]]) -> str:
    """The method, and for which values of an argument alone where no theorem speaks of all."""
    sampled, reasons = [], []
    for theorem, each in said:
        try:
            numbers = covers(theorem, each)
        except ProofError as error:
            reasons.append(error.reason)
            continue
        if not numbers:
            return "symbolic"
        sampled.append(", ".join(numbers))
    if reasons or len(set(sampled)) < SAMPLES:
        reasons += [f"it is shown for {each} alone" for each in sampled]
        raise ProofError(f"formula {formula.name}: {'; '.join(reasons)}")
    return f"symbolic for {'; '.join(sampled)}"
