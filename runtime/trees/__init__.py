"""Draft trees: what drafters propose, what the target accepts of it, the decoder and what it did."""

from .decoder import GreedyTreeDecoder
from .tree import Tree
from .verify import verify_tree

__all__ = ["GreedyTreeDecoder", "Tree", "verify_tree"]
