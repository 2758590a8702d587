"""Draft trees inside transformers' own `generate`.

`model.generate(**inputs, custom_generate=generate)`: transformers reads its arguments and prepares logits processors,
stopping criteria and lengths as always; only the decoding is by draft trees. The output is that of greedy decoding
with the same arguments; what cannot be honoured is refused by name.

The folder `integrations` itself is a repository of custom generation: `model.generate(**inputs,
custom_generate=FOLDER, trust_remote_code=True)`. A model's repository with a copy of `custom_generate` in it decodes so
by itself, in a `pipeline` too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from ..runtime.trees.decoder import GreedyTreeDecoder
from ..runtime.trees.drafters import Combined, Drafter, PromptLookup, TokenRecycling
from ..runtime.trees.request import with_stop_strings
from ..theory.rule import Rule

FOLDER = str(Path(__file__).parent)
"""What `custom_generate` takes as a folder."""

_learned: WeakKeyDictionary[Any, Drafter] = WeakKeyDictionary()
"""What the usual drafter has learned of each model, kept from one call to the next."""


def generate(
    model: Any,
    input_ids: Any,
    logits_processor: Any,
    stopping_criteria: Any,
    generation_config: Any,
    streamer: Any = None,
    drafter: Drafter | str | None = None,
    rule: Rule | str | None = None,
    max_nodes: int = 32,
    **options: Any,
) -> Any:
    """What `model.generate(..., custom_generate=generate)` calls; `drafter`, `rule` and `max_nodes` may be given there.

    Raises:
        DraftcertError: as `GreedyTreeDecoder` and its `generate`.

    >>> from draftcert.runtime.models import load_model
    >>> target = load_model()
    >>> inputs = {"input_ids": target.encode("Name a moon."), "max_new_tokens": 8, "repetition_penalty": 1.1}
    >>> found = target.model.generate(**inputs, custom_generate=generate)
    >>> bool((found == target.model.generate(**inputs)).all())
    True
    """
    if drafter is None:
        drafter = _learned.setdefault(model, Combined(TokenRecycling(), PromptLookup()))
    return GreedyTreeDecoder(model, drafter, rule, max_nodes).custom_generate(
        model, input_ids, logits_processor, stopping_criteria, generation_config, streamer, **options
    )


def generate_from_folder(model: Any, **arguments: Any) -> Any:
    """What `custom_generate/generate.py` calls: all arguments of `model.generate`, not prepared yet."""
    given = {name: value for name, value in arguments.items() if value is not None}
    # Of a model whose own repository holds the folder, `model.generate` is this function.
    return type(model).generate(model, **with_stop_strings(model, given), custom_generate=generate)
