"""Rows of logits: their statistics, what a rule accepts of them, their certificates; kernels and the reference."""

from .certify import certify, row_stats
from .records import Certificate, RowStats

__all__ = ["Certificate", "RowStats", "certify", "row_stats"]
