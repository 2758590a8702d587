"""Run it fast: row statistics, certificates, trees and the decoder."""

from .rows import Certificate, RowStats, certify, row_stats
from .trees import GreedyTreeDecoder, Tree, verify_tree

__all__ = ["Certificate", "GreedyTreeDecoder", "RowStats", "Tree", "certify", "row_stats", "verify_tree"]
