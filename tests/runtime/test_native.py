"""Compiled libraries: kept, healed, refused where others could have written them, and done without.

Every load is a process of its own with its own folders, since what is tested includes not killing the process.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from platformdirs import user_cache_path

from draftcert.runtime import compiling
from draftcert.runtime.models.layers import bindings
from draftcert.runtime.rows.cpu.bindings import library as row_kernels

# No process waits for torch. The library is of several pages: where such a file is cut short, to read it kills the
# process.
LOAD = """
import sys
from pathlib import Path
from draftcert.runtime import compiling, native
assert "torch" not in sys.modules
compiling.FLAGS[0] = "-O0"

def loader(path):
    library = native.ctypes.CDLL(path)
    library.answer
    return library

sources = [Path(sys.argv[1])]
library = native.loaded_if_possible(lambda: native.load("test kernels", sources, loader=loader), "nothing is used")
print(library and library.answer())
"""
SOURCE = 'extern "C" int answer() {{ static int table[1 << 16] = {{{answer}}}; return table[0]; }}'


class Sandbox:
    """A source, a cache and a temporary folder of one test."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.cache, self.temporary = folder / "cache", folder / "tmp"
        self.temporary.mkdir()
        self.source = folder / "test.cpp"
        self.source.write_text(SOURCE.format(answer=42))

    def start(self, **environment: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", LOAD, str(self.source)]
        places = {"XDG_CACHE_HOME": str(self.cache), "TMPDIR": str(self.temporary)}
        everything = os.environ | places | environment
        return subprocess.Popen(command, text=True, env=everything, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def load(self, **environment: str) -> tuple[str, list[str]]:
        """The answer of the library, or None, and the lines on stderr."""
        return finished(self.start(**environment))

    def script(self, text: str) -> Path:
        path = self.folder / "script"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    @property
    def library(self) -> Path:
        (path,) = (self.cache / "draftcert" / "native").glob("*.so")
        return path


def finished(process: subprocess.Popen[str]) -> tuple[str, list[str]]:
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out.strip(), err.splitlines()


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def test_a_library_is_compiled_once_and_that_is_said(sandbox: Sandbox):
    answer, (line,) = sandbox.load()
    assert answer == "42"
    assert line == "draftcert: compiling the test kernels, once for this machine (about 15 s) ..."
    assert sandbox.load() == ("42", [])
    sandbox.source.write_text(SOURCE.format(answer=43))
    assert sandbox.load()[0] == "43"


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "cut short": cut,
    "empty": lambda library: library.write_bytes(b""),
    "garbage of the same size": lambda library: library.write_bytes(bytes(library.stat().st_size)),
    "gone": lambda library: library.unlink(),
    "no record": lambda library: library.with_suffix(".json").unlink(),
    "record cut short": lambda library: cut(library.with_suffix(".json")),
    "record of something else": lambda library: library.with_suffix(".json").write_text("[1]"),
    "record is no text": lambda library: library.with_suffix(".json").write_bytes(b"\xff"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_library_is_compiled_again(sandbox: Sandbox, damage: Callable[[Path], object]):
    sandbox.load()
    library = sandbox.library
    damage(library)
    changed = library.exists()
    answer, (line,) = sandbox.load()
    assert answer == "42"
    assert (f"{library} was changed or cut short" in line) == changed
    assert sandbox.load() == ("42", [])


def plant(library: Path, source: Path) -> None:
    """A library that answers 13, with a record that is right."""
    source.write_text(SOURCE.format(answer=13))
    subprocess.run([*compiling.compiler(), "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    library.chmod(0o755)
    content = library.read_bytes()
    record = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    library.with_suffix(".json").write_text(json.dumps(record))


def another_user(path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give a file away")
    os.chown(path, 12345, -1)


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


OPEN, OWNED, LINK = "others can write", "belongs to another user", "is a link"
UNSAFE: dict[str, tuple[Callable[[Path], object], str]] = {
    "library for all": (lambda library: library.chmod(0o757), OPEN),
    "library for the group": (lambda library: library.chmod(0o775), OPEN),
    "library of another user": (another_user, OWNED),
    "library a link": (link, LINK),
    "folder for all": (lambda library: library.parent.chmod(0o777), OPEN),
    "folder for the group": (lambda library: library.parent.chmod(0o770), OPEN),
    "folder of another user": (lambda library: another_user(library.parent), OWNED),
    "folder a link": (lambda library: link(library.parent), LINK),
    "folder above for all": (lambda library: library.parent.parent.chmod(0o777), OPEN),
    "folder above of another user": (lambda library: another_user(library.parent.parent), OWNED),
}


def test_a_library_that_answers_otherwise_would_be_seen(sandbox: Sandbox):
    sandbox.load()
    plant(sandbox.library, sandbox.folder / "planted.cpp")
    assert sandbox.load() == ("13", [])


@pytest.mark.parametrize(("unsafe", "reason"), UNSAFE.values(), ids=UNSAFE)
def test_a_library_that_others_could_have_written_is_not_loaded(
    sandbox: Sandbox, unsafe: Callable[[Path], object], reason: str
):
    sandbox.load()
    library = sandbox.library
    plant(library, sandbox.folder / "planted.cpp")
    unsafe(library)
    answer, (line,) = sandbox.load()
    assert answer == "42"
    assert f"{library.parent} is not used: " in line
    assert reason in line
    (folder,) = sandbox.temporary.iterdir()
    assert folder.name == f"draftcert-{os.geteuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert sandbox.load() == ("42", [])


@pytest.mark.parametrize("umask", [0o002, 0o077, 0o000])
def test_a_library_is_ours_alone_under_any_umask(sandbox: Sandbox, umask: int):
    before = os.umask(umask)
    try:
        sandbox.load()
    finally:
        os.umask(before)
    assert sandbox.library.parent.stat().st_mode & 0o777 == 0o700
    assert sandbox.load() == ("42", [])


def test_a_cache_that_cannot_be_written_is_replaced(sandbox: Sandbox):
    sandbox.cache.write_text("a file")
    answer, (line,) = sandbox.load()
    assert answer == "42"
    assert "draftcert/native is not used: Not a directory" in line
    assert sandbox.load() == ("42", [])


def test_a_compiler_of_several_words(sandbox: Sandbox):
    log = sandbox.folder / "log"
    wrapper = sandbox.script(f'echo called >> {log}; exec "$@"')
    assert sandbox.load(CXX=f"{wrapper} {' '.join(compiling.compiler())}")[0] == "42"
    assert log.exists()


def test_processes_that_start_together_compile_once(sandbox: Sandbox):
    log = sandbox.folder / "log"
    (compiler,) = compiling.compiler()
    wrapper = sandbox.script(f'[ "$1" = --version ] || echo compiled >> {log}; exec {compiler} "$@"')
    together = [sandbox.start(CXX=str(wrapper)) for _ in range(3)]
    assert {finished(process)[0] for process in together} == {"42"}
    assert log.read_text().splitlines() == ["compiled"]


@pytest.mark.parametrize(
    ("compiler", "reason"),
    [
        ("false", "false fails: exit status 1"),
        ("/nonexistent/g++ -O1", "CXX='/nonexistent/g++ -O1' is not found"),
        ("g++ '", 'CXX="g++ \'" is no command'),
        ("true", "true wrote no library"),
        ("g++ --no-such-flag", "no-such-flag"),
    ],
)
def test_without_a_compiler_that_works_there_is_a_warning(sandbox: Sandbox, compiler: str, reason: str):
    answer, lines = sandbox.load(CXX=compiler)
    (warning,) = (line for line in lines if "Warning" in line)
    assert answer == "None"
    assert "nothing is used: " in warning
    assert reason in warning
    assert "a C++17 compiler in" in warning


def test_without_any_compiler(sandbox: Sandbox):
    answer, lines = sandbox.load(CXX="", PATH="")
    assert answer == "None"
    assert "install g++ or clang++" in lines[0]


def test_what_a_broken_compiler_wrote_is_not_compiled_at_every_start(sandbox: Sandbox):
    garbage = 'while [ $# -gt 0 ]; do [ "$1" = -o ] && echo garbage > "$2"; shift; done'
    wrapper = sandbox.script(garbage)
    for compiled in (True, False):
        answer, lines = sandbox.load(CXX=str(wrapper))
        assert answer == "None"
        assert any("file too short" in line or "invalid ELF header" in line for line in lines)
        assert any(line.startswith("draftcert: compiling") for line in lines) == compiled


def test_a_library_without_a_function_is_not_used(sandbox: Sandbox):
    sandbox.source.write_text('extern "C" int another() { return 1; }')
    answer, lines = sandbox.load()
    assert answer == "None"
    assert any("undefined symbol: answer: delete" in line for line in lines)


def test_without_any_folder_there_is_a_warning(sandbox: Sandbox):
    sandbox.cache.write_text("a file")
    (sandbox.temporary / f"draftcert-{os.geteuid()}").write_text("a file")
    answer, lines = sandbox.load()
    assert answer == "None"
    assert any("Set XDG_CACHE_HOME" in line for line in lines)


# ---- The kernels themselves -----------------------------------------------------------------------------------------

CERTIFY = """
import torch, warnings
from draftcert.runtime import certify, row_stats
from draftcert.runtime.models.layers import bindings
from draftcert.runtime.rows.cpu import bindings as rows
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for _ in range(2):
        row_stats(torch.tensor([0.0, 1.0, 3.0]), 2)
        value = certify(torch.tensor([0.0, 1.0, 3.0]), "strict_greedy").value.item()
        bindings.library()
print(f"{value:.6f}", rows.kernels() is not None, bindings.library() is not None)
print(*[warning.message for warning in seen if warning.category is RuntimeWarning], sep="\\n")
"""


def certified(**environment: str) -> tuple[list[str], list[str]]:
    done = subprocess.run([sys.executable, "-c", CERTIFY], capture_output=True, text=True, env=os.environ | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr.splitlines()


def test_certify_without_a_compiler_warns_once_for_each_kind_of_kernel(tmp_path: Path):
    (first, *warnings), _ = certified(CXX="false", XDG_CACHE_HOME=str(tmp_path))
    value, *loaded = first.split()
    _, second, top = torch.tensor([0.0, 1.0, 3.0]).double().softmax(0)
    mean = (second + top) / 2  # what a drafter must give both for the maximum to be lost
    assert float(value) == pytest.approx((second * (second / mean).log() + top * (top / mean).log()).item(), abs=1e-6)
    assert loaded == ["False", "False"]
    assert [line.split(":")[0] for line in warnings] == [
        "the slower reference in torch is used",
        "trees pass through transformers' slower layers",
    ]


def test_certify_heals_kernels_that_were_cut_short(tmp_path: Path):
    assert row_kernels()
    assert bindings.library()
    kept = user_cache_path("draftcert") / "native"
    cache = tmp_path / "cache" / "draftcert"
    shutil.copytree(kept, cache / "native")
    for library in (cache / "native").glob("*.so"):
        cut(library)
    # A compiler that says the same about itself, and instead of a long wait hands out what the real one once made.
    wrapper = tmp_path / "g++"
    (compiler,) = compiling.compiler()
    wrapper.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exec {compiler} --version\n'
        'while [ "$1" != -o ]; do shift; done\n'
        f'exec cp {kept}/"$(basename "$2")" "$2"\n'
    )
    wrapper.chmod(0o755)
    (first, *warnings), lines = certified(CXX=str(wrapper), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert first.split()[1:] == ["True", "True"]
    assert warnings == [""]
    assert ["was changed or cut short" in line for line in lines] == [True, True]


COMPILERS = ["g++", "g++-11", "g++-12", "clang++"]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_compilers(compiler: str, tmp_path: Path):
    """All sources compile, and compute."""
    path = shutil.which(compiler)
    if path is None:
        pytest.skip(f"{compiler} is not installed")
    numbered = {os.path.realpath(found) for name in COMPILERS[1:] if (found := shutil.which(name))}
    if compiler == "g++" and os.path.realpath(path) in numbered:
        pytest.skip("the same as one with a number")
    flags = ["-std=c++17", "-O0", "-fPIC", "-Wno-psabi"]
    sources = [file for name in compiling.FOLDERS for file in compiling.sources(name) if file.suffix == ".cpp"]
    subprocess.run([path, *flags, "-shared", *map(str, sources), "-o", str(tmp_path / "kernels.so")], check=True)
    kernels = ctypes.CDLL(str(tmp_path / "kernels.so"))
    for level in range(kernels.draftcert_use_instruction_set(-1) + 1):
        x, w, y = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [5.0, 6.0]]), torch.zeros(1, 2)
        matrix = ctypes.byref(bindings.Matrix(w.data_ptr(), bindings.FLOAT32))
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, y)]
        sizes = [ctypes.c_int64(n) for n in (1, 2, 2)]
        assert kernels.draftcert_linear(pointers[0], matrix, None, pointers[1], *sizes, 1, level) == 0
        assert y.tolist() == [[11.0, 17.0]]
