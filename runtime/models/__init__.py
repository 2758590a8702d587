"""Target models: loading, the cache that takes drafts back, layers for few rows, passes recorded as CUDA graphs."""

from ..names import default_gguf
from .identity import identity
from .loading import LoadedModel, load_model, load_tokenizer, token_ids

__all__ = ["LoadedModel", "default_gguf", "identity", "load_model", "load_tokenizer", "token_ids"]
