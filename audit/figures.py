"""Figures of a report: a table drawn as inline SVG. The same table gives the same bytes."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np

from ..support.text import html_text, styles_as_classes
from ..theory.imports import optional
from .tables import Chart, Table

# Colours that stay apart for colour-blind readers (Okabe and Ito 2008), and dashes for print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":")
GRID = "#dddddd"
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "legend.frameon": False,
}


def draw(table: Table) -> str:
    """The chart of a table as an `<svg>` element that scales with the page, its ids prefixed with the table's key.

    Raises:
        DraftcertError: matplotlib is missing.
    """
    if table.chart is None:
        raise ValueError(f"table {table.key} has no chart")
    with optional("report"):
        import matplotlib
        from matplotlib.figure import Figure

    with matplotlib.rc_context({**STYLE, "svg.hashsalt": table.key}):
        figure = Figure(figsize=(4.8, 3.4), layout="constrained")
        axes = figure.add_subplot()
        (_bars if table.chart.kind == "bar" else _lines)(axes, table, table.chart)
        axes.set_xlabel(table.chart.xlabel)
        axes.set_ylabel(table.chart.ylabel)
        figure.legend(loc="outside lower center", ncols=2, fontsize=8)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    return _inline(file.getvalue(), table)


def _column(table: Table, name: str) -> list:
    index = table.columns.index(name)
    return [row[index] for row in table.rows]


def _lines(axes, table: Table, chart: Chart) -> None:
    x = _column(table, chart.x)
    for number, line in enumerate(chart.lines):
        y = np.array(_column(table, line), dtype=float)
        dash = DASHES[number // len(COLOURS) % len(DASHES)] if number >= len(COLOURS) else "-"
        axes.plot(x, np.where(np.isfinite(y), y, np.nan), dash, color=COLOURS[number % len(COLOURS)], label=line)
    for number, (at, height, line) in enumerate(chart.points):
        colour = COLOURS[chart.lines.index(line) % len(COLOURS)]
        axes.plot(
            [at], [height], "o", color=colour, markeredgecolor="#000000", label=chart.marked if not number else None
        )
    axes.set_xlim(min(x), max(x))
    axes.set_ylim(bottom=0)


def _bars(axes, table: Table, chart: Chart) -> None:
    labels = _column(table, chart.x)
    width = 0.8 / len(chart.lines)
    for number, line in enumerate(chart.lines):
        places = [place + (number - (len(chart.lines) - 1) / 2) * width for place in range(len(labels))]
        heights = [0 if value is None else value for value in _column(table, line)]
        axes.bar(places, heights, width, color=COLOURS[number], label=line)
    axes.set_xticks(range(len(labels)), labels, rotation=30, ha="right")


def _inline(svg: str, table: Table) -> str:
    """Only the element, without fixed size, named and told for screen readers, in the page's colours, ids unique."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(id="|xlink:href="#|url\(#)', rf"\g<1>{table.key}-", svg)
    named = rf'\1 role="img" aria-labelledby="{table.key}-title" aria-describedby="{table.key}-told"'
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', named, svg, count=1)
    told = f'<desc id="{table.key}-told">{html_text(description(table))}</desc>'
    svg = re.sub(r"(<svg[^>]*>)", lambda match: match[1] + told, svg, count=1)
    return styles_as_classes(svg, table.key).replace("#000000", "currentColor").replace(GRID, "var(--line)")


def description(table: Table) -> str:
    """What a reader sees in the chart of a table, in words: where each line begins and ends, and its extremes."""
    chart = table.chart
    if chart is None:
        raise ValueError(f"table {table.key} has no chart")
    places = _column(table, chart.x)
    told = [f"{chart.ylabel} against {chart.xlabel}."]
    for line in chart.lines:
        seen = [(y, x) for x, y in zip(places, _column(table, line), strict=True) if y is not None and np.isfinite(y)]
        if not seen:
            continue
        if chart.kind == "bar":
            told.append(f"{line}: {', '.join(f'{y:.3g} at {x}' for y, x in seen)}.")
        else:
            (first, start), (last, end) = seen[0], seen[-1]
            least, most = min(seen)[0], max(seen)[0]
            told.append(f"{line}: {first:.3g} at {start:.3g}, {last:.3g} at {end:.3g}; from {least:.3g} to {most:.3g}.")
    return " ".join(told)
