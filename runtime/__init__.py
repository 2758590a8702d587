"""Run it fast: row statistics, certificates, trees and the decoder."""

from .certify import Certificate, certify, row_stats
from .reference import RowStats

__all__ = ["Certificate", "RowStats", "certify", "row_stats"]
