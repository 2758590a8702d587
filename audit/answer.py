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
    """A question that a report is opened with, its answer in large, and what is to be known of it."""

    question: str
    short: str
    text: str


def answers(
    audit: Audit, wanted: Wanted, found: Sequence[Recommendation], drafts: Sequence[Drafts]
) -> Iterator[Answer]:
    """The answers in the order that a reader asks; `found` and `drafts` are empty where no mean KL is known."""
    strict = evaluate(audit, Judge(audit), parse_rule(RULES[0]), 1, wanted)
    aim = f"{wanted.acceptance:.0%} {wanted.by} acceptance"
    yield _guaranteed(audit, wanted, strict)
    if not found:
        yield Answer(
            "What to set",
            "No drafter was audited",
            "Audit with --drafter, or give the mean KL of yours to `draftcert recommend --mean-kl`.",
        )
        yield Answer(
            "What it costs", "Nothing under strict greedy", "Its output is the target's own, whatever is drafted."
        )
        return
    reached = [each for each in found if each.reached]
    best = (
        min(reached, key=lambda each: (each.setting.risk, each.setting.candidates))
        if reached
        else max(found, key=lambda each: each.setting.reached(wanted.by))
    )
    setting = best.setting
    where = f"{setting.rule} with {_candidates(setting)}"
    needed = f"a drafter of mean KL below {setting.needed_kl:.3g} nats would be guaranteed it under this setting"
    yield Answer(
        "What to set",
        f"{best.system}: {where}" if reached else f"Nothing reaches {aim}",
        f"It has the least risk of the settings that reach {aim}: {_share(setting.reached(wanted.by))}. "
        f"In its configuration: {best.settings}"
        if reached
        else f"The nearest is {best.system} with {where}: {_share(setting.reached(wanted.by))}; {needed}.",
    )
    yield _cost(setting, drafts)


def _guaranteed(audit: Audit, wanted: Wanted, strict: Setting) -> Answer:
    mean_kl = wanted.mean_kl if wanted.mean_kl is not None else audit.mean_kl if audit.has_draft else None
    if mean_kl is None:
        return Answer(
            "What is guaranteed",
            f"{wanted.acceptance:.0%} acceptance below a mean KL of {strict.needed_kl:.3g} nats",
            f"Any drafter whose KL from {audit.configuration.target} averages less than that over these {len(audit)} "
            "positions is accepted on at least so many of them, under strict greedy with one candidate.",
        )
    counted = "" if strict.measured is None else f" Counted with the audited drafter: {_share(strict.measured)}."
    return Answer(
        "What is guaranteed",
        f"At least {_share(strict.guaranteed)} of drafted tokens accepted",
        f"Whatever drafter has a mean KL of {mean_kl:.3g} nats on these {len(audit)} positions, strict greedy accepts "
        f"its likeliest token on at least so many; some drafter with that KL does no better.{counted}",
    )


def _cost(setting: Setting, drafts: Sequence[Drafts]) -> Answer:
    if setting.risk == 0:
        short, text = "Nothing in quality", "The output is the target's own greedy output, token for token."
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


def _candidates(setting: Setting) -> str:
    return "one candidate" if setting.candidates == 1 else f"{setting.candidates} candidates"
