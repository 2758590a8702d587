"""`draftcert check`: decide every claim of the theory; audit the Coq development."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ..support.files import write_whole
from ..theory.errors import DraftcertError
from .console import Json, finish, notes, out, print_json, print_table, progress

if TYPE_CHECKING:
    from rich.progress import Progress

    from ..proofs_check import CheckReport
    from ..proofs_check.mutation import Tally


def check(
    only: Annotated[list[str] | None, typer.Option(help="Only this theorem or formula (repeat for more).")] = None,
    coq: Annotated[bool, typer.Option(help="Audit the Coq development too; without, it counts as not checked.")] = True,
    bridge: Annotated[bool, typer.Option(help="Have Coq certify values of `draftcert certify` on 20 targets.")] = False,
    mutations: Annotated[
        bool, typer.Option(help="Change every theorem and formula in every way: each false one must be refused.")
    ] = False,
    update_ledger: Annotated[
        bool, typer.Option(help="Write what this run has shown into the ledger, and the hashes of Coq's statements.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check every derivation step, every formula and the formal proofs, and reproduce the ledger.

    Example: draftcert check --only T5 --no-coq
    """
    from ..numerics import certificate
    from ..proofs_check import check as run
    from ..proofs_check import ledger
    from ..proofs_check.bridge import BridgeCase
    from ..proofs_check.bridge import bridge as certify_in_coq
    from ..proofs_check.formal import commit_statements, coq_version
    from ..theory.theorems import THEOREMS

    if bridge and not coq:
        raise DraftcertError("--bridge needs Coq: leave out --no-coq")
    if update_ledger and coq and coq_version():
        commit_statements()
    with progress() as bar, TemporaryDirectory() as compiled:
        formal = bar.add_task("Coq", total=None, visible=coq)
        task = bar.add_task("theorems", total=None if only else len(THEOREMS))
        report = run(
            only,
            coq=True if bridge else "auto" if coq else False,
            progress=lambda theorem: bar.update(task, advance=1, description=theorem.name),
            coq_progress=lambda what, done, total: bar.update(formal, description=what, completed=done, total=total),
            coq_compiled=Path(compiled),
        )
        bridged = None
        if bridge and report.formal and not report.formal.problems:
            bar.add_task("bridge", total=None)
            bridged = certify_in_coq(
                (BridgeCase(p, rule, m, str(certificate(p, rule, m, digits=20))) for p, rule, m in BRIDGE_TARGETS),
                Path(compiled),
            )
        mutated = _mutate(report, bar) if mutations else None
    survivors = ()
    if mutated is not None and only is None:
        survivors = ledger.differences(ledger.entries((), None, mutated), ledger.committed(), ["survivors"])
    ok = report.ok and (bridged is None or bridged.ok) and (mutated is None or not (mutated.unexplained or survivors))
    if update_ledger and only is None and all(t.proved for t in report.theorems):
        write_whole(ledger.PATH, ledger.text(ledger.entries(report.proved, report.formal, mutated)))
        notes.print("the ledger holds what ran now; check again to see it reproduced")
    if as_json:
        certified = None if bridged is None else {"cases": len(bridged.cases), "ok": bridged.ok}
        noticed = None if mutated is None else {"mutants": len(mutated.mutants), "caught": mutated.share}
        print_json(report.as_json() | {"ok": ok, "bridge": certified, "mutations": noticed})
    else:
        _show(report)
        if bridged is not None:
            state = "certified by Coq" if bridged.ok else f"NOT certified: {bridged.failure}"
            out.print(f"bridge: {len(bridged.cases)} values {state}")
        if mutated is not None:
            _show_mutations(mutated)
            for difference in survivors:
                out.print(f"ledger: {difference}", style="red")
    finish(ok)


