"""`draftcert conform`: vectors that judge any engine's verification of drafts, and outputs of two engines compared."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ..support.files import write_whole
from ..theory.errors import DraftcertError
from .arguments import A_FILE, A_MODEL, Device, Dtype, output_file
from .console import Json, finish, out, print_json, status


def conform(
    file: Annotated[Path | None, output_file("Write the vectors to this file.", "--out")] = None,
    check: Annotated[Path | None, typer.Option(help="Judge the answers of an engine in this file.", **A_FILE)] = None,
    lossless: Annotated[
        tuple[Path, Path] | None,
        typer.Option(help="Compare two engines' outputs: JSON lines of id, prompt_tokens and tokens.", metavar="A B"),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="What made them: an id, a folder, a file or smollm2.", **A_MODEL)
    ] = None,
    dtype: Dtype = "float32",
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Write conformance vectors, judge an engine's answers to them, or judge two engines' outputs of one model.

    Exit status of --check: 0 where every case is answered rightly, 1 where one is not. Of --lossless: 0 where the
    outputs are identical or differ within measured noise, which is said; 1 where one differs by more. 2 on bad input.

    Example: draftcert conform --out vectors.json
    """
    if sum(asked is not None for asked in (file, check, lossless)) != 1:
        raise DraftcertError("give one of --out FILE, --check FILE and --lossless A B")
    if (model is None) != (lossless is None):
        raise DraftcertError("--lossless A B and --model M belong together")
    if file is not None:
        _write(file, as_json)
    elif check is not None:
        _check(check, as_json)
    elif lossless is not None and model is not None:
        _compare(*lossless, model, dtype, device, as_json)


def _write(file: Path, as_json: bool) -> None:
    from ..audit.conformance import as_text, conformance_vectors

    vectors = conformance_vectors()
    write_whole(file, as_text(vectors))
    if as_json:
        print_json({name: vectors[name] for name in ("format", "sha256", "suites")})
    else:
        out.print(
            f"{len(vectors['cases'])} cases of {len(vectors['suites'])} suites, {vectors['format']}", markup=False
        )


def _check(file: Path, as_json: bool) -> None:
    from ..audit.answers import check_answers

    found = check_answers(file)
    if as_json:
        print_json({"passed": found.passed} | asdict(found))
    else:
        for each in found.faults:
            out.print(f"{each.case}: {each.fault}", markup=False, style="red")
        right = len(found.answered) - len(found.faults)
        told = f"{right} of {len(found.answered)} cases right in {', '.join(found.suites)}"
        out.print(f"{found.engine}: {told}; {len(found.not_run)} suites not run", markup=False)
    finish(found.passed)


def _compare(first: Path, second: Path, model: str, dtype: str, device: str, as_json: bool) -> None:
    from ..audit.lossless import compare_outputs
    from ..runtime.models import load_model

    with status("loading the model"):
        target = load_model(model, dtype, device)
    compared = list(compare_outputs(target, first, second))
    counts = Counter(each.verdict for each in compared)
    verdict = next(each for each in ("fault", "noise", "identical") if counts[each])
    if as_json:
        print_json({"verdict": verdict, "counts": counts, "outputs": [asdict(each) for each in compared]})
    else:
        for each in compared:
            if each.verdict != "identical":
                out.print(f"{each.id}, new token {each.position}: {each.verdict}: {each.text}", markup=False)
        told = ", ".join(f"{count} {each}" for each, count in counts.items())
        out.print(f"{VERDICTS[verdict]} ({told})", markup=False)
    finish(verdict != "fault")


VERDICTS = {
    "identical": "identical",
    "noise": "notice: not identical, but within measured noise",
    "fault": "a fault: noise does not explain the difference",
}
"""What is said of two sets of outputs."""
