"""Sharpness by search: a global optimiser tries to beat every margin bound, and must come close without crossing it.

The optimiser knows nothing of the theory's extremal targets. It moves targets that keep the known margin, values them
in floating point by the rule's predicate alone, and the best it finds is valued again by `certificate`, exactly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from math import lcm
from typing import Any, Literal

import mpmath
import numpy as np
import sympy
from flint import arb
from scipy.optimize import differential_evolution

from ..theory import DraftcertError, Rule
from ..theory.conditions import Condition, RankCondition, RowCondition, ThresholdCondition, fold_conditions
from ..theory.presets import example_rules
from ..theory.statistics import LOGIT_RATIO, TOP, Entropy
from .balls import Mpf, bounds, to_mpf
from .certificate import projected
from .decide import RowStatistics
from .enclosure import rounded
from .margins import MarginBound, margin_bounds
from .row import ExactRow
from .shrink import shrink

MARGINS = ("1/20", "1/5", "1/2", "9/10")
CANDIDATES = (1, 2, 3, 4)
KNOWN: tuple[Literal["top2", "coverage"], ...] = ("top2", "coverage")
SIZES = (None, 3, 4, 5)
"""The vocabularies that bounds are attacked for: of any size, and of so many tokens."""
VOCABULARIES = (2, 3, 5, 8, 16, 10**100)
"""How many tokens may have probability; beyond `DENSE` all further ones have the same."""
DENSE = 16
ZEROS = 10
"""Tokens of probability 0 that a rule may accept by their rank, before those that compete."""
NEAR_THRESHOLD = 1e-13
"""Relative distance from a threshold within which a floating-point comparison is not trusted."""
RATIOS = (Fraction(1), Fraction(0))
"""Ratios of the two largest logits, which probabilities leave free."""
DIGITS = 20
GENERATIONS, CLIMB = 150, 120
NEAR, CLOSE = 1e-5, 2e-2
"""How close to a sharp bound, in nats, a target must come: to one that is attained, and to one that is approached."""
FINEST = 10**12
"""Unknowns of a counterexample are simplified from multiples of one over it."""
HUGE = 1e3
"""Stands for an infinite certificate in the optimiser."""


@dataclass(frozen=True)
class Targets:
    """All targets over `tokens` tokens with `p_(1) - p_(rank) = margin`, by unknowns in [0, 1].

    Tokens 2 to rank - 1 lie in between, at a share of the margin above `p_(rank)`; the others at a share of `p_(rank)`.
    The last unknown is for all tokens beyond `DENSE` at once: their mass, up to about 3/4, and then their probability.
    """

    margin: Fraction
    rank: int
    tokens: int

    @property
    def tail(self) -> int:
        """How many tokens have one probability in common."""
        return max(0, self.tokens - DENSE)

    @property
    def multiplicities(self) -> list[int]:
        """How many tokens have the probabilities that `of` gives."""
        return [1] * min(self.tokens, DENSE) + [self.tail] * (self.tail > 0)

    @property
    def unknowns(self) -> int:
        """Their number."""
        return len(self.multiplicities) - 2

    def of(self, unknowns: np.ndarray) -> np.ndarray:
        """Probabilities in descending order, one target a row."""
        return self._place(*self._shares(unknowns), float(self.margin))

    def exactly(self, unknowns: np.ndarray) -> list[Fraction]:
        """The same of one target, without rounding: it has the margin exactly."""
        between, below = (
            np.array([*map(Fraction, share[0].tolist())], dtype=object)[None] for share in self._shares(unknowns[None])
        )
        return list(self._place(between, below, self.margin)[0])

    def _shares(self, unknowns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the tokens between and below lie, in descending order."""
        between, below = unknowns[:, : self.rank - 2], unknowns[:, self.rank - 2 :]
        between = between * float(min(Fraction(1), (1 - self.margin) / self.margin if self.margin else 1))
        if self.tail:
            share = below[:, -1:]
            thin = share * float(self.tail) ** (share**8 - 1)
            below = np.hstack([np.maximum(below[:, :-1], thin), thin])
        return -np.sort(-between, axis=1), -np.sort(-below, axis=1)

    def _place(self, between: np.ndarray, below: np.ndarray, margin: Any) -> np.ndarray:
        above = margin * between.sum(axis=1, keepdims=True)
        between = between * (1 - margin) / np.maximum(above, 1 - margin)  # together they have no more than the total
        weights = np.array(self.multiplicities[self.rank :], dtype=below.dtype)
        total = self.rank + (below * weights).sum(axis=1, keepdims=True)
        low = (1 - margin * (1 + between.sum(axis=1, keepdims=True))) / total
        return np.hstack([low + margin, low + margin * between, low, low * below])


