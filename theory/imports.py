"""Imports that wait: public names until they are asked for, optional dependencies until they are used."""

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import resolve_name
from typing import Any

from .errors import DraftcertError


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose public names are imported when they are first asked for.

    The names are those that the package's `__init__.py` imports under `if TYPE_CHECKING:`: type checkers and editors
    see these imports, and here the same lines say where each name comes from. None may be called as a module of the
    package is: Python binds that name to the module as soon as anything imports it.
    """
    module = sys.modules[package]
    source = module.__spec__.loader.get_source(package)  # type: ignore[union-attr]
    homes = {
        alias.name: resolve_name("." * line.level + (line.module or ""), package)
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        value = getattr(import_module(homes[name]), name)
        setattr(module, name, value)  # Python finds it there from now on, without asking again
        return value

    return get, lambda: sorted({*vars(module), *homes})


@contextmanager
def optional(extra: str) -> Iterator[None]:
    """Whatever is imported here comes with an extra of draftcert, `pip install 'draftcert[extra]'`.

    Put it around the import where the dependency is used, never at the top of a module that also works without.

    >>> with optional("report"):
    ...     import missing_library
    Traceback (most recent call last):
    draftcert.theory.errors.DraftcertError: No module named 'missing_library': pip install 'draftcert[report]'

    Raises:
        DraftcertError: it cannot be imported; the message says what to install. A module of draftcert itself that is
            missing is a fault, not something to install: that error is left as it is.
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "draftcert":
            raise
        # Some libraries say at length, over several lines, what they cannot import.
        raise DraftcertError(f"{' '.join(str(error).split())}: pip install 'draftcert[{extra}]'") from error
