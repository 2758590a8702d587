"""`python -m draftcert`: the command line."""

from draftcert.cli import main

main()