@dataclass(frozen=True)
class Values:
    """Certificates of targets under one rule, over just so many tokens or over a vocabulary of any size.

    In one of any size there are more tokens of probability 0 for competitors. A supremum may also be infinite, where
    the rule's thresholds accept every token of a vocabulary without these.
    """

    rule: Rule
    candidates: int
    space: Targets
    ratio: Fraction
    supremum: bool
    any_size: bool = True

    def of(self, targets: np.ndarray, shift: float) -> np.ndarray:
        """The certificates of targets, one a row, in floating point, thresholds being shifted by a relative `shift`."""
        tokens = targets.shape[1]

        def count(condition: Condition) -> np.ndarray:
            return self._count(condition, targets, shift)

        accepted = fold_conditions(self.rule.accepts, count, np.minimum, np.maximum)
        spare = self.candidates if self.any_size else 0
        more = np.repeat(targets[:, -1:] if self.space.tail else np.zeros((len(targets), 1)), spare, axis=1)
        most = tokens + spare - self.candidates
        values = _projected(np.hstack([targets, more]), np.minimum(accepted, most), self.candidates)
        return np.where(accepted > most, HUGE, values)

    def exactly(self, target: Sequence[Fraction]) -> arb:
        """The certificate of one target, to `DIGITS` digits."""
        unit = lcm(*(p.denominator for p in target))
        weights = [int(p * unit) for p in target]
        tokens, multiplicities = len(weights), tuple(zip(weights, self.space.multiplicities, strict=True))
        weights += [weights[-1] if self.space.tail else 0] * (self.candidates + ZEROS if self.any_size else 0)
        row = ExactRow(tuple(weights), unit, tuple(range(len(weights))))
        statistics = RowStatistics(row, self.ratio, multiplicities)
        accepted = statistics.count(self.rule)
        everything = self._may_be_infinite and statistics.count(self.rule, ranks=False) >= tokens
        if everything or accepted + self.candidates > len(weights):
            return arb("inf")
        if not accepted:
            return arb(0)
        p = [row.probability(x) for x in range(accepted + self.candidates)]
        return projected(p[:accepted], p[accepted:], DIGITS)

    @property
    def _may_be_infinite(self) -> bool:
        """Whether nothing can be rejected where all tokens are accepted: no tokens of probability 0 are added then."""
        return self.any_size and (self.supremum or self.space.tail > 0)

    def _count(self, condition: Condition, targets: np.ndarray, shift: float) -> np.ndarray:
        """How many of the tokens are accepted; one more than there are, for all of any vocabulary."""
        rows, tokens = targets.shape
        if isinstance(condition, RankCondition):
            return np.full(rows, min(int(sympy.floor(condition.limit)), tokens))
        if isinstance(condition, RowCondition):
            return np.where(self._statistic(condition.holds, targets), tokens + 1, 0)
        limit = self._statistic(condition.threshold, targets)[:, None] * (1 + shift)
        accepts = np.greater if condition.strict else np.greater_equal
        count = accepts(targets, limit).sum(axis=1)
        if not self.any_size:
            return count
        everything = count == tokens if self._may_be_infinite else accepts(0, limit[:, 0])
        return np.where(everything, tokens + 1, count)

    def _statistic(self, expression: Any, targets: np.ndarray) -> np.ndarray:
        function, floors = _statistic(expression, self.ratio)
        values = [self._entropy(targets, floor) for floor in floors]
        return np.broadcast_to(function(targets[:, 0], *values), len(targets))

    def _entropy(self, targets: np.ndarray, floor: float) -> np.ndarray:
        logarithms = np.log(targets + floor, out=np.zeros_like(targets), where=targets > 0)
        return -(targets * logarithms) @ np.array(self.space.multiplicities, dtype=float)


