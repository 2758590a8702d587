"""The command line `draftcert`: one command a file, each a thin reading of what a layer returns."""

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import typer

from ..support.files import reason
from ..theory.errors import DraftcertError
from .audit import app as audit
from .bench import app as bench
from .certify import certify
from .check import check
from .cite import cite
from .codegen import codegen
from .console import err
from .derive import derive
from .doctor import doctor
from .explain import explain
from .explore import explore
from .generate import generate
from .recommend import recommend
from .reproduce import reproduce
from .validate import validate
from .verify import verify

__all__ = ["app", "main"]

app = typer.Typer(
    name="draftcert",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Acceptance certificates for speculative decoding: derived, proved, validated, compiled and audited.",
)
for command in (
    *(derive, check, validate, certify, verify, codegen),
    *(explore, generate, explain, doctor, recommend, reproduce, cite),
):
    app.command()(command)
app.add_typer(audit, name="audit")
app.add_typer(bench, name="bench")


def main(program: Callable[..., Any] = app) -> None:
    """Run the command line. Exit status: 0 all holds, 1 something does not, 2 bad input or something to install.

    This is the one place that turns exceptions into a line: those of this project, of the command line's reader, of the
    system and of too large input. Any other is a fault of the program and shows where it is.
    """
    try:
        sys.exit(program(standalone_mode=False))
    except (DraftcertError, OSError, UnicodeError, RecursionError, MemoryError) as error:
        _fail(str(error) if isinstance(error, DraftcertError) else reason(error))
    except _CommandLineError as error:
        context = getattr(error, "ctx", None)
        if type(error).__name__ == "NoArgsIsHelpError" and context:
            context.get_help()  # prints it
            sys.exit(2)
        help_at = f". Try '{context.command_path} --help'." if context else ""
        _fail(error.format_message().rstrip(".") + help_at)
    except typer.Abort:
        _fail("given up")


_CommandLineError: Any = typer.BadParameter.__mro__[2]
"""What typer raises for all bad command lines: of click, or of the click it brings along."""


def _fail(message: str) -> NoReturn:
    """What a message quotes cannot begin a line of its own."""
    err.print(f"error: {message}".replace("\n", "\n  "), style="red", soft_wrap=True)
    sys.exit(2)
