"""From an audit to settings: what rule, parameters and number of candidates reach a wanted acceptance at least risk.

Risk is the share of positions where the rule lets more than the target's own greedy token pass: there the output can
depart from the target's. Strict greedy has none. Of equal risk, fewer nodes win. How far a token that passes can lie
below the target's likeliest is the log-loss that the rule allows, in nats a token; a budget of it can be set. What a
rule does to the quality of the text is not promised by anything here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import mpmath

from ..numerics import MeanKLGuarantee, sampling_acceptance
from ..numerics.enclosure import Enclosure
from ..theory import DraftcertError, Rule, parse_rule
from ..theory.errors import Argument
from ..theory.names import unknown_name
from ..theory.numbers import real_number
from ..theory.presets import PRESETS
from .judge import Judge
from .records import Audit
from .serving import MOST_NODES

MEASURES = ("guaranteed", "certified", "measured")
"""By the mean-KL theorem; by KL < C position by position; as counted."""


@dataclass(frozen=True)
class Wanted:
    """An acceptance to reach, and by which of the `MEASURES`; `mean_kl` in place of the audited drafter's.

    `log_loss` is a budget: how many nats a token a rule may allow on average (S6 of `draftcert.theory`).
    """

    acceptance: float = 0.8
    by: str = "guaranteed"
    mean_kl: float | None = None
    log_loss: float | None = None

    def __post_init__(self) -> None:
        """Refuse what no setting can mean."""
        for name in ("acceptance", "mean_kl", "log_loss"):
            if (value := getattr(self, name)) is not None or name == "acceptance":
                object.__setattr__(self, name, real_number(value, name))
        if not 0 < self.acceptance <= 1:
            raise DraftcertError(
                Argument("acceptance", self.acceptance), ": give a share above 0 and at most 1, such as 0.8"
            )
        if self.by not in MEASURES:
            raise unknown_name("measure", self.by, MEASURES)
        if self.mean_kl is not None and not self.mean_kl >= 0:
            raise DraftcertError(Argument("mean_kl", self.mean_kl), ": a KL is a number of nats from 0 up")
        if self.log_loss is not None and not self.log_loss >= 0:
            raise DraftcertError(
                Argument("log_loss", self.log_loss), ": a budget is a number of nats a token from 0 up"
            )


@dataclass(frozen=True)
class System:
    """An inference system: its preset, the parameters and numbers of candidates to try, how its settings are written.

    `note` says what of the settings the certificates rest on, and what stands for what.
    """

    name: str
    preset: str
    parameters: tuple[tuple[str, ...], ...]
    candidates: tuple[int, ...]
    settings: Callable[[tuple[str, ...], int], str]
    note: str = ""


TREE_WIDTHS = (1, 2, 4, 8)
DEPTH = 4
"""Levels of a tree, fewer where its nodes would be more than `MOST_NODES`."""


def _sglang(candidates: int) -> str:
    """Flags of a tree in which every node that is expanded keeps all its `candidates`.

    SGLang expands so many of the likeliest nodes of each level but the first, which has one, and drops all but the
    `num_draft_tokens - 1` likeliest: the number here drops none.
    """
    sizes = [1 + candidates + (steps - 1) * candidates**2 for steps in range(1, DEPTH + 1)]
    tokens = max(size for size in sizes if size <= MOST_NODES)
    return (
        f"--speculative-algorithm STANDALONE --speculative-draft-model-path DRAFTER --speculative-num-steps "
        f"{1 + sizes.index(tokens)} --speculative-eagle-topk {candidates} --speculative-num-draft-tokens {tokens}"
    )


def _medusa(parameters: tuple[str, ...], candidates: int) -> str:
    threshold, alpha = parameters
    return (
        f"model.medusa_generate(input_ids, temperature=1.0, posterior_threshold={threshold}, posterior_alpha={alpha}, "
        f"medusa_choices=[[0] * depth + [i] for depth in range({DEPTH}) for i in range({candidates})])"
    )


_TREE = (
    "STANDALONE is a draft model of its own; a trained head is EAGLE or EAGLE3. The number of draft tokens keeps all "
    "candidates of every expanded node: with fewer, SGLang drops the drafter's least likely ones, and the guarantee is "
    "that of fewer candidates."
)

SYSTEMS = (
    System(
        "transformers",
        "hf_greedy",
        ((),),
        (1,),
        lambda _, candidates: "model.generate(**inputs, assistant_model=drafter, do_sample=False)",
    ),
    System(
        "vLLM",
        "vllm_greedy",
        ((),),
        (1,),
        lambda _, candidates: (
            """--speculative-config '{"method": "draft_model", "model": "DRAFTER", "num_speculative_tokens": 4}'"""
            "  # requests with temperature 0"
        ),
        "A trained head has a method of its own (eagle, eagle3, mtp, medusa).",
    ),
    System(
        "SGLang, temperature 0",
        "sglang_greedy",
        ((),),
        TREE_WIDTHS,
        lambda _, candidates: _sglang(candidates) + "  # requests with temperature 0",
        _TREE,
    ),
    System(
        "SGLang, temperature 1",
        "sglang_threshold_single",
        tuple((f"0.{n:02d}",) for n in range(2, 100, 2)),
        TREE_WIDTHS,
        lambda parameters, candidates: (
            f"{_sglang(candidates)} --speculative-accept-threshold-single {parameters[0]}  # requests at temperature 1"
        ),
        _TREE,
    ),
    System(
        "TensorRT-LLM",
        "tensorrt_llm_relaxed",
        tuple((str(k), f"0.{d}") for k in (2, 5, 10) for d in range(1, 10)),
        (1,),
        lambda parameters, candidates: (
            "speculative_config: {decoding_type: MTP, use_relaxed_acceptance_for_thinking: true, "
            f"relaxed_topk: {parameters[0]}, relaxed_delta: {parameters[1]}}}"
        ),
        "The drafter is the model's own MTP head: audit that one.",
    ),
    System(
        "Medusa",
        "medusa_typical",
        tuple((f"0.{e:02d}", f"0.{a}") for e in (3, 5, 9, 20, 40) for a in range(1, 10, 2)),
        TREE_WIDTHS,
        _medusa,
        f"{DEPTH} heads; each node on the path of first choices has all the candidates, others have none.",
    ),
)


@dataclass(frozen=True)
class Setting:
    """A rule and number of candidates with what it reaches on the audit. `certified` and `measured` need a drafter.

    `log_loss` is what the rule allows on average, in nats a token.
    """

    rule: Rule
    candidates: int
    risk: float
    log_loss: float
    guaranteed: float
    needed_kl: float
    certified: float | None
    measured: float | None

    @property
    def nodes(self) -> float | None:
        """Tree nodes that the target checks per accepted token at one level; `None` without a drafter."""
        return None if self.measured is None else nodes_per_accepted(self.candidates, self.measured)

    def reached(self, by: str) -> float:
        """The acceptance by one of the `MEASURES`.

        Raises:
            DraftcertError: a measure that needs a drafter in an audit without.
        """
        found = getattr(self, by)
        if found is None:
            raise DraftcertError(f"'{by}' acceptance needs a drafter: audit with --drafter, or ask by guaranteed")
        return found


@dataclass(frozen=True)
class Recommendation:
    """The setting of least risk that one system can run, or the best it has where none reaches what is wanted."""

    system: str
    setting: Setting
    reached: bool
    settings: str
    differs: str


def nodes_per_accepted(candidates: int, measured: float) -> float:
    """What the target must evaluate at each level of a tree for a token accepted there; infinite if none is."""
    return candidates / measured if measured else math.inf


def evaluate(audit: Audit, judge: Judge, rule: Rule, candidates: int, wanted: Wanted) -> Setting:
    """What a rule with so many candidates reaches on an audit; a lower bound where the kept tokens do not show all."""
    judged = judge(rule, candidates)
    guarantee = MeanKLGuarantee(judged.certificates)
    mean_kl = audit.mean_kl if wanted.mean_kl is None and audit.has_draft else wanted.mean_kl
    return Setting(
        rule,
        candidates,
        risk=float((judged.accepted > 1).mean()),
        log_loss=float(judged.log_loss.mean()),
        guaranteed=0.0 if mean_kl is None else float(guarantee.acceptance(mean_kl)),
        needed_kl=guarantee.mean_kl(str(wanted.acceptance)),
        certified=None if judged.certified is None else float(judged.certified.mean()),
        measured=None if judged.hits is None else float(judged.hits.mean()),
    )


def recommend(audit: Audit, wanted: Wanted) -> list[Recommendation]:
    """For each system the setting that reaches what is wanted at least risk, within the budget of log-loss if there is.

    Where none does it is the best within the budget, or without one there the setting of least log-loss.

    Raises:
        DraftcertError: an audit without a drafter and no `mean_kl` to judge by.
    """
    if not audit.has_draft and wanted.mean_kl is None:
        raise DraftcertError(
            "this audit has no drafter: give the mean KL of yours (--mean-kl), or audit with --drafter"
        )
    judge = Judge(audit)
    found = []
    for system in SYSTEMS:
        tried = [
            (evaluate(audit, judge, PRESETS[system.preset](*parameters), candidates, wanted), parameters)
            for parameters in system.parameters
            for candidates in system.candidates
        ]
        within = [item for item in tried if wanted.log_loss is None or item[0].log_loss <= wanted.log_loss]
        enough = [item for item in within if item[0].reached(wanted.by) >= wanted.acceptance]
        if enough:
            setting, parameters = min(enough, key=lambda item: (item[0].risk, item[0].candidates, -item[0].guaranteed))
        elif within:
            setting, parameters = max(within, key=lambda item: (item[0].reached(wanted.by), -item[0].risk))
        else:
            setting, parameters = min(tried, key=lambda item: (item[0].log_loss, -item[0].reached(wanted.by)))
        found.append(
            Recommendation(
                system.name,
                setting,
                bool(enough),
                system.settings(parameters, setting.candidates),
                " ".join(filter(None, (PRESETS[system.preset].differs, system.note))),
            )
        )
    return found


def promise(wanted: Wanted) -> Iterable[str]:
    """What a recommendation guarantees, and what it does not."""
    yield {
        "guaranteed": "Guaranteed: any drafter with this mean KL on these positions has at least this acceptance.",
        "certified": "Certified: on this share of the audited positions the drafter's KL is below the certificate.",
        "measured": "Measured: so often was an accepted token among the drafter's candidates on these positions.",
    }[wanted.by]
    if wanted.mean_kl is not None:
        yield "What is certified and measured is the audited drafter's, not that of one with this mean KL."
    yield (
        "Log-loss allowed: by how many nats a token that passes can lie below the target's likeliest token there, on "
        "average; it is about each next token given the text so far, not about the likelihood of another text."
    )
    yield (
        "Not promised: other prompts, text that differs from the target's own (all positions were measured on it), "
        "speed, and the quality of what a relaxed rule lets pass."
    )


SWEPT = {
    "multiplicative": ("0.9", "0.7", "0.5", "0.3", "0.2", "0.1", "0.05", "0.02"),
    "additive": ("0.02", "0.05", "0.1", "0.2", "0.3", "0.4", "0.5"),
    "absolute": ("0.9", "0.7", "0.5", "0.3", "0.2", "0.1", "0.05", "0.02"),
    "top_m": ("1", "2", "3", "4", "6", "8"),
}
"""Parameters of the rules that are compared by what they cost."""
TYPICAL_KL = 0.1
"""The mean KL to compare at where no drafter was audited."""


@dataclass(frozen=True)
class Traded:
    """A rule with one candidate: the acceptance that a mean KL guarantees, for the log-loss it allows a token."""

    rule: str
    family: str
    log_loss: float
    guaranteed: float


def trade_off(audit: Audit, mean_kl: float) -> list[Traded]:
    """The rules of `SWEPT`, without those that allow any loss at some position."""
    judge, found = Judge(audit), []
    for family, values in SWEPT.items():
        for rule in (parse_rule(f"{family}({value})") for value in values):
            judged = judge(rule, 1)
            if math.isfinite(log_loss := float(judged.log_loss.mean())):
                guaranteed = float(MeanKLGuarantee(judged.certificates).acceptance(mean_kl))
                found.append(Traded(str(rule), family, log_loss, guaranteed))
    return found


def best_trades(traded: Iterable[Traded]) -> list[Traded]:
    """Those than which none has more acceptance for as little log-loss, by log-loss."""
    best: list[Traded] = []
    for each in sorted(traded, key=lambda each: (each.log_loss, -each.guaranteed)):
        if not best or each.guaranteed > best[-1].guaranteed:
            best.append(each)
    return best


@dataclass(frozen=True)
class Sampling:
    """Speculative sampling with a lenience: the mean acceptance that a mean KL guarantees, and the measured one."""

    lenience: str
    guaranteed: float
    measured: float | None


LENIENCES = ("1", "0.8", "0.5")


def sampling(audit: Audit, mean_kl: float | None = None) -> list[Sampling]:
    """What speculative sampling at temperature 1 accepts on an audit, by S2 and S3 of `draftcert.theory`.

    It is measured without lenience only, from the total variation at each position. Guarantees are rounded down.

    Args:
        audit: an audit with a drafter, unless `mean_kl` is given.
        mean_kl: the mean KL of another drafter, in nats.
    """
    mean_kl = audit.mean_kl if mean_kl is None else mean_kl
    measured = 1 - float(audit.column("total_variation").mean()) if audit.has_draft else None
    return [
        Sampling(
            lenience, _below(sampling_acceptance(mean_kl, lenience, digits=17)), measured if lenience == "1" else None
        )
        for lenience in LENIENCES
    ]


def _below(number: Enclosure) -> float:
    """A float not above the number."""
    lower = number.lower
    return float(lower) if mpmath.mpf(float(lower)) <= lower else math.nextafter(float(lower), -math.inf)
