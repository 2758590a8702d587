"""Rules under the names they are deployed by: combinations of the families, each with its source.

A preset is called like a family and gives a `Rule`; the rule prints as the expression it stands for, which `parse_rule`
reads back. Where the deployed code accepts more than the rule, the certificate still guarantees acceptance; `differs`
says so, and says what the certificate assumes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from .errors import DraftcertError
from .exact import rational
from .numbers import shown
from .rule import Rule, bind
from .rules import RULES

absolute, additive, entropy_power, multiplicative, strict_greedy, top_m, typical_floor = (
    RULES[name]
    for name in (
        "absolute",
        "additive",
        "entropy_power",
        "multiplicative",
        "strict_greedy",
        "top_m",
        "typical_floor",
    )
)


@dataclass(frozen=True)
class Preset:
    """A rule as one system deploys it.

    `parameters` are the names the system gives them, `example` values it ships, documents or proposes, `build` makes
    the rule from the values in that order, `differs` tells how the deployed code departs from the rule, `walk` which
    path through a tree it takes where the rule accepts several: the likeliest child at each node, or the longest path.

    >>> str(PRESETS["tensorrt_llm_relaxed"](10, 0.6))
    'top_m(10) & additive(3/5)'
    """

    name: str
    parameters: tuple[str, ...]
    example: tuple[str, ...]
    build: Callable[..., Rule]
    deployed_as: str
    differs: str
    walk: str
    citation: str

    def __call__(self, *values: Any, **named: Any) -> Rule:
        """The rule with these parameter values, kept exact."""
        given = bind(self.name, self.parameters, values, named)
        rule = self.build(*(given[parameter] for parameter in self.parameters))
        return replace(rule, deployed_as=self.deployed_as, citation=f"{self.citation}; {rule.citation}")


VLLM_ASCEND_FLOOR = "1/10000000000"
"""What vllm-ascend adds to every probability inside the logarithm (1e-10)."""
MEDUSA_FLOOR = "1/100000"
"""What Medusa and vLLM add to every probability inside the logarithm (1e-5)."""


def _cactus(delta: Any) -> Rule:
    """Tokens whose probability Cactus raises to one: `p + sqrt(2 delta p (1 - p)) >= 1`."""
    budget = rational(delta, "cactus: delta")
    if budget < 0:
        raise DraftcertError(f"cactus: delta = {shown(delta)} is negative, and no budget of divergence")
    return absolute(1 / (1 + 2 * budget))


PRESETS = MappingProxyType(
    {
        preset.name: preset
        for preset in (
            Preset(
                "hf_greedy",
                (),
                (),
                strict_greedy,
                "transformers assisted generation with do_sample=False",
                "With assistant_ensemble_weight the draft is compared with the argmax of a target-draft mixture: "
                "no function of the target alone and not this rule.",
                "Either: drafts are chains.",
                "huggingface/transformers, generation/utils.py, _assisted_decoding",
            ),
            Preset(
                "vllm_greedy",
                (),
                (),
                strict_greedy,
                "vLLM at temperature 0",
                "None: a draft token is kept iff it equals the target's argmax.",
                "Either: drafts are chains.",
                "vllm-project/vllm, v1/sample/rejection_sampler.py",
            ),
            Preset(
                "sglang_greedy",
                (),
                (),
                strict_greedy,
                "SGLang at temperature 0 (verify_tree_greedy), EAGLE trees",
                "None: a tree node is kept iff it equals the target's argmax at its parent.",
                "Either: of siblings strict greedy accepts one.",
                "sgl-project/sglang, sgl-kernel, verify_tree_greedy",
            ),
            Preset(
                "sglang_threshold_single",
                ("speculative_accept_threshold_single",),
                ("9/10",),
                absolute,
                "SGLang at temperature > 0, --speculative-accept-threshold-single",
                "The code accepts iff p(x) >= threshold_single (its help text says 'greater') OR a uniform coin is at "
                "most the target probability of the siblings tried so far, x included, divided by threshold_acc. The "
                "certificate covers the first part: what it certifies is accepted whatever the coin. The default 1.0 "
                "leaves the decision to the coin. The target is the one after temperature, top-k and top-p.",
                "Neither: the first accepted child in the drafter's order, the likeliest where that order is right.",
                "sgl-project/sglang, sgl-kernel/csrc/speculative/speculative_sampling.cuh",
            ),
            Preset(
                "tensorrt_llm_relaxed",
                ("relaxed_topk", "relaxed_delta"),
                ("10", "3/5"),
                lambda relaxed_topk, relaxed_delta: top_m(relaxed_topk) & additive(relaxed_delta),
                "TensorRT-LLM relaxed acceptance for thinking (MTP)",
                "Used between the tokens that open and close thinking only; outside, the kernel runs with delta 0, "
                "which accepts every tied maximum among the top k. It changes delta after a whole draft, not inside "
                "one. Probabilities of the raw logits, >=; ties at rank k are resolved by torch.topk, here by lowest "
                "id. The threshold is computed in float32.",
                "Either: drafts are chains.",
                "NVIDIA/TensorRT-LLM, kernels/speculativeDecoding/mtpKernels.cu, mtpRelaxedAcceptanceKernel",
            ),
            Preset(
                "medusa_typical",
                ("posterior_threshold", "posterior_alpha"),
                ("9/100", "3/10"),
                lambda threshold, alpha: typical_floor(threshold, alpha, MEDUSA_FLOOR),
                "Medusa typical acceptance at temperature > 0",
                "The first candidate's root comes from the target itself and is always kept; at temperature 0 the code "
                "compares argmaxes (strict_greedy). The target is the one after temperature.",
                "Longest; of equally long paths the one the target finds most likely as a whole.",
                "FasterDecoding/Medusa, medusa/model/utils.py, evaluate_posterior",
            ),
            Preset(
                "vllm_typical",
                ("posterior_threshold", "posterior_alpha"),
                ("9/100", "3/10"),
                lambda threshold, alpha: typical_floor(threshold, alpha, MEDUSA_FLOOR),
                "vLLM 0.5 to 0.9, --spec-decoding-acceptance-method typical_acceptance_sampler",
                "None for acceptance; the engine that had this sampler (V0) has been removed since.",
                "Either: drafts are chains.",
                "vllm-project/vllm, model_executor/layers/typical_acceptance_sampler.py; issue 5015",
            ),
            Preset(
                "vllm_fly",
                (),
                (),
                strict_greedy,
                'proposed for vLLM, rejection_sample_method "fly" at temperature 0',
                "The certificate covers what FLy accepts at once. It also overrides a rejection where the entropy of "
                "the three likeliest tokens is at least fly_entropy_threshold and the drafts of the next "
                "fly_window_size positions are accepted: that depends on later drafts, so no certificate of one "
                "position covers it.",
                "Either: drafts are chains.",
                "vllm-project/vllm, pull requests 50808 and 53987; arXiv 2511.22972",
            ),
            Preset(
                "vllm_ascend_entropy",
                ("posterior_threshold", "posterior_alpha"),
                ("19/20", "2/5"),
                lambda threshold, alpha: entropy_power(threshold, alpha, VLLM_ASCEND_FLOOR),
                "vllm-ascend at temperature > 0, rejection_sampler_config enable_entropy_verify",
                "The code accepts iff p(x)/q(x) is at least a uniform coin times l = min(exp(-posterior_alpha H), "
                "posterior_threshold). What the target alone decides is p(x) >= l, since q(x) <= 1: accepted whatever "
                "the coin and the drafter. The certificate covers just that. Below l the drafter and the coin decide. "
                "The code takes the entropy before top-k and top-p and p(x) after them: the certificate is for a "
                "target that these leave as it is. With enable_reduce_sample the kernel leaves the entropy out and "
                "only p(x) = 1 is certain; with enable_block_verify the certificate holds for the first draft token "
                "only: later ones share a product of ratios with it.",
                "Either: drafts are chains.",
                "vllm-project/vllm-ascend, pull request 9772; vllm_ascend/ops/triton/reject_sample.py, "
                "rejection_random_sample_kernel, commit 182b75ea",
            ),
            Preset(
                "cactus",
                ("delta",),
                ("1",),
                _cactus,
                "Cactus, a sampler for vLLM, --delta",
                "The code accepts with probability min(1, h/q(x)), h = min(1, p(x) + sqrt(2 delta p(x) (1 - p(x)))). "
                "What the target alone decides is h = 1, that is p(x) >= 1/(1 + 2 delta): accepted whatever the coin "
                "and the drafter. The certificate covers just that. Below it the drafter and the coin decide. The "
                "target is the one after temperature, top-k and top-p.",
                "Either: drafts are chains.",
                "MANGA-UOFA/Cactus, cactus/cactus.py, solve_constraint, commit 3b01b816; arXiv 2604.04987",
            ),
            Preset(
                "tensorrt_llm_strict",
                (),
                (),
                strict_greedy,
                "TensorRT-LLM by default at temperature 0, and outside of thinking",
                "None: a draft token is kept iff it equals the target's token.",
                "Either: drafts are chains.",
                "NVIDIA/TensorRT-LLM, _torch/speculative/mtp.py, sample_and_accept_draft_tokens",
            ),
            Preset(
                "llama_cpp_greedy",
                (),
                (),
                strict_greedy,
                "llama.cpp at temperature 0",
                "None: a draft token is kept iff it equals the token sampled from the target, which at temperature 0 "
                "is the most likely one that the other samplers leave.",
                "Either: drafts are chains.",
                "ggml-org/llama.cpp, common/sampling.cpp, common_sampler_sample_and_accept_n",
            ),
            Preset(
                "vllm_relaxed_thinking",
                ("relax_top_k", "relax_ratio"),
                ("3", "1/2"),
                lambda relax_top_k, relax_ratio: top_m(relax_top_k) & multiplicative(relax_ratio),
                "proposed for vLLM, not merged",
                "Proposed for tokens inside thinking only, and for greedy requests; strict greedy elsewhere.",
                "Either: drafts are chains.",
                "vllm-project/vllm, pull requests 21506, 22238 and 43184",
            ),
        )
    }
)
"""All presets by name."""


def example_rules() -> tuple[Rule, ...]:
    """Rules worth testing: every family and every preset at its examples, and a union, which nothing deployed is.

    >>> [str(rule) for rule in example_rules()][:3]
    ['absolute(1/10)', 'absolute(1/2)', 'additive(3/10)']
    """
    families = [family(*values) for family in RULES.values() for values in family.examples]
    presets = [preset(*preset.example) for preset in PRESETS.values()]
    return tuple(dict.fromkeys([*families, *presets, top_m(2) | multiplicative("2/5")]))
