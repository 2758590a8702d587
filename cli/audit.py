"""`draftcert audit`: measure a model pair and report; `draftcert audit logprobs`: what server answers determine."""

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ..support.text import visible
from ..theory.errors import Argument, DraftcertError
from .arguments import (
    Device,
    DraftCost,
    Dtype,
    Processes,
    Prompts,
    Ray,
    Rule,
    Rules,
    Target,
    VerifyCost,
    drafter_option,
    input_file,
    output_folder,
)
from .console import Json, can_report, out, print_json, print_table, progress

app = typer.Typer(invoke_without_command=True)


@app.callback()
def audit(
    context: typer.Context,
    target: Target = "smollm2",
    drafter: Annotated[
        str | None,
        drafter_option(
            "A model, as the target, or layers:0-9,20-29 (only these of the target's own).", only_models=True
        ),
    ] = None,
    prompts: Prompts = None,
    folder: Annotated[Path, output_folder("Folder of the audit; an interrupted one is continued.")] = Path("audit-out"),
    rules: Rules = None,
    candidates: Annotated[list[int] | None, typer.Option(help="Candidates per node (repeat for more).")] = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Greedy tokens per prompt.")] = 64,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many prompts.")] = None,
    acceptance: Annotated[float, typer.Option(help="Acceptance the recommendation aims at.")] = 0.8,
    draft_cost: DraftCost = None,
    verify_cost: VerifyCost = 1.0,
    dtype: Dtype = "float32",
    device: Device = "cpu",
    processes: Processes = 1,
    ray: Ray = None,
    as_json: Json = False,
) -> None:
    """Measure acceptance, certificates and divergences of a target, or of a model pair, and write a report.

    Example: draftcert audit --drafter layers:0-11,14-29 --limit 2 --max-new-tokens 16 --out audit-out
    """
    if context.invoked_subcommand is not None:
        return
    from ..audit import read_prompts
    from ..audit.measure import CANDIDATES, RULES, Grid
    from ..audit.recommendation import Wanted
    from ..audit.run import Configuration
    from ..audit.serving import Costs

    wanted = Wanted(acceptance)
    if drafter is None and draft_cost is not None:
        raise DraftcertError(Argument("draft_cost", draft_cost), ": without a drafter nothing costs so: give --drafter")
    costs = None if draft_cost is None else Costs(draft_cost, verify_cost)
    grid = Grid(tuple(rules or RULES), tuple(candidates or CANDIDATES))
    configuration = Configuration(target, drafter, max_new_tokens, dtype, device, grid)
    chosen = list(islice(read_prompts(prompts), limit))
    run_and_report(folder, configuration, chosen, wanted, processes, ray, as_json, costs)


def run_and_report(
    folder: Path, configuration, prompts, wanted, processes: int, ray: str | None, as_json: bool, costs=None
) -> None:
    """Measure with a progress bar, write the report and say where it is."""
    from ..audit.report import write_report
    from ..audit.run import run_audit

    can_report()
    with progress() as bar:
        task = bar.add_task("prompts")
        run_audit(
            folder,
            configuration,
            prompts,
            processes=processes,
            ray=ray,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    report = write_report(folder, wanted, costs)
    if as_json:
        print_json(report.summary)
    else:
        out.print(report.overview)
        out.print(f"report: {visible(str(report.html))}")


@app.command()
def logprobs(
    file: Annotated[Path, input_file("Response of an OpenAI-compatible server (JSON, JSONL or SSE);")],
    rule: Rule = "strict_greedy",
    candidates: Annotated[int, typer.Option(min=1, help="Candidates per tree node.")] = 1,
    vocab_size: Annotated[
        int | None, typer.Option(min=2, help="Tokens of the vocabulary; unknown: any number.")
    ] = None,
    near: Annotated[float, typer.Option(min=0, help="A lead of fewer nats is called near a tie.")] = 0.05,
    asked: Annotated[
        int | None, typer.Option(min=1, help="How many log-probabilities were asked for: shows lists that lost some.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Certificates from a server's top-k log-probabilities: exact where the list determines them, else intervals.

    Example: draftcert audit logprobs response.json --rule "top_m(2)" --candidates 2 --vocab-size 49152
    """
    from ..audit.logprobs import audit_logprobs
    from ..audit.report import readable

    found = audit_logprobs(file, rule, candidates, vocab_size, near, asked)
    if as_json:
        print_json(found.as_dict())
        return
    table = Table("position", "token", "most likely", "lead", "tie", "certificate", box=None)
    for each in found.positions:
        interval = readable(each.lower) if each.determined else f"{readable(each.lower)} to {readable(each.upper)}"
        interval += " *" if each.conditional else ""
        place = each.where.removeprefix(f"{file}:")
        likely = "–" if each.top is None else repr(each.top)
        table.add_row(visible(place), repr(each.token), likely, readable(each.gap), each.tie, interval)
    print_table(table)
    for name, value in found.summary().items():
        out.print(f"{name}: {value}")
    if any(each.conditional for each in found.positions):
        out.print(
            f"* The upper end holds if at least {candidates} tokens are rejected; otherwise every draft is accepted."
        )
    out.print("A list of top tokens never determines KL(target || draft): nothing here certifies a drafter.")
