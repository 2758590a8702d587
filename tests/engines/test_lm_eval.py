"""lm-evaluation-harness: our model's answers and scores are those of the harness's transformers model."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

lm_eval = pytest.importorskip("lm_eval")
TASKS = Path(__file__).parent / "tasks"
WRITTEN, CHOSEN = "facts_written", "facts_chosen"


def evaluated(model: str, **arguments: Any) -> Any:
    from lm_eval.tasks import TaskManager  # pyright: ignore[reportMissingImports]

    tasks = TaskManager(include_path=str(TASKS), include_defaults=False)
    settings = {"tasks": [WRITTEN, CHOSEN], "task_manager": tasks, "device": "cpu", "bootstrap_iters": 0}
    return lm_eval.simple_evaluate(model=model, **settings, **arguments)


def answers(found: Any, task: str) -> list[Any]:
    """What the model said to each document, in the documents' order."""
    samples = sorted(found["samples"][task], key=lambda each: each["doc_id"])
    return [each["resps"] for each in samples]


@pytest.fixture(scope="module")
def reference(folder: Path) -> Any:
    return evaluated("hf", model_args={"pretrained": str(folder), "dtype": "float32"})


def test_scores_and_answers_are_those_of_the_transformers_model(
    reference: Any, folder: Path, passes: list[float], record_property: Callable[..., None]
):
    from draftcert.integrations import lm_eval as _  # noqa: F401 (registers the model)

    found = evaluated("draftcert", model_args={"pretrained": str(folder)}, batch_size=3)
    assert found["results"] == reference["results"]
    assert answers(found, WRITTEN) == answers(reference, WRITTEN)
    assert len(passes) == len(answers(found, WRITTEN)) == 8
    for ours, theirs in zip(answers(found, CHOSEN), answers(reference, CHOSEN), strict=True):
        assert [each[0][0] for each in ours] == pytest.approx([each[0][0] for each in theirs], rel=1e-5)
    scores = {name: found["results"][task][name] for task, name in ((WRITTEN, "bleu,none"), (CHOSEN, "acc,none"))}
    shown = ", ".join(f"{name.partition(',')[0]} {score:.3g}" for name, score in scores.items())
    record_property("ran", f"a task written by trees and one of log-likelihoods, scores those of `--model hf`: {shown}")


def test_the_command(reference: Any, folder: Path, tmp_path: Path, record_property: Callable[..., None]):
    command = [
        sys.executable,
        "-m",
        "draftcert.integrations.lm_eval",
        "run",
        "--model",
        "draftcert",
        "--tasks",
        WRITTEN,
    ]
    command += ["--model_args", f"pretrained={folder},drafter=lookup", "--include_path", str(TASKS), "--limit", "2"]
    command += ["--device", "cpu", "--log_samples", "--output_path", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (file,) = tmp_path.rglob("samples_*.jsonl")
    samples = [json.loads(line) for line in file.read_text().splitlines()]
    assert [each["resps"] for each in samples] == answers(reference, WRITTEN)[:2]
    record_property("ran", "its command with `--model draftcert`")
