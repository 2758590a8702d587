"""`draftcert generate`: decode prompts by greedy trees, streaming the text."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..theory.errors import DraftcertError
from .console import Json, err, finish, out, print_json


class TextStream:
    """Turns growing token ids into text pieces; a character whose bytes are not complete yet waits for the rest."""

    def __init__(self, decode: Callable[[list[int]], str], write: Callable[[str], Any]) -> None:
        self._decode, self._write = decode, write
        self._tokens: list[int] = []
        self._shown = 0

    def add(self, tokens: tuple[int, ...]) -> None:
        """Show what these tokens complete."""
        self._tokens.extend(tokens)
        text = self._decode(self._tokens)
        if not text.endswith("\N{REPLACEMENT CHARACTER}"):
            self._show(text)

    def end(self) -> None:
        """Show what is left, complete or not."""
        self._show(self._decode(self._tokens) + "\n")

    def _show(self, text: str) -> None:
        self._write(text[self._shown :])
        self._shown = len(text)


def generate(
    prompt: Annotated[list[str] | None, typer.Option(help="A prompt (repeat for more).")] = None,
    prompts: Annotated[
        Path | None, typer.Option(help="Prompts from a file: JSONL (messages, turns, prompt or text) or one a line.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many prompts of the file.")] = None,
    model: Annotated[str, typer.Option(help="Hugging Face id, local folder, GGUF file or smollm2.")] = "smollm2",
    drafter: Annotated[str, typer.Option(help="Drafter, or several joined by +; see the list below.")] = "recycling",
    rule: Annotated[str, typer.Option(help="Acceptance rule.")] = "strict_greedy",
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Tokens to generate at most.")] = 128,
    max_nodes: Annotated[int, typer.Option(min=1, help="Nodes of a draft tree, its root included.")] = 16,
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16.")] = "float32",
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    compare: Annotated[
        bool, typer.Option(help="Also run transformers' greedy generate; exit 1 if strict greedy output differs.")
    ] = False,
    show: Annotated[bool, typer.Option(help="Draw every draft tree with what was accepted.")] = False,
    trace: Annotated[Path | None, typer.Option(help="Write every step as JSON, for `draftcert explain`.")] = None,
    as_json: Json = False,
) -> None:
    """Decode prompts with draft trees; strict greedy output is the target's own greedy output."""
    from ..audit.prompts import Prompt, load_prompts
    from ..runtime import GreedyTreeDecoder
    from ..runtime.drafters import make_drafter
    from ..runtime.models import load_model
    from ..runtime.trace import draw_tree, write_trace
    from ..theory import parse_rule

    if (prompt is None) == (prompts is None):
        raise DraftcertError("give prompts either as --prompt or as --prompts FILE")
    asked = load_prompts(prompts)[:limit] if prompts else [Prompt.of_text(text) for text in prompt or []]
    acceptance = parse_rule(rule)
    with err.status("loading the model"):
        target = load_model(model, dtype, device)
    decoder = GreedyTreeDecoder(target, make_drafter(drafter, target), acceptance, max_nodes)
    records: list[dict[str, Any]] = []
    for item in asked:
        ids = target.encode(item.messages or item.text)
        if not as_json:
            out.print(f"> {item.text}", style="bold")
        stream = TextStream(target.decode, (lambda _: None) if as_json or show else out.file.write)

        def on_step(step: Any, stream: TextStream = stream) -> None:
            stream.add(step.tokens)
            if show and not as_json:
                out.print(draw_tree(step, target.tokenizer))
            out.file.flush()

        result = decoder.generate(ids, max_new_tokens, on_step=on_step)
        stream.end()
        record = {"id": item.id, "prompt": item.text, "text": target.decode(result.tokens[0])} | result.summary()
        if compare:
            record |= compare_with_greedy(target, ids, result, max_new_tokens)
        records.append(record)
        if trace:
            write_trace(trace, target, item.id, ids, result, append=len(records) > 1)
        if not as_json:
            out.print(_line(record), style="dim")
        if result.finish_reasons[0] == "interrupted":
            break
    if as_json:
        print_json({"model": target.name, "rule": str(acceptance), "drafter": drafter, "prompts": records})
    finish(all(record.get("identical", True) for record in records) or acceptance != parse_rule("strict_greedy"))


def compare_with_greedy(target: Any, ids: Any, result: Any, max_new_tokens: int) -> dict[str, Any]:
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
    if "speedup" in record:
        parts.append(f"{record['speedup']:.2f} x transformers greedy ({record['greedy_tokens_per_second']:.1f})")
        parts.append("identical" if record["identical"] else "DIFFERENT from greedy: see `draftcert explain`")
    return ", ".join(parts)
