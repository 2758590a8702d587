"""What is shown is run: examples in docstrings, code in pages and notebooks, examples in each command's help."""

import ast
import doctest
import functools
import importlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import draftcert
from draftcert.cli import acts, commands, whole
from tests.forks import Forks

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING")]
PAGES += sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "engines")
"""Those of engines are run where these are installed, by tests/engines/test_page.py."""
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
APP = whole()

NOT_RUN = ("needs a GPU", "needs the network", "takes minutes", "takes hours")
"""Why a block may be left out, said in a comment on the line above it: `<!-- not run: needs a GPU -->`."""

MOST_NOT_RUN = 5

OF_THE_MODEL = re.compile(
    r"load_model|distil_drafter|draftcert (generate|explain|reproduce|recommend|audit (?!logprobs))"
)
"""What loads the real model, or starts from the results of what does."""

PREPARED = {
    "draftcert verify": "draftcert certify --probs 0.5,0.45,0.05 --witness witness.json",
    "draftcert recommend": "draftcert audit --drafter layers:0-11,14-29 --limit 2 --max-new-tokens 16 --out audit-out",
}
"""What makes the files that a command reads."""

OUTPUT = doctest.ELLIPSIS


# What is shown, found in the files.


@dataclass(frozen=True)
class Shown:
    """A docstring, an example of the command line, or a block of a page: where it begins, and its text."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{os.path.relpath(self.path, ROOT)}:{self.line}"

    @property
    def code(self) -> str:
        """What of the text is run."""
        return self.text

    @property
    def of_the_model(self) -> bool:
        """Whether it runs only where the real model is installed."""
        return OF_THE_MODEL.search(self.code) is not None


@dataclass(frozen=True)
class Docstring(Shown):
    """`module`: what its names come from; None in a script."""

    module: str | None

    @functools.cached_property
    def examples(self) -> doctest.DocTest:
        """Its examples with the output they show."""
        return doctest.DocTestParser().get_doctest(self.text, {}, str(self), str(self.path), self.line - 1)

    @property
    def code(self) -> str:
        return "".join(example.source for example in self.examples.examples)


@dataclass(frozen=True)
class Block(Shown):
    """A fenced block of a page; `line` is its first line of code, `output` a block of text right beneath it."""

    language: str
    not_run: str | None
    output: str | None


def docstrings(path: Path, module: str | None) -> Iterator[Docstring]:
    """Those of modules, classes, functions and attributes, without the indent of the code around them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            text = re.sub(f"^ {{{node.col_offset}}}", "", node.value.value, flags=re.MULTILINE)
            yield Docstring(path, node.lineno, text, module)


def all_docstrings() -> Iterator[Docstring]:
    """Every one of the installed package, and of the example scripts."""
    for root in draftcert.__path__:
        for file in sorted(Path(root).rglob("*.py")):
            module = ".".join(("draftcert", *file.relative_to(root).with_suffix("").parts))
            # An editable install holds links: what is shown is to be named as it stands in the repository.
            yield from docstrings(file.resolve(), module.removesuffix(".__init__"))
    for path in SCRIPTS:
        yield from docstrings(path, None)


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = path.read_text(encoding="utf-8")
    fenced = re.compile(
        r"^(?:<!-- not run: (.*?) -->\n)?```(\w*)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
    )
    found = [
        Block(path, text.count("\n", 0, match.start(3)) + 1, match[3], match[2], match[1], match[4])
        for match in fenced.finditer(text)
    ]
    fences = 2 * len(found) + 2 * sum(block.output is not None for block in found)
    assert text.count("```") == fences, f"{path}: a fence that is not understood; write it without indent"
    return found


def cells(path: Path) -> list[Block]:
    """The cells of a notebook with what they printed; `line` counts cells."""
    found = []
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"], 1):
        if cell["cell_type"] == "code":
            assert all(output.get("name") == "stdout" for output in cell["outputs"]), f"{path}: cells only print"
            output = "".join(line for output in cell["outputs"] for line in output["text"])
            found.append(Block(path, number, "".join(cell["source"]), "python", None, output))
    return found


