"""The text that is handed to Coq: the claimed value, the rule's tokens and the pool of T3."""

import pytest

from draftcert.proofs_check.bridge import BridgeCase, bridge_sources
from draftcert.proofs_check.vernacular import SPOKEN, refused
from draftcert.theory import DraftcertError

TRAP = BridgeCase(("1/2", "9/20", "1/20"), "strict_greedy", 2, "0.21368109576588896")


def test_a_competitor_above_the_level_is_not_pooled():
    stated, proved = bridge_sources([TRAP])
    assert "certificate 3%nat [0]%nat 2%nat\n    (fun i => IZR (nth i [10; 9; 1]%Z 0%Z) / IZR 20) C" in stated
    assert "Proof. bridge [10; 9; 1]%Z 20%Z [0]%nat [1; 2]%nat [0]%nat [2]%nat. Qed." in proved


def test_the_statements_know_no_proof():
    stated, _ = bridge_sources([TRAP])
    assert list(refused(stated, SPOKEN[-1])) == []


def test_a_threshold_rule_is_stated_with_its_strictness():
    row = ("2/5", "7/20", "1/4")
    cases = [BridgeCase(row, "additive(0.1)", 1, "0.018"), BridgeCase(row, "typical(0.3, 1)", 1, "0.018")]
    stated, proved = bridge_sources(cases)
    assert "(In i [0; 1]%nat <-> 3 / 10 <= IZR (nth i [8; 7; 5]%Z 0%Z) / IZR 20)" in stated
    assert "Proof. bridge_rule [8; 7; 5]%Z 20%Z [0; 1]%nat (3)%Z 10%Z. Qed." in proved
    assert "case_1_rule" not in stated  # its threshold is a minimum of two, one transcendental: not stated in Coq


def test_a_tie_pools_one_token_at_its_own_level():
    _, proved = bridge_sources([BridgeCase(("1/2", "1/2"), "strict_greedy", 1, "0")])
    assert "[0]%nat [1]%nat [0]%nat (@nil nat). Qed." in proved


def test_what_has_no_finite_certificate_is_refused():
    with pytest.raises(DraftcertError, match="fewer than 1 tokens are rejected"):
        bridge_sources([BridgeCase(("1/2", "1/2"), "additive(0.1)", 1, "0")])
    with pytest.raises(DraftcertError, match="no case"):
        bridge_sources([])
