"""The row statistics an acceptance rule may speak about: one sympy symbol each, shared by all layers.

A row is one target distribution `p` over V tokens (softmax of a row of logits `z`), sorted `p_(1) >= p_(2) >= ...`.
"""

import sympy

PROBABILITY = sympy.Symbol("p_x", nonnegative=True)
"""The target's probability of the token x that is judged."""

RANK = sympy.Symbol("r_x", integer=True, positive=True)
"""1-based position of x when tokens are sorted by probability, ties by lowest id. The only tie order in the project."""

TOP = sympy.Symbol("p_(1)", positive=True)
"""The largest probability of the row."""

LOGIT_RATIO = sympy.Symbol("z_(2)/z_(1)", real=True)
"""Second largest raw logit over the largest. Not invariant under a shift of the logits, unlike everything else here."""


class Entropy(sympy.Function):
    """`Entropy(f) = - sum_x p(x) ln(p(x) + f)` in nats; `Entropy(0)` is the Shannon entropy, with 0 ln 0 = 0."""

    nargs = 1
    is_real = True

    @property
    def is_number(self) -> bool:
        """Never: it depends on the row, though no free symbol says so."""
        return False

    def _latex(self, printer: object) -> str:
        floor = self.args[0]
        return "H" if floor == 0 else rf"H_{{{sympy.latex(floor)}}}"


ROW_STATISTICS = (TOP, LOGIT_RATIO, Entropy)
"""What a threshold may depend on: facts of the whole row, none of the judged token, none of the drafter."""