def console_lines(block: Block) -> Iterator[tuple[Shown, str]]:
    """Each command of a console block with the output shown beneath it."""
    lines = block.text.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    assert starts[:1] == [0], f"{block}: a console block begins with a command, as `$ draftcert --help`"
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield Shown(block.path, block.line + start, lines[start][2:].strip()), "".join(lines[start + 1 : end])


DOCSTRINGS = list(all_docstrings())
BLOCKS = {page: blocks(page) for page in PAGES} | {notebook: cells(notebook) for notebook in NOTEBOOKS}
EXAMPLES = [
    Shown(each.path, each.line + each.text.count("\n", 0, match.start(1)), match[1])
    for each in DOCSTRINGS
    for match in re.finditer(r"^Example: (.+)$", each.text, re.MULTILINE)
]


def cases(shown: Sequence[Shown]) -> list[Any]:
    return [pytest.param(each, id=str(each), marks=pytest.mark.model if each.of_the_model else []) for each in shown]


@pytest.fixture(autouse=True)
def model_is_installed(request: pytest.FixtureRequest) -> None:
    """Skips what needs the model where its package is not installed."""
    if request.node.get_closest_marker("model") is None:
        return
    from draftcert.runtime.models import default_gguf
    from draftcert.theory.errors import DraftcertError

    try:
        default_gguf()
    except DraftcertError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where commands and pages run, with the files that they name."""
    folder = tmp_path_factory.mktemp("shown")
    (folder / "examples").symlink_to(ROOT / "examples")
    shutil.copy(ROOT / "tests" / "audit" / "recorded" / "llama_server" / "chat.json", folder / "response.json")
    for name, end in (("first.txt", " (the icy moon of Jupiter)"), ("second.txt", "")):
        (folder / name).write_text(f"1. Europa{end}")
    return folder


LIBRARIES = (
    *("torch", "transformers.models.llama.modeling_llama", "cvxpy", "scipy.optimize", "pyarrow.parquet"),
    *("pydantic.fields", "draftcert.cli", "draftcert.theory.theorems", "draftcert.numerics.margins"),
    *("draftcert.runtime.codegen", "draftcert.runtime.trees", "draftcert.document", "draftcert.audit.report"),
)
"""What many commands load; `test_packaging` and `test_front_door` test that each loads what it needs."""


@pytest.fixture(scope="module")
def console(folder: Path) -> Iterator[Callable[[Shown], str]]:
    """Runs a command line as it stands and returns its output. A line that is shown in several places is run once."""
    programs = sysconfig.get_path("scripts")
    environment = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }

    @functools.cache
    def finished(command: str) -> subprocess.CompletedProcess[str]:
        for start, preparation in PREPARED.items():
            if command.startswith(start):
                assert finished(preparation).returncode == 0, finished(preparation).stderr
        if not re.search(r"[|&;<>$`*?~#]", command):
            program, *arguments = shlex.split(command)
            return forks.run(arguments if program == "python" else [Path(programs, program), *arguments])
        shell = ["bash", "-euo", "pipefail", "-c", command]
        return subprocess.run(shell, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    def run(shown: Shown) -> str:
        done = finished(shown.text)
        if done.returncode:
            said = f"$ {shown.text}\n{done.stdout}{done.stderr}"
            pytest.fail(f"{shown} ends with exit status {done.returncode}:\n{said}", pytrace=False)
        return done.stdout

    with Forks(Path(sys.executable), LIBRARIES, folder, environment) as forks:
        yield run


def compare(shown: Shown, wanted: str, found: str) -> None:
    """Fail where the output is not the one shown; `...` stands for anything."""
    checker, example = doctest.OutputChecker(), doctest.Example(shown.text, wanted)
    found = "".join(f"{line.rstrip()}\n" for line in found.splitlines())
    if not checker.check_output(example.want, found, OUTPUT):
        difference = checker.output_difference(example, found, OUTPUT)
        pytest.fail(f"{shown} shows another output:\n{shown.text.rstrip()}\n{difference}", pytrace=False)


# Docstrings.


@pytest.mark.parametrize("docstring", cases([each for each in DOCSTRINGS if each.code]))
def test_examples_of_docstrings(docstring: Docstring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    examples = docstring.examples
    if any(example.options.get(doctest.SKIP) for example in examples.examples):
        pytest.fail(f"{docstring}: nothing runs an example that is skipped", pytrace=False)
    assert docstring.module is not None, f"{docstring}: a script is shown by an `Example: python ...`"
    examples.globs = vars(importlib.import_module(docstring.module)).copy()
    report = io.StringIO()
    if doctest.DocTestRunner(optionflags=OUTPUT).run(examples, out=report.write).failed:
        pytest.fail(report.getvalue(), pytrace=False)


def code_not_run(docstring: Docstring) -> Iterator[str]:
    """The paragraphs that read as code and are no doctest."""
    introduced = False
    for paragraph in re.split(r"\n(?: *\n)+", docstring.text):
        block = textwrap.dedent(paragraph)
        indented = block != paragraph
        in_place = re.match(r"Examples?:+\s*(`|\n)", paragraph) or "```" in paragraph
        if ">>>" not in paragraph and (in_place or (indented and (introduced or is_code(block)))):
            yield f"{docstring}: {block.splitlines()[0]}"
        introduced = paragraph.rstrip().endswith("::")


def is_code(text: str) -> bool:
    """Commands, or statements of Python that call or import something; a formula is neither."""
    if re.match(r"(\$|draftcert|python3?|pip|make) ", text):
        return True
    try:
        statements = ast.parse(text).body
    except SyntaxError:
        return False
    return any(
        isinstance(each, (ast.Import, ast.ImportFrom, ast.For, ast.With, ast.FunctionDef, ast.ClassDef))
        or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Call))
        for each in statements
    )


def test_code_in_docstrings_is_run():
    found = [each for docstring in DOCSTRINGS for each in code_not_run(docstring)]
    assert not found, "write it as a doctest, or as `Example: draftcert ...`:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "Load it.\n\nExample::\n\n    target = load_model()\n",
        "Load it.\n\nExample:\n    target = load_model()\n",
        "Load it.\n\nExample: `load_model()`.\n",
        "Load it:\n\n    model = load_model()\n    print(model)\n",
        "Load it as::\n\n    load something\n",
        "A script.\n\n    python examples/script.py --steps 3\n",
        "Load it.\n\n```python\nload_model()\n```\n",
    ],
)
def test_the_test_sees_code_that_is_not_run(text: str):
    assert list(code_not_run(Docstring(ROOT / "module.py", 1, text, "module")))


@pytest.mark.parametrize(
    "text",
    [
        "The formula\n\n    C = s phi(g / s),  s = p_(1) + p_(2)\n",
        "Load it.\n\n>>> load_model()\n",
        "Load it::\n\n    >>> load_model()\n",
        "A command.\n\nExample: draftcert cite M7\n",
        "Load it.\n\nRaises:\n    DraftcertError: it is absent.\n",
    ],
)
def test_the_test_lets_the_rest_be(text: str):
    assert not list(code_not_run(Docstring(ROOT / "module.py", 1, text, "module")))


# Commands.


@pytest.mark.parametrize("example", cases(EXAMPLES))
def test_examples_of_commands(example: Shown, console: Callable[[Shown], str]):
    console(example)


@pytest.mark.parametrize(
    ("name", "command"), [pytest.param(*each, id=each[0]) for each in commands(APP) if acts(each[1])]
)
def test_each_command_shows_an_example(name: str, command: Any):
    examples = {example.text for example in EXAMPLES}
    shown = {line.removeprefix("Example: ") for line in (command.help or "").splitlines()} & examples
    assert any(example.startswith(f"{name} ") for example in shown), f"{name} --help has no `Example: {name} ...`"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_each_script_shows_an_example(script: Path):
    name = script.relative_to(ROOT).as_posix()
    shown = [example.text for example in EXAMPLES if example.path == script]
    assert any(text.startswith(f"python {name}") for text in shown), f"{name} has no `Example: python {name} ...`"


def unknown_word(line: str) -> str | None:
    """The first word of a command line that is neither a command nor an option of it."""
    command = APP
    for word in shlex.split(line, comments=True)[1:]:
        option, inner = word.partition("=")[0], getattr(command, "commands", {})
        if word.startswith("-"):
            known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
            if option not in known | {"--help", "-h"}:
                return word
        elif word in inner:
            command = inner[word]
        elif command is APP:
            return word
    return None


def named_commands() -> Iterator[Shown]:
    """Commands in the text of pages and docstrings, and in the blocks that are not run."""
    for each in (*(Shown(page, 1, page.read_text(encoding="utf-8")) for page in PAGES), *DOCSTRINGS):
        for match in re.finditer(r"(?<!`)`(draftcert [^`]+)`", each.text):
            yield Shown(each.path, each.line + each.text.count("\n", 0, match.start()), match[1])
    for block in (block for page in PAGES for block in BLOCKS[page] if block.not_run and block.language == "console"):
        yield from (command for command, _ in console_lines(block) if command.text.startswith("draftcert "))


def test_commands_in_the_text_exist():
    named = list(named_commands())
    assert named
    unknown = [f"{each}: {word} in `{each.text}`" for each in named if (word := unknown_word(each.text))]
    assert not unknown, "\n".join(unknown)


# Pages.


def in_turn(page: Path) -> list[Any]:
    """The blocks of a page that need no model, and all of them: later blocks use what earlier ones made."""
    name = page.relative_to(ROOT).as_posix()
    every = [block for block in BLOCKS[page] if not block.not_run]
    light = [block for block in every if not block.of_the_model]
    cases = [pytest.param(light, id=name)] if light else []
    if every != light:
        cases.append(pytest.param(every, id=f"{name} with the model", marks=pytest.mark.model))
    return cases


@pytest.mark.parametrize("shown", [case for page in BLOCKS for case in in_turn(page)])
def test_blocks_of_pages_and_notebooks(
    shown: list[Block], console: Callable[[Shown], str], folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in shown:
        if block.language == "console":
            outputs = [(command, wanted, console(command)) for command, wanted in console_lines(block)]
        elif block.language == "python":
            outputs = [(block, block.output, executed(block, names))]
        else:
            what = f"'{block.language}' is neither python, console, nor text right beneath python, its output"
            pytest.fail(f"{block}: {what}; `<!-- not run: REASON -->` above it leaves it out", pytrace=False)
        for code, wanted, found in outputs:
            if wanted:
                compare(code, wanted, found)


def executed(block: Block, names: dict[str, Any]) -> str:
    """What a block of Python prints."""
    printed = io.StringIO()
    # The empty lines before it let tracebacks name the line of the page.
    code = compile("\n" * (block.line - 1) + block.text, str(block.path), "exec")
    with redirect_stdout(printed):
        try:
            exec(code, names)
        except Exception:
            raise pytest.fail.Exception(f"{block} fails:\n{traceback.format_exc(limit=-1)}", pytrace=False) from None
    return printed.getvalue()


def test_blocks_that_are_not_run_are_few_and_say_why():
    left_out = [block for page in PAGES for block in BLOCKS[page] if block.not_run is not None]
    shown = "\n".join(f"{block}: {block.not_run}" for block in left_out)
    assert all(block.not_run in NOT_RUN for block in left_out), shown
    assert len(left_out) <= MOST_NOT_RUN, shown
