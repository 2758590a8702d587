"""What tests of several layers use."""

import pytest
import sympy

from draftcert.theory import RuleFamily
from draftcert.theory.rule import Parameter
from draftcert.theory.statistics import PROBABILITY, TOP


@pytest.fixture(scope="session")
def fork() -> RuleFamily:
    """A family of one's own that is called like another one: strict, where that one is not.

    At 1 it accepts nothing, while the other accepts every maximum.
    """
    a = sympy.Symbol("a", nonnegative=True)
    domain = Parameter(a, sympy.Interval(0, 1), "fraction of the largest probability, exclusive")
    return RuleFamily("multiplicative", (domain,), sympy.Gt(PROBABILITY, a * TOP), "nobody", "the tests", ())
