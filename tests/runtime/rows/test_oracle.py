"""Rows at the edges, judged by the definitions to 60 digits (oracle.py)."""

import math
import random
from dataclasses import replace

import mpmath
import pytest
import torch
from mpmath import mpf

from draftcert.runtime import Certificate
from draftcert.runtime.rows import certify, operators
from draftcert.runtime.rows.cpu import bindings
from draftcert.runtime.rows.program import encoded
from draftcert.theory import parse_rule
from tests.runtime.rows import oracle

INF = math.inf
DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
IMPLEMENTATIONS = ("portable", "avx2", "avx512", "reference")
ROWS = 90


def rounded(x, dtype):
    """The nearest number of a type; what is beyond its largest number is that."""
    largest = torch.finfo(dtype).max
    return torch.tensor([z if math.isinf(z) else min(max(z, -largest), largest) for z in x], dtype=torch.float64).to(
        dtype
    )


def a_target(source, dtype, temperature):
    """Logits of any size up to 10^38 temperatures: margins from an ulp up, ties, masks finite and infinite."""
    size, info = source.randint(2, 6), torch.finfo(dtype)
    lowest = max(info.min, -1e290) * min(temperature, 1.0)  # over the temperature it is a number
    scale = temperature * 10 ** source.choice([-30, -6, -1, 0, 0, 0, 0.5, 1, 2, 20, 37])
    row = [source.gauss(0, 1) * scale + source.choice([0, 0, 0, 30, 1e30]) * temperature for _ in range(size)]
    first, second = source.sample(range(size), 2)
    if source.random() < 0.5:
        row[second] = row[first] * (1 - source.choice([0, 1, 4]) * info.eps) - source.choice([0, 0, 1e-3]) * temperature
    for token in range(size):
        if token != first and source.random() < 0.25:
            row[token] = source.choice([-INF, -INF, lowest, lowest / 3, -95 * temperature, -800 * temperature])
    return rounded(row, dtype)


def a_rule(source, row):
    """Parameters at 0 and 1, usual ones, and within an ulp of what decides a token of this row."""
    usual = ["0", "1", "0.1", "0.3", "0.5", "0.9", "1e-30"]
    p = [float(x) for x in row.p]
    token = source.randrange(len(p))

    def near(x):
        for _ in range(source.choice([0, 1, 1, 3])):
            x = math.nextafter(x, source.choice([-INF, INF]))
        return repr(min(max(x, 0.0), 1.0))

    atoms = {
        "strict_greedy": [[""]],
        "top_m": [[str(source.randint(1, 4))]],
        "additive": [usual, [near(max(p) - p[token])]],
        "multiplicative": [usual, [near(p[token] / max(p))]],
        "absolute": [usual, [near(p[token])]],
        "typical": [usual, [near(p[token])]],
        "typical_floor": [usual, [near(p[token])]],
        "mars": [usual],
    }

    def atom():
        name = source.choice(list(atoms))
        arguments = [source.choice(source.choice(atoms[name]))]
        if name.startswith("typical"):
            arguments.append(source.choice(usual))
        if name == "typical_floor":
            arguments.append(source.choice(["0", "1e-5", "0.1", "1"]))
        return f"{name}({', '.join(arguments)})" if arguments != [""] else name

    return source.choice(["{}", "{}", "{} & {}", "{} | {}"]).format(atom(), atom())


def a_draft(source, row, target, dtype, temperature, worst):
    """Equal to the target, at the boundary or within a thousandth of it, or anything."""
    kind = source.random()
    if kind < 0.2 or (worst is None and kind < 0.5):
        return target.clone()
    if worst is None or kind < 0.3:
        noise = source.choice([1e-6, 0.1, 3.0]) * temperature
        draft = [z + source.gauss(0, noise) if z > -INF else z for z in target.tolist()]
        if source.random() < 0.3:
            lowest = max(torch.finfo(dtype).min, -1e290) * min(temperature, 1.0)
            draft[source.randrange(len(draft))] = source.choice([-INF, lowest, lowest / 2])
        return rounded(draft, dtype) if max(draft) > -INF else target.clone()
    way = 1 - mpf(source.choice([0, 1e-12, 1e-7, 1e-5, 1e-3]))
    with mpmath.workdps(oracle.DIGITS):
        q = [(1 - way) * x + way * y for x, y in zip(row.p, worst, strict=True)]
        top = max(q)
        return rounded([float(mpf(temperature) * mpmath.log(x / top)) if x > 0 else -INF for x in q], dtype)


