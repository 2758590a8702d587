"""Run it fast: row statistics, certificates, trees and the decoder."""

from .certify import Certificate, certify, row_stats
from .decoder import GreedyTreeDecoder
from .reference import RowStats
from .tree import Tree
from .verify import verify_tree

__all__ = ["Certificate", "GreedyTreeDecoder", "RowStats", "Tree", "certify", "row_stats", "verify_tree"]
