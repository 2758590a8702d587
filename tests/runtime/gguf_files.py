"""Small GGUF files with random weights of any format that the kernels read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from benchmarks.same_bits import random_rows


def write(path: Path, format: gguf.GGMLQuantizationType, architecture: str = "llama", tied: bool = False) -> None:
    """A model of two layers whose matrices are of that format, with a tokenizer of 64 words."""
    hidden, between, heads, key_heads, words = 256, 512, 4, 2, 64
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(2)
    writer.add_context_length(512)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(between)
    writer.add_head_count(heads)
    writer.add_head_count_kv(key_heads)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(words)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(["a", "b", "ab", *(f"w{i}" for i in range(3, words))])
    writer.add_token_types([1] * words)
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    shapes: dict[str, tuple[int, int]] = {"token_embd": (words, hidden)}
    shapes |= {} if tied else {"output": (words, hidden)}
    for layer in range(2):
        block = {
            "attn_q": (hidden, hidden),
            "attn_k": (hidden // heads * key_heads, hidden),
            "attn_v": (hidden // heads * key_heads, hidden),
            "attn_output": (hidden, hidden),
            "ffn_gate": (between, hidden),
            "ffn_up": (between, hidden),
            "ffn_down": (hidden, between),
        }
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in block.items()}
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.linspace(0.5, 1.5, hidden, dtype=np.float32))
        if architecture == "qwen2":
            for name in ("attn_q", "attn_k", "attn_v"):
                bias = np.linspace(-1, 1, block[name][0], dtype=np.float32)
                writer.add_tensor(f"blk.{layer}.{name}.bias", bias)
    writer.add_tensor("output_norm.weight", np.ones(hidden, dtype=np.float32))
    for seed, (name, (rows, size)) in enumerate(shapes.items()):
        writer.add_tensor(f"{name}.weight", random_rows(format, rows, size, seed), raw_dtype=format)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def by_transformers(path: Path) -> Any:
    """The same model as transformers and gguf read it, without any code of ours."""
    import transformers

    where = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    return transformers.AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32).eval()
