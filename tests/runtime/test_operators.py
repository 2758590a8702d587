"""What torch asks of an operator: compile, export, gradients."""

from typing import Any

import pytest
import sympy
import torch

from draftcert.runtime import certify, kernels, operators, row_stats
from draftcert.runtime.cpu import build
from draftcert.theory import DraftcertError
from draftcert.theory.formulas import CERTIFICATE, KL

SEED = torch.Generator().manual_seed(0)
TARGET = torch.randn(3, 2, 40, generator=SEED, dtype=torch.float64)
DRAFT = TARGET + 0.3 * torch.randn(3, 2, 40, generator=SEED, dtype=torch.float64)


def same(left, right):
    for name, tensor in vars(left).items():
        assert torch.equal(tensor, getattr(right, name)), name


def test_compiles_without_a_break():
    def both(target, draft):
        return row_stats(target, 5), certify(target, "top_m(4) & additive(0.3)", 2, draft)

    compiled = torch.compile(both, fullgraph=True, backend="aot_eager")
    for found, expected in zip(compiled(TARGET, DRAFT), both(TARGET, DRAFT), strict=True):
        same(found, expected)


def test_exports():
    class Certify(torch.nn.Module):
        def forward(self, target, draft):
            result = certify(target, "strict_greedy", draft_logits=draft)
            return result.value, result.kl

    program = torch.export.export(Certify(), (TARGET, DRAFT))
    value, kl = program.module()(TARGET, DRAFT)
    expected = certify(TARGET, "strict_greedy", draft_logits=DRAFT)
    assert torch.equal(value, expected.value)
    assert expected.kl is not None
    assert torch.equal(kl, expected.kl)


def test_torch_accepts_the_registration():
    arguments = (TARGET, DRAFT, "strict_greedy", 1, 1.0, True, 16)
    checks = ("test_schema", "test_faketensor")
    torch.library.opcheck(operators.certify, arguments, test_utils=checks)
    torch.library.opcheck(operators.row_stats, (TARGET, 4), test_utils=checks)


@pytest.mark.parametrize("rule", ["strict_greedy", "additive(0.05)", "multiplicative(0.3)", "top_m(3)"])
@pytest.mark.parametrize("candidates", [1, 3])
def test_gradients_against_differences(rule, candidates):
    target, draft = (x[0, :, :12].clone().requires_grad_() for x in (TARGET, DRAFT))

    def value(x):
        return certify(x, rule, candidates, temperature=0.7, sound=False).value

    def divergence(x, w):
        kl = certify(x, rule, candidates, w, temperature=0.7, sound=False).kl
        assert kl is not None
        return kl

    assert torch.autograd.gradcheck(value, (target,), rtol=1e-5, atol=1e-8)
    assert torch.autograd.gradcheck(divergence, (target, draft), rtol=1e-5, atol=1e-8)


def test_gradients_are_those_of_the_formulas():
    # The gradient that is registered, from the symbols: d/dp of p ln(p/c) with c = mean p over the pool.
    p = sympy.symbols("p1:4", positive=True)
    mean = sum(p) / 3
    (symbol_p, symbol_c) = (argument.symbol for argument in CERTIFICATE.arguments)
    terms: list[Any] = [CERTIFICATE.expression.subs({symbol_p: x, symbol_c: mean}, simultaneous=True) for x in p]
    for x in p:
        assert sympy.simplify(sympy.expand_log(sympy.diff(sum(terms), x) - sympy.log(x / mean))) == 0
    (symbol_p, symbol_q) = (argument.symbol for argument in KL.arguments)
    assert sympy.simplify(sympy.diff(KL.expression, symbol_q) + symbol_p / symbol_q) == 0


def test_gradients_at_ties_masks_and_infinity_are_finite():
    target = torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.5, -torch.inf], [0.0, 0.0, 0.0]], requires_grad=True)
    draft = torch.tensor([[0.0, 0.0, 0.0], [0.0, -torch.inf, 0.0], [1.0, 2.0, -torch.inf]], requires_grad=True)
    result = certify(target, "strict_greedy", draft_logits=draft)
    assert result.kl is not None
    (result.value.sum() + result.kl.sum()).backward()
    assert target.grad is not None
    assert draft.grad is not None
    assert bool(target.grad.isfinite().all())
    assert bool(draft.grad.isfinite().all())
    everything = torch.zeros(4, requires_grad=True)
    certify(everything, "additive(0)").value.backward()
    assert everything.grad is not None
    assert everything.grad.tolist() == [0, 0, 0, 0]


def test_level_and_threshold_have_no_gradient():
    target = TARGET.clone().requires_grad_()
    with pytest.raises(DraftcertError, match="level and threshold do not"):
        certify(target, "strict_greedy").level.sum().backward()


def test_without_a_compiler_the_reference_is_used_with_one_warning(monkeypatch):
    expected = row_stats(TARGET, 4)
    kernels.cpu_kernels.cache_clear()
    build.library.cache_clear()
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.warns(RuntimeWarning, match="need a C\\+\\+17 compiler") as caught:
        first, second = row_stats(TARGET, 4), row_stats(TARGET, 4)
    assert len(caught) == 1
    same(first, second)
    assert torch.equal(first.top_ids, expected.top_ids)
    torch.testing.assert_close(first.logsumexp, expected.logsumexp, rtol=0, atol=1e-12)
    monkeypatch.undo()
    kernels.cpu_kernels.cache_clear()
    build.library.cache_clear()
