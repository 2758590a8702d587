"""The axes that signatures name, `Float[Tensor, "rows vocab"]`, are checked at every call while tests run.

Only here: the package itself imports neither jaxtyping nor beartype.
"""

from __future__ import annotations

import functools
import gc
import inspect
import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, get_type_hints

import beartype
import jaxtyping
import pytest
from jaxtyping import TypeCheckError, jaxtyped

NAMES_AXES = (
    "draftcert.audit.losses",
    "draftcert.runtime.rows.certify",
    "draftcert.runtime.rows.projection",
    "draftcert.runtime.rows.records",
    "draftcert.runtime.rows.reference",
    "draftcert.runtime.rows.threshold",
    "draftcert.runtime.trees.tree",
    "draftcert.runtime.trees.verify",
)
"""The modules whose functions and records are checked."""

ANNOTATIONS = {name: getattr(jaxtyping, name) for name in ("Bool", "Float", "Float64", "Int64", "UInt8")}
"""What those modules import for type checkers only."""

_beartype = beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that fails where a call breaks its signature, unless it refuses the arguments by itself.

    So what a signature excludes is a DraftcertError for the user, and what a function takes is in its signature.
    """
    from torch.compiler import is_compiling

    from draftcert.theory import DraftcertError

    get_type_hints(function)  # a name that means nothing is an error, not an unchecked argument
    strict = jaxtyped(function, typechecker=_beartype)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_compiling():  # the shapes of a trace are symbols
            return function(*args, **kwargs)
        try:
            return strict(*args, **kwargs)
        except TypeCheckError as violation:
            try:
                function(*args, **kwargs)
            except DraftcertError as refusal:
                raise refusal from None
            raise violation from None

    return call


def _check(module: ModuleType, owner: Any) -> None:
    for name, value in list(vars(owner).items()):
        if inspect.isclass(value) and value.__module__ == module.__name__:
            _check(module, value)
        elif inspect.isfunction(value) and any("[Tensor, " in str(hint) for hint in value.__annotations__.values()):
            setattr(owner, name, checked(value))


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        vars(module).update(ANNOTATIONS)
        _check(module, module)


class _Finder:
    @staticmethod
    def find_spec(name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name not in NAMES_AXES or (spec := PathFinder.find_spec(name, path, target)) is None or not spec.origin:
            return None
        spec.loader = _Loader(name, spec.origin)
        return spec


sys.meta_path.insert(0, _Finder)

os.environ["HYPOTHESIS_NO_PLUGINS"] = "1"  # trio, which selenium brings, has one that looks through all objects

gc.disable()  # what is loaded until the tests are collected stays to the end: torch, transformers, sympy


def pytest_collection_finish() -> None:
    """No search for garbage goes through all of that."""
    gc.freeze()
    gc.enable()


@pytest.fixture(name="checked")
def _checked() -> Any:
    """The decorator, for the test of it."""
    return checked


@pytest.fixture(scope="session")
def fork() -> Any:
    """A family of one's own that is called like another one: strict, where that one is not.

    At 1 it accepts nothing, while the other accepts every maximum.
    """
    import sympy

    from draftcert.theory import RuleFamily
    from draftcert.theory.rule import Parameter
    from draftcert.theory.statistics import PROBABILITY, TOP

    a = sympy.Symbol("a", nonnegative=True)
    domain = Parameter(a, sympy.Interval(0, 1), "fraction of the largest probability, exclusive")
    return RuleFamily("multiplicative", (domain,), sympy.Gt(PROBABILITY, a * TOP), "nobody", "the tests", ())
