import json
import math
import pickle
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch

from draftcert.audit.measure import Grid
from draftcert.audit.records import Audit
from draftcert.audit.run import Configuration, Worker, actors, made_by, place, run_audit
from draftcert.runtime.models import identity, load_model
from draftcert.runtime.trees.drafters.by_name import draft_model
from draftcert.support.files import is_sealed
from draftcert.support.locks import locked
from draftcert.theory import DraftcertError, parse_rule

GRID = Grid(("strict_greedy", "top_m(3) & additive(0.2)"), (1, 2))


@pytest.fixture
def configuration(tiny_model):
    return Configuration(str(tiny_model), "layers:0-1,3", 12, grid=GRID)


def table(folder):
    return pq.read_table(folder / "positions.parquet")


@pytest.fixture(scope="module")
def expected(tiny_model, prompts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sequential")
    run_audit(folder, Configuration(str(tiny_model), "layers:0-1,3", 12, grid=GRID), prompts)
    return table(folder)


def test_the_measured_rows_are_the_target_s_greedy_text(expected, tiny_model, prompts):
    target = load_model(tiny_model)
    ids = target.encode(prompts[0].text)
    generated = target.model.generate(ids, do_sample=False, max_new_tokens=12)[0, ids.shape[1] :].tolist()
    first = expected.filter([prompt == 0 for prompt in expected["prompt"].to_pylist()])
    assert first["target_token"].to_pylist() == generated
    assert first["position"].to_pylist() == list(range(len(generated)))


def test_processes_give_the_same_table(fork, configuration, prompts, tmp_path):
    """Also of a rule of one's own: through worker processes and back from disk, where its family is not known."""
    grid = Grid((*GRID.rules, fork("0.2"), "multiplicative(0.2)"), GRID.candidates)
    configuration = replace(configuration, grid=grid)
    run_audit(tmp_path / "processes", configuration, prompts, processes=2)
    run_audit(tmp_path / "here", configuration, prompts)
    assert table(tmp_path / "processes").equals(table(tmp_path / "here"))
    audit = Audit.open(tmp_path / "processes")
    *_, own, registered = audit.configuration.grid.names
    assert own != registered
    assert (audit.certificates(own, 1) <= audit.certificates(registered, 1)).all()
    assert audit.configuration.grid.hashes[own] == fork("0.2").sha256
    other = replace(grid, rules=(*GRID.rules, fork("0.3"), "multiplicative(0.2)"))
    with pytest.raises(DraftcertError, match=r"is of another run, configuration\.grid"):
        run_audit(tmp_path / "processes", replace(configuration, grid=other), prompts)


def test_a_rule_that_was_another_one_is_not_read(tiny_model, prompts, tmp_path):
    run_audit(tmp_path, Configuration(str(tiny_model), None, 2, grid=Grid(("top_m(2)",), (1,))), prompts[:1])
    file = tmp_path / "audit.json"
    file.write_text(file.read_text().replace(parse_rule("top_m(2)").sha256, parse_rule("top_m(3)").sha256))
    with pytest.raises(DraftcertError, match="was another one"):
        Audit.open(tmp_path)


def test_the_drafter_is_judged_on_the_prefix_before_each_position(expected, tiny_model, prompts):
    target = load_model(tiny_model)
    ids = target.encode(prompts[0].text)
    tokens = target.model.generate(ids, do_sample=False, max_new_tokens=12)
    draft = draft_model("layers:0-1,3", target)
    ranks = expected["draft_rank"].to_pylist()
    with torch.inference_mode():
        for step in range(tokens.shape[1] - ids.shape[1]):
            row = draft(tokens[:, : ids.shape[1] + step]).logits[0, -1]
            place = row.argsort(descending=True).tolist().index(int(tokens[0, ids.shape[1] + step]))
            assert ranks[step] == place + 1


def test_skipping_layers_leaves_the_target_as_it_was_and_equals_a_model_without_them(tiny_model):
    target = load_model(tiny_model)
    ids = target.encode("a tale")
    before = target.model(ids).logits
    drafted = draft_model("layers:0,2", target)(ids, use_cache=False).logits
    assert torch.equal(target.model(ids).logits, before)
    smaller = load_model(tiny_model).model
    smaller.model.layers = torch.nn.ModuleList(smaller.model.layers[number] for number in (0, 2))
    smaller.config.num_hidden_layers = 2
    assert torch.equal(smaller(ids, use_cache=False).logits, drafted)


@pytest.mark.parametrize("text", ["", "x", "4", "1-", "2--3", "-1", "3-1", "0-999999999"])
def test_layers_that_there_are_not_are_refused(text, tiny_model):
    with pytest.raises(DraftcertError, match="layers"):
        draft_model(f"layers:{text}", load_model(tiny_model))


def test_another_vocabulary_is_refused(tiny_model, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(tiny_model, other)
    file = other / "tokenizer.json"
    file.write_text(file.read_text().replace('"a": 1,', '"b": 1,').replace('"b": 2,', '"a": 2,'))
    with pytest.raises(DraftcertError, match="different vocabularies: token 'a' is 1 in the target and 2"):
        draft_model(str(other), load_model(tiny_model))


def test_gpus_are_shared_by_processes_and_by_the_actors_of_a_cluster():
    assert [place("cuda", number, 2) for number in range(4)] == ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]
    assert place("cuda:1", 3, 2) == "cuda:1"
    assert place("auto", 1, 2) == "auto"
    nodes = [{"CPU": 16.0, "GPU": 8.0}, {"CPU": 4.0}, {"CPU": 16.0, "GPU": 4.0}]
    assert actors("cuda", nodes) == (12, 1)
    assert actors("auto", nodes) == (3, 4)
    assert actors("cpu", nodes) == (36, 0)
    assert actors("auto", [{"CPU": 4.0}]) == (4, 0)
    assert actors("cuda", [{"CPU": 4.0}])[0] == 0
    with pytest.raises(DraftcertError, match="give cuda"):
        actors("cuda:1", nodes)


def test_a_target_placed_by_accelerate_gives_the_same_table(tiny_model, expected, prompts, tmp_path, monkeypatch):
    """A model over several GPUs has a hook at each part that moves its inputs; here all of them lead to the CPU."""
    from accelerate import dispatch_model

    def spread(name, dtype, device):
        assert device == "auto"
        loaded = load_model(name, dtype, device)
        parts = [f"model.{part}" for part in ("embed_tokens", "norm", "rotary_emb", *(f"layers.{n}" for n in range(4)))]
        dispatch_model(loaded.model, dict.fromkeys([*parts, "lm_head"], "cpu"), force_hooks=True)
        return loaded

    monkeypatch.setattr("draftcert.audit.run.load_model", spread)
    run_audit(tmp_path, Configuration(str(tiny_model), "layers:0-1,3", 12, device="auto", grid=GRID), prompts)
    assert table(tmp_path).equals(expected)


KILLED = """
import multiprocessing, os, pickle, signal, sys
from draftcert.audit.run import run_audit

def kill(done, total):
    if done == 2:
        print(*(child.pid for child in multiprocessing.active_children()), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    run_audit(*pickle.load(open(sys.argv[1], "rb")), processes=2, progress=kill)
"""


def test_a_killed_run_ends_with_its_processes_and_goes_on(configuration, expected, prompts, tmp_path, monkeypatch):
    program, given, folder = tmp_path / "program.py", tmp_path / "given", tmp_path / "audit"
    program.write_text(KILLED)
    given.write_bytes(pickle.dumps((folder, configuration, prompts)))
    command = [sys.executable, str(program), str(given)]
    process = subprocess.run(command, stdout=subprocess.PIPE, timeout=240, check=False, text=True)
    assert process.returncode == -signal.SIGKILL
    children = [Path(f"/proc/{number}/stat") for number in process.stdout.split()]
    assert len(children) == 2

    def running(stat):
        try:
            return stat.read_text().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False

    until = time.monotonic() + 30
    while any(map(running, children)):
        assert time.monotonic() < until, f"still running: {children}"
        time.sleep(0.1)

    kept = {int(shard.stem) for shard in (folder / "shards").glob("*.parquet")}
    assert len(kept) == 2
    assert not (folder / "positions.parquet").exists()
    measured = []
    original = Worker.__call__
    monkeypatch.setattr(Worker, "__call__", lambda self, item: measured.append(item[0]) or original(self, item))
    run_audit(folder, configuration, prompts)
    assert measured == [number for number in range(len(prompts)) if number not in kept]
    assert table(folder).equals(expected)


def test_a_folder_of_another_audit_is_refused(configuration, prompts, tmp_path, tiny_model):
    run_audit(tmp_path, configuration, prompts[:1])
    with pytest.raises(DraftcertError, match="max_new_tokens = 12, not 3"):
        run_audit(tmp_path, Configuration(str(tiny_model), "layers:0-1,3", 3, grid=GRID), prompts[:1])
    with pytest.raises(DraftcertError, match=r"prompts\[1\] = null"):
        run_audit(tmp_path, configuration, prompts[:2])


def test_measurements_whose_claim_is_missing_are_not_taken_for_another_audit_s(configuration, prompts, tmp_path):
    run_audit(tmp_path, configuration, prompts[:1])
    (tmp_path / "audit.json").unlink()
    for left in ("positions.parquet", "shards/000000.parquet"):
        for asked in (configuration, replace(configuration, max_new_tokens=3)):
            with pytest.raises(DraftcertError, match=rf"{left} was measured here, .*audit.json.* is missing"):
                run_audit(tmp_path, asked, prompts[:1])
        (tmp_path / left).unlink()
    run_audit(tmp_path, configuration, prompts[:1])


def test_a_drafter_without_some_of_the_target_s_tokens_is_refused(tiny_model, prompts, tmp_path):
    """Its logits are of other rows, and a text may hold a token that it cannot read. Padding it may lack."""
    for name, size in (("fewer", 20), ("padded", 40), ("alike", 33)):
        loaded = load_model(tiny_model)
        loaded.model.resize_token_embeddings(size)
        loaded.model.save_pretrained(tmp_path / name)
        vocabulary = json.loads((tiny_model / "tokenizer.json").read_text())
        vocabulary["model"]["vocab"] = {t: n for t, n in vocabulary["model"]["vocab"].items() if n < size}
        loaded.tokenizer.save_pretrained(tmp_path / name)
        (tmp_path / name / "tokenizer.json").write_text(json.dumps(vocabulary))
    for target, draft in (("alike", "padded"), ("padded", "alike")):
        asked = Configuration(str(tmp_path / target), str(tmp_path / draft), 2, grid=GRID)
        run_audit(tmp_path / f"{target}-{draft}", asked, prompts[:1])
    with pytest.raises(DraftcertError, match=r"fewer' has 20 token ids, and 33 mean something to the target"):
        run_audit(tmp_path / "audit", Configuration(str(tiny_model), str(tmp_path / "fewer"), 2, grid=GRID), prompts)


NO_RUNS = [
    *({"max_new_tokens": value} for value in (0, True, 1.5, "3", None, math.nan, math.inf)),
    *({"candidates": value} for value in ((), 1, "1", (0,), (True,), (1.0,), (1, 1), (math.nan,))),
    *({"rules": value} for value in ((), 3, "strict_greedy", (1,), ("strict_greedy", "strict_greedy"))),
]


@pytest.mark.parametrize("wrong", NO_RUNS)
def test_what_cannot_be_measured_is_refused_when_it_is_asked_for(wrong):
    with pytest.raises(DraftcertError, match=r"max_new_tokens|candidates|rule"):
        Configuration(**wrong) if "max_new_tokens" in wrong else Grid(**wrong)


def overwrite(model, part):
    """Other weights, in a file of the same name and size, or two ids of the tokenizer exchanged."""
    if part == "tokenizer":
        file = model / "tokenizer.json"
        file.write_text(file.read_text().replace('"a": 1,', '"b": 1,').replace('"b": 2,', '"a": 2,'))
        return
    content = bytearray((model / "model.safetensors").read_bytes())
    content[-3] ^= 1
    (model / "model.safetensors").write_bytes(content)


@pytest.mark.parametrize("part", ["weights", "tokenizer"])
def test_an_audit_is_not_continued_with_another_model_of_the_same_name(part, tiny_model, prompts, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(tiny_model, model)
    configuration = Configuration(str(model), "layers:0-1,3", 4, grid=GRID)
    folder = tmp_path / "audit"
    run_audit(folder, configuration, prompts[:2])
    last = folder / "shards" / "000001.parquet"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    overwrite(model, part)
    with pytest.raises(DraftcertError, match=r"is of another run, models\.target\."):
        run_audit(folder, configuration, prompts[:2])  # nothing is left to measure, and still
    last.unlink()
    with pytest.raises(DraftcertError, match=r"is of another run, models\.target\."):
        run_audit(folder, configuration, prompts[:2])
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} | {last: before[last]} == before


def test_a_tokenizer_of_another_model_is_named(tiny_model, prompts, tmp_path):
    shutil.copytree(tiny_model, tmp_path / "model")
    file = tmp_path / "model" / "tokenizer.json"
    file.write_text(file.read_text().replace('"a": 1,', '"a": 999,'))
    with pytest.raises(DraftcertError, match="token 999"):
        run_audit(tmp_path / "audit", Configuration(str(tmp_path / "model"), None, 2, grid=GRID), prompts[:1])


def test_a_model_that_moved_or_was_copied_is_the_same(tiny_model, tmp_path):
    shutil.copytree(tiny_model, tmp_path / "copy")
    here, there = load_model(tiny_model), load_model(tmp_path / "copy")
    assert identity(here.model, here.tokenizer) == identity(there.model, there.tokenizer)
    assert identity(here.model) != identity(load_model(tiny_model, "bfloat16").model)


def test_an_audit_of_another_version_or_formula_is_neither_continued_nor_read(
    configuration, prompts, tmp_path, monkeypatch
):
    run_audit(tmp_path, configuration, prompts[:1])
    for made in ({"draftcert": "0.0.1"}, {"formulas": "another"}):
        monkeypatch.setattr("draftcert.audit.run.made_by", lambda made=made: made_by() | made)
        monkeypatch.setattr("draftcert.audit.records.made_by", lambda made=made: made_by() | made)
        with pytest.raises(DraftcertError, match=rf"is of another run, made_by\.{next(iter(made))} = "):
            run_audit(tmp_path, configuration, prompts[:1])
        with pytest.raises(DraftcertError, match="of another version"):
            Audit.open(tmp_path)


def test_a_folder_is_claimed_only_by_what_can_be_measured(configuration, expected, prompts, tmp_path):
    for broken in (
        {"target": "./typo"},
        {"draft": "layers:7"},
        {"draft": "./typo"},
        {"device": "abacus"},
        {"dtype": "int8"},
        {"grid": Grid(("strict_greedy",), (999,))},
    ):
        with pytest.raises(DraftcertError):
            run_audit(tmp_path, replace(configuration, **broken), prompts)
        assert [path.name for path in tmp_path.rglob("*")] == ["shards"], broken
    run_audit(tmp_path, configuration, prompts)
    assert table(tmp_path).equals(expected)


def test_every_changed_shard_is_set_aside_and_measured_again(configuration, expected, prompts, tmp_path, capsys):
    run_audit(tmp_path, configuration, prompts[:1])
    shard, aside = tmp_path / "shards" / "000000.parquet", tmp_path / "shards" / "000000.parquet.damaged"
    whole = shard.read_bytes()
    for at in range(0, len(whole), len(whole) // 400):
        shard.write_bytes(whole[:at] + bytes([whole[at] ^ 32]) + whole[at + 1 :])
        assert not is_sealed(shard)
    shard.write_bytes(whole[: len(whole) // 2])
    names = {path.name for path in tmp_path.rglob("*")}
    positions = (tmp_path / "positions.parquet").read_bytes()
    run_audit(tmp_path, configuration, prompts[:1])
    assert shard.read_bytes() == whole
    assert aside.read_bytes() == whole[: len(whole) // 2]
    assert {path.name for path in tmp_path.rglob("*")} == names | {aside.name}
    assert (tmp_path / "positions.parquet").read_bytes() == positions
    assert "its prompt is measured again" in capsys.readouterr().err


def test_damaged_positions_are_named_and_made_again(configuration, prompts, tmp_path):
    run_audit(tmp_path, configuration, prompts[:1])
    joined = tmp_path / "positions.parquet"
    whole = joined.read_bytes()
    joined.write_bytes(whole[:100] + b"x" + whole[101:])
    with pytest.raises(DraftcertError, match=r"positions.parquet is damaged: run the same audit again"):
        Audit.open(tmp_path)
    run_audit(tmp_path, configuration, prompts[:1])
    assert joined.read_bytes() == whole


def test_a_file_of_another_kind_in_place_of_the_claim_is_named(configuration, prompts, tmp_path):
    run_audit(tmp_path, configuration, prompts[:1])
    for content in ("[]", "{}", "7", '{"configuration": [], "prompts": {}, "made_by": 0}', "[" * 99999):
        (tmp_path / "audit.json").write_text(content)
        for call in (lambda: run_audit(tmp_path, configuration, prompts[:1]), lambda: Audit.open(tmp_path)):
            with pytest.raises(DraftcertError, match="audit"):
                call()


def test_a_folder_in_use_is_refused_and_leftovers_of_killed_runs_are_removed(configuration, prompts, tmp_path):
    with (
        locked(tmp_path / "audit.lock", "another run"),
        pytest.raises(DraftcertError, match=r"the audit in .* is in use by process"),
    ):
        run_audit(tmp_path, configuration, prompts[:1])
    left = [tmp_path / ".positions.parquet.12ab.partial", tmp_path / "shards" / ".000000.parquet.34cd.partial"]
    for file in left:
        file.write_bytes(b"half")
    run_audit(tmp_path, configuration, prompts[:1])
    names = {file.name for file in tmp_path.rglob("*")}
    assert names == {"audit.json", "positions.parquet", "shards", "000000.parquet"}


def test_a_target_alone_has_no_column_of_a_drafter(tiny_model, prompts, tmp_path):
    run_audit(tmp_path, Configuration(str(tiny_model), None, 2, grid=GRID), prompts[:1])
    names = table(tmp_path).column_names
    assert "C|strict_greedy|1" in names
    assert not {"kl", "hit|strict_greedy|1", "draft_rank"} & set(names)


def test_progress_counts_every_prompt(configuration, prompts, tmp_path):
    calls = []
    run_audit(tmp_path, configuration, prompts[:2], progress=lambda *call: calls.append(call))
    assert calls == [(0, 2), (1, 2), (2, 2)]
