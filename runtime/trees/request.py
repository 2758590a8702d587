"""What is asked of a decoder: prompts in every form they come in, and what transformers makes of the options.

transformers itself reads the options: `model.generate(..., custom_generate=function)` prepares logits processors,
stopping criteria, lengths and special tokens, and hands them to the function. Here they are read from there, and
what draft trees cannot honour is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...theory.errors import DraftcertError
from ...theory.imports import optional

States = tuple[torch.Tensor, torch.Tensor]
"""Keys and values `[heads, tokens, dimension]` of one layer."""

_REFUSED = {
    "do_sample": "sampling: drafts are checked against the greedy token; give do_sample=False",
    "num_return_sequences": "several sequences of one prompt: greedy decoding has one",
    "num_beams": "beams: one continuation is decoded",
    "penalty_alpha": "contrastive search",
    "dola_layers": "decoding by contrasting layers",
    "prompt_lookup_num_tokens": "a drafter of transformers: the decoder has its own (drafter='lookup')",
    "assistant_early_exit": "a drafter of transformers: the decoder has its own (drafter='layers:...')",
    "output_attentions": "attentions: a pass over a tree has others",
    "output_hidden_states": "hidden states: a pass over a tree has others",
    "constraints": "constrained beam search",
    "force_words_ids": "constrained beam search",
    "cache_implementation": "another cache: accepted paths need the decoder's own",
    "token_healing": "token healing",
}
"""What the generation configuration may ask for and draft trees cannot give, with the reason."""
_UNDERSTOOD = ("attention_mask", "position_ids", "cache", "past_key_values")
_USUAL = {"do_sample": False, "num_beams": 1, "num_return_sequences": 1}

_OF_ALL_ROWS = frozenset({"UnbatchedClassifierFreeGuidanceLogitsProcessor", "SynthIDTextWatermarkLogitsProcessor"})
"""Logits processors of transformers that remember the whole batch from one step to the next."""


def read_prompts(given: Any) -> tuple[list[list[int]], Any]:
    """Rows of token ids, and the attention mask where one was given with them, as it is.

    `given`: what a tokenizer returns, or ids `[length]` or `[batch, length]` as a tensor, an array or nested sequences,
    whose rows may differ in length.
    """
    mask = None
    if isinstance(given, Mapping):
        if "input_ids" not in given:
            raise DraftcertError(f"the inputs hold {', '.join(map(str, given)) or 'nothing'}, but no input_ids")
        given, mask = given["input_ids"], given.get("attention_mask")
    if isinstance(given, (str, bytes)):
        raise DraftcertError("a prompt is given as token ids, not as text: use the model's tokenizer")
    rows = plain_data(given)
    if not isinstance(rows, list):
        raise DraftcertError(f"input_ids must be integers [length] or [batch, length], not {type(given).__name__}")
    nested = [isinstance(row, list) for row in rows]
    if any(nested) and not all(nested):
        raise DraftcertError("input_ids mix tokens and prompts: give one prompt, or a list of prompts")
    rows = rows if any(nested) else [rows]
    for number, row in enumerate(rows):
        if not row:
            raise DraftcertError(f"prompt {number} is empty: greedy decoding starts from at least one token")
        wrong = next((token for token in row if not isinstance(token, int) or isinstance(token, bool)), None)
        if wrong is not None:
            raise DraftcertError(
                f"input_ids must be integers [length] or [batch, length]; prompt {number} has {wrong!r}"
            )
    return rows, mask


def plain_data(value: Any) -> Any:
    """Tensors, arrays and sequences as nested lists of what they hold."""
    if hasattr(value, "tolist"):
        return plain_data(value.tolist())
    if isinstance(value, (list, tuple, range)):
        return [plain_data(item) for item in value]
    return value


@dataclass
class Request:
    """What one call asks for.

    `given` `[batch, length]`: the ids as they came, padding included. `prompts`: each row's ids without what is masked.
    `max_length`: of a row as given with its new tokens. `processors` and `criteria`: transformers' own. `past`: the
    cache that is to be used and filled. `rows_kept`: of "scores" and "logits" what is to be returned.
    """

    given: torch.Tensor
    mask: torch.Tensor
    prompts: list[list[int]]
    max_length: int
    eos: frozenset[int]
    pad: int
    processors: Any
    criteria: Any
    streamer: Any
    past: Any
    rows_kept: frozenset[str]

    def states_before(self) -> list[list[States]] | None:
        """The states of the texts' beginnings in the cache that was given, for each sequence layer by layer.

        None where it is empty, or where its windows have left some behind: then they are computed anew.
        """
        if self.past is None or not (columns := self.past.get_seq_length()):
            return None
        if columns >= self.given.shape[1]:
            raise DraftcertError(
                f"the cache holds {columns} tokens and input_ids only {self.given.shape[1]}: give the whole text"
            )
        layers = [(layer.keys, layer.values) for layer in self.past.layers]
        if any(keys is None or keys.shape[0] != len(self.prompts) or keys.shape[2] != columns for keys, _ in layers):
            return None
        seen = [row[:columns].bool() for row in self.mask]
        return [
            [(keys[row][:, kept], values[row][:, kept]) for keys, values in layers] for row, kept in enumerate(seen)
        ]

    def refill(self, found: Sequence[tuple[list[States], int]]) -> Any:
        """The cache that was given, with the states of all but the last token; each sequence's, and its new tokens.

        Columns are those of the padded rows, as transformers has them.
        """
        if self.past is None or not all(states for states, _ in found):
            return self.past
        width = self.given.shape[1]
        columns = [
            [*row.nonzero().flatten().tolist(), *range(width, width + new - 1)]
            for row, (_, new) in zip(self.mask, found, strict=True)
        ]
        self.past.reset()
        for layer in range(len(found[0][0])):
            both = []
            for part in (0, 1):
                like = found[0][0][layer][part]
                whole = like.new_zeros(len(found), like.shape[0], max(columns, key=max)[-1] + 1, like.shape[2])
                for row, (states, _) in enumerate(found):
                    whole[row, :, columns[row]] = states[layer][part]
                both.append(whole)
            self.past.update(*both, layer)
        return self.past

    def processed(self, row: int, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores `[1, vocab]` after tokens `[1, length]` of one row, which keeps its place among the rows."""
        rows = len(self.prompts)
        return self.processors(ids.expand(rows, -1), scores.repeat(rows, 1))[row : row + 1]

    def ends(self, row: int, ids: torch.Tensor, scores: Any) -> bool:
        """Whether a criterion ends one row after these tokens `[1, length]`."""
        found = torch.as_tensor(self.criteria(ids.expand(len(self.prompts), -1), scores))
        return bool(found if found.ndim == 0 else found[row])


