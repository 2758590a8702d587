"""A model with a tokenizer, in a folder."""

from pathlib import Path
from typing import Any

import pytest
import tokenizers
import transformers


@pytest.fixture
def folder(tmp_path: Path, tiny: Any) -> Path:
    tiny().save_pretrained(tmp_path / "model")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(61)}, unk_token="w0"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(tmp_path / "model")
    return tmp_path / "model"
