"""A tiny random model of every type of causal language model that transformers has."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import CONFIG_MAPPING, PreTrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from draftcert.runtime.trees.decoder import GreedyTreeDecoder
from draftcert.runtime.trees.drafters import Combined
from draftcert.runtime.trees.tree import Tree
from draftcert.theory import DraftcertError

TABLE = Path(__file__).with_name("every_model.json")
TYPES = tuple(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
VOCABULARY = 61
WINDOW = 7
"""Of attention that sees only so far: shorter than the texts of the tests."""

_SMALL: dict[str, Any] = {
    **dict.fromkeys(("vocab_size", "vocab_size_per_layer_input"), VOCABULARY),
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "word_embed_proj_dim", "embedding_size", "dim_model"), 32),
    **dict.fromkeys(("intermediate_size", "n_inner", "ffn_dim", "d_ff", "dff", "dim_ff", "ffn_hidden_size"), 48),
    **dict.fromkeys(("decoder_ffn_dim", "encoder_ffn_dim", "feed_forward_size", "moe_intermediate_size"), 48),
    **dict.fromkeys(("shared_expert_intermediate_size", "expert_ffn_hidden_size", "intermediate_size_mlp"), 48),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "encoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("encoder_attention_heads",), 4),
    **dict.fromkeys(("num_key_value_heads", "n_kv_heads", "kv_n_heads", "num_kv_heads"), 2),
    **dict.fromkeys(("head_dim", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "rotary_dim", "d_kv"), 8),
    **dict.fromkeys(("kv_lora_rank", "q_lora_rank"), 16),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_target_positions", "n_ctx", "max_seq_len"), 256),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_k", "moe_topk", "num_experts_per_token"), 2),
    **dict.fromkeys(("sliding_window", "attention_chunk_size", "local_attention", "window_size"), WINDOW),
    **dict.fromkeys(("bos_token_id", "decoder_start_token_id"), 1),
    **dict.fromkeys(("eos_token_id", "forced_eos_token_id"), 2),
    "pad_token_id": 0,
    "use_sliding_window": True,
    "max_window_layers": 1,
}
_OF_TYPE: dict[str, dict[str, Any]] = {
    **{kind: {"mamba_n_heads": 4, "mamba_d_head": 16} for kind in ("bamba", "granitemoehybrid")},
    **{kind: {"head_dim": 8} for kind in ("hunyuan_v1_dense", "hunyuan_v1_moe", "ministral")},
    **{kind: {"is_decoder": True} for kind in ("bert", "roberta", "rembert", "electra")},
    "blt": {"encoder_hash_byte_group_vocab": 60},
    "dots1": {"n_shared_experts": 1},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "mamba2": {"num_heads": 8},
    "roc_bert": {"pronunciation_vocab_size": 61, "shape_vocab_size": 61},
    "xmod": {"is_decoder": True, "default_language": "en_XX"},
    "zaya": {"num_experts_per_tok": 1},
}


PROMPTS = [[5, 17, 3, 17, 9, 42, 8, 30, 11], [7, 23], [6, 4, 6, 4, 6, 4, 6, 4, 6, 4, 6, 4]]
NEW = 8


class Branches:
    """Drafts what the plain model says, with wrong tokens beside every node."""

    def __init__(self, answers: dict[tuple[int, ...], list[int]], prompt: tuple[int, ...] = ()):
        self.answers, self.prompt = answers, prompt

    def begin(self, prompt: Sequence[int]) -> Any:
        return Branches(self.answers, tuple(prompt))

    def propose(self, context: Sequence[int], max_nodes: int, max_depth: int) -> Tree:
        tokens, parents, last = [context[-1]], [-1], 0
        for right in self.answers[self.prompt][len(context) - len(self.prompt) :][: min(3, max_depth)]:
            tokens += [(right + 7) % VOCABULARY, right]
            parents += [last, last]
            last = len(tokens) - 1
        return Tree(tuple(tokens), tuple(parents))

    def observe(self, context: Sequence[int], observation: Any) -> None: ...


def plain_greedy(model: Any, prompt: list[int]) -> list[int]:
    """Greedy decoding as its definition says: the whole text anew for every token."""
    text = list(prompt)
    with torch.inference_mode():
        for _ in range(NEW):
            text.append(int(model(input_ids=torch.tensor([text]), use_cache=False).logits[0, -1].argmax()))
    return text[len(prompt) :]


def outcome(kind: str, attention: str) -> str:
    """What becomes of a tiny model of this type: "right", "refused: ..." or "not built: ...".

    Right is what gives the plain model's own greedy output, alone and in a batch of prompts of different lengths.
    """
    try:
        model = tiny_model(kind, attention)
        model(input_ids=torch.tensor(PROMPTS[:1]), use_cache=False)
    except Exception as error:  # transformers has many ways to say that this cannot be
        return f"not built: {_said(error)}"
    try:
        decoder = GreedyTreeDecoder(model, Combined(), latency=None)
        answers = {tuple(prompt): plain_greedy(model, prompt) for prompt in PROMPTS}
        decoder.drafter = Branches(answers)
        alone = decoder.generate(PROMPTS[0], NEW, eos_token_id=())
        together = decoder.generate(PROMPTS, NEW, eos_token_id=())
    except DraftcertError as error:
        return f"refused: {_said(error)}"
    right = [*alone.tokens, *together.tokens] == [answers[tuple(prompt)] for prompt in (PROMPTS[0], *PROMPTS)]
    return "right" if right and alone.stats.accepted else "WRONG"


def _said(error: Exception) -> str:
    """The first line of a message, without the numbers that differ from machine to machine."""
    line = next(filter(None, str(error).splitlines()), type(error).__name__).strip()
    return re.sub(
        r"( a path to| the last token of).*",
        " its logits are not the plain model's",
        re.sub(r" by [-+.e\d]+", "", line),
    )[:200]


def _shrink(config: PreTrainedConfig, settings: dict[str, Any]) -> dict[str, Any]:
    """The small values of what this configuration knows, its parts included."""
    small: dict[str, Any] = {}
    for name, value in vars(config).items():
        if isinstance(value, PreTrainedConfig):
            small[name] = _shrink(value, settings)
        elif name in settings and not (value is None and name in ("head_dim", "q_lora_rank", "n_inner")):
            small[name] = settings[name]
    for alias, name in (getattr(config, "attribute_map", None) or {}).items():
        if alias in settings and hasattr(config, name):
            small.setdefault(name, settings[alias])
    if "kv_lora_rank" in small:  # latent attention has keys for every head
        small["num_key_value_heads"] = settings["num_attention_heads"]
    given = not any(
        isinstance(getattr(type(config), name, 0), property) for name in ("layer_types", "layers_block_type")
    )
    if given and len(kinds := list(dict.fromkeys(getattr(config, "layer_types", None) or ()))) > 1:
        small |= {"layer_types": kinds, "num_hidden_layers": len(kinds)}
    return small


def tiny_config(kind: str) -> PreTrainedConfig:
    """A configuration of this type that is small, with windows shorter than the texts of the tests."""
    usual = CONFIG_MAPPING[kind]()
    return CONFIG_MAPPING[kind](**_shrink(usual, _SMALL) | _OF_TYPE.get(kind, {}))


def tiny_model(kind: str, attention: str = "sdpa") -> Any:
    """A random model whose weights are large enough for a wrong mask to show."""
    torch.manual_seed(0)
    make = transformers.AutoModelForCausalLM.from_config
    model = make(tiny_config(kind), dtype=torch.float32, attn_implementation=attention).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4)
    return model


def table() -> dict[str, dict[str, str]]:
    """The outcome of every type by attention."""
    return {kind: {attention: outcome(kind, attention) for attention in ("sdpa", "eager")} for kind in TYPES}


if __name__ == "__main__":
    found = {"transformers": transformers.__version__, "types": table()}
    TABLE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    counts = [each.split(":")[0] for row in found["types"].values() for each in row.values()]
    print({word: counts.count(word) for word in sorted(set(counts))})
    sys.exit("WRONG" in counts)
