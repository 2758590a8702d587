"""`draftcert doctor`: whether a model can be decoded with draft trees."""

from __future__ import annotations

from typing import Annotated

import typer

from ..support.terminal import visible
from ..theory.errors import DraftcertError
from .arguments import Device, Dtype, Model
from .console import Json, finish, out, print_json, status


def doctor(
    target_name: Model,
    length: Annotated[
        int, typer.Option(min=0, help="Texts of at most so many tokens: where windows end is tried, too.")
    ] = 0,
    dtype: Dtype = "float32",
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Try a model: do its logits at the nodes of draft trees equal the plain model's? Exit status 1 if they do not.

    The decoder tries every model itself and refuses it where they do not; this command asks that alone, and which
    layers the model goes through.

    Example: draftcert doctor smollm2
    """
    from ..runtime.models import load_model
    from ..runtime.trees.forward import TreeForward
    from ..runtime.trees.self_test import lengths_of_change, self_test

    with status("loading the model"):
        target = load_model(target_name, dtype, device)
    refusal, tried, not_fast = None, [], None
    try:
        with status("evaluating trees and the plain model"):
            tried = self_test(target.model, length)
            not_fast = TreeForward(target.model).not_fast
    except DraftcertError as error:
        refusal = str(error)
    later = [change for change in lengths_of_change(target.model) if change > length]
    if as_json:
        found = {"target": target.name, "right": refusal is None, "refusal": refusal, "not_fast": not_fast}
        print_json(found | {"tried": tried, "later": later})
    else:
        out.print(
            f"{visible(target.name)}: {visible(refusal) if refusal else 'right'}", style="red" if refusal else "green"
        )
        if not refusal:
            out.print(
                f"Through transformers' layers, not draftcert's own faster ones: {visible(not_fast)}."
                if not_fast
                else "Through draftcert's own layers: a row of logits has the same bits in any company."
            )
        if later and not refusal:
            out.print(f"From {later[0]} tokens on it may compute differently: tried when a text gets there (--length).")
    finish(refusal is None)