@lru_cache(maxsize=256)
def _statistic(expression: Any, ratio: Fraction) -> tuple[Callable[..., np.ndarray], list[float]]:
    """An expression in the statistics of a row as a function of its largest probability and of entropies, by floor."""
    entropies = sorted(expression.atoms(Entropy), key=sympy.default_sort_key)
    names = [sympy.Dummy() for _ in entropies]
    known = {
        LOGIT_RATIO: sympy.Rational(ratio.numerator, ratio.denominator),
        **dict(zip(entropies, names, strict=True)),
    }
    function = sympy.lambdify([TOP, *names], expression.xreplace(known), "numpy")
    return function, [float(entropy.args[0]) for entropy in entropies]


def _projected(p: np.ndarray, count: np.ndarray, candidates: int) -> np.ndarray:
    """The certificates of rows in descending order, the first `count` accepted: T1 by its level equation."""
    tokens = p.shape[1]
    position, count = np.arange(tokens), count[:, None]
    end = np.minimum(count + candidates, tokens)
    sums = np.hstack([np.zeros((len(p), 1)), np.cumsum(p, axis=1)])

    def first(limit: np.ndarray) -> np.ndarray:
        return np.take_along_axis(sums, limit, axis=1)

    # What accepted tokens have above a level, less what competitors have below it, at the level of every token.
    above, start = np.minimum(position, count), np.clip(position, count, end)
    excess = first(above) - above * p - (end - start) * p + first(end) - first(start)
    rows = np.arange(len(p))
    last = np.clip((excess <= 0).sum(axis=1) - 1, 0, tokens - 2)  # it grows as the level falls
    (left, right), (x, y) = ((a[rows, last], a[rows, last + 1]) for a in (excess, p))
    rise = right - left
    level = (x - (x - y) * np.divide(-left, rise, out=np.zeros_like(rise), where=rise > 0))[:, None]
    moved = (p > 0) & np.where(position < count, p > level, (position < end) & (p < level))
    values = (p * np.log(np.divide(p, level, out=np.ones_like(p), where=moved))).sum(axis=1)
    return np.where(count[:, 0] > 0, values, 0.0)


@dataclass(frozen=True)
class Search:
    """One margin bound to beat: made again from these few values."""

    rule: Rule
    candidates: int
    known: Literal["top2", "coverage"]
    margin: str
    supremum: bool
    seed: int = 0
    vocab_size: int | None = None
    """Number of tokens the bound speaks of; None for any, which are searched by `VOCABULARIES`."""

    @property
    def values(self) -> dict[str, Any]:
        """The search as plain data."""
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"rule": str(self.rule)}

    @property
    def key(self) -> str:
        """Identity of the search in saved results."""
        return json.dumps(list(self.values.values()))

    @property
    def stages(self) -> list[int]:
        """The vocabularies that are searched one after another, each from the best target of the last."""
        if self.vocab_size is None:
            return list(VOCABULARIES)
        return [tokens for tokens in VOCABULARIES if tokens < self.vocab_size] + [self.vocab_size]

    @property
    def bound(self) -> MarginBound:
        """The bound to beat."""
        return margin_bounds(
            self.rule, self.candidates, margin=self.margin, known=self.known, vocab_size=self.vocab_size, digits=DIGITS
        )[self.supremum]


