"""`draftcert bench`: what the kernels cost on this machine."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ..support.files import replacing, writable_folder, write_whole
from ..theory.errors import DraftcertError
from ..theory.numbers import is_digits, shown
from .arguments import checked, output_folder
from .console import Json, can_report, finish, out, print_json, status

app = typer.Typer(no_args_is_help=True, help="Measure this machine.")


@app.callback()
def bench() -> None:
    """Measure this machine."""


@app.command()
def kernels(
    shapes: Annotated[
        list[str] | None,
        typer.Option(
            "--shape", help="Rows x vocabulary, as 64x151936; repeatable.", callback=checked(lambda text: _shape(text))
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=2, help="Rounds; in each every competitor runs once.")] = 30,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch and of the kernels.")] = 2,
    keep: Annotated[int, typer.Option(min=1, max=512, help="K, the largest logits kept.")] = 16,
    compiled: Annotated[bool, typer.Option("--compile/--no-compile", help="Also time torch.compile.")] = True,
    folder: Annotated[Path | None, output_folder("Folder for kernels.json, .md and .svg.")] = None,
    strict: Annotated[bool, typer.Option("--goals", help="Exit 1 if a goal is not met.")] = False,
    as_json: Json = False,
) -> None:
    """Time `row_stats` and `certify` against reading the logits once, eager torch and torch.compile.

    Example: draftcert bench kernels --shape 4x32000 --rounds 3 --no-compile --out kernels
    """
    from ..runtime.rows import benchmark

    if folder is not None:
        can_report()
        writable_folder(folder)
    with status("measuring"):
        report = benchmark.measure(
            shapes=[_shape(text) for text in shapes] if shapes else benchmark.SHAPES,
            rounds=rounds,
            threads=threads,
            k=keep,
            compiled=compiled,
        )
    text = benchmark.markdown(report)
    if folder is not None:
        write_whole(folder / "kernels.json", json.dumps(report, indent=1) + "\n")
        write_whole(folder / "kernels.md", text)
        with replacing(folder / "kernels.svg") as picture:
            benchmark.plot(report, picture)
    if as_json:
        print_json(report)
    else:
        out.print(text, end="")
    finish(not strict or all(goal["met"] for goal in report["goals"]))


def _shape(text: str) -> tuple[int, int]:
    rows, cross, size = text.partition("x")
    if not (cross and is_digits(rows) and is_digits(size) and int(rows) > 0 and int(size) > 1):
        raise DraftcertError(f"{shown(text)}: write rows x vocabulary, such as 64x151936")
    return int(rows), int(size)
