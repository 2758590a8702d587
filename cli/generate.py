"""`draftcert generate`: decode prompts by greedy trees, streaming the text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ..support.files import write_whole
from ..support.text import visible
from ..theory.errors import DraftcertError
from .arguments import Device, Dtype, Prompts, Rule, Target, checked, drafter_option, output_file
from .console import Json, finish, notes, out, print_json, status

if TYPE_CHECKING:
    import torch

    from ..audit.prompts import Prompt
    from ..runtime.models import LoadedModel
    from ..runtime.trees.decoder import Generation
    from ..runtime.trees.trace import Step


class TextStream:
    """Turns growing token ids into text pieces; a character whose bytes are not complete yet waits for the rest."""

    def __init__(self, decode: Callable[[list[int]], str], write: Callable[[str], Any]) -> None:
        self._decode, self._write = decode, write
        self._tokens: list[int] = []
        self._shown = 0

    def add(self, tokens: Iterable[int]) -> None:
        """Show what these tokens complete."""
        self._tokens.extend(tokens)
        text = self._decode(self._tokens)
        if not text.endswith("\N{REPLACEMENT CHARACTER}"):
            self._show(text)

    def end(self) -> None:
        """Show what is left, complete or not."""
        self._show(self._decode(self._tokens) + "\n")

    def _show(self, text: str) -> None:
        self._write(visible(text[self._shown :], lines=True))
        self._shown = len(text)


def _walk(name: str) -> None:
    from ..runtime.names import check_walk

    check_walk(name)


def generate(
    prompt: Annotated[list[str] | None, typer.Option(help="A prompt (repeat for more).")] = None,
    prompts: Prompts = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many prompts of the file.")] = None,
    target_name: Target = "smollm2",
    drafter: Annotated[
        str,
        drafter_option(
            "recycling, recycling:prior (knows what follows each token from the start; a minute once per model), "
            "recycling:static, recycling:certificate-guided (shapes of the tree; with prior: recycling:prior,static), "
            "lookup, a model, layers:0-9,20-29 (the target's own), joined by +; or none."
        ),
    ] = "recycling+lookup",
    rule: Rule = "strict_greedy",
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Tokens to generate at most.")] = 128,
    choice: Annotated[
        str, typer.Option(help="Path of a relaxed rule: likeliest, or longest as Medusa's.", callback=checked(_walk))
    ] = "likeliest",
    max_nodes: Annotated[int, typer.Option(min=1, help="Nodes of a draft tree at most, its root included.")] = 32,
    cost_aware: Annotated[
        bool, typer.Option(help="Only as many nodes as pay by the target's latency, measured here once and cached.")
    ] = True,
    dtype: Dtype = "float32",
    device: Device = "cpu",
    compare: Annotated[
        bool,
        typer.Option(
            help="Also run transformers' greedy generate, and where bits are promised greedy decoding without trees; "
            "exit 1 if strict greedy output differs."
        ),
    ] = False,
    show: Annotated[bool, typer.Option(help="Draw every draft tree with what was accepted, and why.")] = False,
    trace: Annotated[Path | None, output_file("Write every step as a line of JSON.")] = None,
    metrics: Annotated[
        Path | None,
        output_file("Write counts in Prometheus' text format, by vLLM's names where there are some."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Decode prompts with draft trees; strict greedy output is the target's own greedy output.

    Example: draftcert generate --prompt "Write a haiku about tides." --max-new-tokens 32 --show
    """
    if bool(prompt) == bool(prompts):
        raise DraftcertError("give prompts either as --prompt or as --prompts FILE")
    from ..audit.prompts import Prompt, read_prompts
    from ..theory import parse_rule

    acceptance = parse_rule(rule)
    given = [Prompt(str(i), "", text, ({"role": "user", "content": text},)) for i, text in enumerate(prompt or (), 1)]
    asked = list(islice(read_prompts(prompts), limit)) if prompts else given

    from ..runtime import GreedyTreeDecoder
    from ..runtime.models import load_model
    from ..runtime.trees.drafters import drafter_by_name
    from ..runtime.trees.metrics import DecoderMetrics
    from ..runtime.trees.trace import TraceWriter, certificates_met, draw_tree

    talks = not as_json and not notes.quiet
    records: list[dict[str, Any]] = []
    counted = DecoderMetrics(target_name) if metrics else None
    with ExitStack() as stack:
        write_trace = stack.enter_context(TraceWriter(trace)) if trace else None
        with status("loading the model"):
            target = load_model(target_name, dtype, device)
        latency = "measured" if cost_aware else None
        with status("loading the drafter; a prior is asked of the target once per model"):
            drafted_by = drafter_by_name(drafter, target)
        decoder = GreedyTreeDecoder(target, drafted_by, acceptance, max_nodes, latency, choice=cast(Any, choice))
        same_bits = decoder.same_bits
        own = GreedyTreeDecoder(target, "none", latency=None) if compare and same_bits else None
        for item in asked:
            if talks:
                show_prompt(item)
            stream = TextStream(target.decode, (lambda _: None) if as_json or show else out.file.write)

            def on_step(step: Step, stream: TextStream = stream) -> None:
                stream.add(step.tokens)
                out.file.flush()
                if write_trace:
                    write_trace(step)
                if show and not as_json:
                    out.print(draw_tree(step, target.decode))

            ids = input_ids(item, target)
            result = decoder.generate(ids, max_new_tokens, on_step=on_step)
            stream.end()
            if counted:
                counted.observe(result.stats, certificates_met(result.steps))
            record = {"id": item.id, "prompt": item.text, "prompt_tokens": ids[0].tolist()} | describe(target, result)
            if compare:
                record |= compare_with_greedy(target, ids, result, max_new_tokens)
                if own is not None:
                    record["lossless"] = own.generate(ids, max_new_tokens).tokens == result.tokens
            records.append(record)
            if talks:
                out.print(_line(record), style="dim")
                for warning in record["warnings"]:
                    out.print(f"warning: {warning}", style="yellow")
            if result.finish_reasons == ["interrupted"]:
                break
    if metrics and counted:
        write_whole(metrics, counted.text())
    if as_json:
        about = {"target": target.name, "rule": str(acceptance), "drafter": drafter, "same_bits": same_bits}
        print_json(about | {"prompts": records})
    if any(record["finish_reason"] == "interrupted" for record in records):
        raise KeyboardInterrupt
    lossless = acceptance == parse_rule("strict_greedy")
    wrong = [name for record in records for name in ("identical", "lossless") if record.get(name) is False]
    finish(not lossless or not wrong)


