"""Two engines' outputs of one model: identical, within noise, or a fault."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from draftcert.audit import compare_outputs
from draftcert.cli import main
from draftcert.runtime import load_model
from draftcert.theory import DraftcertError

PROMPT, NEW, EOS = [5, 17, 3], 8, 0


@pytest.fixture(scope="module")
def target(tiny_model: Path) -> Any:
    return load_model(str(tiny_model))


@pytest.fixture(scope="module")
def greedy(target: Any) -> list[int]:
    """What transformers decodes."""
    ids = torch.tensor([PROMPT])
    mask = torch.ones_like(ids)
    found = target.model.generate(ids, attention_mask=mask, max_new_tokens=NEW, min_new_tokens=NEW, do_sample=False)
    tokens = found[0, len(PROMPT) :].tolist()
    assert EOS not in tokens
    return tokens


@pytest.fixture(scope="module")
def tied(target: Any, greedy: list[int]) -> Any:
    """The same model with another token whose logit is always that of the greedy token at place 3, and that token."""
    twin = next(token for token in range(1, 30) if token not in greedy)
    model = copy.deepcopy(target)
    with torch.no_grad():
        model.model.lm_head.weight[twin] = model.model.lm_head.weight[greedy[3]]
    return model, twin


def files(folder: Path, first: Any, second: Any) -> list[Path]:
    paths = [folder / "first.jsonl", folder / "second.jsonl"]
    for path, tokens in zip(paths, (first, second), strict=True):
        path.write_text(json.dumps({"id": "1", "prompt_tokens": PROMPT, "tokens": tokens, "more": 0}) + "\n\n")
    return paths


def judged(target: Any, folder: Path, first: Any, second: Any) -> tuple[str, int | None]:
    results = {(each.verdict, each.position) for each in compare_outputs(target, *files(folder, first, second))}
    assert results == {(each.verdict, each.position) for each in compare_outputs(target, *files(folder, second, first))}
    (found,) = results
    return found


def test_the_same_tokens_are_identical_and_another_one_is_a_fault(target: Any, greedy: list[int], tmp_path: Path):
    assert judged(target, tmp_path, greedy, greedy) == ("identical", None)
    wrong = greedy[3] % 30 + 1
    assert judged(target, tmp_path, greedy, [*greedy[:3], wrong, *greedy[4:]]) == ("fault", 3)
    assert judged(target, tmp_path, [*greedy[:7], wrong], [*greedy[:7], wrong % 30 + 1])[0] == "fault"


def test_an_output_that_ends_must_end_there(target: Any, greedy: list[int], tmp_path: Path):
    assert judged(target, tmp_path, greedy[:3], greedy) == ("fault", 3)
    assert judged(target, tmp_path, [], greedy) == ("fault", 0)
    assert judged(target, tmp_path, [*greedy, EOS], greedy) == ("identical", None)  # one shows it, one does not
    assert judged(target, tmp_path, [*greedy[:3], EOS], [*greedy[:3], EOS, 5]) == ("fault", 4)


def test_a_tie_is_within_noise_and_what_follows_it_is_judged(tied: Any, target: Any, greedy: list[int], tmp_path: Path):
    model, twin = tied
    text = torch.tensor([[*PROMPT, *greedy[:3], twin]])
    other = [*greedy[:3], twin]
    while len(other) < NEW:  # the plain model's own tokens behind the twin
        other.append(int(model.model(text).logits[0, -1].argmax()))
        text = torch.tensor([[*PROMPT, *other]])
    assert judged(model, tmp_path, greedy, other) == ("noise", 3)
    assert judged(target, tmp_path, greedy, other) == ("fault", 3)
    astray = [*other[:6], other[6] % 30 + 1, other[7]]
    assert judged(model, tmp_path, greedy, astray) == ("fault", 6)
    assert judged(model, tmp_path, greedy, other[:6]) == ("fault", 6)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "holds no output"),
        ("{", "line 1: not JSON"),
        ("[]", "line 1: no {"),
        ('{"id": 1, "prompt_tokens": [5], "tokens": [1]}', "line 1: no {"),
        ('{"id": "1", "prompt_tokens": [], "tokens": [1]}', "line 1: no {"),
        ('{"id": "1", "prompt_tokens": [5], "tokens": [1.0]}', "line 1: no {"),
        ('{"id": "1", "prompt_tokens": [5], "tokens": [true]}', "line 1: no {"),
        ('{"id": "1", "prompt_tokens": [5], "tokens": [-1]}', "line 1: no {"),
        ('{"id": "1", "prompt_tokens": [5, 17, 3]}', "line 1: no {"),
        ('{"id": "1", "prompt_tokens": [5], "tokens": [1], "tokens": [1]}', "'tokens' stands twice"),
        ('{"id": "2", "prompt_tokens": [5, 17, 3], "tokens": [1]}', "only one of"),
        ('{"id": "1", "prompt_tokens": [5, 17], "tokens": [1]}', "prompts differ"),
        ('{"id": "1", "prompt_tokens": [5, 17, 3], "tokens": [999]}', "token 999"),
        ('{"id": "1", "prompt_tokens": [5, 17, 3], "tokens": [1]}\n' * 2, "line 2: the id '1' stands twice"),
    ],
)
def test_files_that_cannot_be_compared_are_refused(target: Any, tmp_path: Path, line: str, message: str):
    for place in (0, 1):
        paths = files(tmp_path, [1], [1])
        paths[place].write_text(line)
        with pytest.raises(DraftcertError, match=message):
            list(compare_outputs(target, *paths))


def test_two_empty_outputs_are_no_pass(target: Any, tmp_path: Path):
    with pytest.raises(DraftcertError, match="neither"):
        judged(target, tmp_path, [], [])


def test_the_command_exits_0_1_and_2(
    tiny_model: Path, greedy: list[int], tmp_path: Path, monkeypatch: Any, capsys: Any
):
    def run(*arguments: Any) -> Any:
        monkeypatch.setattr("sys.argv", ["draftcert", "conform", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        return left.value.code or 0, *capsys.readouterr()

    model = ("--model", tiny_model)
    code, out, _ = run("--lossless", *files(tmp_path, greedy, greedy), *model)
    assert (code, out) == (0, "identical (1 identical)\n")
    code, out, _ = run("--lossless", *files(tmp_path, greedy, greedy[:3]), *model)
    assert code == 1
    assert out.startswith("1, new token 3: fault: ")
    code, out, _ = run("--lossless", *files(tmp_path, greedy, greedy[:3]), *model, "--json")
    assert (code, json.loads(out)["verdict"]) == (1, "fault")
    assert run("--lossless", *files(tmp_path, greedy, [99]), *model)[0] == 2
    assert run("--lossless", *files(tmp_path, greedy, greedy))[0] == 2
    assert run()[0] == 2

    vectors, answers = tmp_path / "vectors.json", tmp_path / "answers.json"
    assert run("--out", vectors)[0] == 0
    written = json.loads(vectors.read_text())
    right = {case["id"]: case["expected"] for case in written["cases"] if case["suite"] == "greedy/chain"}
    head = {"format": written["format"], "vectors_sha256": written["sha256"], "engine": "mine\x1b[2J"}
    for given, wanted in ((right, 0), (right | {"greedy/chain/tie.float32": {}}, 1), ({"x": {}}, 2)):
        answers.write_text(json.dumps(head | {"suites": ["greedy/chain"], "answers": given}))
        code, out, _ = run("--check", answers)
        assert code == wanted
        assert "\x1b" not in out
    answers.write_text("")
    assert run("--check", answers)[0] == 2
