"""Imports only go down the layers, read from every file's syntax tree."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ALLOWED = {
    "theory": set(),
    "support": {"theory"},
    "proofs_check": {"theory", "support"},
    "numerics": {"theory", "support"},
    "runtime": {"theory", "support", "numerics"},
    "document": {"theory", "support", "proofs_check", "numerics", "runtime"},
    "audit": {"theory", "support", "proofs_check", "numerics", "runtime", "document"},
    "integrations": {"theory", "support", "numerics", "runtime", "audit"},
    "cli": {"theory", "support", "proofs_check", "numerics", "runtime", "document", "audit", "integrations"},
    # The root package: its names are for users, so no layer may import one from it.
    "front_door": {"theory", "numerics", "runtime", "audit", "cli"},
}
# The generator of kernels asks the ledger what is proved; what it generates imports nothing of the kind.
EXCEPTIONS = {"runtime/codegen": {"proofs_check"}}
ROOMS_OF_RUNTIME = {"rows": {"rows"}, "models": {"models", "rows"}, "trees": {"trees", "models", "rows"}}
LIBRARIES_OF_THEORY = {"sympy", "mpmath"}


def sources(layer: str) -> list[Path]:
    return sorted((ROOT / layer).rglob("*.py"))


def imports(path: Path, text: str) -> set[tuple[str, ...]]:
    """What a file imports of the project, relatively or as `draftcert.…`, inside functions too.

    Each as its place below the project: `from ..rows.records import RowStats` in `runtime/trees/verify.py` is
    `("runtime", "rows", "records", "RowStats")`.
    """
    package = path.relative_to(ROOT).parts[:-1]
    found: set[tuple[str, ...]] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules = (tuple(alias.name.split(".")) for alias in node.names)
            found |= {module[1:] for module in modules if module[0] == "draftcert"}
        elif isinstance(node, ast.ImportFrom):
            module: tuple[str, ...] = tuple(node.module.split(".")) if node.module else ()
            if node.level == 0 and module[:1] != ("draftcert",):
                continue
            assert node.level - 1 <= len(package), f"{path}: an import beyond the top"
            base = (*package[: len(package) - node.level + 1], *module) if node.level else module[1:]
            found |= {(*base, alias.name) for alias in node.names}
    return found


def imported_layers(path: Path, text: str) -> set[str]:
    return {place[0] if place[:1] and place[0] in ALLOWED else "front_door" for place in imports(path, text)}


def allowed(path: Path, layer: str) -> set[str]:
    relative = path.relative_to(ROOT).as_posix()
    extra = [layers for prefix, layers in EXCEPTIONS.items() if relative.startswith(prefix)]
    return ALLOWED[layer] | {layer} | set().union(*extra)


@pytest.mark.parametrize("layer", ALLOWED)
def test_imports_go_down(layer: str):
    files = sources(layer)
    assert files
    for path in files:
        above = imported_layers(path, path.read_text(encoding="utf-8")) - allowed(path, layer)
        assert not above, f"{path.relative_to(ROOT)} imports {sorted(above)}, which {layer} may not"


@pytest.mark.parametrize("room", ROOMS_OF_RUNTIME)
def test_imports_go_down_the_rooms_of_runtime(room: str):
    files = sources(f"runtime/{room}")
    assert files
    for path in files:
        places = {
            "".join(place[1:2])
            for place in imports(path, path.read_text(encoding="utf-8"))
            if place[:1] == ("runtime",)
        }
        above = places & set(ROOMS_OF_RUNTIME) - ROOMS_OF_RUNTIME[room]
        assert not above, f"{path.relative_to(ROOT)} imports {sorted(above)}, which {room} may not"


def test_no_two_modules_import_each_other():
    """Not by way of others either, nor inside functions."""
    modules = {path.relative_to(ROOT).with_suffix("").parts: path for layer in ALLOWED for path in sources(layer)}
    modules = {name[:-1] if name[-1] == "__init__" else name: path for name, path in modules.items()}

    def module(place: tuple[str, ...]) -> tuple[str, ...]:
        return place if place in modules else place[:-1]

    before = {
        name: {module(place) for place in imports(path, path.read_text(encoding="utf-8"))} - {name}
        for name, path in modules.items()
    }
    assert before["runtime", "trees", "verify"] >= {("runtime", "rows", "certify"), ("runtime", "trees", "tree")}
    TopologicalSorter(before).prepare()  # raises a CycleError that names the circle


def test_support_knows_nothing_of_the_theory_but_errors_and_imports():
    for path in sources("support"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                assert node.module in ("theory.errors", "theory.imports"), (
                    f"{path.relative_to(ROOT)} imports {node.module}"
                )


def test_theory_needs_sympy_only():
    import sys

    for path in sources("theory"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            foreign = {name.split(".")[0] for name in names} - LIBRARIES_OF_THEORY - set(sys.stdlib_module_names)
            assert not foreign, f"{path.relative_to(ROOT)} imports {sorted(foreign)}"


@pytest.mark.parametrize(
    ("line", "layers"),
    [
        ("from ..runtime import generate", {"runtime"}),
        ("from ..numerics.check import x", {"numerics"}),
        ("from .. import audit", {"audit"}),
        ("def f():\n    from draftcert.cli import app", {"cli"}),
        ("import draftcert.proofs_check.prover", {"proofs_check"}),
        ("from draftcert import numerics", {"numerics"}),
        ("from .rule import Rule", {"theory"}),
        ("import json", set()),
        ("import draftcert", {"front_door"}),
        ("from draftcert import certify", {"front_door"}),
        ("from .. import certify", {"front_door"}),
    ],
)
def test_the_test_sees_every_kind_of_import(line: str, layers: set[str]):
    assert imported_layers(ROOT / "theory" / "some_file.py", line) == layers
