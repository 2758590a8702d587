"""Rounding budgets: each stated once, printed faithfully, called by the kernels, and quoted by the documentation."""

import ast
import ctypes
import dataclasses
import os
import random
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
import sympy
import torch

from draftcert.runtime import codegen
from draftcert.runtime.codegen.page import quoted
from draftcert.runtime.codegen.words import Words, wrapped
from draftcert.runtime.compiling import compiler
from draftcert.runtime.generated import FOLDER, torch_budgets
from draftcert.runtime.rows.budgets import BUDGETS, SYMBOLS, RoundingBudget, of
from draftcert.theory import DraftcertError

ROUNDING = 2.0**-45
"""What docs/soundness.md says evaluating a budget in float64 may cost, relative to it."""
ROUNDS = 20
RUNTIME = FOLDER.parent

# ---- The printed forms ----------------------------------------------------------------------------------------------


def value(argument, random):
    """A number of the argument's domain, of any magnitude."""
    magnitude = 2.0 ** random.uniform(-60, 20)
    if argument.symbol.name == "T":
        return random.choice([1.0, magnitude])
    if argument.domain in (sympy.S.Naturals, sympy.S.Naturals0):
        return float(random.randint(1, 2**18))
    if argument.domain == sympy.Interval(0, 1):
        return random.random()
    return random.choice([-1, 1]) * magnitude if argument.domain == sympy.S.Reals else magnitude


def points(budget):
    """Arguments, and the expression at them to forty digits."""
    source = random.Random(budget.name)
    for _ in range(ROUNDS):
        values = [value(argument, source) for argument in budget.arguments]
        exact = {a.symbol: sympy.Rational(x) for a, x in zip(budget.arguments, values, strict=True)}
        yield values, budget.expression.rewrite(sympy.log).subs(exact).evalf(40)


def check_faithful(budget, found):
    for (values, exact), got in zip(points(budget), found, strict=True):
        assert abs(sympy.Rational(got) / exact - 1) <= ROUNDING, (budget.name, values, got, exact)


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=lambda budget: budget.name)
def test_torch_computes_the_expression(budget):
    def call(values):
        given = [
            x if a.axis is None else torch.tensor([x], dtype=torch.float64)
            for a, x in zip(budget.arguments, values, strict=True)
        ]
        return float(getattr(torch_budgets, budget.name)(*given))

    check_faithful(budget, [call(values) for values, _ in points(budget)])


def test_cxx_computes_the_expressions(tmp_path):
    source, library = tmp_path / "b.cpp", tmp_path / "b.so"
    lines = [f'#include "{FOLDER / "budgets.h"}"']
    for budget in BUDGETS.values():
        names = [f"x{i}" for i in range(len(budget.arguments))]
        parameters = ", ".join(f"double {name}" for name in names)
        call = f"draftcert::budgets::{budget.name}({', '.join(names)})"
        lines.append(f'extern "C" double {budget.name}_({parameters}) {{ return {call}; }}')
    source.write_text("\n".join(lines))
    flags = ["-std=c++17", "-O2", "-Wall", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*compiler(), *flags, str(source), "-o", str(library)], check=True)
    functions = ctypes.CDLL(str(library))
    for budget in BUDGETS.values():
        function = getattr(functions, f"{budget.name}_")
        function.argtypes, function.restype = [ctypes.c_double] * len(budget.arguments), ctypes.c_double
        check_faithful(budget, [function(*values) for values, _ in points(budget)])


def test_triton_computes_the_expressions(tmp_path):
    pytest.importorskip("triton", reason="triton is installed on Linux only")
    lines = ["import torch, triton, triton.language as tl"]
    for budget in BUDGETS.values():
        arguments = ", ".join(
            f"tl.load(x + tl.program_id(0) * {len(budget.arguments)} + {i})" for i in range(len(budget.arguments))
        )
        lines += [
            f"from draftcert.runtime.generated.triton_budgets import {budget.name}",
            "@triton.jit",
            "def kernel(x, out):",
            f"    tl.store(out + tl.program_id(0), {budget.name}({arguments}))",
            f"x = torch.tensor({[values for values, _ in points(budget)]}, dtype=torch.float64)",
            f"out = torch.empty({ROUNDS}, dtype=torch.float64)",
            f"kernel[({ROUNDS},)](x, out)",
            "print(*[value.hex() for value in out.tolist()])",
        ]
    program = tmp_path / "program.py"
    program.write_text("\n".join(lines))
    environment = os.environ | {"TRITON_INTERPRET": "1"}  # chosen when kernels are imported
    done = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    for budget, line in zip(BUDGETS.values(), done.stdout.splitlines(), strict=True):
        check_faithful(budget, [float.fromhex(number) for number in line.split()])


