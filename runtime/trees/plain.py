"""The plain model: whole texts in one pass, without a cache, masks or positions of ours.

Everything else that evaluates the target is judged by this, so it shares no code with any of it (`forward`, the cache,
the layers for few rows). How much two right evaluations may differ is measured here too, on the plain model alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ...theory.errors import DraftcertError

_DRAWS = 3
"""How often a text is evaluated with results moved at random."""
_ROUNDING = {
    "linear",
    "addmm",
    "matmul",
    "bmm",
    "baddbmm",
    "add",
    "radd",
    "mul",
    "rmul",
    "scaled_dot_product_attention",
}
"""Functions of torch whose results are moved: what models are made of."""
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


def negligible(model: Any, plain: torch.Tensor) -> float:
    """The `distance` to plain logits that is rounding on any model: draws may round all alike by luck."""
    unit = max(torch.finfo(dtype).eps for dtype in (model.dtype, torch.float32))  # transformers' norms are in float32
    return max(unit, unit**0.5 / 16) * float(plain.where(plain.isfinite(), 0).double().pow(2).mean().sqrt())


def tolerance(model: Any, text: Sequence[int], last: int = 1) -> torch.Tensor:
    """The `distance` to the plain model that rounding explains, a number for each of the last so many tokens.

    Measured on the plain model and these very rows, since texts and tokens amplify rounding by factors that lie far
    apart: the text is evaluated again with every intermediate result moved by a unit of rounding, up or down at random.
    Rounding itself moves a result by half a unit at most, and not every result.
    """
    plain = plain_logits(model, [text], last)
    with _Rounded(model.device):
        moved = plain_logits(model, [text] * _DRAWS, last)
    return distance(moved, plain).amax(0) + negligible(model, plain)


def require_causal(model: Any, text: Sequence[int], last: int = 4) -> None:
    """Try whether another last token leaves the logits of those before it, at most `last`, as they are.

    Raises:
        DraftcertError: it changes them by more than rounding does: the model is not causal.
    """
    text, last = list(text), min(max(last, 4), len(text))
    changed = [*text[:-1], text[0] if text[0] != text[-1] else 1 - min(text[0], 1)]
    plain, other = (plain_logits(model, [each], last)[0, :-1] for each in (text, changed))
    behind = distance(other, plain)
    if (behind > negligible(model, plain)).any() and (behind > tolerance(model, text, last)[:-1]).any():
        raise DraftcertError(
            f"{type(model).__name__} is no causal model as it is: a token changes logits before it by "
            f"{float(behind.max()):.2g}"
        )


class _Rounded(TorchFunctionMode):
    """Within the block, and in this thread only, what sums and products give is moved by a unit of rounding."""

    def __init__(self, device: torch.device):
        super().__init__()
        self._source = torch.Generator(device).manual_seed(0)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "").strip("_") not in _ROUNDING or not torch.is_floating_point(result):
            return result
        unit = max(torch.finfo(dtype).eps for dtype in (result.dtype, torch.float32))
        up = torch.randint(0, 2, result.shape, generator=self._source, device=result.device)
        return result * (1 + unit * (2 * up - 1)).to(result.dtype)


def cached_row(model: Any, prompt: Sequence[int], tokens: Sequence[int]) -> torch.Tensor:
    """Logits `[vocab]` after prompt and tokens by transformers' own cache, one token after the other."""
    with torch.inference_mode():
        output = model(input_ids=torch.tensor([list(prompt)], device=model.device), use_cache=True)
        for token in tokens:
            cache = {name: output[name] for name in ("past_key_values", "cache") if name in output}
            cache = dict(list(cache.items())[-1:])  # where both are there, they are one
            output = model(input_ids=torch.tensor([[token]], device=model.device), use_cache=True, **cache)
    return output.logits[0, -1]
