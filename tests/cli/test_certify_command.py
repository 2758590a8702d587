"""`draftcert certify`."""

import json

import pytest


def test_a_tree_node_of_two_candidates(draftcert):
    run = draftcert("certify", "--probs", "0.5,0.45,0.05", "--candidates", "2", "--digits", "30")
    assert run.returncode == 0, run.stderr
    # Independent: 0.5 ln(20/11) + 0.05 ln(2/11) with mpmath at 40 digits.
    assert "0.213681095765888962954404426263 nats" in run.stdout
    assert "11/40" in run.stdout


def test_json_is_one_document_with_every_field(draftcert):
    run = draftcert("certify", "--probs", "2/5 7/20 1/4", "--rule", "additive(0.1)", "--json")
    found = json.loads(run.stdout)
    assert found["certificate"].startswith("0.018084")
    assert found["accepted"] == [0, 1]
    assert found["competitors"] == [2]
    assert found["pool"] == [0, 1, 2]
    assert found["rule"] == "additive(1/10)"


def test_an_infinite_certificate_and_json_from_a_file(draftcert, tmp_path):
    file = tmp_path / "p.json"
    file.write_text("[0.5, 0.5]")
    run = draftcert("certify", "--file", str(file), "--rule", "multiplicative(0.9)", "--json")
    assert json.loads(run.stdout)["certificate"] == "+inf"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--probs", "0.5,-0.1,0.6"], "probability 1 is -1/10"),
        (["--probs", "0.5,nan"], "nan"),
        (["--probs", "0.5,0.5", "--rule", "fuzzy(0.1)"], "fuzzy"),
        ([], "--probs"),
    ],
)
def test_bad_input_is_exit_2_and_named(draftcert, arguments, message):
    run = draftcert("certify", *arguments)
    assert run.returncode == 2
    assert message in run.stderr
    assert "Traceback" not in run.stderr
    assert run.stdout == ""


def test_a_witness_file_is_confirmed_and_a_changed_one_is_not(draftcert, tmp_path):
    file = tmp_path / "witness.json"
    run = draftcert("certify", "--probs", "0.5,0.45,0.05", "--candidates", "2", "--digits", "5", "--witness", file)
    assert run.returncode == 0, run.stderr
    run = draftcert("verify", file)
    assert (run.returncode, run.stdout.partition(" nats")[0]) == (0, "confirmed: C = 2.1368e-1")
    file.write_text(file.read_text().replace("2.1368e-1", "2.1369e-1"))
    run = draftcert("verify", file, "--json")
    assert run.returncode == 1
    assert json.loads(run.stdout) == {"confirmed": False, "text": "the file was changed"}
