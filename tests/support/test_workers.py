"""One interface over this process, worker processes and Ray: the same results, and the same end when something dies."""

import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from draftcert.support.workers import Seat, alike, run_tasks
from draftcert.theory import DraftcertError

LAYOUTS = {"here": {"processes": 1}, "forked": {"processes": 2, "fork": True}}
NEW = {"new processes": {"processes": 2, "fork": False}}


def square(number):
    time.sleep(0.05 * (number % 2))
    if number == 13:
        raise DraftcertError("13 is unlucky")
    if number == 66:
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


def named(number):
    return f"number {number}"


@pytest.mark.parametrize("layout", (LAYOUTS | NEW).values(), ids=LAYOUTS | NEW)
@pytest.mark.parametrize("ordered", [True, False])
def test_every_task_is_done_in_every_layout(layout, ordered):
    found = list(run_tasks(range(9), alike(square), named, ordered=ordered, **layout))
    assert (found if ordered else sorted(found)) == [number**2 for number in range(9)]
    assert list(run_tasks([], alike(square), named, **layout)) == []


def held_back(go, number):
    """The first task waits until the second one's result has come."""
    while number == 1 and not go.exists():
        time.sleep(0.01)
    return number


def test_results_come_as_they_are_done(tmp_path):
    go = tmp_path / "go"
    results = run_tasks([1, 2], alike(partial(held_back, go)), named, processes=2, fork=True, ordered=False)
    assert next(results) == 2
    go.touch()
    assert list(results) == [1]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_an_error_of_a_task_is_the_caller_s_error(layout):
    found = []
    with pytest.raises(DraftcertError, match=r"^13 is unlucky"):
        found.extend(run_tasks([2, 4, 13], alike(square), named, **layout))


@pytest.mark.parametrize("fork", [True, False])
def test_a_task_that_kills_every_worker_is_given_up_and_named(fork, capsys):
    found = []

    def collect():
        for each in run_tasks([2, 66, 4, 6], alike(square), named, processes=2, fork=fork):
            found.append(each)

    with pytest.raises(DraftcertError, match=r"a worker died on number 66: its exit code is -9\. If memory .* 3 died"):
        collect()
    assert found == [4]
    assert (
        capsys.readouterr().err.count("a worker died on number 66: its exit code is -9. Another takes its place") == 2
    )
    assert multiprocessing.active_children() == []


def dies_once(folder, number):
    """Every third task kills the first worker that tries it."""
    with suppress(FileExistsError):
        (folder / str(number)).touch(exist_ok=False)
        if number % 3 == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("fork", [True, False])
@pytest.mark.parametrize("ordered", [True, False])
def test_a_worker_that_dies_is_replaced_and_its_task_done_again(fork, ordered, tmp_path, capsys):
    work = alike(partial(dies_once, tmp_path))
    found = list(run_tasks(range(7), work, named, processes=2, fork=fork, ordered=ordered))
    assert (found if ordered else sorted(found)) == list(range(7))
    said = capsys.readouterr().err
    assert [said.count(f"a worker died on number {number}:") for number in (0, 3, 6, 1)] == [1, 1, 1, 0]
    assert multiprocessing.active_children() == []


def test_an_idle_worker_that_died_is_replaced_when_it_is_asked():
    def tasks():
        yield 2
        yield 2
        time.sleep(0.5)
        for child in multiprocessing.active_children():
            child.kill()
            child.join()
        yield 4

    assert list(run_tasks(tasks(), alike(square), named, processes=2, fork=True)) == [4, 4, 16]


class Seated:
    """A worker that tells where it sits and how often it was prepared."""

    prepared = 0

    def __init__(self, seat: Seat) -> None:
        Seated.prepared += 1
        self.seat = seat

    def __call__(self, task: int) -> tuple[Seat, int, int]:
        time.sleep(0.1)
        return self.seat, Seated.prepared, os.getpid()


def test_workers_are_prepared_once_and_know_their_seat():
    found = set(run_tasks(range(8), Seated, named, processes=2))
    cpus = max(1, (os.cpu_count() or 1) // 2)
    assert {seat for seat, _, _ in found} == {Seat(0, cpus), Seat(1, cpus)}
    assert {prepared for _, prepared, _ in found} == {1}
    assert len(found) == 2
    assert os.getpid() not in {process for _, _, process in found}
    assert next(run_tasks([0], Seated, named))[0] == Seat()


def fails(seat):
    raise DraftcertError("no such model")


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_an_error_of_preparing_is_the_caller_s_error(layout):
    with pytest.raises(DraftcertError, match=r"^no such model"):
        list(run_tasks([1, 2], fails, named, **layout))


def test_no_more_workers_than_tasks():
    assert len({process for _, _, process in run_tasks([0], Seated, named, processes=8)}) == 1


def slow_first(number):
    time.sleep(0.5 if number == 0 else 0)
    return number


def test_tasks_without_end_are_taken_only_a_little_ahead():
    taken = []

    def tasks():
        for number in itertools.count():
            taken.append(number)
            yield number

    results = run_tasks(tasks(), alike(slow_first), named, processes=2, fork=True)
    assert list(itertools.islice(results, 3)) == [0, 1, 2]
    assert 10 < len(taken) < 100
    results.close()
    assert multiprocessing.active_children() == []


INTERRUPTED = """
import sys, time
from draftcert.support.workers import alike, run_tasks

def sleep(seconds):
    print("begun", flush=True)
    time.sleep(seconds)

if __name__ == "__main__":
    options = eval(sys.argv[1])
    list(run_tasks([60] * 9, alike(sleep), str, **options))
"""


def living(group):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(stat)
    return found


@pytest.mark.parametrize("options", ["{'processes': 2}", "{'processes': 2, 'fork': True}"])
def test_an_interrupt_ends_everything_within_two_seconds_and_without_noise(tmp_path, options):
    program = tmp_path / "program.py"
    program.write_text(INTERRUPTED)
    command = [sys.executable, str(program), options]
    run = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background ignore it
    )
    assert run.stdout
    assert [run.stdout.readline() for _ in range(2)] == ["begun\n"] * 2
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does
    start = time.perf_counter()
    _, errors = run.communicate(timeout=60)
    assert time.perf_counter() - start < 2
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    time.sleep(0.2)
    assert not living(run.pid)


def test_a_ray_cluster_that_is_not_there_is_named(monkeypatch):
    ray = pytest.importorskip("ray")

    def refuse(address, **_):
        raise ConnectionError("Could not find any running Ray instance")

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(DraftcertError, match=r"no Ray cluster answers at 'host:1': Could not find"):
        list(run_tasks([1], alike(square), named, ray="host:1"))


def test_without_ray_a_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(DraftcertError, match=r"pip install 'draftcert\[ray\]'"):
        list(run_tasks([1], alike(square), named, ray="auto"))
