"""Programs in processes of their own, forked from one that has loaded what takes most of their time to load."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SERVE = """
import atexit, gc, importlib, json, os, runpy, sys, threading

gc.disable()
for name in sys.argv[1:]:
    importlib.import_module(name)
gc.freeze()  # a program that looked there for garbage would copy all of it
gc.enable()
print("ready", flush=True)
for line in sys.stdin:
    command, *files = json.loads(line)
    child = os.fork()
    if not child:
        for descriptor, file in enumerate((os.devnull, *files)):
            os.dup2(os.open(file, os.O_WRONLY if descriptor else os.O_RDONLY), descriptor)
        sys.argv = command
        status = 0
        try:
            runpy.run_path(command[0], run_name="__main__")
        except SystemExit as end:
            if end.code and not isinstance(end.code, int):
                raise
            status = end.code or 0
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)  # sys.exit would copy all that is loaded, to take it apart
    print(files[0], os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Forks:
    """`run([program, ...])` runs a Python program in `folder`, by an interpreter that has loaded `libraries`."""

    def __init__(self, python: Path, libraries: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [python, "-c", SERVE, *libraries],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=environment,
        )
        assert self._told() == "ready"

    def run(self, command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        """How the program ended and what it printed."""
        with TemporaryDirectory() as folder:
            out, err = (Path(folder, name) for name in ("out", "err"))
            out.touch()
            err.touch()
            assert self._process.stdin
            print(json.dumps([[*map(str, command)], str(out), str(err)]), file=self._process.stdin, flush=True)
            # Before it comes what was told of programs that nobody waited for: those of tests that took too long.
            told = next(status for file, status in iter(lambda: self._told().split(), []) if file == str(out))
            return subprocess.CompletedProcess(command, int(told), out.read_text(), err.read_text())

    def _told(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.communicate()
