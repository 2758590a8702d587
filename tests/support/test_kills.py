"""A process is killed before each step that touches a file, in turn, and goes on to what an undisturbed run makes.

Between two such steps the disk does not change, so these are all the moments there are but for those inside of a write,
of which `test_files` cuts short every one that matters. `benchmarks/kills.py` kills whole commands at random moments.
"""

import os
import signal
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet  # once, and not in every process
import pytest

from draftcert.audit import Prompt, run
from draftcert.audit.run import Configuration, Measured, run_audit
from draftcert.support import cache
from draftcert.support.cache import cached
from draftcert.support.files import json_lines, read_json, replacing, write_whole
from draftcert.theory import DraftcertError

STEPS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate")


class Stub:
    """In place of the worker that measures: a table of the number of its prompt."""

    def __init__(self, configuration, seat):
        self.models = {"target": {"weights": "0"}}

    def __call__(self, numbered):
        table = pa.table({"prompt": [numbered[0]], "text": ["word"]})
        if numbered[0] == 0:
            table = table.replace_schema_metadata({"trace": '{"steps": []}'})
        return Measured(numbered[0], table, self.models)


def audit(folder, prompts):
    run_audit(folder / "audit", Configuration("tiny"), prompts)


def log(folder, prompts):
    with json_lines(folder / "log.jsonl", {"seed": 0}) as (found, add):
        for number in range(len(found), 4):
            add({"number": number})


def repaired(folder, prompts):
    """A log that a disk has damaged is opened."""
    path = folder / "log.jsonl"
    if not path.exists():
        log(folder, prompts)
        write_whole(path, path.read_bytes().replace(b'"number": 1', b'"number": 7'))
    with json_lines(path, {"seed": 0}) as (found, add):
        have = {each["number"] for each in found}
        for number in {0, 1, 2, 3} - have:
            add({"number": number})


def cache_entry(folder, prompts):
    assert cached("latency", {"model": 1}, list, lambda: [1, 2]) == [1, 2]


def folder_of_files(folder, prompts):
    if not (folder / "model").exists():
        with replacing(folder / "model") as partial:
            (partial / "sub").mkdir(parents=True)
            (partial / "sub" / "weights").write_text("weights")


WORK = [audit, log, repaired, cache_entry, folder_of_files]


def contents(folder):
    files = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    return {str(name): path.read_bytes() for name, path in files.items() if path.suffix != ".damaged"}


def in_a_process(work, folder, prompts, last=None):
    """Whether the work ended in a process that is killed before its step number `last`."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
        return os.waitstatus_to_exitcode(status) == 0
    try:
        count = 0

        def step(event="fsync", arguments=()):
            nonlocal count
            touched = event == "fsync" or str(folder) in str(arguments[:2])
            if last is not None and event in (*STEPS, "fsync") and touched:
                count += 1
                if count > last:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(step)
        os.fsync = lambda handle: step()  # a kill of the process, unlike one of the machine, needs none
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        work(folder, prompts)
        os._exit(0)
    finally:
        os._exit(70)


@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
def test_a_kill_before_any_step_changes_nothing_in_the_end(work, tmp_path, monkeypatch):
    prompts = [Prompt(str(number), "", f"text {number}") for number in range(2)]
    monkeypatch.setattr(run, "Worker", Stub)
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    monkeypatch.setattr(cache, "user_cache_path", lambda name: undisturbed)
    assert in_a_process(work, undisturbed, prompts)
    expected = contents(undisturbed)
    assert expected
    last = 0
    for last in range(0, 500, 2 if work is audit else 1):  # every other one of many
        folder = tmp_path / str(last)
        folder.mkdir()
        monkeypatch.setattr(cache, "user_cache_path", lambda name, folder=folder: folder)
        ended = in_a_process(work, folder, prompts, last)
        assert in_a_process(work, folder, prompts)
        found = contents(folder)
        if work is repaired:  # its lines are added in the order in which they were missed
            found, wanted = ({name: sorted(text.split(b"\n")) for name, text in c.items()} for c in (found, expected))
            assert found == wanted, last
        else:
            assert found == expected, last
        if ended:
            break
    assert last >= 3


def test_a_write_that_is_not_synced_or_not_renamed_is_noticed(tmp_path):
    """The test above can fail: with a writer that rewrites its file in place it does."""

    def in_place(folder, prompts):
        path = Path(folder / "numbers")
        found = path.read_text().splitlines() if path.exists() else []
        with path.open("w") as file:
            os.fsync(file.fileno())
            for line in found:
                file.write(line + "\n")
        for number in range(len(found), 3):
            with path.open("a") as file:
                file.write(f"{number}\n")

    (tmp_path / "a").mkdir()
    lost = False
    for last in range(12):
        folder = tmp_path / str(last)
        folder.mkdir()
        (folder / "numbers").write_text("7\n8\n")
        in_a_process(in_place, folder, None, last)
        in_a_process(in_place, folder, None)
        lost |= (folder / "numbers").read_text().splitlines()[:2] != ["7", "8"]
    assert lost


def test_of_two_that_claim_one_folder_at_once_one_gets_it(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "Worker", Stub)
    for pair in range(8):
        folder, go = tmp_path / f"folder-{pair}", tmp_path / f"go-{pair}"
        children = []
        for number in range(2):
            child = os.fork()
            if not child:
                try:
                    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                    while not go.exists():
                        pass
                    run_audit(folder, Configuration("tiny", max_new_tokens=1 + number), [Prompt("1", "", "text")])
                    os._exit(0)
                except DraftcertError:
                    os._exit(2)
                finally:
                    os._exit(70)
            children.append(child)
        go.touch()
        ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        assert sorted(ends) == [0, 2]
        tokens = read_json(folder / "audit.json")["configuration"]["max_new_tokens"]
        assert tokens == 1 + ends.index(0)