def test_every_budget_is_in_every_file_and_called_by_a_kernel():
    for backend in codegen.BACKENDS:
        text = (FOLDER / backend.budgets.file).read_text()
        assert all(budget.sha256 in text for budget in BUDGETS.values()), backend.budgets.file
    called = set()
    for path in (path for path in sources() if path.is_relative_to(RUNTIME / "rows")):
        called |= set(re.findall(r"budgets(?:\.|::)(\w+)\(", path.read_text()))
        for imported in re.findall(r"from \S*triton_budgets import (.*)", path.read_text()):
            called |= {name.split(" as ")[0].strip() for name in imported.split(",")}
    # The error of a weight goes into sums only; test_cpu_core.py holds the kernels to it.
    assert called == set(BUDGETS) - {"cpu_weight"}


# ---- Nothing is typed by hand ---------------------------------------------------------------------------------------

UNIT_NAME = r"(?:\w*_)?UNIT|unit"
CXX_UNIT = r"(?:\w+(?:<\w+>)?::)*(?:u|kUnit|0x1p-\d+f?|\d\.\d+e-\d\d|epsilon\(\))"


def sources():
    """The files of the runtime that people write; the records themselves are where bounds are stated.

    What `plain.py` holds is no bound but a measured noise and what is allowed beside it.
    """
    paths = [path for kind in ("*.py", "*.h", "*.cpp") for path in RUNTIME.rglob(kind)]
    return [path for path in paths if path.parent != FOLDER and path.name not in ("budgets.py", "plain.py")]


def is_unit(node):
    """A unit roundoff, by a name or by its value."""
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        of_torch = name == "eps" and "finfo" in ast.unparse(node)
        return of_torch or re.fullmatch(UNIT_NAME, name) is not None
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float) and 0 < node.value < 2.0**-20
    power = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
    return power and re.fullmatch(r"2(\.0)?\*\*-\d\d", ast.unparse(node).replace(" ", "")) is not None


def typed_in_python(text):
    tree = ast.parse(text)
    definitions = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith("UNIT")
    }
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and id(node) not in definitions and (is_unit(node.left) or is_unit(node.right))
    ]


def typed_in_cxx(text):
    code = re.sub(r"//.*|/\*.*?\*/", "", text)
    return re.findall(rf"[*+/-] *{CXX_UNIT}(?![\w.\[])|(?<![\w.]){CXX_UNIT} *[*+/-]", code)


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(RUNTIME)))
def test_no_bound_is_typed_by_hand(path):
    typed = typed_in_python if path.suffix == ".py" else typed_in_cxx
    assert typed(path.read_text()) == []


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        (typed_in_python, "value = value * (1 - 64 * (pool.sum(-1) + 16) * UNIT)"),
        (typed_in_python, "error = relative + 4 * UNIT * logsumexp.abs()"),
        (typed_in_python, "rounded_up = gaps * (1 + torch.finfo(torch.float64).eps)"),
        (typed_in_python, "relative = (size / BLOCK + 64.0) * 1.2e-16"),
        (typed_in_python, "error = relative + slope * FLOAT32_UNIT * gap + 2.0**-51 * logsumexp.abs()"),
        (typed_in_cxx, "double rounded_up = gap * (1 + 2 * kUnit);"),
        (typed_in_cxx, "const double deep = 0x1p-53 * (vocab / 256.0 + 100);"),
        (typed_in_cxx, "const double mass_error = u * (38 + s * gap) + deep;"),
        (typed_in_cxx, "bound = 48 * sum * Exponential<float>::kUnit;"),
        (typed_in_cxx, "x = std::numeric_limits<double>::epsilon() * 3;"),
    ],
)
def test_the_search_finds_a_typed_bound(typed, line):
    assert typed(line)


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        (typed_in_python, "UNIT = torch.finfo(torch.float64).eps / 2"),
        (typed_in_python, "error = budgets.logsumexp(sums, slope, UNIT, UNIT, gap, logsumexp)"),
        (typed_in_cxx, "constexpr double kUnit = 0x1p-53;"),
        (typed_in_cxx, "const double rounded_up = gap * (1 + budgets::gap(kUnit));"),
        (typed_in_cxx, "y[i] = u[n + i] - draft_reference;"),
    ],
)
def test_the_search_leaves_the_rest_alone(typed, line):
    assert not typed(line)


# ---- The record -----------------------------------------------------------------------------------------------------

u, G = sympy.Symbol("u", nonnegative=True), sympy.Symbol("G", nonnegative=True)
SAMPLE = RoundingBudget("sample", "the error of a sample", of(u, G), 3 * u * (1 + G), "By inspection.")


