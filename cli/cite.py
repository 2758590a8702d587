"""`draftcert cite`: the sources behind a rule, a deployed preset, a theorem or a formula."""

from typing import Annotated

import typer
from rich.table import Table

from ..theory.names import unknown_name
from .console import Json, print_json, print_table


def cite(
    names: Annotated[
        list[str] | None, typer.Argument(help='Rules, presets, theorems, formulas: "additive(0.6)", M7. All if none.')
    ] = None,
    as_json: Json = False,
) -> None:
    """Print what to cite for rules, theorems and formulas: where each was first stated or is deployed.

    Example: draftcert cite "tensorrt_llm_relaxed(10, 0.6)" M7
    """
    from ..theory import RULES, parse_rule
    from ..theory.presets import PRESETS
    from ..theory.theorems import EVERY_FORMULA, THEOREMS

    known = {
        name: record.citation for group in (THEOREMS, EVERY_FORMULA, RULES, PRESETS) for name, record in group.items()
    }
    for name in names or ():
        if name.isidentifier() and name not in known:
            raise unknown_name("rule, theorem or formula", name, known)
    cited = {name: known.get(name) or parse_rule(name).citation for name in names or known}
    if as_json:
        print_json(cited)
        return
    table = Table("name", "source")
    for name, source in cited.items():
        table.add_row(name, source)
    print_table(table)
