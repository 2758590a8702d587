"""The contents of a report as data: sections of tables, each with a sentence that says how to read it.

HTML, Markdown and JSON are three renderings of this one structure, and a figure is drawn from its own table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from ..numerics import MeanKLGuarantee, margin_bounds
from ..theory import parse_rule
from .answer import Answer, answers, worth
from .judge import Judge
from .measure import RULES
from .published import MODELS, PUBLISHED, Published
from .recommendation import (
    SWEPT,
    TYPICAL_KL,
    Recommendation,
    Wanted,
    nodes_per_accepted,
    promise,
    recommend,
    sampling,
    trade_off,
)
from .records import Audit
from .serving import Costs, Drafts, Largest, Served, drafts_by_length, largest_acceptance

STRICT = RULES[0]
PERCENTILES = ("p5", "p25", "p50", "p75", "p95")
MOST = 12
"""Positions listed in a table of single positions."""


@dataclass(frozen=True)
class Chart:
    """How to draw a table: a column on the x axis, columns as lines or bars, single points `(x, y, line)`.

    Points have the colour of the line they belong to; `marked` says what they are.
    """

    x: str
    lines: tuple[str, ...]
    xlabel: str
    ylabel: str
    kind: str = "line"
    points: tuple[tuple[float, float, str], ...] = ()
    marked: str = ""


@dataclass(frozen=True)
class Table:
    """Named columns and rows. `reading` says how to read it."""

    key: str
    title: str
    reading: str
    columns: tuple[str, ...]
    rows: list[list[Any]]
    chart: Chart | None = None

    @property
    def is_wide(self) -> bool:
        """Whether a phone shows its rows as cards: many columns, or cells that are sentences."""
        return len(self.columns) > 4 or any(
            isinstance(cell, str) and len(cell) > 60 for row in self.rows for cell in row
        )


@dataclass(frozen=True)
class Section:
    """A part of the report."""

    key: str
    title: str
    text: str
    tables: list[Table] = field(default_factory=list)


def contents(audit: Audit, wanted: Wanted, costs: Costs | None = None) -> tuple[list[Answer], list[Section]]:
    """Everything a report says, in order: first what it comes to, then what that rests on."""
    judged_by = audit.has_draft or wanted.mean_kl is not None
    settings = recommend(audit, wanted) if judged_by else []
    drafts = drafts_by_length(audit) if audit.has_draft else []
    largest = largest_acceptance(audit)
    lead = list(answers(audit, wanted, settings))
    if drafts:
        lead.append(worth(drafts, next(iter(largest), None), Served.fastest(audit, costs) if costs else None))
    return lead, _sections(audit, wanted, settings, drafts, largest)


def _sections(
    audit: Audit,
    wanted: Wanted,
    settings: list[Recommendation],
    drafts: list[Drafts],
    largest: list[Largest],
) -> list[Section]:
    found = [
        Section("settings", "Recommended settings", *_recommendation(wanted, settings)),
        Section(
            "certificates",
            "How much divergence each position tolerates",
            "The certificate C of a position is the largest number such that KL(target || draft) < C guarantees that "
            "an accepted token is among the drafter's candidates. Units are nats.",
            [
                certificate_percentiles(audit),
                share_certified(audit, "rules"),
                share_certified(audit, "candidates"),
                certificate_by_margin(audit),
                run_lengths(audit),
            ],
        ),
        Section(
            "guarantee",
            "What a mean KL guarantees",
            "A drafter's held-out loss is a mean KL. On these positions it bounds how many can be rejected: at most "
            "the k cheapest certificates that it can pay for. The bound is attained by some drafter, so nothing "
            "better follows from the mean alone, and it says nothing about other prompts.",
            [guarantee_curve(audit, "rules"), guarantee_curve(audit, "candidates"), sweep(audit)],
        ),
        Section(
            "cost",
            "What acceptance costs",
            "A rule that lets less likely tokens pass gains acceptance and allows log-loss: by how many nats a token "
            "that passes can lie below the target's likeliest one there, on average over these positions. It is about "
            "each next token given the text so far, not about the likelihood of another text as a whole.",
            [acceptance_and_cost(audit)],
        ),
        Section(
            "ceiling",
            "What nobody can exceed",
            "With sampling at temperature 1, a position accepts one of a drafter's m likeliest tokens with at most the "
            "mass of the target's m likeliest, however good the drafter. Drafts that are sampled are not bound by it, "
            "and greedy decoding accepts at most the drafts' length.",
            [ceiling(largest, audit.has_draft)],
        ),
        Section(
            "undecided",
            "Tightest positions",
            "Where the target itself is nearly undecided, hardly any drafter can be certified.",
            [tightest(audit)],
        ),
    ]
    if audit.has_draft:
        found += [
            Section(
                "sampling",
                "Speculative sampling",
                "Drafts that are sampled and accepted with probability min(1, target/(lenience draft)): without "
                "lenience the output follows the target. The guarantee is the mean KL's, sharp over all drafters.",
                [sampled(audit)],
            ),
            Section(
                "serving",
                "Is this drafter worth serving?",
                "Strict greedy, one candidate. `draftcert recommend --draft-cost` says which length is the fastest.",
                [worth_serving(drafts)],
            ),
        ]
        found.append(
            Section(
                "training",
                "Training the drafter: which positions cost acceptance",
                "Under strict greedy with one candidate. A position is certified when KL < C; KL - C is what is left "
                "to gain there. `draftcert.audit.losses` trains on exactly this.",
                [by_outcome(audit), by_confidence(audit), by_category(audit), cheapest_misses(audit)],
            )
        )
    found.append(
        Section(
            "published",
            "Beside the published figures",
            "The paper's statistics of Qwen3 targets on UltraChat, and the same statistics of this audit. Models and "
            "prompts differ, so this shows how this target compares, not whether either is right.",
            [beside_published(audit)],
        )
    )
    return found


def name(rule: str, candidates: int) -> str:
    """How a cell is called in tables."""
    return rule if candidates == 1 else f"{rule}, {candidates} candidates"


def beside_published(audit: Audit) -> Table:
    """The published statistics, and the same of this audit."""
    rows = []
    for entry in PUBLISHED:
        label = {"mean": "mean", "p50": "median", "p5": "5th percentile"}[entry.statistic]
        rows.append([entry.quantity, label, _own(audit, entry), *entry.values])
    return Table(
        "beside_published",
        "Target statistics and certificates",
        "Read each row across: the same statistic on this target and on the published ones. A higher certificate means "
        "that a drafter may be further off and is still accepted.",
        ("quantity", "statistic", audit.configuration.target, *MODELS),
        rows,
    )


def mean_run(inside: np.ndarray, prompt: np.ndarray) -> float:
    """Mean length of the runs of consecutive positions of one prompt that are `inside`; 0 without any."""
    follows = np.r_[False, (prompt[1:] == prompt[:-1]) & inside[:-1]]
    starts = inside & ~follows
    return float(inside.sum() / starts.sum()) if starts.any() else 0.0


def statistic(values: np.ndarray, name: str) -> float:
    """`mean` or a percentile such as `p5`, infinities included: one infinite value makes the mean infinite."""
    if name == "mean":
        return float(values.mean())
    # "lower" never averages a finite with an infinite neighbour.
    return float(np.percentile(values, float(name[1:]), method="lower"))


def _own(audit: Audit, entry: Published) -> float | None:
    if entry.column not in audit.names:
        return None
    values = audit.column(entry.column)
    if entry.run_at is not None:
        return mean_run(values > entry.run_at, audit.column("prompt"))
    return statistic(values, entry.statistic)


def certificate_percentiles(audit: Audit) -> Table:
    """Percentiles of the certificate for every rule and number of candidates."""
    rows = []
    for rule, candidates, cell in audit.configuration.grid.cells():
        values = audit.column(f"C|{cell}")
        rows.append(
            [
                rule,
                candidates,
                statistic(values, "mean"),
                *(statistic(values, p) for p in PERCENTILES),
                float((values == 0).mean()),
                float(np.isinf(values).mean()),
            ]
        )
    return Table(
        "certificate_percentiles",
        "Certificate by rule and number of candidates",
        "The 5th percentile is the certificate that 95 of 100 positions exceed. 'none' is the share of positions where "
        "the rule may reject the target's own token (C = 0), 'always' where every draft is accepted (C infinite).",
        ("rule", "candidates", "mean", "5 %", "25 %", "median", "75 %", "95 %", "none", "always"),
        rows,
    )


def _series(audit: Audit, kind: str) -> list[tuple[str, str, np.ndarray]]:
    """The label, column suffix and certificates of each line of a chart."""
    grid = audit.configuration.grid
    if kind == "rules":
        cells = [(rule, min(grid.candidates)) for rule in grid.names]
    else:
        cells = [(grid.names[0], candidates) for candidates in grid.candidates]
    return [(name(*cell), f"{cell[0]}|{cell[1]}", audit.certificates(*cell)) for cell in cells]


_TITLES = {"rules": "by rule", "candidates": "by number of candidates"}


def share_certified(audit: Audit, kind: str) -> Table:
    """Share of positions whose certificate exceeds a KL."""
    at = np.round(np.linspace(0, 2.2, 45), 3)
    series = _series(audit, kind)
    shares = [[float((values > kl).mean()) for kl in at] for *_, values in series]
    return Table(
        f"share_certified_{kind}",
        f"Share of certified positions, {_TITLES[kind]}",
        "At each KL on the x axis, the share of positions that a drafter with that KL there would be certified on; the "
        "curve is the distribution of the certificate, read from above.",
        ("KL", *(label for label, *_ in series)),
        [[float(kl), *column] for kl, *column in zip(at, *shares, strict=True)],
        Chart("KL", tuple(label for label, *_ in series), "KL(target || draft) in nats", "share certified"),
    )


def run_lengths(audit: Audit) -> Table:
    """Mean certified run length against KL."""
    at = np.round(np.linspace(0.02, 1.0, 50), 3)
    prompt = audit.column("prompt")
    series = _series(audit, "candidates")
    runs = [[mean_run(values > kl, prompt) for kl in at] for *_, values in series]
    return Table(
        "run_lengths",
        "Certified run length",
        "With at most this KL at every step, how many consecutive steps are certified: the mean length of the "
        "unbroken stretches. A stretch ends with its prompt at the latest, so long ones are undercounted.",
        ("KL", *(label for label, *_ in series)),
        [[float(kl), *column] for kl, *column in zip(at, *runs, strict=True)],
        Chart("KL", tuple(label for label, *_ in series), "KL at every step, nats", "mean certified run, tokens"),
    )


def certificate_by_margin(audit: Audit, bins: int = 20) -> Table:
    """The strict greedy certificate against the margin p_(1) - p_(2), with its sharp bounds."""
    margin = audit.column("top1") - audit.column("top2")
    values = strict_certificates(audit)
    edges = np.linspace(0, 1, bins + 1)
    which = np.clip(np.searchsorted(edges, margin, side="right") - 1, 0, bins - 1)
    rows = []
    for number in range(bins):
        inside = values[which == number]
        if len(inside):
            low, high = float(edges[number]), float(edges[number + 1])
            rows.append(
                [
                    (low + high) / 2,
                    len(inside),
                    float(margin_bounds(STRICT, margin=low, digits=15)[0].value),
                    float(inside.min()),
                    statistic(inside, "p50"),
                    float(inside.max()),
                    float(margin_bounds(STRICT, margin=high, digits=15)[1].value),
                ]
            )
    return Table(
        "certificate_by_margin",
        "Certificate against margin",
        "Positions grouped by the gap between the target's two most likely tokens. Every certificate lies between the "
        "sharp lower and upper bound for that gap; near the lower one the two tokens hold all probability.",
        ("margin", "positions", "lower bound", "least", "median", "greatest", "upper bound"),
        rows,
        Chart(
            "margin",
            ("lower bound", "least", "median", "greatest", "upper bound"),
            "margin p(1) - p(2)",
            "strict greedy certificate, nats",
        ),
    )


def guarantee_curve(audit: Audit, kind: str) -> Table:
    """Guaranteed acceptance against mean KL, and this drafter's points."""
    series = _series(audit, kind)
    labels = tuple(label for label, *_ in series)
    highest, points = 1.0, ()
    if audit.has_draft and np.isfinite(audit.mean_kl):
        highest = max(1.0, 1.1 * audit.mean_kl)
        points = tuple((audit.mean_kl, float(audit.column(f"hit|{cell}").mean()), label) for label, cell, _ in series)
    at = np.linspace(0, highest, 51).tolist()
    guarantees = [MeanKLGuarantee(values) for *_, values in series]
    return Table(
        f"guarantee_{kind}",
        f"Guaranteed acceptance against mean KL, {_TITLES[kind]}",
        "A drafter whose KL averages x over these positions is accepted on at least the share y of them. The points "
        "are the audited drafter's mean KL and its acceptance as counted ('Rules and candidates' has the numbers): "
        "each lies on or above the curve of its colour.",
        ("mean KL", *labels),
        [[x, *(float(guarantee.acceptance(x)) for guarantee in guarantees)] for x in at],
        Chart(
            "mean KL",
            labels,
            "mean KL(target || draft), nats",
            "acceptance",
            points=points,
            marked="this drafter, counted",
        ),
    )


