"""A tiny target and its tokenizer."""

from typing import Any

import pytest
import tokenizers
import transformers

from tests.runtime.conftest import _tiny


@pytest.fixture(scope="session")
def model() -> Any:
    """A random model whose greedy output does not fall into a loop at once."""
    return _tiny("qwen2", 5)


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """Words w0 to w60, one a token, padded on the left."""
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(61)}, unk_token="w0"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="w0", padding_side="left")