def test_the_hash_is_that_of_the_content():
    assert dataclasses.replace(SAMPLE, name="other", derivation="Otherwise.").sha256 == SAMPLE.sha256
    assert dataclasses.replace(SAMPLE, expression=4 * u * (1 + G)).sha256 != SAMPLE.sha256
    assert dataclasses.replace(SAMPLE, arguments=of(G, u)).sha256 != SAMPLE.sha256
    assert len({budget.sha256 for budget in BUDGETS.values()}) == len(BUDGETS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arguments": of(u)}, "budget sample: undeclared G"),
        ({"sum_over": "vocab"}, "budget sample: no argument has the axis 'vocab'"),
        ({"expression": u * sympy.log(1 + G)}, r"budget sample: log\(G \+ 1\) depends on G, no number of the call"),
        ({"expression": sympy.Piecewise((u, G > 1), (0, True))}, "depends on G, no number of the call"),
    ],
)
def test_a_budget_that_cannot_be_compiled_is_refused(change, message):
    with pytest.raises(DraftcertError, match=message):
        dataclasses.replace(SAMPLE, **change)


def test_every_symbol_is_used():
    assert {a for budget in BUDGETS.values() for a in budget.arguments} == set(SYMBOLS.values())


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=lambda budget: budget.name)
def test_no_budget_is_negative_and_none_has_an_argument_to_spare(budget):
    assert {argument.symbol for argument in budget.arguments} == budget.expression.free_symbols
    assert budget.expression.is_nonnegative or all(exact > 0 for _, exact in points(budget))


def test_a_gap_rounded_up_is_above_the_exact_one():
    source, factor = random.Random(0), 1 + torch_budgets.gap(2.0**-53)
    for _ in range(20_000):
        top, logit = source.uniform(0, 30), source.uniform(-30, 0)
        for temperature in (0.7, 1.0, 1.7):
            exact = (Fraction(top) - Fraction(logit)) / Fraction(temperature)
            assert exact <= Fraction((top - logit) / temperature * factor)


# ---- The page -------------------------------------------------------------------------------------------------------

MARKED = "Before.\n\n<!-- budgets: symbols sample -->\nold\n<!-- end of budgets -->\n\nAfter.\n"


def test_what_stands_between_the_marks_is_renewed():
    page = quoted(MARKED, {"sample": SAMPLE})
    assert page.startswith("Before.\n\n<!-- budgets: symbols sample -->\n")
    assert page.endswith("\n<!-- end of budgets -->\n\nAfter.\n")
    assert "**`sample`** bounds the error of a sample:\n\n    3 u (1 + G)\n" in page
    assert "\n\nBy inspection.\n" in page
    assert f"`G` is {SYMBOLS[G].meaning}" in " ".join(page.split())
    assert "old" not in page
    assert quoted(page, {"sample": SAMPLE}) == page


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (MARKED.replace("sample", "simple"), "do not exist: simple"),
        (MARKED.replace(" sample", ""), "does not so quote sample"),
        (MARKED + MARKED.replace("symbols ", ""), "does not so quote sample"),
    ],
)
def test_a_page_that_misquotes_is_refused(page, message):
    with pytest.raises(DraftcertError, match=message):
        quoted(page, {"sample": SAMPLE})


def test_a_page_that_is_not_current_is_found(tmp_path, monkeypatch):
    page = tmp_path / "docs" / "soundness.md"
    page.parent.mkdir()
    text = codegen.PAGE.read_text()
    assert "    64 w (16 + n)\n" in text
    page.write_text(text.replace("    64 w (16 + n)\n", "    32 w (16 + n)\n"))
    monkeypatch.setattr(codegen, "PAGE", page)
    monkeypatch.setattr(codegen, "LAYERS", tmp_path)
    assert codegen.check() == ["docs/soundness.md is not current: run `draftcert codegen`"]
    assert codegen.generate() == [page]
    assert page.read_text() == text


def test_formulas_are_written_as_people_write_them():
    x, y = sympy.symbols("x ln_y", real=True)
    told = {
        64 * x * (y + 16): "64 x (16 + ln y)",
        (x + y) * (x - 1): "(x + ln y)(x - 1)",
        sympy.Abs(2 * y - x) / 256: "|2 ln y - x|/256",
        3 * x**2 / (1 + x): "3 x^2/(1 + x)",
        sympy.Piecewise((3, sympy.Eq(x, 1)), (4, True)): "3 where x = 1, 4 elsewhere",
        sympy.Max(x, y) - sympy.log(x): "max(ln y, x) - ln(x)",
    }
    assert {expression: Words().doprint(expression) for expression in told} == told


def test_no_line_of_a_derivation_begins_as_a_list():
    for budget in BUDGETS.values():
        for line in wrapped(budget.derivation.replace("\n\n", " "), 60).split("\n"):
            assert not re.match(r"[-+*] |\d+[.)] ", line), line
            assert len(line) <= 75, line


def test_the_page_s_derivations_are_those_of_the_kernels():
    page = " ".join(codegen.PAGE.read_text().split())
    header = " ".join(re.sub(r"(?m)^// ", "", Path(FOLDER / "budgets.h").read_text()).split())
    for budget in BUDGETS.values():
        for part in budget.derivation.split("\n\n"):
            assert part in page, budget.name
            assert part in header, budget.name
