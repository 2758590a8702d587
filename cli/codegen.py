"""`draftcert codegen`: the generated kernels, written anew or proved current."""

from typing import Annotated

import typer

from .console import Json, finish, out, print_json


def codegen(
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if a committed file is stale.")] = False,
    as_json: Json = False,
) -> None:
    """Generate torch, C++ and Triton code from proved and agreed formulas, and the pages made from records.

    Example: draftcert codegen --check
    """
    from ..document import pages
    from ..runtime.codegen import check as stale_files
    from ..runtime.codegen import generate

    written = [] if check else [str(path) for path in generate(pages())]
    stale = stale_files(pages())
    if as_json:
        print_json({"ok": not stale, "written": written, "stale": stale})
    else:
        for path in written:
            out.print(f"written: {path}")
        for problem in stale:
            out.print(problem, style="red")
        if not stale:
            out.print("the generated code is current")
    finish(not stale)
