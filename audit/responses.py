"""Read top k log-probabilities out of the answers of inference servers, position by position.

Read are completions and chat completions in OpenAI's formats (vLLM, SGLang, llama.cpp, TGI and others serve them), its
Responses API and batch files, vLLM's `prompt_logprobs`, and the native answers of llama.cpp, SGLang, TGI and Ollama; as
one document, JSON lines or server-sent events (`documents`). Other formats are named as not read.

Every position ends as a list that says something or as skipped, with the reason; a list that no model can have given is
refused with its place.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any

from ..numerics.row import number_text
from ..numerics.top_logprobs import SINGLE, rounding_error, single_error
from ..support.files import called
from ..theory.errors import DraftcertError
from .documents import Twice, documents

LARGEST_VOCAB_SIZE = 2**18
NEVER = -9999.0
"""Servers write this (OpenAI, vLLM) or the lowest float32 (llama.cpp) in place of the logarithm of 0."""
NO_LIST = "no list of log-probabilities"


@dataclass(frozen=True)
class Entry:
    """A token and its log-probability in nats, as the server gave them; -inf where it gave none or a probability of 0.

    `token` is its text, or its id where the server gives no text; `key` its id where the server gives one.
    """

    token: str
    logprob: float
    key: str | None = None


@dataclass(frozen=True)
class TopLogprobs:
    """What a server says about one position.

    `entries` are in descending order. The first `contiguous` of them are the row's most likely tokens. Further ones may
    follow: the chosen token, which a server appends where it is not among the top k, so that tokens more likely than it
    may be missing from the list; or what follows where an entry may be lost. 0 where any may be lost, the most likely
    included, as in a list that is keyed by text and has lost a token to another one of the same text.
    """

    where: str
    chosen: Entry
    entries: tuple[Entry, ...]
    contiguous: int


@dataclass(frozen=True)
class Skipped:
    """A position, or an answer, that holds no list; and why."""

    where: str
    reason: str


def read_positions(path: str | Path, asked: int | None = None) -> list[TopLogprobs | Skipped]:
    """All positions of all answers in a file, in order, each read or skipped.

    `asked`: how many log-probabilities were asked for, which tells whether a list that is keyed by text has lost one.

    Raises:
        DraftcertError: no such file, not JSON, an error in place of an answer, a format that is not read, no list in
            the file; or a list that is inconsistent: a log-probability above 0 or NaN, probabilities that sum to more
            than 1, entries out of order, one token twice. The message names the line and the position.
    """
    file, reader = called(path), _Reader()
    try:
        read = documents(Path(path))
        found = [part for line, event, each in read for part in reader.read(each, f"{file}:{line}", event)]
    except RecursionError as error:
        raise DraftcertError(f"{file}: answers are nested too deeply in one another") from error
    found += reader.response_of_events
    lengths = _lengths(found, asked)
    positions = [
        part if isinstance(part, Skipped) else part.position(lengths.get(part.keyed or "", 0), asked) for part in found
    ]
    if not any(isinstance(each, TopLogprobs) for each in positions):
        reasons = Counter(each.reason for each in positions if isinstance(each, Skipped))
        told = "".join(f" ({times} skipped: {reason})" for reason, times in reasons.items())
        raise DraftcertError(
            f"{file} holds no top log-probabilities{told}: ask the server for them (completions: logprobs=20; chat: "
            "logprobs=true, top_logprobs=20; vLLM prompts: prompt_logprobs=20; llama.cpp: n_probs=20)"
        )
    return positions


def normalizer_error(vocab_size: int | None = None) -> float:
    """By how much all log-probabilities of a row may be off together, relative to the true ones.

    Servers sum the exponentials of a row in single precision, some of them one by one: `V 2^-24` for V tokens. An
    answer of llama.cpp over all 49,152 tokens of a vocabulary was found to sum to 1 + 1.8e-4.
    """
    return (vocab_size or LARGEST_VOCAB_SIZE) * float(SINGLE)


def errors(logprobs: Sequence[float]) -> list[float]:
    """How far each printed log-probability may be from the exact one: the server's float32 rounding and the printing.

    >>> errors([-0.51])[0] > 0.005, errors([-0.5108256237659907])[0] < 1e-7
    (True, True)
    """
    return [
        float(single_error(value) + printed) for value, printed in zip(logprobs, rounding_error(logprobs), strict=True)
    ]


@dataclass(frozen=True)
class _Row:
    """A position as it was found.

    `chosen` is None where the answer does not tell which entry it is; `ranked`: how many of the most likely tokens the
    ranks show, where there are ranks; `keyed`: the answer whose lists are keyed by text, where they are; `ordered`:
    whether the order of the entries is the server's.
    """

    where: str
    chosen: Entry | None
    listed: list[Entry]
    ordered: bool = True
    ranked: int | None = None
    keyed: str | None = None

    @property
    def appended(self) -> bool:
        """Whether the last entry may be there as the chosen token only."""
        ends = sorted(self.listed, key=lambda entry: -entry.logprob)[-2:]
        return len(ends) > 1 and (self.chosen is None or (ends[1] == self.chosen and ends[1].logprob < ends[0].logprob))

    def position(self, length: int, asked: int | None) -> TopLogprobs | Skipped:
        """Check the list and say how much of it is the top of the row; `length`: of lists in this answer, if known."""
        others = [entry for entry in self.listed if entry is not self.chosen]
        if self.ordered:
            _check_order(others, self.where)
        entries, unlisted = self.listed, False
        if self.chosen is not None and len(others) == len(self.listed) and self.chosen.logprob > -math.inf:
            entries, unlisted = [*self.listed, self.chosen], True
        entries = sorted(entries, key=lambda entry: -entry.logprob)
        _check_sum(entries, self.where)
        if unlisted and entries[-1] != self.chosen:
            return Skipped(self.where, "the chosen token is not listed, though likelier than the last one that is")
        if self.ranked is not None:
            contiguous = self.ranked
        else:
            complete = self.chosen is None and asked is not None and len(entries) <= asked
            contiguous = len(entries) - (unlisted or (self.appended and not complete))
        if self.keyed is not None:
            lost = unlisted and entries[-1].token in {entry.token for entry in self.listed}
            contiguous = 0 if lost else _not_lost(entries, contiguous, length)
        return TopLogprobs(self.where, self.chosen or entries[0], tuple(entries), _distinct(entries, contiguous))


def _row(where: str, chosen: Entry | None, listed: Sequence[Entry | None], **known: Any) -> _Row | Skipped:
    """A row of the entries found, or why there is none; None stands for an entry without a number."""
    if not listed:
        return Skipped(where, NO_LIST)
    entries = [entry for entry in listed if entry is not None]
    if len(entries) < len(listed):
        return Skipped(where, "a listed token has no log-probability")
    half = len(entries) // 2
    if len(entries) == 2 * half and entries[:half] == entries[half:]:
        entries = entries[:half]  # one list, given twice over
    entries = _once(entries, where)
    return _Row(where, _among(chosen, entries), entries, **known)


def _once(entries: list[Entry], where: str) -> list[Entry]:
    """The entries without repetitions of one token."""
    found: dict[Any, Entry] = {}
    for number, entry in enumerate(entries):
        earlier = found.setdefault(number if entry.key is None else entry.key, entry)
        if earlier.logprob != entry.logprob:
            raise DraftcertError(
                f"{where}: token {entry.token!r} is listed at {earlier.logprob} and at {entry.logprob}"
            )
    return list(found.values())


def _among(chosen: Entry | None, entries: list[Entry]) -> Entry | None:
    """The chosen token as it is listed: by its id, else by text and value, or by text where it has no value."""
    if chosen is None:
        return None
    for entry in entries:
        if chosen.key is not None and entry.key is not None:
            same = chosen.key == entry.key
        else:
            same = chosen.token == entry.token and chosen.logprob in (entry.logprob, -math.inf)
        if same:
            return entry
    return chosen


def _check_order(entries: list[Entry], where: str) -> None:
    for before, after in pairwise(entries):
        if after.logprob > before.logprob:
            raise DraftcertError(
                f"{where}: not in descending order: {before.token!r} at {before.logprob} stands before "
                f"{after.token!r} at {after.logprob}"
            )


def _check_sum(entries: list[Entry], where: str) -> None:
    total = math.fsum(math.exp(entry.logprob) for entry in entries)
    finite = [entry.logprob for entry in entries if entry.logprob > -math.inf]
    if total > math.exp(normalizer_error() + max(errors(finite), default=0.0)):
        zeros = all(entry.logprob == 0 for entry in entries)
        hint = " (every log-probability is 0: a server's placeholder, no model gives that)" if zeros else ""
        raise DraftcertError(
            f"{where}: the listed probabilities sum to {number_text(Fraction(total))}, more than 1{hint}"
        )


def _not_lost(entries: list[Entry], contiguous: int, length: int) -> int:
    """How many entries of a list keyed by text are the most likely ones, tokens of one text sharing a key.

    Above all bytes that are no character of their own share a text: all but one are lost, the most likely one too. A
    list that is as long as was asked for has lost none. Where that is not known a lost token has at most what is left,
    so that entries of more are the first.
    """
    if any(not entry.token or "\N{REPLACEMENT CHARACTER}" in entry.token for entry in entries):
        return 0
    if length:
        return contiguous if contiguous >= length else 0
    left = 1 - math.fsum(math.exp(entry.logprob) for entry in entries)
    return sum(math.exp(entry.logprob) * (1 + float(SINGLE)) >= left for entry in entries[:contiguous])


def _distinct(entries: Sequence[Entry], contiguous: int) -> int:
    """Entries of one text and one value, without ids, may be one token given twice: the second bounds nothing."""
    seen: set[Entry] = set()
    for number, entry in enumerate(entries[:contiguous]):
        if entry.key is None and entry in seen:
            return number
        seen.add(entry)
    return contiguous


def _lengths(rows: Sequence[_Row | Skipped], asked: int | None) -> dict[str, int]:
    """The length of lists that are keyed by text, for each answer: as asked for, or as two of its lists show."""
    shown: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for row in rows:
        if isinstance(row, _Row) and row.keyed is not None:
            shown[row.keyed][len(row.listed) - row.appended] += 1
    return {
        answer: asked or max((length for length, rows in counts.items() if rows > 1), default=0)
        for answer, counts in shown.items()
    }


@dataclass
class _Reader:
    """Reads the documents of one file in turn: a stream's chunks belong together."""

    read_before: Counter[str] = field(default_factory=Counter)
    """How many positions of an answer's choice earlier chunks held."""
    cumulative: dict[str, list[Any]] = field(default_factory=dict)
    """The lists of earlier chunks where each chunk repeats them."""
    responses: dict[str, list[_Row | Skipped]] = field(default_factory=dict)
    """What the events of a response said: piece by piece, and as a whole."""

    def read(self, document: Any, where: str, event: bool) -> Iterator[_Row | Skipped]:
        """Dispatch on the keys that tell the formats apart."""
        if not isinstance(document, dict):
            raise DraftcertError(f"{where}: expected a response object, found {type(document).__name__}")
        kind = str(document.get("type"))
        if document.get("error"):
            error = document["error"]
            message = error.get("message") if isinstance(error, dict) else error
            yield Skipped(where, f"the server answered with an error: {message}")
        elif "custom_id" in document:
            yield from self._batch(document, where, event)
        elif kind.startswith("response."):
            self._event_of_response(document, kind, where)
        elif isinstance(document.get("results"), list):
            for number, result in enumerate(document["results"]):
                yield from self.read(result, f"{where}, result {number}", event)
        elif document.get("object") == "response":
            yield from self._response(document, where)
        elif (name := next((name for key, name in NOT_READ.items() if key in document), None)) is not None:
            yield Skipped(where, f"{name}: a format that is not read")
        elif not document.keys() & {*self.FORMATS, *TEXTS}:
            yield Skipped(where, f"no format that is read (keys: {', '.join(map(str, document)) or 'none'})")
        else:
            rows = [
                row
                for key, read in self.FORMATS.items()
                if key in document
                for row in read(self, document, where, event)
            ]
            # SGLang's streams repeat text whose lists were read before.
            untold = not rows and "meta_info" not in document and _has_text(document)
            yield from [Skipped(where, NO_LIST)] if untold else rows

    def _numbered(
        self, document: dict[str, Any], part: Any, event: bool, rows: Sequence[Any]
    ) -> Iterator[tuple[int, Any]]:
        """Rows with their numbers; those of a stream's chunks are counted on."""
        identity = f"{document.get('id')} {part}"
        yield from enumerate(rows, start=self.read_before[identity] if _is_chunk(document, event) else 0)
        self.read_before[identity] += len(rows)

    def _batch(self, document: dict[str, Any], where: str, event: bool) -> Iterator[_Row | Skipped]:
        """One line of a batch file of OpenAI's."""
        place = f"{where}, request {document['custom_id']}"
        response = _get(document, "response", dict, where)
        if not response:
            yield Skipped(place, "a request of a batch, not its answer")
        elif not isinstance(response.get("body"), dict):
            yield Skipped(place, f"answered with status {response.get('status_code')} and no body")
        else:
            yield from self.read(response["body"], place, event)

    def _event_of_response(self, document: dict[str, Any], kind: str, where: str) -> None:
        """An event of the Responses API: pieces, each again when it is done, and all once more at the end."""
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            self.responses["whole"] = list(self._response(_get(document, "response", dict, where), where))
        elif kind == "response.output_text.delta":
            pieces = self.responses.setdefault("pieces", [])
            items = _get(document, "logprobs", list, where)
            pieces += _items(enumerate(items, start=len(pieces)), where) or [Skipped(where, NO_LIST)]

    @property
    def response_of_events(self) -> list[_Row | Skipped]:
        """The rows of a streamed response: of the whole where it has lists, else of the pieces."""
        whole = self.responses.get("whole", [])
        return whole if any(isinstance(row, _Row) for row in whole) else self.responses.get("pieces", whole)

    def _response(self, document: dict[str, Any], where: str) -> Iterator[_Row | Skipped]:
        for number, output in enumerate(_objects(document, "output", where)):
            for part in _objects(output, "content", where) if output.get("type", "message") == "message" else ():
                place = f"{where}, output {number}"
                items = _get(part, "logprobs", list, place)
                yield from _items(enumerate(items), place) or [Skipped(place, NO_LIST)]

    def _choices(self, document: dict[str, Any], where: str, event: bool) -> Iterator[_Row | Skipped]:
        prompts: list[Any] = []
        for number, choice in enumerate(_objects(document, "choices", where)):
            index = choice.get("index", number)
            place = f"{where}, choice {index}"
            prompt: list[_Row | Skipped] = list(_vllm_prompt(choice, place))
            if (given := choice.get("prompt_logprobs")) and given in prompts:
                prompt = [Skipped(row.where, "the same prompt as of an earlier choice") for row in prompt]
            prompts.append(given)
            yield from prompt
            logprobs = _get(choice, "logprobs", dict, place)
            if "content" in logprobs or "refusal" in logprobs:
                items = _get(logprobs, "content", list, place) + _get(logprobs, "refusal", list, place)
                yield from _items(self._numbered(document, index, event, items), place)
            elif "tokens" in logprobs or "top_logprobs" in logprobs:
                # Only chunks share an answer: servers give one id, or none, to answers of different requests.
                answer = f"{document.get('id') if _is_chunk(document, event) else where}, choice {index}"
                rows = [
                    _completion(f"{place}, position {k}", row, answer)
                    for k, row in self._numbered(document, index, event, _by_text(logprobs, place))
                ]
                yield from rows[len(prompt) if _echoed(prompt, rows) else 0 :]
            elif _has_text(choice):
                yield Skipped(place, NO_LIST)

    def _llama_cpp(self, document: dict[str, Any], where: str, event: bool) -> Iterator[_Row | Skipped]:
        items = _get(document, "completion_probabilities", list, where)
        yield from _items(self._numbered(document, "", event, items), where)

    def _ollama(self, document: dict[str, Any], where: str, event: bool) -> Iterator[_Row | Skipped]:
        yield from _items(enumerate(_get(document, "logprobs", list, where)), where)

    def _prompt(self, document: dict[str, Any], where: str, event: bool) -> Iterator[_Row | Skipped]:
        yield from _vllm_prompt(document, where)

    def _sglang(self, document: dict[str, Any], where: str, event: bool) -> Iterator[_Row | Skipped]:
        meta = _get(document, "meta_info", dict, where)
        if not meta.get("output_token_logprobs"):
            yield Skipped(where, NO_LIST)
        for part in ("input", "output"):
            rows = list(
                zip_longest(
                    _get(meta, f"{part}_token_logprobs", list, where), _get(meta, f"{part}_top_logprobs", list, where)
                )
            )
            stream = f"{part} of {meta.get('id')}"
            before = self.cumulative.get(stream, []) if event else []
            new = len(before) if rows[: len(before)] == before else 0
            self.cumulative[stream] = rows
            for number, (chosen, row) in list(enumerate(rows))[new:]:
                place = f"{where}, {part} position {number}"
                listed = [_triple(each, place) for each in _is(row, list, "a row", place)]
                yield _row(place, _triple(chosen, place, unknown=True), listed, ordered=False)

    def _tgi(self, document: dict[str, Any], where: str, event: bool) -> Iterator[_Row | Skipped]:
        details = _get(document, "details", dict, where)
        for number, sequence in enumerate([details, *_objects(details, "best_of_sequences", where)]):
            place = f"{where}, sequence {number}" if number else where
            for k, _ in enumerate(_get(sequence, "prefill", list, place)):
                yield Skipped(f"{place}, prompt position {k}", NO_LIST)
            tops = _get(sequence, "top_tokens", list, place)
            for k, (chosen, row) in enumerate(zip_longest(_get(sequence, "tokens", list, place), tops)):
                yield _tgi_row(f"{place}, position {k}", chosen, row)

    def _tgi_stream(self, document: dict[str, Any], where: str, event: bool) -> Iterator[_Row | Skipped]:
        for number, token in self._numbered({}, "tgi", True, [_get(document, "token", dict, where)]):
            yield _tgi_row(f"{where}, position {number}", token, document.get("top_tokens"))

    FORMATS = {  # noqa: RUF012 - the methods, by the key that shows which
        "prompt_logprobs": _prompt,
        "choices": _choices,
        "completion_probabilities": _llama_cpp,
        "meta_info": _sglang,
        "details": _tgi,
        "token": _tgi_stream,
        "logprobs": _ollama,
    }


