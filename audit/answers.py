"""An engine's answers to the conformance vectors: written down by `write_answers`, judged case by case.

What is wrong with the file is an error; what is wrong with an answer is a fault of the engine, a missing one too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
from scipy.stats import binom

from ..support.files import parse_json, read_text, write_whole
from ..theory.errors import DraftcertError
from ..theory.numbers import shown
from .conformance import FORMAT, TRIALS, Case, conformance_vectors, every_vector, number_of_outcomes

if TYPE_CHECKING:
    from numpy.typing import NDArray

FALSE_ALARM = Fraction(1, 10**6)
"""At most this is the probability that an engine which samples rightly is found faulty in anything it counted."""
CLOSE = 2.0**-20
"""How far a computed probability may be off: rounding in float32."""
ATTENTION = 2.0**-8
"""How far an attention weight may be off: rounding in bfloat16."""
MOST_TRIALS = 10**12
FIELDS = ("output_tokens", "accepted_nodes", "num_accepted_tokens", "refused")
FIELDS_OF_SUITE = {"tree_inputs": ("position_ids", "attention_weights"), "sampling": ("counts", "probabilities")}


@dataclass(frozen=True)
class Answered:
    """A case of a suite that the engine takes part in, and what is wrong with its answer: `None` if nothing is."""

    case: str
    fault: str | None


@dataclass(frozen=True)
class Conformance:
    """What the vectors say of an engine; `not_run` are the suites that it does not take part in."""

    engine: str
    answered: tuple[Answered, ...]
    suites: tuple[str, ...]
    not_run: tuple[str, ...]

    @property
    def faults(self) -> tuple[Answered, ...]:
        """The cases with a wrong or missing answer."""
        return tuple(each for each in self.answered if each.fault)

    @property
    def passed(self) -> bool:
        """Whether every case of the engine's suites is answered rightly."""
        return not self.faults


def logits_of(case: Case) -> NDArray[numpy.float32]:
    """The logits `[1 + draft tokens, vocabulary]` of a case that is verified by a rule."""
    bits = numpy.array([[int(word, 16) for word in row.split()] for row in case["logits"]], numpy.uint32)
    return (bits << (16 if case["dtype"] == "bfloat16" else 0)).view(numpy.float32)[:, : case["vocab_size"]]


def write_answers(path: str | Path, engine: str, suites: Sequence[str], answer: Callable[[Case], Any]) -> None:
    """Run an engine over every case of these suites, and write its answers for `check_answers`.

    `answer` gives the answer to a case; where it raises a ValueError, the engine refuses.
    """
    vectors = conformance_vectors()
    answers = {}
    for case in (case for case in vectors["cases"] if case["suite"] in suites):
        try:
            answers[case["id"]] = answer(case)
        except ValueError:
            answers[case["id"]] = {"refused": True}
    head = {"format": vectors["format"], "vectors_sha256": vectors["sha256"], "engine": engine}
    write_whole(path, json.dumps(head | {"suites": list(suites), "answers": answers}))


def check_answers(path: str | Path) -> Conformance:
    """Judge the file that an engine's run over the conformance vectors has written.

    Every case of every suite that the file names must be answered. Counts of samples are compared by exact binomial
    tails: all in all a right engine is found faulty with probability 1e-6 at most.

    Raises:
        DraftcertError: no such file, or not of the format: not JSON, a key twice, of other vectors, no suite, an
            unknown suite or case, a suite's case that is answered though the suite is not named.

    >>> write_answers("answers.json", "mine 1.0", ["greedy/tree"], lambda case: case["expected"])
    >>> check_answers("answers.json").passed
    True
    """
    document = _document(path)
    vectors = every_vector()
    for name, wanted in (("format", FORMAT), ("vectors_sha256", vectors["sha256"])):
        if document[name] != wanted:
            raise DraftcertError(
                f"{path} has {name} = {shown(document[name])}, and these vectors {wanted}: run the engine on what "
                "`draftcert conform --out FILE` writes"
            )
    suites, answers = document["suites"], document["answers"]
    if not suites or len(set(suites)) < len(suites):
        raise DraftcertError(f"{path}: `suites` names no suite, or one of them twice: name those that were run")
    if unknown := set(suites) - set(vectors["suites"]):
        raise DraftcertError(f"{path}: no suite is called {shown(min(unknown))}")
    cases = {case["id"]: case for case in vectors["cases"] if case["suite"] in suites}
    if unknown := set(answers) - set(cases):
        raise DraftcertError(f"{path}: no case of its suites is called {shown(min(unknown))}")
    answered = tuple(
        Answered(name, fault_of(case, answers[name]) if name in answers else "no answer")
        for name, case in cases.items()
    )
    return Conformance(document["engine"], answered, tuple(suites), tuple(sorted(set(vectors["suites"]) - set(suites))))


def _document(path: str | Path) -> dict[str, Any]:
    document = strict_json(read_text(path), str(path))
    kinds: dict[str, type] = {"format": str, "vectors_sha256": str, "engine": str, "suites": list, "answers": dict}
    if not isinstance(document, dict) or set(document) != set(kinds):
        raise DraftcertError(f"{path}: answers are a JSON object of {', '.join(kinds)}, and nothing else")
    for name, kind in kinds.items():
        if not isinstance(document[name], kind):
            raise DraftcertError(f"{path}: {name} = {shown(document[name])} is no {kind.__name__}")
    if not all(isinstance(suite, str) for suite in document["suites"]):
        raise DraftcertError(f"{path}: suites = {shown(document['suites'])} are not names")
    return document


