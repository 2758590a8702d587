"""What is published: an sdist that can run its tests, and a wheel that works with the core dependencies alone.

The sdist is built from a copy of the files that git knows, the wheel from the sdist, and the wheel is installed into a
virtual environment outside of the checkout that sees the distributions the core dependencies bring and no other.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from draftcert import __version__
from draftcert.audit.run import made_by
from draftcert.cli import acts, commands, whole
from draftcert.runtime.compiling import compiler
from draftcert.support.files import SEAL, seal
from draftcert.theory import parse_rule
from tests.forks import Forks

ROOT = Path(__file__).parents[1]
LAYERS = ("support", "theory", "proofs_check", "numerics", "runtime", "document", "audit", "cli")
RESPONSE = ROOT / "tests/audit/recorded/llama_cpp_python/completions.json"


class Published(NamedTuple):
    """What was built, and where it was installed."""

    log: str
    sdist: Path
    """The unpacked sdist."""
    wheel: Path
    environment: Path
    """The virtual environment with the wheel and the core dependencies."""


def run(*command, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)


def succeed(*command, **options) -> str:
    done = run(*command, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def project_files() -> set[str]:
    """The files of the project: those that git knows or would add; without git, those of the sdist this is."""
    if (ROOT / ".git").exists():
        names = succeed("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines()
    else:
        names = (ROOT / "draftcert.egg-info" / "SOURCES.txt").read_text().splitlines()
    return {name for name in names if (ROOT / name).is_file() and not name.startswith("draftcert.egg-info/")}


def brought_by(installed: Distribution) -> Iterator[Distribution]:
    """The distributions of this environment that one needs, without its extras, and all that these need."""
    todo, seen = list(installed.requires or ()), set()
    while todo:
        requirement = Requirement(todo.pop())
        wanted = any(
            requirement.marker is None or requirement.marker.evaluate({"extra": extra})
            for extra in ("", *requirement.extras)
        )
        if wanted and requirement.name not in seen:
            seen.add(requirement.name)
            found = distribution(requirement.name)
            todo += found.requires or ()
            yield found


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Published:
    folder = tmp_path_factory.mktemp("published")
    for name in project_files():
        target = folder / "source" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    quick = folder / "c++"
    quick.write_text(f'#!/bin/sh\nexec {shlex.join(compiler())} "$@" -O0\n')
    quick.chmod(0o755)
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, folder / "source")
    log = succeed(*build, env=os.environ | {"CXX": str(quick)})
    (archive,), (wheel,) = folder.glob("draftcert-*.tar.gz"), folder.glob("draftcert-*.whl")
    with tarfile.open(archive) as file:
        file.extractall(folder / "unpacked", filter="data")
    (sdist,) = (folder / "unpacked").iterdir()

    environment = folder / "environment"
    venv.create(environment, symlinks=True)
    pip = (sys.executable, "-m", "pip", "--python", environment / "bin" / "python", "install", "--quiet")
    succeed(*pip, "--no-deps", "--no-index", wheel)
    (record,) = environment.glob("lib/python*/site-packages/draftcert-*.dist-info")
    for needed in brought_by(Distribution.at(record)):
        for top in {file.parts[0] for file in needed.files or ()} - {"..", "__pycache__"}:
            link = record.parent / top
            if not link.exists():
                link.symlink_to(Path(str(needed.locate_file(top))))
    return Published(log, sdist, wheel, environment)


@pytest.fixture
def core(published, tmp_path):
    """`core(program, *arguments)` runs a program of the environment with the core dependencies, in an empty folder."""

    def call(program, *arguments):
        return run(published.environment / "bin" / program, *arguments, cwd=tmp_path, env=unhelped())

    return call


def unhelped() -> dict[str, str]:
    """The variables of this process without those that tell Python where to look."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def test_the_changelog_and_the_citation_are_of_this_version():
    told = re.findall("^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    released = [re.sub(r" - \d{4}-\d\d-\d\d$", "", each) for each in told if each != "Unreleased"]
    assert told[0] in ("Unreleased", told[len(told) - len(released)])
    assert released == sorted(set(released), key=Version, reverse=True)
    assert released[0] == __version__
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == __version__


def test_setuptools_has_nothing_to_warn_of(published):
    assert "Successfully built draftcert" in published.log
    assert "!!" not in published.log.split()  # the lines before and after each of its warnings


def test_the_sdist_is_the_whole_project(published):
    inside = {path.relative_to(published.sdist).as_posix() for path in published.sdist.rglob("*") if path.is_file()}
    assert project_files() <= inside


def test_the_sdist_runs_its_own_tests(published):
    """A quick part of them, against the wheel built from it."""
    (site,) = published.environment.glob("lib/python*/site-packages")
    package = published.sdist.parent.parent / "only_draftcert"
    package.mkdir()
    (package / "draftcert").symlink_to(site / "draftcert")
    tests = ("tests/theory/test_parse_rule.py", "tests/test_layers.py", "tests/test_dependencies.py")
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests)
    told = succeed(*command, cwd=published.sdist, env=os.environ | {"PYTHONPATH": str(package)})
    assert " passed" in told
    assert "failed" not in told


