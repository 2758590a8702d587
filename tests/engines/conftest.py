"""What the engines' tests run on: SmolLM2 in the forms that engines load, and prompts whose answers repeat."""

import os
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")  # standard output is what the pages show

PROMPTS = (
    "Repeat this list exactly, three times: Io, Europa, Ganymede, Callisto.",
    "Write a Python function that adds two numbers, then the same function with type hints.",
    "Count from one to twenty in words.",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--page", help="the page whose blocks test_page.py runs")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2 as a folder of float32 safetensors with its tokenizer."""
    from draftcert.runtime.models import load_model

    path = tmp_path_factory.mktemp("smollm2")
    loaded = load_model()
    loaded.model.save_pretrained(path)
    loaded.tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="session")
def prompts(folder: Path) -> list[list[int]]:
    """The prompts as chats, in token ids."""
    import transformers

    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    chats = [[{"role": "user", "content": prompt}] for prompt in PROMPTS]
    return [
        tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=True)["input_ids"] for chat in chats
    ]


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Tokens a pass of every decoding by trees: the proof that it was one. Trees are drafted even where none pays."""
    from draftcert.runtime.trees import decoder

    found: list[float] = []
    decode = decoder.GreedyTreeDecoder._decode

    def counted(*arguments: Any, **options: Any) -> Any:
        result = decode(*arguments, **options)
        found.append(result.stats.tokens_per_pass)
        return result

    monkeypatch.setattr(decoder.GreedyTreeDecoder, "_decode", counted)
    monkeypatch.setattr(decoder, "cached_latency", lambda *_: None)
    return found
