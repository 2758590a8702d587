"""Conformance vectors: small verifications of drafts with the answers that any engine must give.

Written from the records of the rules, and answered by exact arithmetic from the definitions: a rule's predicate decided
on enclosures (`numerics.decide`), probabilities as fractions. Nothing here comes from the kernels or the decoder of
`runtime`, which are judged by these vectors like any other engine. docs/conform.md describes the format.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from fractions import Fraction
from functools import cache
from math import inf, nan
from typing import Any

from ..numerics.decide import accepted_of_logits, row_of_logits
from ..theory.parse import parse_rule
from ..theory.presets import MEDUSA_FLOOR, PRESETS, example_rules
from ..theory.rule import Rule
from ..theory.rules import strict_greedy

FORMAT = "draftcert-conformance/3"
"""The format and its version, which changes with any vector: what was answered before is answered anew."""
TRIALS = 10_000
"""What an engine that samples must be run for at least, each case."""
VOCABULARY = 12
STRICT = strict_greedy()
EOS, ENDS_MODE = 9, 10
"""Ids of the tokens that end a sequence and a relaxed mode, in the cases that have one."""

Case = dict[str, Any]
Logits = list[list[float]]


def conformance_vectors() -> dict[str, Any]:
    """All vectors as a JSON document: its format and version, the hash of its cases, and the cases.

    The same on every machine. Every decision is either far enough from its threshold that float32 arithmetic decides it
    rightly, or an exact tie that any float arithmetic sees.

    >>> vectors = conformance_vectors()
    >>> case = vectors["cases"][0]
    >>> case["id"], case["draft_tokens"], case["expected"]["output_tokens"]
    ('greedy/chain/empty_draft.float32', [], [3])
    """
    return deepcopy(every_vector())


@cache
def every_vector() -> dict[str, Any]:
    """The same, made once: for reading only."""
    asked = {"format": FORMAT, "minimum_trials": TRIALS, "cases": _cases()}
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
    suites = dict(Counter(case["suite"] for case in asked["cases"]))
    return {"sha256": digest, "suites": suites, "rules": _rules(), **asked}


def as_text(vectors: dict[str, Any]) -> str:
    """The document as it is written: one case a line."""
    head = {name: value for name, value in vectors.items() if name != "cases"}
    cases = ",\n".join(json.dumps(case) for case in vectors["cases"])
    return f'{json.dumps(head)[:-1]},\n"cases": [\n{cases}\n]}}\n'


def _rules() -> dict[str, Any]:
    """The rules of the cases by their text: what they accept, and what they are deployed as."""
    presets = [(preset.name, preset(*preset.example)) for preset in PRESETS.values()]
    return {
        text: {
            "accepts": str(rule.accepts),
            "presets": [name for name, deployed in presets if deployed == rule],
            "sha256": rule.sha256,
        }
        for text in dict.fromkeys(case["rule"] for case in _cases() if "rule" in case)
        for rule in [parse_rule(text)]
    }


@cache
def number_of_outcomes() -> int:
    """Of all cases that sample: how many probabilities counts may be compared with."""
    return sum(len(case["expected"].get("outcomes", ())) for case in _cases())


@cache
def _cases() -> list[Case]:
    return [*_greedy_chains(), *_greedy_trees(), *_tree_inputs(), *_relaxed(), *_sampling()]


# ---- verification by a rule: the answer, from the definition -----------------------------------------------------


def _bits(value: float, dtype: str) -> int:
    """A number rounded to float32 and then, to nearest and ties to even, to bfloat16."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return bits if dtype == "float32" else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _value(bits: int, dtype: str) -> float:
    return struct.unpack("<f", struct.pack("<I", bits if dtype == "float32" else bits << 16))[0]


def _accepted(row: Sequence[float], rule: Rule) -> tuple[int, ...]:
    """The accepted tokens, likeliest first."""
    return row_of_logits(row).order[: accepted_of_logits(rule, row)]


def _determines_nothing(row: Sequence[float]) -> bool:
    return any(z != z or z == inf for z in row) or max(row) == -inf


