"""Read top-k log-probabilities out of the responses of inference servers.

Formats: OpenAI completions and chat completions as vLLM, SGLang, llama.cpp and TGI serve them, vLLM's
`prompt_logprobs`, llama.cpp's native `completion_probabilities`, SGLang's native `meta_info` and TGI's `details`.
One JSON document a file, or one a line. Server-sent events ("data: {...}") are read as lines.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..theory.errors import DraftcertError


@dataclass(frozen=True)
class Entry:
    """A token and its log-probability in nats, as the server gave them."""

    token: str
    logprob: float


@dataclass(frozen=True)
class TopLogprobs:
    """What a server says about one position.

    `entries` are in descending order. The first `contiguous` of them are the row's most likely tokens; one more may
    follow, the chosen token: a server appends it where it is not among the top k, so that tokens more likely than it
    may be missing from the list. 0 where a list keyed by text has lost a token to another one of the same text: the
    lost one may have been any, the most likely included.
    """

    where: str
    chosen: Entry
    entries: tuple[Entry, ...]
    contiguous: int


def read_responses(path: str | Path) -> list[TopLogprobs]:
    """All positions of all responses in a file, in order.

    Raises:
        DraftcertError: no such file, not JSON, no log-probabilities in it, or a list that is inconsistent: a
            log-probability above 0 or NaN, probabilities that sum to more than 1, or entries out of order. The
            message names the line and the position.
    """
    file = Path(path)
    if not file.is_file():
        raise DraftcertError(f"no file of server responses at {file}")
    positions = [position for line, document in _documents(file) for position in _positions(document, f"{file}:{line}")]
    if not positions:
        raise DraftcertError(
            f"{file} holds no top log-probabilities: ask the server for them (completions: logprobs=20; chat: "
            "logprobs=true, top_logprobs=20; vLLM prompts: prompt_logprobs=20; llama.cpp: n_probs=20)"
        )
    return positions


def _documents(file: Path) -> Iterator[tuple[int, Any]]:
    text = file.read_text("utf-8")
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        pass
    else:
        yield from ((1, document) for document in (whole if isinstance(whole, list) else [whole]))
        return
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.removeprefix("data:").strip()
        if not line or line == "[DONE]":
            continue
        try:
            yield number, json.loads(line)
        except json.JSONDecodeError as error:
            raise DraftcertError(f"{file}:{number}: not JSON ({error})") from error


def _positions(document: Any, where: str) -> Iterator[TopLogprobs]:
    """Dispatch on the keys that tell the formats apart."""
    if not isinstance(document, dict):
        raise DraftcertError(f"{where}: expected a response object, found {type(document).__name__}")
    if isinstance(document.get("error"), dict):
        raise DraftcertError(f"{where}: the server answered with an error: {document['error'].get('message')}")
    yield from _vllm_prompt(document.get("prompt_logprobs"), where)
    for number, choice in enumerate(document.get("choices") or []):
        place = f"{where}, choice {number}"
        yield from _vllm_prompt(choice.get("prompt_logprobs"), place)
        logprobs = choice.get("logprobs") or {}
        if "content" in logprobs:
            yield from _openai_chat(logprobs["content"] or [], place)
        elif "top_logprobs" in logprobs:
            yield from _openai_completion(logprobs, place)
    yield from _openai_chat(document.get("completion_probabilities") or [], where)
    yield from _sglang(document.get("meta_info") or {}, where)
    yield from _tgi(document.get("details") or {}, where)


def _openai_chat(content: list[dict[str, Any]], where: str) -> Iterator[TopLogprobs]:
    for index, item in enumerate(content):
        # llama.cpp's native answer is the same but for `probs`, which its older versions write in place of logprobs.
        listed = [
            Entry(_name(entry), _log(entry))
            for entry in item.get("top_logprobs") or item.get("top_probs") or item.get("probs") or []
        ]
        if listed:
            place = f"{where}, position {index}"
            chosen = Entry(_name(item), _log(item)) if "logprob" in item or "prob" in item else listed[0]
            yield _checked(place, chosen, listed)


def _openai_completion(logprobs: dict[str, Any], where: str) -> Iterator[TopLogprobs]:
    rows = []
    for index, (token, logprob, top) in enumerate(
        zip(logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"] or [], strict=False)
    ):
        if top:  # the first token of an echoed prompt has none
            # A JSON object has no order of its own: the entries are sorted here.
            listed = sorted((Entry(name, float(value)) for name, value in top.items()), key=lambda e: -e.logprob)
            rows.append(_checked(f"{where}, position {index}", Entry(token, float(logprob)), listed))
    # Tokens of one text, above all bytes that are no character of their own, share a key: all but one are lost.
    asked = max((row.contiguous for row in rows), default=0)
    for row in rows:
        shared = any(not entry.token or "\N{REPLACEMENT CHARACTER}" in entry.token for entry in row.entries)
        yield replace(row, contiguous=0) if shared or row.contiguous < asked else row


def _vllm_prompt(prompt: list[dict[str, Any] | None] | None, where: str) -> Iterator[TopLogprobs]:
    for index, row in enumerate(prompt or []):
        if row:
            entries = {
                name: Entry(str(item.get("decoded_token", name)), float(item["logprob"])) for name, item in row.items()
            }
            # vLLM lists the prompt's own token first, then the top k by rank.
            chosen = next(iter(entries.values()))
            listed = sorted(entries.values(), key=lambda e: -e.logprob)
            yield _checked(f"{where}, prompt position {index}", chosen, listed)


def _sglang(meta: dict[str, Any], where: str) -> Iterator[TopLogprobs]:
    for part in ("input", "output"):
        chosen_rows = meta.get(f"{part}_token_logprobs") or []
        for index, (chosen, row) in enumerate(zip(chosen_rows, meta.get(f"{part}_top_logprobs") or [], strict=False)):
            if row:
                listed = [Entry(str(text if text is not None else token), float(value)) for value, token, text in row]
                value, token, text = chosen
                own = Entry(str(text if text is not None else token), float(value))
                yield _checked(f"{where}, {part} position {index}", own, listed)


def _tgi(details: dict[str, Any], where: str) -> Iterator[TopLogprobs]:
    for index, (chosen, row) in enumerate(
        zip(details.get("tokens") or [], details.get("top_tokens") or [], strict=False)
    ):
        listed = sorted((Entry(_name(item), _log(item)) for item in row), key=lambda e: -e.logprob)
        yield _checked(f"{where}, position {index}", Entry(_name(chosen), _log(chosen)), listed)


def _name(item: dict[str, Any]) -> str:
    """The text of an entry's token; its id where the server gives no text."""
    for key in ("token", "text", "tok_str", "content", "id"):
        if item.get(key) is not None:
            return str(item[key])
    raise DraftcertError(f"an entry without a token: {item}")


