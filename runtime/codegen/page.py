"""The rounding budgets as documentation quotes them.

A page says where: what stands between `<!-- budgets: NAME ... -->` and `<!-- end of budgets -->` is replaced by those
budgets, each with what it bounds, its formula and its derivation. The name `symbols` stands for a list of the symbols
that several budgets share; the others are explained where they occur.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from ...theory import DraftcertError
from ...theory.formula import Argument
from ..rows.budgets import SYMBOLS, RoundingBudget
from .words import Words, wrapped

PLACE = re.compile(r"(<!-- budgets: ([\w ]+) -->\n).*?(<!-- end of budgets -->)", re.DOTALL)
LIST = "symbols"
WIDTH = 120


def quoted(page: str, budgets: Mapping[str, RoundingBudget]) -> str:
    """The page with all it quotes renewed.

    Raises:
        DraftcertError: the page quotes what is no budget, or does not quote every budget exactly once.
    """
    named = [name for place in PLACE.finditer(page) for name in place[2].split()]
    expected = [*budgets, LIST]
    if unknown := set(named) - set(expected):
        raise DraftcertError(f"the page quotes budgets that do not exist: {', '.join(sorted(unknown))}")
    if wrong := [name for name in expected if named.count(name) != 1]:
        raise DraftcertError(f"the page must quote each budget once, and does not so quote {', '.join(wrong)}")
    uses = Counter(argument for budget in budgets.values() for argument in budget.arguments)

    def renewed(place: re.Match[str]) -> str:
        parts = [
            _symbols(argument for argument in SYMBOLS.values() if uses[argument] > 1)
            if name == LIST
            else _entry(budgets[name], [argument for argument in budgets[name].arguments if uses[argument] == 1])
            for name in place[2].split()
        ]
        return place[1] + "\n" + "\n\n".join(parts) + "\n\n" + place[3]

    return PLACE.sub(renewed, page)


def _entry(budget: RoundingBudget, own: Iterable[Argument]) -> str:
    summed = ", summed over the vocabulary" if budget.sum_over else ""
    claim = wrapped(f"**`{budget.name}`** bounds {budget.bounds}{summed}:", WIDTH)
    derivation = [wrapped(part, WIDTH) for part in budget.derivation.split("\n\n")]
    explained = "; ".join(f"`{Words().doprint(a.symbol)}` is {a.meaning}" for a in own)
    where = [wrapped(f"Here {explained}.", WIDTH)] if explained else []
    return "\n\n".join([claim, "    " + Words().doprint(budget.expression), *where, *derivation])


def _symbols(arguments: Iterable[Argument]) -> str:
    return "\n".join(f"- `{Words().doprint(a.symbol)}`: {a.meaning}" for a in arguments)