TEXTS = ("text", "content", "response", "generated_text", "refusal")
"""Where the text of an answer stands, in one format or another."""
NOT_READ = {
    "candidates": "an answer of Gemini",
    "stop_sequence": "an answer of Anthropic",
    "generations": "an answer of Cohere",
}
"""Formats without lists, or in units of their own, by a key that shows them."""


def _items(numbered: Iterable[tuple[int, Any]], where: str) -> list[_Row | Skipped]:
    """Rows of OpenAI's chat format; llama.cpp's native answer is the same, but older ones write probabilities."""
    rows = []
    for number, item in numbered:
        place = f"{where}, position {number}"
        item = _is(item, dict, "a position", place)
        name = next((key for key in ("top_logprobs", "top_probs", "probs") if item.get(key)), "top_logprobs")
        listed = [_entry(each, place) for each in _get(item, name, list, place)]
        rows.append(_row(place, _entry(item, place, unknown=True), listed))
    return rows


def _by_text(logprobs: dict[str, Any], where: str) -> list[tuple[Any, Any, Any]]:
    """Token, log-probability and list of the positions of OpenAI's completions format."""
    return list(
        zip_longest(*(_get(logprobs, key, list, where) for key in ("tokens", "token_logprobs", "top_logprobs")))
    )


def _completion(where: str, row: tuple[Any, Any, Any], answer: str) -> _Row | Skipped:
    token, logprob, top = row
    top = _is(top, dict, "a list keyed by text", where)
    pairs = top.pairs if isinstance(top, Twice) else top.items()
    listed = [_valued(text, value, None, where) for text, value in pairs]
    if token is None:
        return Skipped(where, "a list without its token")
    # A JSON object has no order of its own.
    return _row(where, _valued(token, logprob, None, where, unknown=True), listed, ordered=False, keyed=answer)