def test_the_wheel_brings_the_kernels(published, tmp_path):
    """They are there without a compiler and without a word, and nothing is kept elsewhere."""
    built = {Path(name) for name in zipfile.ZipFile(published.wheel).namelist() if "/runtime/built/" in name}
    libraries = {path for path in built if path.suffix == ".so"}
    assert {path.name.rsplit("-", 1)[0] for path in libraries} == {"row-kernels", "layer-kernels"}
    assert built == libraries | {path.with_suffix(".json") for path in libraries}
    assert published.wheel.name.split("-")[2:4] == ["py3", "none"]
    assert not published.wheel.name.endswith("-any.whl")
    program = (
        "import torch\n"
        "from draftcert.runtime.models.layers import bindings as layers\n"
        "from draftcert.runtime.rows.cpu import bindings as rows\n"
        "print(rows.kernels() is not None, layers.library() is not None)\n"
        "print(*torch.ops.draftcert.row_stats(torch.tensor([[1.0, 3.0, 2.0]]), 1)[1])"
    )
    environment = unhelped() | {"PATH": "", "CXX": "", "XDG_CACHE_HOME": str(tmp_path)}
    done = run(published.environment / "bin" / "python", "-c", program, cwd=tmp_path, env=environment)
    assert (done.stdout.split(), done.stderr) == (["True", "True", "tensor(1)"], "")
    assert not list(tmp_path.rglob("*.so"))


def test_a_wheel_without_a_compiler_is_one_for_every_machine(published, tmp_path):
    command = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, published.sdist)
    succeed(*command, env=os.environ | {"CXX": "no-such-compiler"})
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if "/built/" in name]


def test_a_wheel_with_one_of_the_libraries_belongs_to_the_platform(published, tmp_path):
    zipfile.ZipFile(published.wheel).extractall(tmp_path)
    (made,) = tmp_path.glob("draftcert/runtime/built/row-kernels-*.so")
    # One of the libraries does not compile; the other one is what came of it before.
    half = tmp_path / "c++"
    half.write_text(
        '#!/bin/sh\ncase "$*" in *layers.cpp*) exit 1;; esac\nwhile [ "$1" != -o ]; do shift; done\n'
        f'exec cp {made} "$2"\n'
    )
    half.chmod(0o755)
    command = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, published.sdist)
    succeed(*command, env=os.environ | {"CXX": str(half)})
    (wheel,) = tmp_path.glob("*.whl")
    (library,) = [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".so")]
    assert "row-kernels" in library
    assert not wheel.name.endswith("-any.whl")


def test_draftcert_is_the_only_top_level_name(published):
    names = {name.split("/")[0] for name in zipfile.ZipFile(published.wheel).namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"draftcert"}


def test_every_package_and_data_file_of_the_layers_is_in_the_wheel(published):
    inside = set(zipfile.ZipFile(published.wheel).namelist())
    wanted = {name for name in project_files() if name.split("/")[0] in LAYERS and Path(name).name[0] != "."}
    assert len(wanted) > 100
    assert not {name for name in wanted if f"draftcert/{name}" not in inside}


def test_the_environment_has_the_core_dependencies_only(core):
    find = "import importlib.util, sys; print(*map(importlib.util.find_spec, sys.argv[1:]))"
    optional = ("transformers", "safetensors", "gguf", "accelerate", "ray", "matplotlib", "pyarrow", "pytest")
    assert core("python", "-c", find, *optional).stdout.split() == ["None"] * len(optional)
    assert "torch" in core("python", "-c", find, "torch").stdout


