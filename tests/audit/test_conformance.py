"""The vectors find what is wrong with an engine, and nothing where it is right."""

import ast
import itertools
import json
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from draftcert.audit import answers, check_answers, conformance, conformance_vectors
from draftcert.runtime import Tree, certify, verify_tree
from draftcert.theory import DraftcertError
from tests.audit.engines import FAULTS, Engine, Fault

VECTORS = conformance_vectors()
CASES = {case["id"]: case for case in VECTORS["cases"]}


def check(document: Any, folder: Path) -> answers.Conformance:
    file = folder / "answers.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    return check_answers(file)


def test_the_set_changes_with_its_version_only():
    """Whoever changes a vector raises the version in FORMAT, and this line."""
    assert (VECTORS["format"], VECTORS["sha256"][:16]) == ("draftcert-conformance/3", "9d12b72596dfa484")
    assert json.loads(conformance.as_text(VECTORS)) == json.loads(json.dumps(VECTORS))


def test_a_right_engine_passes_every_suite(tmp_path: Path):
    found = check(Engine().answers(VECTORS, ""), tmp_path)
    assert not found.faults
    assert len(found.answered) == len(CASES)
    assert not found.not_run


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_faulty_engine_is_found(fault: Fault, tmp_path: Path):
    suite = CASES[fault.found_by]["suite"]
    found = check(fault.engine().answers(VECTORS, suite), tmp_path)
    assert fault.found_by in {each.case for each in found.faults}


class Runtime(Engine):
    """This project's own verification."""

    def verify(self, case: dict[str, Any]) -> dict[str, Any]:
        rows = [[int(word, 16) for word in row.split()] for row in case["logits"]]
        bits = np.array(rows, np.uint32 if case["dtype"] == "float32" else np.uint16)
        signed = torch.from_numpy(bits.view(np.int32 if case["dtype"] == "float32" else np.int16))
        logits = signed.view(getattr(torch, case["dtype"]))[:, : case["vocab_size"]]
        tokens, parents = self.draft(case)
        path, node = [], -1  # the nodes of the part of the path that was decided before
        while True:
            below = [node, *(child for child in range(len(tokens)) if self.is_below(parents, child, node))]
            above = (-1, *(below.index(parents[each]) for each in below[1:]))
            rows = logits[[each + 1 for each in below]]
            try:
                tree = Tree((0, *(tokens[each] for each in below[1:])), above)
                found = verify_tree(rows, tree, self.rule_at(case, path), case["walk"])
            except DraftcertError:
                return {"refused": True}
            nodes = [below[each] for each in found.path[1:]]
            ends = [each for each in nodes if tokens[each] == case.get("relaxed_until")]
            if not ends:
                break
            path += nodes[: nodes.index(ends[0]) + 1]
            node = ends[0]
        path += nodes
        return self.committed(case, path, [*(tokens[each] for each in path), found.token])

    def is_below(self, parents: list[int], child: int, node: int) -> bool:
        return child >= 0 and (parents[child] == node or self.is_below(parents, parents[child], node))

    def tree_inputs(self, parents: list[int], context: int) -> dict[str, Any]:
        tree = Tree(tuple(range(len(parents) + 1)), (-1, *(parent + 1 for parent in parents)))
        sees = torch.cat([torch.ones(len(tree), context - 1, dtype=torch.bool), tree.ancestor_mask()], 1)
        weights = torch.zeros(sees.shape).masked_fill(~sees, -torch.inf).softmax(-1)
        return {"position_ids": tree.positions(context - 1)[1:].tolist(), "attention_weights": weights[1:].tolist()}


class Certified(Engine):
    """The sets of this project's certificates, where they say that they are decided."""

    def accepted(self, row: np.ndarray, rule: str) -> list[int]:
        found = certify(torch.tensor(row), rule)
        if not found.exact:
            return super().accepted(row, rule)
        return sorted(range(len(row)), key=lambda token: (-row[token], token))[: int(found.accepted)]


def test_this_projects_own_verification_passes(tmp_path: Path):
    suites = ("greedy", "relaxed", "tree_inputs")
    for engine in (Runtime(), Certified()):
        assert not check(engine.answers(VECTORS, *suites), tmp_path).faults


