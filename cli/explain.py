"""`draftcert explain`: why two outputs of one model differ."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..support.files import read_text, reason
from ..support.text import visible
from ..theory.errors import DraftcertError
from ..theory.numbers import shown
from .arguments import Device, Dtype, NamedTarget, input_file
from .console import Json, finish, out, print_json, status

if TYPE_CHECKING:
    from ..runtime.models import LoadedModel
    from ..runtime.trees.explain import Explanation

HARMLESS = ("identical", "exact tie", "numerical noise", "stopped early")
"""What two greedy outputs of one model may be to each other."""


@dataclass(frozen=True)
class Output:
    """One output to compare: the tokens of its prompt and its own."""

    id: str
    prompt: list[int]
    tokens: list[int]


def explain(
    first: Annotated[Path, input_file("`generate --json`, token list or text;")],
    second: Annotated[Path, input_file("The other output;")],
    prompt: Annotated[str | None, typer.Option(help="The prompt, where the files hold only tokens or text.")] = None,
    target_name: NamedTarget = None,
    dtype: Dtype = "float32",
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Find the first divergence of two outputs and say what it is: tie, noise, rule, prompt, budget, error or engine.

    Between runs that promise the same bits (`same_bits` of `generate --json`) neither tie nor noise is an excuse.
    Exit status 1 if any pair differs by more than a tie, numerical noise or a budget.

    Example: draftcert explain first.txt second.txt --prompt "Name three moons." --target smollm2
    """
    documents = [_document(path) for path in (first, second)]
    promises = [document.get("same_bits") if isinstance(document, dict) else None for document in documents]
    named = {str(d["target"]) for d in documents if isinstance(d, dict) and "target" in d}
    if target_name is None and len(named) != 1:
        raise DraftcertError(f"give --target: the files name {', '.join(sorted(named)) or 'none'}")
    from ..runtime.models import load_model
    from ..runtime.trees.explain import explain as run

    with status("loading the model"):
        target = load_model(target_name or named.pop(), dtype, device)
    sides = [
        _outputs(document, path, prompt, target) for document, path in zip(documents, (first, second), strict=True)
    ]
    if len(sides[0]) != len(sides[1]):
        raise DraftcertError(
            f"{first} holds {len(sides[0])} outputs and {second} {len(sides[1])}: nothing to pair them by"
        )
    explained = []
    for a, b in zip(*sides, strict=True):
        target.batch([*a.prompt, *a.tokens, *b.prompt, *b.tokens])  # refuses what the model does not have
        same_bits = promises[0] is not None and promises[0] == promises[1]
        found = run(target, a.prompt, a.tokens, b.tokens, second_prompt=b.prompt, same_bits=same_bits)
        explained.append((a.id, found))
        if not as_json:
            out.print(f"{visible(a.id)}: {found.verdict}. {found.text}{_measured(found)}")
    if as_json:
        print_json({"target": target.name, "outputs": [{"id": name} | asdict(found) for name, found in explained]})
    finish(all(found.verdict in HARMLESS for _, found in explained))


def _measured(found: Explanation) -> str:
    if found.position is None or found.margin is None:
        return ""
    return f" (new token {found.position}: margin {found.margin:.3g}, noise {found.noise:.3g})"


def _document(path: Path) -> object:
    text = read_text(path)
    with suppress(ValueError, RecursionError):
        if isinstance(document := json.loads(text), dict | list):
            return document
    return text  # also of a number, a word or a text in quotes, which are JSON too


def _outputs(document: object, path: Path, prompt: str | None, target: LoadedModel) -> list[Output]:
    match document:
        case {"prompts": [_, *_] as records}:
            try:
                return [Output(str(r["id"]), _ids(r["prompt_tokens"]), _ids(r["tokens"])) for r in records]
            except (KeyError, TypeError) as error:
                raise DraftcertError(f"{path} is no output of `draftcert generate --json`: {reason(error)}") from error
        case [*tokens] if tokens and all(type(token) is int for token in tokens):
            pass
        case str(text) if text.strip():
            tokens = target.tokenizer(text.rstrip("\n"), add_special_tokens=False)["input_ids"]
        case _:
            raise DraftcertError(
                f"{path} holds neither outputs of `draftcert generate --json`, nor token ids, nor text"
            )
    if prompt is None:
        raise DraftcertError(f"{path} holds only an output: give its --prompt")
    return [Output("output", target.encode(prompt)[0].tolist(), tokens)]


def _ids(tokens: object) -> list[int]:
    if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
        raise TypeError(f"{shown(tokens)} is no list of token ids")
    return tokens
