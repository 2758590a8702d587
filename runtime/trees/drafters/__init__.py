"""Drafters: where the trees come from."""

from .assistant import Assistant, skip_layers
from .base import Drafter, HitRate, Observation, SuccessorDrafter, grow
from .prior import SuccessorTable, cached_successors, successor_table
from .prompt_lookup import PromptLookup
from .token_recycling import TokenRecycling
from .union import Union

__all__ = [
    "Assistant",
    "Drafter",
    "HitRate",
    "Observation",
    "PromptLookup",
    "SuccessorDrafter",
    "SuccessorTable",
    "TokenRecycling",
    "Union",
    "cached_successors",
    "grow",
    "skip_layers",
    "successor_table",
]
