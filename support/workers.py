"""Tasks for workers: in this process, in processes of this machine, or on a Ray cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from ..theory.errors import DraftcertError
from ..theory.imports import optional
from .text import visible

Task = TypeVar("Task")
Result = TypeVar("Result")

AHEAD = 16
"""Tasks a worker that are begun at most before the oldest one is done, where results come in the order of the tasks."""


@dataclass(frozen=True)
class Seat:
    """The place of a worker: its number from 0, and how many CPU threads it may keep busy (None: as it likes)."""

    number: int = 0
    threads: int | None = None


Start = Callable[[Seat], Callable[[Task], Result]]
"""Prepares a worker at its seat, and returns what it does with a task. Both are pickled for workers elsewhere."""


def alike(work: Callable[[Task], Result]) -> Start[Task, Result]:
    """The start of workers that need no preparation."""
    return partial(_ready, work)


def _ready(work: Callable[[Task], Result], seat: Seat) -> Callable[[Task], Result]:
    return work


def one_per_cpu(nodes: Sequence[Mapping[str, float]]) -> tuple[int, int]:
    """How many workers a Ray cluster of such nodes holds, and the GPUs of each: as many as there are CPUs, and none."""
    return int(sum(node.get("CPU", 0) for node in nodes)), 0


def run_tasks(
    tasks: Iterable[Task],
    start: Start[Task, Result],
    name: Callable[[Task], str],
    *,
    processes: int = 1,
    ray: str | None = None,
    room: Callable[[Sequence[Mapping[str, float]]], tuple[int, int]] = one_per_cpu,
    ordered: bool = True,
    fork: bool = False,
) -> Generator[Result, None, None]:
    """The results of all tasks, in their order or (`ordered` false) as they are done.

    A task is taken when there is a worker for it, so there may be any number of them. A worker is prepared with its
    first task. One that dies is replaced and its task done again, which is said on standard error; a task that several
    died on is given up. All workers end with the iterator and with this process, whatever they are doing.

    Args:
        tasks: what is to be done.
        start: prepares a worker.
        name: how messages call a task.
        processes: workers on this machine; 1 is this process itself.
        ray: address of a Ray cluster ("auto", "ray://host:10001", "local") to use instead.
        room: how many workers a cluster of such nodes holds, and the GPUs of each.
        ordered: whether the results come in the order of the tasks.
        fork: workers are copies of this process, which begin at once, not new ones. A copy hangs in thread pools that
            have run before (torch's have), so this is for work without them.

    Raises:
        DraftcertError: several workers died on one task; Ray is missing, does not answer or has no room.
        Exception: what a task, or preparing a worker for it, raised.

    >>> list(run_tasks(["a", "bc"], alike(len), str))
    [1, 2]
    """
    if ray is not None:
        with _cluster(ray) as module:
            size, gpus = room([node["Resources"] for node in module.nodes() if node["Alive"]])
            if not size:
                raise DraftcertError(f"the Ray cluster at '{ray}' has no room for a worker")
            hire = partial(_Actor, module, start, gpus)
            yield from _spread(tasks, hire, size, name, ordered)
    elif processes > 1:
        method = "fork" if fork and "fork" in multiprocessing.get_all_start_methods() else "spawn"
        threads = max(1, (os.cpu_count() or 1) // processes)
        hire = partial(_Process, multiprocessing.get_context(method), start, threads)
        yield from _spread(tasks, hire, processes, name, ordered)
    else:
        yield from map(_Worker(start, Seat()).run, tasks)


class _Worker(Generic[Task, Result]):
    """Prepared with its first task, so that an error of preparing is the result of a task."""

    def __init__(self, start: Start[Task, Result], seat: Seat) -> None:
        self._start, self._seat = start, seat
        self._work: Callable[[Task], Result] | None = None

    def run(self, task: Task) -> Result:
        if self._work is None:
            self._work = self._start(self._seat)
        return self._work(task)


class _DiedError(Exception):
    """A worker is gone; the message says how."""


TRIES = 3
"""Workers that may die on a task before it is taken for what killed them."""


def _spread(
    tasks: Iterable[Any], hire: Callable[[int], Any], size: int, name: Callable[[Any], str], ordered: bool
) -> Iterator[Any]:
    """Give each worker one task at a time; `hire(number)` makes one more, up to `size`."""
    waiting, more = enumerate(tasks), True
    members: list[Any] = []
    idle: list[Any] = []
    running: dict[Any, tuple[int, Any]] = {}
    again: list[tuple[int, Any]] = []  # tasks whose worker died
    deaths: Counter[int] = Counter()
    done: dict[int, Future[Any]] = {}  # an error too waits for its turn
    begun = given = 0
    try:
        while more or running or done or again:
            while (more or again) and len(running) < size and (again or not ordered or begun < given + AHEAD * size):
                if again:
                    item = again.pop()
                elif (item := next(waiting, None)) is not None:
                    begun += 1
                else:
                    more = False
                    continue
                if not idle:
                    members.append(hire(len(members)))
                    idle.append(members[-1])
                running[idle[-1]] = item
                idle.pop().give(item[1])
            while done and (not ordered or given in done):
                yield done.pop(given if ordered else next(iter(done))).result()
                given += 1
            for member in members[0].done(running) if running else ():
                number, task = running.pop(member)
                outcome: Future[Any] = Future()
                try:
                    outcome.set_result(member.take())
                except _DiedError as error:
                    deaths[number] += 1
                    what = f"a worker died on {name(task)}: {error}"
                    if deaths[number] < TRIES:
                        print(f"{visible(what)}. Another takes its place and does it again", file=sys.stderr)
                        place = members.index(member)
                        member.end()
                        members[place] = hire(place)
                        idle.append(members[place])
                        again.append((number, task))
                        continue
                    what += f". If memory ran out, use fewer workers: {TRIES} died on this"
                    outcome.set_exception(DraftcertError(what))
                except Exception as error:
                    outcome.set_exception(error)
                done[number] = outcome
                idle.append(member)
    finally:
        for member in members:
            member.end()


class _Process:
    """A worker process of this machine."""

    def __init__(self, context: Any, start: Start[Any, Any], threads: int, number: int) -> None:
        self._pipe, theirs = context.Pipe()
        seat = Seat(number, threads)
        self._process = context.Process(target=_serve, args=(theirs, start, seat), daemon=True)
        with _interrupts_held_back():
            self._process.start()
        theirs.close()

    def give(self, task: Any) -> None:
        with suppress(ConnectionError):  # it is dead, which `take` tells
            self._pipe.send(task)

    def take(self) -> Any:
        try:
            result, error = self._pipe.recv()
        except (EOFError, ConnectionError) as error:
            self._process.join()
            raise _DiedError(f"its exit code is {self._process.exitcode}") from error
        if error is not None:
            raise error
        return result

    @staticmethod
    def done(members: Iterable[_Process]) -> list[_Process]:
        by_pipe: dict[Any, _Process] = {member._pipe: member for member in members}
        return [by_pipe[pipe] for pipe in wait(list(by_pipe))]

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _serve(pipe: Connection, start: Start[Any, Any], seat: Seat) -> None:
    """What a worker process does: a task, its result or error, the next task."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    worker = _Worker(start, seat)
    with suppress(EOFError):
        while True:
            task = pipe.recv()
            try:
                pipe.send((worker.run(task), None))
            except Exception as error:
                error.add_note(f"in a worker process:\n{traceback.format_exc()}")
                pipe.send((None, error))


def _end_with_parent() -> None:
    """A worker whose parent was killed would work on, or wait for ever."""
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """A process begun in here never sees Ctrl-C, which a terminal sends to all: this process ends its workers."""
    if os.name != "posix":
        yield
        return
    resource_tracker.ensure_running()  # started later, by the first process, it would let interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Actor:
    """A worker on a Ray cluster."""

    def __init__(self, ray: Any, start: Start[Any, Any], gpus: int, number: int) -> None:
        seat = Seat(number, None if gpus else 1)
        self._ray, self._reference = ray, None
        self._actor = ray.remote(num_cpus=1, num_gpus=gpus)(_Worker).remote(start, seat)

    def give(self, task: Any) -> None:
        self._reference = self._actor.run.remote(task)

    def take(self) -> Any:
        try:
            return self._ray.get(self._reference)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except self._ray.exceptions.RayError as error:
            raise _DiedError(str(error).splitlines()[0]) from error

    def done(self, members: Iterable[_Actor]) -> list[_Actor]:
        by_reference = {member._reference: member for member in members}
        found, _ = self._ray.wait(list(by_reference))
        return [by_reference[reference] for reference in found]

    def end(self) -> None:
        self._ray.kill(self._actor)


@contextmanager
def _cluster(address: str) -> Iterator[Any]:
    """The module of Ray, connected as long as it is needed."""
    with optional("ray"):
        import ray

    if ray.is_initialized():
        yield ray
        return
    try:
        ray.init(address, log_to_driver=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise DraftcertError(f"no Ray cluster answers at '{address}': {error}") from error
    try:
        yield ray
    finally:
        ray.shutdown()