def sweep(audit: Audit) -> Table:
    """Every audited rule and number of candidates: what it guarantees, reaches and costs."""
    rows = []
    for rule, candidates, cell in audit.configuration.grid.cells():
        guarantee = MeanKLGuarantee(audit.column(f"C|{cell}"))
        reached: list[Any] = []
        if audit.has_draft:
            certified, measured = (float(audit.column(f"{name}|{cell}").mean()) for name in ("certified", "hit"))
            guaranteed = float(guarantee.acceptance(audit.mean_kl))
            reached = [guaranteed, certified, measured, nodes_per_accepted(candidates, measured)]
        relaxed = float((audit.column(f"accepted_size|{rule}") > 1).mean())
        rows.append(
            [rule, candidates, *reached, relaxed, *(guarantee.mean_kl(share) for share in ("0.5", "0.8", "0.95"))]
        )
    return Table(
        "sweep",
        "Rules and candidates",
        f"{_REACHED if audit.has_draft else ''}'risk' is the share of positions where more than the target's greedy "
        "token is accepted. 'KL for 80 %' is the mean KL below which 80 of 100 positions are guaranteed.",
        (
            *(
                "rule",
                "candidates",
                *(("guaranteed", "certified", "measured", "nodes") if audit.has_draft else ()),
                "risk",
            ),
            *("KL for 50 %", "KL for 80 %", "KL for 95 %"),
        ),
        rows,
    )


