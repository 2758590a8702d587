"""What the public functions take for rows of logits, and the errors about everything else."""

from __future__ import annotations

import torch
from torch import Tensor

from ...theory import DraftcertError
from ...theory.numbers import whole_number

FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


def require_tensor(logits: object, name: str) -> None:
    """Refuse what is no tensor."""
    if not isinstance(logits, Tensor):
        raise DraftcertError(f"{name} must be a torch tensor, not {type(logits).__name__}")


def without_padding(logits: Tensor, vocab_size: int | None, name: str) -> Tensor:
    """The logits of the vocabulary proper, or a named error where these are no logits."""
    require_tensor(logits, name)
    if logits.dtype not in FLOATS:
        raise DraftcertError(f"{name} of dtype {logits.dtype}: float32, bfloat16, float16 and float64 are supported")
    if logits.layout != torch.strided:
        raise DraftcertError(f"{name} of layout {logits.layout}: dense tensors are supported")
    if logits.dim() == 0 or logits.shape[-1] == 0:
        raise DraftcertError(f"{name} of shape {tuple(logits.shape)} have no tokens: the last axis is the vocabulary")
    if vocab_size is None:
        return logits
    return logits[..., : whole_number(vocab_size, "vocab_size", 1, logits.shape[-1], f", the last axis of {name}")]


def refuse_rows(rows: Tensor, maximum: Tensor, shape: torch.Size, name: str = "logits") -> None:
    """Raise for the first row that is no row of logits, given each row's maximum (NaN where a logit is NaN)."""
    if bool((maximum.abs() < torch.inf).all()):
        return
    row = int((~torch.isfinite(maximum)).nonzero()[0])
    place = ", ".join(str(int(i)) for i in torch.unravel_index(torch.tensor(row), shape)) if shape else ""
    where = f"{name}[{place}]" if place else name
    if bool((rows[row] == -torch.inf).all()):
        raise DraftcertError(f"{where}: all {rows.shape[-1]} logits are -inf, which is no distribution")
    bad = rows[row].isnan() | (rows[row] == torch.inf)
    if not bool(bad.any()):
        most = float(rows[row].max())
        raise DraftcertError(f"{where}: {most} over the temperature overflows; for temperature 0 use strict_greedy")
    token = int(bad.nonzero()[0])
    raise DraftcertError(
        f"{where}: the logit of token {token} is {float(rows[row, token])}; mask tokens with -inf only"
    )
