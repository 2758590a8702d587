"""How often verification by sampling accepts at least, given KL(target || draft): sharp, to any number of digits.

The worst drafter is known in closed form (S2): on some tokens the ratio target/draft is `u < 1`, on all others it is
`v > 1`. Whatever `v` is tried, the pair it makes bounds the curve from one side and the tangent there from the other.
So the root finder is not trusted: an enclosure is made of two proven bounds, and narrowed until its digits are certain.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import mpmath
from flint import arb, fmpq

from ..theory import DraftcertError
from ..theory.sampling import ACCEPTANCE, KL, TANGENT, u, v
from ..theory.sampling import kl as divergence
from ..theory.sampling import lenience as allowed
from .balls import ball_function, bit_size, precision, to_fmpq, to_mpf
from .certificate import check_candidates, check_digits, projected
from .enclosure import Enclosure, is_certain
from .row import ExactRow, read_divergence, read_number, read_row

FAR = 100
"""Above this many nats the least acceptance is `exp(-kl)` to more digits than anybody can ask for."""
DOUBLINGS = 7
"""How often the precision is doubled before a value counts as one that no precision tells from a rounding tie."""
HUGE = 10**300
"""Above this many nats it is beyond the range of exponents."""
HEAD = 24
"""All sets of so many most likely tokens of a row are looked at."""


def sampling_acceptance(kl: Any, lenience: Any = 1, *, probabilities: Any = None, digits: int = 50) -> Enclosure:
    """The least acceptance of speculative sampling over all pairs with KL(target || draft) of at most `kl` nats.

    A drafted token x is accepted with probability `min(1, target(x) / (lenience draft(x)))`, so that all in all
    `sum min(draft, target / lenience)` is: one minus the total variation where there is no lenience. The bound is
    sharp, and convex in `kl`: at a mean KL of `kl` over contexts the mean acceptance is at least this too.

    Args:
        kl: KL(target || draft) in nats, or its mean over contexts: a number >= 0, read exactly, or infinity; of an
            enclosure the upper end.
        lenience: by how much the draft may exceed the target, in (0, 1].
        probabilities: a target distribution, as for `certificate`: then the least acceptance over drafts for this very
            target. It does not hold for means.
        digits: correct digits wanted; for a row of more than 24 tokens there may be fewer, as the enclosure says.

    Returns:
        The enclosure; exactly 1 at `kl = 0` and 0 at infinity.

    Raises:
        DraftcertError: a negative or NaN `kl`, a lenience outside (0, 1], or no distribution.

    >>> print(sampling_acceptance("0.05", digits=5), sampling_acceptance("0.3", "1/2", digits=5))
    0.84233 0.72045
    >>> print(sampling_acceptance("0.05", probabilities=["0.9", "0.1"], digits=5))
    0.87992

    Source: Fedotov, Harremoes and Topsoe 2003 for lenience 1; else S2 of `draftcert.theory`.
    """
    digits = check_digits(digits)
    slack = _lenience(lenience)
    row = None if probabilities is None else read_row(probabilities)
    given = read_divergence(_upper_end(kl), "kl")
    if given is None:
        one_token = row is not None and len(row) == 1
        return Enclosure(arb(1 if one_token else 0), digits)
    budget = to_fmpq(given)
    if budget == 0:
        return Enclosure(arb(1), digits)
    if budget > HUGE:
        raise DraftcertError(f"kl = {kl}: an acceptance below exp(-1e300) is not written; give infinity for 0")
    with precision(64 + 4 * digits):
        near_one = arb(1).union(1 - arb(budget / 2).sqrt())  # Pinsker's inequality, for any lenience and target
    if is_certain(near_one, digits):
        return Enclosure(near_one, digits, most=1)
    size = bit_size(budget)
    over_pairs = partial(_least_acceptance, budget, slack)
    with_mass = partial(_accepting, budget, slack)
    return _certain(over_pairs, with_mass, arb(1), row, size, digits)


def kl_for_sampling_acceptance(
    acceptance: Any, lenience: Any = 1, *, probabilities: Any = None, digits: int = 50
) -> Enclosure:
    """The KL(target || draft), in nats, below which speculative sampling accepts with at least this probability.

    The inverse of `sampling_acceptance`: a drafter whose KL, or whose mean KL over contexts, is smaller accepts more
    often, and for every larger number some pair does not.

    Args:
        acceptance: the probability wanted, in [0, 1], read exactly; of an enclosure the upper end.
        lenience: as for `sampling_acceptance`.
        probabilities: a target distribution; then the least KL of a draft for this target that is accepted no more
            often.
        digits: correct digits wanted; for a row of more than 24 tokens there may be fewer, as the enclosure says.

    Returns:
        The enclosure; exactly 0 at acceptance 1 and infinite at 0.

    Raises:
        DraftcertError: an acceptance outside [0, 1], a lenience outside (0, 1], or no distribution.

    >>> print(kl_for_sampling_acceptance("0.9", digits=5), kl_for_sampling_acceptance("0.9", "1/2", digits=5))
    0.020045 0.088952

    Source: S2 of `draftcert.theory`.
    """
    digits = check_digits(digits)
    slack = _lenience(lenience)
    row = None if probabilities is None else read_row(probabilities)
    wanted = _number(_upper_end(acceptance), "acceptance")
    if not 0 <= wanted <= 1:
        raise DraftcertError(f"acceptance = {acceptance}: a probability lies in [0, 1]")
    if wanted == 0:
        return Enclosure(arb("inf"), digits)
    if wanted == 1:
        return Enclosure(arb(0), digits)
    size = max(bit_size(wanted), bit_size(1 - wanted), key=abs)
    over_pairs = partial(_least_kl, wanted, slack)
    with_mass = partial(_rejecting, wanted, slack)
    return _certain(over_pairs, with_mass, arb("inf"), row, size, digits)


def _upper_end(value: Any) -> Any:
    """The upper end of an enclosure, on the safe side of a KL and of an acceptance; other values as they are."""
    return value.upper if isinstance(value, Enclosure) else value


def _number(value: Any, what: str) -> fmpq:
    return to_fmpq(read_number(value, what))


def _lenience(lenience: Any) -> fmpq:
    exact = _number(lenience, "lenience")
    if not 0 < exact <= 1:
        raise DraftcertError(f"lenience = {lenience}: give a number above 0 and at most 1")
    return exact


Least = tuple[arb, arb]
"""The least acceptance or KL, and the mass that the target of the worst pair gives to the tokens drafted too often."""


def _certain(
    over_pairs: Callable[[int], Least],
    with_mass: Callable[[fmpq, int], arb],
    without: arb,
    row: ExactRow | None,
    size: int,
    digits: int,
) -> Enclosure:
    """The least value over all pairs, or all drafts for a row, at a precision at which its digits are certain.

    For a row it is the least over sets of tokens that can be drafted too often, and the value `without` any. Of a set
    only the target's mass matters (`with_mass`). The value is convex in this mass, so that only the two masses count
    that lie next to that of the worst pair.
    """
    bits = 64 + 7 * digits + 4 * abs(size)
    for _ in range(DOUBLINGS):
        with precision(bits):
            ball, mass = over_pairs(bits)
            if row is not None and ball.is_finite():
                seen, nearer = (_least_of(each, with_mass, without, bits) for each in _masses_next_to(mass, row))
                # Without a set that rejects so much there is none at all, since the least likely token alone is seen.
                ball = seen.union(nearer) if seen.is_finite() and not seen.overlaps(nearer) else seen
                if ball.is_finite() and ball is not seen:
                    certain = max(n for n in range(digits + 1) if not n or is_certain(ball, n))
                    return Enclosure(ball, certain, most=float(without))
        if not ball.is_nan() and is_certain(ball, digits):
            return Enclosure(ball, digits, most=float(without))
        bits *= 2
    raise DraftcertError(f"{digits} digits are not certain at {bits} bits: ask for one more or one less")


def _least_of(masses: Iterable[Fraction], with_mass: Callable[[fmpq, int], arb], without: arb, bits: int) -> arb:
    for mass in masses:
        without = without.min(with_mass(to_fmpq(mass), bits))
    return without


# ---- all pairs -------------------------------------------------------------------------------------------------

_KL, _ACCEPTANCE = (ball_function(expression, (u, v, allowed)) for expression in (KL, ACCEPTANCE))
_TANGENT = ball_function(TANGENT, (u, v, divergence))


@dataclass(frozen=True)
class _Pair:
    """The worst pair for a lenience, by the larger one of its ratios target/draft."""

    v: arb
    lenience: fmpq

    @cached_property
    def u(self) -> arb:
        """The smaller ratio: (v - u)/ln(v/u) = lenience, solved by Lambert's function."""
        scaled = self.v / self.lenience
        return -self.lenience * (-scaled * (-scaled).exp()).lambertw()

    @property
    def kl(self) -> arb:
        return arb(_KL(self.u, self.v, self.lenience))

    @property
    def acceptance(self) -> arb:
        return arb(_ACCEPTANCE(self.u, self.v, self.lenience))

    @property
    def mass(self) -> arb:
        return self.u * (self.v - 1) / (self.v - self.u)


