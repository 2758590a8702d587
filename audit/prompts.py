"""Prompts: read from a file of any common shape, or the built-in set of forty."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..support.files import STANDARD_INPUT, called, parse_json, text_lines
from ..theory.errors import DraftcertError
from ..theory.numbers import shown


@dataclass(frozen=True)
class Prompt:
    """A prompt: chat messages, or plain text to continue (`messages` is None)."""

    id: str
    category: str
    text: str
    messages: tuple[dict[str, str], ...] | None = None

    def token_ids(self, tokenizer: Any) -> list[int]:
        """The prompt's tokens: through the tokenizer's chat template for a chat, as plain text otherwise."""
        from ..runtime.models import token_ids

        return token_ids(tokenizer, self.text if self.messages is None else self.messages)


def load_prompts(path: str | Path | None = None) -> list[Prompt]:
    """All prompts of a file as a list: see `read_prompts`."""
    return list(read_prompts(path))


def read_prompts(path: str | Path | None = None) -> Iterator[Prompt]:
    """Read prompts from JSONL (one object a line) or plain text (one prompt a line); the built-in set without a path.

    The path `-` reads standard input.

    An object holds `prompt` (sent as a chat of one message), `messages` (chat; assistant turns at its end are cut off,
    since the target is to write them), `turns` or `data` (Spec-Bench, MT-Bench and UltraChat: the first turn is taken)
    or `text` (continued as it is). `id`, `prompt_id` or `question_id`, and `category`, are optional. Lines are read
    when they are asked for: the first prompts of a file of any size cost no more than themselves.

    Raises:
        DraftcertError: no such file, no prompt in it, or a line that holds none; the message names the line.
    """
    file = files("draftcert.audit") / "prompts.jsonl" if path is None else Path(path)
    piped = str(file) == STANDARD_INPUT
    if path is not None and not piped and (Path(path).is_dir() or not Path(path).exists()):
        raise DraftcertError(f"no file of prompts at {file}")
    name = "built-in prompts" if path is None else called(path)
    structured = None if piped else file.name.endswith((".jsonl", ".json"))
    empty = True
    for prompt in _parse(text_lines(str(file)), name, structured):
        empty = False
        yield prompt
    if empty:
        raise DraftcertError(f"{name} holds no prompt")


def _parse(lines: Iterable[tuple[int, str]], name: str, structured: bool | None) -> Iterator[Prompt]:
    """The prompts of lines that are JSON or not; where the file's name does not tell, the first line does."""
    for number, line in lines:
        if not line.strip():
            continue
        if structured is None:
            structured = line.lstrip().startswith("{")
        if not structured:
            yield _chat(str(number), "", [{"role": "user", "content": line.strip()}])
            continue
        record = parse_json(line, f"{name}, line {number}")
        if not isinstance(record, dict):
            raise DraftcertError(f"{name}, line {number}: expected an object, found {type(record).__name__}")
        identity = str(next((record[key] for key in ("id", "prompt_id", "question_id") if key in record), number))
        category = str(record.get("category", ""))
        match record:
            case {"prompt": str(first)} | {"turns": [str(first), *_]} | {"data": [str(first), *_]} if first.strip():
                yield _chat(identity, category, [{"role": "user", "content": first}])
            case {"messages": [*messages]} if asked := _asked(messages):
                yield _chat(identity, category, asked)
            case {"text": str(text)} if text.strip():
                yield Prompt(identity, category, text)
            case _:
                raise DraftcertError(
                    f"{name}, line {number}: no prompt in it (expected prompt, messages, turns, data or text; "
                    f"found {shown(', '.join(record)) if record else 'nothing'})"
                )


def _asked(messages: list[Any]) -> list[dict[str, str]]:
    """The messages up to the last one that is not the assistant's; none where one is no message of text."""
    if not all(
        isinstance(m, dict) and isinstance(m.get("role"), str) and isinstance(m.get("content"), str) for m in messages
    ):
        return []
    last = max((i for i, message in enumerate(messages) if message["role"] != "assistant"), default=-1)
    return messages[: last + 1]


def _chat(identity: str, category: str, messages: Sequence[dict[str, str]]) -> Prompt:
    return Prompt(identity, category, messages[-1]["content"], tuple(messages))
