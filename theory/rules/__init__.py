"""One file a rule. `RULES` maps every rule's name to its family; `draftcert.theory.parse_rule` reads expressions."""

from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from ..rule import RuleFamily, register

RULES = MappingProxyType(
    {
        module.RULE.name: module.RULE
        for module in (
            import_module(f".{found.name}", __name__) for found in sorted(iter_modules(__path__), key=lambda m: m.name)
        )
    }
)
"""All families by name, found by looking through this folder."""

for _family in RULES.values():
    register(_family)

strict_greedy: RuleFamily = RULES["strict_greedy"]