def read_request(
    input_ids: torch.Tensor,
    logits_processor: Any,
    stopping_criteria: Any,
    generation_config: Any,
    streamer: Any = None,
    **options: Any,
) -> Request:
    """The request in what transformers' `generate` hands on.

    Raises:
        DraftcertError: something that cannot be honoured, by its name.
    """
    for name, reason in _REFUSED.items():
        if (value := getattr(generation_config, name, None)) not in (None, False, _USUAL.get(name)):
            raise DraftcertError(f"{name}={value!r} cannot be honoured with draft trees: {reason}")
    batch, length = input_ids.shape
    if not length:
        raise DraftcertError("input_ids are empty: embeddings as inputs cannot be honoured with draft trees")
    known = {*_UNDERSTOOD, "synced_gpus", "use_cache", "logits_to_keep", "cache_position"}
    for name, value in options.items():
        nothing = not value.any() if isinstance(value, torch.Tensor) else value in (None, {}, (), [])
        if name not in known and not nothing:
            raise DraftcertError(f"{name} cannot be honoured with draft trees: only token ids and their mask are")
    mask = options.get("attention_mask")
    mask = torch.ones_like(input_ids) if mask is None else mask.to(input_ids.device).ne(0).long()
    if mask.shape != input_ids.shape:
        raise DraftcertError(
            f"attention_mask is {list(mask.shape)} and input_ids {list(input_ids.shape)}: give the ids of the "
            "whole text, those in the cache too"
        )
    if not bool(mask[:, -1].all()):
        raise DraftcertError("attention_mask hides the last token of a prompt: pad on the left (padding_side='left')")
    places = options.get("position_ids")
    usual = (mask.cumsum(-1) - 1).clamp(min=0)
    if places is not None and not torch.equal(places.expand(batch, -1)[:, :length] * mask, usual * mask):
        raise DraftcertError("position_ids other than those of the mask cannot be honoured with draft trees")
    if batch > 1:
        if streamer is not None:
            raise DraftcertError(
                f"{type(streamer).__name__} cannot be honoured with {batch} prompts: stream one at a time"
            )
        for processor in logits_processor:
            own = not type(processor).__module__.startswith("transformers.")
            if own or type(processor).__name__ in _OF_ALL_ROWS:
                raise DraftcertError(
                    f"{type(processor).__name__} cannot be honoured with {batch} prompts, which advance at their own "
                    "pace: decode one at a time"
                )
    past = options.get("past_key_values") if options.get("cache") is None else options["cache"]
    if past is not None and type(past).__name__ != "DynamicCache":
        raise DraftcertError(
            f"a {type(past).__name__} cannot be honoured with draft trees: give a DynamicCache, or none"
        )
    eos = getattr(generation_config, "_eos_token_tensor", None)
    pad = getattr(generation_config, "_pad_token_tensor", None)
    returned = generation_config.return_dict_in_generate
    if past is not None and not (returned or past.get_seq_length() or getattr(past, "_is_user_defined", False)):
        past = None  # transformers made it for this call, and nobody will see it
    return Request(
        given=input_ids,
        mask=mask,
        prompts=[row[kept.bool()].tolist() for row, kept in zip(input_ids, mask, strict=True)],
        max_length=generation_config.max_length,
        eos=frozenset() if eos is None else frozenset(eos.flatten().tolist()),
        pad=0 if pad is None else int(pad),
        processors=logits_processor,
        criteria=stopping_criteria,
        streamer=streamer,
        past=past,
        rows_kept=frozenset(
            name for name in ("scores", "logits") if returned and generation_config.to_dict()[f"output_{name}"]
        ),
    )


def with_stop_strings(model: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with a criterion in place of stop strings and tokenizer.

    transformers makes none where another function decodes: it keeps the tokenizer from it.
    """
    options = dict(options)
    tokenizer, asked = options.pop("tokenizer", None), options.pop("stop_strings", None)
    for configuration in (options.get("generation_config"), getattr(model, "generation_config", None)):
        asked = asked or getattr(configuration, "stop_strings", None)
    if not asked:
        return options
    if tokenizer is None:
        raise DraftcertError("stop_strings are found in the text: give the model's tokenizer (tokenizer=...)")
    with optional("hf"):
        from transformers import StoppingCriteriaList, StopStringCriteria

    criteria = StoppingCriteriaList([*(options.get("stopping_criteria") or ()), StopStringCriteria(tokenizer, asked)])
    return options | {"stopping_criteria": criteria, "stop_strings": None}
