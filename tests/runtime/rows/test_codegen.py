"""Generated code: only of proved and agreed formulas, current, and equal to the formulas to the last digits."""

import ctypes
import json
import shutil
import subprocess
from fractions import Fraction

import mpmath
import pytest
import torch

from draftcert.runtime import codegen
from draftcert.runtime.codegen.special import DOUBLE, SWITCH, truncation_bound
from draftcert.runtime.compiling import compiler
from draftcert.runtime.generated import FOLDER, torch_formulas
from draftcert.theory import FORMULAS, DraftcertError

POINTS = [-1.0, -0.999, -0.5, -0.2501, -0.25, -0.1, -1e-5, -1e-12, 1e-150, 1e-9, 0.003, 0.2, 0.25, 0.2500001, 1.0, 700]


def bennett(x):
    with mpmath.workdps(700):
        x = mpmath.mpf(x)
        return mpmath.mpf(1) if x == -1 else (1 + x) * mpmath.log(1 + x) - x


def test_committed_files_are_current():
    assert codegen.check() == []


@pytest.mark.parametrize("kind", ["Proved", "Agreed"])
def test_a_formula_without_evidence_is_refused_by_name(kind, tmp_path, monkeypatch):
    ledger = json.loads(codegen.LEDGERS[kind].read_text())
    del ledger[FORMULAS["certificate_of_gaps"].sha256]
    path = tmp_path / "ledger.json"
    path.write_text(json.dumps(ledger))
    monkeypatch.setitem(codegen.LEDGERS, kind, path)
    with pytest.raises(DraftcertError, match=f"certificate_of_gaps is not {kind}"):
        codegen.generate()
    assert any("certificate_of_gaps is not" in line for line in codegen.check())


@pytest.mark.parametrize(
    ("kind", "change", "reason"),
    [
        ("Proved", {"kind": "theorem"}, "as a theorem, not as a formula"),
        ("Proved", {"by": []}, "not as a formula that a theorem proves"),
        ("Proved", {"method": "symbolic for a = 1/2"}, "has it symbolic for a = 1/2 only"),
        ("Agreed", {"formula": "phi"}, "as the agreement of phi"),
        ("Agreed", {"digits": 49}, "has only 49 digits"),
        ("Agreed", {"cases": 0}, "on 0 cases"),
    ],
)
def test_evidence_of_something_else_is_refused(kind, change, reason, tmp_path, monkeypatch):
    ledger = json.loads(codegen.LEDGERS[kind].read_text())
    ledger[FORMULAS["ceiling"].sha256] |= change
    path = tmp_path / "ledger.json"
    path.write_text(json.dumps(ledger))
    monkeypatch.setitem(codegen.LEDGERS, kind, path)
    (problem,) = (line for line in codegen.check() if "ceiling is not" in line)
    assert reason in problem


def test_a_changed_file_is_found(tmp_path, monkeypatch):
    folder = tmp_path / "runtime" / "generated"
    shutil.copytree(FOLDER, folder)
    header = folder / "formulas.h"
    header.write_text(header.read_text().replace("1.0/3.0", "1.0/4.0"))
    monkeypatch.setattr(codegen, "FOLDER", folder)
    monkeypatch.setattr(codegen, "LAYERS", tmp_path)
    assert codegen.check() == ["runtime/generated/formulas.h is not current: run `draftcert codegen`"]
    assert codegen.generate() == [header]
    assert codegen.check() == []


def test_every_formula_is_in_every_file():
    for backend in codegen.BACKENDS:
        text = (FOLDER / backend.formulas.file).read_text()
        for formula in FORMULAS.values():
            assert formula.sha256 in text, (backend.formulas.file, formula.name)


def number(value):
    exact = Fraction(str(value))
    return mpmath.mpf(exact.numerator) / exact.denominator


def test_truncation_is_below_the_precision():
    assert number(truncation_bound(DOUBLE.terms)) < 2.0**-55
    # The bound bounds: the polynomial alone, exactly, at both ends.
    for x in (SWITCH, -SWITCH, SWITCH / 7):
        with mpmath.workdps(60):
            error = abs(number(DOUBLE.form.subs(DOUBLE.argument, x)) / bennett(number(x)) - 1)
            assert error <= number(truncation_bound(DOUBLE.terms)), x


def test_torch_to_the_last_digits():
    for x, value in zip(
        POINTS, torch_formulas.bennett(torch.tensor(POINTS, dtype=torch.float64)).tolist(), strict=True
    ):
        assert abs(value - bennett(x)) <= 2e-15 * bennett(x), x


def test_cxx_to_the_last_digits(tmp_path):
    source, library = tmp_path / "f.cpp", tmp_path / "f.so"
    source.write_text(
        f'#include "{FOLDER / "formulas.h"}"\n'
        'extern "C" double h(double x) { return draftcert::bennett(x); }\n'
        'extern "C" double c(double p, double r, double a) { return draftcert::certificate_of_gaps(p, r, a); }\n'
    )
    flags = ["-std=c++17", "-O2", "-Wall", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*compiler(), *flags, str(source), "-o", str(library)], check=True)
    functions = ctypes.CDLL(str(library))
    functions.h.argtypes, functions.h.restype = [ctypes.c_double], ctypes.c_double
    functions.c.argtypes, functions.c.restype = [ctypes.c_double] * 3, ctypes.c_double
    for x in POINTS:
        assert abs(functions.h(x) - bennett(x)) <= 2e-15 * bennett(x), x
    expected = torch_formulas.certificate_of_gaps(*(torch.tensor(x, dtype=torch.float64) for x in (0.6, -0.3, -0.1)))
    assert functions.c(0.6, -0.3, -0.1) == pytest.approx(expected.item(), rel=1e-14)
