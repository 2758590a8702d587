"""`import draftcert`: every public name, none of them paid for before it is asked for."""

import ast
import importlib
import json
import pkgutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import draftcert
import draftcert.theory

ROOT = Path(__file__).parents[1]
LAZY = ("draftcert", "draftcert.theory", "draftcert.runtime", "draftcert.audit")
PACKAGES = (
    *LAZY,
    *("draftcert.proofs_check", "draftcert.numerics", "draftcert.document", "draftcert.cli"),
    *("draftcert.runtime.rows", "draftcert.runtime.models", "draftcert.runtime.trees"),
)
ROOMS = ("rows", "models", "trees")
OF_TORCH = ("Tree", "certify", "verify_tree", "certificate_hinge")
"""Names from the modules whose arguments are tensors; only the tests check these (`tests/conftest.py`)."""


def public(name: str) -> list[str]:
    return importlib.import_module(name).__all__


def source_of(package: str) -> str:
    """Where the names of a lazy package come from, as a checker of types reads it."""
    folder = {"draftcert": "front_door"}.get(package, package.removeprefix("draftcert."))
    return (ROOT / folder / "__init__.py").read_text(encoding="utf-8")


def loaded_by(statement: str) -> set[str]:
    """The heavy libraries that a fresh interpreter has loaded after a statement."""
    heavy = ("sympy", "torch", "numpy", "cvxpy", "transformers", "typer", "jaxtyping", "beartype")
    ask = f"{statement}\nimport json, sys\nprint(json.dumps([name for name in {heavy} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there_and_listed_once(package: str):
    module = importlib.import_module(package)
    assert len(set(module.__all__)) == len(module.__all__)
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        getattr(module, name)


@pytest.mark.parametrize("package", LAZY)
def test_all_names_that_a_lazy_package_imports_are_public(package: str):
    lines = [node for node in ast.walk(ast.parse(source_of(package))) if isinstance(node, ast.ImportFrom)]
    imported = {alias.name for line in lines for alias in line.names} - {"TYPE_CHECKING", "lazy_names"}
    assert imported == set(public(package)) - {"__version__"}


@pytest.mark.parametrize("package", LAZY)
def test_no_lazy_name_is_that_of_a_module(package: str):
    """Python would bind it to the module as soon as anything imports that."""
    modules = {each.name for each in pkgutil.iter_modules(importlib.import_module(package).__path__)}
    assert not modules & set(public(package))


def test_a_layer_has_all_names_of_its_rooms():
    assert set(public("draftcert.runtime")) == {name for room in ROOMS for name in public(f"draftcert.runtime.{room}")}


def test_the_front_door_leads_to_the_layers():
    layers = [importlib.import_module(f"draftcert.{each}") for each in ("theory", "numerics", "runtime", "audit")]
    for name in set(draftcert.__all__) - {"__version__"}:
        (layer,) = (each for each in layers if name in each.__all__)  # a name that two layers have is not at the front
        assert getattr(draftcert, name) is getattr(layer, name)


def test_what_the_project_promises_is_there():
    promised = """
        certificate certify row_stats margin_bounds parse_rule Rule RuleFamily RULES PRESETS THEOREMS FORMULAS
        implication Tree verify_tree GreedyTreeDecoder load_model run_audit audit_logprobs recommend certificate_hinge
        DraftcertError
    """
    assert set(promised.split()) <= set(draftcert.__all__)


def test_the_version_is_stated_once():
    assert draftcert.__version__ == version("draftcert")
    assert f"\nversion: {draftcert.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'draftcert' has no attribute 'certifiy'"):
        _ = draftcert.certifiy  # type: ignore[attr-defined]
    assert not hasattr(draftcert.theory, "parse_rules")


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import draftcert; draftcert.__version__, draftcert.DraftcertError, dir(draftcert)", set()),
        ("import draftcert.theory, draftcert.runtime, draftcert.audit", set()),
        ("import draftcert; draftcert.Rule", {"sympy"}),
        (f"import draftcert; {', '.join(map('draftcert.{}'.format, OF_TORCH))}", {"sympy", "numpy", "torch"}),
        ("import draftcert.cli", {"typer"}),
    ],
)
def test_only_what_is_used_is_loaded(statement: str, heavy: set[str]):
    assert loaded_by(statement) == heavy
