"""How a witness file is spelled: a certificate with all that proves it, for `numerics/verify.py`.

The verifier shares no code with this. A file is JSON on one line, rational numbers as fractions in quotes:

- `rule`: the predicate, operators first; `top` is the largest probability, `["exp", s, w, f]` is s exp(w H) with the
  entropy H = -sum p ln(p + f);
- `row`: the target's probabilities over their common denominator; `accepted` and `competitors`: its tokens, most likely
  first;
- `draft`: the probabilities of the rejected draft that attains the certificate, where they are not the target's;
- `multipliers`: by how much the target exceeds that draft at accepted tokens, and falls short of it at competitors,
  relative to the draft: they bound the divergence of every rejected draft from below;
- `certificate`: the value, rounded to the digits that were asked for; "inf", and no draft, where none is rejected;
- `seal`: the remainder of the text before it, as an integer, by a prime: it changes with every single character.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import sympy

from ..theory import DraftcertError, Rule
from ..theory.conditions import Condition, RankCondition, ThresholdCondition, fold_conditions
from ..theory.statistics import LOGIT_RATIO, TOP, Entropy

SEAL = 2**127 - 1


def witness_text(contents: Mapping[str, Any]) -> str:
    """The file with these contents."""
    seal = str(int.from_bytes(json.dumps(contents).encode(), "big") % SEAL)
    return json.dumps({**contents, "seal": seal}) + "\n"


@contextmanager
def long_integers() -> Iterator[None]:
    """Python prints integers of any length in the block: those of degenerate rows have thousands of digits."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(limit)


def spelled_rule(rule: Rule) -> list[Any]:
    """The predicate of a rule.

    Raises:
        DraftcertError: a rule of your own that compares with more than sums, products and one exponential.
    """

    def spell(condition: Condition) -> list[Any]:
        if isinstance(condition, RankCondition):
            return ["<=", "rank", _expression(condition.limit)]
        if isinstance(condition, ThresholdCondition):
            return [">" if condition.strict else ">=", "p", _expression(condition.threshold)]
        relation = condition.holds
        if relation in (sympy.true, sympy.false):
            return [">=" if relation else ">", "0", "0"]
        strict = isinstance(relation, (sympy.StrictGreaterThan, sympy.StrictLessThan))
        return [">" if strict else ">=", _expression(relation.gts), _expression(relation.lts)]  # type: ignore[attr-defined]

    return fold_conditions(rule.accepts, spell, lambda a, b: ["and", a, b], lambda a, b: ["or", a, b])


def _expression(expression: sympy.Basic) -> Any:
    """The spelling of a threshold."""
    if isinstance(expression, sympy.Rational):
        return str(expression)
    if expression in (TOP, LOGIT_RATIO):
        return "top" if expression == TOP else "logit_ratio"
    if isinstance(expression, (sympy.Min, sympy.Max)):
        return ["min" if isinstance(expression, sympy.Min) else "max", *map(_expression, expression.args)]
    scale, power = expression.as_independent(Entropy, as_Add=False)  # type: ignore[attr-defined]
    if isinstance(power, sympy.exp):
        weight, entropy = power.args[0].as_coeff_Mul()  # type: ignore[attr-defined]
        if isinstance(entropy, Entropy):
            return ["exp", _expression(scale), str(weight), _expression(entropy.args[0])]
    elif isinstance(expression, (sympy.Add, sympy.Mul)):
        return ["+" if isinstance(expression, sympy.Add) else "*", *map(_expression, expression.args)]
    raise DraftcertError(f"a witness file cannot spell '{expression}', which a condition of the rule speaks of")
