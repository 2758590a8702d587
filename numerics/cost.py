"""What a relaxed rule may cost: the log-loss of the tokens it lets pass against the target's likeliest ones (S6)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from flint import arb
from sympy import Expr, Poly, false

from ..theory import DraftcertError, Rule, parse_rule
from ..theory.conditions import Condition, RankCondition, RowCondition, ThresholdCondition, fold_conditions
from ..theory.statistics import TOP
from .balls import precision, to_fmpq
from .certificate import check_digits, logit_ratio_of
from .decide import accepted_count
from .enclosure import Enclosure, is_certain
from .row import read_number, read_row


def log_loss(
    probabilities: Any,
    rule: Rule | str,
    digits: int = 50,
    *,
    logits: Any = None,
    logit_ratio: Any = None,
    normalize: bool = False,
) -> Enclosure:
    """The largest log-loss, in nats, of a token that the rule lets pass here: `ln(p_(1) / least accepted p)`.

    Greedy decoding has none. Summed along a text it bounds how far its tokens lie below the target's likeliest ones,
    each given the text before it; it says nothing of the likelihood of another text as a whole.

    Args:
        probabilities: V target probabilities, as for `certificate`, and so are `logits`, `logit_ratio`, `normalize`.
        rule: a rule or its text.
        digits: correct digits wanted.

    Returns:
        The enclosure; exactly 0 where no token less likely than the likeliest is accepted (or none at all: then the
        target's own token is taken), infinite where a token of probability 0 is.

    Raises:
        DraftcertError: as `certificate`.

    >>> print(log_loss(["0.5", "0.3", "0.2"], "additive(0.3)", digits=6))
    0.916291

    Source: S6 of `draftcert.theory`.
    """
    rule = parse_rule(rule)
    row = read_row(probabilities, normalize=normalize)
    digits = check_digits(digits)
    ratio = logit_ratio_of(logits, logit_ratio, len(row)) if rule.needs_logits else None
    count = accepted_count(rule, row, ratio)
    return _logarithm(row.ranked[0], row.ranked[max(count, 1) - 1], digits)


def log_loss_bound(rule: Rule | str, *, top: Any = None, margin: Any = None, digits: int = 50) -> Enclosure:
    """The largest log-loss, in nats, that a rule can let pass, over all targets or those with a known number.

    Sharp for a single threshold, a number or one in proportion to `p_(1)`; of several joined by `&` the least of their
    bounds, by `|` the largest. Infinite where nothing bounds it: ranks alone, entropies, ratios of logits.

    Args:
        rule: a rule or its text.
        top: `p_(1)` of the target, in (0, 1].
        margin: `p_(1) - p_(2)` of the target instead, in [0, 1].
        digits: correct digits wanted.

    Raises:
        DraftcertError: numbers out of their ranges, or both.

    >>> print(log_loss_bound("multiplicative(0.1)", digits=6), log_loss_bound("additive(0.3)", top="0.6", digits=6))
    2.30259 0.693147

    Source: S6 of `draftcert.theory`.
    """
    rule = parse_rule(rule)
    digits = check_digits(digits)
    if top is not None and margin is not None:
        raise DraftcertError("top and margin: give one of them")
    known = None if top is None else read_number(top, "top")
    gap = None if margin is None else read_number(margin, "margin")
    if known is not None and not 0 < known <= 1:
        raise DraftcertError(f"top = {top}: the largest probability lies in (0, 1]")
    if gap is not None and not 0 <= gap <= 1:
        raise DraftcertError(f"margin = {margin}: a difference of two probabilities, largest first, lies in [0, 1]")

    def worst(condition: Condition) -> _Ratio:
        if isinstance(condition, ThresholdCondition) and (line := _line(condition.threshold)):
            if known is not None:
                return _at_top(*line, known)
            return _over_tops(*line) if gap is None else _with_margin(*line, gap)
        if isinstance(condition, RankCondition) and condition.limit == 1:
            return _NONE
        if isinstance(condition, RowCondition) and condition.holds == false:
            return _NONE
        return _ANY

    found = fold_conditions(rule.accepts, worst, min, max)
    return _logarithm(found.value, not found.infinite, digits)


class _Ratio(NamedTuple):
    """How many times likelier than a token that passes the likeliest one can be: a number, or any."""

    infinite: bool
    value: Fraction


_NONE, _ANY = _Ratio(False, Fraction(1)), _Ratio(True, Fraction(1))


def _line(threshold: Expr) -> tuple[Fraction, Fraction] | None:
    """A threshold `constant + slope p_(1)` as (constant, slope); None for any other."""
    if threshold.free_symbols - {TOP} or not threshold.is_polynomial(TOP):
        return None
    line = Poly(threshold, TOP)
    if line.degree() > 1 or not all(each.is_Rational for each in line.all_coeffs()):
        return None
    slope, constant = (Fraction(int(c.p), int(c.q)) for c in (line.coeff_monomial(TOP), line.coeff_monomial(1)))
    return constant, slope


def _at_top(constant: Fraction, slope: Fraction, top: Fraction) -> _Ratio:
    """Sharp: a token besides the likeliest lies on the threshold, if it can."""
    threshold = constant + slope * top
    if threshold <= 0:
        return _ANY
    return _Ratio(False, top / threshold) if threshold <= min(top, 1 - top) else _NONE


def _over_tops(constant: Fraction, slope: Fraction) -> _Ratio:
    """The largest `p_(1)` that leaves room for a token on the threshold, which is likelier than none."""
    if constant < 0 or constant == slope == 0:
        return _ANY  # some target has a threshold as low as one likes
    top = (1 - constant) / (1 + slope)
    return _Ratio(False, top / (1 - top)) if 2 * top >= 1 else _NONE


def _with_margin(constant: Fraction, slope: Fraction, margin: Fraction) -> _Ratio:
    """The same where the second token lies `margin` below the likeliest: it, or a third token, is on the threshold."""
    if slope == 1:  # the second token passes, whatever p_(1), or never does
        return _NONE if margin > -constant else _ANY if constant < 0 else _Ratio(False, Fraction(1))
    if constant < 0 or slope > 1 or constant == slope == 0:
        return _ANY
    second_on_it, third_on_it = (constant + margin) / (1 - slope), (1 + margin - constant) / (2 + slope)
    if third_on_it >= second_on_it:
        return _Ratio(False, third_on_it / (constant + slope * third_on_it))
    return _Ratio(False, second_on_it / (second_on_it - margin)) if 2 * second_on_it <= 1 + margin else _NONE


def _logarithm(likeliest: Fraction | int, least: Fraction | int, digits: int) -> Enclosure:
    """`ln(likeliest / least)`, infinite where the least is 0."""
    if not least:
        return Enclosure(arb("inf"), digits)
    ratio = to_fmpq(Fraction(likeliest) / Fraction(least))
    bits = 64 + 4 * digits
    while True:
        with precision(bits):
            ball = arb(ratio).log() if ratio != 1 else arb(0)
        if is_certain(ball, digits):
            return Enclosure(ball, digits)
        bits *= 2
