"""Arguments that several commands take. What is wrong with one is said at once, before any work begins."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..support.files import STANDARD_INPUT, reading, require_writable
from ..theory.errors import DraftcertError
from ..theory.names import unknown_name
from ..theory.numbers import is_digits


def checked(check: Callable[[Any], object]) -> Callable[..., Any]:
    """The callback of an option, or of one that is repeated, whose values have to pass a check, its default excepted.

    What a default needs is asked for where it is used.
    """

    def callback(context: typer.Context, parameter: typer.CallbackParam, value: Any) -> Any:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "DEFAULT":
            return value
        for each in value if isinstance(value, list | tuple) else [value]:
            try:
                if each is not None:
                    check(each)
            except DraftcertError as error:
                raise typer.BadParameter(error.with_flags) from error
        return value

    return callback


def _rule(text: str) -> None:
    from ..theory import parse_rule

    parse_rule(text)


def _rules_that_begin(incomplete: str) -> list[str]:
    from ..theory.presets import PRESETS
    from ..theory.rules import RULES

    return [name for name in (*RULES, *PRESETS) if name.startswith(incomplete)]


def _model(name: str) -> None:
    from ..runtime.names import find_model

    find_model(name)


def _drafter(name: str) -> None:
    from ..runtime.names import check_drafter

    check_drafter(name)


def _draft_model(name: str) -> None:
    from ..runtime.names import check_drafter

    check_drafter(name, built_in=())


def _dtype(name: str) -> None:
    from ..runtime.names import DTYPES

    if name not in DTYPES:
        raise unknown_name("dtype", name, DTYPES)


def _input(path: Path) -> None:
    if str(path) != STANDARD_INPUT:
        with reading(path):
            path.stat()
        if path.is_dir():
            raise DraftcertError(f"{path} is a folder: give a file, or - for standard input")


DEVICES = ("cpu", "cuda", "mps", "xpu", "auto")


def _device(name: str) -> None:
    kind, colon, number = name.partition(":")
    if kind not in DEVICES or (colon and not is_digits(number)):
        raise unknown_name("device", name, DEVICES)


_a_rule = {"callback": checked(_rule), "autocompletion": _rules_that_begin, "metavar": "RULE"}
A_FILE: dict[str, Any] = {"callback": checked(_input), "metavar": "FILE"}
A_MODEL: dict[str, Any] = {"callback": checked(_model), "metavar": "MODEL"}

Rule = Annotated[str, typer.Option("--rule", help='Acceptance rule, e.g. "top_m(10) & additive(0.6)".', **_a_rule)]
Rules = Annotated[list[str] | None, typer.Option("--rule", help="Acceptance rule (repeat for more).", **_a_rule)]
Target = Annotated[
    str, typer.Option("--target", help="Hugging Face id, local folder, GGUF file or smollm2.", **A_MODEL)
]
NamedTarget = Annotated[str | None, typer.Option("--target", help="Where the files do not name it.", **A_MODEL)]
Model = Annotated[str, typer.Argument(help="Hugging Face id, folder, GGUF file or smollm2.", **A_MODEL)]
Prompts = Annotated[
    Path | None,
    typer.Option(
        help="JSONL (prompt, messages, turns or text) or one prompt a line; - reads standard input.", **A_FILE
    ),
]
Dtype = Annotated[str, typer.Option(help="float32, bfloat16 or float16.", callback=checked(_dtype), metavar="DTYPE")]
Device = Annotated[
    str,
    typer.Option(
        help="cpu, cuda, cuda:1, or auto (spread over all GPUs).", callback=checked(_device), metavar="DEVICE"
    ),
]
DraftCost = Annotated[
    float | None,
    typer.Option(help="Cost of a draft step in passes of the target: is the drafter worth serving, and how?"),
]
VerifyCost = Annotated[float, typer.Option(help="Cost of a pass that checks a draft, in passes over a token.")]
Processes = Annotated[int, typer.Option(min=1, help="Local processes that share the prompts.")]
Ray = Annotated[str | None, typer.Option(help="Address of a Ray cluster that shares the prompts.")]


def drafter_option(help: str, only_models: bool = False) -> Any:
    """The option that names a drafter, of whatever kind or a draft model."""
    callback = checked(_draft_model if only_models else _drafter)
    return typer.Option("--drafter", help=help, callback=callback, metavar="DRAFTER")


def input_file(help: str) -> Any:
    """A file to read as an argument; `-` reads standard input."""
    return typer.Argument(help=f"{help} - reads standard input.", **A_FILE)


def output_file(help: str, *names: str) -> Any:
    """An option for a file to write."""
    return typer.Option(*names, help=help, callback=checked(require_writable), metavar="FILE")


def output_folder(help: str) -> Any:
    """The option `--out` for a folder to write to."""
    callback = checked(partial(require_writable, folder=True))
    return typer.Option("--out", help=help, callback=callback, metavar="FOLDER")