def _log(item: dict[str, Any]) -> float:
    if item.get("logprob") is not None:
        return float(item["logprob"])
    probability = float(item["prob"])
    return math.log(probability) if probability > 0 else -math.inf


FLOAT32_UNIT = 2.0**-24
LARGEST_VOCAB_SIZE = 2**18


def normalizer_error(vocab_size: int | None = None) -> float:
    """By how much all log-probabilities of a row may be off together, relative to the true ones.

    Servers sum the exponentials of a row in single precision, some of them one by one: `V 2^-24` for V tokens. An
    answer of llama.cpp over all 49,152 tokens of a vocabulary was found to sum to 1 + 1.8e-4.
    """
    return (vocab_size or LARGEST_VOCAB_SIZE) * FLOAT32_UNIT


def rounding(logprobs: Sequence[float]) -> float:
    """How far a printed log-probability may be from the server's own: half its last decimal, at least float32's error.

    >>> rounding([-0.51, -1.2]), rounding([-0.5108256237659907]) < 1e-7
    (0.005, True)
    """
    decimals = max(map(_decimals, logprobs), default=0)
    own = FLOAT32_UNIT * max([1.0, *map(abs, logprobs)])
    return max(0.5 * 10.0**-decimals if decimals < 7 and any(logprobs) else 0.0, own)


def _decimals(value: float) -> int:
    denominator = Fraction(repr(value)).denominator
    decimals = 0
    while 10**decimals % denominator and decimals < 20:
        decimals += 1
    return decimals


def _checked(where: str, chosen: Entry, listed: list[Entry]) -> TopLogprobs:
    slack = normalizer_error()
    for entry in (chosen, *listed):
        if math.isnan(entry.logprob) or entry.logprob > slack:
            raise DraftcertError(f"{where}: {entry.logprob} is no log-probability (token {entry.token!r})")
    # The chosen token may stand first or last whatever its rank; all others must be in order.
    others = list(listed)
    if chosen in others:
        others.remove(chosen)
    for before, after in pairwise(others):
        if after.logprob > before.logprob:
            raise DraftcertError(
                f"{where}: not in descending order: {before.token!r} at {before.logprob} stands before "
                f"{after.token!r} at {after.logprob}"
            )
    entries = sorted([chosen, *others], key=lambda entry: -entry.logprob)
    total = math.fsum(math.exp(entry.logprob) for entry in entries)
    finite = [entry.logprob for entry in entries if entry.logprob > -math.inf]
    if total > math.exp(slack + rounding(finite)):
        zeros = all(entry.logprob == 0 for entry in entries)
        hint = " (every log-probability is 0: a server's placeholder, no model gives that)" if zeros else ""
        raise DraftcertError(f"{where}: the listed probabilities sum to {total:.6g}, more than 1{hint}")
    chosen_last = len(entries) > 1 and entries[-1] == chosen and chosen.logprob < entries[-2].logprob
    return TopLogprobs(where, chosen, tuple(entries), len(entries) - chosen_last)
