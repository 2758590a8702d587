"""`make demo`: from the derivation to decoding a real model, in one run."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import sympy
import typer
from rich.table import Table

from ..theory.errors import DraftcertError
from . import main
from .console import err, finish, out, progress
from .generate import (
    TextStream,
    compare_with_greedy,
    comparison_table,
    describe,
    input_ids,
    show_prompt,
)
from .validate import families_table

if TYPE_CHECKING:
    from ..runtime.trees.trace import Step

PROMPTS = ("code-2", "math-2", "copy-5", "chat-2", "trans-2")
"""Of the built-in prompts: code, mathematics, copying, prose and translation."""


def demo(
    target: Annotated[str, typer.Option(help="Hugging Face id, local folder, GGUF file or smollm2.")] = "smollm2",
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Tokens per prompt.")] = 96,
) -> None:
    """Derive the certificates, check every step, validate them against a solver, then decode a real model."""
    _heading("1. The formulas")
    _formulas()
    _heading("2. Every derivation step, decided by the prover")
    proved = _check()
    _heading("3. The formulas against exact convex programs")
    agreed = _validate()
    _heading("4. Greedy tree decoding")
    identical = _decode(target, max_new_tokens)
    finish(proved and agreed and identical)


def _heading(text: str) -> None:
    out.print()
    out.rule(text, align="left")


def _formulas() -> None:
    from ..theory import FORMULAS
    from ..theory.theorems import THEOREMS

    for name in ("T1", "T3", "T4", "T5", "M1", "M6", "M7"):
        out.print(f"{name}  {THEOREMS[name].title}: {THEOREMS[name].statement}")
    out.print()
    for name in ("certificate", "strict_greedy"):
        formula = FORMULAS[name]
        total = f" (summed over the {formula.sum_over})" if formula.sum_over else ""
        out.print(f"{name}{total}:")
        out.print(sympy.pretty(formula.expression, use_unicode=True))


def _check() -> bool:
    from ..proofs_check import check
    from ..theory.theorems import THEOREMS

    with progress() as bar:
        task = bar.add_task("theorems", total=len(THEOREMS))
        report = check(coq=False, progress=lambda theorem: bar.update(task, advance=1, description=theorem.name))
    claims = [outcome for theorem in report.theorems for outcome in theorem.outcomes]
    held = sum(outcome.ok is True for outcome in claims)
    failed = [outcome for outcome in claims if outcome.ok is False]
    out.print(f"{len(report.theorems)} theorems, {held} claims decided, {len(failed)} failed")
    for outcome in failed:
        out.print(outcome.failure, style="red")
    if report.unchecked:
        out.print(f"{len(report.unchecked)} theorems are also stated in Coq: `make proofs` checks them formally")
    return report.ok


def _validate() -> bool:
    from ..numerics import validate

    with progress() as bar:
        task = bar.add_task("cases")
        report = validate(progress=lambda done, total: bar.update(task, completed=done, total=total))
    out.print(families_table(report))
    return report.ok


def _decode(target_name: str, max_new_tokens: int) -> bool:
    from ..audit.prompts import load_prompts
    from ..runtime import GreedyTreeDecoder
    from ..runtime.models import load_model
    from ..runtime.trees.drafters import drafter_by_name
    from ..runtime.trees.trace import certificates_met

    try:
        with err.status("loading the model (the first time its file is read for half a minute)"):
            target = load_model(target_name)
    except DraftcertError as error:
        raise DraftcertError(f"the demo cannot decode: {error}") from error
    drafter = drafter_by_name("recycling+lookup", target)
    records: list[dict[str, Any]] = []
    met: list[float] = []
    for prompt in (each for each in load_prompts() if each.id in PROMPTS):
        show_prompt(prompt)
        ids = input_ids(prompt, target)
        stream = TextStream(target.decode, out.file.write)

        def on_step(step: Step, stream: TextStream = stream) -> None:
            stream.add(step.tokens)
            out.file.flush()

        result = GreedyTreeDecoder(target, drafter).generate(ids, max_new_tokens, on_step=on_step)
        stream.end()
        met += certificates_met(result.steps)
        compared = compare_with_greedy(target, ids, result, max_new_tokens)
        records.append({"id": prompt.id} | describe(target, result) | compared)
    out.print(comparison_table(f"{target.name}: draft trees against transformers' greedy generate", records))
    out.print(_distribution(met))
    return all(record["identical"] for record in records)


def _distribution(certificates: list[float]) -> Table:
    """How certain the target was on the way: below the certificate of a position every drafter is accepted there."""
    table = Table(title="strict certificates met while decoding: KL(target || draft) below this guarantees acceptance")
    table.add_column("certificate, nats")
    table.add_column("positions", justify="right")
    table.add_column("share", justify="right")
    table.add_column("")
    edges = (0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, math.log(2))
    for lower, upper in pairwise(edges):
        # The last class holds its end: ln 2 is the ceiling for one candidate.
        last = upper == edges[-1]
        count = sum(lower <= c < upper or (last and c >= upper) for c in certificates)
        share = count / len(certificates)
        table.add_row(f"{lower:.2f} to {upper:.2f}", str(count), f"{share:.1%}", "\N{FULL BLOCK}" * round(40 * share))
    return table


if __name__ == "__main__":
    program = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    program.command()(demo)
    main(program)
