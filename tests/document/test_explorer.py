"""The explorer's numbers beside exact arithmetic, in Node.js and in browsers, and the page as a reader uses it."""

import json
import math
import random
import re
import shutil
import subprocess
from fractions import Fraction

import mpmath
import pytest

from draftcert.document.explorer import FOLDER, generated
from draftcert.numerics import certificate, certificate_from_top_logprobs, log_loss, margin_bounds
from draftcert.theory import DraftcertError, parse_rule
from draftcert.theory.presets import example_rules

DIGITS = 12
RULES = [*map(str, example_rules()), "absolute(0)", "additive(0)", "multiplicative(1)", "top_m(1)", "typical(1,1)"]
RULES += ["typical(0.2, 0.7)", "typical_floor(1/2, 3/4, 0)", "top_m(4) & additive(1/5)", "additive(1)", "mars(0)"]

ENTROPIES_OR_LOGITS = re.compile("typical|mars")
"""Rules that speak of what a list of top log-probabilities does not hold."""


def _spread(parts: list[int]) -> list[str]:
    """Probabilities in these proportions as exact fractions."""
    return [str(Fraction(part, sum(parts))) for part in parts]


def _row(kind: int, draw: random.Random) -> list[str]:
    """A row of decimals or fractions: peaked, tied, nearly tied, with zeros, padded."""
    size = draw.randint(2, 9)
    match kind % 6:
        case 0:
            return _spread([draw.randint(1, 10**4) for _ in range(size)])
        case 1:
            return _spread([draw.randint(1, 3) for _ in range(size)])
        case 2:
            tiny = 10 ** draw.randint(3, 40)
            return _spread([tiny * 2 + 1, tiny * 2, *(draw.randint(1, 2 * tiny) for _ in range(size))])
        case 3:
            return _spread([draw.randint(1, 50) for _ in range(size)] + [0] * draw.randint(1, 300))
        case 4:
            return _spread([10 ** draw.randint(0, 30) for _ in range(size)])
        case _:
            return _spread([1 << draw.randint(0, 4) for _ in range(size)])


def cases(number: int, seed: int = 1) -> list[dict]:
    """States of the page: every rule in turn, every width that the row allows."""
    draw = random.Random(seed)
    states = []
    for index in range(number):
        row, kind = _row(index, draw), "probabilities"
        state = {
            "rule": RULES[index % len(RULES)],
            "candidates": min(draw.choice((1, 1, 2, 3, 5)), len(row) - 1),
            "logitRatio": str(Fraction(draw.randint(-3, 12), 10)),
        }
        if index % 4 == 1:
            kind, row = (
                "logits",
                [draw.choice((f"{draw.gauss(0, 4):.3f}", "1.5", f"1.5{draw.randint(0, 9):030}")) for _ in row],
            )
        elif index % 8 == 3 and not ENTROPIES_OR_LOGITS.search(state["rule"]):
            weights = sorted((draw.expovariate(1) for _ in range(40)), reverse=True)
            kind, row = "logprobs", [f"{math.log(weight / sum(weights)):.9f}" for weight in weights[:30]]
        states.append(state | {"kind": kind, "numbers": ", ".join(row)})
    return states


def judged(state: dict) -> dict | None:
    """What `numerics` says of a state; None where it refuses it, or the list leaves it open."""
    numbers, rule, m = state["numbers"].split(", "), parse_rule(state["rule"]), state["candidates"]
    given = {"logit_ratio": state["logitRatio"]}
    if state["kind"] == "logprobs":
        found = certificate_from_top_logprobs(list(map(Fraction, numbers)), rule, m, error=0)
        return {"value": float(found.lower)} if found.exact else None
    if state["kind"] == "logits":
        with mpmath.workdps(120):
            weights = [mpmath.exp(mpmath.mpf(z)) for z in numbers]
            row = [mpmath.nstr(weight / sum(weights), 100) for weight in weights]
        given = {"logits": numbers, "normalize": True}
    else:
        row = numbers
    found = certificate(row, rule, m, 20, **given)
    ranked = sorted(map(found.row.probability, range(len(row))), reverse=True)
    try:
        low, high = map(float, margin_bounds(rule, m, margin=ranked[0] - ranked[1], digits=20))
    except DraftcertError:
        low = high = None
    return {
        "value": float(found),
        "level": None if found.level is None else float(found.level),
        "accepted": list(found.accepted),
        "competitors": list(found.competitors),
        "pool": list(found.pool),
        "logLoss": float(log_loss(row, rule, 20, **given)),
        "ceiling": float(mpmath.log1p(m * mpmath.mpf(ranked[0].numerator) / ranked[0].denominator)),
        "low": low,
        "high": high,
    }


PLAIN = """(state) => {
  try {
    const found = certify(state);
    return {
      value: String(found.value), level: found.level && toNumber(found.level), accepted: found.accepted,
      competitors: found.competitors, pool: found.pool, logLoss: String(found.logLoss), ceiling: found.ceiling,
      low: found.bounds && String(found.bounds.low.value), high: found.bounds && String(found.bounds.high.value),
    };
  } catch (error) {
    return { refused: String(error.message) };
  }
}"""
"""The results of a state as JSON has them: it knows no infinity."""


def close(shown: str | float | None, exact: float | None) -> bool:
    if shown is None or exact is None:
        return shown is exact
    value = float(str(shown).replace("Infinity", "inf"))
    return value == exact or abs(value - exact) <= 10**-DIGITS / 2 * abs(exact)


def disagreements(states: list[dict], shown: list[dict]) -> list[str]:
    wrong = []
    for state, found in zip(states, shown, strict=True):
        exact = judged(state)
        if exact is None or "refused" in found:
            if (exact is None) != ("refused" in found):
                wrong.append(f"{state}: {found}, exactly {exact}")
            continue
        for key, value in exact.items():
            if not (found[key] == value if isinstance(value, list) else close(found[key], value)):
                wrong.append(f"{state}: {key} = {found[key]}, exactly {value}")
    return wrong


def in_node(states: list[dict], script: str) -> list[dict]:
    program = script + f"\nconst states = {json.dumps(states)};\nconsole.log(JSON.stringify(states.map({PLAIN})));"
    node = shutil.which("node") or pytest.skip("no Node.js: apt-get install nodejs")
    run = subprocess.run([node, "-"], input=program, stdout=subprocess.PIPE, text=True, check=True, timeout=120)
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def script() -> str:
    return "\n".join(['"use strict";', (FOLDER / "certify.js").read_text(encoding="utf-8"), generated()])


def test_every_number_is_that_of_exact_arithmetic(script):
    states = cases(200)
    assert disagreements(states, in_node(states, script)) == []
