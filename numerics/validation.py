"""`validate`: do independent solvers agree with the theory's formulas, and to how many digits?

A case is made from (seed, family, index) alone and its outcome holds no time and no place, so the same seed gives the
same report in one process, in many, and on a Ray cluster; results saved on the way make a run resumable.
"""

from __future__ import annotations

import json
import math
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from functools import partial
from importlib.metadata import version
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import numpy as np

from ..support.files import json_lines, writable_folder
from ..support.workers import alike, run_tasks
from ..theory import FORMULAS, RULES, DraftcertError, Rule, parse_rule
from ..theory.errors import Argument
from ..theory.formula import AGREED_DIGITS
from ..theory.names import unknown_name
from ..theory.numbers import items, real_number, whole_number
from ..theory.presets import example_rules
from .agreement import COMPARED, WORKING_DIGITS, Solved, agreement, certify
from .attack import attack
from .balls import to_mpf
from .certificate import ExactCertificate, certificate_of_row
from .divergence import DIVERGENCES, Divergence
from .enclosure import rounded
from .families import FAMILIES, make_row
from .mutation import mutants
from .polish import Optimum, certified_digits
from .program import ALL_CHOICES, Solution, least_acceptance, solve
from .report import Outcome, ValidationReport
from .row import ExactRow, read_row
from .sampling import kl_for_sampling_acceptance, sampling_acceptance
from .sharpness import Reached, Search, search, searches
from .shrink import shrink

LOGIT_RATIOS = ("19/20", "9/10", "1/2")
SOLVER_DIGITS = 3.5
"""Digits in nats that a solver's own answer must reach: a first-order solver on a degenerate program has few."""
SOLVER_TOKENS = 1000
"""Above this vocabulary no solver is asked; the worst draft is certified by weak duality alone."""
EXTREMAL = {"extremal": (1, 2), "extremal tree": (1, 1)}
"""Families in which margin bounds are attained, with the numbers of accepted tokens for which they are."""
SAMPLED_EVERY, SAMPLED_TOKENS, SAMPLED_LEAST, SAMPLED_ERROR = 20, 5, 1e-4, 1e-6
"""One case in so many is also asked how often sampling accepts: of few tokens, since every set of them is a program,
none of them too unlikely for a solver in double precision. Last, the error that its answer may have."""
MUTATION_CASES, MORE_MUTATION_CASES = 5, 100
"""The first cases of every family also face the mutated formulas. While some of those are not noticed, up to so many
more cases of every family do: which of them a case can notice depends on the rule and candidates that were drawn."""


@dataclass(frozen=True)
class Case:
    """One target, rule, number of candidates and divergence; made again from these few values."""

    family: str
    index: int
    seed: int
    tokens: int
    rule: Rule
    candidates: int
    divergence: str = "kl"
    solver: str = "CLARABEL"
    logit_ratio: str | None = None

    @property
    def values(self) -> dict[str, Any]:
        """The case as plain data."""
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"rule": str(self.rule)}

    @property
    def key(self) -> str:
        """Identity of the case in saved results."""
        return json.dumps(list(self.values.values()))


@dataclass(frozen=True)
class Profile:
    """How much a profile does: cases per family (None: no end) and the vocabularies it goes through."""

    per_family: int | None
    sizes: tuple[int, ...]
    """In turn. As every third case takes the next of five divergences, their number must have no divisor in common with
    3 or 5: else some divergences would never meet some sizes."""
    large: tuple[int, ...] = ()
    """Vocabularies of the last cases, with heavy-tailed logits only."""
    search_every: int | None = None
    """One in so many of the margin bounds is attacked; none if not given."""


PROFILES = {
    "quick": Profile(33, (2, 3, 4, 5), search_every=31),
    "full": Profile(2000, (2, 3, 4, 5, 6, 7, 8, 30), (1000, 32_000, 262_144), search_every=1),
    "soak": Profile(None, (2, 3, 4, 5, 6, 7, 8, 9, 10, 30, 100)),
}


def cases(profile: str, seed: int, rules: Sequence[Rule] | None = None) -> Iterator[Case]:
    """The cases of a profile in a fixed order, without end for `soak`; of the example rules if none are given."""
    plan = PROFILES[profile]
    rules = rules or example_rules()
    for index in count() if plan.per_family is None else range(plan.per_family):
        yield from _of_every_family(plan, index, seed, rules)
    for index, tokens in enumerate(plan.large):
        yield Case("language model", index, seed, tokens, rules[index % len(rules)], 1 + index)