BRIDGE_TARGETS: tuple[tuple[tuple[str, ...], str, int], ...] = (
    (("3/5", "2/5"), "strict_greedy", 1),
    (("1/2", "1/4", "1/4"), "strict_greedy", 1),
    (("9/10", "1/20", "1/20"), "strict_greedy", 1),
    (("999/1000", "1/2000", "1/2000"), "strict_greedy", 1),
    (("1/2", "1/2"), "strict_greedy", 1),
    (("0", "1"), "strict_greedy", 1),
    (("1/1000000007", "1000000006/1000000007"), "strict_greedy", 1),
    (("500001/1000000", "499999/1000000"), "strict_greedy", 1),
    (("1/2", "9/20", "1/20"), "strict_greedy", 2),
    (("2/5", "3/10", "1/5", "1/10"), "strict_greedy", 2),
    (("2/5", "3/10", "1/5", "1/10"), "strict_greedy", 3),
    (("1/3", "1/3", "1/3"), "strict_greedy", 2),
    (("7/10", "1/10", "1/10", "1/20", "1/20"), "strict_greedy", 4),
    (("1", "0", "0", "0"), "strict_greedy", 3),
    (("2/5", "7/20", "1/4"), "additive(0.1)", 1),
    (("2/5", "7/20", "1/4"), "additive(0.05)", 1),
    (("1/2", "3/10", "1/10", "1/10"), "additive(0.3)", 2),
    (("1/2", "1/4", "1/4"), "multiplicative(0.6)", 1),
    (("1/2", "3/10", "1/10", "1/10"), "multiplicative(0.5)", 1),
    (("1/2", "3/10", "1/10", "1/10"), "absolute(0.3)", 1),
    (("1/2", "3/10", "1/10", "1/10"), "absolute(0.6)", 1),
    (("1/2", "3/10", "1/10", "1/10"), "top_m(2)", 2),
    (("2/5", "7/20", "1/5", "1/20"), "top_m(10) & additive(0.06)", 1),
    (("1/2", "3/10", "1/5"), "typical(0.25, 0.9)", 1),
)
"""Targets of the bridge: generic, tied, with zeros, nearly tied, and the two traps of the pooled form."""


def _mutate(report: CheckReport, bar: Progress) -> Tally:
    """Mutants of what was checked, spread over the cores."""
    from ..proofs_check.check import EVERY_FORMULA
    from ..proofs_check.mutation import tally
    from ..theory.theorems import THEOREMS

    task = bar.add_task("mutations", total=None)
    return tally(
        {each.name: THEOREMS[each.name] for each in report.theorems},
        {each.name: EVERY_FORMULA[each.name] for each in report.formulas},
        processes=os.cpu_count() or 1,
        progress=lambda what, done, total: bar.update(task, description=what, completed=done, total=total),
    )


def _show_mutations(mutated: Tally) -> None:
    from ..proofs_check.mutation import explanation

    out.print(f"mutations: {len(mutated.mutants)} changes, {mutated.share:.2%} refused")
    reasons = Counter(explanation(mutant) or "NOT EXPLAINED" for mutant in mutated.survivors)
    for why, count in reasons.most_common():
        out.print(f"{count} go through: {why}")
    for mutant in mutated.unexplained:
        out.print(f"{mutant.theorem}, {mutant.place}: {mutant.change} goes through: NOT EXPLAINED", style="red")


def _show(report: CheckReport) -> None:
    table = Table(title="theorems")
    for name in ("theorem", "", "established by", "seconds"):
        table.add_column(name, justify="right" if name == "seconds" else "left")
    for theorem in report.theorems:
        state = ", ".join(theorem.methods) if theorem.proved else "NOT PROVED"
        table.add_row(theorem.name, theorem.title, state, f"{theorem.seconds:.2f}")
    print_table(table)
    for theorem in report.theorems:
        for outcome in theorem.outcomes:
            if outcome.ok is False:
                out.print(f"{theorem.name}, {outcome.place}: {outcome.failure}", style="red")
    for formula in report.formulas:
        state = f"proved by {', '.join(formula.by)}" if formula.proved else f"NOT PROVED: {formula.failure}"
        out.print(f"formula {formula.name}: {state}")
    out.print(report.coq, style="red" if report.formal and report.formal.problems else "")
    if report.unchecked:
        out.print(f"not checked formally: {', '.join(report.unchecked)}")
    for difference in report.ledger or ():
        out.print(f"ledger: {difference}", style="red")
