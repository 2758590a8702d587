"""Looks for a row of logits that depends on its company: the same text alone and among others, compared bit for bit.

    python benchmarks/same_bits.py --rows 1000000 --output benchmarks/results/same_bits.json

Each time a small random model, its weights stored in one of the formats, is asked for draft trees of up to 64 nodes
behind the prompts of up to four sequences, which came in random pieces, before and after a path of each is accepted, by
up to four threads. Then every path of every tree is evaluated as a plain text, alone, by one thread. All instruction
sets of the machine take turns. One unequal bit ends the run with exit status 1.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import platform
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
import transformers
from rich.progress import track

from draftcert.runtime.models.layers.bindings import Stored, linear
from draftcert.runtime.rows.benchmark import processor
from draftcert.runtime.trees.forward import TreeForward
from draftcert.runtime.trees.tree import Tree

SCALES: dict[str, dict[int, float]] = {
    "F32": {},
    "F16": {},
    "BF16": {},
    "Q4_0": {0: 0.1},
    "Q4_1": {0: 0.1, 2: 0.5},
    "Q5_0": {0: 0.05},
    "Q5_1": {0: 0.05, 2: 0.5},
    "Q8_0": {0: 0.007},
    "Q4_K": {0: 0.002, 2: 0.01},
    "Q5_K": {0: 0.001, 2: 0.01},
    "Q6_K": {208: 0.0005},
}
"""The formats that the kernels read: where in a block its float16 scales are, and how large they are here at most."""
FORMATS = tuple(gguf.GGMLQuantizationType[name] for name in SCALES)
WORDS = 97
HALF_ROTATED = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
CONFIGS: dict[str, Any] = {
    "llama": lambda **sizes: transformers.LlamaConfig(**sizes, attention_bias=True, mlp_bias=True),
    "mistral": lambda **sizes: transformers.MistralConfig(**sizes, sliding_window=9),
    "qwen2": lambda **sizes: transformers.Qwen2Config(**sizes, tie_word_embeddings=True),
    "qwen3": lambda **sizes: transformers.Qwen3Config(**sizes),
    "smollm3": lambda **sizes: transformers.SmolLM3Config(**sizes, no_rope_layers=[1, 0], pad_token_id=0),
    "gemma2": lambda **sizes: transformers.Gemma2Config(**sizes, sliding_window=9, attn_logit_softcapping=2.0),
    "gemma3": lambda **sizes: transformers.Gemma3TextConfig(
        **sizes, sliding_window=9, layer_types=["sliding_attention", "full_attention"], final_logit_softcapping=9.0
    ),
    "phi3": lambda **sizes: transformers.Phi3Config(**sizes, pad_token_id=0, rope_parameters=HALF_ROTATED),
    "olmo2": lambda **sizes: transformers.Olmo2Config(**sizes, pad_token_id=0),
    "granite": lambda **sizes: transformers.GraniteConfig(**sizes, residual_multiplier=0.3, logits_scaling=3.0),
}


def random_rows(format: gguf.GGMLQuantizationType, rows: int, size: int, seed: int = 0) -> np.ndarray:
    """Random weights of about 0.3 as bytes `[rows, bytes of a row]`: any bits at all, but for the scales of blocks."""
    source = np.random.default_rng(seed)
    if not SCALES[format.name]:
        wanted = source.standard_normal((rows, size), dtype=np.float32) * 0.3
        return gguf.quantize(wanted, format).view(np.uint8).reshape(rows, -1)
    block, width = gguf.GGML_QUANT_SIZES[format]
    blocks = source.integers(0, 256, (rows * size // block, width), dtype=np.uint8)
    for at, largest in SCALES[format.name].items():
        scales = source.uniform(-largest, largest, len(blocks)).astype(np.float16)
        blocks[:, at : at + 2] = scales[:, None].view(np.uint8)
    return blocks.reshape(rows, -1)


@functools.cache
def engine(kind: str, format: gguf.GGMLQuantizationType, level: int) -> TreeForward:
    """A random model of two layers whose matrices are stored in that format."""
    torch.manual_seed(0)
    whole = gguf.GGML_QUANT_SIZES[format][0] == 256
    # The second is more than what a kernel takes of a row at once.
    sizes = {"hidden_size": 256, "intermediate_size": 1024} if whole else {"hidden_size": 96, "intermediate_size": 800}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": sizes["hidden_size"] // 4}
    config = CONFIGS[kind](vocab_size=WORDS, num_hidden_layers=2, max_position_embeddings=1024, **sizes, **heads)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for seed, weight in enumerate(model.parameters()):
        if weight.ndim == 2:
            rows = torch.from_numpy(random_rows(format, weight.shape[0], weight.shape[1], seed))
            stored = Stored(rows, int(format), weight.shape[1])
            weight.data, weight.stored = stored.expanded(), stored
    forward = TreeForward(model)
    if forward.few_rows is None:
        raise SystemExit(f"{kind} is not computed by the layers for few rows: {forward.not_fast}")
    forward.few_rows.level = level
    return forward


def random_tree(source: random.Random) -> Tree:
    """Up to 64 nodes, half of them a path."""
    size = source.randint(1, 64)
    parents = [-1, *(node - 1 if source.random() < 0.5 else source.randrange(node) for node in range(1, size))]
    return Tree(tuple(source.sample(range(WORDS), size)), tuple(parents))


def path_to(tree: Tree, node: int) -> list[int]:
    path = [node]
    while path[0]:
        path.insert(0, tree.parents[path[0]])
    return path


def chain(tokens: Sequence[int]) -> Tree:
    return Tree(tuple(tokens), tuple(range(-1, len(tokens) - 1)))


@torch.inference_mode()
def compare(forward: TreeForward, source: random.Random) -> tuple[int, int]:
    """Rows that were compared, and how many of them were not the same."""
    prompts = [source.choices(range(WORDS), k=source.randint(1, 60)) for _ in range(source.randint(1, 4))]
    torch.set_num_threads(source.randint(1, 4))
    cache = forward.new_cache([len(prompt) for prompt in prompts], 256)
    while any(held < len(prompt) for held, prompt in zip(cache.lengths, prompts, strict=True)):
        # A row that is through is given something that is not accepted.
        pieces = [p[at : at + source.randint(1, 40)] or [0] for p, at in zip(prompts, cache.lengths, strict=True)]
        forward([chain(piece) for piece in pieces], cache)
        for row, piece in enumerate(pieces):
            cache.lengths[row] = min(cache.lengths[row] + len(piece), len(prompts[row]))
    compared = unequal = 0
    for _ in range(2):
        torch.set_num_threads(source.randint(1, 4))
        trees = [random_tree(source) for _ in prompts]
        together = forward(trees, cache)
        torch.set_num_threads(1)
        for row, tree in enumerate(trees):
            alone = forward.new_cache([len(prompts[row])], 64)
            forward.begin([prompts[row]], alone, None)
            for leaf in set(range(len(tree))) - set(tree.parents):
                path = path_to(tree, leaf)
                rows = forward([chain([tree.tokens[node] for node in path])], alone)[0]
                same = (rows.view(torch.int32) == together[row][path].view(torch.int32)).all(-1)
                compared, unequal = compared + len(path), unequal + int((~same).sum())
            accepted = path_to(tree, source.randrange(len(tree)))
            cache.commit(row, accepted)
            prompts[row] = [*prompts[row], *(tree.tokens[node] for node in accepted)]
    return compared, unequal


def levels() -> list[int]:
    """The instruction sets of this machine."""
    found = []
    for level in (0, 1, 2):
        try:
            linear(torch.ones(1, 1), torch.ones(1, 1), level=level)
        except RuntimeError:
            break
        found.append(level)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="where the result is written as JSON")
    options = parser.parse_args()
    start, source, rows = time.perf_counter(), random.Random(options.seed), Counter()
    cases = list(itertools.product(CONFIGS, FORMATS, levels()))
    with_each = -(-options.rows // len(cases))
    for kind, format, level in track(cases, description="cases", disable=not sys.stderr.isatty()):
        compared = 0
        while compared < with_each:
            more, unequal = compare(engine(kind, format, level), source)
            compared += more
            if unequal:
                print(f"{unequal} of {more} rows differ: {kind}, weights in {format.name}, instruction set {level}")
                return 1
        rows.update({kind: compared, format.name: compared, f"instruction set {level}": compared})
    result = {"rows": sum(rows[kind] for kind in CONFIGS), "unequal": 0, "seed": options.seed, "of": rows}
    result |= {"seconds": round(time.perf_counter() - start)}
    result |= {"torch": torch.__version__, "transformers": transformers.__version__}
    result |= {"processor": processor(), "machine": platform.machine()}
    print(json.dumps(result))
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
