"""The bridge: Coq certifies that a number computed here is the true certificate of a concrete target.

For every case a statement is generated that says: some rejected draft has KL(p||q) = C, no rejected draft has less, and
the given value lies within 1e-14 of C. It knows the definitions and the standard library only. In a second file the
tactics of `coq/Bridge.v` prove it by computation in the integers and by interval arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import sympy

from ..theory import DraftcertError, parse_rule
from ..theory.conditions import ThresholdCondition
from ..theory.pool import select_pool
from ..theory.statistics import TOP
from .formal import CoqError, confirm, coqc
from .vernacular import defined_names

STATED, PROVED = "CaseStatements", "Cases"
"""The modules of the cases."""
TOLERANCE = 10**14
"""The value is certified to within 1 / TOLERANCE."""


@dataclass(frozen=True)
class BridgeCase:
    """A claim to certify: the certificate of `probabilities` (exact text) under a rule is `value` (decimal text)."""

    probabilities: tuple[str, ...]
    rule: str
    candidates: int
    value: str


@dataclass(frozen=True)
class BridgeReport:
    """Which cases Coq has certified; `failure` is Coq's message when it refused the file."""

    cases: tuple[BridgeCase, ...]
    ok: bool
    failure: str = ""


def bridge(cases: Iterable[BridgeCase], development: Path) -> BridgeReport:
    """Have Coq certify all cases, on top of the development that `audit_coq` has compiled in a folder.

    Raises:
        DraftcertError: a case has no finite certificate.
    """
    cases = tuple(cases)
    statements, proofs = bridge_sources(cases)
    try:
        for module, text in ((STATED, statements), (PROVED, proofs)):
            (development / f"{module}.v").write_text(text)
            coqc(development, f"{module}.v")
        problems = confirm(STATED, PROVED, defined_names(development / f"{STATED}.v"), development)
    except CoqError as error:
        problems = [str(error)]
    return BridgeReport(cases, not problems, "; ".join(problems))


def bridge_sources(cases: Iterable[BridgeCase]) -> tuple[str, str]:
    """The Coq file that states the cases, which knows the definitions only, and the file that proves them."""
    named = [(f"case_{number}", case) for number, case in enumerate(cases)]
    if not named:
        raise DraftcertError("no case to certify")
    statements = [
        "From Coq Require Import Reals List ZArith.",
        "From Draftcert Require Import Definitions.",
        "Import ListNotations.",
        "Open Scope R_scope.",
    ]
    proofs = ["From Coq Require Import List ZArith.", f"From Draftcert Require {STATED}."]
    proofs += ["From Draftcert Require Import Bridge.", "Import ListNotations."]
    for name, case in named:
        stated, proved = _case_sources(name, case)
        statements.append(stated)
        proofs.append(proved)
    return "\n\n".join(statements) + "\n", "\n\n".join(proofs) + "\n"


def _case_sources(name: str, case: BridgeCase) -> tuple[str, str]:
    row = [Fraction(text) for text in case.probabilities]
    denominator = math.lcm(*(p.denominator for p in row))
    numerators = [int(p * denominator) for p in row]
    rule = parse_rule(case.rule)
    count = rule.accepted_count(case.probabilities)
    order = sorted(range(len(row)), key=lambda token: (-row[token], token))
    accepted, competitors = order[:count], order[count : count + case.candidates]
    if len(competitors) < case.candidates:
        raise DraftcertError(f"{case.rule} at {case.probabilities}: fewer than {case.candidates} tokens are rejected")
    pooled_accepted, pooled_competitors = accepted[:1], competitors[:0]
    if not accepted:
        pooled_competitors = competitors[:1]
    elif (pool := select_pool([row[a] for a in accepted], [row[i] for i in competitors])).size:
        pooled_accepted = accepted[: pool.accepted]
        pooled_competitors = competitors[case.candidates - pool.competitors :]
    middle = Fraction(case.value)
    target = f"{_list(numerators)}%Z {denominator}%Z"
    probability = f"IZR (nth i {_list(numerators)}%Z 0%Z) / IZR {denominator}"
    stated = [
        f"(* {case.rule}, {case.candidates} of {', '.join(case.probabilities)} *)",
        f"Definition {name} : Prop := exists C,",
        f"  certificate {len(row)}%nat {_tokens(accepted)} {case.candidates}%nat",
        f"    (fun i => {probability}) C /\\",
        f"  Rabs (C - {middle.numerator} / {middle.denominator}) <= 1 / {TOLERANCE}.",
    ]
    proved = [
        f"Theorem {name} : {STATED}.{name}.",
        f"Proof. bridge {target} {_tokens(accepted)} {_tokens(competitors)} "
        f"{_tokens(pooled_accepted)} {_tokens(pooled_competitors)}. Qed.",
    ]
    # That the accepted tokens are the rule's: stated in Coq too where the rule is one rational threshold.
    (condition, *others) = rule.conditions
    if isinstance(condition, ThresholdCondition) and not others:
        top = sympy.Rational(max(row).numerator, max(row).denominator)
        threshold = condition.threshold.subs(TOP, top)
        if isinstance(threshold, sympy.Rational):
            relation, tactic = ("<", "bridge_rule_strict") if condition.strict else ("<=", "bridge_rule")
            stated += [
                f"Definition {name}_rule : Prop := forall i, (i < {len(row)})%nat ->",
                f"  (In i {_tokens(accepted)} <-> {threshold.p} / {threshold.q} {relation} {probability}).",
            ]
            proved += [
                f"Theorem {name}_rule : {STATED}.{name}_rule.",
                f"Proof. {tactic} {target} {_tokens(accepted)} ({threshold.p})%Z {threshold.q}%Z. Qed.",
            ]
    return "\n".join(stated), "\n".join(proved)


def _list(numbers: Iterable[int]) -> str:
    return f"[{'; '.join(map(str, numbers))}]"


def _tokens(ids: Iterable[int]) -> str:
    text = _list(ids)
    # Coq cannot guess what an empty list holds.
    return "(@nil nat)" if text == "[]" else f"{text}%nat"
