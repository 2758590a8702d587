"""What continuous integration runs is pinned, and may read the code and nothing else."""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.y*ml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_with_least_permissions(path: Path):
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert "permissions" not in job
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"[\w-]+/[\w./-]+@[0-9a-f]{40}", step["uses"]), step["uses"]
            if "actions/checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False


def test_every_version_of_python_that_is_promised_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    promised = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    (matrix,) = (
        job["strategy"]["matrix"]["python"]
        for path in WORKFLOWS
        for job in yaml.safe_load(path.read_text())["jobs"].values()
    )
    assert matrix == promised
    assert project["requires-python"] == f">={promised[0]}"


def test_the_lock_holds_the_versions_of_the_constraints_and_a_hash_of_each():
    pinned = {line for line in (ROOT / "constraints.txt").read_text().split("\n") if line}
    locked = [line for line in (ROOT / "requirements.lock").read_text().split("\n") if line and line[0] != "#"]
    for line in locked:
        assert re.fullmatch(r"[\w.-]+==[\w.]+( --hash=sha256:[0-9a-f]{64})+", line), line

    def canonical(lines: Iterable[str]) -> set[str]:
        return {re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower() + line[line.index("==") :] for line in lines}

    assert canonical(pinned) == canonical(line.partition(" ")[0] for line in locked)


def test_what_is_promised_is_what_the_code_bounds():
    from draftcert.runtime.models.loading import LARGEST_SIZES
    from draftcert.support.files import LARGEST
    from draftcert.theory.numbers import MOST_DIGITS
    from draftcert.theory.parse import DEEPEST, MOST_CHARACTERS
    from draftcert.theory.rule import MOST_ATOMS

    text = " ".join((ROOT / "SECURITY.md").read_text().split())
    for bound in (
        f"{MOST_DIGITS:,} digits",
        f"{MOST_CHARACTERS:,} characters",
        f"{MOST_ATOMS} atoms",
        f"{DEEPEST} parentheses",
        f"{LARGEST // 2**30} GiB",
        f"{LARGEST_SIZES['layers']:,} layers",
        f"{LARGEST_SIZES['vocab'] // 10**6} million",
    ):
        assert bound in text