def _of_every_family(plan: Profile, index: int, seed: int, rules: Sequence[Rule]) -> Iterator[Case]:
    names = list(DIVERGENCES)
    for position, family in enumerate(FAMILIES.values()):
        draw = random.Random(f"{seed}/{family.name}/{index}")
        tokens = max(family.least, plan.sizes[index % len(plan.sizes)])
        rule = rules[(index + position) % len(rules)]
        candidates = draw.randint(1, min(tokens - 1, 4))
        if family.name in EXTREMAL and index % 2:  # where a margin bound is attained: all others compete
            accepted = min(EXTREMAL[family.name][index // 2 % 2], tokens - 1)
            rule, candidates = RULES["top_m"](accepted), tokens - accepted
        yield Case(
            family.name,
            index,
            seed,
            tokens,
            rule,
            candidates,
            divergence=names[index // 3 % len(names)] if index % 3 == 2 else "kl",
            solver="SCS" if index % 10 == 9 else "CLARABEL",
            logit_ratio=draw.choice(LOGIT_RATIOS) if rule.needs_logits else None,
        )


def run_case(case: Case, mutated: bool = False) -> Outcome:
    """Solve, polish and compare one case, and attack its certificate; a failure is shrunk to a minimal one.

    `mutated`: it faces the mutated formulas whatever its number.
    """
    row = make_row(FAMILIES[case.family], case.seed, case.index, case.tokens)
    outcome = _outcome(case, row, mutated)
    if outcome.failure is None or case.tokens > ALL_CHOICES:
        return outcome

    def failure(weights: Sequence[int]) -> dict[str, Any] | None:
        if not any(weights):
            return None
        return _outcome(replace(case, tokens=len(weights)), read_row(weights, normalize=True)).failure

    smallest = shrink(row.weights, lambda weights: failure(weights) is not None, least=case.candidates + 1)
    return replace(outcome, failure=outcome.failure | {"minimal": failure(smallest)})


def reproduce(failure: Mapping[str, Any]) -> Outcome:
    """Run a failure of a report again, or the minimal one in it: it is the input in full."""
    values: dict[str, Any] = {each.name: failure[each.name] for each in fields(Case)}
    values["rule"] = parse_rule(failure["rule"])
    case = Case(**values)
    return _outcome(case, read_row(failure["probabilities"]))


def _outcome(case: Case, row: ExactRow, mutated: bool = False) -> Outcome:
    try:
        return _compare(case, row, mutated)
    except Exception as error:  # a crash is a finding like any other, and a run of hours outlives it
        failure = case.values | {"error": f"{type(error).__name__}: {error}", "probabilities": row.text}
        return Outcome(case.key, case.family, "", 0.0, None, failure=failure)


def _compare(case: Case, row: ExactRow, mutated: bool) -> Outcome:
    divergence = DIVERGENCES[case.divergence]()
    ratio = None if case.logit_ratio is None else Fraction(case.logit_ratio)
    found = certificate_of_row(row, case.rule, case.candidates, AGREED_DIGITS, ratio)
    accepted = len(found.accepted)
    solutions = _solutions(case, row, found, divergence)
    if case.index % SAMPLED_EVERY == 1:
        _compare_sampling(case, row)
    small = case.tokens <= ALL_CHOICES
    optimum = certify(row, accepted, solutions, divergence, WORKING_DIGITS if small else AGREED_DIGITS + 10)
    if optimum is None:
        if (found.level is None) != (not solutions) or (case.divergence != "reverse_kl" and solutions):
            raise DraftcertError(f"the program has no solution, but the certificate is {found}")
        return Outcome(case.key, case.family, "inf", float(WORKING_DIGITS), None)
    digits = [certified_digits(optimum.enclosure), float(WORKING_DIGITS)]
    caught: dict[str, list[int]] = {}
    if case.divergence == "kl":
        attack(found, random.Random(case.key))
        digits.append(certified_digits(optimum.enclosure, found.ball))
    if small:
        solved = Solved(row, accepted, case.candidates, optimum, divergence)
        digits += [d for f in COMPARED.values() if (d := agreement(f, solved)) is not None]
        if mutated or case.index < MUTATION_CASES or case.family in EXTREMAL or case.divergence != "kl":
            caught = _caught(solved)
    worst = float(min(digits))
    solver_digits = _solver_digits(optimum, solutions)
    value = rounded(to_mpf(optimum.enclosure), 30)
    failure = None
    if worst < AGREED_DIGITS or (solver_digits is not None and solver_digits < SOLVER_DIGITS):
        failure = case.values | {
            "probabilities": row.text,
            "certificate": str(found),
            "certified optimum": value,
            "solver value": min(solution.value for solution in solutions),
            "digits": worst,
        }
    return Outcome(case.key, case.family, value, worst, solver_digits, caught, failure)


def _compare_sampling(case: Case, row: ExactRow) -> None:
    """The least acceptance of speculative sampling for the row, at a drawn divergence and lenience, and its inverse."""
    if len(row) > SAMPLED_TOKENS or min(row.weights) < SAMPLED_LEAST * row.total:
        return
    draw = random.Random(f"{case.key}/sampling")
    divergence, lenience = Fraction(draw.randint(1, 60), 40), Fraction(draw.randint(1, 4), 4)
    found = sampling_acceptance(divergence, lenience, probabilities=row.text, digits=AGREED_DIGITS)
    solved = least_acceptance(row, float(divergence), float(lenience))
    if abs(float(found) - solved) > SAMPLED_ERROR:
        raise DraftcertError(
            f"sampling at {divergence} nats and lenience {lenience} accepts {found} at least, by the programs {solved}"
        )
    if found.upper < 1:  # else nothing can be rejected, at no divergence of a whole range
        back = kl_for_sampling_acceptance(found, lenience, probabilities=row.text, digits=AGREED_DIGITS)
        if abs(float(back) - float(divergence)) > SAMPLED_ERROR:
            raise DraftcertError(f"acceptance {found} at lenience {lenience} is {back} nats, not {divergence}")


def _solutions(case: Case, row: ExactRow, found: ExactCertificate, divergence: Divergence) -> tuple[Solution, ...]:
    """The solver's answers; without any, a start of our own, from which weak duality proves an optimum or refuses.

    Solvers work in double precision and give up on a few programs whose probabilities are 1e-300.
    """
    if case.tokens <= SOLVER_TOKENS:
        with suppress(DraftcertError):
            return solve(row, len(found.accepted), case.candidates, divergence=divergence, solver=case.solver)
    if found.witness is None:
        return ()
    draft = np.array([float(q) for q in found.witness])
    return (Solution(math.nan, draft, found.competitors, "none", claimed=False),)


def _solver_digits(optimum: Optimum, solutions: Sequence[Solution]) -> float | None:
    """Digits, relative to 1 or more nats, of what a solver claims to be optimal; at most a double's.

    That is its value for the best choice of competitors, or one below the certified optimum for another choice. None
    where it claims nothing.
    """
    best = float(to_mpf(optimum.enclosure))
    claims = [s.value for s in solutions if s.claimed and (s.competitors == optimum.competitors or s.value < best)]
    errors = [abs(best - value) / max(1.0, abs(value)) for value in claims]
    return min(16.0, -math.log10(max(*errors, 1e-16))) if errors else None


def _caught(solved: Solved) -> dict[str, list[int]]:
    """Which mutated formulas this case refuses, by position."""
    caught: dict[str, list[int]] = {}
    for formula in COMPARED.values():
        digits = (agreement(mutant, solved) for mutant in mutants(formula))
        caught[formula.name] = [k for k, each in enumerate(digits) if each is not None and each < AGREED_DIGITS]
    return {name: found for name, found in caught.items() if found}


def validate(
    profile: str = "quick",
    seed: int = 0,
    *,
    rules: Sequence[Rule | str] | None = None,
    progress: Callable[[int, int | None], None] | None = None,
    processes: int | None = None,
    ray: str | None = None,
    results: Path | str | None = None,
    hours: float | None = None,
) -> ValidationReport:
    """Compare the theory's certificates with exact convex programs on families of targets, and attack its bounds.

    Every case is solved by cvxpy, polished to a proven optimum, and compared with the theory's formulas in value and
    radius; its certificate is attacked with drafts just below it; false formulas must be noticed when all rules take
    part in `quick` or `full`. A global optimiser tries to beat the margin bounds and must come close to the sharp ones.

    Args:
        profile: `quick` (a few hundred cases), `full` (tens of thousands) or `soak` (until `hours` are over).
        seed: the same seed gives the same report in any layout.
        rules: the rules, or their texts, to go through; the example rules if not given.
        progress: called as `progress(done, total)`; the total is None for `soak`.
        processes: local processes; all cores if not given.
        ray: address of a Ray cluster ("auto", "ray://host:10001", "local") to spread the work over instead.
        results: a JSON-lines file the outcomes are added to as they come. What is in it already is not computed again.
        hours: for how long `soak` goes on.

    Raises:
        DraftcertError: unknown profile or rule, `soak` without `hours`, or results that are another run's, damaged or
            in use.
    """
    if profile not in PROFILES:
        raise unknown_name("profile", profile, PROFILES)
    seed = whole_number(seed, "seed", 0)
    if (hours is None) == (profile == "soak"):
        raise DraftcertError("'soak' needs ", Argument("hours"), ", and only 'soak' takes them")
    if hours is not None and not (hours := real_number(hours, "hours")) >= 0:
        raise DraftcertError(Argument("hours", hours), ": give a number from 0 up")
    deadline = math.inf if hours is None else time.monotonic() + 3600 * hours
    plan = PROFILES[profile]
    chosen = example_rules() if rules is None else tuple(map(parse_rule, items(rules, "rules")))
    if not chosen:
        raise DraftcertError(Argument("rules", "[]"), ": without a rule nothing is validated")
    attacked = list(searches(chosen, seed))[:: plan.search_every] if plan.search_every else []
    total = None if plan.per_family is None else plan.per_family * len(FAMILIES) + len(plan.large) + len(attacked)
    found: dict[str, Outcome | Reached] = {}
    if results:
        writable_folder(Path(results).parent)
    head = {
        "profile": profile,
        "seed": seed,
        "rules": [[str(rule), rule.sha256] for rule in chosen],
        "formulas": {name: formula.sha256 for name, formula in FORMULAS.items()},
        "draftcert": version("draftcert"),
    }
    log = json_lines(results, head) if results else nullcontext(([], None))
    with log as (saved, save):
        known = {each.key: each for each in map(_read, saved)}
        wanted: list[str] = []

        def unknown(tasks: Iterable[Case | Search]) -> Iterator[Case | Search]:
            for task in tasks:
                if time.monotonic() > deadline:
                    return
                wanted.append(task.key)
                if task.key in known:
                    found[task.key] = known[task.key]
                else:
                    yield task

        def go_through(tasks: Iterable[Case | Search], mutated: bool = False) -> ValidationReport:
            work = alike(partial(run, mutated=mutated))
            for each in run_tasks(unknown(tasks), work, lambda task: task.key, processes=workers, ray=ray, fork=True):
                found[each.key] = each
                if save:
                    save(asdict(each))
                if progress:
                    progress(len(found), total and max(total, len(found)))
            in_order = [found[key] for key in wanted]
            return ValidationReport(
                profile,
                seed,
                tuple(each for each in in_order if isinstance(each, Outcome)),
                tuple(each for each in in_order if isinstance(each, Reached)),
                whole=rules is None and plan.per_family is not None,
                judged={name: head[name] for name in ("rules", "formulas")},
            )

        workers = processes or os.cpu_count() or 1
        report = go_through(chain(attacked, cases(profile, seed, chosen)))
        more = iter(range(plan.per_family or 0, (plan.per_family or 0) + MORE_MUTATION_CASES))
        while any(row.missed for row in report.mutations) and (indexes := list(islice(more, MUTATION_CASES))):
            further = (_of_every_family(plan, index, seed, chosen) for index in indexes)
            report = go_through(chain.from_iterable(further), mutated=True)
    if progress:
        progress(len(found), total and len(found))
    return report


def _read(values: dict[str, Any]) -> Outcome | Reached:
    """A saved result."""
    return Reached(**values) if "bound" in values else Outcome(**values)


def run(task: Case | Search, mutated: bool = False) -> Outcome | Reached:
    """One case or one search; `mutated` as for a case."""
    if isinstance(task, Case):
        return run_case(task, mutated)
    try:
        return search(task)
    except Exception as error:  # as for a case
        failure = task.values | {"error": f"{type(error).__name__}: {error}"}
        return Reached(task.key, "", False, False, [], [], [], failure)