_REACHED = (
    "This drafter's acceptance is guaranteed by its mean KL, certified position by position, and measured: counted. "
    "'nodes' are those the target evaluates at a level of a tree per token accepted there: candidates over measured "
    "acceptance. "
)


def _recommendation(wanted: Wanted, found: list[Recommendation]) -> tuple[str, list[Table]]:
    if not found:
        return (
            "Without a drafter there is no mean KL to judge by. The table of rules and candidates says how small it "
            "must be; `draftcert recommend --mean-kl` takes yours.",
            [],
        )
    reached = [
        [
            *(each.system, "yes" if each.reached else "no", str(each.setting.rule), each.setting.candidates),
            *(each.setting.guaranteed, each.setting.certified, each.setting.measured, each.setting.nodes),
            *(each.setting.risk, each.setting.log_loss, each.setting.needed_kl),
        ]
        for each in found
    ]
    numbers = Table(
        "recommendation",
        f"Settings for at least {wanted.acceptance:.0%} {wanted.by} acceptance",
        "Per system the setting that reaches it at least risk, or its best where none does. 'KL needed' is the mean KL "
        "below which this setting guarantees the acceptance: what to train the drafter to. 'log-loss' is what the rule "
        "allows, in nats a token.",
        (
            *("system", "reached", "rule", "candidates", "guaranteed", "certified", "measured", "nodes", "risk"),
            *("log-loss", "KL needed"),
        ),
        reached,
    )
    configuration = Table(
        "configuration",
        "The same settings as configuration",
        "What to give each system for the setting above, and how its code departs from the rule. DRAFTER stands for "
        "the drafter's path or id.",
        ("system", "settings", "in the deployed code"),
        [[each.system, each.settings, each.differs] for each in found],
    )
    return " ".join(promise(wanted)), [numbers, configuration]


