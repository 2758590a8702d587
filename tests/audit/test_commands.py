import json
import sys

import pytest

from draftcert.cli import main


@pytest.fixture
def run(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["draftcert", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        return left.value.code or 0, capsys.readouterr()

    return run


@pytest.fixture(scope="module")
def prompt_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("p") / "prompts.txt"
    file.write_text("where do magpies nest?\nwhy\n")
    return file


def test_audit_writes_a_report_and_says_where(run, tiny_model, prompt_file, tmp_path):
    folder = tmp_path / "audit"
    arguments = (
        "audit",
        "--target",
        tiny_model,
        "--drafter",
        "layers:0,2-3",
        "--prompts",
        prompt_file,
        "--out",
        folder,
    )
    code, printed = run(*arguments, "--max-new-tokens", 3, "--rule", "strict_greedy", "--candidates", 1, "--limit", 1)
    assert code == 0
    assert f"report: {folder / 'report.html'}" in printed.out.replace("\n", "")
    assert printed.out.startswith("What is guaranteed: ")
    assert (folder / "report.html").stat().st_size > 10_000
    code, printed = run(*arguments, "--max-new-tokens", 4)
    assert code == 2
    assert "give another one" in printed.err.replace("\n", " ")


def test_reproduce_leaves_short_prompts_out(run, tiny_model, prompt_file, tmp_path):
    arguments = ("reproduce", "--target", tiny_model, "--prompts", prompt_file, "--steps", 3, "--out", tmp_path / "r")
    code, printed = run(*arguments, "--min-prompt-tokens", 10, "--json")
    assert code == 0
    document = json.loads(printed.out)
    assert document["facts"]["prompts"] == 1
    assert document["tables"]["beside_published"]["columns"][3:] == ["Qwen3-1.7B", "Qwen3-4B"]
    code, printed = run(*arguments)
    assert code == 2
    assert "no prompt has 64 tokens" in printed.err


def test_recommend_says_whether_anything_reaches_it(run, audited):
    code, printed = run("recommend", audited, "--acceptance", 0.5, "--by", "measured")
    assert code == 0
    assert "relaxed_topk: " in printed.out
    assert "Not promised" in printed.out
    assert "nodes " in printed.out
    assert "audited drafter" not in printed.out
    code, printed = run("recommend", audited, "--mean-kl", 0.001)
    assert "the audited drafter's" in printed.out
    code, printed = run("recommend", audited, "--acceptance", 1, "--by", "certified", "--json")
    assert code == 1
    assert not any(each["reached"] for each in json.loads(printed.out)["recommendations"])


def test_logprobs_prints_certificates_and_no_claim_about_a_drafter(run, tmp_path):
    file = tmp_path / "response.json"
    top = [{"token": "a", "logprob": -0.5108256237659907}, {"token": "b", "logprob": -0.916290731874155}]
    file.write_text(json.dumps({"choices": [{"logprobs": {"content": [{**top[0], "top_logprobs": top}]}}]}))
    code, printed = run("audit", "logprobs", file, "--vocab-size", 2)
    assert code == 0
    assert "0.0201" in printed.out
    assert "nothing here certifies a drafter" in printed.out.replace("\n", " ")
    code, printed = run("audit", "logprobs", file, "--json")
    assert json.loads(printed.out)["positions"][0]["determined"]
