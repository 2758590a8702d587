"""Source code that `draftcert.runtime.codegen` writes; committed, and checked to be current."""

from pathlib import Path

FOLDER = Path(__file__).resolve().parent
"""Where the generated files lie."""
