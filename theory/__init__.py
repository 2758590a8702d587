"""What is claimed: rules, formulas and theorems as data, with sympy only."""

from typing import TYPE_CHECKING

from .errors import DraftcertError
from .imports import lazy_names

if TYPE_CHECKING:
    from .formula import Formula
    from .formulas import FORMULAS
    from .order import Verdict, implication
    from .parse import parse_rule
    from .presets import PRESETS, Preset
    from .rule import Parameter, Rule, RuleFamily
    from .rules import RULES
    from .statistics import LOGIT_RATIO, PROBABILITY, RANK, TOP, Entropy
    from .theorem import Theorem
    from .theorems import EVERY_FORMULA, THEOREMS
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "EVERY_FORMULA",
    "FORMULAS",
    "LOGIT_RATIO",
    "PRESETS",
    "PROBABILITY",
    "RANK",
    "RULES",
    "THEOREMS",
    "TOP",
    "DraftcertError",
    "Entropy",
    "Formula",
    "Parameter",
    "Preset",
    "Rule",
    "RuleFamily",
    "Theorem",
    "Verdict",
    "implication",
    "parse_rule",
]
