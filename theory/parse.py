"""`parse_rule`: from text such as "top_m(10) & additive(0.6)" to a `Rule`."""

import re
from collections.abc import Callable
from functools import lru_cache
from types import MappingProxyType

from .errors import DraftcertError
from .names import unknown_name
from .numbers import shown
from .presets import PRESETS, Preset
from .rule import Rule, RuleFamily, all_of, any_of
from .rules import RULES

_GUARANTEED = "`sampling_acceptance` gives the acceptance that a KL guarantees"
NOT_A_RULE = MappingProxyType(
    {
        "fuzzy": "fuzzy speculative decoding accepts on a divergence between target and draft, so its accepted set is "
        "not a function of the target alone and has no certificate of this kind; `kl_for_divergence` certifies it",
        "rejection_sampl": "rejection sampling accepts with probability min(1, p/q), so its accepted set is neither "
        f"deterministic nor a function of the target alone and has no certificate of this kind; {_GUARANTEED}",
        "speculative_sampl": f"speculative sampling accepts with probability min(1, p/q); {_GUARANTEED}",
        "lenien": f"a lenience accepts with probability min(1, p/(l q)); {_GUARANTEED}",
        "block_verif": f"block verification looks at the drafter's probabilities; {_GUARANTEED}, as a lower bound",
        "entropy_verif": f"entropy verification accepts with probability min(1, p/(l q)); {_GUARANTEED}, and "
        "vllm_ascend_entropy(posterior_threshold, posterior_alpha) is what it accepts whatever the coin",
        "synthetic": "a synthetic acceptance does not look at the target at all: it accepts at the rate that is set",
        "ensemble": "a mixture of target and draft decides, so the accepted set is not a function of the target alone "
        "and has no certificate of this kind",
    }
)
"""What is called a rule elsewhere and is none here: part of its name, and the reason."""

MOST_CHARACTERS = 20_000
"""Of the text of a rule: some numbers of `MOST_DIGITS` find place in it."""
DEEPEST = 32
"""Parentheses in parentheses in the text of a rule."""

SIGNS = MappingProxyType({"and": "&", "&": "&", "or": "|", "|": "|"})
"""What people write between two rules, the second sign of `&&` and `||` included, and the sign that is read there."""
_WORD = re.compile(r"\s*(and|&|or|\|)(?!\w)", re.ASCII | re.IGNORECASE)

_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_]\w*)|(?P<number>[+-]?[\d.](?:[\d.]|[eE][+-]?|\s*/\s*)*)|(?P<sign>[()&|,=]))", re.ASCII
)

_ENDS = re.compile(r"\s*(?:[(&|)]|$)")
"""What may follow the name of a rule."""


def parse_rule(text: str | Rule) -> Rule:
    """Read a rule: names with exact parameters, `&` (both accept), `|` (either accepts), parentheses.

    Numbers are decimals or fractions and stay exact. A `Rule` is returned as it is.

    Raises:
        DraftcertError: unknown name, wrong number of parameters, value outside its domain, no rule at all, or one that
            is too large: 20,000 characters, 64 atoms, 32 parentheses in each other and numbers of 4000 digits are read.

    >>> str(parse_rule("top_m(10) & additive(0.6)"))
    'top_m(10) & additive(3/5)'
    """
    if isinstance(text, Rule):
        return text
    if not isinstance(text, str):
        raise DraftcertError(f"a rule is a `Rule` or its text, not {type(text).__name__}")
    return _parsed(text)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Rule:
    if len(text) > MOST_CHARACTERS:
        raise DraftcertError(f"the rule {shown(text)} is longer than {MOST_CHARACTERS} characters")
    if "#" in text:
        raise DraftcertError(f"{shown(text)} names a family that is not one of draftcert's: give the `Rule` itself")
    return _Reader(text).whole()


class _Reader:
    """Reads the text of a rule from left to right; `&` binds tighter than `|`, as in Python."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0

    def whole(self) -> Rule:
        """All of the text."""
        rule = self._any()
        if self._text[self._at :].strip():
            raise self._error("as a rule: it goes on")
        return rule

    def _any(self) -> Rule:
        return self._joined("|", self._all, any_of)

    def _all(self) -> Rule:
        return self._joined("&", self._one, all_of)

    def _joined(self, sign: str, part: Callable[[], Rule], join: Callable[..., Rule]) -> Rule:
        parts = [part()]
        while self._take(sign):
            parts.append(part())
        return join(*parts) if len(parts) > 1 else parts[0]

    def _one(self) -> Rule:
        if self._take("("):
            self._depth += 1
            if self._depth > DEEPEST:
                raise self._error(f"as a rule: more than {DEEPEST} parentheses are in each other")
            rule = self._any()
            if not self._take(")"):
                raise self._error("as a rule: a parenthesis is not closed")
            self._depth -= 1
            return rule
        name = self._next("name")
        if name is None or not _ENDS.match(self._text, self._at):
            raise self._error("as a rule")
        return self._call(_named(name)) if self._take("(") else _named(name)()

    def _call(self, family: RuleFamily | Preset) -> Rule:
        values: list[str] = []
        named: dict[str, str] = {}
        while not self._take(")"):
            if (values or named) and not self._take(","):
                raise self._error("as a rule: a parenthesis is not closed")
            keyword = self._next("name")
            if keyword is not None and not self._take("="):
                raise DraftcertError(f"'{keyword}' in {shown(self._text)} is not a number")
            if keyword in named:
                raise DraftcertError(f"a parameter is given twice in {shown(self._text)}")
            if (number := self._next("number")) is None:
                raise self._error("as a rule: what stands there is not a number")
            if keyword is not None:
                named[keyword] = number
            elif named:
                raise self._error("as a rule: a value without a name follows one with a name")
            else:
                values.append(number)
        return family(*values, **named)

    def _next(self, kind: str) -> str | None:
        """The next token, if it is of this kind."""
        found = _TOKEN.match(self._text, self._at)
        if found is None or found.lastgroup != kind:
            return None
        self._at = found.end()
        return found[kind]

    def _take(self, sign: str) -> bool:
        """Whether the next token is this sign; it is then read."""
        before = self._at
        if self._next("sign") == sign:
            return True
        self._at = before
        return False

    def _error(self, why: str) -> DraftcertError:
        word = _WORD.match(self._text, self._at)
        hint = f"; write a single {SIGNS[word[1].lower()]} between two rules" if word else ""
        return DraftcertError(f"cannot read {shown(self._text)} at position {self._at} {why}{hint}")


def _named(name: str) -> RuleFamily | Preset:
    if found := RULES.get(name) or PRESETS.get(name):
        return found
    for word, reason in NOT_A_RULE.items():
        if word in name:
            raise DraftcertError(f"'{name}' is refused: {reason}")
    raise unknown_name("rule", name, [*RULES, *PRESETS])
