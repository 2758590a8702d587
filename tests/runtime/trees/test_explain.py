"""What a difference between two outputs is."""

from typing import Any

import pytest
import torch

from draftcert.runtime.trees.explain import evaluations, explain
from draftcert.runtime.trees.forward import TreeForward
from draftcert.theory import DraftcertError

PROMPT = [5, 17, 3]


def test_same_prompt_budget_and_length(tiny: Any) -> None:
    model = tiny()
    assert explain(model, PROMPT, [1, 2], [1, 2]).verdict == "identical"
    assert explain(model, PROMPT, [1], [1], second_prompt=[5]).verdict == "prompt"
    shorter = explain(model, PROMPT, [1, 2], [1])
    assert (shorter.verdict, shorter.position, shorter.tokens) == ("stopped early", 1, (2, None))
    with pytest.raises(DraftcertError, match="prompt is empty"):
        explain(model, [], [1], [2])
    with pytest.raises(DraftcertError, match="token 99"):
        explain(model, PROMPT, [1], [99])


def test_another_token_than_the_greedy_one(tiny: Any, hf_greedy: Any) -> None:
    model = tiny()
    greedy = hf_greedy(model, PROMPT, 5)
    wrong = [*greedy[:3], (greedy[3] + 1) % 61, 0]
    found = explain(model, PROMPT, greedy, wrong)
    assert (found.verdict, found.position, found.greedy) == ("different rule", 3, greedy[3])
    assert found.ranks is not None
    assert found.ranks[0] == 1 < found.ranks[1]
    assert found.margin is not None
    assert found.noise is not None
    assert 2 * found.noise < found.margin
    both = explain(model, PROMPT, [(greedy[0] + 1) % 61], [(greedy[0] + 2) % 61])
    assert both.verdict == "true error"


@pytest.mark.parametrize(
    ("row", "noise", "verdict", "margin"),
    [
        ([0.0, 2.0, 2.0, 1.0], 0.0, "exact tie", 0.0),
        ([0.0, 2.0, 2.0, 1.0], 0.25, "exact tie", 0.0),
        ([0.0, 2.0, 1.75, 1.0], 0.125, "numerical noise", 0.25),
        ([0.0, 2.0, 1.75, 1.0], 0.0625, "different rule", 0.25),
        ([3.0, 2.0, 2.0, 1.0], 0.125, "true error", 0.0),
    ],
)
def test_margin_against_noise(
    row: list[float], noise: float, verdict: str, margin: float, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = torch.tensor(row)
    other = alone.clone()
    other[3] += noise
    monkeypatch.setattr("draftcert.runtime.trees.explain.evaluations", lambda *_: (alone, [alone, other]))
    found = explain(tiny(), PROMPT, [1], [2])
    assert (found.verdict, found.margin, found.noise) == (verdict, margin, noise)


def test_noise_is_that_of_a_row_among_others(tiny: Any) -> None:
    alone, others = evaluations(TreeForward(tiny()), PROMPT, 16)
    assert len(others) == 3
    for other in others:
        assert torch.allclose(alone, other, atol=1e-4, rtol=1e-4)