def acceptance_and_cost(audit: Audit) -> Table:
    """Guaranteed acceptance against the log-loss allowed, by rule and parameter."""
    mean_kl = audit.mean_kl if audit.has_draft else TYPICAL_KL
    traded = trade_off(audit, mean_kl)
    if mean_kl > TYPICAL_KL and not any(each.guaranteed for each in traded):  # the drafter is too far off to compare
        mean_kl, traded = TYPICAL_KL, trade_off(audit, TYPICAL_KL)
    return Table(
        "acceptance_and_cost",
        "Guaranteed acceptance against log-loss allowed",
        f"One candidate, a drafter of mean KL {mean_kl:.3g} nats. Of two rules with the same acceptance the one "
        "further left lets less pass. Rules that allow any loss at some position are left out.",
        ("rule", "log-loss allowed", *SWEPT),
        [
            [each.rule, each.log_loss, *(each.guaranteed if family == each.family else None for family in SWEPT)]
            for each in traded
        ],
        Chart("log-loss allowed", tuple(SWEPT), "log-loss allowed, nats a token", "guaranteed acceptance"),
    )


def ceiling(largest: list[Largest], drafted: bool) -> Table:
    """The mass of the target's likeliest tokens, and of the drafter's among the kept ones."""
    return Table(
        "largest_acceptance",
        "Largest possible acceptance under sampling",
        "The target's mean mass on its m likeliest tokens, and on the m likeliest of the drafter where the audit kept "
        "their probabilities: what this drafter reaches of it.",
        ("candidates", "at most", *(("this drafter", "share") if drafted else ())),
        [[each.candidates, each.most, *((each.reached, each.share) if drafted else ())] for each in largest],
    )


