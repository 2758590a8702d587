"""Drafters: where the trees come from."""

from .base import Drafter, HitRate, Observation, SuccessorDrafter, grow
from .token_recycling import TokenRecycling

__all__ = ["Drafter", "HitRate", "Observation", "SuccessorDrafter", "TokenRecycling", "grow"]
