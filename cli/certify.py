"""`draftcert certify`: the exact certificate of one distribution."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from ..support.files import read_text, reason
from ..theory.errors import DraftcertError
from ..theory.numbers import exact_number, shown
from .arguments import A_FILE, Rule, checked, output_file
from .console import Json, out, print_json


def _read(probs: str | None, file: Path | None) -> list[str]:
    if (probs is None) == (file is None):
        raise DraftcertError("give the distribution either as --probs or as --file")
    text = read_text(file) if file is not None else probs or ""
    if text.lstrip().startswith("["):
        try:
            return [str(value) for value in json.loads(text, parse_float=str, parse_int=str)]
        except (ValueError, RecursionError) as error:
            raise DraftcertError(f"the distribution {shown(text)} is no list of numbers: {reason(error)}") from error
    return text.replace(",", " ").split()


def certify(
    probs: Annotated[
        str | None, typer.Option(help="Target probabilities: decimals or fractions, separated by commas.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="The same from a file (separated by commas or space, or JSON); - reads standard input.", **A_FILE
        ),
    ] = None,
    rule: Rule = "strict_greedy",
    candidates: Annotated[int, typer.Option(min=1, help="Drafter's candidates at this node (m).")] = 1,
    digits: Annotated[int, typer.Option(help="Certified digits.", min=1, max=10_000)] = 20,
    normalize: Annotated[bool, typer.Option(help="Divide by the sum instead of refusing one that is not 1.")] = False,
    logit_ratio: Annotated[
        str | None,
        typer.Option(
            help="z_(2)/z_(1) of the raw logits, for rules that compare logits (mars).",
            callback=checked(lambda text: exact_number(text, "the ratio")),
        ),
    ] = None,
    witness: Annotated[
        Path | None, output_file("Write the proof of the certificate to a file, for `draftcert verify`.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Exact certificate C of one target distribution: KL(target||draft) < C guarantees acceptance.

    Example: draftcert certify --probs 0.5,0.45,0.05 --candidates 2 --digits 30
    """
    from ..numerics import certificate

    found = certificate(
        _read(probs, file),
        rule,
        candidates,
        digits,
        normalize=normalize,
        logit_ratio=logit_ratio,
        witness=witness,
    )
    if as_json:
        print_json(
            {
                "rule": str(found.rule),
                "candidates": found.candidates,
                # Digits beyond a double's would be lost as JSON numbers.
                "certificate": str(found),
                "radius": str(found.radius),
                "digits": found.digits,
                "level": None if found.level is None else _exact(found.level),
                "accepted": found.accepted,
                "competitors": found.competitors,
                "pool": found.pool,
            }
        )
        return
    out.print(f"certificate  {found} nats")
    out.print(f"rule         {found.rule}, {candidates} candidate{'s' if candidates > 1 else ''}")
    out.print(f"accepted     {_some(found.accepted)}")
    out.print(f"competitors  {_some(found.competitors)}")
    out.print(
        f"pooled       {_some(found.pool)}"
        + (f" at level {_exact(found.level)}" if found.pool and found.level is not None else "")
    )


def _some(ids: tuple[int, ...], most: int = 12) -> str:
    shown = ", ".join(map(str, ids[:most]))
    return (shown or "none") + (f", ... ({len(ids)} tokens)" if len(ids) > most else "")


def _exact(value: Fraction) -> str:
    """A fraction in full: Python itself prints no integer of more than 4300 digits."""
    from flint import fmpq

    return str(fmpq(value.numerator, value.denominator))
