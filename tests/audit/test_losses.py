import pytest
import torch

from draftcert.audit.losses import certificate_hinge
from draftcert.runtime.rows import certify
from draftcert.theory import DraftcertError

torch.manual_seed(3)
TARGET = torch.randn(6, 9, dtype=torch.float64) * 2
DRAFT = TARGET + torch.randn(6, 9, dtype=torch.float64)


def measured(target, draft):
    """KL and strict greedy certificates of the rows."""
    found = certify(target, "strict_greedy", draft_logits=draft, sound=False)
    return torch.as_tensor(found.kl), found.value


@pytest.mark.parametrize("rule", ["strict_greedy", "additive(0.3)", "top_m(2)"])
@pytest.mark.parametrize("plain", [0.0, 0.1])
def test_the_gradient_is_that_of_the_loss(rule, plain):
    draft = DRAFT.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda logits: certificate_hinge(TARGET, logits, rule, 1, 0.9, plain), draft)


def test_the_loss_is_the_mean_excess_over_the_certificate():
    kl, certificates = measured(TARGET, DRAFT)
    excess = torch.relu(kl - 0.5 * certificates).mean()
    assert float(certificate_hinge(TARGET, DRAFT, inside=0.5)) == pytest.approx(float(excess), rel=1e-12)


def test_certified_rows_are_left_alone():
    near = (TARGET + 1e-3 * torch.randn_like(TARGET)).requires_grad_()
    loss = certificate_hinge(TARGET, near)
    loss.backward()
    kl, certificates = measured(TARGET, near.detach())
    certified = kl < certificates
    assert certified.any()
    assert near.grad is not None
    assert torch.equal(near.grad[certified], torch.zeros_like(near.grad[certified]))
    assert (near.grad[~certified] != 0).any(-1).all()


def test_a_row_that_accepts_everything_costs_nothing_and_a_tie_its_whole_divergence():
    flat = torch.zeros(1, 4, dtype=torch.float64)
    draft = torch.tensor([[1.0, 0, 0, 0]], dtype=torch.float64)
    assert float(certificate_hinge(flat, draft, "additive(0.5)")) == 0
    assert float(certificate_hinge(flat, draft)) == pytest.approx(float(measured(flat, draft)[0]))


@pytest.mark.parametrize(("inside", "plain"), [(0.0, 0.0), (1.5, 0.0), (1.0, -1.0)])
def test_weights_out_of_range_are_refused(inside, plain):
    with pytest.raises(DraftcertError, match="inside = "):
        certificate_hinge(TARGET, DRAFT, inside=inside, plain=plain)