def searches(rules: Sequence[Rule] | None = None, seed: int = 0) -> Iterator[Search]:
    """All margin bounds of these rules, the example rules if not given; what has no bound is passed over."""
    for rule, known in product(rules or example_rules(), KNOWN):
        try:
            margin_bounds(rule, margin=MARGINS[0], known=known, digits=1)
        except DraftcertError:
            continue
        for vocab_size, margin, candidates, supremum in product(SIZES, MARGINS, CANDIDATES, (False, True)):
            if vocab_size is None or vocab_size > candidates:
                yield Search(rule, candidates, known, margin, supremum, seed, vocab_size)


@dataclass(frozen=True)
class Reached:
    """How close to one margin bound a search came."""

    key: str
    bound: str
    sharp: bool
    attained: bool
    tokens: list[int]
    found: list[str]
    """The most extreme certificate found over so many tokens, valued exactly."""
    distances: list[float | None]
    """How far from the bound that is, in nats; None where only the bound is infinite."""
    failure: dict[str, Any] | None = None

    @property
    def wanted(self) -> dict[str, Any]:
        """What was searched for, as plain data."""
        return dict(zip((each.name for each in fields(Search)), json.loads(self.key), strict=True))

    @property
    def nearest(self) -> float | None:
        """The least distance of all vocabularies."""
        return min((distance for distance in self.distances if distance is not None), default=None)


def search(wanted: Search, bound: MarginBound | None = None) -> Reached:
    """Try to beat a bound (another than the theory's where one is given) in every vocabulary.

    It fails where a target lies beyond the bound, and where a sharp bound is not approached.

    Raises:
        DraftcertError: no bound is known, or its vocab_size is larger than `DENSE`.
    """
    if (wanted.vocab_size or 0) > DENSE:
        raise DraftcertError(f"vocab_size = {wanted.vocab_size}: bounds for up to {DENSE} tokens are searched")
    bound = bound or wanted.bound
    rule, margin = wanted.rule, Fraction(wanted.margin)
    rank = 2 if wanted.known == "top2" else wanted.candidates + 1
    spaces = [Targets(margin, rank, tokens) for tokens in wanted.stages if tokens >= rank]
    ratios = RATIOS if rule.needs_logits else RATIOS[:1]
    best, found, failure = np.zeros(0), [], None
    for space in spaces:
        any_size = space.tokens != wanted.vocab_size
        attempts = [Values(rule, wanted.candidates, space, ratio, wanted.supremum, any_size) for ratio in ratios]
        options = [
            (values, unknowns)
            for values in attempts
            for unknowns in (_optimise(values, best, wanted.seed), *_corners(space.unknowns))
        ]
        certificates = [values.exactly(space.exactly(unknowns)) for values, unknowns in options]
        extreme = (max if wanted.supremum else min)(range(len(options)), key=lambda k: to_mpf(certificates[k]))
        values, best = options[extreme]
        if wanted.vocab_size and any_size:  # a stage on the way, which the bound does not speak of
            continue
        found.append(to_mpf(certificates[extreme]))
        if _beyond(bound, certificates[extreme], wanted.supremum):
            failure = failure or _counterexample(values, best, bound)
    distances = [None if mpmath.isinf(d) else float(abs(d)) for d in map(partial(_distance, bound.value), found)]
    reached = Reached(
        wanted.key,
        rounded(bound.value, DIGITS),
        bound.sharp,
        bound.attained,
        [space.tokens for space in spaces][-len(found) :],
        [rounded(value, DIGITS) for value in found],
        distances,
    )
    if bound.sharp and (reached.nearest is None or reached.nearest > _reach(bound, wanted)):
        failure = failure or {"error": f"no target comes closer to the bound than {reached.nearest}"}
    return replace(reached, failure=failure and wanted.values | {"bound": reached.bound} | failure)


def _beyond(bound: MarginBound, certificate: arb, supremum: bool) -> bool:
    low, high = bounds(certificate)
    return low > bound.upper if supremum else high < bound.lower


