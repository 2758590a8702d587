"""Text of unknown origin on a terminal: it is shown, and can do nothing."""

from __future__ import annotations

import re
from typing import Any

from rich.console import Console
from rich.text import Text

# Control characters, which begin escape sequences; halves of surrogate pairs, which cannot be printed; characters that
# end lines, turn the direction of writing or are nowhere seen. The two joiners stay: scripts and emoji need them.
_ACTIVE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str, lines: bool = False) -> str:
    r"""Text in which everything that a terminal would act on is written out; `lines` leaves line ends and tabs.

    >>> print(visible("safe\x1b[2K\rverdict: identical\n"))
    safe\x1b[2K\rverdict: identical\n
    """
    return _ACTIVE.sub(lambda match: match[0] if lines and match[0] in "\n\t" else repr(match[0])[1:-1], text)


class SafeConsole(Console):
    """A rich console that prints strings as they are: no markup or emoji names in them, and nothing that is active.

    Only line ends and tabs are left in: text that must not reach the next line goes through `visible` first.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Every string that is printed, in tables and titles too, comes through here."""
        return super().render_str(visible(text, lines=True), **options)
