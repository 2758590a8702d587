"""Is tree decoding token-identical to transformers' greedy generate? Many prompts of the real model, float32.

    python benchmarks/identity.py --prompts prompts.jsonl --limit 30 --output benchmarks/results/identity.json

transformers decodes the prompts as one padded batch, which takes one pass a token for all of them; a prompt whose batch
output differs is decoded again by itself before it counts. Exit status 1 if any output differs.
"""

import argparse
import json
import platform
from pathlib import Path

import torch
import transformers
from rich.progress import track

from draftcert.audit import load_prompts
from draftcert.runtime import GreedyTreeDecoder
from draftcert.runtime.models import LoadedModel, load_model


def greedy(target: LoadedModel, prompts: list[list[int]], new: int) -> list[list[int]]:
    """transformers' greedy continuations, each up to and including its end of sequence."""
    width, pad = max(map(len, prompts)), target.tokenizer.pad_token_id
    ids = torch.tensor([[pad] * (width - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    out = target.model.generate(ids, attention_mask=mask, do_sample=False, max_new_tokens=new, pad_token_id=pad)
    ends = target.model.generation_config.eos_token_id
    ends = {ends} if isinstance(ends, int) else set(ends or ())
    continuations = []
    for row in out[:, width:].tolist():
        stop = next((i + 1 for i, token in enumerate(row) if token in ends), len(row))
        continuations.append(row[:stop])
    return continuations


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=Path, help="JSONL; the built-in prompts if not given")
    parser.add_argument("--model", default=None)
    parser.add_argument("--limit", type=int, default=30)
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--batch", type=int, default=15)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    target = load_model(options.model)
    every = load_prompts(options.prompts)
    # Spread over the file, whose categories stand together.
    chosen = [every[i * len(every) // min(options.limit, len(every))] for i in range(min(options.limit, len(every)))]
    prompts = [prompt.token_ids(target.tokenizer) for prompt in chosen]
    expected: list[list[int]] = []
    for start in track(range(0, len(prompts), options.batch), description="transformers greedy"):
        expected += greedy(target, prompts[start : start + options.batch], options.new)
    decoder = GreedyTreeDecoder(target)
    records = []
    for prompt, ids, tokens in zip(track(chosen, description="draft trees"), prompts, expected, strict=True):
        result = decoder.generate(ids, options.new, keep_steps=False)
        same = tokens == result.tokens[0] or greedy(target, [ids], options.new)[0] == result.tokens[0]
        records.append(
            {
                "id": prompt.id,
                "category": prompt.category,
                "tokens": len(result.tokens[0]),
                "target_passes": result.stats.target_passes,
                "identical_to_the_batch": tokens == result.tokens[0],
                "identical": same,
            }
        )
    tokens, passes = (sum(int(record[key]) for record in records) for key in ("tokens", "target_passes"))
    report = {
        "model": target.name,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "machine": platform.platform(),
        "prompts": len(records),
        "identical": sum(bool(record["identical"]) for record in records),
        "tokens": tokens,
        "tokens_per_pass": tokens / passes,
        "records": records,
    }
    print(json.dumps({key: value for key, value in report.items() if key != "records"}, indent=1))
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(report, indent=1) + "\n")
    return 0 if report["identical"] == len(records) else 1


if __name__ == "__main__":
    raise SystemExit(main())
