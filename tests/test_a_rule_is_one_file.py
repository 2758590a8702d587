"""A new rule needs its own file and nothing else: shown by adding one to a copy of the tree."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ("theory", "proofs_check", "numerics", "runtime", "document", "audit", "cli")

SQUARED = '''"""Squared: a token is accepted iff it has at least alpha of the square of the largest probability.

    accepts(x)  :<=>  p(x) >= alpha p_(1)^2,    0 <= alpha <= 1

Proposed by this test. A token exactly on the threshold is accepted.
"""

from sympy import Ge, Interval, Rational, Symbol, false, log, oo, true

from ..rule import OrderFact, Parameter, RuleFamily, WorkedPoint, primed
from ..statistics import PROBABILITY, TOP

alpha = Symbol("alpha", nonnegative=True)

RULE = RuleFamily(
    name="squared",
    parameters=(Parameter(alpha, Interval(0, 1), "least fraction of the square"),),
    accepts=Ge(PROBABILITY, alpha * TOP**2),
    deployed_as="a test",
    citation="this test",
    worked_points=(
        WorkedPoint(
            ("1",), ("1/2", "3/8", "1/8"), (0, 1),
            log(Rational(3, 2)) / 2 + Rational(3, 8) * log(Rational(9, 8)) + log(Rational(3, 8)) / 8,
            note="the threshold 1/4; the second token lies above the level 1/3 and is moved",
        ),
        WorkedPoint(("1",), ("2/5", "2/5", "1/5"), (0, 1, 2), oo, note="a tie of the largest"),
        WorkedPoint(("1",), ("1", "0"), (0,), log(2), note="a point mass"),
        WorkedPoint(
            ("1",), ("3/5", "7/20", "1/20"), (0,),
            Rational(3, 5) * log(Rational(24, 13)) + log(Rational(2, 13)) / 20, candidates=2,
            note="the competitor 7/20 lies below the threshold 9/25 and above the level 13/40: it stays",
        ),
    ),
    doc=__doc__,
    examples=(("1/2",), ("1",)),
    implies={"strict_greedy": OrderFact(false, "several tokens can reach the threshold")},
    implied_by={"strict_greedy": OrderFact(true, "the largest probability is at least its square")},
)
'''

USES = """
import json, sys
import numpy as np, pytest, torch
from draftcert.cli.codegen import codegen
from draftcert.numerics import certificate
from draftcert.numerics.sharpness import searches
from draftcert.numerics.validation import cases, run_case
from draftcert.runtime import Tree, certify, verify_tree
from draftcert.runtime.rows import operators
from draftcert.runtime.rows.program import encoded
from draftcert.theory import RULES, parse_rule
from draftcert.theory.order import diagram, implication
sys.path.insert(0, "benchmarks")
import soundness

rule = parse_rule("squared(0.5)")
row = torch.tensor([[0.5, 0.3, 0.15, 0.05]], dtype=torch.float64)
exact = float(certificate(row[0].tolist(), rule, normalize=True))
kernel = certify(row.log(), "squared(0.5)", draft_logits=row.log())
tensors = operators.certify_by_tensors(row.log(), None, encoded(rule), 1, 1.0, True, 16)
case = next(case for case in cases("quick", 0) if case.rule.atoms[0].family.name == "squared" and case.tokens > 2)
found = {
    "exact": exact, "kernel": kernel.value.item(), "tensors": tensors[0].item(), "accepted": kernel.accepted.item(),
    "path": verify_tree(torch.tensor([[2.0, 1.9, 0.0], [0.0, 1.0, 0.0]]), Tree([0, 1], [-1, 0]), rule).path,
    "order": [implication("strict_greedy", rule).holds, implication(rule, "strict_greedy").holds],
    "drawn": any("squared" in str(each) for each in diagram().rules),
    "validated": run_case(case).failure, "searched": len(list(searches([rule]))),
    "benchmarked": any("squared" in str(each) for each in soundness.RULES),
}
codegen()
tests = [f"tests/theory/test_{name}.py" for name in ("rules", "completeness", "order")]
found["tests"] = pytest.main(["-q", "-p", "no:cacheprovider", "-k", "squared or docs", *tests])
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """The repository with one file more, laid out so that `draftcert` is imported from it."""
    root = tmp_path_factory.mktemp("tree")
    for name in (*LAYERS, "support", "tests", "docs", "benchmarks"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "front_door", root / "draftcert")
    for path in root.iterdir():
        if path.name not in ("tests", "docs", "benchmarks", "draftcert"):
            (root / "draftcert" / path.name).symlink_to(path)
    (root / "theory" / "rules" / "squared.py").write_text(SQUARED)
    return root


@pytest.fixture(scope="module")
def found(tree: Path) -> dict[str, Any]:
    """What a program finds that uses the rule in every layer, generates the documentation and runs the rules' tests."""
    environment = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", USES], cwd=tree, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1]) | {"told": done.stdout}


def test_every_layer_knows_it(found, tree):
    assert found["exact"] > 0
    assert found["kernel"] == pytest.approx(found["exact"], rel=1e-9)
    assert found["tensors"] == pytest.approx(found["exact"], rel=1e-9)
    assert found["accepted"] == 3
    assert found["path"] == [0, 1]
    assert found["order"] == [True, False]
    assert found["drawn"]
    assert found["validated"] is None
    assert found["benchmarked"]
    assert "squared" not in (tree / "benchmarks" / "soundness.py").read_text()


def test_its_documentation_is_generated_and_its_tests_pass(found, tree):
    assert "`squared(alpha)`" in (tree / "docs" / "rules.md").read_text()
    assert found["tests"] == 0, found["told"][-3000:]
