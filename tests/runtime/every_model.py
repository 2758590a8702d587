"""A tiny random model of every type of causal language model that transformers has."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from transformers import CONFIG_MAPPING, PreTrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

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
    **dict.fromkeys(("bamba", "granitemoehybrid"), {"mamba_n_heads": 4, "mamba_d_head": 16}),
    **dict.fromkeys(("hunyuan_v1_dense", "hunyuan_v1_moe", "ministral"), {"head_dim": 8}),
    **dict.fromkeys(("bert", "roberta", "rembert", "electra", "xmod", "reformer"), {"is_decoder": True}),
    "dots1": {"n_shared_experts": 1},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "mamba2": {"num_heads": 8},
    "roc_bert": {"pronunciation_vocab_size": 61, "shape_vocab_size": 61},
    "xmod": {"is_decoder": True, "default_language": "en_XX"},
    "zaya": {"num_experts_per_tok": 1},
}


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
    if len(kinds := list(dict.fromkeys(getattr(config, "layer_types", None) or ()))) > 1:
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
