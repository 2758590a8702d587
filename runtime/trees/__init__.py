"""Draft trees: what drafters propose, what the target accepts of it, the decoder and what it did."""

from .decoder import Generation, GreedyTreeDecoder
from .tree import Tree
from .verify import Verification, verify_tree

__all__ = ["Generation", "GreedyTreeDecoder", "Tree", "Verification", "verify_tree"]