def show_prompt(prompt: Prompt) -> None:
    """Print a prompt, every line of it marked as such."""
    out.print()
    out.print(indent(prompt.text, "> ", lambda line: True), style="bold")


def input_ids(prompt: Prompt, target: LoadedModel) -> torch.Tensor:
    """A prompt's tokens `[1, length]` on the model's device."""
    return target.batch(prompt.token_ids(target.tokenizer))


def describe(target: LoadedModel, result: Generation) -> dict[str, Any]:
    """What a generation gave, as plain data."""
    from ..runtime.trees.trace import certificates_met

    stats = result.stats
    certificates = sorted(certificates_met(result.steps))
    return {
        "text": target.decode(result.tokens[0]),
        "tokens": result.tokens[0],
        "finish_reason": result.finish_reasons[0],
        "new_tokens": stats.new_tokens,
        "target_passes": stats.target_passes,
        "tokens_per_pass": stats.tokens_per_pass,
        "tokens_per_second": stats.tokens_per_second,
        "acceptance_rate": stats.acceptance_rate,
        "acceptance_by_depth": stats.acceptance_by_depth,
        "longest_zero_streak": stats.longest_zero_streak,
        "warnings": stats.warnings,
        "certificate_percentiles": {
            f"p{share}": certificates[(len(certificates) - 1) * share // 100] for share in (5, 25, 50, 75, 95)
        },
    }


def compare_with_greedy(
    target: LoadedModel, ids: torch.Tensor, result: Generation, max_new_tokens: int
) -> dict[str, Any]:
    """Tokens and speed of transformers' own greedy `generate` on the same prompt."""
    import torch

    start = time.perf_counter()
    greedy = target.model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=max_new_tokens
    )
    seconds = time.perf_counter() - start
    tokens = greedy[0, ids.shape[1] :].tolist()
    speed = len(tokens) / seconds
    return {
        "identical": tokens == result.tokens[0],
        "greedy_tokens_per_second": speed,
        "speedup": result.stats.tokens_per_second / speed,
    }


def _line(record: dict[str, Any]) -> str:
    parts = [
        f"{record['new_tokens']} tokens",
        f"{record['tokens_per_pass']:.2f} a target pass",
        f"{record['tokens_per_second']:.1f} tokens/s",
    ]
    if record["acceptance_by_depth"]:
        parts.append("accepted by depth " + " ".join(f"{share:.0%}" for share in record["acceptance_by_depth"]))
    if "speedup" in record:
        parts.append(f"{record['speedup']:.2f} x transformers greedy ({record['greedy_tokens_per_second']:.1f})")
        parts.append("identical" if record["identical"] else "DIFFERENT from greedy")
    if "lossless" in record:
        parts.append("lossless to the last bit" if record["lossless"] else "DIFFERENT from decoding without trees")
    return ", ".join(parts)
