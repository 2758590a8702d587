"""Figures of the document, drawn from the theorems' own expressions; the same bytes in every run."""

import io
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, cast

import matplotlib as mpl
import numpy as np
import sympy
from matplotlib.figure import Figure
from matplotlib.tri import Triangulation

from ..support.text import styles_as_classes
from ..theory import Rule, parse_rule
from ..theory.conditions import Condition, RankCondition, ThresholdCondition, fold_conditions
from ..theory.pool import select_pool
from ..theory.sampling import ACCEPTANCE, KL, lenience, u, v
from ..theory.statistics import TOP
from ..theory.theorem import ExactValue, Infimum, Limit, Supremum
from ..theory.theorems import THEOREMS

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "draftcert",
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "figure.constrained_layout.use": True,
}


def _bound(theorem: str, kind: type[Infimum] | type[Supremum]) -> Any:
    """The infimum or supremum that a theorem concludes first."""
    return next(claim for claim in THEOREMS[theorem].conclusions if isinstance(claim, kind))


def _evaluate(expression: sympy.Expr, variable: sympy.Symbol, at: Any) -> Any:
    return np.vectorize(sympy.lambdify(variable, expression, "mpmath"), otypes=[float])(at)


def _against_margin(bound: Any, m: int) -> tuple[Any, Any]:
    """The rows that attain a bound, as (margin, value): the margin is the first token's lead over the last moved."""
    candidates = {each.symbol: sympy.Integer(m) for each in bound.family.domain if each.integer}
    (free,) = (each for each in bound.family.domain if not each.integer)
    if free.upper == sympy.oo:
        at = float(free.lower) + np.concatenate([np.linspace(0, 3, 80), np.geomspace(3.1, 2000, 120)])
    else:
        at = np.linspace(float(free.lower), float(free.upper), 200)[:-1]
    moved = [each.probability for each in bound.family.tokens if each.pooled]
    margin = (moved[0] - moved[-1]).xreplace(candidates)
    value = bound.value.subs(bound.family.at).xreplace(candidates)
    return _evaluate(margin, free.symbol, at), _evaluate(value, free.symbol, at)


def margin_bounds() -> Figure:
    """M1: every certificate of strict greedy with margin g lies in the shaded band."""
    figure = Figure(figsize=(5.2, 3.2))
    axes = figure.subplots()
    g, low = _against_margin(_bound("M1", Infimum), 1)
    (margin,) = _bound("M1", Supremum).value.free_symbols
    high = _evaluate(_bound("M1", Supremum).value, margin, g)
    axes.fill_between(g, low, high, alpha=0.2, color="C0", linewidth=0)
    axes.plot(g, high, color="C0", linestyle="--", label="supremum, any vocabulary")
    axes.plot(g, low, color="C0", label="infimum")
    axes.set(xlabel="margin g = p₁ − p₂", ylabel="certificate C (nats)", xlim=(0, 1), ylim=(0, None))
    axes.legend(frameon=False)
    return figure


def _tree_bounds(theorem: str, label: str) -> Figure:
    figure = Figure(figsize=(5.2, 3.2))
    axes = figure.subplots()
    for colour, m in enumerate((1, 2, 4, 8)):
        axes.plot(*_against_margin(_bound(theorem, Infimum), m), color=f"C{colour}", label=f"m = {m}")
    axes.set(xlabel=label, ylabel="infimum of C (nats)", xlim=(0, 1), ylim=(0, None))
    axes.legend(frameon=False, title="candidates")
    return figure


def tree_margin_to_second() -> Figure:
    """M7: the least certificate of a tree of m candidates against the margin to the second token."""
    return _tree_bounds("M7", "margin g = p₁ − p₂")


def tree_margin_to_last() -> Figure:
    """M6: the least certificate of a tree of m candidates against the margin to the m-th competitor."""
    return _tree_bounds("M6", "margin g = p₁ − p₍ₘ₊₁₎")


def tree_suprema() -> Figure:
    """M7s: the largest certificate of a tree against the margin (lines), and the two families it is the larger of."""
    figure = Figure(figsize=(5.2, 3.2))
    axes = figure.subplots()
    dust: Any = next(claim for claim in THEOREMS["M7s"].conclusions if isinstance(claim, Limit))
    spikes: list[Any] = [claim for claim in THEOREMS["M7s"].conclusions if isinstance(claim, ExactValue)][1:]
    for colour, m in enumerate((2, 4, 8)):
        g, families = np.linspace(0, 1, 201)[:-1], []
        turn = (m - 1) / (m + 1)
        for value in (dust.value, *(spike.value.total for spike in spikes)):
            by_name = {str(each): each for each in value.free_symbols}
            families.append(_evaluate(value.xreplace({by_name["m"]: sympy.Integer(m)}), by_name["g"], g))
        pair = families[0], np.where(g <= turn, families[1], families[2])
        for family, style in zip(pair, ("--", ":"), strict=True):
            axes.plot(g, family, color=f"C{colour}", linestyle=style, linewidth=0.9)
        axes.plot(g, np.maximum(*pair), color=f"C{colour}", label=f"m = {m}")
    axes.set(xlabel="margin g = p₁ − p₂", ylabel="supremum of C (nats)", xlim=(0, 1), ylim=(0, None))
    axes.legend(frameon=False, title="candidates")
    return figure


