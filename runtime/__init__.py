"""Run it fast: row statistics, certificates, trees and the decoder."""

from typing import TYPE_CHECKING

from ..theory.imports import lazy_names

if TYPE_CHECKING:
    from .models import LoadedModel, default_gguf, identity, load_model, load_tokenizer, token_ids
    from .rows import Certificate, RowStats, certify, row_stats
    from .trees import Generation, GreedyTreeDecoder, Tree, Verification, verify_tree
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Certificate",
    "Generation",
    "GreedyTreeDecoder",
    "LoadedModel",
    "RowStats",
    "Tree",
    "Verification",
    "certify",
    "default_gguf",
    "identity",
    "load_model",
    "load_tokenizer",
    "row_stats",
    "token_ids",
    "verify_tree",
]
