"""Kill every long command at random moments, go on, and compare its final files with those of an undisturbed run.

    python -m benchmarks.kills --kills 500 --output benchmarks/results/kills.json

Each command runs in a process forked from this one, which has imported everything and computed nothing, so that a run
takes as long as its work. A trial kills it (SIGKILL) after a random share of the time an undisturbed run takes, up to
five times, and then lets it end.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import random
import re
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from draftcert import __version__
from draftcert.cli import app
from draftcert.support.files import write_whole


def tiny_model(folder: Path) -> None:
    """A Llama of two layers with random weights, that knows single words."""
    import tokenizers
    import torch
    import transformers

    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    config = transformers.LlamaConfig(vocab_size=61, max_position_embeddings=128, initializer_range=0.5, **sizes)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(61)}, unk_token="w0"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(folder)


def commands(model: Path, prompts: Path) -> dict[str, Callable[[Path], list[str]]]:
    """The long commands, by what they are called, as they write to a folder."""
    target = ["--target", str(model), "--prompts", str(prompts)]
    audit = ["audit", *target, "--max-new-tokens", "8", "--rule", "top_m(2)", "--candidates", "1"]
    return {
        "audit": lambda out: [*audit, "--out", str(out)],
        "validate": lambda out: ["validate", "--rule", "top_m(2)", "--processes", "1", "--out", str(out)],
        "derive": lambda out: ["derive", "--only", "M6", "--out", str(out)],
        "generate": lambda out: [
            *("generate", *target, "--max-new-tokens", "16"),
            *("--drafter", "none", "--trace", str(out / "trace.jsonl")),  # a clock decides on the sizes of trees
        ],
    }


def begin(command: list[str]) -> int:
    """Run a command in a forked process; its process id."""
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(quiet, number)
        status = app(command, standalone_mode=False) or 0
    finally:
        os._exit(status)


def run(command: list[str]) -> float:
    """Run a command to its end; the seconds it took."""
    start = time.perf_counter()
    _, status = os.waitpid(begin(command), 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):  # 1: a random model may fail to agree with itself
        raise SystemExit(f"{command} ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - start


def contents(folder: Path) -> dict[str, str]:
    """Digests of all files, without the times in them."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        if path.name == "trace.jsonl":
            content = re.sub(rb'"seconds": \{[^}]*\}', b"", content)
        found[str(path.relative_to(folder))] = hashlib.sha256(content).hexdigest()
    return found


def trial(command: Callable[[Path], list[str]], folder: Path, usual: float, draw: random.Random) -> int:
    """Kill a command up to five times, and let it end; how often it was killed before its end."""
    folder.mkdir()
    killed = 0
    for _ in range(draw.randint(1, 5)):
        child = begin(command(folder))
        time.sleep(usual * draw.random())
        os.kill(child, signal.SIGKILL)
        killed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    run(command(folder))
    return killed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at-once", type=int, default=os.cpu_count(), help="trials that run side by side")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        prompts = place / "prompts.jsonl"
        prompts.write_text("".join(json.dumps({"text": f"w{i} w{i + 3} w{2 * i}"}) + "\n" for i in range(4)))
        if os.fork() == 0:
            tiny_model(place / "model")
            os._exit(0)
        os.wait()
        kinds = commands(place / "model", prompts)
        table: dict[str, dict[str, Any]] = {}
        expected = {}
        for kind, command in kinds.items():
            folder = place / kind
            folder.mkdir()
            table[kind] = {"kills": 0, "seconds": round(run(command(folder)), 2), "different": []}
            expected[kind] = contents(folder)
            print(f"{kind}: {table[kind]['seconds']} s undisturbed", flush=True)
        end = time.monotonic() + 60 * options.minutes
        trials, one_writes = itertools.count(), threading.Lock()

        def try_on() -> None:
            while sum(row["kills"] for row in table.values()) < options.kills and time.monotonic() < end:
                number = next(trials)
                kind = list(kinds)[number % len(kinds)]
                folder, row = place / f"trial-{number}", table[kind]
                killed = trial(kinds[kind], folder, row["seconds"], random.Random(f"{options.seed}-{number}"))
                found = contents(folder)
                shutil.rmtree(folder)
                with one_writes:
                    row["kills"] += killed
                    if found != expected[kind]:
                        names = found.keys() | expected[kind].keys()
                        row["different"].append(sorted(n for n in names if found.get(n) != expected[kind].get(n)))
                    print(json.dumps(table), flush=True)
                    if options.output:
                        result = {"draftcert": __version__, "seed": options.seed, "commands": table}
                        options.output.parent.mkdir(parents=True, exist_ok=True)
                        write_whole(options.output, json.dumps(result, indent=1) + "\n")

        with ThreadPoolExecutor(options.at_once) as pool:
            for each in [pool.submit(try_on) for _ in range(options.at_once)]:
                each.result()
    raise SystemExit(any(row["different"] for row in table.values()))


if __name__ == "__main__":
    main()