def sampled(audit: Audit) -> Table:
    """Guaranteed and measured acceptance of speculative sampling by lenience."""
    return Table(
        "sampling_acceptance",
        "Acceptance of speculative sampling",
        "A lenience below 1 accepts more and lets the output depart from the target's distribution. It is measured "
        "without lenience: one minus the mean total variation.",
        ("lenience", "guaranteed", "measured"),
        [[each.lenience, each.guaranteed, each.measured] for each in sampling(audit)],
    )


def worth_serving(drafts: list[Drafts]) -> Table:
    """Tokens a pass by the length of the drafts, and what a draft step may cost."""
    columns = ("length", "tokens a pass", "low", "high", "guaranteed", "at most", "share", "break-even cost")
    return Table(
        "tokens_a_pass",
        "Tokens a pass by length of the drafts",
        "As counted on the target's text, with a 95 % interval over prompts and with what the mean KL guarantees; at "
        "most what a drafter that is never wrong has, and the share of it that this one reaches. A draft step that "
        "costs less than the break-even share of a target pass makes serving faster, if a check costs one pass.",
        columns,
        [
            [
                *(each.length, each.tokens, each.low, each.high, each.guaranteed),
                *(each.most, each.share, each.break_even),
            ]
            for each in drafts
        ],
        Chart("length", columns[1:6], "length of the drafts", "tokens a pass"),
    )


def tightest(audit: Audit) -> Table:
    """The positions with the least strict greedy certificate."""
    values = strict_certificates(audit)
    margin = audit.column("top1") - audit.column("top2")
    order = np.argsort(values, kind="stable")[:MOST]
    rows = [[*_place(audit, row), float(values[row]), float(margin[row])] for row in order.tolist()]
    return Table(
        "tightest",
        "Least certificates under strict greedy",
        "The token the target chose stands between [ and ]. A margin near 0 means that rounding, batch size or "
        "hardware can change the greedy text here, with or without speculation.",
        ("prompt", "position", "text", "certificate", "margin"),
        rows,
    )


