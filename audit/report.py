"""Write the report of an audit: one HTML file that opens offline, Markdown and JSON, all of the same tables."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..support.files import write_whole
from ..support.text import markdown, visible, visible_value, with_policy
from ..theory.imports import optional
from .answer import Answer
from .figures import draw
from .recommendation import Wanted
from .records import Audit
from .serving import Costs
from .tables import Section, Table, contents


@dataclass(frozen=True)
class AuditReport:
    """Where a report was written, and its contents: the answers that it leads with, and the evidence."""

    html: Path
    markdown: Path
    json: Path
    answers: list[Answer]
    sections: list[Section]
    summary: dict[str, Any]

    @property
    def overview(self) -> str:
        """What a terminal shows: the answers, and what was measured."""
        facts = [f"{name}: {visible(readable(value))}" for name, value in self.summary["facts"].items()]
        told = [
            f"{each.question}: {visible(each.short)}\n  {visible(f'{each.text} {each.code}'.strip())}"
            for each in self.answers
        ]
        return "\n".join([*told, "", *facts])


def write_report(folder: str | Path, wanted: Wanted | None = None, costs: Costs | None = None) -> AuditReport:
    """Write `report.html`, `report.md` and `report.json` into the folder of a finished audit.

    The same audit gives the same bytes. `wanted`: the acceptance the recommendation aims at; `costs`: of a draft step
    and of a check, for which the fastest drafts are told.

    Raises:
        DraftcertError: no finished audit in the folder, or matplotlib or jinja2 are missing.
    """
    with optional("report"):
        import jinja2
        from markupsafe import Markup

    audit = Audit.open(folder)
    lead, parts = contents(audit, wanted or Wanted(), costs)
    facts = _facts(audit)
    templates = files("draftcert.audit") / "templates"
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: (templates / name).read_text("utf-8")),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=visible_value,
    )
    environment.filters["value"] = readable
    environment.filters["line"] = lambda value: markdown(readable(value))
    environment.filters["markdown"] = as_markdown
    trace = audit.trace()
    context = {
        "answers": lead,
        "facts": facts,
        "sections": parts,
        "draw": lambda table: Markup(draw(table)),
        "trace": None if trace is None else _script_json(trace),
        "drafter": None if trace is None else trace["drafter"],
    }
    summary = {
        "answers": [vars(each) for each in lead],
        "facts": facts,
        "tables": {table.key: _as_dict(table) for part in parts for table in part.tables},
    }
    written = {}
    for name, text in (
        ("report.html", with_policy(environment.get_template("report.html.j2").render(context))),
        ("report.md", environment.get_template("report.md.j2").render(context)),
        ("report.json", json.dumps(_finite(summary), indent=1, allow_nan=False) + "\n"),
    ):
        written[name] = audit.folder / name
        write_whole(written[name], text)
    return AuditReport(written["report.html"], written["report.md"], written["report.json"], lead, parts, summary)


def readable(value: Any) -> str:
    """A cell of a table as text: three significant digits, the sign of infinity, a dash for what is unknown."""
    if value is None:
        return "–"
    if isinstance(value, float):
        if math.isinf(value):
            return "∞" if value > 0 else "-∞"
        return "0" if value == 0 else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    return str(value)


def as_markdown(table: Table, escape: Callable[[str], str] = markdown) -> list[str]:
    """A Markdown table, its columns padded to line up; on a terminal nothing but what is `visible` needs escaping."""
    cells = [[escape(readable(value)) for value in row] for row in (table.columns, *table.rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(table.columns))]
    lines = [" | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in cells]
    return [f"| {line} |" for line in (lines[0], " | ".join("-" * width for width in widths), *lines[1:])]


def _facts(audit: Audit) -> dict[str, Any]:
    configuration = audit.configuration
    facts: dict[str, Any] = {
        "target": configuration.target,
        "drafter": configuration.draft or "none",
        "prompts": len(audit.prompts),
        "positions": len(audit),
        "greedy tokens a prompt, at most": configuration.max_new_tokens,
        "precision": configuration.dtype,
    }
    if audit.has_draft:
        facts["mean KL(target || draft), nats"] = audit.mean_kl
        facts["mean KL(draft || target), nats"] = float(audit.column("reverse_kl").mean())
        facts["mean total variation"] = float(audit.column("total_variation").mean())
        facts["greedy tokens agree at"] = float((audit.column("draft_rank") == 1).mean())
    return facts


def _script_json(document: dict[str, Any]) -> str:
    """JSON that can stand in a script element: no text of a model can end the element, or act where it is shown."""
    return json.dumps(document).replace("<", "\\u003c")


def _as_dict(table: Table) -> dict[str, Any]:
    return {"title": table.title, "reading": table.reading, "columns": list(table.columns), "rows": table.rows}


def _finite(value: Any) -> Any:
    """JSON has no infinities: they are written as text."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value
