"""From a solver's answer to a proven optimum: active set, optimality system in mpmath, enclosure by weak duality.

For multipliers `alpha` of `q_a <= t` (accepted), `beta` of `q_i >= t` (competitors) with equal sums and `nu` of the
total, every rejected draft q has

    sum term(p, q)  >=  sum conjugate(p, y) - nu,      y = nu + alpha - beta,

whatever the multipliers are. The left side at an exactly feasible draft and the right side at exact multipliers, both
in ball arithmetic, enclose the optimum. The closed form of the theory is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import mpmath
from flint import arb, ctx, fmpq

from ..theory import DraftcertError
from .balls import Mpf, bounds, precision, sum_balls, to_mpf
from .row import ExactRow

if TYPE_CHECKING:  # what they load takes long, and only their names are needed
    from .divergence import Divergence
    from .program import Solution

DIGITS = 50
"""Digits to which an optimum must be certified."""
ACTIVE = 1e-4
"""A token is taken as held at the level when the solver puts it this close, relative to it; corrected afterwards."""


@dataclass(frozen=True)
class Residuals:
    """How far the solution of the optimality system is from each of its four conditions."""

    primal: Mpf
    dual: Mpf
    complementarity: Mpf
    stationarity: Mpf


@dataclass(frozen=True)
class Optimum:
    """A proven enclosure of the least divergence for one choice of competitors, and the draft that attains it."""

    enclosure: arb
    draft: tuple[fmpq, ...]
    level: fmpq
    competitors: tuple[int, ...]
    pool: tuple[int, ...]
    residuals: Residuals
    bits: int
    """The precision the enclosure was computed with."""


def polish(
    row: ExactRow, accepted: Sequence[int], solution: Solution, divergence: Divergence, digits: int = DIGITS
) -> Optimum:
    """Certify the optimum near a solver's answer.

    Raises:
        DraftcertError: the active set does not settle, or the system has no solution.
    """
    return _Polish(row, tuple(accepted), solution.competitors, divergence, digits).run(solution)


class _Polish:
    def __init__(
        self,
        row: ExactRow,
        accepted: tuple[int, ...],
        competitors: tuple[int, ...],
        divergence: Divergence,
        digits: int,
    ) -> None:
        self.p = [fmpq(weight, row.total) for weight in row.weights]
        self.accepted, self.competitors, self.divergence = accepted, competitors, divergence
        # A pool that deviates from its level by a relative d has a value of order d^2: keep `digits` of that.
        highest = max((self.p[a] for a in accepted), default=fmpq(0))
        spread = highest - min(self.p[i] for i in competitors)
        lost = 2 * len(str(int(highest / spread))) if spread > 0 else 0
        lost += len(str(int(1 / min(p for p in self.p if p))))  # and the total of one is kept for the smallest
        self.digits = digits + lost + 20
        self.tolerance = mpmath.mpf(10) ** (15 - self.digits)
        """Below this a token counts as lying on the level: moving it or not makes no difference."""

    def run(self, solution: Solution) -> Optimum:
        with mpmath.workdps(self.digits + 10), precision(int((self.digits + 10) * 3.33)):
            if all(self.p[a] <= self.p[i] for a in self.accepted for i in self.competitors):
                ratio, level, pool = mpmath.mpf(1), max((self.p[a] for a in self.accepted), default=fmpq(0)), ()
            else:
                ratio, level, pool = self._settle(self._active(solution))
            draft = self._feasible(level, pool)
            nu, alpha, beta = self._multipliers(ratio, level, pool)
            residuals = self._residuals(draft, level, nu, alpha, beta)
            alpha, beta = _feasible_multipliers(alpha, beta)
            if not pool:  # the target itself is rejected, and no divergence is negative
                return Optimum(arb(0), tuple(draft), level, self.competitors, pool, residuals, ctx.prec)
            upper = self.divergence.value(sum_balls(map(self.divergence.term, self.p, draft)))
            lower = self.divergence.value(self._dual_bound(nu, alpha, beta))
            return Optimum(upper.union(lower), tuple(draft), level, self.competitors, pool, residuals, ctx.prec)

    def _active(self, solution: Solution) -> set[int]:
        """Tokens the solver holds at the common level."""
        if solution.draft is None:
            raise DraftcertError(f"nothing to polish: {solution.solver} found no draft of finite divergence")
        q = solution.draft
        level = max(q[a] for a in self.accepted)
        near = {x for x in (*self.accepted, *self.competitors) if abs(q[x] - level) <= ACTIVE * level}
        top = max(self.accepted, key=lambda a: self.p[a])
        return near | {top, min(self.competitors, key=lambda i: self.p[i])}  # the two ends are always moved

    def _settle(self, active: set[int]) -> tuple[Mpf, fmpq, tuple[int, ...]]:
        """Solve the system for an active set and correct the set by the signs it gives, until nothing changes."""
        if self.divergence.support_only and any(not self.p[i] for i in self.competitors):
            pool = (*self.accepted, *(i for i in self.competitors if not self.p[i]))  # held at 0, the only finite way
            return 1 / _mpf(self._free_mass(pool)), fmpq(0), tuple(sorted(pool))
        for _ in range(4 * len(self.p) + 4):
            ratio, level = self._system(sorted(active))
            corrected = set()
            for side, tokens in ((1, self.accepted), (-1, self.competitors)):
                for x in tokens:
                    pull = side * (ratio * _mpf(self.p[x]) / level - 1)
                    if pull > self.tolerance or (x in active and pull >= -self.tolerance):
                        corrected.add(x)
            if corrected == active:
                exact = _fmpq(level) if self._free_mass(active) else fmpq(1, len(active))
                return ratio, exact, tuple(sorted(active))
            active = corrected
        raise DraftcertError(f"the active set does not settle for {self.p} with competitors {self.competitors}")

    def _free_mass(self, pool: Sequence[int] | set[int]) -> fmpq:
        return 1 - sum((self.p[x] for x in pool), fmpq(0))

    def _system(self, pool: Sequence[int]) -> tuple[Mpf, Mpf]:
        """The ratio draft/target off the pool and the level on it: equal mean slopes, and a total of one."""
        free, n = _mpf(self._free_mass(pool)), len(pool)
        if not self.divergence.smooth:
            return mpmath.mpf(1), (1 - free) / n
        masses = [_mpf(self.p[x]) for x in pool]

        def excess(log_ratio: Mpf) -> Mpf:
            ratio = mpmath.exp(log_ratio)
            level = (1 - ratio * free) / n
            pulls = [self.divergence.slope(level / p) if p else 0 for p in masses]
            return mpmath.fsum(pulls) / n - self.divergence.slope(ratio)

        # In the ratio the excess grows from -oo to +oo; Newton's steps stay inside what the signs have bracketed.
        # With free = 0 nothing is scaled; the ratio still says which slope the multipliers are measured from.
        low, high = mpmath.mpf(-1), mpmath.log(1 / free) if free else mpmath.mpf(1)
        while excess(low) > 0:
            low *= 2
        while not free and excess(high) < 0:
            high *= 2
        point = (low + high) / 2 if high < 0 else min(mpmath.mpf(0), high / 2)
        for _ in range(20 * self.digits):
            value = excess(point)
            if value > 0:
                high = point
            else:
                low = point
            step = value / mpmath.diff(excess, point, h=mpmath.mpf(10) ** (-self.digits // 2)) if value else value
            following = point - step
            if abs(step) <= mpmath.mpf(10) ** (-self.digits):
                break
            point = following if low < following < high else (low + high) / 2
        ratio = mpmath.exp(point)
        return ratio, (1 - ratio * free) / n

    def _feasible(self, level: fmpq, pool: tuple[int, ...]) -> list[fmpq]:
        """The exact draft with this level: the pool at the level, the others scaled to a total of one."""
        free = self._free_mass(pool)
        scale = (1 - len(pool) * level) / free if free else fmpq(1)
        held = set(pool)
        draft = [level if x in held else scale * p for x, p in enumerate(self.p)]
        ends = [max((draft[a] for a in self.accepted), default=fmpq(0)), min(draft[i] for i in self.competitors)]
        if ends[0] > ends[1] or sum(draft, fmpq(0)) != 1 or min(draft) < 0:
            raise DraftcertError(f"the polished draft {draft} is not a rejected distribution")
        return draft

    def _multipliers(
        self, ratio: Mpf, level: fmpq, pool: tuple[int, ...]
    ) -> tuple[fmpq, dict[int, fmpq], dict[int, fmpq]]:
        """What stationarity asks for: nu, and alpha and beta on the pool; of either sign and unbalanced by rounding."""
        above = [a for a in self.accepted if a in set(pool)]
        below = [i for i in self.competitors if i in set(pool)]
        if not self.divergence.smooth:
            nu = fmpq(len(above), len(pool)) if pool else fmpq(0)
            return nu, dict.fromkeys(above, 1 - nu), dict.fromkeys(below, nu)
        if pool and not level:  # held at 0: the multipliers are infinite, cut off where the bound no longer feels it
            steep = fmpq(3 * self.digits)
            nu = _fmpq(self.divergence.slope(ratio))
            return nu, dict.fromkeys(above, steep * len(below)), dict.fromkeys(below, steep * len(above))
        pulls = {x: self._pull(x, level) for x in pool}
        free = self._free_mass(pool) or not pool
        nu = _fmpq(self.divergence.slope(ratio) if free else mpmath.fsum(pulls.values()) / len(pool))
        return nu, {a: _fmpq(pulls[a]) - nu for a in above}, {i: nu - _fmpq(pulls[i]) for i in below}

    def _pull(self, token: int, level: fmpq) -> Mpf:
        """The slope at the level: 0 for a token the target gives nothing."""
        return self.divergence.slope(_mpf(level / self.p[token])) if self.p[token] else mpmath.mpf(0)

    def _dual_bound(self, nu: fmpq, alpha: dict[int, fmpq], beta: dict[int, fmpq]) -> arb:
        """The bound of weak duality, which needs equal sums and nothing else."""
        zero = fmpq(0)
        y = [nu + alpha.get(x, zero) - beta.get(x, zero) for x in range(len(self.p))]
        balanced = sum(alpha.values(), zero) == sum(beta.values(), zero)
        signed = min([zero, *alpha.values(), *beta.values()]) == 0 and (self.divergence.support_only or min(y) >= 0)
        if not (balanced and signed):
            raise DraftcertError("the multipliers are not dual feasible")
        return sum_balls(map(self.divergence.conjugate, self.p, y)) - nu

    def _residuals(
        self, draft: list[fmpq], level: fmpq, nu: fmpq, alpha: dict[int, fmpq], beta: dict[int, fmpq]
    ) -> Residuals:
        zero = fmpq(0)
        signed = [*alpha.values(), *beta.values()]
        primal = [draft[a] - level for a in self.accepted] + [level - draft[i] for i in self.competitors]
        slack = [m * (level - draft[a]) for a, m in alpha.items()] + [m * (draft[i] - level) for i, m in beta.items()]
        stationary = [
            abs(self.divergence.slope(_mpf(q / p)) - _mpf(nu + alpha.get(x, zero) - beta.get(x, zero)))
            for x, (p, q) in enumerate(zip(self.p, draft, strict=True))
            if p and q and self.divergence.smooth
        ]
        return Residuals(
            primal=_mpf(max([zero, *primal, abs(sum(draft, zero) - 1)])),
            dual=_mpf(max([abs(sum(alpha.values(), zero) - sum(beta.values(), zero)), *(-m for m in signed)])),
            complementarity=_mpf(max([zero, *map(abs, slack)])),
            stationarity=max([mpmath.mpf(0), *stationary]),
        )


def _feasible_multipliers(alpha: dict[int, fmpq], beta: dict[int, fmpq]) -> tuple[dict[int, fmpq], dict[int, fmpq]]:
    """Multipliers that are not negative and have equal sums: the larger side is scaled down, which keeps y >= 0."""
    alpha = {a: max(m, fmpq(0)) for a, m in alpha.items()}
    beta = {i: max(m, fmpq(0)) for i, m in beta.items()}
    total, balance = sum(alpha.values(), fmpq(0)), sum(beta.values(), fmpq(0))
    common = min(total, balance)
    return (
        {a: m * common / total for a, m in alpha.items()} if total else alpha,
        {i: m * common / balance for i, m in beta.items()} if balance else beta,
    )


def _mpf(value: fmpq) -> Mpf:
    return mpmath.mpf(int(value.p)) / int(value.q)


def _fmpq(value: Mpf) -> fmpq:
    """The binary number itself."""
    sign, mantissa, exponent, _ = mpmath.mpf(value)._mpf_
    mantissa = -int(mantissa) if sign else int(mantissa)
    return fmpq(mantissa) * fmpq(2) ** int(exponent)


def certified_digits(*values: arb) -> float:
    """To how many digits, relative to the largest, any two numbers from the given enclosures agree."""
    ends = [bounds(value) for value in values]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    if low == high:
        return mpmath.inf
    with mpmath.workdps(15):
        return float(-mpmath.log10((high - low) / max(abs(low), abs(high)))) if mpmath.isfinite(high - low) else 0.0


def least(optima: Sequence[Optimum]) -> Optimum | None:
    """The optimum over all choices of competitors, its enclosure being that of the minimum; None without any."""
    if not optima:
        return None
    best = min(optima, key=lambda optimum: to_mpf(optimum.enclosure))
    enclosure = best.enclosure
    with precision(max(optimum.bits for optimum in optima)):
        for optimum in optima:
            enclosure = enclosure.min(optimum.enclosure)
    return replace(best, enclosure=enclosure)
