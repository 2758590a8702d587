"""What torch asks of an operator: compile, export, gradients."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import sympy
import torch

from draftcert.runtime import row_stats
from draftcert.runtime.rows import certify, operators
from draftcert.runtime.rows.program import encoded
from draftcert.theory import RULES, DraftcertError
from draftcert.theory.formulas import CERTIFICATE, KL
from draftcert.theory.rules import strict_greedy

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
    rule = encoded(strict_greedy())
    for draft in (DRAFT, None):
        torch.library.opcheck(operators.certify, (TARGET, draft, rule, 1, 1.0, True, 16))
        torch.library.opcheck(operators.certify_with_gradient, (TARGET, draft, rule, 1, 1.0, True, 16))
        differentiated = (x if x is None else x.clone().requires_grad_() for x in (TARGET, draft))
        torch.library.opcheck(operators.certify_with_gradient, (*differentiated, rule, 1, 1.0, True, 16))
    torch.library.opcheck(operators.row_stats, (TARGET, 4))


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

    for function, inputs in ((value, (target,)), (divergence, (target, draft))):
        assert torch.autograd.gradcheck(function, inputs, rtol=1e-5, atol=1e-8, check_forward_ad=True)
        assert torch.autograd.gradgradcheck(function, inputs, rtol=1e-4, atol=1e-7)


def test_transforms_of_torch_func():
    target, draft = TARGET[0, 0, :9], DRAFT[0, 0, :9]

    def value(x):
        return certify(x, "additive(0.05)", 2, sound=False).value

    def divergence(x):
        kl = certify(x, "additive(0.05)", 2, draft, sound=False).kl
        assert kl is not None
        return kl

    for function in (value, divergence):
        by_reverse = target.clone().requires_grad_()
        function(by_reverse).backward()
        gradient = by_reverse.grad
        assert gradient is not None
        direction = draft - target
        for found in (torch.func.grad(function), torch.func.jacfwd(function), torch.func.jacrev(function)):
            torch.testing.assert_close(found(target), gradient, rtol=1e-12, atol=1e-15)
        tangent = torch.func.jvp(function, (target,), (direction,))[1]
        torch.testing.assert_close(tangent, gradient @ direction, rtol=1e-12, atol=1e-15)
        forward_over_reverse, reverse_over_forward = (
            torch.func.hessian(function)(target),
            torch.func.jacrev(torch.func.jacfwd(function))(target),
        )
        torch.testing.assert_close(forward_over_reverse, reverse_over_forward, rtol=1e-10, atol=1e-15)
        assert forward_over_reverse.abs().max() > 1e-3
        rows = torch.stack([target, draft, target.flip(0)], -1)
        each = torch.stack([torch.func.grad(function)(row) for row in rows.T])
        assert torch.equal(torch.func.vmap(torch.func.grad(function), in_dims=1)(rows), each)
        assert torch.equal(torch.func.vmap(function, in_dims=1)(rows), torch.stack([function(row) for row in rows.T]))


def test_gradients_through_a_compiled_call():
    def both(target, draft):
        found: Any = certify(target, "top_m(4) & additive(0.3)", 2, draft)
        return found.value.sum() + found.kl.sum()

    inputs = [[x.clone().requires_grad_() for x in (TARGET, DRAFT)] for _ in range(2)]
    torch.compile(both, fullgraph=True, backend="aot_eager")(*inputs[0]).backward()
    both(*inputs[1]).backward()
    for compiled, eager in zip(*inputs, strict=True):
        torch.testing.assert_close(compiled.grad, eager.grad, rtol=1e-12, atol=1e-15)


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


TIED = torch.tensor([[0.4, 0.4, 0.2]], dtype=torch.float64).log()


def judged(rule):
    """C, the accepted tokens and "certified" of `TIED` and a drafter equal to it, in every way the runtime has."""

    def call(target):
        found: Any = certify(target, rule, draft_logits=target)
        return found.value, found.accepted, found.certified

    class Module(torch.nn.Module):
        def forward(self, target):
            return call(target)

    yield call(TIED)
    yield torch.compile(call, fullgraph=True, backend="aot_eager")(TIED)
    yield torch.export.export(Module(), (TIED,)).module()(TIED)
    found = operators.certify_by_tensors(TIED, TIED, encoded(rule), 1, 1.0, True, 16)
    yield found[0], found[3], found[7]


@pytest.mark.parametrize("name", ["multiplicative", "fork"])
def test_a_rule_is_its_predicate_and_not_its_name(fork, name):
    for value, accepted, certified in judged(replace(fork, name=name)(1)):
        assert (value.item(), accepted.item(), certified.item()) == (0, 0, False)
    for value, accepted, certified in judged(RULES["multiplicative"](1)):
        assert 0.04 < value.item() < 0.05
        assert (accepted.item(), certified.item()) == (2, True)


def test_an_exported_program_needs_no_rule(fork, tmp_path):
    """It is loaded where nothing knows the family."""

    class Module(torch.nn.Module):
        def forward(self, target):
            return certify(target, fork(0.5)).value

    torch.export.save(torch.export.export(Module(), (TARGET,)), tmp_path / "program.pt2")
    program = f"""
import torch
from draftcert import certify  # which registers the operators
found = torch.export.load({str(tmp_path / "program.pt2")!r}).module()(torch.load({str(tmp_path / "target.pt")!r}))
torch.save(found, {str(tmp_path / "found.pt")!r})
"""
    torch.save(TARGET, tmp_path / "target.pt")
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)
    assert torch.equal(torch.load(tmp_path / "found.pt"), certify(TARGET, fork(0.5)).value)


@pytest.mark.parametrize(
    "numbers",
    [
        [],
        [0.0] * 3,
        [99.0, 0, 0, 0],
        [float("nan"), 0, 0, 0],
        [12.0, 0, float("nan"), 0],
        [12.0, 0, 1, 1] * 2,
        [15.0, 0, 0, 0],
        [0.0] * 4,
    ],
)
def test_numbers_that_are_no_program_are_refused(numbers):
    for operator in (operators.certify, operators.certify_by_tensors):
        with pytest.raises(DraftcertError, match="program of a rule"):
            operator(TARGET, None, numbers, 1, 1.0, True, 16)


def test_row_stats_says_that_it_has_no_gradient():
    with pytest.raises(DraftcertError, match="row_stats has no gradient"):
        row_stats(TARGET.clone().requires_grad_(), 4).entropy.sum().backward()
    with pytest.raises(DraftcertError, match="row_stats has no gradient"):
        torch.func.jvp(lambda x: row_stats(x, 4).entropy, (TARGET,), (DRAFT,))


def test_threads_that_meet_a_rule_for_the_first_time():
    rules = [f"multiplicative({step / 1000})" for step in range(701, 725)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda rule: certify(TARGET, rule, draft_logits=DRAFT), [*rules, *rules]))
    for rule, first, second in zip(rules, found[: len(rules)], found[len(rules) :], strict=True):
        same(first, second)
        same(first, certify(TARGET, rule, draft_logits=DRAFT))
