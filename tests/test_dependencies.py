"""Every library that the layers import is declared, and an optional one is asked for where it is used.

Read from the syntax trees of the sources; `test_packaging` runs them where the optional libraries are not.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DISTRIBUTIONS = {"llama_cpp": ["llama-cpp-python"], **packages_distributions()}


def canonical(requirement: str) -> str:
    """The name in a requirement, as names of distributions are compared."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


CORE = {canonical(each) for each in PROJECT["dependencies"]}
EXTRAS = {extra: {canonical(each) for each in needed} for extra, needed in PROJECT["optional-dependencies"].items()}


class Import(NamedTuple):
    """An import outside of `if TYPE_CHECKING:`."""

    module: str
    line: int
    at_top: bool
    extra: str | None
    """The extra of the `with optional(extra):` that it stands in."""


def imports(tree: ast.AST, package: tuple[str, ...], at_top: bool = True, extra: str | None = None) -> Iterator[Import]:
    """All imports of a file in a package of the layers, those of the layers as `runtime.models.caches`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, at_top, extra) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *filter(None, [node.module])])
            # What is imported from a package may be a module of it.
            for name in [module, *(f"{module}.{alias.name}" for alias in node.names)]:
                yield Import(name.removeprefix("draftcert."), node.lineno, at_top, extra)
        else:
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            asked = ast.unparse(node.items[0].context_expr) if isinstance(node, ast.With) else ""
            found = re.fullmatch(r"optional\('(\w+)'\)", asked)
            yield from imports(node, package, at_top and not inside, found[1] if found else extra)


@cache
def imports_of(name: str, text: str) -> tuple[Import, ...]:
    """The imports of the module of this name."""
    return tuple(imports(ast.parse(text), tuple(name.split(".")[:-1])))


class Sources:
    """The modules of the layers by dotted name, and what each cannot be imported without."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.imports = {name.removesuffix(".__init__"): imports_of(name, text) for name, text in texts.items()}
        self.needs: dict[str, set[str]] = {name: set() for name in self.imports}
        changed = True
        while changed:
            changed = False
            for name, found in self.imports.items():
                needed = set().union(*(self.optional(each) for each in found if each.at_top and not each.extra))
                changed |= needed > self.needs[name]
                self.needs[name] |= needed

    def optional(self, imported: Import) -> set[str]:
        """The optional distributions that an import needs."""
        if imported.module in self.needs:
            return self.needs[imported.module]
        return distributions(imported.module) - CORE

    def faults(self) -> Iterator[str]:
        """What is not declared, or not asked for as it must be."""
        for name, found in self.imports.items():
            for each in found:
                needed, where = self.optional(each), f"{name}, line {each.line}: {each.module}"
                if undeclared := needed - set().union(*EXTRAS.values()):
                    yield f"{where} needs {sorted(undeclared)}, which pyproject.toml does not declare"
                elif each.extra and not needed <= EXTRAS[each.extra]:
                    yield f"{where} needs {sorted(needed - EXTRAS[each.extra])}, which '{each.extra}' does not bring"
                elif needed and not each.extra and not needed <= self.needs[name]:
                    yield f"{where} needs {sorted(needed)}: import it inside `with optional(...)`"


@cache
def distributions(module: str) -> set[str]:
    """The distributions that a library's module comes from; none for the standard library and the layers."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top in LAYERS:
        return set()
    return {canonical(name) for name in DISTRIBUTIONS.get(top, [top])}


LAYERS = {path.parent.name for path in ROOT.glob("*/__init__.py")} | {"draftcert"}
TEXTS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text(encoding="utf-8")
    for layer in LAYERS
    for path in (ROOT / layer).rglob("*.py")
}


def test_libraries_are_declared_and_optional_ones_are_asked_for():
    sources = Sources(TEXTS)
    assert len(sources.imports) > 100
    assert not list(sources.faults())


def test_no_package_needs_an_optional_library():
    sources = Sources(TEXTS)
    packages = [name.removesuffix(".__init__") for name in TEXTS if name.endswith(".__init__")]
    assert not {name: sources.needs[name] for name in packages if sources.needs[name]}
    # The modules that are only of use with such a library: it is their importers that ask for it.
    assert sources.needs["runtime.models.caches"] == {"transformers"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("import torch", None),
        ("def f():\n    with optional('hf'):\n        import transformers", None),
        ("with optional('hf'):\n    from ..runtime.models.caches import TreeCache", None),
        ("if TYPE_CHECKING:\n    from ..runtime.models.caches import TreeCache", None),
        ("def f():\n    import transformers", "inside `with optional"),
        ("def f():\n    from ..runtime.models.caches import TreeCache", "inside `with optional"),
        ("with optional('ray'):\n    import transformers", "'ray' does not bring"),
        ("import a_library_of_nobody", "does not declare"),
        ("import pip", "does not declare"),
    ],
)
def test_the_test_sees_every_kind_of_fault(text: str, fault: str | None):
    found = list(Sources(TEXTS | {"audit.some_file": text}).faults())
    if fault is None:
        assert not found
    else:
        (told,) = found
        assert told.startswith("audit.some_file, line ")
        assert fault in told


def test_importing_an_optional_library_at_the_top_is_seen_in_the_importers():
    found = list(Sources(TEXTS | {"audit.measure": "import transformers"}).faults())
    assert any(each.startswith("cli.audit") for each in found)
