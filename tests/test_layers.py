"""Imports only go down the layers, read from every file's syntax tree."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ALLOWED = {
    "theory": set(),
    "support": {"theory"},
    "proofs_check": {"theory", "support"},
    "numerics": {"theory", "support"},
    "runtime": {"theory", "support", "numerics"},
    "document": {"theory", "support", "proofs_check", "numerics"},
    "audit": {"theory", "support", "proofs_check", "numerics", "runtime", "document"},
    "cli": {"theory", "support", "proofs_check", "numerics", "runtime", "document", "audit"},
    # The root package: its names are for users, so no layer may import one from it.
    "front_door": {"theory", "numerics", "runtime", "audit", "cli"},
}
# The generator of kernels asks the ledger what is proved; what it generates imports nothing of the kind.
EXCEPTIONS = {"runtime/codegen": {"proofs_check"}}
LIBRARIES_OF_THEORY = {"sympy", "mpmath"}


def sources(layer: str) -> list[Path]:
    return sorted((ROOT / layer).rglob("*.py"))


def imported_layers(path: Path, text: str) -> set[str]:
    """The layers a file imports, relatively or as `draftcert.…`, inside functions too."""
    package = ["draftcert", *path.relative_to(ROOT).parts[:-1]]
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level <= len(package), f"{path}: an import beyond the top"
            base = package[: len(package) - node.level + 1] if node.level else []
            module = [*base, *(node.module or "").split(".")] if node.module else base
            imported = [[*module, alias.name] for alias in node.names]
        else:
            continue
        names = ["".join(each[1:2]) for each in imported if each[0] == "draftcert"]
        found |= {name if name in ALLOWED else "front_door" for name in names}
    return found


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


def test_support_knows_nothing_of_the_theory_but_the_error():
    for path in sources("support"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                assert node.module == "theory.errors", f"{path.relative_to(ROOT)} imports {node.module}"


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
        ("import draftcert.proofs_check.kernel", {"proofs_check"}),
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