def strict_certificates(audit: Audit) -> np.ndarray:
    """Certificates under strict greedy with one candidate, whether or not that rule was in the audit's grid."""
    return Judge(audit)(parse_rule(STRICT), 1).certificates


def _place(audit: Audit, row: int) -> list[Any]:
    before, token, after = audit.in_context(row)
    prompt = audit.prompts[int(audit.column("prompt")[row])]
    return [prompt.id, int(audit.column("position")[row]), f"{before}[{token}]{after}"]


def _groups(audit: Audit, labels: Sequence[str], which: np.ndarray) -> list[list[Any]]:
    """One row a group: its share of the positions, misses and KL, and what is left to gain."""
    kl, certificates = audit.column("kl"), strict_certificates(audit)
    missed = audit.column("draft_rank") > 1
    excess = np.maximum(kl - certificates, 0)
    rows = []
    for number, label in enumerate(labels):
        inside = which == number
        if inside.any():
            rows.append(
                [
                    label,
                    int(inside.sum()),
                    float(1 - missed[inside].mean()),
                    float(missed[inside].sum() / max(missed.sum(), 1)),
                    float((kl < certificates)[inside].mean()),
                    float(kl[inside].mean()),
                    float(kl[inside].sum() / kl.sum()) if 0 < kl.sum() < np.inf else None,
                    float(excess[inside].mean()),
                ]
            )
    return rows


_GROUP_COLUMNS = ("positions", "acceptance", "share of misses", "certified", "mean KL", "share of KL", "mean (KL - C)+")


def by_outcome(audit: Audit) -> Table:
    """Certified, lucky and missed positions."""
    certified, missed = audit.column("kl") < strict_certificates(audit), audit.column("draft_rank") > 1
    which = np.where(certified, 0, np.where(missed, 2, 1))
    return Table(
        "by_outcome",
        "Where the KL goes",
        "KL spent on certified positions buys no acceptance: plain KL training still lowers it there. Positions that "
        "hit without a certificate could be lost by another drafter of the same KL.",
        ("outcome", *_GROUP_COLUMNS),
        _groups(audit, ("certified", "hit, not certified", "missed"), which),
    )


def by_confidence(audit: Audit) -> Table:
    """Groups by the target's largest probability."""
    edges = np.array([0, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0])
    which = np.clip(np.searchsorted(edges, audit.column("top1"), side="right") - 1, 0, len(edges) - 2)
    labels = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
    return Table(
        "by_confidence",
        "By the target's confidence",
        "Positions grouped by the target's largest probability: the bars are each group's share of all misses, and of "
        "all KL. Where the first is the greater one, training there gains the most acceptance for its KL.",
        ("p(1)", *_GROUP_COLUMNS),
        _groups(audit, labels, which),
        Chart("p(1)", ("share of misses", "share of KL"), "target's largest probability", "share", kind="bar"),
    )


def by_category(audit: Audit) -> Table:
    """Groups by the prompts' categories."""
    labels, which = np.unique(audit.column("category").astype(str), return_inverse=True)
    return Table(
        "by_category",
        "By category of prompt",
        "Which kinds of text the drafter is worst at: a category with a greater share of misses than of positions "
        "deserves more training text.",
        ("category", *_GROUP_COLUMNS),
        _groups(audit, [label or "none" for label in labels.tolist()], which),
    )


def cheapest_misses(audit: Audit) -> Table:
    """Missed positions with the least KL above their certificate."""
    kl, certificates = audit.column("kl"), strict_certificates(audit)
    missed = np.flatnonzero(audit.column("draft_rank") > 1)
    order = missed[np.argsort((kl - certificates)[missed], kind="stable")][:MOST]
    rows = [
        [*_place(audit, row), float(kl[row]), float(certificates[row]), int(audit.column("draft_rank")[row])]
        for row in order.tolist()
    ]
    return Table(
        "cheapest_misses",
        "Misses nearest to their certificate",
        "Rejected positions ordered by KL - C: the first need the least training to be accepted. The target's token "
        "stands between [ and ]; the rank is its place in the drafter.",
        ("prompt", "position", "text", "KL", "certificate", "rank"),
        rows,
    )