def _echoed(prompt: list[_Row | Skipped], rows: list[_Row | Skipped]) -> bool:
    """Whether an answer begins with the positions that `prompt_logprobs` holds: the same values, up to lost ones."""

    def values(row: _Row | Skipped) -> set[float]:
        return {entry.logprob for entry in row.listed} if isinstance(row, _Row) else set()

    pairs = zip(prompt, rows, strict=False)
    return len(prompt) <= len(rows) and all(
        bool(values(a)) == bool(values(b)) and values(a) >= values(b) for a, b in pairs
    )


def _vllm_prompt(document: dict[str, Any], where: str) -> Iterator[_Row | Skipped]:
    """vLLM lists the prompt's own token and the top k, each with its rank; JSON keeps no order of keys."""
    for number, row in enumerate(_get(document, "prompt_logprobs", list, where)):
        place = f"{where}, prompt position {number}"
        items = [(key, _is(item, dict, "an entry", place)) for key, item in _is(row, dict, "a row", place).items()]
        listed = [_valued(item.get("decoded_token") or key, item.get("logprob"), key, place) for key, item in items]
        ranks = [_rank(item, place) for _, item in items]
        ranked, own = _ranked(listed, ranks, place)
        yield _row(place, own, listed, ordered=False, ranked=ranked)


