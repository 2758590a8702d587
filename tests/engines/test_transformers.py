"""transformers: a pipeline by draft trees writes what it writes by greedy decoding, with our function or our folder."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engines.conftest import PROMPTS
from tests.test_shown import blocks, executed

transformers = pytest.importorskip("transformers")
CHATS = [[{"role": "user", "content": prompt}] for prompt in PROMPTS]
GREEDY: dict[str, Any] = {"do_sample": False, "max_new_tokens": 40, "return_full_text": False}


def pipe(model: Any, folder: Path, **options: Any) -> Any:
    return transformers.pipeline("text-generation", model=model, tokenizer=str(folder), dtype="float32", **options)


@pytest.fixture(scope="module")
def greedy(folder: Path) -> Any:
    return pipe(str(folder), folder)(CHATS, **GREEDY)


def test_a_pipeline_takes_the_function_and_the_folder(
    greedy: Any, folder: Path, passes: list[float], record_property: Callable[..., None]
):
    from draftcert.integrations.transformers import FOLDER, generate

    run = pipe(str(folder), folder)
    assert run(CHATS, **GREEDY, custom_generate=generate) == greedy
    assert run(CHATS, **GREEDY, custom_generate=FOLDER, trust_remote_code=True) == greedy
    assert len(passes) == 2 * len(CHATS)
    assert max(passes) > 1.5
    mean = sum(passes) / len(passes)
    record_property("ran", f"`pipeline` with our function and our folder, output unchanged, {mean:.1f} tokens a pass")


def test_a_repository_with_our_folder_decodes_so_by_itself(
    greedy: Any, folder: Path, passes: list[float], tmp_path: Path, record_property: Callable[..., None]
):
    from draftcert.integrations.transformers import FOLDER

    own = shutil.copytree(folder, tmp_path / "own")
    shutil.copytree(Path(FOLDER) / "custom_generate", own / "custom_generate", ignore=shutil.ignore_patterns("__*"))
    assert pipe(str(own), own, trust_remote_code=True)(CHATS, **GREEDY) == greedy
    assert len(passes) == len(CHATS)
    record_property("ran", "a model's repository with our folder in it, in a `pipeline`")


def test_the_card_of_our_folder_shows_what_works(folder: Path, passes: list[float], tmp_path: Path):
    from draftcert.integrations.transformers import FOLDER

    card = tmp_path / "README.md"
    shown = (Path(FOLDER) / "README.md").read_text()
    card.write_text(shown.replace("MODEL", str(folder)).replace("THIS_REPOSITORY", FOLDER))
    (block,) = blocks(card)
    executed(block, {})
    assert len(passes) == 1
