"""The prover: decides every claim of a theorem by itself and is the only place that mints `Proved`.

What it trusts: Python, sympy's polynomial arithmetic and derivatives, python-flint's balls, and the records' meaning as
written in `theory.theorem`. What it does not trust: any prose, evidence or worked value in a theorem. Equalities and
signs get a second opinion in ball arithmetic at random exact points, which also finds counterexamples.

From the bottom up: `rational`, `signs`, `logs` and `balls` compute; `points` and `compare` decide on a domain; `sums`,
`families` and `programs` decide about rows; `claims` and `formulas` decide what a theorem says; `mint` makes `Proved`.
"""

from .claims import decide, worked_point
from .compare import equal_inside
from .errors import ProofError
from .formulas import decide_formula, formula_domain, speaks_of
from .mint import FORMAL_UNCHECKED, Outcome, Proved, cited, examine, mint_formula

__all__ = [
    "FORMAL_UNCHECKED",
    "Outcome",
    "ProofError",
    "Proved",
    "cited",
    "decide",
    "decide_formula",
    "equal_inside",
    "examine",
    "formula_domain",
    "mint_formula",
    "speaks_of",
    "worked_point",
]
