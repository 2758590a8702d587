"""Names that people mistype."""

import difflib
from collections.abc import Iterable

from .errors import DraftcertError
from .numbers import shown


def unknown_name(kind: str, name: str, known: Iterable[str]) -> DraftcertError:
    """Says that no `kind` of thing has this name, which ones come close to it, and what there is.

    >>> print(unknown_name("rule", "aditive", ["additive", "absolute"]))
    no rule is called 'aditive'; did you mean additive? There are additive, absolute
    """
    return DraftcertError(f"no {kind} is called {shown(name)}; {offer(name, known)}")


def offer(name: str, known: Iterable[str]) -> str:
    """What a message that knows nothing of a name offers instead."""
    known = list(known)
    meant = f"did you mean {' or '.join(close)}? There" if (close := near(name, known)) else "there"
    return f"{meant} are {', '.join(known)}"


def near(name: str, known: Iterable[str]) -> list[str]:
    """At most three of the known names that this one could have been meant for, the closest first."""
    if not isinstance(name, str):
        return []
    lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower()[:100], lower, cutoff=0.7)
    found += [each for each in lower if len(name) > 2 and name.lower() in each and each not in found]
    return [lower[each] for each in found[:3]]
