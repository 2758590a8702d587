"""The plain model: whole texts in one pass, without a cache, masks or positions of ours.

Everything else that evaluates the target is judged by this, so it shares no code with any of it (`forward`, the cache,
the layers for few rows). How much two right evaluations may differ is measured here too, on the plain model alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch

from ...theory.errors import DraftcertError

_TIMES_NOISE = 16.0
"""How many times further off than the plain model with other rows beside a right evaluation may be."""
_CACHED = (1, 4, 16)
"""In half precision so many of the last tokens go through transformers' cache, one by one."""
_TIMES_CACHE = 4.0
"""How many times further off than the row behind such tokens a right evaluation may be."""
_LARGEST_ROUNDING = 16.0
"""That row counts as off by rounding only up to so many units of it; more would excuse a cache that is wrong."""
_ROWS = 1024
"""Rows of a pass at most, where texts are longer than one row."""


def plain_logits(model: Any, texts: Sequence[Sequence[int]], last: int | None = None) -> torch.Tensor:
    """Logits `[texts, last, vocab]` after the last so many tokens (all if not given) of texts of one length."""
    limited: dict[str, Any] = {}
    if last is not None and "logits_to_keep" in inspect.signature(model.forward).parameters:
        limited["logits_to_keep"] = last
    together = max(1, _ROWS // len(texts[0]))
    with torch.inference_mode():
        parts = [
            model(
                input_ids=torch.tensor(list(texts[at : at + together]), device=model.device), use_cache=False, **limited
            )
            .logits[:, -(last or 0) :]
            .detach()
            for at in range(0, len(texts), together)
        ]
    return torch.cat(parts)


def distance(rows: torch.Tensor, plain: torch.Tensor) -> torch.Tensor:
    """Root mean square of the differences of logits `[..., vocab]`, a number a row; infinite where only one is NaN."""
    rows, plain = rows.double(), plain.to(rows.device).double()
    same = (rows == plain) | (rows.isnan() & plain.isnan())
    return (rows - plain).masked_fill(same, 0).nan_to_num(nan=torch.inf).pow(2).mean(-1).sqrt()


def tolerance(model: Any, text: Sequence[int], last: int = 1) -> float:
    """The `distance` to the plain model that rounding explains, at the last so many tokens of a text.

    Measured on the plain model: the text alone, several times in one pass, and with another last token. At the tokens
    before it, none of this changes what a causal model computes; only the number of rows does, hence the order of sums.
    In half precision, where products of one row and of many round differently, also through transformers' own cache.

    Raises:
        DraftcertError: the last token changes what is before it by more than rounding does: the model is not causal.
    """
    text, last = list(text), min(max(last, 4), len(text))
    alone = plain_logits(model, [text], last)[0]
    others = [plain_logits(model, [text] * copies, last)[-1] for copies in {2, 3, max(2, min(8, _ROWS // len(text)))}]
    changed = plain_logits(model, [[*text[:-1], text[0] if text[0] != text[-1] else 1 - min(text[0], 1)]], last)[0]
    noise = max(float(distance(other, alone).max()) for other in others)
    behind = float(distance(changed[:-1], alone[:-1]).max()) if last > 1 else 0.0
    finite = alone.where(alone.isfinite(), 0)
    size = float(finite.double().pow(2).mean().sqrt())
    unit = max(torch.finfo(dtype).eps for dtype in (model.dtype, torch.float32))  # transformers' norms are in float32
    if behind > max(noise, min(64 * unit, unit**0.5) * size):  # causal: computed from the same numbers again
        raise DraftcertError(
            f"{type(model).__name__} is no causal model as it is: a token changes logits before it by {behind:.2g}"
        )
    # Where rows happen to come out equal to the last bit, other numbers of rows still may not.
    allowed = _TIMES_NOISE * max(noise, behind) + max(4 * unit, unit**0.5 / 16) * size
    if unit == torch.finfo(torch.float32).eps:
        return allowed
    cached = (cached_row(model, text[:-count], text[-count:]) for count in _CACHED if count < len(text))
    by_cache = max((float(distance(row, alone[-1])) for row in cached), default=0.0)
    return allowed + _TIMES_CACHE * min(by_cache, _LARGEST_ROUNDING * unit * size)


def cached_row(model: Any, prompt: Sequence[int], tokens: Sequence[int]) -> torch.Tensor:
    """Logits `[vocab]` after prompt and tokens by transformers' own cache, one token after the other."""
    with torch.inference_mode():
        output = model(input_ids=torch.tensor([list(prompt)], device=model.device), use_cache=True)
        for token in tokens:
            cache = {name: output[name] for name in ("past_key_values", "cache") if name in output}
            cache = dict(list(cache.items())[-1:])  # where both are there, they are one
            output = model(input_ids=torch.tensor([[token]], device=model.device), use_cache=True, **cache)
    return output.logits[0, -1]