@pytest.mark.parametrize("case", ["drafted_too_often", "three"])
def test_transformers_own_speculative_sampling_passes(case: str):
    from transformers.generation.utils import _speculative_sampling

    vector = CASES[f"sampling/rejection/{case}"]
    rows = ([[float(Fraction(p)) for p in row] for row in vector[name]] for name in ("target_probs", "draft_probs"))
    target, draft = (torch.tensor([each]).log() for each in rows)
    drafted = torch.tensor([vector["draft_tokens"]])
    torch.manual_seed(18)
    counts: dict[str, int] = {}
    for _ in range(conformance.TRIALS):
        committed, _ = _speculative_sampling(drafted, draft, drafted.shape[1], target)
        counts[str(committed[0].tolist())] = counts.get(str(committed[0].tolist()), 0) + 1
    answer = {"counts": [[json.loads(tokens), count] for tokens, count in counts.items()]}
    assert answers.fault_of(vector, answer) is None


@pytest.mark.parametrize("method", [conformance._rejection, conformance._block])
def test_exact_outcomes_are_lossless(method: Any):
    """Over all drafts, with what the target gives behind them, three tokens have the target's own probability."""
    front, back, even = (conformance._sixteenths(*row) for row in ((8, 5, 3), (1, 2, 13), (6, 5, 5)))
    target, draft = [front, back, even], [back, even]
    total: dict[tuple[int, ...], Fraction] = {}
    for tokens in itertools.product(range(3), repeat=2):
        drafted = draft[0][tokens[0]] * draft[1][tokens[1]]
        for committed, p in method(target, draft, list(tokens), [])[1].items():
            for rest in itertools.product(range(3), repeat=3 - len(committed)):
                behind = prod(target[3 - len(rest) + place][token] for place, token in enumerate(rest))
                total[committed + rest] = total.get(committed + rest, Fraction(0)) + drafted * p * behind
    assert total == {(a, b, c): front[a] * back[b] * even[c] for a, b, c in itertools.product(range(3), repeat=3)}


def test_what_writes_and_judges_uses_nothing_of_the_runtime():
    for module in (conformance, answers):
        tree = ast.parse(Path(str(module.__file__)).read_text())
        names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert not [name for name in names if "runtime" in name]
    text = Path(__file__).with_name("engines.py").read_text()
    assert "import draftcert" not in text
    assert "from draftcert" not in text


# Files that are no answers, and answers that are none.

RIGHT = Engine().answers(VECTORS, "greedy/tree")
FIRST = next(iter(RIGHT["answers"]))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("", "not JSON"),
        ("{}", "answers are a JSON object of"),
        ("[]", "answers are a JSON object of"),
        (json.dumps(RIGHT)[:-3], "not JSON"),
        (json.dumps(RIGHT).replace('"suites":', '"engine": "other", "suites":'), "'engine' stands twice"),
        (json.dumps(RIGHT)[:-2] + f', "{FIRST}": {{}}}}}}', "stands twice"),
        (RIGHT | {"more": 1}, "and nothing else"),
        (RIGHT | {"answers": []}, "is no dict"),
        (RIGHT | {"answers": float("nan")}, "NaN is no number"),
        (RIGHT | {"suites": []}, "no suite"),
        (RIGHT | {"suites": [1]}, "are not names"),
        (RIGHT | {"suites": ["greedy/tree"] * 2}, "twice"),
        (RIGHT | {"suites": ["greedy"]}, "no suite is called 'greedy'"),
        (RIGHT | {"suites": ["greedy/chain"]}, "no case of its suites is called"),
        (RIGHT | {"vectors_sha256": "0" * 64}, "run the engine on what"),
        (RIGHT | {"format": "draftcert-conformance/0"}, "draftcert conform --out"),
    ],
)
def test_a_file_that_holds_no_answers_is_refused(document: Any, message: str, tmp_path: Path):
    with pytest.raises(DraftcertError, match=message):
        check(document, tmp_path)


def test_a_case_without_an_answer_is_a_fault(tmp_path: Path):
    assert len(check(RIGHT | {"answers": {}}, tmp_path).faults) == len(RIGHT["answers"])
    partial = {name: answer for name, answer in RIGHT["answers"].items() if name != FIRST}
    assert check(RIGHT | {"answers": partial}, tmp_path).faults == (answers.Answered(FIRST, "no answer"),)