def _paths(case: Case, logits: Logits, rule: Rule, longest: bool) -> Iterator[tuple[int, ...]]:
    """The accepted path by the likeliest children, or all that are accepted, in the order of their first difference."""
    ends = case.get("relaxed_until")

    def grown(path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        row, drafted = logits[path[-1] + 1 if path else 0], {}
        for node in range(case["num_draft_tokens"]):
            if case["parents"][node] == (path[-1] if path else -1):
                drafted[case["draft_tokens"][node]] = node
        if not drafted or _determines_nothing(row):
            yield path
            return
        ended = ends is not None and any(case["draft_tokens"][node] == ends for node in path)
        likely = [drafted[token] for token in _accepted(row, STRICT if ended else rule) if token in drafted]
        for node in likely if longest else likely[:1]:
            yield from grown((*path, node))
        if not likely:
            yield path

    return grown(())


def _verification(case: Case, logits: Logits, rule: Rule) -> dict[str, Any]:
    """What must be committed: the accepted path, and the greedy token after it (ties by lowest id)."""
    path = max(_paths(case, logits, rule, case["walk"] == "longest"), key=len)
    row = logits[path[-1] + 1 if path else 0]
    if _determines_nothing(row):
        return {"refused": True}
    return committed(case, [*(case["draft_tokens"][node] for node in path), _accepted(row, STRICT)[0]], path)


def committed(case: Case, tokens: list[int], path: Sequence[int]) -> dict[str, Any]:
    """The answer that commits these tokens, those of the accepted `path` and the next one, up to an end of sequence."""
    if (eos := case.get("eos_token_id")) in tokens:  # how much of such a path counts as accepted is a convention
        return {"output_tokens": tokens[: tokens.index(eos) + 1]}
    return {"output_tokens": tokens, "accepted_nodes": list(path), "num_accepted_tokens": len(path)}


def _verify(
    suite: str,
    name: str,
    note: str,
    rows: Logits,
    tokens: Sequence[int] = (),
    parents: Sequence[int] | None = None,
    *,
    rule: Rule = STRICT,
    walk: str = "likeliest",
    num_draft_tokens: int | None = None,
    vocab_size: int = VOCABULARY,
    dtypes: Sequence[str] = ("float32", "bfloat16"),
    **more: Any,
) -> Iterator[Case]:
    """A case in each dtype; its answer is that of the logits as this dtype holds them."""
    for dtype in dtypes:
        digits = 8 if dtype == "float32" else 4
        bits = [[_bits(z, dtype) for z in row] for row in rows]
        case: Case = {
            "id": f"{suite}/{name}.{dtype}",
            "suite": suite,
            "note": note,
            "rule": str(rule),
            "walk": walk,
            "dtype": dtype,
            "logits": [" ".join(f"{word:0{digits}x}" for word in row) for row in bits],
            "vocab_size": vocab_size,
            "draft_tokens": list(tokens),
            "parents": list(range(-1, len(tokens) - 1)) if parents is None else list(parents),
            "num_draft_tokens": len(tokens) if num_draft_tokens is None else num_draft_tokens,
            **more,
        }
        logits = [[_value(word, dtype) for word in row[:vocab_size]] for row in bits]
        yield case | {"expected": _verification(case, logits, rule)}


def _row(*likely: int, width: int = VOCABULARY, top: float = 4.0, step: float = 1.5, rest: float = -2.0) -> list[float]:
    """Logits with these tokens most likely, in this order."""
    row = [rest - token / 8 for token in range(width)]
    for place, token in enumerate(likely):
        row[token] = top - step * place
    return row


def _masked(tokens: Sequence[int], value: float = 1.0) -> list[float]:
    """Equal logits of these tokens, all others masked: probabilities that every float arithmetic has exactly."""
    return [value if token in tokens else -inf for token in range(VOCABULARY)]


def _predicts(*tokens: int) -> Logits:
    """A row for each of these tokens, with it the most likely."""
    return [_row(token) for token in tokens]


def _broken(value: float) -> list[float]:
    return [value if token == 5 else z for token, z in enumerate(_row(6, 0))]


def _greedy_chains() -> Iterator[Case]:
    def case(name: str, note: str, rows: Logits, tokens: Sequence[int] = (), **more: Any) -> Iterator[Case]:
        return _verify("greedy/chain", name, note, rows, tokens, **more)

    padding = [[*_row(3, 7, rest=-5.0, top=-1.0, step=0.5), 0.0, 0.0]] * 2
    tied, short = [_masked((5, 8, 2)), _row(1)], {"num_draft_tokens": 1}
    behind = "entries from num_draft_tokens on are padding"
    yield from [
        *case("empty_draft", "nothing is drafted: the target's own token", _predicts(3)),
        *case("first_token", "the first draft token is verified too, by the row before it", _predicts(3, 7), [7]),
        *case("all_accepted", "the next token comes from the last row", _predicts(3, 1, 7, 4), [3, 1, 7]),
        *case("mismatch", "nothing behind the first mismatch is accepted or counted", _predicts(3, 1, 7, 4), [3, 2, 7]),
        *case("replacement", "the target's own token of that row", _predicts(3, 1, 8, 4), [3, 1, 4]),
        *case("tie", "of equal logits the lowest id is greedy", tied, [8]),
        *case("tie_accepted", "of equal logits the lowest id is greedy", tied, [2]),
        *case("near_tie", "larger in float32, equal in bfloat16", [_row(6, 2, top=20.0, step=0.01), _row(1)], [2]),
        *case(
            "negative", "all logits are negative", [_row(7, top=-20.0, rest=-50.0), _row(5, top=-9.0, rest=-20.0)], [7]
        ),
        *case("masked", "-inf is probability 0", [_masked((4,)), _masked((6,)), _row(5)], [4, 2]),
        *case("all_masked", "a row of -inf only determines no token", [_masked(()), _row(1)], [6]),
        *case("nan", "a row with a NaN determines no token", [_broken(nan), _row(1)], [6]),
        *case("infinity", "a row with +inf determines no token", [_broken(inf), _row(1)], [6]),
        *case("padded_vocabulary", "columns from vocab_size on are padding", padding, [3]),
        *case("beyond_vocabulary", "an id of the padding is never accepted", padding, [VOCABULARY], may_refuse=True),
        *case("padded_draft_0", behind, _predicts(3, 0, 0, 1), [3, 0, 0], **short),
        *case("padded_draft_minus_1", behind, _predicts(3, 11, 11, 1), [3, -1, -1], **short),
        *case("placeholder", "-1 is no token, nor the last one", _predicts(11, 5, 1), [-1, 5], may_refuse=True),
        *case("placeholder_behind", "-1 is no token", _predicts(3, 11, 1), [3, -1], may_refuse=True),
        *case("eos", "nothing is committed behind it", _predicts(3, EOS, 1, 4), [3, EOS, 1], eos_token_id=EOS),
        *case("eos_first", "nothing is committed behind it", _predicts(EOS, 3, 1), [EOS, 3], eos_token_id=EOS),
        *case("eos_next", "the target ends the sequence", _predicts(3, EOS), [3], eos_token_id=EOS),
        *case("eos_rejected", "a rejected one ends nothing", _predicts(3, 1, 5), [3, EOS], eos_token_id=EOS),
    ]


def _greedy_trees() -> Iterator[Case]:
    def case(name: str, note: str, rows: Logits, tokens: list[int], parents: list[int], **more: Any) -> Iterator[Case]:
        return _verify("greedy/tree", name, note, rows, tokens, parents, **more)

    siblings = [3, 4, 5], [-1, -1, -1]
    branches = [3, 4, 6, 5, 7, 8], [-1, -1, 0, 1, 3, 3]
    apart = "the nodes of the path do not follow one another; each is judged by the row of its parent"
    yield from [
        *case("empty", "nothing is drafted", _predicts(3), [], []),
        *case("depth_1", "siblings only; the second is accepted", _predicts(4, 1, 2, 3), *siblings),
        *case("depth_1_rejected", "siblings only; none is accepted", _predicts(7, 1, 2, 3), *siblings),
        *case("not_contiguous", apart, _predicts(4, 6, 5, 8, 2, 0, 7), *branches),
        *case("last_leaf", apart, _predicts(4, 6, 5, 8, 8, 0, 7), *branches),
        *case("rejected_parent", "so is its child", _predicts(4, 5, 5, 6), [3, 4, 5], [-1, -1, 0]),
        *case("same_token", "on two branches", _predicts(4, 5, 5, 1, 7), [3, 4, 5, 5], [-1, -1, 0, 1]),
        *case("tied_siblings", "the lowest id is greedy", [_masked((2, 6)), _row(1), _row(5)], [6, 2], [-1, -1]),
        *case("chain", "a tree without branches", _predicts(3, 1, 7), [3, 1], [-1, 0]),
        *case("padded", "num_draft_tokens", _predicts(4, 1, 0, 2), [3, 4, 0], [-1, -1, 1], num_draft_tokens=2),
        *case("eos", "", _predicts(4, 6, EOS, 5, 1), [3, 4, EOS, 5], [-1, -1, 1, 2], eos_token_id=EOS),
    ]


def _tree_inputs() -> Iterator[Case]:
    """What the target's pass over a tree is given: from equal scores, attention is equal over what may be seen."""
    for name, parents in (
        ("depth_1", [-1, -1, -1]),
        ("branches", [-1, -1, 0, 1, 3, 3]),
        ("chain", [-1, 0, 1]),
    ):
        context = 4
        seen = [{node} for node in range(len(parents))]
        for node, parent in enumerate(parents):
            seen[node] |= seen[parent] if parent >= 0 else set()
        weights = [
            [str(Fraction(1, context + len(nodes)))] * context
            + [str(Fraction(node in nodes, context + len(nodes))) for node in range(len(parents))]
            for nodes in seen
        ]
        positions = [context - 1 + len(nodes) for nodes in seen]
        yield {
            "id": f"tree_inputs/{name}",
            "suite": "tree_inputs",
            "note": "siblings share the position of their depth; a node sees the context, its ancestors and itself",
            "num_context_tokens": context,
            "parents": parents,
            "attention_scores": "0 everywhere, before the mask",
            "expected": {"position_ids": positions, "attention_weights": weights},
        }


# ---- relaxed rules, from their records ---------------------------------------------------------------------------

_EXACTLY_MET = (
    "absolute(1/4)",
    "additive(0)",
    "multiplicative(1)",
    "mars(1/2)",
    f"typical_floor(1/4, 1, {MEDUSA_FLOOR})",
)
"""Rules at whose thresholds tied rows lie: exactly at the bound, or with no slack at all."""
_GAPS = (0.0, 0.25, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.75, 4.5, 5.0, 6.0)
_SHUFFLED = (5, 2, 8, 0, 11, 7, 3, 10, 1, 6, 9, 4)


def _sloped(scale: float, shift: int = 0) -> list[float]:
    """A row whose tokens of rank 1, 2, ... are shuffled ids."""
    row = [0.0] * VOCABULARY
    for place, gap in enumerate(_GAPS):
        row[(_SHUFFLED[place] + shift) % VOCABULARY] = 8.0 - scale * gap
    return row


def _relaxed() -> Iterator[Case]:
    rules = dict.fromkeys([*example_rules(), *map(parse_rule, _EXACTLY_MET)])
    for rule in (rule for rule in rules if rule != STRICT):
        yield from _of_a_rule(rule)
    yield from _special_rows()


def _of_a_rule(rule: Rule) -> Iterator[Case]:
    """The last accepted and the first rejected token of a sloped row, a tie, and both walks through a tree."""
    suite = f"relaxed/chain/{rule}"
    counts = {scale: len(_accepted(_sloped(scale), rule)) for scale in (1.0, 0.25, 4.0)}
    scale = max(counts, key=lambda scale: (1 < counts[scale] < VOCABULARY, 0 < counts[scale] < VOCABULARY))
    last, rows = counts[scale], [_sloped(scale, shift) for shift in range(4)]
    first_rejected = (_SHUFFLED[last] + (last > 0)) % VOCABULARY
    tokens = [_SHUFFLED[last - 1], first_rejected] if last else [first_rejected]
    note = "the last token that is accepted, if any is, then the first that is not"
    yield from _verify(suite, "threshold", note, rows[: len(tokens) + 1], tokens, rule=rule)
    note, tied = "the last of four equal maxima, then the first", [_masked((1, 4, 6, 7))] * 3
    yield from _verify(suite, "tie", note, tied, [7, 1], rule=rule, dtypes=["bfloat16"])
    if 1 < last < VOCABULARY:
        note = "the likelier of two accepted siblings is a leaf, the other one goes on"
        tokens = [*(_SHUFFLED[place] for place in (last - 1, last, last - 2)), (_SHUFFLED[0] + 1) % VOCABULARY]
        tree: Any = (f"relaxed/tree/{rule}", note, [*rows, rows[1]], tokens, [-1, -1, -1, 0])
        for walk in ("likeliest", "longest"):
            yield from _verify(tree[0], walk, *tree[1:], rule=rule, walk=walk, dtypes=["float32"])


def _special_rows() -> Iterator[Case]:
    medusa = PRESETS["medusa_typical"](*PRESETS["medusa_typical"].example)
    lifted = [2.0, 1.75, 1.5, 1.25, 1.0, 1.0, 0.75, 0.75, 0.5, 0.5, 0.25, 0.0746184]
    note = "the floor inside the logarithm lifts the threshold above this token; the Shannon entropy does not"
    alone: Any = {"rule": medusa, "dtypes": ["float32"]}  # in bfloat16 the row is another one
    yield from _verify(f"relaxed/chain/{medusa}", "entropy_floor", note, [lifted, _row(1)], [11], **alone)
    mars, halved = parse_rule("mars(1/2)"), [_row(3, 7, step=2.0), _row(1)]
    note = "the second logit is exactly half of the first: the inequality is strict"
    yield from _verify(f"relaxed/chain/{mars}", "ratio_exactly_met", note, halved, [7], rule=mars)
    for name in ("tensorrt_llm_relaxed", "vllm_relaxed_thinking"):
        rule = PRESETS[name](*PRESETS[name].example)
        rows = [_row(*likely, step=0.5) for likely in ((3, ENDS_MODE), (1, 7), (ENDS_MODE, 2), (4, 2))]
        mode: Any = {"rule": rule, "relaxed_until": ENDS_MODE, "dtypes": ["float32"]}
        for case, note, tokens in (
            ("ended", "behind the token `relaxed_until` strict greedy holds", [ENDS_MODE, 7]),
            ("going_on", "nothing ends the relaxed mode here", [3, 7]),
            ("ended_later", "before that token the mode goes on", [3, 7, ENDS_MODE]),
        ):
            yield from _verify(f"relaxed/mode/{rule}", case, note, rows[: len(tokens) + 1], tokens, **mode)


# ---- verification by sampling ------------------------------------------------------------------------------------

Row = list[Fraction]
Outcomes = dict[tuple[int, ...], Fraction]
"""The probability of each sequence of committed tokens: those accepted, and the one that follows."""


def _sixteenths(*weights: int) -> Row:
    return [Fraction(weight, 16) for weight in weights]


def _residual(target: Row, draft: Row, share: Fraction = Fraction(1)) -> Row:
    """`max(share target - draft, 0)`."""
    return [max(share * p - q, Fraction(0)) for p, q in zip(target, draft, strict=True)]


def _add(outcomes: Outcomes, accepted: Sequence[int], reached: Fraction, weights: Row) -> None:
    """What follows these accepted tokens is drawn by these weights."""
    total = sum(weights)
    for token, weight in enumerate(weights):
        if reached and weight:
            outcomes[*accepted, token] = reached * weight / total


def _rejection(target: list[Row], draft: list[Row], tokens: Sequence[int], _: Any) -> tuple[Row, Outcomes]:
    """Token by token: accepted with probability min(1, p/q), else replaced from the normalized max(p - q, 0)."""
    accepting = [min(Fraction(1), p[x] / q[x]) for p, q, x in zip(target, draft, tokens, strict=False)]
    outcomes: Outcomes = {}
    reached = Fraction(1)
    for place, accepts in enumerate(accepting):
        _add(outcomes, tokens[:place], reached * (1 - accepts), _residual(target[place], draft[place]))
        reached *= accepts
    _add(outcomes, tokens, reached, target[-1])
    return accepting, outcomes


def _block(target: list[Row], draft: list[Row], tokens: Sequence[int], _: Any) -> tuple[Row, Outcomes]:
    """Block verification (Sun et al. 2024, arXiv 2403.10444, Algorithm 2): the last prefix whose coin says yes.

    A coin comes up with probability h(i) = S/(S + 1 - w(i)), where w(i) = min(1, w(i-1) p/q) and
    S = sum max(w(i) p - q, 0) over the next row; the last prefix has h = w. What replaces is drawn from that maximum.
    """
    shares = [Fraction(1)]
    for p, q, x in zip(target, draft, tokens, strict=False):
        shares.append(min(Fraction(1), shares[-1] * p[x] / q[x]))
    residuals = [_residual(p, q, share) for p, q, share in zip(target, draft, shares, strict=False)]
    masses = [sum(residual, Fraction(0)) for residual in residuals]
    accepting = [m / (m + 1 - share) if share < 1 else share for m, share in zip(masses, shares, strict=False)]
    accepting.append(shares[-1])
    outcomes: Outcomes = {}
    none_behind = Fraction(1)
    for place in reversed(range(len(tokens) + 1)):
        weights = target[-1] if place == len(tokens) else residuals[place]
        _add(outcomes, tokens[:place], none_behind * accepting[place], weights)
        none_behind *= 1 - accepting[place]
    return accepting[1:], outcomes


def _matched(target: list[Row], _: Any, tokens: Sequence[int], parents: Sequence[int]) -> tuple[Row, Outcomes]:
    """Drafts without probabilities: a sample of the target is drawn at each node, and followed where it was drafted."""
    outcomes: Outcomes = {}

    def follow(node: int, path: tuple[int, ...], reached: Fraction) -> None:
        drafted = {tokens[child]: child for child in range(len(tokens)) if parents[child] == node}
        for token, p in enumerate(target[node + 1]):
            if token in drafted:
                follow(drafted[token], (*path, token), reached * p)
            elif reached * p:
                outcomes[*path, token] = reached * p

    follow(-1, (), Fraction(1))
    accepting = [target[parent + 1][x] if x >= 0 else Fraction(0) for x, parent in zip(tokens, parents, strict=True)]
    return accepting, outcomes


def _sampling() -> Iterator[Case]:
    even, front, back = _sixteenths(4, 4, 4, 4), _sixteenths(8, 5, 2, 1), _sixteenths(1, 2, 5, 8)
    no_first, point = _sixteenths(0, 8, 4, 4), _sixteenths(0, 0, 16, 0)
    chains = [
        ("empty_draft", "nothing is drafted: a sample of the target", [front], [], []),
        ("drafted_too_often", "p < q", [front, even], [back], [3]),
        ("drafted_too_rarely", "p > q: always accepted", [front, even], [back], [0]),
        ("equal", "p = q: always accepted, and nothing is left to replace it", [front, back], [front], [1]),
        ("impossible", "p = 0: never accepted", [no_first, even], [front], [0]),
        ("point_mass_draft", "the drafter is certain", [front, even], [point], [2]),
        ("point_mass_target", "the replacement is certain", [point, even], [even], [1]),
        ("three", "each position by its own rows", [front, back, even, front], [even, front, back], [1, 0, 3]),
        ("rescued", "a likely token behind an unlikely one", [back, front, even], [front, back], [1, 0]),
        ("not_rescued", "an unlikely token behind another", [back, front, even], [front, back], [1, 3]),
    ]
    chains = [(*chain, list(range(-1, len(chain[-1]) - 1))) for chain in chains]
    trees = [
        ("empty_draft", "nothing is drafted", [front], None, [], []),
        ("one", "accepted with the target's probability", [front, even], None, [1], [-1]),
        ("three", "each position by its own row", [front, back, even, front], None, [1, 3, 0], [-1, 0, 1]),
        ("impossible", "p = 0: never accepted", [no_first, even], None, [0], [-1]),
        ("placeholder", "-1 is no token, and takes no probability from one", [back, even], None, [-1], [-1]),
        ("siblings", "one sample decides between siblings", [front, back, even], None, [0, 1], [-1, -1]),
        ("tree", "by the row of the parent", [front, back, even, front, back], None, [2, 0, 3, 1], [-1, -1, 1, 1]),
    ]
    for suite, method, outcomes_of, cases in (
        ("rejection", "min(1, p/q) for each token", _rejection, chains),
        ("block", "block verification, arXiv 2403.10444, Algorithm 2", _block, chains),
        ("match", "a token sampled from the target is compared with the draft", _matched, trees),
    ):
        for name, note, target, draft, tokens, parents in cases:
            accepting, outcomes = outcomes_of(target, draft, tokens, parents)
            yield {
                "id": f"sampling/{suite}/{name}",
                "suite": f"sampling/{suite}",
                "note": note,
                "method": method,
                "target_probs": _fractions(target),
                "draft_probs": None if draft is None else _fractions(draft),
                "draft_tokens": tokens,
                "parents": parents,
                "acceptance_probabilities": [_shown(p) for p in accepting],
                "expected": {
                    "outcomes": [{"output_tokens": list(each)} | _shown(p) for each, p in sorted(outcomes.items())]
                },
            }


def _fractions(rows: list[Row]) -> list[list[str]]:
    return [[str(p) for p in row] for row in rows]


def _shown(p: Fraction) -> dict[str, Any]:
    return {"exact": str(p), "float": float(p)}
