"""Whether two engines that decode one model greedily say the same: identical, within measured noise, or a fault.

Where two outputs of a prompt part, the plain model says which token is its greedy one, and how far rounding moves the
row there is measured (`runtime.trees.explain`): a margin within twice that can be decided either way. What follows such
a place is judged by itself, since it has another beginning: every token must be the plain model's greedy one, or within
noise of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..runtime.models.evaluating import evaluating
from ..runtime.trees.explain import Explanation, explain
from ..runtime.trees.plain import plain_logits
from ..support.files import text_lines
from ..theory.errors import DraftcertError
from ..theory.numbers import shown
from .answers import strict_json

if TYPE_CHECKING:
    from ..runtime.models import LoadedModel

WITHIN_NOISE = ("exact tie", "numerical noise")
"""Verdicts of `explain` on two tokens that can both be greedy."""


@dataclass(frozen=True)
class Output:
    """What one engine made of a prompt, in token ids."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Compared:
    """Two outputs of one prompt: "identical", "noise" or "fault", and why; `position` of the first difference."""

    id: str
    verdict: str
    text: str
    position: int | None = None


def read_outputs(path: str | Path) -> dict[str, Output]:
    """The outputs in a file of JSON lines, `{"id": ..., "prompt_tokens": [...], "tokens": [...]}` each, by id.

    Raises:
        DraftcertError: no such file, no output in it, a line that is not of this form, an id twice; with the line.
    """
    found: dict[str, Output] = {}
    for number, line in text_lines(path):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        match strict_json(line, where):
            case {"id": str(name), "prompt_tokens": [_, *_] as prompt, "tokens": [*tokens]} if all(
                type(token) is int and token >= 0 for token in (*prompt, *tokens)
            ):
                if name in found:
                    raise DraftcertError(f"{where}: the id {shown(name)} stands twice")
                found[name] = Output(tuple(prompt), tuple(tokens))
            case _:
                raise DraftcertError(f'{where}: no {{"id": text, "prompt_tokens": [ids], "tokens": [ids]}}')
    if not found:
        raise DraftcertError(f"{path} holds no output")
    return found


def compare_outputs(target: LoadedModel, first: str | Path, second: str | Path) -> Iterator[Compared]:
    """Judge the outputs of two engines that decoded the same prompts with `target`, greedily and with one budget.

    Raises:
        DraftcertError: as `read_outputs`; outputs that do not belong together: an id or a prompt in one file only, a
            token that the model does not have, no new token in either; or the noise of the model cannot be measured.
    """
    sides = [read_outputs(path) for path in (first, second)]
    if alone := set(sides[0]) ^ set(sides[1]):
        raise DraftcertError(f"only one of {first} and {second} holds the output {shown(min(alone))}")
    ends = getattr(target.model.generation_config, "eos_token_id", None)
    ends = [] if ends is None else ends if isinstance(ends, list) else [ends]
    for name, a in sides[0].items():
        b = sides[1][name]
        if a.prompt != b.prompt:
            raise DraftcertError(f"{shown(name)}: the prompts differ, so that the outputs cannot be compared")
        if not a.tokens and not b.tokens:
            raise DraftcertError(f"{shown(name)}: neither {first} nor {second} holds a new token")
        target.batch([*a.prompt, *a.tokens, *b.tokens])  # refuses what the model does not have
        yield _compared(name, target, a.prompt, _ended(a.tokens, b.tokens, ends), _ended(b.tokens, a.tokens, ends))


def _ended(tokens: tuple[int, ...], other: tuple[int, ...], ends: Sequence[int]) -> tuple[int, ...]:
    """An output that is the shorter one has ended, which some engines do not show: with the token that ends it."""
    if len(tokens) >= len(other) or not ends or (tokens and tokens[-1] in ends):
        return tokens
    return (*tokens, other[len(tokens)] if other[len(tokens)] in ends else ends[0])


def _compared(name: str, target: LoadedModel, prompt: Sequence[int], a: Sequence[int], b: Sequence[int]) -> Compared:
    found = explain(target, prompt, a, b)
    if found.verdict == "engine fault":
        raise DraftcertError(f"{shown(name)}: {found.text}, so that noise cannot be measured here")
    if found.verdict == "identical":
        return Compared(name, "identical", found.text)
    if found.verdict not in WITHIN_NOISE:
        return Compared(name, "fault", f"{found.text}{_measured(found)}", found.position)
    for which, tokens in (("first", a), ("second", b)):
        left = _leaves_greedy(target, prompt, tokens)
        if left is not None:
            text = f"after a difference within noise the {which} output leaves the greedy token{_measured(left)}"
            return Compared(name, "fault", text, left.position)
    return Compared(name, "noise", f"{found.text}{_measured(found)}", found.position)


def _measured(found: Explanation) -> str:
    if found.margin is None or found.noise is None:
        return ""
    first, second = found.tokens
    return f" ({first} and {second}, greedy {found.greedy}; margin {found.margin:.3g}, noise {found.noise:.3g})"


def _leaves_greedy(target: LoadedModel, prompt: Sequence[int], tokens: Sequence[int]) -> Explanation | None:
    """The first place where the plain model has another greedy token, by more than noise."""
    with evaluating(target.model):
        rows = plain_logits(target.model, [[*prompt, *tokens]], len(tokens) + 1)[0, :-1]
    for place, (likeliest, token) in enumerate(zip(rows.argmax(-1).tolist(), tokens, strict=True)):
        if likeliest != token:
            before = tokens[:place]
            found = explain(target, prompt, [*before, likeliest], [*before, token])
            if found.verdict not in WITHIN_NOISE:
                return found
    return None