def _least_acceptance(kl: fmpq, lenience: fmpq, bits: int) -> Least:
    if kl > FAR:
        # At most exp(-kl), by a target without mass on the tokens drafted too often. At least (1 - u) exp(-kl), by the
        # tangent at lenience ln(v/u) = exp(kl): there u is far below any rounding.
        return (-arb(kl)).exp() * arb(1).union(1 - arb(2) ** -bits), arb(0)

    def excess(log_of_v_above_1: arb) -> arb:
        return (_Pair(1 + log_of_v_above_1.exp(), lenience).kl / kl).log()

    # v - 1 >= ln v >= KL, and at v = exp(kl + 2) the other term of the divergence is below 1.
    found = root(excess, arb(kl).log() - 1, arb(kl) + 2, bits)
    if found is None:
        return arb.nan(), arb.nan()
    pair = _Pair(1 + found[0].exp(), lenience)
    return pair.acceptance.union(arb(_TANGENT(pair.u, pair.v, kl))), pair.mass


def _least_kl(acceptance: fmpq, lenience: fmpq, bits: int) -> Least:
    if -arb(acceptance).log() > FAR + 1:  # as above: exp(-kl) (1 - u) <= acceptance <= exp(-kl)
        return -arb(acceptance).log() - arb(0).union(arb(2) ** -bits), arb(0)

    def excess(log_of_v_above_1: arb) -> arb:
        accepted = _Pair(1 + log_of_v_above_1.exp(), lenience).acceptance
        return ((1 - accepted) / accepted * acceptance / (1 - acceptance)).log()

    # v - 1 is at least what is rejected, and at v = exp(3)/acceptance less is accepted.
    found = root(excess, arb(1 - acceptance).log() - 1, 3 - arb(acceptance).log(), bits)
    if found is None:
        return arb.nan(), arb.nan()
    pair = _Pair(1 + found[1].exp(), lenience)
    return pair.kl.union((arb(_TANGENT(pair.u, pair.v, 0)) - acceptance) * (pair.v - pair.u)), pair.mass


