"""Drafters: where the trees come from."""

from .assistant import Assistant, skip_layers
from .base import Drafter, HitRate, Observation, SuccessorDrafter, grow
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
    "TokenRecycling",
    "Union",
    "grow",
    "skip_layers",
]
