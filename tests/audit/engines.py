"""An engine written from docs/conform.md alone, in numpy, and faulty ones as people have reported them.

It shares no code with what writes the vectors or judges the answers, and must not: nothing of draftcert is imported.
"""

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

Case = dict[str, Any]
TRIALS = 10_000


class Refused(Exception):  # noqa: N818
    """The row determines no token."""


class Engine:
    """A right engine; every method is a place where one can go wrong."""

    def answers(self, vectors: Case, *suites: str) -> Case:
        """The document of answers to the suites whose names begin like these."""
        self.random = np.random.default_rng(18)
        cases = [case for case in vectors["cases"] if case["suite"].startswith(suites)]
        head = {"format": vectors["format"], "vectors_sha256": vectors["sha256"], "engine": type(self).__name__}
        names = list(dict.fromkeys(case["suite"] for case in cases))
        answers = {}
        for case in cases:
            with suppress(StopIteration):  # one that throws has no answer
                answers[case["id"]] = self.answer(case)
        return head | {"suites": names, "answers": answers}

    def answer(self, case: Case) -> Case:
        suite, _, method = case["suite"].partition("/")
        if suite == "sampling":
            counts: dict[tuple[int, ...], int] = {}
            for tokens, count in getattr(self, method)(case):
                counts[tokens] = counts.get(tokens, 0) + int(count)
            return {"counts": [[list(tokens), count] for tokens, count in counts.items()]}
        if suite == "tree_inputs":
            return self.tree_inputs(case["parents"], case["num_context_tokens"])
        try:
            return self.verify(case)
        except Refused:
            return {"refused": True}

    # Verification by a rule.

    def rows(self, case: Case) -> list[np.ndarray]:
        return [self.row(text, case)[: case["vocab_size"]] for text in case["logits"]]

    def row(self, text: str, case: Case) -> np.ndarray:
        bits = np.array([int(word, 16) for word in text.split()], np.uint32)
        return (bits if case["dtype"] == "float32" else bits << 16).view(np.float32)

    def draft(self, case: Case) -> tuple[list[int], list[int]]:
        return case["draft_tokens"][: case["num_draft_tokens"]], case["parents"][: case["num_draft_tokens"]]

    def check(self, row: np.ndarray) -> None:
        if np.isnan(row).any() or not np.isfinite(row.max()):
            raise Refused

    def greedy(self, row: np.ndarray) -> int:
        return int(row.argmax())

    def accepted(self, row: np.ndarray, rule: str) -> list[int]:
        """The accepted tokens, likeliest first."""
        if rule == "strict_greedy":
            return [self.greedy(row)]
        order = np.argsort(-row, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(1, len(row) + 1)
        p = np.exp(row - row.max())
        p /= p.sum()
        top, second = row[order[:2]]
        passes = self.rules(p, rank, second / top)
        inside = eval(rule, {}, passes)
        return [int(token) for token in order if inside[token]]

    def rules(self, p: np.ndarray, rank: np.ndarray, ratio: float) -> Case:
        some = p[p > 0]

        def minus_entropy(floor: float) -> Any:
            return (some * np.log(some + np.float32(floor))).sum()

        def typical_floor(epsilon: float, delta: float, floor: float) -> np.ndarray:
            return p > min(epsilon, delta * np.exp(minus_entropy(floor)))

        return {
            "absolute": lambda tau: p >= tau,
            "additive": lambda t: p >= p.max() - np.float32(t),
            "multiplicative": lambda alpha: p >= np.float32(alpha) * p.max(),
            "top_m": lambda k: rank <= k,
            "mars": lambda theta: (rank == 1) | ((rank == 2) & (ratio > theta)),
            "typical": lambda epsilon, delta: typical_floor(epsilon, delta, 0.0),
            "typical_floor": typical_floor,
            "entropy_power": lambda epsilon, alpha, floor: p >= min(epsilon, np.exp(alpha * minus_entropy(floor))),
        }

    def children(self, case: Case, node: int) -> dict[int, int]:
        """The drafted children of a node, by their tokens."""
        tokens, parents = self.draft(case)
        return {token: child for child, token in enumerate(tokens) if parents[child] == node}

    def row_of(self, rows: list[np.ndarray], path: list[int]) -> np.ndarray:
        return rows[path[-1] + 1 if path else 0]

    def rule_at(self, case: Case, path: list[int]) -> str:
        ended = case.get("relaxed_until") in [case["draft_tokens"][node] for node in path]
        return "strict_greedy" if ended else case["rule"]

    def paths(self, case: Case, rows: list[np.ndarray], path: list[int]) -> list[list[int]]:
        children = self.children(case, path[-1] if path else -1)
        if not children:
            return [path]
        row = self.row_of(rows, path)
        self.check(row)
        on = [children[token] for token in self.accepted(row, self.rule_at(case, path)) if token in children]
        on = on if case["walk"] == "longest" else on[:1]
        return [longer for child in on for longer in self.paths(case, rows, [*path, child])] or [path]

    def verify(self, case: Case) -> Case:
        rows = self.rows(case)
        path = max(self.paths(case, rows, []), key=len)
        row = self.row_of(rows, path)
        self.check(row)
        tokens = [*(case["draft_tokens"][node] for node in path), self.greedy(row)]
        return self.committed(case, path, tokens)

    def committed(self, case: Case, path: list[int], tokens: list[int]) -> Case:
        if (eos := case.get("eos_token_id")) in tokens:
            tokens = tokens[: tokens.index(eos) + 1]
            path = path[: len(tokens)]
        return {"output_tokens": tokens, "accepted_nodes": path, "num_accepted_tokens": len(path)}

    # The target's pass over a tree.

    def tree_inputs(self, parents: list[int], context: int) -> Case:
        depth = [0] * len(parents)
        sees = np.eye(len(parents), dtype=bool)
        for node, parent in enumerate(parents):
            depth[node] = 1 + (depth[parent] if parent >= 0 else 0)
            if parent >= 0:
                sees[node] |= sees[parent]
        sees = np.hstack([np.ones((len(parents), context), bool), sees])
        return {"position_ids": self.positions(depth, context), "attention_weights": self.attention(sees).tolist()}

    def positions(self, depth: list[int], context: int) -> list[int]:
        return [context - 1 + each for each in depth]

    def attention(self, sees: np.ndarray) -> np.ndarray:
        weights = np.where(sees, 1.0, 0.0)
        return weights / weights.sum(-1, keepdims=True)

    # Verification by sampling: counts of what is committed.

    def distributions(self, case: Case) -> tuple[np.ndarray, np.ndarray, list[int]]:
        read = lambda rows: np.array([[float(eval(p)) for p in row] for row in rows])  # noqa: E731
        return read(case["target_probs"]), read(case["draft_probs"] or []), case["draft_tokens"]

    def coins(self, count: int) -> np.ndarray:
        return self.random.random((TRIALS, count))

    def ratio(self, p: np.ndarray, q: np.ndarray, x: int) -> float:
        return p[x] / q[x]

    def residual(self, p: np.ndarray, q: np.ndarray, x: int) -> np.ndarray:
        return np.maximum(p - q, 0)

    def drawn(self, tokens: list[int], count: int, weights: np.ndarray) -> Any:
        if count:
            total = weights.sum()
            weights = weights / total if total else np.full(len(weights), 1 / len(weights))
            for token, times in enumerate(self.random.multinomial(count, weights)):
                if times:
                    yield (*tokens, token), times

    def rejection(self, case: Case) -> Any:
        target, draft, tokens = self.distributions(case)
        ratios = np.array([self.ratio(p, q, x) for p, q, x in zip(target, draft, tokens, strict=False)])
        accepted = (self.coins(len(tokens)) < ratios).cumprod(-1).sum(-1).astype(int)
        for length, count in enumerate(np.bincount(accepted, minlength=len(tokens) + 1)):
            bonus = length == len(tokens)
            weights = target[-1] if bonus else self.residual(target[length], draft[length], tokens[length])
            yield from self.drawn(tokens[:length], count, weights)

    def thresholds(self, shares: list[float], masses: list[float]) -> list[float]:
        inner = [mass / (mass + 1 - share) if share < 1 else 1.0 for mass, share in zip(masses, shares, strict=False)]
        return [*inner, shares[-1]]

    def block_residual(self, share: float, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        return np.maximum(share * p - q, 0)

    def length_of_block(self, said_yes: np.ndarray) -> np.ndarray:
        places = np.arange(1, said_yes.shape[1] + 1)
        return (said_yes * places).max(-1, initial=0)

    def block(self, case: Case) -> Any:
        target, draft, tokens = self.distributions(case)
        shares = [1.0]
        for p, q, x in zip(target, draft, tokens, strict=False):
            shares.append(min(1.0, shares[-1] * p[x] / q[x]))
        rests = [self.block_residual(*each) for each in zip(shares, target, draft, strict=False)]
        said_yes = self.coins(len(tokens)) < self.thresholds(shares, [rest.sum() for rest in rests])[1:]
        lengths = self.length_of_block(said_yes)
        for length, count in enumerate(np.bincount(lengths, minlength=len(tokens) + 1)):
            yield from self.drawn(tokens[:length], count, target[-1] if length == len(tokens) else rests[length])

    def match(self, case: Case) -> Any:
        target, _, tokens = self.distributions(case)

        def follow(node: int, path: tuple[int, ...], count: int) -> Any:
            children = {tokens[child]: child for child in range(len(tokens)) if case["parents"][child] == node}
            for token, times in enumerate(self.random.multinomial(count, target[node + 1])):
                if token in children:
                    yield from follow(children[token], (*path, token), times)
                elif times:
                    yield (*path, token), times

        yield from follow(-1, (), TRIALS)


# Faulty engines: the same with another method, as people have met them in public.


class Fault(NamedTuple):
    """What is wrong, who has met it, a case that finds it, and the methods that make it."""

    what: str
    met: str
    found_by: str
    methods: Case

    def engine(self) -> Engine:
        return type("Faulty", (Engine,), self.methods)()


def fault(what: str, found_by: str, met: str = "", **methods: Any) -> Fault:
    return Fault(what, met, found_by, methods)


def first_not_verified(self: Engine, case: Case, rows: Any, path: list[int]) -> list[list[int]]:
    return Engine.paths(self, case, rows, path or list(self.children(case, -1).values())[:1])


def matches_counted(self: Engine, case: Case, path: list[int], tokens: list[int]) -> Case:
    pairs = zip(self.draft(case)[0], self.rows(case), strict=False)
    matches = sum(token == self.greedy(row) for token, row in pairs)
    return Engine.committed(self, case, path, tokens) | {"num_accepted_tokens": matches}


def next_counted(self: Engine, case: Case, path: list[int], tokens: list[int]) -> Case:
    return Engine.committed(self, case, path, tokens) | {"num_accepted_tokens": len(tokens)}


def replaced_from_column_0(self: Engine, case: Case, path: list[int], tokens: list[int]) -> Case:
    replacement = [self.greedy(self.rows(case)[0])] if len(path) < len(self.draft(case)[0]) else tokens[-1:]
    return Engine.committed(self, case, path, [*tokens[:-1], *replacement])


def bonus_of_the_row_before(self: Engine, case: Case, path: list[int], tokens: list[int]) -> Case:
    return Engine.committed(self, case, path, [*tokens[:-1], self.greedy(self.row_of(self.rows(case), path[:-1]))])


def ended_by_any_draft(self: Engine, case: Case, path: list[int], tokens: list[int]) -> Case:
    ended = case.get("eos_token_id") in case["draft_tokens"]
    return Engine.committed(self, case, path, [*tokens[:-1], case["eos_token_id"]] if ended else tokens)


def some_parent(self: Engine, case: Case, node: int) -> dict[int, int]:
    tokens, parents = self.draft(case)
    return {token: child for child, token in enumerate(tokens) if (parents[child] < 0) == (node < 0)}


def throws_without_a_second_level(self: Engine, case: Case, node: int) -> dict[int, int]:
    parents = self.draft(case)[1]
    _ = next(parent for parent in parents if parent >= 0) if len(parents) > 1 else None
    return Engine.children(self, case, node)


def rounded(self: Engine, text: str, case: Case) -> np.ndarray:
    bits = Engine.row(self, text, case).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


def added_mask(self: Engine, sees: np.ndarray) -> np.ndarray:
    weights = np.exp(0.0 + sees)
    return weights / weights.sum(-1, keepdims=True)


def with_rules(**wrong: Any) -> Any:
    """Other meanings of some rules, each made of the probabilities, the ranks and the right rules."""

    def rules(self: Engine, p: np.ndarray, rank: np.ndarray, ratio: float) -> Case:
        right = Engine.rules(self, p, rank, ratio)
        return right | {name: meaning(p, right) for name, meaning in wrong.items()}

    return rules


def at_least_typical(p: np.ndarray, _: Case) -> Any:
    return lambda epsilon, delta, floor: p >= min(epsilon, delta * np.exp((p[p > 0] * np.log(p[p > 0] + floor)).sum()))


def a_coin_for_each_sibling(self: Engine, case: Case) -> Any:
    target, _, tokens = self.distributions(case)
    left = TRIALS
    for child, token in enumerate(tokens):
        if case["parents"][child] == -1:
            taken = self.random.binomial(left, target[0][token])
            yield from self.drawn([token], taken, target[child + 1])
            left -= taken
    yield from self.drawn([], left, np.where(np.isin(np.arange(target.shape[1]), tokens), 0, target[0]))


def last_token_for_placeholder(self: Engine, case: Case) -> Any:
    target, draft, tokens = Engine.distributions(self, case)
    return target, draft, [token % target.shape[1] for token in tokens]


CHAIN, TREE, RELAXED, SAMPLING = "greedy/chain/", "greedy/tree/", "relaxed/chain/", "sampling/"
MEDUSA, TIE = "typical_floor(9/100, 3/10, 1/100000)/", "/tie.bfloat16"
FAULTS = [
    fault("the first draft token is not verified", CHAIN + "first_token.float32", "ohdearquant/lattice 243",
          paths=first_not_verified),
    fault("the last of equal logits is greedy", CHAIN + "tie.bfloat16", "ohdearquant/lattice 280",
          greedy=lambda self, row: len(row) - 1 - int(row[::-1].argmax())),
    fault("matches behind the first mismatch are counted", CHAIN + "mismatch.float32", "vllm-project/vllm 2658",
          committed=matches_counted),
    fault("the target's own token is counted", CHAIN + "all_accepted.float32", committed=next_counted),
    fault("the replacement is that of column 0", CHAIN + "replacement.float32", committed=replaced_from_column_0),
    fault("the bonus token is that of the row before", CHAIN + "all_accepted.bfloat16",
          committed=bonus_of_the_row_before),
    fault("argmax over the padded vocabulary", CHAIN + "padded_vocabulary.float32", "vllm-project/vllm 21876",
          rows=lambda self, case: [self.row(text, case) for text in case["logits"]]),
    fault("ids that pad the draft are verified", CHAIN + "padded_draft_0.float32", "vllm-project/vllm 54137",
          draft=lambda self, case: (case["draft_tokens"], case["parents"])),
    fault("-1 indexes the last token", CHAIN + "placeholder.float32", "vllm-project/vllm 46533",
          children=lambda self, case, node: {
              token % case["vocab_size"]: child for token, child in Engine.children(self, case, node).items()}),
    fault("a row with NaN gives a token", CHAIN + "nan.bfloat16", "vllm-project/vllm 20531",
          check=lambda self, row: None),
    fault("tokens behind an accepted EOS", CHAIN + "eos.float32", "huggingface/transformers 47912",
          committed=lambda self, case, *rest: Engine.committed(self, case | {"eos_token_id": None}, *rest)),
    fault("a rejected EOS ends the sequence", CHAIN + "eos_rejected.float32", committed=ended_by_any_draft),
    fault("logits are rounded before they are compared", CHAIN + "near_tie.float32", row=rounded),
    fault("the maximum is sought from 0 on", CHAIN + "negative.float32",
          greedy=lambda self, row: int(row.argmax()) if row.max() > 0 else 0),
    fault("a tree of depth 1 throws", TREE + "depth_1.float32", children=throws_without_a_second_level),
    fault("only the first sibling is tried", TREE + "depth_1.float32",
          children=lambda self, *of: dict(list(Engine.children(self, *of).items())[:1])),
    fault("the first rows are taken for those of the path", TREE + "not_contiguous.float32",
          row_of=lambda self, rows, path: rows[len(path)]),
    fault("any node above is taken for the parent", TREE + "rejected_parent.float32", children=some_parent),
    fault("siblings at distinct positions", "tree_inputs/depth_1",
          positions=lambda self, depth, context: [context + node for node in range(len(depth))]),
    fault("a Boolean mask is added", "tree_inputs/branches", attention=added_mask),
    fault("siblings see each other", "tree_inputs/depth_1",
          attention=lambda self, sees: Engine.attention(self, np.tril(sees | True, sees.shape[1] - len(sees)))),
    fault("a threshold that is met is not enough", RELAXED + "absolute(1/4)" + TIE,
          rules=with_rules(absolute=lambda p, _: lambda tau: p > tau)),
    fault("no slack is strict greedy", RELAXED + "additive(0)" + TIE,
          rules=with_rules(additive=lambda p, _: lambda t: p > p.max() - np.float32(t))),
    fault("a typical threshold that is met is enough", RELAXED + "typical_floor(1/4, 1, 1/100000)" + TIE,
          rules=with_rules(typical_floor=at_least_typical)),
    fault("the entropy has no floor", RELAXED + MEDUSA + "entropy_floor.float32",
          rules=with_rules(typical_floor=lambda _, right: lambda e, d, f: right["typical"](e, d))),
    fault("all ties at rank k are accepted", RELAXED + "top_m(3)" + TIE,
          rules=with_rules(top_m=lambda p, _: lambda k: p >= np.sort(p)[-k])),
    fault("the relaxed mode does not end", "relaxed/mode/top_m(10) & additive(3/5)/ended.float32",
          rule_at=lambda self, case, path: case["rule"]),
    fault("the relaxed mode ends too early", "relaxed/mode/top_m(3) & multiplicative(1/2)/ended_later.float32",
          rule_at=lambda self, case, path: Engine.rule_at(self, case, list(range(len(case["draft_tokens"]))))),
    fault("every coin is 0", SAMPLING + "rejection/impossible", "vllm-project/vllm-ascend 13766",
          coins=lambda self, count: np.full((TRIALS, count), -1e-9)),
    fault("the replacement is a sample of the target", SAMPLING + "rejection/drafted_too_often",
          residual=lambda self, p, q, x: p),
    fault("only the drafted token is subtracted", SAMPLING + "rejection/drafted_too_often", "xLLM-AI/xllm 2175",
          residual=lambda self, p, q, x: np.where(np.arange(len(p)) == x, np.maximum(p - q, 0), p)),
    fault("the ratio is q/p", SAMPLING + "rejection/drafted_too_often",
          ratio=lambda self, p, q, x: q[x] / p[x] if p[x] else 1.0),
    fault("a block is accepted token by token", SAMPLING + "block/rescued", "vllm-project/vllm-ascend 7807",
          block=Engine.rejection),
    fault("a block's replacement is that of a token", SAMPLING + "block/not_rescued", "vllm-project/vllm-ascend 7807",
          block_residual=lambda self, share, p, q: np.maximum(p - q, 0)),
    fault("a block ends at the first no", SAMPLING + "block/rescued", "a review of vllm-project/vllm-ascend 11985",
          length_of_block=lambda self, said_yes: said_yes.cumprod(-1).sum(-1).astype(int)),
    fault("a block is accepted by its ratio alone", SAMPLING + "block/not_rescued",
          thresholds=lambda self, shares, masses: shares),
    fault("a placeholder takes probability", SAMPLING + "match/placeholder", "vllm-project/vllm-ascend 10045",
          distributions=last_token_for_placeholder),
    fault("each sibling has a coin of its own", SAMPLING + "match/siblings", match=a_coin_for_each_sibling),
]  # fmt: skip