def _infimum(theorem: str, conclusion: int = 0, **given: float) -> Callable[[Any], Any]:
    """A theorem's infimum as a function of the margin g, the other parameters given by their printed names."""
    claim: Any = THEOREMS[theorem].conclusions[conclusion]
    value: Any = claim.value
    by_name: dict[str, Any] = {str(symbol): symbol for symbol in value.free_symbols}
    fixed: Any = value.xreplace(
        {by_name[name]: sympy.Rational(str(at)) for name, at in given.items() if name in by_name}
    )
    return lambda at: _evaluate(fixed, by_name["g"], at) if len(at) else at


Piece = tuple[float, Callable[[Any], Any]]
"""A bound as a function of the margin, and up to which margin it is the one."""


def _relaxed_bounds(pieces: Callable[[int], list[Piece]], title: str) -> Figure:
    """Lines made of pieces, each an infimum up to a margin; where one case ends the value may jump."""
    figure = Figure(figsize=(5.2, 3.2))
    axes = figure.subplots()
    for colour, count in enumerate((1, 2, 4, 8)):
        start = 0.0
        for end, value in pieces(count):
            if end > start:
                g = np.linspace(start, end, 60)[1:-1]
                label = f"{title[0]} = {count}" if start == 0 else None
                axes.plot(g, value(g), color=f"C{colour}", label=label)
                start = end
    axes.set(xlabel="margin g = p₁ − p₂", ylabel="infimum of C (nats)", xlim=(0, 1), ylim=(0, None))
    axes.legend(frameon=False, title=title)
    return figure


def additive_bounds() -> Figure:
    """M2 at t = 0.3: the least certificate against the margin. At g = t the second token stops being accepted."""

    def pieces(m: int) -> list[Piece]:
        far, near = (_infimum("M2", place, m=m, t=0.3) for place in (0, 1))
        return [(0.3 * m / (m + 1), near), (0.3, far), (1.0, _infimum("M7", m=m))]

    return _relaxed_bounds(pieces, "m candidates")


def multiplicative_bounds() -> Figure:
    """M3 at alpha = 0.3: the chord, and from its end on the bound of strict greedy."""

    def pieces(m: int) -> list[Piece]:
        return [(0.7 / (1 + 0.3 * m), _infimum("M3", m=m, alpha=0.3)), (1.0, _infimum("M7", m=m))]

    return _relaxed_bounds(pieces, "m candidates")


def top_m_bounds() -> Figure:
    """M4 for one candidate: the least certificate of top-m(k) against the margin."""
    return _relaxed_bounds(lambda k: [(1.0, _infimum("M4", m=1, k=k))], "k accepted tokens")


def threshold_bounds() -> Figure:
    """M5 at tau = 0.1: the least certificate when every rejected token is below the threshold."""

    def pieces(m: int) -> list[Piece]:
        return [(1 - 0.1 * (m + 1), _infimum("M5", m=m, tau=0.1)), (1.0, _infimum("M7", m=m))]

    return _relaxed_bounds(pieces, "m candidates")


def mean_guarantee() -> Figure:
    """B2: the acceptance rate that a mean KL guarantees, for 200 contexts at M7's infimum, margins spread evenly."""
    figure = Figure(figsize=(5.2, 3.2))
    axes = figure.subplots()
    contexts = 200
    margins = (np.arange(contexts) + 0.5) / contexts
    for colour, m in enumerate((1, 2, 4, 8)):
        certificates = np.sort(_infimum("M7", m=m)(margins))
        budgets = np.cumsum(certificates) / contexts
        axes.step(budgets, 1 - np.arange(contexts) / contexts, where="pre", color=f"C{colour}", label=f"m = {m}")
    axes.set(xlabel="mean KL(p||q) below (nats)", ylabel="acceptance rate at least", ylim=(0, 1), xlim=(0, None))
    axes.legend(frameon=False, title="candidates")
    return figure