def _rank(item: dict[str, Any], where: str) -> int | None:
    rank = item.get("rank")
    if rank is not None and (isinstance(rank, bool) or not isinstance(rank, int) or rank < 1):
        raise DraftcertError(f"{where}: {rank!r} is no rank: they are whole numbers from 1")
    return rank


def _ranked(
    listed: list[Entry | None], ranks: list[int | None], where: str
) -> tuple[int, Entry | None] | tuple[None, None]:
    """How many of the most likely tokens there are, by their ranks, and the prompt's own; None without ranks.

    One beyond the most likely ones is the prompt's own; else it comes first, unless somebody sorted the keys.
    """
    pairs = [(rank, each) for rank, each in zip(ranks, listed, strict=True) if rank is not None and each is not None]
    if not pairs or len(pairs) < len(listed):
        return None, None
    pairs.sort(key=lambda pair: (pair[0], -pair[1].logprob))
    order = [entry for _, entry in pairs]
    _check_order(order, where)
    ranked = next((number for number, (rank, _) in enumerate(pairs) if rank > number + 1), len(pairs))
    return ranked, order[-1] if ranked < len(order) else listed[0]


def _tgi_row(where: str, chosen: Any, row: Any) -> _Row | Skipped:
    listed = [_entry(_is(item, dict, "an entry", where), where) for item in _is(row, list, "a row", where)]
    token = _entry(_is(chosen, dict, "a token", where), where, unknown=True) if chosen else None
    return _row(where, token, listed, ordered=False)