OUTCOMES = CASES["sampling/match/one"]["expected"]["outcomes"]
EXACT = [[each["output_tokens"], each["float"]] for each in OUTCOMES]
COUNTS = [[tokens, int(p * 2**20)] for tokens, p in EXACT]
WEIGHTS = [[float(Fraction(w)) for w in row] for row in CASES["tree_inputs/chain"]["expected"]["attention_weights"]]
PLACED = {"position_ids": [4, 5, 6], "attention_weights": WEIGHTS}
CHAIN = {"output_tokens": [3, 1, 7, 4], "accepted_nodes": [0, 1, 2], "num_accepted_tokens": 3}
WRONG = {
    "greedy/chain/all_accepted.float32": [
        *(None, [], {}, "x", {"tokens": [3]}, {"refused": True}, {"output_tokens": [3, 1, 7, 4]}),
        *(CHAIN | {"num_accepted_tokens": wrong} for wrong in ("3", 3.0, 4, [3], None)),
        *(CHAIN | {"output_tokens": wrong} for wrong in ([3, True, 7, 4], [3.0, 1, 7, 4], [3, 1, 7], 3, "3174")),
        *(CHAIN | {"accepted_nodes": wrong} for wrong in ([0, True, 2], [0, 2, 1], 0)),
        *(CHAIN | more for more in ({"x": 0}, {"refused": False}, {"refused": True})),
    ],
    "greedy/chain/eos.float32": [{"output_tokens": [3, 9], "accepted_nodes": "0"}],
    "greedy/chain/nan.float32": [{"refused": 1}, {"refused": False}, {"output_tokens": [0]}],
    "greedy/chain/placeholder.float32": [CHAIN, {"refused": False}],
    "tree_inputs/chain": [
        {"position_ids": [4, 5, 6]},
        PLACED | {"position_ids": [4, 5, 6.0]},
        *(PLACED | {"attention_weights": wrong} for wrong in (None, WEIGHTS[:2], [*WEIGHTS[:2], WEIGHTS[2][:6]])),
        PLACED | {"attention_weights": [*WEIGHTS[:2], ["0"] * 7]},
    ],
    "sampling/match/one": [
        {"counts": COUNTS, "probabilities": EXACT},
        *({"counts": wrong} for wrong in ([], {}, COUNTS * 2, COUNTS[1:], [*COUNTS, [[9], 1]], [*COUNTS, [[4], -1]])),
        *({"counts": [[tokens, of(n)] for tokens, n in COUNTS]} for of in (float, lambda n: n // 200, lambda n: n**9)),
        {"counts": [*COUNTS[1:], [COUNTS[0][0], COUNTS[0][1] + 20_000]]},
        *({"probabilities": wrong} for wrong in ([], EXACT[1:], [*EXACT, [[9], 10**400]])),
        *({"probabilities": [[tokens, of(p)] for tokens, p in EXACT]} for of in (str, lambda p: p + 1e-5)),
    ],
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_answer_is_a_fault(case: str):
    for answer in WRONG[case]:
        assert answers.fault_of(CASES[case], answer), answer


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ("sampling/match/one", {"counts": COUNTS}),
        ("sampling/match/one", {"probabilities": EXACT}),
        ("tree_inputs/chain", PLACED),
        ("greedy/chain/placeholder.float32", {"refused": True}),
        ("greedy/chain/all_accepted.float32", CHAIN),
        ("greedy/chain/eos.float32", CHAIN | {"output_tokens": [3, 9]}),
    ],
)
def test_a_right_answer_is_none(case: str, answer: Any):
    assert answers.fault_of(CASES[case], answer) is None


def test_exact_tails_leave_right_counts_alone_and_find_wrong_ones():
    half, share = Fraction(1, 2), Fraction(1, 10**6) / (2 * conformance.number_of_outcomes())
    # 2^-n is the tail of n heads of n: below the share from the first n with 2^n share > 1 on.
    certain = next(n for n in range(100) if 2**n * share > 1)
    assert [answers.plausible(n, n, half) for n in (certain - 1, certain)] == [True, False]
    assert [answers.plausible(0, n, half) for n in (certain - 1, certain)] == [True, False]