def least_acceptance() -> Figure:
    """S2: the least acceptance of speculative sampling against KL or mean KL, without lenience and with it."""
    figure = Figure(figsize=(5.2, 3.2))
    axes = figure.subplots()
    for colour, text in enumerate(("1", "2/3", "1/2", "1/4")):
        allowed = float(sympy.Rational(text))
        # In theta = ln(v/u): v - u = l theta is the lenience times it, and v/u = exp(theta).
        theta = np.geomspace(0.02, 400, 400)
        high = allowed * theta / -np.expm1(-theta)
        low = (high - allowed * theta)[high > 1]
        high = high[high > 1]
        divergence, accepted = (
            sympy.lambdify((u, v, lenience), expression)(low, high, allowed) for expression in (KL, ACCEPTANCE)
        )
        axes.plot([0, *divergence], [1, *accepted], color=f"C{colour}", label=f"l = {text}")
    axes.set(xlabel="KL(p||q) at most (nats)", ylabel="acceptance at least", xlim=(0, 2), ylim=(0, 1))
    axes.legend(frameon=False, title="lenience")
    return figure


def _certificates(rule: Rule, candidates: int) -> Callable[[tuple[float, ...]], float]:
    """T3 in floats, for pictures only: no rule here depends on more than the rank and the largest probability."""
    thresholds = {
        each: sympy.lambdify(TOP, each.threshold) for each in rule.conditions if isinstance(each, ThresholdCondition)
    }

    def certificate(row: tuple[float, ...]) -> float:
        ordered = sorted(row, reverse=True)

        def count(condition: Condition) -> int:
            if isinstance(condition, RankCondition):
                return int(condition.limit)
            return sum(p >= thresholds[cast("ThresholdCondition", condition)](ordered[0]) for p in ordered)

        accepted = fold_conditions(rule.accepts, count, min, max)
        competitors = ordered[accepted : accepted + candidates]
        if len(competitors) < candidates:
            return float("nan")
        pool = select_pool(ordered[:accepted], competitors)
        moved = ordered[: pool.accepted] + competitors[candidates - pool.competitors :]
        return sum(p * float(np.log(p / pool.level)) for p in moved if p > 0)

    return certificate


def simplex() -> Figure:
    """T3: the certificate of every target over three tokens; white is where nothing can be rejected."""
    figure = Figure(figsize=(7.2, 2.7))
    cases = (("strict_greedy", 1), ("additive(0.3)", 1), ("strict_greedy", 2))
    steps = 60
    points = [(i / steps, j / steps) for i in range(steps + 1) for j in range(steps + 1 - i)]
    x = [b + c / 2 for b, c in ((b, 1 - a - b) for a, b in points)]
    y = [(1 - a - b) * np.sqrt(3) / 2 for a, b in points]
    for axes, (rule, m) in zip(figure.subplots(1, 3), cases, strict=True):
        certificate = _certificates(parse_rule(rule), m)
        values = np.array([certificate((a, b, max(0.0, 1 - a - b))) for a, b in points])
        known = np.isfinite(values)
        mesh = Triangulation(x, y)
        mesh.set_mask((~known)[mesh.triangles].any(axis=1))
        filled = axes.tricontourf(mesh, np.nan_to_num(values), levels=12, cmap="viridis")
        axes.plot([0, 1, 0.5, 0], [0, 0, np.sqrt(3) / 2, 0], color="0.4", linewidth=0.8)
        figure.colorbar(filled, ax=axes, orientation="horizontal", shrink=0.85, format="%.1f")
        axes.set_title(f"{rule}, m = {m}", fontsize=9)
        axes.set_aspect("equal")
        axes.axis("off")
    return figure


FIGURES = MappingProxyType(
    {
        "T3": simplex,
        "M1": margin_bounds,
        "M2": additive_bounds,
        "M3": multiplicative_bounds,
        "M4": top_m_bounds,
        "M5": threshold_bounds,
        "M6": tree_margin_to_last,
        "M7": tree_margin_to_second,
        "M7s": tree_suprema,
        "B2": mean_guarantee,
        "S2": least_acceptance,
    }
)
"""The figure of a theorem, by the theorem's name."""


def draw(figure: Callable[[], Figure], *kinds: str) -> tuple[bytes, ...]:
    """A figure as `svg` or `pdf`, without date or random names: made once, saved in each of these kinds."""
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None, "Producer": None, "Creator": None}}
    buffers = tuple(io.BytesIO() for _ in kinds)
    with mpl.rc_context({**STYLE, "svg.hashsalt": figure.__name__}):
        made = figure()
        for kind, buffer in zip(kinds, buffers, strict=True):
            made.savefig(buffer, format=kind, metadata=metadata[kind], transparent=False)
    return tuple(buffer.getvalue() for buffer in buffers)


def inline_svg(drawn: bytes, name: str) -> str:
    """The `<svg>` element alone, as wide as its container, with names of its own in a page with others."""
    text = drawn.decode()
    text = text[text.index("<svg") :]
    # What is drawn in black takes the page's ink, what is white its paper, so that both follow a dark page.
    text = text.replace("#000000", "currentColor").replace("fill: #ffffff", "fill: none")
    for mark in ('id="', 'href="#', "url(#"):
        text = text.replace(mark, f"{mark}{name}-")
    return styles_as_classes(text, name)
