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
from .serving import Drafts


@dataclass(frozen=True)
class Answer:
    """A question that a report is opened with, its answer in large, what is to be known of it, and what to type."""

    question: str
    short: str
    text: str
    code: str = ""


def answers(
    audit: Audit, wanted: Wanted, found: Sequence[Recommendation], drafts: Sequence[Drafts]
) -> Iterator[Answer]:
    """The answers in the order that a reader asks; `found` and `drafts` are empty where no mean KL is known."""
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
    yield _cost(best.setting, drafts)


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


def _cost(setting: Setting, drafts: Sequence[Drafts]) -> Answer:
    if setting.risk == 0:
        short, text = "Nothing in quality", f"{_OWN_OUTPUT}."
    else:
        short = f"{_share(setting.risk)} of positions can depart from the target"
        loss = "without a bound" if math.isinf(setting.log_loss) else f"of at most {setting.log_loss:.3g} nats a token"
        text = f"There a token can pass that the target ranks lower, at a log-loss {loss} on average."
    if drafts:
        best = max(drafts, key=lambda each: each.break_even * each.length)
        first = min(drafts, key=lambda each: each.length)
        text += (
            f" In time: drafts of {first.length} to {best.length} tokens give {first.tokens:.3g} to {best.tokens:.3g} "
            "tokens a pass of the target (strict greedy, one candidate). Drafting is slower than the target alone once "
            f"a draft step costs {first.break_even:.2g} of a pass with the former, {best.break_even:.2g} with the "
            "latter."
        )
    return Answer("What it costs", short, text)


def _share(value: float) -> str:
    """A share in per cent, rounded down: what is guaranteed is not made more."""
    return f"{math.floor(value * 1000) / 10:g} %"


def _told(setting: Setting) -> str:
    """A rule and its number of candidates."""
    return f"{setting.rule} and {'one candidate' if setting.candidates == 1 else f'{setting.candidates} candidates'}"
