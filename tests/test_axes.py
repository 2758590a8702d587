"""The axes that signatures name are really checked, and what they exclude is refused by name."""

from __future__ import annotations

import pytest
import torch
from jaxtyping import Float, Int64, TypeCheckError
from torch import Tensor

from draftcert.runtime import Tree, certify, row_stats, verify_tree
from draftcert.runtime.rows.records import RowStats
from draftcert.runtime.rows.reference import moments
from draftcert.theory import DraftcertError
from draftcert.theory.rules import strict_greedy


def without_vocabulary(rows: Float[Tensor, "*rows vocab"]) -> Float[Tensor, "*rows"]:
    return rows


def only_matrices(rows: Float[Tensor, "rows vocab"]) -> Int64[Tensor, " rows"]:
    if rows.dim() == 0:
        raise DraftcertError("rows of shape () have no tokens")
    return rows.argmax(-1)


def test_a_signature_that_says_less_or_more_than_a_function_does_fails(checked):
    with pytest.raises(TypeCheckError, match="return value"):
        checked(without_vocabulary)(torch.zeros(2, 3))
    assert checked(only_matrices)(torch.zeros(2, 3)).shape == (2,)
    with pytest.raises(TypeCheckError, match="parameters"):  # it takes a cube, which its signature excludes
        checked(only_matrices)(torch.zeros(2, 3, 4))
    with pytest.raises(DraftcertError, match="no tokens"):
        checked(only_matrices)(torch.zeros(()))


def misspelt(rows: Flaot[Tensor, "*rows"]) -> None: ...  # noqa: F821 # pyright: ignore


def test_an_annotation_of_no_meaning_is_no_free_pass(checked):
    with pytest.raises(NameError, match="Flaot"):
        checked(misspelt)


def test_the_package_s_functions_and_records_are_checked():
    with pytest.raises(TypeCheckError):
        moments(torch.zeros(2, 3))  # float32
    fields = list(vars(row_stats(torch.zeros(4, 5), 2)).values())
    fields[1] = fields[1][:3]
    with pytest.raises(TypeCheckError):
        RowStats(*fields)
    assert Tree((1, 2), (-1, 0)).positions(3).tolist() == [3, 4]


@pytest.mark.parametrize(
    "call",
    [
        lambda: certify(torch.zeros(()), "strict_greedy"),
        lambda: certify(torch.zeros(2, 3).int(), "strict_greedy"),
        lambda: certify([0.0, 1.0], "strict_greedy"),  # pyright: ignore[reportArgumentType]
        lambda: certify(torch.zeros(2, 3), "strict_greedy", 1, torch.zeros(3)),
        lambda: certify(torch.zeros(2, 3), "strict_greedy", 1, torch.zeros(2, 4)),
        lambda: row_stats(torch.zeros(2, 0)),
        lambda: verify_tree(torch.zeros(3), Tree((1,), (-1,)), strict_greedy()),
        lambda: verify_tree(torch.zeros(1, 2, 3), Tree((1,), (-1,)), strict_greedy()),
    ],
)
def test_users_get_the_project_s_own_error(call):
    with pytest.raises(DraftcertError) as refusal:
        call()
    assert "jaxtyping" not in str(refusal.value)
