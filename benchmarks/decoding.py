"""Tree decoding against transformers on the same prompts: tokens a second, tokens a pass, identical output.

    python benchmarks/decoding.py prompts.jsonl --per-category 10 --output decoding.json

Each line of the prompts is an object with "turns" (Spec-Bench: the first is taken), "prompt" or "text", and perhaps
"category". Every mode decodes every prompt; what is timed is the whole call. The first prompt is decoded once more
before all of that, so that nothing is timed cold. Drafters keep what they learned from one prompt to the next, as in
use.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
import transformers
from rich.progress import Progress

from draftcert.runtime.decoder import GreedyTreeDecoder
from draftcert.runtime.drafters import Assistant, PromptLookup, TokenRecycling, Union, cached_successors, skip_layers
from draftcert.runtime.explain import explain
from draftcert.runtime.fast_cpu import fast_cpu
from draftcert.runtime.forward import TreeForward
from draftcert.runtime.models import LoadedModel, load_model
from draftcert.theory import DraftcertError

Run = Callable[[torch.Tensor], tuple[list[int], dict[str, Any]]]
BASELINE = "transformers greedy"


def read_prompts(path: Path, per_category: int | None) -> list[tuple[str, str]]:
    """Category and text of the prompts, at most so many of each category, evenly spread over the file."""
    found: dict[str, list[str]] = defaultdict(list)
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        entry = json.loads(line)
        text = entry["turns"][0] if "turns" in entry else entry.get("prompt", entry.get("text"))
        if not isinstance(text, str):
            raise DraftcertError(f"{path}:{number}: no 'turns', 'prompt' or 'text'")
        found[entry.get("category", "all")].append(text)
    # Spec-Bench's first 80 prompts are MT-bench, whose eight categories are one task of it.
    mt_bench = {"writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities"}
    grouped: dict[str, list[str]] = defaultdict(list)
    for category, texts in found.items():
        grouped["multi_turn" if category in mt_bench else category] += texts
    return [
        (category, texts[index * len(texts) // count])
        for category, texts in grouped.items()
        for count in [min(per_category or len(texts), len(texts))]
        for index in range(count)
    ]


def transformers_run(target: LoadedModel, new: int, **options: Any) -> Run:
    def run(ids: torch.Tensor) -> tuple[list[int], dict[str, Any]]:
        out = target.model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False, **options
        )
        return out[0, ids.shape[1] :].tolist(), {}

    return run


def tree_run(decoder: GreedyTreeDecoder, new: int) -> Run:
    def run(ids: torch.Tensor) -> tuple[list[int], dict[str, Any]]:
        result = decoder.generate(ids, max_new_tokens=new, keep_steps=False)
        stats = result.stats
        return result.tokens[0], {
            "passes": stats.target_passes,
            "proposed": stats.proposed,
            "accepted": stats.accepted,
            "overhead": stats.overhead,
            "seconds_target": stats.seconds_target,
        }

    return run


def modes(target: LoadedModel, new: int, nodes: int, cost_aware: bool) -> Iterator[tuple[str, Run, bool]]:
    """Name, decoder and whether it uses the fast CPU path."""
    thin = skip_layers(target, range(0, target.model.config.num_hidden_layers, 3))
    yield BASELINE, transformers_run(target, new), False
    yield "transformers prompt lookup", transformers_run(target, new, prompt_lookup_num_tokens=10), False
    yield "transformers assisted", transformers_run(target, new, assistant_model=thin), False
    latency = "measured" if cost_aware else None
    vocabulary = target.model.get_output_embeddings().weight.shape[0]
    # Computed once per model, before anything is timed, and kept in the user's cache folder.
    prior = cached_successors(TreeForward(target.model))
    for name, drafter, fast in (
        ("tree, token recycling", TokenRecycling(), False),
        ("tree, token recycling static", TokenRecycling(shape="static"), False),
        ("tree, token recycling certificate-guided", TokenRecycling(shape="certificate-guided"), False),
        ("tree, prompt lookup", PromptLookup(), False),
        ("tree, layers left out", Assistant(thin, vocabulary), False),
        ("tree, union", Union(TokenRecycling(), PromptLookup()), False),
        ("tree, union, fast CPU", Union(TokenRecycling(), PromptLookup()), True),
        ("tree, union with prior", Union(TokenRecycling(prior=prior), PromptLookup()), False),
        ("tree, union with prior, fast CPU", Union(TokenRecycling(prior=prior), PromptLookup()), True),
    ):
        with fast_cpu(target) if fast else nullcontext():
            decoder = GreedyTreeDecoder(target, drafter, max_nodes=nodes, latency=latency)
        yield name, tree_run(decoder, new), fast


def summary(rows: list[dict[str, Any]], baseline: list[dict[str, Any]]) -> dict[str, Any]:
    tokens, seconds = sum(row["tokens"] for row in rows), sum(row["seconds"] for row in rows)
    paces = sorted(row["tokens"] / row["seconds"] for row in rows)
    base = sum(row["tokens"] for row in baseline) / sum(row["seconds"] for row in baseline)
    result = {
        "tokens_per_second": tokens / seconds,
        "speedup": tokens / seconds / base,
        "tokens_per_second_quantiles": statistics.quantiles(paces, n=4) if len(paces) > 1 else paces,
        "identical": sum(row["identical"] for row in rows),
        "prompts": len(rows),
    }
    if "passes" in rows[0]:
        result["tokens_per_pass"] = tokens / sum(row["passes"] for row in rows)
        result["overhead"] = statistics.mean(row["overhead"] for row in rows)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prompts", type=Path)
    parser.add_argument("--model", default=None)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--per-category", type=int, default=None)
    parser.add_argument("--limit", type=int, default=None, help="take only the first so many of the chosen prompts")
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--nodes", type=int, default=32)
    parser.add_argument("--cost-aware", action="store_true")
    parser.add_argument("--only", action="append", help="only modes whose name contains this (and the baseline)")
    parser.add_argument("--output", type=Path, default=None)
    arguments = parser.parse_args()
    target = load_model(arguments.model, arguments.dtype, arguments.device)
    prompts = read_prompts(arguments.prompts, arguments.per_category)[: arguments.limit]
    encoded = [(category, target.encode(text)) for category, text in prompts]
    rows: dict[str, list[dict[str, Any]]] = {}
    expected: list[list[int]] = []
    with Progress() as progress:
        for name, run, fast in modes(target, arguments.new, arguments.nodes, arguments.cost_aware):
            if name != BASELINE and arguments.only and not any(part in name for part in arguments.only):
                continue
            task = progress.add_task(name, total=len(encoded))
            rows[name] = []
            with fast_cpu(target) if fast else nullcontext():
                run(encoded[0][1])
                for index, (category, ids) in enumerate(encoded):
                    start = perf_counter()
                    tokens, facts = run(ids)
                    seconds = perf_counter() - start
                    if name == BASELINE:
                        expected.append(tokens)
                    row = {"category": category, "tokens": len(tokens), "seconds": seconds} | facts
                    row["identical"] = tokens == expected[index]
                    if not row["identical"]:
                        found = explain(target, ids[0].tolist(), expected[index], tokens)
                        row["difference"] = {"verdict": found.verdict, "margin": found.margin, "noise": found.noise}
                    rows[name].append(row)
                    progress.advance(task)
    report = {
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "python": platform.python_version(),
        },
        "model": target.name,
        "settings": {key: str(value) for key, value in vars(arguments).items()},
        "summary": {name: summary(found, rows[BASELINE]) for name, found in rows.items()},
        "rows": rows,
    }
    if arguments.output:
        arguments.output.write_text(json.dumps(report, indent=1), encoding="utf-8")
    print(json.dumps(report["summary"], indent=1))
    return 0 if all(row["identical"] for found in rows.values() for row in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
