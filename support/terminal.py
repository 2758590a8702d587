"""A console on which text of unknown origin is shown, and can do nothing."""

from __future__ import annotations

import os
from typing import Any, NoReturn

from rich.console import Console
from rich.text import Text

from .text import visible


class SafeConsole(Console):
    """A rich console that prints strings as they are: no markup or emoji names in them, and nothing that is active.

    Only line ends and tabs are left in: text that must not reach the next line goes through `visible` first. Where
    the environment has `NO_COLOR`, nothing is coloured, or styled in another way.
    """

    def __init__(self, **options: Any) -> None:
        if os.environ.get("NO_COLOR"):
            options["color_system"] = None
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Every string that is printed, in tables and titles too, comes through here."""
        return super().render_str(visible(text, lines=True), **options)

    def on_broken_pipe(self) -> NoReturn:
        """Whoever reads has left: the program decides how to end, not the console."""
        raise BrokenPipeError
