"""The explorer: one HTML page, complete in itself, that certifies a row the reader drags or pastes.

Its mathematics is printed from the records when the page is made: formulas as functions of doubles, thresholds of rules
and ranges of margin bounds as functions of exact fractions. `certify.js` holds what no record states: fractions,
sorting, the choice of the pool (T3), reading what people type. `explorer.js` shows the results in `explorer.html`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlencode

import sympy

from ..support.files import write_whole
from ..support.text import with_policy
from ..theory import FORMULAS, PRESETS, RULES, DraftcertError, Rule, RuleFamily, parse_rule
from ..theory.conditions import Condition, RankCondition, RowCondition, fold_conditions
from ..theory.statistics import LOGIT_RATIO, Entropy
from ..theory.theorem import VOCABULARY, AtLeast, ExactValue, Infimum, OfRule, Range, Role, RuleBound, Supremum
from ..theory.theorems import THEOREMS
from .printing import latex, mathml

Kind = Literal["probabilities", "logits", "logprobs"]
FOLDER = Path(__file__).parent


def explorer_fragment(
    rule: Rule | str,
    numbers: Iterable[Any],
    candidates: int = 1,
    *,
    kind: Kind = "probabilities",
    logit_ratio: Any = None,
) -> str:
    """The end of a link into the explorer that opens it at an example, from `#` on.

    Args:
        rule: a rule or its text, of the families that `parse_rule` knows.
        numbers: the row: probabilities, logits or top log-probabilities, as numbers or text such as "9/20".
        candidates: how many tokens the drafter proposes.
        kind: what `numbers` are.
        logit_ratio: z_(2)/z_(1), for rules that compare logits.

    Raises:
        DraftcertError: no rule that can be read from its text.

    >>> explorer_fragment("top_m(2) & additive(0.1)", ["1/2", "9/20", "1/20"], 2)
    '#rule=top_m(2)%20%26%20additive(1/10)&probabilities=1/2,9/20,1/20&candidates=2'
    """
    state = {
        "rule": str(parse_rule(str(parse_rule(rule)))),
        kind: ",".join(map(str, numbers)),
        "candidates": str(candidates),
        **({} if logit_ratio is None else {"logit_ratio": str(logit_ratio)}),
    }
    return "#" + urlencode(state, quote_via=quote, safe="(),/")


def explorer_page() -> str:
    """The page, whose policy lets it run its own script and ask for nothing."""
    page = (FOLDER / "explorer.html").read_text(encoding="utf-8")
    certify, explorer = ((FOLDER / name).read_text(encoding="utf-8") for name in ("certify.js", "explorer.js"))
    script = "\n".join(['"use strict";', certify, generated(), explorer])
    formula = mathml(latex(FORMULAS["certificate"].expression), display=False)
    return with_policy(page.replace("{{ summand }}", formula).replace("{{ script }}", script))


def write_explorer(path: str | Path) -> Path:
    """Write the page to a file.

    Raises:
        DraftcertError: a formula on it has not been proved or not been agreed.
    """
    path = Path(path)
    write_whole(path, explorer_page())
    return path


def generated() -> str:
    """What the records say, as JavaScript: formulas, families of rules with their margin bounds, presets."""
    from ..numerics.top_logprobs import MOST_CANDIDATES
    from ..runtime.codegen import admitted, javascript

    admitted()  # refuses what is not proved and agreed
    families = {family.name: _family(family) for family in RULES.values()}
    presets = {preset.name: str(preset(*preset.example)) for preset in PRESETS.values()}
    return "\n\n".join(
        [
            javascript(_functions()),
            _log_loss(),
            f"const RULES = {_object(families)};",
            f"const PRESETS = {json.dumps(presets)};",
            f"const MOST_CANDIDATES = {MOST_CANDIDATES};",
            f"const EXAMPLES = {json.dumps({family.name: _examples(family) for family in RULES.values()})};",
        ]
    )


def _examples(family: RuleFamily) -> list[dict[str, str]]:
    """The worked points of a rule as links into the page."""
    return [
        {
            "note": point.note or f"{', '.join(point.probabilities)}; m = {point.candidates}",
            "fragment": explorer_fragment(
                family(*point.arguments), point.probabilities, point.candidates, logit_ratio=point.logit_ratio
            ),
        }
        for point in family.worked_points
        if point.candidates < len(point.probabilities)
    ]


def _functions() -> Iterator[Any]:
    """The formulas, each in what the page knows exactly: the relative deviation of a probability, not two of them."""
    from ..runtime.codegen import Function, Parameter

    x = sympy.Symbol("x")
    for name, deviating in (("certificate", {"p": "c"}), ("ceiling", {})):
        formula = FORMULAS[name]
        symbols = {argument.symbol.name: argument.symbol for argument in formula.arguments}
        form: Any = formula.stable.xreplace({symbols[p]: symbols[c] * (1 + x) for p, c in deviating.items()})
        parameters = [each for each in symbols if each not in deviating] + ["x"] * bool(deviating)
        note = "".join(f" Here {p} = {c} (1 + x)." for p, c in deviating.items())
        comment = (formula.statement + note, f"Formula {formula.sha256}.")
        yield Function(name, tuple(map(Parameter, parameters)), sympy.simplify(form), comment)


def _log_loss() -> str:
    """S6: the largest log-loss of a token that passes."""
    (claim,) = (each for each in THEOREMS["S6"].conclusions[:1] if isinstance(each, AtLeast))
    return f"const logLoss = (v) => {_exact(claim.left)};"


def _object(entries: Mapping[str, str]) -> str:
    return "{\n" + "".join(f"  {json.dumps(key)}: {value},\n" for key, value in entries.items()) + "}"


def _family(family: RuleFamily) -> str:
    """A rule with its parameters open: what they are, how many tokens it accepts, and what is known from a margin."""
    parameters = [
        {
            "name": json.dumps(parameter.name),
            "meaning": json.dumps(parameter.meaning),
            "low": _exact(parameter.domain.inf),
            "high": "null" if parameter.domain.sup == sympy.oo else _exact(parameter.domain.sup),
            "whole": _boolean(parameter.domain.is_subset(sympy.S.Integers)),
        }
        for parameter in family.parameters
    ]
    count = fold_conditions(
        family.accepts, _count, lambda a, b: f"Math.min({a}, {b})", lambda a, b: f"Math.max({a}, {b})"
    )
    bounds = [_bound(bound) for theorem in THEOREMS.values() for bound in theorem.bounds if bound.rule == family]
    return _object(
        {
            "accepts": json.dumps(mathml(latex(family.accepts), display=False)),
            "example": json.dumps(str(family(*family.examples[0]))),
            "parameters": _list(map(_object, parameters)),
            "needsLogits": _boolean(LOGIT_RATIO in family.accepts.free_symbols),
            "count": f"(row, v) => {count}",
            "equals": _list(_equal_families(family)),
            "bounds": _list(filter(None, bounds)),
        }
    )


def _boolean(value: Any) -> str:
    return json.dumps(bool(value))


def _list(entries: Iterable[str]) -> str:
    return f"[{', '.join(entries)}]"


def _exact(expression: Any) -> str:
    """An expression in rational numbers, of variables in `v`, as JavaScript over exact fractions."""
    if expression.is_Rational:
        return f"ratio({expression.p}n, {expression.q}n)"
    if expression.is_Symbol:
        return f"v[{json.dumps(expression.name)}]"
    if isinstance(expression, sympy.Pow) and expression.exp.is_Integer:
        return f"power({_exact(expression.base)}, {expression.exp})"
    if isinstance(expression, sympy.log):
        return f"logarithm({_exact(expression.args[0])})"
    for kind, name in ((sympy.Add, "sum"), (sympy.Mul, "product"), (sympy.Min, "least"), (sympy.Max, "largest")):
        if isinstance(expression, kind):
            return f"{name}({', '.join(map(_exact, expression.args))})"
    raise DraftcertError(f"the explorer has no exact form of {expression}")


def _count(condition: Condition) -> str:
    """How many tokens of a row satisfy a condition."""
    if isinstance(condition, RankCondition):
        return f"row.ranks({_exact(condition.limit)})"
    if isinstance(condition, RowCondition):
        relation: Any = condition.holds
        strict = isinstance(relation, (sympy.StrictGreaterThan, sympy.StrictLessThan))
        return f"row.everyIf({_exact(relation.gts - relation.lts)}, {_boolean(strict)})"
    return _reaching(condition.threshold, _boolean(condition.strict))


def _reaching(threshold: Any, strict: str) -> str:
    """How many reach a threshold: of several the least is reached where any is, the largest where all are."""
    if isinstance(threshold, (sympy.Min, sympy.Max)):
        join = "Math.max" if isinstance(threshold, sympy.Min) else "Math.min"
        return f"{join}({', '.join(_reaching(part, strict) for part in threshold.args)})"
    scale, factor = threshold.as_independent(Entropy, as_Add=False)
    if factor == 1:
        return f"row.reaching({_exact(scale)}, {strict})"
    exponent: Any = factor.args[0] if isinstance(factor, sympy.exp) else sympy.nan
    entropies = sorted(exponent.atoms(Entropy), key=str)
    terms = {each: exponent.coeff(each) for each in entropies}
    if exponent != sympy.Add(*(each * k for each, k in terms.items())):
        raise DraftcertError(f"the explorer has no exact form of the threshold {threshold}")
    pairs = _list(f"[{_exact(k)}, {_exact(each.args[0])}]" for each, k in terms.items())
    return f"row.reachingEntropies({_exact(scale)}, {pairs}, {strict})"


def _equal_families(family: RuleFamily) -> Iterator[str]:
    """Where a family, or it with a parameter at an end of its domain, has the predicate of another one."""
    ends = [(p, end) for p in family.parameters for end in (p.domain.inf, p.domain.sup) if end != sympy.oo]
    for when in ((), *(((p.symbol, end),) for p, end in ends)):
        accepts = family.accepts.xreplace(dict(when))
        for other in RULES.values():
            unknown = {p.symbol: sympy.Wild(p.name) for p in other.parameters}
            found = None if other == family else accepts.match(other.accepts.xreplace(unknown))
            if found is not None and set(found) == set(unknown.values()) and _numbers(found.values(), family):
                values = {symbol.name: _exact(found[wild]) for symbol, wild in unknown.items()}
                yield _object(
                    {
                        "when": _list(f"[{json.dumps(symbol.name)}, {_exact(end)}]" for symbol, end in when),
                        "family": json.dumps(other.name),
                        "values": f"(v) => ({_object(values)})",
                    }
                )


def _numbers(values: Iterable[Any], family: RuleFamily) -> bool:
    own = {parameter.symbol for parameter in family.parameters}
    return all(value.is_Rational or value in own for value in values)


# ---- margin bounds ---------------------------------------------------------------------------------------------


def _bound(bound: RuleBound) -> str | None:
    """A bound over vocabularies of any size, from the margin of the two likeliest tokens; None if it is no such one."""
    where = _where(bound.where)
    if bound.known != "top2" or where is None:
        return None
    fields = {"end": json.dumps(bound.end.value), "where": where, "sharp": _boolean(bound.sharp)}
    if bound.accepts is not None:
        tokens = _tokens((each.probability, each.count) for each in bound.accepts.tokens)
        fields["accepts"] = _object({"accepted": str(bound.accepts.accepted), "tokens": tokens})
    if isinstance(bound.value, OfRule):
        names = [parameter.name for parameter in bound.value.family.parameters]
        values = dict(zip(names, map(_exact, bound.value.arguments), strict=True))
        fields["other"] = _object(
            {"family": json.dumps(bound.value.family.name), "values": f"(v) => ({_object(values)})"}
        )
    elif isinstance(bound.value, tuple):
        fields["rows"] = _list(filter(None, (_rows(claim, bound.at) for claim in bound.value)))
    elif bound.value in (0, sympy.oo):
        fields["number"] = "0" if bound.value == 0 else "Infinity"
    else:
        raise DraftcertError(f"the explorer has no form of the bound {bound.value}")
    return _object(fields)


def _rows(claim: ExactValue | Infimum | Supremum, at: Mapping[sympy.Symbol, sympy.Expr]) -> str | None:
    """The extremal rows of a claim, without the tokens that no draft moves."""
    family = claim.example if isinstance(claim, ExactValue) else claim.family
    known: dict[Any, Any] = {}
    for symbol, expression in at.items():
        known[symbol] = expression.xreplace(known)
    where = _where([each for each in family.domain if each.symbol != family.limit], known)
    roles = {each.name: each.role for each in claim.rows.classes}
    tokens = {
        role: _tokens(
            (_of_any_size(each.probability.xreplace(known), family.limit), each.count.xreplace(known))
            for each in family.tokens
            if roles[each.of] is role
        )
        for role in (Role.ACCEPTED, Role.COMPETITOR)
    }
    if where is None:
        return None
    return _object({"where": where, "accepted": tokens[Role.ACCEPTED], "competitors": tokens[Role.COMPETITOR]})


def _tokens(tokens: Iterable[tuple[Any, Any]]) -> str:
    return f"(v) => {_list(f'[{_exact(probability)}, {_exact(count)}]' for probability, count in tokens)}"


def _where(ranges: Sequence[Range], known: Mapping[Any, Any] | None = None) -> str | None:
    """Ranges of variables; None where one leaves out vocabularies of any size."""
    entries = []
    for each in ranges:
        of, low, high = (_of_any_size(e.xreplace(dict(known or {}))) for e in (each.symbol, each.lower, each.upper))
        if of == sympy.oo:
            if high != sympy.oo or each.open_above:
                return None
            continue
        if low == sympy.oo or high == -sympy.oo:
            return None
        ends = {"from": low, "to": high}
        told = {name: f"(v) => {_exact(end)}" for name, end in ends.items() if not end.is_infinite}
        sides = _list(map(_boolean, (each.open_below, each.open_above)))
        entries.append(_object({"of": f"(v) => {_exact(of)}"} | told | {"open": sides}))
    return _list(entries)


def _of_any_size(expression: Any, limit: sympy.Symbol | None = None) -> Any:
    """Its limit as the vocabulary grows, and what else does."""
    positive: dict[Any, Any] = {symbol: sympy.Dummy(symbol.name, positive=True) for symbol in expression.free_symbols}
    result = expression.xreplace(positive)
    for growing in (VOCABULARY, limit):
        if growing in positive:
            result = sympy.limit(result, positive[growing], sympy.oo)
    return result.xreplace({dummy: symbol for symbol, dummy in positive.items()})
