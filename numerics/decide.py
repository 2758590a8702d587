"""Which tokens a rule accepts, decided exactly: thresholds in ball arithmetic, and ties by number theory.

Precision grows until the ball of the threshold leaves the probability out. It never does at an exact tie; there,
`p = threshold` says that a sum of rational multiples of logarithms of rationals equals a rational number. By
Lindemann's theorem that needs the rational to be 0 and the product of integer powers to be 1, which integers decide.
So the answer is never a guess and the loop always ends.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, inf, isfinite, lcm

import sympy
from flint import arb, fmpq

from ..theory import DraftcertError, Rule
from ..theory.conditions import Condition, RankCondition, RowCondition, fold_conditions
from ..theory.errors import Argument
from ..theory.statistics import LOGIT_RATIO, TOP, Entropy
from .balls import ball_function, precision, sum_balls, to_fmpq
from .row import ExactRow, read_row

FIRST_BITS = 64
TIE_BITS = 256
"""From here on a threshold that still contains the probability is suspected to equal it."""
ALONE, GROUP = 1024, 32
"""At first, entropies over more weights than `ALONE` are enclosed by groups of the smaller ones: faster, and enough."""
WEIGHT_BITS = 256
"""Of the weights that stand for exponentials of logits."""
LAST_BITS = 1 << 16
"""For thresholds whose ties have no exact test: give up beyond this precision with an error."""


def accepted_count(rule: Rule, row: ExactRow, logit_ratio: Fraction | None = None) -> int:
    """How many tokens, most likely first, the rule accepts; exact.

    Raises:
        DraftcertError: the rule speaks of logits and no ratio is given, or a tie with a threshold outside
            `a exp(b + sum of entropies)` cannot be decided.
    """
    return RowStatistics(row, logit_ratio).count(rule)


def accepted_of_logits(rule: Rule, logits: Sequence[float]) -> int:
    """How many tokens of a row of logits, most likely first, the rule accepts: by `row_of_logits`.

    Raises:
        DraftcertError: as `accepted_count`, and no finite logit.

    >>> from draftcert.theory import parse_rule
    >>> accepted_of_logits(parse_rule("absolute(1/4)"), [1.0, 1.0, 1.0, 1.0, float("-inf")])
    4
    """
    first, second = (*sorted(logits, reverse=True)[:2], -inf)[:2]
    # Without a ratio, at a first logit of 0 or a second of -inf, the second token is not near enough (`mars`).
    ratio = Fraction(second) / Fraction(first) if first and isfinite(second) else Fraction(-1)
    return accepted_count(rule, row_of_logits(logits), ratio if rule.needs_logits else None)


def row_of_logits(logits: Sequence[float]) -> ExactRow:
    """The softmax of a row of logits, each weight to 256 bits: equal logits have equal probabilities, -inf has 0.

    A row of equal and of masked logits is exact, and so are its ties with thresholds. Of any other row a decision can
    be wrong only where a probability lies within 2^-250 of a threshold.
    """
    top = max(logits)
    if not isfinite(top):
        raise DraftcertError(f"the largest logit is {top}: a row of logits has a finite one")
    unit = 1 << WEIGHT_BITS
    with precision(WEIGHT_BITS + 64):  # the balls are far smaller than the units in which their middles are taken
        weights = [int(((arb(z) - arb(top)).exp() * unit).mid().floor().fmpz()) for z in logits]
    return read_row(weights, normalize=True)


@dataclass(frozen=True)
class RowStatistics:
    """The statistics of one row, each evaluated when a rule asks for it, at the precision it needs.

    With `multiplicities`, (weight, how often) of all tokens, the row may hold only the tokens to be judged.
    """

    row: ExactRow
    logit_ratio: Fraction | None = None
    multiplicities: tuple[tuple[int, int], ...] | None = None

    def count(self, rule: Rule, *, ranks: bool = True) -> int:
        """How many tokens the rule accepts; without `ranks`, by its conditions on other things than the rank."""

        def count(condition: Condition) -> int:
            return 0 if isinstance(condition, RankCondition) and not ranks else self._count(condition)

        return fold_conditions(rule.accepts, count, min, max)

    def _count(self, condition: Condition) -> int:
        tokens = len(self.row)
        if isinstance(condition, RankCondition):
            limit = self._substitute(condition.limit)
            return max(0, min(int(sympy.floor(limit)), tokens))
        if isinstance(condition, RowCondition):
            return tokens if self._holds(condition.holds) else 0
        threshold = self._substitute(condition.threshold)
        low, high = 0, tokens  # the accepted tokens are a prefix of the order
        while low < high:
            middle = (low + high) // 2
            sign = self.compare(fmpq(self.row.ranked[middle], self.row.total), threshold)
            accepted = sign > 0 if condition.strict else sign >= 0
            low, high = (middle + 1, high) if accepted else (low, middle)
        return low

    def _holds(self, relation: sympy.logic.boolalg.Boolean) -> bool:
        if relation in (sympy.true, sympy.false):
            return bool(relation)
        sign = -self.compare(fmpq(0), self._substitute(relation.gts - relation.lts))  # type: ignore[attr-defined]
        strict = isinstance(relation, (sympy.StrictGreaterThan, sympy.StrictLessThan))
        return sign > 0 if strict else sign >= 0

    def _substitute(self, expression: sympy.Expr) -> sympy.Expr:
        """Put in what is rational: the largest probability and the ratio of logits."""
        known: dict[sympy.Expr, sympy.Expr] = {TOP: sympy.Rational(self.row.ranked[0], self.row.total)}
        if LOGIT_RATIO in expression.free_symbols:
            if self.logit_ratio is None:
                raise DraftcertError(
                    "this rule compares raw logits, which probabilities do not determine: give logits, or ",
                    Argument("logit_ratio", "z_(2)/z_(1)"),
                )
            known[LOGIT_RATIO] = sympy.Rational(self.logit_ratio.numerator, self.logit_ratio.denominator)
        return expression.xreplace(known)  # type: ignore[return-value]

    def compare(self, probability: fmpq, threshold: sympy.Expr) -> int:
        """The sign of `probability - threshold`, exactly."""
        if isinstance(threshold, sympy.Min):
            return max(self.compare(probability, part) for part in threshold.args)  # type: ignore[arg-type]
        if isinstance(threshold, sympy.Max):
            return min(self.compare(probability, part) for part in threshold.args)  # type: ignore[arg-type]
        if isinstance(threshold, sympy.Rational):
            exact = to_fmpq(threshold)
            return (probability > exact) - (probability < exact)
        tie_possible: bool | None = None
        bits = FIRST_BITS
        while True:
            with precision(bits):
                difference = probability - self._ball(threshold, bits)
            if difference > 0 or difference < 0:
                return 1 if difference > 0 else -1
            if bits >= TIE_BITS and tie_possible is None:
                tie_possible = self._equals(probability, threshold)
                if tie_possible:
                    return 0
            if bits >= LAST_BITS and tie_possible is None:
                raise DraftcertError(f"cannot decide whether {probability} reaches {threshold} at {bits} bits")
            bits *= 2

    @cached_property
    def _balls(self) -> dict[tuple[sympy.Expr, int], arb]:
        return {}

    def _ball(self, expression: sympy.Expr, bits: int) -> arb:
        """The enclosure of an expression in rationals and entropies at the current precision, which is `bits`."""
        if (expression, bits) not in self._balls:
            entropies = sorted(expression.atoms(Entropy), key=sympy.default_sort_key)
            names = tuple(sympy.Dummy(f"entropy{k}") for k in range(len(entropies)))
            function = ball_function(expression.xreplace(dict(zip(entropies, names, strict=True))), names)
            self._balls[expression, bits] = arb(function(*(self._entropy(e.args[0], bits) for e in entropies)))
        return self._balls[expression, bits]

    @cached_property
    def _multiplicities(self) -> list[tuple[int, int]]:
        """(weight, how often) of all tokens with any, largest weight first."""
        if self.multiplicities is None:
            return [(weight, times) for weight, times in Counter(self.row.ranked).items() if weight]
        return sorted(((weight, times) for weight, times in self.multiplicities if weight), reverse=True)

    def _entropy_terms(self, floor: sympy.Basic) -> tuple[list[tuple[int, int]], int]:
        """`Entropy(floor) = -sum k ln(n) / N + ln(d)` as ([(n, k), ...], d), all integers (N the row's total)."""
        scale, shift = self._affine(floor)
        return [(scale * n + shift, n * times) for n, times in self._multiplicities], scale * self.row.total

    def _affine(self, floor: sympy.Basic) -> tuple[int, int]:
        """Integers that make `scale n + shift` of a weight n proportional to its probability plus the floor."""
        if not isinstance(floor, sympy.Rational) or floor < 0:
            raise DraftcertError(f"the entropy's floor {floor} is not an exact number >= 0")
        return int(floor.q), int(floor.p) * self.row.total

    def _entropy(self, floor: sympy.Basic, bits: int) -> arb:
        if bits == FIRST_BITS and len(self._multiplicities) > ALONE:
            return self._grouped_entropy(floor)
        terms, denominator = self._entropy_terms(floor)
        return arb(denominator).log() - sum_balls(arb(n).log() * k for n, k in terms) / self.row.total

    def _grouped_entropy(self, floor: sympy.Basic) -> arb:
        """An enclosure from a few logarithms: `n ln(n + f)` is convex, so its sum over weights from `low` to `high`
        is at least that of as many weights at their mean, and at most that of weights at the two ends with their sum.
        """
        scale, shift = self._affine(floor)

        def term(weight: fmpq | int) -> arb:
            return arb(weight) * arb(scale * weight + shift).log()

        counted = self._multiplicities
        total = sum_balls(term(n) * times for n, times in counted[:ALONE])
        for start in range(ALONE, len(counted), GROUP):
            group = counted[start : start + GROUP]
            high, low = group[0][0], group[-1][0]
            tokens, mass = sum(times for _, times in group), sum(n * times for n, times in group)
            least = tokens * term(fmpq(mass, tokens))
            slope = (term(high) - term(low)) / (high - low) if high > low else arb(0)
            total += least.union(tokens * term(low) + slope * (mass - tokens * low))
        return arb(scale * self.row.total).log() - total / self.row.total

    def _equals(self, probability: fmpq, threshold: sympy.Expr) -> bool | None:
        """Whether they are equal; None for a threshold without an exact test."""
        scale, power = threshold.as_independent(Entropy, as_Add=False)
        if isinstance(power, sympy.exp) and isinstance(scale, sympy.Rational):
            if probability <= 0 or scale <= 0:
                return False  # the ball contains the probability only until precision tells the sign of exp
            ratio = to_fmpq(scale) / probability
            return self._vanishes(power.args[0], [(int(ratio.p), 1), (int(ratio.q), -1)])
        return self._vanishes(threshold - sympy.Rational(int(probability.p), int(probability.q)), [])

    def _vanishes(self, affine: sympy.Basic, logarithms: list[tuple[int, int]]) -> bool | None:
        """Whether an affine expression in entropies, plus `sum k ln(n)`, is exactly 0."""
        rest: sympy.Expr = affine  # type: ignore[assignment]
        powers: defaultdict[int, int | Fraction] = defaultdict(int)
        for entropy in affine.atoms(Entropy):
            weight = rest.coeff(entropy)
            rest = sympy.expand(rest - weight * entropy)
            if not isinstance(weight, sympy.Rational):
                return None
            terms, denominator = self._entropy_terms(entropy.args[0])
            scale = Fraction(int(weight.p), int(weight.q) * self.row.total)
            for n, k in terms:
                powers[n] -= scale * k
            powers[denominator] += scale * self.row.total
        if not isinstance(rest, sympy.Rational):
            return None
        for n, k in logarithms:
            powers[n] += k
        return rest == 0 and product_is_one(powers)


def product_is_one(powers: Mapping[int, int | Fraction]) -> bool:
    """Whether `prod n**k` over positive integers n with rational k is 1, by a coprime base.

    Residues modulo two primes refuse almost every product first, which is exact: a product that is 1 has residue 1.

    >>> product_is_one({12: 1, 2: -2, 3: -1}), product_is_one({12: 1, 2: -2, 3: -2})
    (True, False)
    """
    common = lcm(*(Fraction(k).denominator for k in powers.values()))
    integral = {n: int(k * common) for n, k in powers.items() if n > 1 and k}
    for prime in (2**61 - 1, 2**127 - 1):
        if all(n % prime for n in integral):
            residue = 1
            for n, k in integral.items():
                residue = residue * pow(n, k, prime) % prime
            if residue != 1:
                return False
    return all(_exponent(integral, base) == 0 for base in _coprime_base(list(integral)))


def _coprime_base(numbers: list[int]) -> list[int]:
    """Pairwise coprime integers > 1 of which every given number is a product of powers."""
    base: list[int] = []
    pending = list(numbers)
    while pending:
        number = pending.pop()
        if number == 1:
            continue
        for position, member in enumerate(base):
            shared = gcd(number, member)
            if shared > 1:
                base.pop(position)
                pending += [shared, member // shared, number // shared]
                break
        else:
            base.append(number)
    return base


def _exponent(powers: dict[int, int], base: int) -> int:
    """The exponent of `base` in the product of powers, base a member of a coprime base of it."""
    total = 0
    for n, k in powers.items():
        while n % base == 0:
            n //= base
            total += k
    return total
