"""`draftcert generate` and `explain` with a tiny model in a folder."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
import transformers
from platformdirs import user_cache_path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A model of 61 words, and a cache of its own for what is kept about it; compiled kernels are shared."""
    cache = tmp_path / "cache" / "draftcert"
    cache.mkdir(parents=True)
    with contextlib.suppress(FileNotFoundError):
        shutil.copytree(user_cache_path("draftcert") / "native", cache / "native")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"vocab_size": 61, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    heads: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256}
    config = transformers.LlamaConfig(**sizes, **heads, bos_token_id=None, eos_token_id=None, pad_token_id=0)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(6)
    model.save_pretrained(tmp_path / "model")
    ids = {f"w{i}": i for i in range(61)}
    # Not "w0" for unknown words: that is the padding, whose embedding is 0.
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(ids, unk_token="w1"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def generate(draftcert, folder: Path, drafter: str, *options: str):
    return draftcert(
        *("generate", "--target", folder, "--prompt", "w5 w17 w3", "--max-new-tokens", 24),
        *("--drafter", drafter, "--compare", "--json", *options),
    )


def test_every_drafter_at_once_gives_greedy_output(draftcert, folder, tmp_path):
    run = generate(draftcert, folder, f"recycling:prior,static+lookup+layers:0+{folder}", "--cost-aware")
    assert run.returncode == 0, run.stdout + run.stderr
    (record,) = json.loads(run.stdout)["prompts"]
    assert record["identical"] is record["lossless"] is True
    assert record["new_tokens"] == 24
    assert record["tokens_per_pass"] > 1.5  # the assistant is the target itself
    # What follows each token was asked once, and is kept for the next time.
    (kept,) = (tmp_path / "cache" / "draftcert" / "successors").iterdir()
    assert len(json.loads(kept.read_text())["value"]) == 61
    assert len(list((tmp_path / "cache" / "draftcert" / "latency").iterdir())) <= 1  # none if the machine is busy


def test_outputs_to_explain_are_text_unless_they_are_lists_or_objects(draftcert, folder, tmp_path):
    files = {"word": "w5", "quoted": '"w5"', "number": "5", "numbers": "[5]", "truth": "[true]"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    def explained(one, other):
        pair = (tmp_path / one, tmp_path / other)
        return draftcert("explain", *pair, "--prompt", "w3", "--target", folder)

    assert explained("word", "numbers").stdout.startswith("output: identical")
    for other in ("quoted", "number"):
        assert explained("word", other).stdout.startswith("output: true error"), other
    refused = explained("numbers", "truth")
    assert refused.returncode == 2
    assert "truth holds neither outputs" in " ".join(refused.stderr.split())


def test_the_health_of_a_drafter_is_told_and_counted(draftcert, folder, tmp_path):
    run = generate(draftcert, folder, "recycling", "--metrics", tmp_path / "metrics.prom")
    (record,) = json.loads(run.stdout)["prompts"]
    counts = dict(line.rsplit(" ", 1) for line in (tmp_path / "metrics.prom").read_text().splitlines())
    labels = f'{{engine="0",model_name="{folder}"}}'
    assert float(counts[f"vllm:generation_tokens_total{labels}"]) == record["new_tokens"]
    assert float(counts[f"draftcert:target_passes_total{labels}"]) == record["target_passes"]
    assert record["warnings"] == []
    assert record["longest_zero_streak"] >= 0
    assert all(0 <= share <= 1 for share in record["acceptance_by_depth"])


def test_the_demo_shows_what_it_says_without_noise(folder):
    run = subprocess.run(
        [sys.executable, "-m", "draftcert.cli.demo", "--target", folder, "--max-new-tokens", "8"],
        capture_output=True,
        text=True,
        timeout=250,
        env=os.environ | {"COLUMNS": "40"},
    )
    assert (run.returncode, run.stderr) == (0, "")
    out = " ".join(run.stdout.split())
    # Independent: 0.5 ln(0.5/0.4) + 0.3 ln(0.3/0.4).
    assert "C = 0.02526715392 nats" in out
    assert "the worst drafter, 0.4, 0.4, 0.2, lies 0.0252671539 nats away" in out
    assert re.search(r"Decided just now, by exact algebra: (\d+) of \1 claims hold", out)
    assert re.search(r"at least \d{2,3} digits agree", out)
    assert re.search(r"Together: 24 tokens in \d+ passes of .* times the speed .* 3 of 3 texts identical", out)
    assert "48 + 24 = 72, which it does not say above), and its mistakes are reproduced" in out
    commands = [line for line in run.stdout.splitlines() if line.startswith("draftcert ")]
    assert len(commands) == 5, "each in one line, to be copied"
    prose = [line for line in run.stdout.splitlines() if line not in commands and not line.startswith(("> ", "w"))]
    assert max(map(len, prose)) <= 40


def test_doctor(draftcert, folder):
    run = draftcert("doctor", folder, "--json")
    found = json.loads(run.stdout)
    assert (run.returncode, found["right"], found["tried"], found["later"]) == (0, True, [0], [])
    assert found["not_fast"] is None
    said = draftcert("doctor", folder).stdout
    assert "right" in said
    assert "the same bits in any company" in said
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    model.config.update({"hidden_act": "relu"})
    model.save_pretrained(folder)
    run = draftcert("doctor", folder)
    assert run.returncode == 0
    assert "through transformers' layers" in run.stdout.lower().replace("\n", " ")
    assert "the activation ReLU is not known" in run.stdout.replace("\n", " ")
    tokens = json.loads((folder / "config.json").read_text())["vocab_size"]
    sizes: dict[str, Any] = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes["intermediate_size"] = 16
    transformers.BertLMHeadModel(transformers.BertConfig(vocab_size=tokens, **sizes)).save_pretrained(folder)
    run = draftcert("doctor", folder)
    assert run.returncode == 1
    assert "BertLMHeadModel is no causal model" in run.stdout


@pytest.mark.parametrize(
    ("drafter", "message"),
    [("recycling:prior,later", "recycling takes 'prior'"), ("layers:0-7", "0 to 1")],
)
def test_drafters_that_do_not_exist(draftcert, folder, drafter, message):
    run = generate(draftcert, folder, drafter)
    assert run.returncode == 2
    assert message in run.stderr
    assert "Traceback" not in run.stderr


def test_prompts_ids_and_errors_cannot_act_on_the_terminal(draftcert, folder, tmp_path):
    prompts, name = tmp_path / "prompts.jsonl", "1\nverdict: identical\x1b[2J\u202e"
    prompts.write_text(json.dumps({"id": name, "prompt": "w5 \x1b]0;w3\a w17\n1: identical"}))
    options = ("--target", folder, "--max-new-tokens", 4)
    code, out, errors = draftcert("generate", "--prompts", prompts, *options, "--show", "--compare")
    assert code == 0
    assert "> w5 \\x1b]0;w3\\x07 w17\n> 1: identical\n" in out
    assert "└── " in out
    assert "[green]" not in out
    assert all(character.isprintable() or character == "\n" for character in out)
    output = tmp_path / "output.json"
    output.write_text(
        json.dumps({"target": str(folder), "prompts": [{"id": name, "prompt_tokens": [5], "tokens": [3]}]})
    )
    code, out, errors = draftcert("explain", output, output)
    assert code == 0
    assert out.startswith("1\\nverdict: identical\\x1b[2J\\u202e: identical. ")
    assert out.count("\n") == 1
    code, out, errors = draftcert("generate", "--prompts", tmp_path / "none\x1b[2J\nerror: none", *options)
    assert code == 2
    assert "none\\x1b[2J\n  error: none" in errors
