"""`draftcert cite`: the sources behind a rule, a deployed preset, a theorem or a formula."""

from typing import Annotated

import typer
from rich.table import Table

from ..theory.names import unknown_name
from .console import Json, out, print_json, print_table


def cite(
    names: Annotated[
        list[str] | None, typer.Argument(help='Rules, presets, theorems, formulas: "additive(0.6)", M7. All if none.')
    ] = None,
    bibtex: Annotated[bool, typer.Option("--bibtex", help="Print the entries of a bibliography instead.")] = False,
    as_json: Json = False,
) -> None:
    """Print what to cite for rules, theorems and formulas: where each was first stated or is deployed.

    Example: draftcert cite "tensorrt_llm_relaxed(10, 0.6)" M7
    Example: draftcert cite --bibtex M7 S1
    """
    from ..theory import RULES, parse_rule
    from ..theory.presets import PRESETS
    from ..theory.sources import SOURCES, cited
    from ..theory.theorems import EVERY_FORMULA, THEOREMS

    known = {
        name: record.citation for group in (THEOREMS, EVERY_FORMULA, RULES, PRESETS) for name, record in group.items()
    }
    for name in names or ():
        if name.isidentifier() and name not in known:
            raise unknown_name("rule, theorem or formula", name, known)
    citations = {name: known.get(name) or parse_rule(name).citation for name in names or known}
    sources = {name: [source.key for source in cited(citation)] for name, citation in citations.items()}
    entries = [source.bibtex for key, source in SOURCES.items() if any(key in keys for keys in sources.values())]
    if as_json:
        print_json({"citations": citations, "sources": sources, "bibtex": entries} if bibtex else citations)
        return
    if bibtex:
        out.print("\n\n".join(entries), markup=False, highlight=False, soft_wrap=True)
        return
    table = Table("name", "source")
    for name, source in citations.items():
        table.add_row(name, source)
    print_table(table)
