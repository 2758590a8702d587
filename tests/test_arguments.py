"""Every public function refuses numbers that are none, each by name, and never takes one for another."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import draftcert as dc
from draftcert.numerics import most_accepted, most_tokens
from draftcert.theory import DraftcertError

ROW = ["1/2", "3/10", "1/5"]
LOGITS = torch.tensor([[0.1, 2.0, -1.0, 0.5]])
TREE = dc.Tree((0, 1, 2), (-1, 0, 0))

CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "certificate": (dc.certificate, {"probabilities": ROW, "rule": "top_m(1)", "candidates": 1, "digits": 20}),
    "top_logprobs": (
        dc.certificate_from_top_logprobs,
        {"logprobs": [-0.5, -1.5], "rule": "top_m(1)", "candidates": 1, "vocab_size": 9, "common_error": 0},
    ),
    "certify": (
        dc.certify,
        {"target_logits": LOGITS, "rule": "top_m(1)", "candidates": 1, "temperature": 1.0, "vocab_size": 4, "k": 2},
    ),
    "row_stats": (dc.row_stats, {"logits": LOGITS, "k": 2, "vocab_size": 4}),
    "certificate_hinge": (
        dc.certificate_hinge,
        {"target_logits": LOGITS, "draft_logits": LOGITS, "candidates": 1, "inside": 1.0, "plain": 0.0},
    ),
    "verify_tree": (
        dc.verify_tree,
        {"target_logits": torch.randn(3, 4), "tree": TREE, "rule": "top_m(1)", "choice": "likeliest"},
    ),
    "Tree": (dc.Tree, {"tokens": (0, 1), "parents": (-1, 0), "probabilities": None}),
    "guaranteed_acceptance": (dc.guaranteed_acceptance, {"certificates": [0.1, 0.2], "mean_kl": 0.01}),
    "mean_kl_for": (dc.mean_kl_for, {"certificates": [0.1, 0.2], "acceptance": 0.5}),
    "kl_for_divergence": (dc.kl_for_divergence, {"divergence": "hellinger", "threshold": 0.1, "digits": 20}),
    "kl_for_sampling": (dc.kl_for_sampling_acceptance, {"acceptance": 0.9, "lenience": 1, "digits": 20}),
    "sampling_acceptance": (dc.sampling_acceptance, {"kl": 0.05, "lenience": 1, "digits": 20}),
    "log_loss": (dc.log_loss, {"probabilities": ROW, "rule": "top_m(1)", "digits": 20}),
    "log_loss_bound": (dc.log_loss_bound, {"rule": "multiplicative(1/2)", "margin": 0.1, "digits": 20}),
    "margin_bounds": (
        dc.margin_bounds,
        {"rule": "top_m(1)", "margin": 0.1, "candidates": 1, "vocab_size": 9, "digits": 20, "known": "top2"},
    ),
    "most_tokens": (most_tokens, {"nodes": 5, "vocab_size": 100, "entropy": 1.5, "digits": 20}),
    "most_accepted": (most_accepted, {"nodes": 5, "largest": 0.5}),
    "load_model": (dc.load_model, {"source": "/nowhere", "dtype": "float32", "device": "cpu"}),
}
OPTIONAL = {"vocab_size", "probabilities", "source", "margin"}
NEVER = [True, "a", "", float("nan"), [], {}, object(), b"1", 1j, torch.tensor([1, 2]), np.array([1.0, 2.0]), -1, -0.5]
"""What no argument of these functions can be; nor 1.5 what counts something."""
COUNTS = {"candidates", "digits", "k", "vocab_size", "nodes", "tokens", "parents"}
ARRAYS = {"certificates", "logprobs", "probabilities", "logits", "target_logits", "draft_logits", "tokens"}


@pytest.mark.parametrize(
    ("function", "argument"),
    [(name, argument) for name, (_, usual) in CALLS.items() for argument in usual if argument != "rule"],
)
def test_what_is_no_value_of_an_argument_is_a_named_error(function: str, argument: str) -> None:
    call, usual = CALLS[function]
    if function != "load_model":
        call(**usual)
    for value in [*NEVER, *([1.5] if argument in COUNTS else []), *([] if argument in OPTIONAL else [None])]:
        if argument in ARRAYS and isinstance(value, (torch.Tensor, np.ndarray, list)):
            continue  # of these some are fair rows, and their own tests refuse the others
        with pytest.raises(DraftcertError) as refusal:
            call(**{**usual, argument: value})
        assert len(str(refusal.value).splitlines()) == 1, value


def test_certificates_of_any_shape_are_one_a_context():
    for shaped in (np.array, torch.tensor):
        assert dc.guaranteed_acceptance(shaped([[0.1, 0.2], [0.3, 0.4]]), "0.06") == dc.guaranteed_acceptance(
            [0.1, 0.2, 0.3, 0.4], "0.06"
        )
    for whole in (np.array([1, 2]), np.array([[1], [2]]), torch.tensor([1, 2])):
        assert dc.guaranteed_acceptance(whole, "0.6") == dc.guaranteed_acceptance([1, 2], "0.6")
    for unordered in ("12", {0.1: 1}, {0.1, 0.2}):
        with pytest.raises(DraftcertError, match="give a list"):
            dc.guaranteed_acceptance(unordered, 0.1)


def test_counts_of_numpy_and_torch_are_counts():
    candidates: Any = np.int64(2)
    digits: Any = torch.tensor(20)
    assert str(dc.certificate(ROW, "top_m(1)", candidates, digits)) == str(dc.certificate(ROW, "top_m(1)", 2, 20))
    tokens: Any = torch.tensor([4, 5])
    parents: Any = np.array([-1, 0])
    assert dc.Tree(tokens, parents) == dc.Tree((4, 5), (-1, 0))
