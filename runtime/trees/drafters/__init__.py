"""Drafters: where the trees come from."""

from .assistant import Assistant, keep_layers
from .base import Drafter, HitRate, Observation, SuccessorDrafter, grow
from .by_name import draft_model, drafter_by_name, require_own_tokens
from .combined import Combined
from .prior import SuccessorTable, cached_successors, successor_table
from .prompt_lookup import PromptLookup
from .token_recycling import TokenRecycling

__all__ = [
    "Assistant",
    "Combined",
    "Drafter",
    "HitRate",
    "Observation",
    "PromptLookup",
    "SuccessorDrafter",
    "SuccessorTable",
    "TokenRecycling",
    "cached_successors",
    "draft_model",
    "drafter_by_name",
    "grow",
    "keep_layers",
    "require_own_tokens",
    "successor_table",
]