def test_every_public_name_can_be_imported(core):
    get = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    module = importlib.import_module(name)\n"
        "    print(module.__file__, *(type(getattr(module, each)).__name__ for each in module.__all__))"
    )
    done = core("python", "-c", get, "draftcert", *(f"draftcert.{layer}" for layer in LAYERS))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("site-packages") == 1 + len(LAYERS)
    assert str(ROOT) not in done.stdout


WORKS = None
COMMANDS: tuple[tuple[str, str, str | None], ...] = (
    ("derive", "--only T5", WORKS),
    ("derive", "--only T5 --out folder", "report"),
    ("check", "--only T5 --no-coq", WORKS),
    ("validate", "--profile soak --hours 0.0003 --rule strict_greedy --processes 1", WORKS),
    ("validate", "--ray local", "ray"),
    ("certify", "--probs 0.6,0.4 --witness witness.json", WORKS),
    ("verify", "witness.json", WORKS),
    ("codegen", "--check", WORKS),
    ("generate", "--prompt hello --max-new-tokens 2", "hf"),
    ("explain", "output output --prompt hello --target model", "hf"),
    ("doctor", "model", "hf"),
    ("audit", "--limit 1 --max-new-tokens 2", "report"),
    ("audit logprobs", f"{RESPONSE} --rule top_m(2)", WORKS),
    ("recommend", "audited --mean-kl 0.1", "report"),
    ("reproduce", "--limit 1 --steps 2", "hf"),
    ("bench kernels", "--shape 2x3000 --rounds 2 --threads 1 --no-compile", WORKS),
    ("bench kernels", "--shape 2x3000 --rounds 2 --threads 1 --no-compile --out folder", "report"),
    ("cite", "T5", WORKS),
    ("conform", "--out vectors.json", WORKS),
    ("explore", "--output explorer.html --no-browser", WORKS),
)
"""Command, arguments, and the extra that it asks for where only the core dependencies are."""


@pytest.fixture(scope="module")
def told(published, tmp_path_factory) -> list[subprocess.CompletedProcess[str]]:
    """How every command ended and what it printed, without the optional dependencies."""
    folder = tmp_path_factory.mktemp("commands")
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text("{}")
    (folder / "output").write_text("a text")
    (folder / "audited").mkdir()
    table = folder / "audited" / "positions.parquet"
    table.write_text(SEAL)
    seal(table)
    grid = {"rules": {"strict_greedy": parse_rule("strict_greedy").sha256}, "candidates": [1]}
    asked = {"configuration": {"grid": grid}, "prompts": [], "made_by": made_by()}
    (folder / "audited" / "audit.json").write_text(json.dumps(asked))
    programs = published.environment / "bin"
    libraries = ("torch", "cvxpy", "scipy.optimize", "pydantic.fields", "draftcert.cli", "draftcert.theory.theorems")
    with Forks(programs / "python", libraries, folder, unhelped()) as forks:
        return [
            forks.run([programs / "draftcert", *command.split(), *options.split()]) for command, options, _ in COMMANDS
        ]


def test_every_command_is_among_those():
    names = {name.removeprefix("draftcert ") for name, command in commands(whole()) if acts(command)}
    assert names == {command for command, _, _ in COMMANDS}


@pytest.mark.parametrize("number", range(len(COMMANDS)), ids=[f"{command} {rest}" for command, rest, _ in COMMANDS])
def test_a_command_works_or_says_what_to_install(told, number):
    status, output, errors = told[number].returncode, told[number].stdout, told[number].stderr
    extra = COMMANDS[number][2]
    assert "Traceback" not in errors
    if extra is WORKS:
        assert status == 0, errors
        assert output
    else:
        assert status == 2, errors
        (line,) = errors.splitlines()
        assert line.startswith("error: No module named ")
        assert line.endswith(f": pip install 'draftcert[{extra}]'")


def test_the_package_is_a_program(core):
    done = core("python", "-m", "draftcert", "certify", "--probs", "0.6,0.4", "--json")
    assert json.loads(done.stdout)["certificate"].startswith("0.0201355")
