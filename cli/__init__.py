"""The command line `draftcert`."""


def main() -> None:
    """Run the command line."""