def cases(count, seed):
    source = random.Random(seed)
    while count:
        dtype = source.choice(DTYPES)
        temperature = source.choice([1.0, 1.0, 1.0, 0.7, 1e-6, 1e-3, 1e3, 1e6])
        target = a_target(source, dtype, temperature)
        if target.max() == -INF:
            continue
        row = oracle.Row.of(target.tolist(), temperature)
        rule, candidates = a_rule(source, row), source.randint(1, min(3, len(row.p) - 1))
        told = oracle.verdicts(row, rule)
        least, most = ({x for x, verdict in enumerate(told) if verdict >= bound} for bound in (1, 0))
        bounds = [oracle.certificate(row.p, accepted, candidates) for accepted in (least, most)]
        draft = a_draft(source, row, target, dtype, temperature, bounds[1][1])
        kl = oracle.kl(row.p, oracle.Row.of(draft.tolist(), temperature).p)
        clear = 0 not in oracle.verdicts(replace(row, noise=mpf("1e-9")), rule)
        counts = (len(least), len(most), clear)
        yield target, draft, rule, candidates, temperature, counts, (bounds[0][0], bounds[1][0]), kl
        count -= 1


@pytest.fixture(scope="module")
def judged():
    return list(cases(ROWS, seed=0))


@pytest.fixture(params=IMPLEMENTATIONS)
def evaluated(request):
    """`certify` by one implementation."""
    if request.param == "reference":

        def call(target, rule, candidates, draft, temperature, sound=True):
            steps = encoded(parse_rule(rule))
            return Certificate(*operators.certify_by_tensors(target, draft, steps, candidates, temperature, sound, 16))

        yield call
        return
    library = bindings.library()
    if library.draftcert_use_instruction_set(IMPLEMENTATIONS.index(request.param)) < 0:
        pytest.skip("not on this machine")
    yield lambda *arguments, sound=True: certify(*arguments, sound=sound)
    library.draftcert_use_instruction_set(-1)


SLACK = mpf(10) ** -38
"""What 60 digits lose where a divergence cancels."""
LOST = mpf("1e-5")
"""What a sound certificate may lose where its sums are in float32, relative to it."""


def faults(found, counts, bounds, kl):
    """What is wrong with a certificate; `counts` and `bounds` are those of the fewest and the most accepted tokens.

    The last of `counts` says that no token lies near a threshold.
    """
    value, count = found.value.item(), found.accepted.item()
    told = counts[0] == counts[1] and bool(found.exact)
    wrong = {
        "certificate too large": value > bounds[1] * (1 + SLACK) + SLACK,
        "too many accepted": count > counts[1],
        "divergence too small": found.kl.item() < kl * (1 - SLACK) - SLACK,
        "certified wrongly": bool(found.certified) and kl >= bounds[1],
        "undecided without need": counts[2] and not bool(found.exact),
        "too few accepted": told and count < counts[0],
        "certificate far too small": told and value < bounds[0] * (1 - LOST) - SLACK,
        "divergence far too large": found.kl.item() > kl * (1 + mpf(1) / 32) + mpf("1e-12"),
        "not certified": told and not bool(found.certified) and kl < bounds[0] * (1 - LOST) - SLACK,
    }
    return [name for name, there in wrong.items() if there]


@pytest.mark.filterwarnings("ignore:the rule compares raw logits")
def test_no_claim_is_too_large_and_none_far_too_small(judged, evaluated):
    wrong = []
    for target, draft, rule, candidates, temperature, counts, bounds, kl in judged:
        found = evaluated(target, rule, candidates, draft, temperature)
        if names := faults(found, counts, bounds, kl):
            wrong.append((names, target, draft, rule, candidates, temperature, counts, bounds, kl, found))
    assert not wrong, (len(wrong), wrong[0])
