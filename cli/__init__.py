"""The command line `draftcert`: one command a file, each a thin reading of what a layer returns."""

import atexit
import gc
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from typing import Annotated, Any, NoReturn

import typer

from ..support.files import reason
from ..theory.errors import DraftcertError
from .audit import app as audit
from .bench import app as bench
from .certify import certify
from .check import check
from .cite import cite
from .codegen import codegen
from .conform import conform
from .console import err, notes
from .derive import derive
from .doctor import doctor
from .explain import explain
from .explore import explore
from .generate import generate
from .recommend import recommend
from .reproduce import reproduce
from .validate import validate
from .verify import verify

__all__ = ["COMMON", "acts", "app", "commands", "main", "whole"]

app = typer.Typer(
    name="draftcert",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Boxes and columns cut names and texts where the terminal is narrow.
    rich_markup_mode=None,
    help="Acceptance certificates for speculative decoding: derived, proved, validated, compiled and audited.",
)
for command in (
    *(derive, check, validate, certify, verify, codegen),
    *(explore, generate, explain, conform, doctor, recommend, reproduce, cite),
):
    app.command()(command)
app.add_typer(audit, name="audit")
app.add_typer(bench, name="bench")


def main(program: typer.Typer = app) -> NoReturn:
    """Run the command line.

    Exit status: 0 all holds, 1 something does not, 2 bad input or something to install, 130 interrupted, 141 nobody
    reads what is printed. This is the one place that turns exceptions into a line: those of this project, of the
    command line's reader, of the system and of too large input. Any other is a fault of the program and shows where it
    is.
    """
    # At its end Python would look for garbage in all of torch and transformers, for a second.
    atexit.register(gc.freeze)
    try:
        status = _run(program)
    except BrokenPipeError:  # as with `| head`
        status = 141
    except KeyboardInterrupt:
        status = 130
        with suppress(BrokenPipeError):
            err.print("interrupted")
    try:
        sys.stdout.flush()
    except OSError as error:
        status = 141 if isinstance(error, BrokenPipeError) else _failed(reason(error))
    if status == 141 or not sys.stdout.writable():
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):  # or Python itself would complain when it flushes them
            os.dup2(nowhere, stream.fileno())
    sys.exit(status)


def whole(program: typer.Typer = app) -> Any:
    """The program as it runs: its commands with the options that each of them has besides its own."""
    command = typer.main.get_command(program)
    for _, each in commands(command):
        each.params += COMMON
        each.context_class = _Context
        each.context_settings |= {
            "help_option_names": ["-h", "--help"],
            "terminal_width": min(shutil.get_terminal_size().columns, 100),
        }
    return command


def commands(command: Any, name: str = "draftcert") -> Iterator[tuple[str, Any]]:
    """A command and all that are below it, with their full names."""
    yield name, command
    for word, each in getattr(command, "commands", {}).items():
        yield from commands(each, f"{name} {word}")


def acts(command: Any) -> bool:
    """Whether a command does something by itself; a group may only hold others."""
    return not getattr(command, "commands", {}) or command.invoke_without_command


def _run(program: typer.Typer) -> int:
    command = whole(program)
    if "_DRAFTCERT_COMPLETE" in os.environ:  # the shell asks what could come next
        command.main(prog_name="draftcert")
    try:
        with command.make_context("draftcert", sys.argv[1:]) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        raise
    except (DraftcertError, OSError, UnicodeError, RecursionError, MemoryError) as error:
        return _failed(error.with_flags if isinstance(error, DraftcertError) else reason(error))
    except RuntimeError as error:
        if not any(told in str(error) for told in _TOO_LARGE):
            raise
        return _failed(reason(MemoryError()))
    except _CommandLineError as error:
        context = getattr(error, "ctx", None)
        if type(error).__name__ == "NoArgsIsHelpError" and context:
            typer.echo(context.get_help())
            return 2
        return _failed(_told(error) + (f" Try '{context.command_path} --help'." if context else ""))
    except typer.Abort:
        return _failed("given up")
    return 0


_TOO_LARGE = ("out of memory", "can't allocate memory", "Storage size calculation overflowed")
"""What torch says of tensors that do not fit into the memory; on a CPU its error has no type of its own."""
_CommandLineError: Any = typer.BadParameter.__mro__[2]
"""What typer raises for all bad command lines: of click, or of the click it brings along."""


def _told(error: Any) -> str:
    if close := getattr(error, "possibilities", None):
        return f"No such option: {error.option_name}. Did you mean {' or '.join(sorted(close))}?"
    message = error.format_message().rstrip(".")
    return message if message.endswith("?") else f"{message}."


def _failed(message: str) -> int:
    """What a message quotes cannot begin a line of its own."""
    err.print(f"error: {message}".replace("\n", "\n  "), style="red", soft_wrap=True)
    return 2


class _Help(typer.Context.formatter_class):
    """On narrow terminals what an option does stands below it, not in a column of a few letters beside it."""

    def write_dl(self, rows: Any, col_max: int = 30, col_spacing: int = 2) -> None:
        super().write_dl(rows, col_max if self.width >= 60 else 2, col_spacing)


class _Context(typer.Context):
    formatter_class = _Help


def _be_quiet(asked: bool) -> None:
    notes.quiet |= asked


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"draftcert {version('draftcert')}")
        raise typer.Exit


def _common(
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", help="Only results and errors.", callback=_be_quiet, expose_value=False, is_eager=True
        ),
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_tell_version, expose_value=False, is_eager=True),
    ] = False,
) -> None: ...


_holder = typer.Typer(add_completion=False)
_holder.command()(_common)
COMMON = typer.main.get_command(_holder).params
"""The options that every command has, `--help` apart."""
