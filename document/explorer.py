"""The explorer: one HTML page, complete in itself, that certifies a row the reader drags or pastes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal
from urllib.parse import quote, urlencode

from ..theory import Rule, parse_rule

Kind = Literal["probabilities", "logits", "logprobs"]


def explorer_fragment(
    rule: Rule | str,
    numbers: Iterable[Any],
    candidates: int = 1,
    *,
    kind: Kind = "probabilities",
    logit_ratio: Any = None,
) -> str:
    """The end of a link into the explorer that opens it at an example, from `#` on.

    Args:
        rule: a rule or its text, of the families that `parse_rule` knows.
        numbers: the row: probabilities, logits or top log-probabilities, as numbers or text such as "9/20".
        candidates: how many tokens the drafter proposes.
        kind: what `numbers` are.
        logit_ratio: z_(2)/z_(1), for rules that compare logits.

    Raises:
        DraftcertError: no rule that can be read from its text.

    >>> explorer_fragment("top_m(2) & additive(0.1)", ["1/2", "9/20", "1/20"], 2)
    '#rule=top_m(2)%20%26%20additive(1/10)&probabilities=1/2,9/20,1/20&candidates=2'
    """
    state = {
        "rule": str(parse_rule(str(parse_rule(rule)))),
        kind: ",".join(map(str, numbers)),
        "candidates": str(candidates),
        **({} if logit_ratio is None else {"logit_ratio": str(logit_ratio)}),
    }
    return "#" + urlencode(state, quote_via=quote, safe="(),/")
