"""What is claimed: rules, formulas and theorems as data, with sympy only."""

from .errors import DraftcertError
from .formula import Formula
from .formulas import FORMULAS
from .parse import parse_rule
from .rule import Rule, RuleFamily
from .rules import RULES

__all__ = ["FORMULAS", "RULES", "DraftcertError", "Formula", "Rule", "RuleFamily", "parse_rule"]