def _counterexample(values: Values, unknowns: np.ndarray, bound: MarginBound) -> dict[str, Any]:
    """A target beyond the bound, with unknowns as simple as they can be."""
    space = values.space

    def target(parts: Sequence[int]) -> list[Fraction]:
        return space.exactly(np.array(parts) / FINEST)

    def fails(parts: tuple[int, ...]) -> bool:
        return _beyond(bound, values.exactly(target(parts)), values.supremum)

    parts = tuple(round(x * FINEST) for x in unknowns.tolist())
    simple = target(shrink(parts, fails, least=len(parts))) if fails(parts) else space.exactly(unknowns)
    return {
        "error": "a target lies beyond the bound",
        "probabilities": [str(p) for p in simple],
        "multiplicities": space.multiplicities,
        "logit_ratio": str(values.ratio) if values.rule.needs_logits else None,
        "certificate": rounded(to_mpf(values.exactly(simple)), DIGITS),
    }


def _reach(bound: MarginBound, wanted: Search) -> float:
    return NEAR if bound.attained or wanted.vocab_size else CLOSE


def _distance(one: Mpf, other: Mpf) -> Mpf:
    return mpmath.mpf(0) if one == other else one - other


def _corners(unknowns: int) -> np.ndarray:
    """One token after another as large as it can be.

    The optimiser passes a target over that is accepted only because it lies on a threshold, since rounding may decide
    there; where the margin leaves no other, it is a corner.
    """
    return np.tri(unknowns + 1, unknowns, -1)


def _optimise(values: Values, known: np.ndarray, seed: int) -> np.ndarray:
    """Unknowns of the best target that differential evolution finds, from those of a smaller vocabulary on."""
    sign, unknowns = (-1 if values.supremum else 1), values.space.unknowns
    if not unknowns:
        return np.zeros(0)

    thresholds = any(isinstance(condition, ThresholdCondition) for condition in values.rule.conditions)
    shifts = (NEAR_THRESHOLD, -NEAR_THRESHOLD) if thresholds else (0.0,)

    def cost(points: np.ndarray) -> np.ndarray:
        targets = values.space.of(points.T)
        return np.max([sign * values.of(targets, shift) for shift in shifts], axis=0)

    draw = np.random.default_rng(seed)
    size = 8 * unknowns + 24
    start = draw.random((size, unknowns)) ** draw.choice([1, 4], (size, 1))
    start *= draw.random((size, unknowns)) < draw.choice([1, 0.5, 0.1], (size, 1))  # also few tokens with any mass
    start[: unknowns + 1] = _corners(unknowns)
    start[-1] = np.pad(known, (0, unknowns - len(known)))
    options: dict[str, Any] = {
        "init": start,
        "maxiter": GENERATIONS,
        "tol": 0,
        "atol": 1e-12,
        "rng": draw,
        "polish": False,
        "vectorized": True,
        "updating": "deferred",
    }
    best = differential_evolution(cost, [(0, 1)] * unknowns, **options).x
    for part in (slice(0, values.space.rank - 2), slice(values.space.rank - 2, min(unknowns, DENSE - 2))):
        best[part] = -np.sort(-best[part])
    return _climb(cost, best)


def _climb(cost: Callable[[np.ndarray], np.ndarray], point: np.ndarray) -> np.ndarray:
    """A pattern search that moves runs of neighbouring unknowns together: up to the edges at which a threshold lies."""
    ends = np.arange(len(point) + 1)
    runs = np.array([(a <= ends[:-1]) & (ends[:-1] < b) for a in ends for b in ends[a + 1 :]], dtype=float)
    moves = np.vstack([runs, -runs])
    least, step = cost(point[:, None])[0], 0.25
    for _ in range(CLIMB):
        trials = np.clip(point + step * moves, 0, 1)
        costs = cost(trials.T)
        if costs.min() < least:
            least, point = costs.min(), trials[costs.argmin()]
        else:
            step /= 2
    return point
