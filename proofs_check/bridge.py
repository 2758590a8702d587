"""The bridge: Coq certifies that a number computed here is the true certificate of a concrete target.

For every case a theorem is generated that says: some rejected draft has KL(p||q) = C, no rejected draft has less, and
the given value lies within 1e-14 of C. `coq/Bridge.v` decides it by computation in the integers and the interval tactic
and documents the text that is generated here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import sympy

from ..theory import DraftcertError, parse_rule
from ..theory.conditions import ThresholdCondition
from ..theory.pool import select_pool
from ..theory.statistics import TOP
from .formal import AXIOMS, axioms_of, run

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
    text = bridge_source(cases)
    (development / "Cases.v").write_text(text)
    compiled = run(["coqc", "-q", "-Q", ".", "Draftcert", "Cases.v"], development)
    if compiled.returncode:
        place = re.search(r"line (\d+)", compiled.stderr)
        before = text.splitlines()[: int(place[1])] if place else []
        named = [found for line in before if (found := re.match(r"Theorem (\w+)", line))]
        which = f"{named[-1][1]}: " if named else ""
        return BridgeReport(cases, False, which + " ".join(compiled.stderr.split()))
    strange = axioms_of(compiled.stdout) - AXIOMS
    failure = f"the cases rest on {', '.join(sorted(strange))}" if strange else ""
    return BridgeReport(cases, not strange and "Axioms:" in compiled.stdout, failure)


def bridge_source(cases: Iterable[BridgeCase]) -> str:
    """The Coq file that states and proves the cases."""
    named = [(f"case_{number}", case) for number, case in enumerate(cases)]
    if not named:
        raise DraftcertError("no case to certify")
    parts = ["From Coq Require Import Reals List ZArith.", "From Draftcert Require Import Main Bridge."]
    parts += ["Import ListNotations.", "Open Scope R_scope.", ""]
    theorems: list[str] = []
    for name, case in named:
        text, stated = _case_source(name, case)
        parts.append(text)
        theorems += stated
    parts += [f"Definition every_case := ({', '.join(theorems)}).", "Print Assumptions every_case.", ""]
    return "\n".join(parts)


def _case_source(name: str, case: BridgeCase) -> tuple[str, list[str]]:
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
    lines = [
        f"(* {case.rule}, {case.candidates} of {', '.join(case.probabilities)} *)",
        f"Definition {name}_p (i : nat) : R := IZR (nth i {_list(numerators)}%Z 0%Z) / IZR {denominator}.",
        f"Theorem {name} : exists C,",
        f"  CERTIFICATE {len(row)}%nat {_tokens(accepted)} {case.candidates}%nat {name}_p C /\\",
        f"  Rabs (C - {middle.numerator} / {middle.denominator}) <= 1 / {TOLERANCE}.",
        f"Proof. bridge {target} {_tokens(accepted)} {_tokens(competitors)} "
        f"{_tokens(pooled_accepted)} {_tokens(pooled_competitors)}. Qed.",
    ]
    stated = [name]
    # That the accepted tokens are the rule's: stated in Coq too where the rule is one rational threshold.
    (condition, *others) = rule.conditions
    if isinstance(condition, ThresholdCondition) and not others:
        top = sympy.Rational(max(row).numerator, max(row).denominator)
        threshold = condition.threshold.subs(TOP, top)
        if isinstance(threshold, sympy.Rational):
            relation, tactic = ("<", "bridge_rule_strict") if condition.strict else ("<=", "bridge_rule")
            lines += [
                f"Theorem {name}_rule : forall i, (i < {len(row)})%nat ->",
                f"  (In i {_tokens(accepted)} <-> {threshold.p} / {threshold.q} {relation} {name}_p i).",
                f"Proof. {tactic} {target} {_tokens(accepted)} ({threshold.p})%Z {threshold.q}%Z. Qed.",
            ]
            stated.append(f"{name}_rule")
    return "\n".join(lines) + "\n", stated


def _list(numbers: Iterable[int]) -> str:
    return f"[{'; '.join(map(str, numbers))}]"


def _tokens(ids: Iterable[int]) -> str:
    text = _list(ids)
    # Coq cannot guess what an empty list holds.
    return "(@nil nat)" if text == "[]" else f"{text}%nat"
