"""Families of targets to validate on: a case is made from (seed, family, index) alone, so any layout of work agrees."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

import numpy as np

from .row import ExactRow, read_row


@dataclass(frozen=True)
class Family:
    """A named way to make targets: `make(random, V)` gives exact or float probabilities."""

    name: str
    make: Callable[[random.Random, int], list]
    least: int = 2
    """Smallest vocabulary it makes sense for."""


def _numpy(draw: random.Random) -> np.random.Generator:
    return np.random.default_rng(draw.getrandbits(64))


def _dirichlet(draw: random.Random, tokens: int) -> list:
    return list(_numpy(draw).dirichlet([draw.choice([0.1, 0.5, 1.0, 10.0])] * tokens).tolist())


def _language_model(draw: random.Random, tokens: int) -> list:
    """Softmax of heavy-tailed logits, a few of them far above the rest."""
    logits = _numpy(draw).standard_t(4, tokens) * draw.uniform(1, 4)
    scores = np.exp(logits - logits.max())
    return (scores / scores.sum()).tolist()


def _weights(weights: list[int] | list[Fraction]) -> list[Fraction]:
    total = sum(weights)
    return [Fraction(weight) / total for weight in weights]


def _ties(draw: random.Random, tokens: int) -> list:
    """Few distinct weights, so that ties fall on the top, among competitors and between them."""
    weights = [draw.randint(1, 3) for _ in range(tokens)]
    return _weights(weights)


def _zeros(draw: random.Random, tokens: int) -> list:
    weights = [draw.randint(1, 50) if draw.random() < 0.5 else 0 for _ in range(tokens)]
    weights[draw.randrange(tokens)] = 60
    return _weights(weights)


def _near_ties(draw: random.Random, tokens: int) -> list:
    """A uniform or tied target, moved by as little as 1e-300."""
    size = 10 ** draw.choice([6, 12, 50, 300])
    weights = [draw.choice([1, 1, 2]) * size + draw.randint(-1, 1) for _ in range(tokens)]
    return _weights(weights)


def _near_degenerate(draw: random.Random, tokens: int) -> list:
    """Almost all mass on one token."""
    tail = 10 ** draw.choice([3, 6, 9, 15, 300])
    weights = [draw.randint(1, 9) for _ in range(tokens)]
    weights[draw.randrange(tokens)] = tail
    return _weights(weights)


def _point_mass(draw: random.Random, tokens: int) -> list:
    weights = [0] * tokens
    weights[draw.randrange(tokens)] = 1
    return _weights(weights)


def _uniform(draw: random.Random, tokens: int) -> list:
    return _weights([1] * tokens)


def _on_a_threshold(draw: random.Random, tokens: int) -> list:
    """A token exactly where the rules of the validation put thresholds: .3 below the top, .1, exp(-H)/2."""
    if tokens >= 5 and draw.random() < 0.5:
        return _weights([4, 1, 1, 1, 1, *[0] * (tokens - 5)])  # exp(-H) = 1/4, so typical(1, 1/2) cuts at exactly 1/8
    weights = [5, 2, 2, 1] if tokens >= 4 else [6, 3, 1] if tokens == 3 else [13, 7]
    return _weights(weights + [0] * (tokens - len(weights)))


def _extremal(draw: random.Random, tokens: int) -> list:
    """Where the margin bounds are attained: one token above equal ones, two equal ends, a spike of two."""
    gap = Fraction(draw.randint(1, 99), 100)
    others = tokens - 1
    y = draw.randint(2, 9)
    return draw.choice(
        (
            [(1 + others * gap) / tokens, *[(1 - gap) / tokens] * others],
            [(1 + gap) / 2, (1 - gap) / 2, *[Fraction(0)] * (tokens - 2)],
            _weights([y + 1, y, *[1] * (tokens - 2)]),
        )
    )


def _extremal_tree(draw: random.Random, tokens: int) -> list:
    """Where the bound from the last candidate's margin is attained: (y, 1, ..., 1, 1/y)."""
    y, z = draw.randint(3, 9), draw.randint(1, 2)
    return _weights([y * y, *[y * z] * (tokens - 2), z * z])


def _on_the_level(draw: random.Random, tokens: int) -> list:
    """A token exactly at the mean of the pool: the pool's boundary."""
    low = draw.randint(0, 20)
    spread = draw.randint(1, 20)
    weights = [low + 2 * spread, low, *[low + spread] * (tokens - 2)]
    draw.shuffle(weights)
    return _weights(weights)


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        family.name: family
        for family in (
            Family("generic", _dirichlet),
            Family("language model", _language_model),
            Family("ties", _ties),
            Family("zeros", _zeros),
            Family("near-ties", _near_ties),
            Family("near-degenerate", _near_degenerate),
            Family("point mass", _point_mass),
            Family("uniform", _uniform),
            Family("on the level", _on_the_level, least=3),
            Family("on a threshold", _on_a_threshold),
            Family("extremal", _extremal),
            Family("extremal tree", _extremal_tree),
        )
    }
)
"""All families by name."""


def make_row(family: Family, seed: int, index: int, tokens: int) -> ExactRow:
    """The target number `index` of a family."""
    draw = random.Random(f"{seed}/{family.name}/{index}/{tokens}")
    return read_row(family.make(draw, tokens))
