"""`margin_bounds`: the sharp range of the certificate when only a margin of the target is known (M1 to M7).

The bounds are certificates themselves, those of the extremal targets: so they are stated here as targets, and the one
formula of the certificate gives their values. Masses that are left out are spread over tokens too small to matter, for
a vocabulary that may be of any size.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from flint import arb, fmpq

from ..theory import DraftcertError, Rule, parse_rule
from ..theory.margins import TREE_LAST_MARGIN, TREE_RATIO
from .balls import formula_function, precision, to_fmpq
from .certificate import projected
from .decide import accepted_count
from .enclosure import Enclosure, is_certain
from .row import read_number, read_row

ZERO, ONE, HALF = Fraction(0), Fraction(1), Fraction(1, 2)


@dataclass(frozen=True)
class MarginBound(Enclosure):
    """An infimum or supremum of the certificate over all targets with a margin.

    `accepted` and `competitors` are the masses of the extremal target's tokens; the rest of its mass is spread thin.
    """

    attained: bool
    """Whether a target attains it; else it is only approached."""
    sharp: bool
    """Whether it is the infimum or supremum; else only a valid bound."""
    accepted: tuple[Fraction, ...] | None = None
    competitors: tuple[Fraction, ...] | None = None


def margin_bounds(
    rule: Rule | str,
    candidates: int = 1,
    *,
    gap: Any,
    known: Literal["top2", "coverage"] = "top2",
    vocabulary: int | None = None,
    digits: int = 50,
) -> tuple[MarginBound, MarginBound]:
    """The infimum and supremum of the certificate, in nats, over all targets with this gap.

    Over vocabularies of any size that leave `candidates` rejected tokens where the rule alone does not forbid it, or
    over one of a given size, in which a target may also leave fewer, so that it cannot be rejected.

    Args:
        rule: a rule or its text. Of an intersection the infimum is sharp and of a union the supremum, since the
            certificate is the least or greatest of the parts; the other bound is valid, and not sharp.
        candidates: how many tokens the drafter proposes.
        gap: `p_(1) - p_(2)` for `top2`, `p_(1) - p_(m+1)` for `coverage` with m candidates; in [0, 1], read exactly.
        known: which gap is known. `coverage` speaks of strict greedy.
        vocabulary: number of tokens, more than `candidates`; any if not given. What the theory does not state for this
            size is the bound for any size, and not sharp.
        digits: correct digits of the bounds.

    Raises:
        DraftcertError: a gap outside [0, 1], no candidates, a vocabulary that is too small, or a rule without a bound
            from this margin.

    >>> low, high = margin_bounds("strict_greedy", gap="0.5", digits=6)
    >>> str(low), str(high), high.attained
    ('0.130812', '0.346574', False)

    >>> str(margin_bounds("strict_greedy", gap="0.5", vocabulary=3, digits=6)[1])
    '0.160621'

    Source: Sharma 2026, arXiv 2606.30265 (M1, M6); the others `draftcert.theory`.
    """
    margin = read_number(gap, "gap")
    if not 0 <= margin <= 1:
        raise DraftcertError(f"gap = {gap}: a difference of two probabilities, largest first, lies in [0, 1]")
    if isinstance(candidates, bool) or not isinstance(candidates, int) or candidates < 1:
        raise DraftcertError(f"candidates = {candidates!r}: give a whole number, at least 1")
    rule = parse_rule(rule)
    if vocabulary is not None and (isinstance(vocabulary, bool) or vocabulary <= candidates):
        raise DraftcertError(f"vocabulary = {vocabulary!r}: give more tokens than the {candidates} candidates")
    bounds = _Bounds(candidates, margin, vocabulary, digits)
    if known == "coverage":
        if rule != parse_rule("strict_greedy"):
            raise DraftcertError(f"known='coverage' is a bound for strict_greedy, not for {rule}")
        return bounds.coverage()
    if known != "top2":
        raise DraftcertError(f"known = {known!r}: give 'top2' or 'coverage'")
    return bounds.of(ast.parse(str(rule), mode="eval").body)


class _Bounds:
    """The bounds for one number of candidates, one gap, and one vocabulary or any."""

    def __init__(self, candidates: int, gap: Fraction, vocabulary: int | None, digits: int) -> None:
        self.m, self.g, self.V, self.digits = candidates, gap, vocabulary, digits

    def of(self, node: ast.expr) -> tuple[MarginBound, MarginBound]:
        """Bounds of a rule's expression, as `parse_rule` reads it."""
        if isinstance(node, ast.BinOp):
            (low, high), (low2, high2) = self.of(node.left), self.of(node.right)
            choose = min if isinstance(node.op, ast.BitAnd) else max
            best_low, best_high = (choose(pair, key=lambda bound: bound.value) for pair in ((low, low2), (high, high2)))
            both = isinstance(node.op, ast.BitAnd)
            return _weaken(best_low, both), _weaken(best_high, not both)
        name = ast.unparse(node).split("(")[0]
        if not hasattr(self, name) or name not in FAMILIES_WITH_BOUNDS:
            raise DraftcertError(f"no bound is known for {ast.unparse(node)} from a margin of the target alone")
        values = [Fraction(ast.unparse(value).replace(" ", "")) for value in getattr(node, "args", ())]
        return getattr(self, name)(*values)

    def strict_greedy(self) -> tuple[MarginBound, MarginBound]:
        """M1 and M7: all competitors equal, against all mass spread evenly or on two tokens."""
        share = (1 - self.g) / self.V if self.V else ZERO
        even = self._bound([self.g + share], [share] * self.m, attained=self.V is not None or self.g == 1)
        return self._above(ONE), max(even, self._spike(), key=lambda bound: bound.value)

    def coverage(self) -> tuple[MarginBound, MarginBound]:
        """M6: the margin to the last of the candidates."""
        if self.g == 1:
            point_mass = self._bound([ONE], [ZERO] * self.m)
            return point_mass, point_mass
        bits = int(3.33 * self.digits) + 64
        while True:
            with precision(bits):
                ratio = formula_function(TREE_RATIO)(fmpq(self.m), to_fmpq(self.g))
                ball = arb(formula_function(TREE_LAST_MARGIN)(fmpq(self.m), ratio)) if self.g else arb(0)
            if is_certain(ball, self.digits):
                break
            bits *= 2
        low = MarginBound(ball, self.digits, attained=True, sharp=True)
        return low, self._of_any_size(self._bound([self.g], [ZERO] * self.m, attained=self.g == 0))

    def additive(self, t: Fraction) -> tuple[MarginBound, MarginBound]:
        """M2: the second token is accepted up to a gap of t."""
        if self.g > t:
            return self.strict_greedy()
        if self.g <= 2 * t - 1 or self._at_most(self.m + 1):
            return self._infinite(), self._infinite()
        u = (1 + self.g + self.m * t) / (self.m + 2)
        return self._bound([u, u - self.g], [u - t] * self.m, attained=False), self._infinite()

    def multiplicative(self, alpha: Fraction) -> tuple[MarginBound, MarginBound]:
        """M3 and M3v: below g_(m+1) the bound is linear in the gap, as long as there is room for dust."""
        if not alpha:
            return self._infinite(), self._infinite()

        def turn(others: int) -> Fraction:
            """Up to this gap so many tokens at p_1 - g, and the first, may all be accepted."""
            return (1 - alpha) / (1 + others * alpha)

        high = self._relaxed(self.V is None or self.g <= turn(self.V - self.m))
        if self.g > turn(1):
            high = self.strict_greedy()[1]
        chord = self._above(alpha * self.g / (1 - alpha) if alpha < 1 else ONE)
        if self.V is None or self.g >= turn(self.V - 1):
            return chord, high
        others, fixed = self.V - self.m - 1, 1 + self.m * alpha
        if not others:
            return self._infinite(), self._infinite()
        first = (1 + others * self.g) / (fixed + others)
        low = self._bound([first, *[first - self.g] * others], [alpha * first] * self.m, attained=False)
        alone = self.g >= self.m * (1 - alpha) / (fixed * self.V)
        return (low if alone or self._falls(alpha, 1 - self.g / first) else _weaken(chord, sharp=False)), high

    def _falls(self, alpha: Fraction, omega: Fraction) -> bool:
        """M3v: whether omega <= alpha^(m alpha/(1 + m alpha)), so that all tokens at ratio omega are the worst."""
        with precision(256):
            logs = [arb(to_fmpq(x)).log() for x in (alpha, omega)]
            return bool(to_fmpq(self.m * alpha) * logs[0] >= to_fmpq(1 + self.m * alpha) * logs[1])

    def top_m(self, k: Fraction) -> tuple[MarginBound, MarginBound]:
        """M4: exactly k tokens are accepted."""
        if k == 1:
            return self.strict_greedy()
        if self._at_most(self.m + k - 1):
            return self._infinite(), self._infinite()
        b = (1 - self.g) / (self.m + k)
        return self._bound([self.g + b, *[b] * int(k - 1)], [b] * self.m), self._two_accepted()

    def absolute(self, tau: Fraction) -> tuple[MarginBound, MarginBound]:
        """M5 and M5v, and nothing is accepted where the largest probability stays below tau."""
        if not tau:
            return self._infinite(), self._infinite()
        if tau > (1 + self.g) / 2:
            return self._nothing(), self._nothing()
        least = self.g + ((1 - self.g) / self.V if self.V else ZERO)
        low = self._nothing() if least < tau else self._threshold(tau)
        if self.g + 2 * tau <= 1:
            return low, self._relaxed(self.V is None or self.g + (self.V - self.m + 1) * tau <= 1)
        if tau <= least:
            return low, self.strict_greedy()[1]
        steps = [
            self._bound([tau], [tau - self.g] * min(j - 1, self.m) + [ZERO] * max(0, self.m + 1 - j), attained=False)
            for j in range(2, self.m + 3)
            if (tau - self.g) * j <= 1 - self.g
        ]
        high = max([self._spike(), *steps], key=lambda bound: bound.value)
        return low, high if high.attained else self._of_any_size(high)

    def _threshold(self, tau: Fraction) -> MarginBound:
        """The first token is accepted, and every other one that reaches tau."""
        if self.V is None or self.g + self.V * tau >= 1:
            return self._above(tau)
        others = self.V - self.m - 1
        if not others:
            return self._infinite()
        x = (1 - self.g - self.m * tau) / (others + 1)
        return self._bound([self.g + x, *[x] * others], [tau] * self.m, attained=False)

    def typical(self, epsilon: Fraction, delta: Fraction) -> tuple[MarginBound, MarginBound]:
        """M5t: sharp where strict greedy's worst target has its competitors rejected; else a bound of M3's rule."""
        rule, b = parse_rule(f"typical({epsilon}, {delta})"), (1 - self.g) / (self.m + 1)
        if self.g == epsilon == delta == 1:  # the point mass lies on its own threshold
            return self._nothing(), self._nothing()
        both = accepted_count(rule, read_row([(1 + self.g) / 2, (1 - self.g) / 2])) == 2
        high = self._of_any_size(self._infinite() if both else self._two_accepted(attained=False))
        if self.g == 0 and delta == 1 and (self.V is None or self.V * epsilon >= 1):  # so does a uniform target
            return self._nothing(), high
        if accepted_count(rule, read_row([self.g + b, *[b] * self.m])) == 1:
            return self._above(ONE), high
        return _weaken((self.multiplicative(delta) if delta else self.strict_greedy())[0], sharp=False), high

    def mars(self, theta: Fraction) -> tuple[MarginBound, MarginBound]:
        """The ratio of logits is free: the rule is strict greedy or the two most likely tokens, as they are shifted."""
        return self.strict_greedy()[0], self.top_m(Fraction(2))[1]

    def _relaxed(self, nothing_left: bool) -> MarginBound:
        """MS: the supremum where the second token may be accepted, and all but too few, if `nothing_left`."""
        return self._infinite() if nothing_left else self._two_accepted()

    def _at_most(self, tokens: int | Fraction) -> bool:
        return self.V is not None and tokens >= self.V

    def _of_any_size(self, bound: MarginBound) -> MarginBound:
        """A bound that is stated for vocabularies of any size, in this one."""
        return bound if self.V is None else _weaken(bound, sharp=False)

    def _above(self, limit: Fraction) -> MarginBound:
        """One accepted token at g + b over m equal competitors at b, as large as the mass and the limit allow."""
        equal = (1 - self.g) / (self.m + 1)
        b = min(equal, limit)
        return self._bound([self.g + b], [b] * self.m, attained=equal < limit)

    def _spike(self) -> MarginBound:
        """All mass on two tokens, the second rejected."""
        return self._bound([(1 + self.g) / 2], [(1 - self.g) / 2, *[ZERO] * (self.m - 1)])

    def _two_accepted(self, *, attained: bool = True) -> MarginBound:
        """All mass on two accepted tokens: the supremum of every relaxed rule among finite certificates."""
        return self._bound([(1 + self.g) / 2, (1 - self.g) / 2], [ZERO] * self.m, attained=attained)

    def _bound(
        self, accepted: Sequence[Fraction], competitors: Sequence[Fraction], attained: bool = True
    ) -> MarginBound:
        ball = projected(accepted, competitors, self.digits)
        return MarginBound(ball, self.digits, attained, True, tuple(accepted), tuple(competitors))

    def _infinite(self) -> MarginBound:
        """Some target accepts everything, or for an infimum every target."""
        return MarginBound(arb("inf"), self.digits, attained=True, sharp=True)

    def _nothing(self) -> MarginBound:
        """Some target has nothing accepted."""
        return MarginBound(arb(0), self.digits, attained=True, sharp=True)


FAMILIES_WITH_BOUNDS = ("strict_greedy", "additive", "multiplicative", "top_m", "absolute", "typical", "mars")


def _weaken(bound: MarginBound, sharp: bool) -> MarginBound:
    return MarginBound(
        bound.ball, bound.digits, bound.attained and sharp, bound.sharp and sharp, bound.accepted, bound.competitors
    )
