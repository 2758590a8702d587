"""Every other command."""

import json

import pytest


def test_help_lists_every_command(draftcert):
    run = draftcert("--help")
    assert run.returncode == 0
    for command in (
        "derive",
        "check",
        "validate",
        "certify",
        "verify",
        "codegen",
        "generate",
        "explain",
        "conform",
        "audit",
        "recommend",
        "bench",
    ):
        assert command in run.stdout


def test_derive_tells_a_part_and_refuses_what_it_does_not_know(draftcert):
    found = json.loads(draftcert("derive", "--only", "tree", "--json").stdout)
    assert {theorem["name"] for theorem in found["theorems"]} >= {"M6", "M7"}
    run = draftcert("derive", "--only", "unheard-of")
    assert run.returncode == 2
    assert "nothing speaks of 'unheard-of'" in run.stderr


def test_check_decides_one_theorem_and_says_what_coq_did_not(draftcert):
    run = draftcert("check", "--only", "T5", "--no-coq", "--json")
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert [theorem["proved"] for theorem in found["theorems"]] == [True]
    assert "T5_strict_greedy" in found["not_checked_formally"]
    assert found["formal"] is None


def test_cite_names_the_source_of_a_rule_and_of_a_theorem(draftcert):
    found = json.loads(draftcert("cite", "medusa_typical(0.09, 0.3)", "T5", "--json").stdout)
    assert "arXiv 2401.10774" in found["medusa_typical(0.09, 0.3)"]
    assert "arXiv 2606.30265" in found["T5"]
    assert "M7" in draftcert("cite").stdout
    run = draftcert("cite", "no_such_rule")
    assert run.returncode == 2
    assert "no_such_rule" in run.stderr


def test_the_generated_code_is_current(draftcert):
    run = draftcert("codegen", "--check", "--json")
    assert run.returncode == 0, run.stdout + run.stderr
    assert json.loads(run.stdout) == {"ok": True, "written": [], "stale": []}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate"], "--prompt or as --prompts"),
        (["generate", "--prompt", "x", "--rule", "no_such_rule"], "no rule is called 'no_such_rule'"),
        (["check", "--only", "T99"], "T99"),
        (["check", "--bridge", "--no-coq"], "--bridge needs Coq"),
        (["validate", "--profile", "unheard-of"], "no profile is called 'unheard-of'"),
    ],
)
def test_bad_input_is_exit_2_and_named(draftcert, arguments, message):
    run = draftcert(*arguments)
    assert run.returncode == 2, run.stdout + run.stderr
    assert message in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.model
def test_generate_compares_traces_and_explains(draftcert, tmp_path):
    prompt = "List three rivers."
    first, second, trace = (tmp_path / name for name in ("first.json", "second.json", "steps.jsonl"))
    run = draftcert("generate", "--prompt", prompt, "--max-new-tokens", 16, "--compare", "--trace", trace, "--json")
    assert run.returncode == 0, run.stdout + run.stderr
    (record,) = json.loads(run.stdout)["prompts"]
    assert record["identical"] is True
    assert record["new_tokens"] == len(record["tokens"]) <= 16
    steps = [json.loads(line) for line in trace.read_text().splitlines()]
    assert sum(len(step["tokens"]) for step in steps) == record["new_tokens"]
    assert len(steps) == record["target_passes"]

    document = json.loads(run.stdout)
    document["prompts"] = [record, record | {"id": "again"}]
    first.write_text(json.dumps(document))
    document["prompts"][1]["tokens"] = [*record["tokens"][:3], record["tokens"][3] + 1, *record["tokens"][4:]]
    second.write_text(json.dumps(document))
    run = draftcert("explain", first, second, "--json")
    assert run.returncode == 1, run.stderr
    same, explained = json.loads(run.stdout)["outputs"]
    assert same["verdict"] == "identical"
    assert explained["position"] == 3
    assert explained["verdict"] == "broken promise"
    second.write_text(json.dumps(document | {"same_bits": None}))
    _, explained = json.loads(draftcert("explain", first, second, "--json").stdout)["outputs"]
    assert explained["verdict"] in ("different rule", "true error")
