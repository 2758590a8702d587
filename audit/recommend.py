"""From an audit to settings: what rule, parameters and tree width reach a wanted acceptance at least risk.

Risk is the share of positions where the rule lets more than the target's own greedy token pass: there the output can
depart from the target's. Strict greedy has none. Of equal risk, fewer nodes win. What a rule does to the quality of
the text is not promised by anything here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..theory import DraftcertError, Rule
from ..theory.presets import PRESETS
from .guarantee import Guarantee, Judge
from .records import Audit

MEASURES = ("guaranteed", "certified", "measured")
"""By the mean-KL theorem; by KL < C position by position; as counted."""


@dataclass(frozen=True)
class Wanted:
    """An acceptance to reach, and by which of the `MEASURES`; `mean_kl` in place of the audited drafter's."""

    acceptance: float = 0.8
    by: str = "guaranteed"
    mean_kl: float | None = None

    def __post_init__(self) -> None:
        """Refuse what no setting can mean."""
        if not 0 < self.acceptance <= 1:
            raise DraftcertError(f"acceptance = {self.acceptance}: give a share above 0 and at most 1, such as 0.8")
        if self.by not in MEASURES:
            raise DraftcertError(f"by = '{self.by}': give one of {', '.join(MEASURES)}")
        if self.mean_kl is not None and not self.mean_kl >= 0:
            raise DraftcertError(f"mean_kl = {self.mean_kl}: a KL is a number of nats from 0 up")


@dataclass(frozen=True)
class System:
    """An inference system: its preset, the parameters to try, its tree widths, and how its settings are written."""

    name: str
    preset: str
    parameters: tuple[tuple[str, ...], ...]
    widths: tuple[int, ...]
    settings: Callable[[tuple[str, ...], int], str]


def _strict(command: str) -> Callable[[tuple[str, ...], int], str]:
    return lambda parameters, width: command.format(width=width, tokens=4 * width + 1)


TREE_WIDTHS = (1, 2, 4, 8)
_DELTAS = tuple((str(k), f"0.{d}") for k in (2, 5, 10) for d in range(1, 10))
_SHARES = tuple((f"0.{n:02d}",) for n in range(2, 100, 2))
_TYPICAL = tuple((f"0.{e:02d}", f"0.{a}") for e in (3, 5, 9, 20, 40) for a in range(1, 10, 2))
_EAGLE = (
    "--speculative-algorithm EAGLE --speculative-num-steps 4 --speculative-eagle-topk {width} "
    "--speculative-num-draft-tokens {tokens}"
)

SYSTEMS = (
    System(
        "transformers",
        "hf_greedy",
        ((),),
        (1,),
        _strict("model.generate(**inputs, assistant_model=drafter, do_sample=False)"),
    ),
    System(
        "vLLM",
        "vllm_greedy",
        ((),),
        (1,),
        _strict('--speculative-config \'{{"model": "DRAFTER", "num_speculative_tokens": 4}}\'  # temperature=0'),
    ),
    System("SGLang, temperature 0", "sglang_greedy", ((),), TREE_WIDTHS, _strict(_EAGLE + "  # temperature 0")),
    System(
        "SGLang, temperature 1",
        "sglang_threshold_single",
        _SHARES,
        TREE_WIDTHS,
        lambda p, width: (
            _EAGLE.format(width=width, tokens=4 * width + 1)
            + f" --speculative-accept-threshold-single {p[0]}  # temperature 1"
        ),
    ),
    System(
        "TensorRT-LLM",
        "tensorrt_llm_relaxed",
        _DELTAS,
        (1,),
        lambda p, width: (
            "speculative_config: {decoding_type: MTP, use_relaxed_acceptance_for_thinking: true, "
            f"relaxed_topk: {p[0]}, relaxed_delta: {p[1]}}}"
        ),
    ),
    System(
        "Medusa",
        "medusa_typical",
        _TYPICAL,
        TREE_WIDTHS,
        lambda p, width: (
            f"model.medusa_generate(..., temperature=1.0, posterior_threshold={p[0]}, "
            f"posterior_alpha={p[1]}, medusa_choices=...)  # {width} candidates a node"
        ),
    ),
)


@dataclass(frozen=True)
class Setting:
    """A rule and width with what it reaches on the audit. `certified` and `measured` need a drafter."""

    rule: Rule
    width: int
    risk: float
    guaranteed: float
    needed_kl: float
    certified: float | None
    measured: float | None

    def reached(self, by: str) -> float:
        """The acceptance by one of the `MEASURES`.

        Raises:
            DraftcertError: a measure that needs a drafter in an audit without.
        """
        found = getattr(self, by)
        if found is None:
            raise DraftcertError(f"'{by}' acceptance needs a drafter: audit with --draft, or ask by guaranteed")
        return found


@dataclass(frozen=True)
class Recommendation:
    """The setting of least risk that one system can run, or the best it has where none reaches what is wanted."""

    system: str
    setting: Setting
    reached: bool
    settings: str
    differs: str


def evaluate(audit: Audit, judge: Judge, rule: Rule, width: int, wanted: Wanted) -> Setting:
    """What a rule and width reach on an audit; from lower bounds where the kept tokens do not show everything."""
    judged = judge(rule, width)
    guarantee = Guarantee(judged.certificates)
    kl = audit.column("kl") if audit.has_draft else None
    mean_kl = wanted.mean_kl if wanted.mean_kl is not None else None if kl is None else float(kl.mean())
    return Setting(
        rule,
        width,
        risk=float((judged.accepted > 1).mean()),
        guaranteed=0.0 if mean_kl is None else float(guarantee.acceptance(mean_kl)),
        needed_kl=guarantee.mean_kl(wanted.acceptance),
        certified=None if kl is None else float((kl < judged.certificates).mean()),
        measured=None if judged.hits is None else float(judged.hits.mean()),
    )


def recommend(audit: Audit, wanted: Wanted) -> list[Recommendation]:
    """For each system the setting that reaches what is wanted at least risk.

    Raises:
        DraftcertError: an audit without a drafter and no `mean_kl` to judge by.
    """
    if not audit.has_draft and wanted.mean_kl is None:
        raise DraftcertError("this audit has no drafter: give the mean KL of yours (--mean-kl), or audit with --draft")
    judge = Judge(audit)
    found = []
    for system in SYSTEMS:
        tried = [
            (evaluate(audit, judge, PRESETS[system.preset](*parameters), width, wanted), parameters)
            for parameters in system.parameters
            for width in system.widths
        ]
        enough = [item for item in tried if item[0].reached(wanted.by) >= wanted.acceptance]
        if enough:
            setting, parameters = min(enough, key=lambda item: (item[0].risk, item[0].width, -item[0].guaranteed))
        else:
            setting, parameters = max(tried, key=lambda item: (item[0].reached(wanted.by), -item[0].risk))
        found.append(
            Recommendation(
                system.name,
                setting,
                bool(enough),
                system.settings(parameters, setting.width),
                PRESETS[system.preset].differs,
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
    yield (
        "Not promised: other prompts, text that differs from the target's own (all positions were measured on it), "
        "speed, and the quality of what a relaxed rule lets pass."
    )
