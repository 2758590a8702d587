"""`parse_rule`: from text such as "top_m(10) & additive(0.6)" to a `Rule`."""

import ast
from functools import lru_cache
from types import MappingProxyType

from .errors import DraftcertError
from .presets import PRESETS, Preset
from .rule import Rule, RuleFamily
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
        "entropy_verif": f"entropy verification accepts with probability min(1, p/(l q)); {_GUARANTEED}",
        "cactus": f"Cactus accepts with a probability that depends on the drafter's; {_GUARANTEED}, as a lower bound",
        "synthetic": "a synthetic acceptance does not look at the target at all: it accepts at the rate that is set",
        "ensemble": "a mixture of target and draft decides, so the accepted set is not a function of the target alone "
        "and has no certificate of this kind",
    }
)
"""What is called a rule elsewhere and is none here: part of its name, and the reason."""


def parse_rule(text: str | Rule) -> Rule:
    """Read a rule: names with exact parameters, `&` (both accept), `|` (either accepts), parentheses.

    Numbers are decimals or fractions and stay exact. A `Rule` is returned as it is.

    Raises:
        DraftcertError: unknown name, wrong number of parameters, value outside its domain, or no rule at all.

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
    if "#" in text:
        raise DraftcertError(f"'{text}' names a family that is not one of draftcert's: give the `Rule` itself")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise DraftcertError(f"cannot read the rule '{text}': {error.msg} at position {error.offset}") from error
    return _rule(tree.body, text.strip())


def _rule(node: ast.expr, text: str) -> Rule:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
        left, right = _rule(node.left, text), _rule(node.right, text)
        return left & right if isinstance(node.op, ast.BitAnd) else left | right
    if isinstance(node, ast.Name):
        return _named(node.id)()
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        values = [_number(argument, text) for argument in node.args]
        named = {str(keyword.arg): _number(keyword.value, text) for keyword in node.keywords}
        if len(named) < len(node.keywords):
            raise DraftcertError(f"a parameter is given twice in '{text}'")
        return _named(node.func.id)(*values, **named)
    raise DraftcertError(f"cannot read '{ast.get_source_segment(text, node) or text}' as a rule in '{text}'")


def _named(name: str) -> RuleFamily | Preset:
    if found := RULES.get(name) or PRESETS.get(name):
        return found
    for word, reason in NOT_A_RULE.items():
        if word in name:
            raise DraftcertError(f"'{name}' is refused: {reason}")
    raise DraftcertError(f"no rule is called '{name}'; there are {', '.join([*RULES, *PRESETS])}")


def _number(node: ast.expr, text: str) -> str:
    source = (ast.get_source_segment(text, node) or "").replace(" ", "")
    if not source or set(source) - set("0123456789./-+eE"):
        raise DraftcertError(f"'{source}' in '{text}' is not a number")
    return source