def strict_json(text: str, where: str) -> Any:
    """The JSON document in a text that stands at `where`, refused where a key stands twice or a number is none."""
    return parse_json(text, where, object_pairs_hook=_once, parse_constant=_no_number)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise DraftcertError(f"the key {shown(key)} stands twice")
        found[key] = value
    return found


def _no_number(name: str) -> Any:
    raise DraftcertError(f"{name} is no number of JSON")


def fault_of(case: Case, answer: Any) -> str | None:
    """What is wrong with the answer to a case; `None` if nothing is."""
    fields = FIELDS_OF_SUITE.get(case["suite"].partition("/")[0], FIELDS)
    if not isinstance(answer, dict) or not answer:
        return f"the answer {shown(answer)} is no object with {', '.join(fields)}"
    if unknown := set(answer) - set(fields):
        return f"the answer has a field {shown(min(unknown))}: its fields are {', '.join(fields)}"
    if case["suite"] == "tree_inputs":
        return _fault_of_inputs(case["expected"], answer)
    if case["suite"].startswith("sampling/"):
        return _fault_of_samples(case, answer)
    expected = case["expected"]
    if "refused" in answer or "refused" in expected:
        refused, may = list(answer) == ["refused"] and answer["refused"] is True, case.get("may_refuse")
        what = "refused" if may or "refused" in expected else expected
        return None if refused and what == "refused" else f"{shown(answer)}, not {what} ({case['note']})"
    for field, value in answer.items():
        if not (type(value) is int if field == "num_accepted_tokens" else _tokens(value)):
            return f"{field}: {shown(value)} is of another type"
    for field, wanted in expected.items():
        if answer.get(field) != wanted:
            return f"{field}: {shown(answer.get(field))}, not {wanted} ({case['note']})"
    return None


def _tokens(value: Any) -> bool:
    """Whether it is a list of integers: JSON's true is not 1, and 1.0 is no token."""
    return isinstance(value, list) and all(type(each) is int for each in value)


def _is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and isfinite(value))


def _fault_of_inputs(expected: Case, answer: Case) -> str | None:
    positions = answer.get("position_ids")
    if not _tokens(positions) or positions != expected["position_ids"]:
        return f"position_ids: {shown(positions)}, not {expected['position_ids']}"
    rows, wanted = answer.get("attention_weights"), expected["attention_weights"]
    if not isinstance(rows, list) or len(rows) != len(wanted):
        return f"attention_weights: {shown(rows)} is no list of {len(wanted)} rows"
    for node, (row, right) in enumerate(zip(rows, wanted, strict=True)):
        if not isinstance(row, list) or len(row) != len(right) or not all(map(_is_number, row)):
            return f"attention_weights of node {node}: {shown(row)} is no list of {len(right)} numbers"
        if any(abs(Fraction(found) - Fraction(weight)) > ATTENTION for found, weight in zip(row, right, strict=True)):
            return f"attention_weights of node {node}: {shown(row)}, not {', '.join(right)}"
    return None


def _fault_of_samples(case: Case, answer: Case) -> str | None:
    if len(answer) != 1:
        return "the answer has counts and probabilities: give one of them"
    ((kind, pairs),) = answer.items()
    found: dict[tuple[int, ...], Any] = {}
    for pair in pairs if isinstance(pairs, list) else [pairs]:
        match pair:
            case [[*tokens], number] if _tokens(tokens) and _is_number(number):
                if tuple(tokens) in found:
                    return f"{kind}: {tokens} stands twice"
                found[tuple(tokens)] = number
            case _:
                return f"{kind}: {shown(pair)} is no pair of output_tokens and a number"
    exact = {tuple(each["output_tokens"]): Fraction(each["exact"]) for each in case["expected"]["outcomes"]}
    if kind == "probabilities":
        for tokens in found.keys() | exact.keys():
            if abs(Fraction(found.get(tokens, 0)) - exact.get(tokens, 0)) > CLOSE:
                return f"{list(tokens)} with probability {shown(found.get(tokens, 0))}, not {exact.get(tokens, 0)}"
        return None
    if not all(type(number) is int and number >= 0 for number in found.values()):
        return "counts: not all are whole numbers of 0 or more"
    trials = sum(found.values())
    if not TRIALS <= trials <= MOST_TRIALS:
        return f"counts: {shown(trials)} trials: run at least {TRIALS}, and at most {MOST_TRIALS}"
    for tokens in found.keys() | exact.keys():
        count, p = found.get(tokens, 0), exact.get(tokens, Fraction(0))
        if not plausible(count, trials, p):
            return f"{list(tokens)} {count} times in {trials}: that is not the probability {p} ({case['note']})"
    return None


def plausible(count: int, trials: int, probability: Fraction) -> bool:
    """Whether so many of these trials can be by chance: neither exact binomial tail is below its share of FALSE_ALARM.

    >>> plausible(5000, 10_000, Fraction(1, 2)), plausible(5300, 10_000, Fraction(1, 2)), plausible(1, 10, Fraction(0))
    (True, False, False)
    """
    share = float(FALSE_ALARM / (2 * number_of_outcomes()))
    at_least, at_most = binom.sf(count - 1, trials, float(probability)), binom.cdf(count, trials, float(probability))
    return bool(min(at_least, at_most) >= share)