def root(excess: Callable[[arb], arb], low: arb, high: arb, bits: int) -> tuple[arb, arb] | None:
    """Where an increasing function vanishes: a point where it is certainly negative and one where it is positive.

    `None` where its sign is not certain at this precision.
    """
    if not (excess(low) < 0 and excess(high) > 0):
        return None
    with mpmath.workprec(bits):
        ends = to_mpf(low), to_mpf(high)
        middle = mpmath.findroot(
            lambda x: to_mpf(excess(arb(x))),
            ends,
            solver="illinois",
            tol=mpmath.mpf(2) ** -bits,
            maxsteps=bits,
            verify=False,
        )
    width = (abs(arb(middle)) + 1) * arb(2) ** (-bits // 2)
    below, above = ((arb(middle) + side * width).mid() for side in (-1, 1))
    return (below, above) if excess(below) < 0 and excess(above) > 0 else None


# ---- the drafts for one row ------------------------------------------------------------------------------------


def _accepting(kl: fmpq, lenience: fmpq, mass: fmpq, bits: int) -> arb:
    """The least acceptance if the tokens drafted too often have this mass of the target: the draft gives them most."""
    if mass == 0:
        return (-arb(kl)).exp()

    def drafted_elsewhere(z: arb) -> arb:
        return (1 - mass) * (-z).exp()

    def excess(z: arb) -> arb:
        return ((mass * (mass / (1 - drafted_elsewhere(z))).log() + (1 - mass) * z) / kl).log()

    # (1 - mass) z is what the other tokens add to the divergence; these add between -1 and 0.
    found = root(excess, arb(kl / (1 - mass)), arb((kl + 1) / (1 - mass)), bits)
    if found is None:
        return arb.nan()
    return drafted_elsewhere(found[0].union(found[1])) + mass / lenience


def _rejecting(acceptance: fmpq, lenience: fmpq, mass: fmpq, bits: int) -> arb:
    """The least KL that rejects so often if the tokens drafted too often have this mass of the target."""
    elsewhere = acceptance - mass / lenience
    if elsewhere <= 0:
        return arb("inf")
    own = mass * arb(mass / (1 - elsewhere)).log() if mass else arb(0)
    return own + (1 - mass) * arb((1 - mass) / elsewhere).log()


def _masses_next_to(wanted: arb, row: ExactRow) -> tuple[set[Fraction], set[Fraction]]:
    """Masses of sets of tokens next to a wanted one, below and above, and between which of them no set is nearer.

    All sets of the likeliest tokens are looked at. The others fill up what is missing: as far as they can for masses
    of sets, and as if they could be divided for those that no set is nearer than.
    """
    head, tail = ([weight for weight in row.ranked if weight][part] for part in (slice(HEAD), slice(HEAD, None)))
    scaled = wanted * row.total
    aim = 0 if scaled < 1 else min(int(to_mpf(scaled)), row.total)
    seen, nearer = set[int](), set[int]()
    for most, turned in ((aim, False), (row.total - aim - 1, True)):
        start = _largest_sum(head, most)
        filled, divided = start + _fill(tail, most - start), min(most, start + sum(tail))
        seen.add(row.total - filled if turned else filled)
        nearer.add(row.total - divided if turned else divided)
    least = (tail or head)[-1]
    never_taken = {Fraction(0)} if len(head) + len(tail) < len(row) else set[Fraction]()
    sets = ({Fraction(each, row.total) for each in found | {least} if 0 < each < row.total} for found in (seen, nearer))
    return next(sets) | never_taken, next(sets) | never_taken


def _largest_sum(weights: Sequence[int], most: int) -> int:
    """The largest sum of some of the weights that is not above `most`; 0 for a negative one."""
    firsts, seconds = (_all_sums(half) for half in (weights[::2], weights[1::2]))
    return max(
        (first + seconds[bisect_right(seconds, most - first) - 1] for first in firsts if first <= most), default=0
    )


def _fill(weights: Sequence[int], most: int) -> int:
    """A sum of some of the weights, the largest first, to which none can be added without exceeding `most`."""
    left = most
    for weight in weights:
        left -= weight if weight <= left else 0
    return most - left


def _all_sums(weights: Sequence[int]) -> list[int]:
    """The sums of all subsets, in ascending order."""
    sums = [0]
    for weight in weights:
        sums += [weight + each for each in sums]
    return sorted(sums)


# ---- a threshold with a coin -----------------------------------------------------------------------------------


def threshold_acceptance(
    probabilities: Any, kl: Any, threshold_single: Any = 1, threshold_acc: Any = 1, candidates: int = 1
) -> Fraction:
    """How often SGLang's sampling at temperature > 0 accepts at least at a position, given KL(target || draft).

    The drafter's `candidates` most likely tokens are tried. One of target probability `threshold_single` or more is
    accepted for certain; else the acceptance is the sum of their target probabilities over `threshold_acc`, at most 1.
    For one candidate the bound is sharp: the drafter proposes the least likely token that it can for its `kl`. For
    more it counts the likeliest candidate only. SGLang ships 1 and 1: then the acceptance is the token's probability.

    Args:
        probabilities: a target distribution (after temperature, top-k and top-p), as for `certificate`.
        kl: KL(target || draft) at most, in nats.
        threshold_single: SGLang's `--speculative-accept-threshold-single`, in [0, 1].
        threshold_acc: SGLang's `--speculative-accept-threshold-acc`, in (0, 1].
        candidates: how many of its most likely tokens the drafter proposes.

    Returns:
        The probability, exactly.

    Raises:
        DraftcertError: numbers out of their ranges, or no distribution.

    >>> threshold_acceptance(["0.6", "0.3", "0.1"], "0.1"), threshold_acceptance(["0.6", "0.3", "0.1"], "0.01")
    (Fraction(3, 10), Fraction(3, 5))
    """
    row = read_row(probabilities)
    candidates = check_candidates(candidates, len(row))
    single, every = (
        read_number(value, what)
        for value, what in ((threshold_single, "threshold_single"), (threshold_acc, "threshold_acc"))
    )
    if not (0 <= single <= 1 and 0 < every <= 1):
        raise DraftcertError(f"thresholds {threshold_single} and {threshold_acc}: give one in [0, 1] and one in (0, 1]")
    budget = read_divergence(kl, "kl")
    masses = [row.probability(token) for token in row.order]

    def proposable(rank: int) -> bool:
        """Whether the drafter can propose nothing likelier than the token of this rank."""
        if budget is None:
            return True
        digits = 20
        while True:
            least = projected(masses[:rank], masses[rank : rank + candidates], digits) if rank else arb(0)
            if least > to_fmpq(budget):
                return False
            if least <= to_fmpq(budget):
                return True
            digits *= 2

    ranks = range(len(masses) - candidates + 1)
    worst = masses[bisect_left(ranks, True, key=lambda rank: not proposable(rank)) - 1]
    return Fraction(1) if worst >= single else min(Fraction(1), worst / every)
