"""`python -m draftcert.cli`."""

from . import main

main()
