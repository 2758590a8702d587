"""Docstrings as the site reads them: an extension of griffe, which reads the code for mkdocstrings."""

import re
from typing import Any

from griffe import Extension

EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)


class Examples(Extension):
    """Examples that begin with `>>>` are code, up to the next empty line."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Put a fence around each example."""
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(r"\1```pycon\n\g<0>\n\1```", obj.docstring.value)
