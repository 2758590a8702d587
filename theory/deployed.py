"""Every way of accepting drafts that a system ships, or that is proposed for one, and what is certified of it.

A method that the target alone decides has a preset, and its certificate is exact. One that looks at the drafter, flips
a coin or remembers earlier positions has none as a whole: the table says which part has, or which guarantee there is.
"""

from dataclasses import dataclass

SAMPLING = "sampling_acceptance(kl): sharp for a pair, a mean KL or a row"
TARGET_COIN = "threshold_acceptance(row, kl): a deterministic draft is accepted with its target probability"
STRICT = "certificate"


@dataclass(frozen=True)
class Deployment:
    """A system's way of accepting drafts."""

    system: str
    option: str
    """How it is switched on; what it does by default."""
    accepts: str
    """A draft token is accepted iff, or with which probability. `p` is the target, `q` the drafter."""
    preset: str | None
    """The rule that the target alone decides, by name: the whole of it, or the part that is certified."""
    certified: str
    """What is certified or guaranteed, and by which function."""
    not_certified: str
    """What is not, and why; where the code differs from the rule."""
    source: str


DEPLOYED = (
    Deployment(
        "vLLM",
        "temperature 0 (every method but synthetic)",
        "x = argmax p",
        "vllm_greedy",
        STRICT,
        "Nothing.",
        "vllm-project/vllm, vllm/v1/sample/rejection_sampler.py, rejection_greedy_sample_kernel",
    ),
    Deployment(
        "vLLM",
        'rejection_sample_method "standard" (the default) with draft_sample_method "probabilistic"',
        "probability min(1, p/q)",
        None,
        SAMPLING,
        "p is the target after temperature, top-k and top-p: so must be the one whose KL is known.",
        "vllm-project/vllm, vllm/v1/sample/rejection_sampler.py, rejection_random_sample_kernel",
    ),
    Deployment(
        "vLLM",
        '"standard" without draft probabilities (greedy drafts, n-gram, suffix)',
        "probability p(x): q counts as 1",
        None,
        TARGET_COIN,
        "For look-up drafters there is no q, so no KL: only the ceiling S7.",
        "vllm-project/vllm, vllm/v1/sample/rejection_sampler.py, NO_DRAFT_PROBS (IS_NGRAM)",
    ),
    Deployment(
        "vLLM",
        'rejection_sample_method "block"',
        "the longest prefix that passes block verification",
        None,
        f"{SAMPLING}, as a lower bound (S5): token by token accepts no more",
        "How much more it accepts.",
        "vllm-project/vllm, pull request 46781; Sun et al., arXiv 2403.10444",
    ),
    Deployment(
        "vLLM",
        'rejection_sample_method "synthetic"',
        "a coin of the configured rate",
        None,
        "none is needed: the rate is set, for benchmarks",
        "The output is not the target's: a draft is accepted whatever the target says.",
        "vllm-project/vllm, vllm/config/speculative.py, synthetic_acceptance_rates; pull request 41035",
    ),
    Deployment(
        "vLLM",
        'rejection_sample_method "fly" (proposed)',
        "as standard; a rejection is overridden if the entropy of the top 3 is at least a threshold, p(x) > 0 and the "
        "next positions of a window are accepted",
        "vllm_fly",
        f"{STRICT} at temperature 0, {SAMPLING} else: what standard accepts, FLy does too",
        "What is overridden: that depends on later drafts, so on the drafter, and on how much of the draft is left.",
        "vllm-project/vllm, pull requests 50808 (closed) and 53987 (open); arXiv 2511.22972",
    ),
    Deployment(
        "vLLM",
        "relaxed acceptance in thinking (proposed)",
        "x among the k likeliest and p(x) >= ratio p_(1)",
        "vllm_relaxed_thinking",
        STRICT,
        "Outside of thinking strict greedy holds; which positions are inside is a matter of the text.",
        "vllm-project/vllm, pull requests 21506, 22238 and 43184",
    ),
    Deployment(
        "SGLang",
        "temperature 0",
        "x = argmax p at its parent",
        "sglang_greedy",
        STRICT,
        "Nothing.",
        "sgl-project/sglang, sgl-kernel, verify_tree_greedy",
    ),
    Deployment(
        "SGLang",
        "temperature > 0; threshold_single and threshold_acc are 1 by default",
        "p(x) >= threshold_single, or a coin is at most the target mass of the siblings so far over threshold_acc",
        "sglang_threshold_single",
        f"{STRICT} for what is accepted whatever the coin; threshold_acceptance(row, kl, ...) for the coin as a whole",
        "For several candidates the coin's bound counts the likeliest only. threshold_acc is at least 1e-9.",
        "sgl-project/sglang, sgl-kernel/csrc/speculative/speculative_sampling.cuh, commit 120affb9",
    ),
    Deployment(
        "SGLang",
        "speculative-use-rejection-sampling (EAGLE, chains; off by default on CUDA)",
        "probability min(1, p/q)",
        None,
        SAMPLING,
        "p is the target after temperature, top-k and top-p: so must be the one whose KL is known.",
        "sgl-project/sglang, pull request 26312; speculative/reject_sampling.py, commit 0c23aa80",
    ),
    Deployment(
        "TensorRT-LLM",
        "by default, one-model drafters",
        "x is the token that was sampled from the target; the draft is the drafter's argmax",
        "tensorrt_llm_strict",
        f"{STRICT} at temperature 0; else {TARGET_COIN}",
        "Nothing.",
        "NVIDIA/TensorRT-LLM, tensorrt_llm/_torch/speculative/mtp.py, commit 23ee85ee; pull request 15775",
    ),
    Deployment(
        "TensorRT-LLM",
        "use_rejection_sampling (off by default)",
        "probability min(1, p/q)",
        None,
        SAMPLING,
        "Batches with context requests fall back to the exact match.",
        "NVIDIA/TensorRT-LLM, pull requests 12588 and 15775",
    ),
    Deployment(
        "TensorRT-LLM",
        "use_relaxed_acceptance_for_thinking (off by default)",
        "x among the k likeliest and p(x) >= p_(1) - delta, between the tokens that open and close thinking",
        "tensorrt_llm_relaxed",
        f"{STRICT} inside thinking; strict greedy outside",
        "The kernel changes delta only after a whole draft: behind a closing token in it positions are still judged by "
        "the relaxed rule, behind an opening one still strictly. So the relaxed certificate holds from the pass after "
        "the opening token on; strict greedy's holds everywhere.",
        "NVIDIA/TensorRT-LLM, mtp.py, commit 23ee85ee, and mtpKernels.cu, mtpRelaxedAcceptanceKernel",
    ),
    Deployment(
        "TensorRT-LLM",
        "EAGLE in a TensorRT engine, greedy_sampling=False (not among the options of 1.4)",
        "x is the token that was sampled from the target without tokens of p < min(posterior_threshold, "
        "posterior_alpha exp(-H))",
        None,
        f"{TARGET_COIN}, of the target that is left",
        "That target is not the model's, so its KL is another one. Unlike Medusa's rule it does not accept every token "
        "above the threshold.",
        "NVIDIA/TensorRT-LLM, eagleSampleAndAcceptDraftTokensPlugin.cpp and kernels/speculativeDecoding/common.cu, "
        "maskLogitsBasedOnEntropyKernel and acceptDraftTokensByIdsWithPaths",
    ),
    Deployment(
        "llama.cpp",
        "always",
        "x is the token that was sampled from the target",
        "llama_cpp_greedy",
        f"{STRICT} at temperature 0; else {TARGET_COIN}",
        "p is what the whole chain of samplers leaves. Drafts below --draft-p-min are not made at all.",
        "ggml-org/llama.cpp, common/sampling.cpp, common_sampler_sample_and_accept_n, commit 00efb3e1",
    ),
    Deployment(
        "transformers",
        "assisted generation, do_sample=False",
        "x = argmax p",
        "hf_greedy",
        STRICT,
        "With assistant_ensemble_weight a mixture with the drafter decides.",
        "huggingface/transformers, generation/utils.py, _assisted_decoding",
    ),
    Deployment(
        "transformers",
        "assisted generation, do_sample=True, an assistant model",
        "probability min(1, p/q)",
        None,
        SAMPLING,
        "Prompt look-up gives no q: drafts are matched with sampled tokens.",
        "huggingface/transformers, generation/utils.py, _speculative_sampling",
    ),
    Deployment(
        "vllm-ascend",
        "by default",
        "as vLLM",
        "vllm_greedy",
        f"{STRICT} at temperature 0; else {SAMPLING}",
        "Nothing.",
        "vllm-project/vllm-ascend, vllm_ascend/ops/triton/reject_sample.py, commit 182b75ea",
    ),
    Deployment(
        "vllm-ascend",
        "enable_entropy_verify (off by default)",
        "probability min(1, p/(l q)) with l = min(exp(-posterior_alpha H(p)), posterior_threshold), .4 and .95",
        "vllm_ascend_entropy",
        f"{STRICT} of what is accepted whatever the coin, p(x) >= l; sampling_acceptance(kl, l, "
        "probabilities=row) at a row; sampling_acceptance(kl, posterior_threshold) for any target, since a smaller "
        "lenience accepts more",
        "A target that top-k or top-p cuts: the entropy is taken before them. With enable_reduce_sample the kernel "
        "leaves it out.",
        "vllm-project/vllm-ascend, pull request 9772; reject_sample.py, rejection_random_sample_kernel, commit "
        "182b75ea",
    ),
    Deployment(
        "vllm-ascend",
        "enable_block_verify (off by default)",
        "up to the last position where the running product of p/q, cut at 1, reaches the product of the coins",
        None,
        f"{SAMPLING}, as a lower bound (S5): coins that pass token by token pass here",
        "How much more it accepts.",
        "vllm-project/vllm-ascend, reject_sample.py, rejection_random_sample_block_verify_kernel, commit 182b75ea",
    ),
    Deployment(
        "vllm-ascend",
        "FLY_VERIFY of the greedy kernel (in a later commit than the others here, which have no such option)",
        "x = argmax p; else if an entropy reaches a threshold, x is allowed and the next positions of a window match",
        "vllm_fly",
        f"{STRICT} at temperature 0: what strict greedy accepts, it does too",
        "What is overridden: that depends on later drafts, so on the drafter, and on how much of the draft is left.",
        "vllm-project/vllm-ascend, reject_sample.py, rejection_greedy_sample_triton, commit 05226dfc",
    ),
    Deployment(
        "vllm-ascend",
        'rejection_sample_method "synthetic"',
        "a coin of the configured rate",
        None,
        "none is needed: the rate is set, for benchmarks",
        "The output is not the target's: a draft is accepted whatever the target says.",
        "vllm-project/vllm-ascend, reject_sample.py, SYNTHETIC_MODE, commit 182b75ea",
    ),
    Deployment(
        "Medusa",
        "temperature > 0",
        "p(x) > min(posterior_threshold, posterior_alpha exp(-H)), H with a floor",
        "medusa_typical",
        STRICT,
        "The root comes from the target and is always kept.",
        "FasterDecoding/Medusa, medusa/model/utils.py, evaluate_posterior",
    ),
    Deployment(
        "Cactus",
        "--delta, a budget of divergence",
        "probability min(1, h/q) with h = min(1, p + sqrt(2 delta p (1 - p)))",
        "cactus",
        f"{STRICT} of what is accepted whatever the coin, p(x) >= 1/(1 + 2 delta); else {SAMPLING}, as a lower bound: "
        "h is at least p",
        "How much more it accepts where h < 1; what it recovers after a rejection.",
        "MANGA-UOFA/Cactus, cactus/cactus.py, commit 3b01b816; Hao and Mou, arXiv 2604.04987",
    ),
    Deployment(
        "Fuzzy speculative decoding",
        "a divergence and a threshold T (published)",
        "a divergence of p and q is at most T, whatever x is",
        None,
        "kl_for_divergence(divergence, T), sharp; nothing where the divergence is the reverse KL",
        "Above T it falls back to min(1, p/q).",
        "Holsman, Huang and Dhingra, arXiv 2502.20704",
    ),
)
"""The table, by system."""