def _triple(item: Any, where: str, unknown: bool = False) -> Entry | None:
    """An entry of SGLang's: log-probability, id, text."""
    item = _is(item, list, "an entry", where)
    if len(item) < 2:
        return None
    logprob, key, text = (*item, None)[:3]
    return _valued(key if text is None else text, logprob, key, where, unknown)


def _entry(item: Any, where: str, unknown: bool = False) -> Entry | None:
    item = _is(item, dict, "an entry", where)
    name = next((item[key] for key in ("token", "text", "tok_str", "content", "id") if item.get(key) is not None), None)
    if name is None:
        raise DraftcertError(f"{where}: an entry without a token (keys: {', '.join(item)})")
    key = item.get("id")
    if key is None and str(name).startswith("token_id:"):
        key = name
    value = item.get("logprob")
    if value is None and item.get("prob") is not None:
        probability = _number(item["prob"], where)
        if probability < 0:
            raise DraftcertError(f"{where}: {probability} is no probability")
        value = math.log(probability) if probability else -math.inf
    return _valued(name, value, key, where, unknown)


def _valued(token: Any, value: Any, key: Any, where: str, unknown: bool = False) -> Entry | None:
    """An entry; None where it has no value, unless that may be unknown."""
    if value is None and not unknown:
        return None
    logprob = -math.inf if value is None else _number(value, where)
    if math.isnan(logprob) or logprob > normalizer_error():
        raise DraftcertError(f"{where}: {logprob} is no log-probability (token {token!r})")
    return Entry(str(token), logprob if logprob > NEVER else -math.inf, None if key is None else str(key))


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DraftcertError(f"{where}: {value!r} is no number")
    try:
        return float(value)
    except OverflowError as error:
        raise DraftcertError(f"{where}: a number of {len(str(abs(value)))} digits is no log-probability") from error


def _is_chunk(document: dict[str, Any], event: bool) -> bool:
    return event or str(document.get("object")).endswith("chunk")


def _has_text(answer: dict[str, Any]) -> bool:
    parts = (answer, answer.get("message"), answer.get("delta"))
    return any(part.get(key) for part in parts if isinstance(part, dict) for key in TEXTS)


def _is(value: Any, kind: type, what: str, where: str) -> Any:
    """The value, an empty one for null; it is refused where it is of another kind."""
    if value is None:
        return kind()
    if not isinstance(value, kind) or (isinstance(value, Twice) and what != "a list keyed by text"):
        found = "an object with a key that stands twice" if isinstance(value, Twice) else type(value).__name__
        raise DraftcertError(f"{where}: {what} is {found}, not of type {kind.__name__}")
    return value


def _get(document: dict[str, Any], key: str, kind: type, where: str) -> Any:
    return _is(document.get(key), kind, f"'{key}'", where)


def _objects(document: dict[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    return [_is(item, dict, f"an item of '{key}'", where) for item in _get(document, key, list, where)]
