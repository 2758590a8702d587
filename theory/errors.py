"""The one error type of the project, raised at every public boundary."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Argument:
    """An argument and what was given for it, or `True` for a switch: a keyword in Python, a flag on a command line."""

    name: str
    value: object = None

    def __str__(self) -> str:
        if self.value is None or self.value is True:
            return self.name if self.value is None else f"{self.name}=True"
        return f"{self.name} = {self.value}"

    @property
    def flag(self) -> str:
        """How a command line calls it: the flag, and the value if it is given one."""
        flag = "--" + self.name.replace("_", "-")
        return flag if self.value is None or self.value is True else f"{flag} {self.value}"


class DraftcertError(ValueError):
    """Bad input, or a claim that does not hold. The message names the value, the place and what to do.

    It is put together of texts and of the arguments it speaks of.

    >>> error = DraftcertError(Argument("mean_kl", -1), ": a KL is a number of nats from 0 up")
    >>> print(error, error.with_flags, sep="; ")
    mean_kl = -1: a KL is a number of nats from 0 up; --mean-kl -1: a KL is a number of nats from 0 up
    """

    def __str__(self) -> str:
        return "".join(map(str, self.args))

    @property
    def with_flags(self) -> str:
        """The message for a command line."""
        return "".join(part.flag if isinstance(part, Argument) else str(part) for part in self.args)
