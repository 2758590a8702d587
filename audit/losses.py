"""Losses that train a drafter for acceptance: the divergence above the certificate, and nothing below it.

A position with KL(target || draft) < C is accepted whatever the drafter does there; what it still spends on lowering KL
could have certified another position. The certificate-weighted loss is the hinge `max(KL - inside C, 0)`.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from torch import Tensor

from ..runtime.rows import certify
from ..runtime.rows.inputs import require_tensor
from ..theory import DraftcertError, Rule
from ..theory.numbers import real_number

if TYPE_CHECKING:
    from jaxtyping import Float


def certificate_hinge(
    target_logits: Float[Tensor, "*rows vocab"],
    draft_logits: Float[Tensor, "*rows vocab"],
    rule: Rule | str = "strict_greedy",
    candidates: int = 1,
    inside: float = 1.0,
    plain: float = 0.0,
) -> Float[Tensor, ""]:
    """The mean over rows of `max(KL - inside C, 0) + plain KL`, in nats; differentiable in the draft logits.

    It is 0 exactly where every row has `KL <= inside C`; below 1, `inside` asks for a reserve. The target is held
    fixed: its certificates are constants. A row with C = 0 (a tie) counts with its whole KL, one with C infinite not
    at all. A drafter that gives no probability to a token of the target has an infinite loss.

    Args:
        target_logits, draft_logits: `[..., V]`, of one shape.
        rule, candidates: what will accept the drafts.
        inside: share of the certificate to stay below, in (0, 1].
        plain: weight of plain KL, so that certified rows are still pulled a little.

    Raises:
        DraftcertError: as `runtime.certify`; `inside` or `plain` out of range.

    >>> import torch
    >>> target = torch.tensor([[2.0, 1.0, 0.0]])
    >>> float(certificate_hinge(target, target))
    0.0
    """
    inside, plain = real_number(inside, "inside"), real_number(plain, "plain")
    if not 0 < inside <= 1 or not 0 <= plain < inf:
        raise DraftcertError(f"inside = {inside} must lie in (0, 1], and plain = {plain} must be 0 or more")
    require_tensor(target_logits, "target_logits")
    require_tensor(draft_logits, "draft_logits")
    found = certify(target_logits.detach(), rule, candidates, draft_logits, sound=False)
    assert found.kl is not None  # as there is a drafter
    excess = (found.kl - inside * found.value.detach()).clamp(min=0)
    return (excess + plain * found.kl if plain else excess).mean()
