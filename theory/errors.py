"""The one error type of the project, raised at every public boundary."""


class DraftcertError(ValueError):
    """Bad input, or a claim that does not hold. The message names the value, the place and what to do."""
