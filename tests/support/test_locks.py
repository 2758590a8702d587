"""One process at a time, whatever becomes of it."""

import os
import subprocess
import sys
import threading
import time

import pytest

from draftcert.support.locks import locked
from draftcert.theory import DraftcertError

HOLDS = """
import sys
from draftcert.support.locks import locked
with locked(sys.argv[1], "the model"):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path):
    command = [sys.executable, "-c", HOLDS, tmp_path / "lock"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def test_a_lock_that_is_held_is_refused_with_its_holder(tmp_path, holder):
    with pytest.raises(DraftcertError, match=f"the model is in use by process {holder.pid} on "):
        locked(tmp_path / "lock", "the model", wait=False).__enter__()


def test_a_lock_ends_with_its_process(tmp_path, holder):
    holder.kill()
    holder.wait()
    with locked(tmp_path / "lock", "the model", wait=False):
        assert (tmp_path / "lock").read_text().startswith(f"process {os.getpid()} on ")
    assert list(tmp_path.iterdir()) == []


def test_whoever_waits_says_for_what_and_then_has_it(tmp_path, holder, capsys):
    said = threading.Timer(0.5, lambda: holder.communicate("\n"))
    said.start()
    with locked(tmp_path / "lock", "the model"):
        assert holder.wait(10) == 0
        with pytest.raises(DraftcertError, match=f"in use by process {os.getpid()} on "):
            locked(tmp_path / "lock", "the model", wait=False).__enter__()
    assert capsys.readouterr().err.startswith(f"waiting for the model: process {holder.pid} on ")
    said.join()
    assert list(tmp_path.iterdir()) == []


def test_many_threads_one_at_a_time(tmp_path):
    """The file is removed at every release, so that late comers make a new one: still only one is inside."""
    inside, seen = 0, []

    def work():
        nonlocal inside
        for _ in range(50):
            with locked(tmp_path / "lock", "the counter"):
                inside += 1
                seen.append(inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 200


def test_a_lock_is_released_though_a_forked_process_lives_on(tmp_path):
    def wait():
        with locked(tmp_path / "lock", "the model"):
            pass

    waiting = threading.Thread(target=wait, daemon=True)
    with locked(tmp_path / "lock", "the model"):
        if (child := os.fork()) == 0:
            time.sleep(60)
            os._exit(0)
        waiting.start()
        time.sleep(0.3)
    try:
        waiting.join(10)
        assert not waiting.is_alive()
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DraftcertError, match=r"cannot lock the model by .*none/lock: No such file"):
        locked(tmp_path / "none" / "lock", "the model").__enter__()
