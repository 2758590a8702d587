"""`make demo`: what a certificate is, why it holds, and what it is good for, within the first minute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..theory.errors import DraftcertError
from . import main
from .arguments import Target
from .console import finish, out, status
from .generate import TextStream, compare_with_greedy, describe, input_ids, show_prompt

if TYPE_CHECKING:
    from ..runtime.trees.trace import Step

TARGETS = (
    ("0.5", "0.3", "0.2"),
    ("0.4", "0.35", "0.25"),
    ("0.5", "0.5"),
    ("0.9", "0.05", "0.03", "0.02"),
    ("0.999999", "0.000001"),
)
PROMPTS = ("math-2", "copy-5", "code-2")
"""Of the built-in prompts: arithmetic that a small model gets wrong, copying, and code."""
SOLUTION = "72"
"""Of the first prompt."""
WARM_UP = 16
"""Tokens decoded before anything is timed: kernels are compiled, and the machine's latency is measured."""


def demo(
    target: Target = "smollm2",
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Tokens per prompt.")] = 48,
) -> None:
    """One certificate, why it holds, whether a solver agrees, and a real model decoded with draft trees."""
    _heading("1. A certificate")
    _certificate(TARGETS[0])
    _heading("2. Why it holds")
    proved = _why("T5")
    _heading("3. Does an independent solver agree?")
    agreed = _agreement()
    _heading("4. Decoding with draft trees")
    identical = _decode(target, max_new_tokens)
    _heading("5. What next")
    for command, what in NEXT:
        out.print(command, style="bold")
        out.print(f"    {what}", soft_wrap=False)
    finish(proved and agreed and identical)


NEXT = (
    ("draftcert certify --probs 0.5,0.45,0.05 --candidates 2", "the certificate of a distribution of yours"),
    ("draftcert audit --drafter layers:0-11,14-29 --limit 4", "what is guaranteed of a model pair, and what to set"),
    ('draftcert generate --prompt "..." --show', "every draft tree, and why each token was accepted or not"),
    ("draftcert derive --only tree", "the theorems, step by step"),
    ("draftcert check", "all of them decided again, with Coq where it is installed"),
)


def _heading(text: str) -> None:
    out.print()
    out.rule(text, align="left")


def _say(text: str) -> None:
    """Prose, broken between words."""
    out.print(text, soft_wrap=False)


def _certificate(probabilities: Sequence[str]) -> None:
    from ..numerics import certificate

    found = certificate(probabilities, "strict_greedy", digits=10)
    draft = found.witness or ()
    _say(f"A target model gives three tokens the probabilities {', '.join(probabilities)}. Its certificate is")
    out.print(f"    C = {found} nats", style="bold")
    _say(
        "Every drafter with KL(target || draft) below C ranks the target's token first, so it is accepted. "
        f"No larger number would do: the worst drafter, {', '.join(str(float(q)) for q in draft)}, lies "
        f"{_kl(probabilities, draft):.10f} nats away, and there another token is as likely."
    )


def _kl(target: Sequence[str], draft: Sequence[Any]) -> float:
    """Its definition in floats: what the certificate's own formula is held against."""
    return math.fsum(float(p) * math.log(float(p) / float(q)) for p, q in zip(target, draft, strict=True))


def _why(name: str) -> bool:
    from ..proofs_check import check
    from ..theory.theorems import THEOREMS

    theorem = THEOREMS[name]
    _say(f"{name}, {theorem.title}: {theorem.statement}")
    with status("deciding its steps"):
        report = check(name, coq=False)
    for number, step in enumerate(theorem.derivation, 1):
        _say(f"  {number}. {step.says} [{step.reason}]")
    outcomes = [outcome for each in report.theorems for outcome in each.outcomes if outcome.ok is not None]
    for outcome in outcomes:
        if not outcome.ok:
            _say(str(outcome.failure))
    held = sum(bool(outcome.ok) for outcome in outcomes)
    _say(
        f"Decided just now, by exact algebra: {held} of {len(outcomes)} claims hold. It is one of {len(THEOREMS)} "
        "theorems, each of which cites formal proofs in Coq, too."
    )
    return report.ok


def _agreement() -> bool:
    from ..numerics.agreement import agreement, solve_row
    from ..numerics.row import read_row
    from ..theory import FORMULAS
    from ..theory.formula import AGREED_DIGITS

    with status("solving"):
        solved = [solve_row(read_row(row), accepted=1, candidates=1) for row in TARGETS]
    digits = [agreement(FORMULAS["strict_greedy"], each) or 0.0 for each in solved if each is not None]
    worst = min(digits)
    _say(
        "The same minimum, from a convex program that knows nothing of the formula, solved and then certified: on "
        f"{len(digits)} targets, a tie and a nearly certain one among them, at least {worst:.0f} digits agree. "
        "`draftcert validate` does it for every rule."
    )
    return len(digits) == len(TARGETS) and worst >= AGREED_DIGITS


def _decode(target_name: str, max_new_tokens: int) -> bool:
    from ..audit.prompts import load_prompts
    from ..runtime import GreedyTreeDecoder
    from ..runtime.models import load_model
    from ..runtime.trees.drafters import drafter_by_name

    with status("loading the model (the first time its file is read for half a minute)"):
        try:
            target = load_model(target_name)
        except DraftcertError as error:
            raise DraftcertError(f"the demo cannot decode: {error}") from error
    decoder = GreedyTreeDecoder(target, drafter_by_name("recycling+lookup", target))
    prompts = {each.id: each for each in load_prompts()}
    with status("warming up"):
        ids = input_ids(prompts["chat-2"], target)
        warm = decoder.generate(ids, WARM_UP)
        compare_with_greedy(target, ids, warm, WARM_UP)
    records: list[dict[str, Any]] = []
    for prompt in (prompts[name] for name in PROMPTS):
        show_prompt(prompt)
        ids = input_ids(prompt, target)
        stream = TextStream(target.decode, out.file.write)

        def on_step(step: Step, stream: TextStream = stream) -> None:
            stream.add(step.tokens)
            out.file.flush()

        result = decoder.generate(ids, max_new_tokens, on_step=on_step)
        stream.end()
        records.append(describe(target, result) | compare_with_greedy(target, ids, result, max_new_tokens))
        _say(f"[{records[-1]['tokens_per_pass']:.1f} tokens a pass, {records[-1]['speedup']:.1f} times the speed]")
    tokens, passes = (sum(record[name] for record in records) for name in ("new_tokens", "target_passes"))
    ours, theirs = (
        sum(record["new_tokens"] / record[name] for record in records)
        for name in ("tokens_per_second", "greedy_tokens_per_second")
    )
    same = sum(record["identical"] for record in records)
    out.print()
    out.print(
        f"Together: {tokens} tokens in {passes} passes of {target.name}, {theirs / ours:.2f} times the speed of "
        f"transformers' own greedy generate; {same} of {len(records)} texts identical to its, token for token.",
        style="bold",
        soft_wrap=False,
    )
    wrong = "" if SOLUTION in records[0]["text"] else f" (48 + 24 = {SOLUTION}, which it does not say above)"
    _say(
        f"The words are {target.name}'s own. A small model is often wrong{wrong}, and its mistakes are reproduced to "
        "the letter: what is guaranteed is that drafting changes nothing, not that the target is right."
    )
    return same == len(records)


if __name__ == "__main__":
    program = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    program.command()(demo)
    main(program)
