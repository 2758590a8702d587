"""A tiny target and its tokenizer."""

import string
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
    """Letters and digits, one a token, padded on the left."""
    letters = (string.digits + string.ascii_letters)[:61]
    model = tokenizers.models.WordLevel({letter: number for number, letter in enumerate(letters)}, unk_token="0")
    characters = tokenizers.Tokenizer(model)
    characters.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex("."), "isolated")
    characters.decoder = tokenizers.decoders.Fuse()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=characters, pad_token="0", padding_side="left")
