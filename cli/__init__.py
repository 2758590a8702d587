"""The command line `draftcert`: one command a file, each a thin reading of what a layer returns."""

import sys
from collections.abc import Callable
from typing import Any

import typer

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
from .generate import generate
from .recommend import recommend
from .reproduce import reproduce
from .validate import validate

__all__ = ["app", "main"]

app = typer.Typer(
    name="draftcert",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Acceptance certificates for speculative decoding: derived, proved, validated, compiled and audited.",
)
for command in (derive, check, validate, certify, codegen, generate, explain, doctor, recommend, reproduce, cite):
    app.command()(command)
app.add_typer(audit, name="audit")
app.add_typer(bench, name="bench")


def main(program: Callable[[], Any] = app) -> None:
    """Run the command line. Exit status: 0 all holds, 1 something does not, 2 bad input or something to install."""
    try:
        program()
    except DraftcertError as error:
        # What a message quotes cannot begin a line of its own.
        err.print(f"error: {error}".replace("\n", "\n  "), style="red", soft_wrap=True)
        sys.exit(2)
