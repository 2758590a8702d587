"""What an audit comes to, in a few sentences: what is guaranteed, what to set, what that costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..theory import parse_rule
from .judge import Judge
from .measure import RULES
from .recommendation import Recommendation, Setting, Wanted, evaluate
from .records import Audit
from .serving import Drafts, Largest, Served


@dataclass(frozen=True)
class Answer:
    """A question that a report is opened with, its answer in large, what is to be known of it, and what to type."""

    question: str
    short: str
    text: str
    code: str = ""


def answers(audit: Audit, wanted: Wanted, found: Sequence[Recommendation]) -> Iterator[Answer]:
    """The answers in the order that a reader asks; `found` is empty where no mean KL is known."""
    yield _guaranteed(audit, wanted, evaluate(audit, Judge(audit), parse_rule(RULES[0]), 1, wanted))
    if not found:
        yield Answer(
            "What to set",
            "No drafter was audited",
            "Audit with --drafter, or give the mean KL of yours to `draftcert recommend --mean-kl`.",
        )
        yield Answer("What it costs", "Nothing under strict greedy", f"{_OWN_OUTPUT}, whatever is drafted.")
        return
    aim = f"{_share(wanted.acceptance)} {wanted.by} acceptance"
    if reached := [each for each in found if each.reached]:
        best = min(reached, key=lambda each: (each.setting.risk, each.setting.candidates))
        short, text = f"{best.system}: {_told(best.setting)}", f"Of the settings that reach {aim} it has the least risk"
    else:  # nothing is worth a risk, then
        safe = [each for each in found if each.setting.risk == 0]
        best = max(safe or found, key=lambda each: each.setting.reached(wanted.by))
        short = f"Nothing reaches {aim}"
        text = f"The most without a risk is {best.system} with {_told(best.setting)}"
        if best.setting.needed_kl > 0:
            text += f", which guarantees it to a drafter of mean KL below {best.setting.needed_kl:.3g} nats"
    counted = "" if best.setting.measured is None else f", counted: {_share(best.setting.measured)}"
    acceptance = f"{wanted.by}: {_share(best.setting.reached(wanted.by))}{'' if wanted.by == 'measured' else counted}"
    yield Answer("What to set", short, f"{text} ({acceptance}). Its settings:", best.settings)
    yield _cost(best.setting)


_OWN_OUTPUT = "The output is the target's own greedy output, token for token"


def _guaranteed(audit: Audit, wanted: Wanted, strict: Setting) -> Answer:
    """Of strict greedy with one candidate: by the certificates of the audited drafter, or by a mean KL alone."""
    question, positions = "What is guaranteed", f"these {len(audit)} positions"
    if strict.certified is not None and strict.measured is not None and wanted.mean_kl is None:
        return Answer(
            question,
            f"{_share(strict.certified)} of positions accept for certain",
            f"There the drafter's KL lies below the certificate, so strict greedy accepts its likeliest token. Counted "
            f"on {positions}: {_share(strict.measured)}. The mean KL of {audit.mean_kl:.3g} nats alone guarantees "
            f"{_share(strict.guaranteed)}, to any drafter that has it.",
        )
    if wanted.mean_kl is None:
        return Answer(
            question,
            f"{_share(wanted.acceptance)} acceptance below a mean KL of {strict.needed_kl:.3g} nats",
            f"Strict greedy accepts the likeliest token of any drafter whose KL from {audit.configuration.target} "
            f"averages less than that over {positions}, on at least so many of them.",
        )
    return Answer(
        question,
        f"At least {_share(strict.guaranteed)} of drafted tokens accepted",
        f"Strict greedy accepts the likeliest token of any drafter with a mean KL of {wanted.mean_kl:.3g} nats on at "
        f"least so many of {positions}; some drafter with that KL does no better.",
    )


def _cost(setting: Setting) -> Answer:
    if setting.risk == 0:
        return Answer("What it costs", "Nothing in quality", f"{_OWN_OUTPUT}.")
    loss = "without a bound" if math.isinf(setting.log_loss) else f"of at most {setting.log_loss:.3g} nats a token"
    return Answer(
        "What it costs",
        f"{_share(setting.risk)} of positions can depart from the target",
        f"There a token can pass that the target ranks lower, at a log-loss {loss} on average.",
    )


def worth(drafts: Sequence[Drafts], alone: Largest | None, served: Served | None) -> Answer:
    """Whether a drafter is worth serving, and what share of the possible it reaches."""
    question, first = "Is it worth serving", min(drafts, key=lambda each: each.length)
    best = max(drafts, key=lambda each: each.tokens) if served is None else served.drafts
    possible = (
        f"No drafter can have more than {best.most:.3g} at this length under strict greedy: this one reaches "
        f"{_share(best.share)} of the possible"
    )
    if alone is not None and alone.share is not None:
        possible += (
            f"; when sampling at temperature 1, {_share(alone.share)} of the {_share(alone.most)} that nobody exceeds "
            f"with {_candidates(alone.candidates)}"
        )
    if served is not None:
        return Answer(question, f"{served.speed_up:.2f} times the target alone", f"{served}. {possible}.")
    return Answer(
        question,
        f"{best.tokens:.3g} tokens a pass of the target",
        f"With drafts of {best.length} tokens, one candidate; {first.tokens:.3g} with {first.length}. {possible}. "
        f"Drafting is slower than the target alone once a draft step costs {first.break_even:.2g} of a pass with the "
        f"shortest, {best.break_even:.2g} with the longest. With --draft-cost the best length and width are told.",
    )


def _share(value: float) -> str:
    """A share in per cent, rounded down: what is guaranteed is not made more."""
    return f"{math.floor(value * 1000) / 10:g} %"


def _told(setting: Setting) -> str:
    """A rule and its number of candidates."""
    return f"{setting.rule} and {_candidates(setting.candidates)}"


def _candidates(number: int) -> str:
    return "one candidate" if number == 1 else f"{number} candidates"
