"""Witness files: every one that is written is confirmed, and no changed or forged one is."""

import ast
import json
import math
import random
import re
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest
from sympy import Ge, Interval, Symbol, sqrt

from draftcert.numerics import certificate
from draftcert.numerics import verify as verifier
from draftcert.numerics.verify import enclose, is_zero, sign, value, verify
from draftcert.theory import RULES, DraftcertError, RuleFamily
from draftcert.theory.presets import example_rules
from draftcert.theory.rule import Parameter
from draftcert.theory.statistics import PROBABILITY, TOP

ALONE = Path(verifier.__file__)
TRAP = ["1/2", "9/20", "1/20"]


@pytest.fixture
def witnessed(tmp_path):
    """The witness file of a certificate, as text."""

    def text(*arguments, **options):
        certificate(*arguments, **options, witness=tmp_path / "witness.json")
        return (tmp_path / "witness.json").read_text()

    return text


def sealed(text, **changes):
    """The file with other contents, whole again: what a forger would hand in."""
    data = {**json.loads(text), **changes}
    del data["seal"]
    return json.dumps({**data, "seal": str(int.from_bytes(json.dumps(data).encode(), "big") % (2**127 - 1))}) + "\n"


def random_row(random):
    """Ties, zeros, point masses and near ties are as likely as rows of many different numbers."""
    tokens = random.choice([2, 3, 5, 30])
    weights = [random.choice([0, 1, 1, 2, 7, 10**30 + 1, random.randrange(10**6)]) for _ in range(tokens)]
    kind = random.randrange(4)
    weights = [[1] * tokens, weights, weights, [10**40, 10**40 - 1] + [0] * (tokens - 2)][kind]
    weights[random.randrange(tokens)] += 1
    return [Fraction(n, sum(weights)) for n in weights]


def test_every_worked_point_is_confirmed(witnessed):
    for family in RULES.values():
        for point in family.worked_points:
            if point.candidates < len(point.probabilities):
                arguments = point.probabilities, family(*point.arguments), point.candidates
                found = certificate(*arguments, logit_ratio=point.logit_ratio)
                said = verify(witnessed(*arguments, logit_ratio=point.logit_ratio)).split()
                text = "inf" if "infinite" in said else said[2]
                assert Decimal(text) == Decimal(str(found))


def test_random_tied_and_degenerate_rows_are_confirmed_and_no_digit_may_change(witnessed):
    rng = random.Random(0)
    for rule in example_rules():
        for _ in range(8):
            row = random_row(rng)
            digits, candidates = rng.choice([1, 5, 50]), rng.randrange(1, len(row))
            text = witnessed(row, rule, candidates, digits, logit_ratio="19/20" if rule.needs_logits else None)
            verify(text)
            for place in rng.sample([at for at, character in enumerate(text) if character.isdigit()], 12):
                other = rng.choice([digit for digit in "0123456789" if digit != text[place]])
                with pytest.raises(ValueError, match=r"the file was changed|no witness file|Expecting|spelled"):
                    verify(text[:place] + other + text[place + 1 :])


def test_no_digit_of_a_whole_file_may_change_either(witnessed):
    """The rule's own numbers apart, of which others may say the same of a row, and the seal, which is made anew."""
    text = witnessed(TRAP, "strict_greedy", 2, 12)
    for place in (found.start() for found in re.finditer(r"\d", text[: text.index("seal")])):
        if not text.index("rule") < place < text.index("logit_ratio"):
            for digit in "0123456789":
                if digit != text[place]:
                    with pytest.raises(ValueError, match=r".+"):
                        verify(sealed(text[:place] + digit + text[place + 1 :]))


def test_a_rule_for_which_another_set_is_accepted_is_refused(witnessed):
    text = witnessed(["2/5", "7/20", "1/4"], "additive(1/10)")
    narrow, wide = ([">=", "p", ["+", "top", t]] for t in ("-1/30", "-1/5"))
    with pytest.raises(ValueError, match="listed as accepted that the rule rejects"):
        verify(sealed(text, rule=narrow))
    with pytest.raises(ValueError, match="not listed that the rule accepts"):
        verify(sealed(text, rule=wide))
    with pytest.raises(ValueError, match="no relation of a rule"):
        verify(sealed(text, rule=["<", "p", "2"]))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        # The pool of all three, as in a closed form that does not ask which tokens the level separates.
        ({"draft": [[0, "1/3"], [1, "1/3"], [2, "1/3"]], "certificate": "2.42922e-1"}, "differ"),
        (
            {
                "draft": [[0, "1/3"], [1, "1/3"], [2, "1/3"]],
                "multipliers": [[0, "1/2"], [1, "-7/20"], [2, "17/20"]],
                "certificate": "2.42922e-1",
            },
            "not positive",
        ),
        ({"draft": [[0, "9/20"], [2, "1/10"]], "multipliers": [[0, "1/9"], [2, "1/2"]]}, "not rejected"),
        ({"draft": [], "multipliers": [], "certificate": "0"}, "not rejected"),
        ({"draft": [[0, "11/40"], [2, "1/4"]]}, "sum to 1"),
        ({"draft": [[0, "11/40"], [1, "-1/20"], [2, "31/40"]]}, "negative"),
        ({"multipliers": [[0, "9/11"], [2, "8/11"]]}, "balance"),
        ({"multipliers": [[0, "9/11"], [1, "9/11"]]}, "differ"),
        ({"multipliers": []}, "differ"),
        ({"candidates": 1}, "competitors"),
        ({"competitors": [1]}, "competitors"),
        ({"accepted": []}, "not listed"),
        ({"accepted": [1]}, "not the likeliest"),
        ({"certificate": "2.1369e-1"}, "digits"),
        ({"certificate": "2.1368e-2"}, "digits"),
        ({"certificate": "0"}, "digits"),
        ({"certificate": "inf"}, "digits"),
        ({"certificate": ""}, "digits"),
        ({"certificate": 0.21368}, "no witness file"),
        ({"draft": None, "multipliers": None, "certificate": "inf"}, "no witness file"),
        ({"row": {"denominator": 21, "numerators": [10, 9, 1]}}, "sum to 1"),
        ({"row": {"denominator": 20, "numerators": [11, 10, -1]}}, "no whole number"),
        ({"row": {"denominator": 20, "numerators": [10.0, 9, 1]}}, "no whole number"),
        ({"row": {"denominator": 0, "numerators": []}}, "sum to 1"),
        ({"draft": [[0, "1e999999999"]]}, "no fraction"),
        ({"draft": [[0, "1/0"]]}, "no witness file"),
        ({"draft": [[-1, "11/40"]]}, "no whole number"),
        ({"rule": ["<=", "rank", "logit_ratio"]}, "no fraction"),
        ({"rule": []}, "no witness file|not enough"),
        ({"rule": [">", "p", ["exp", "-1", "-1", "0"]]}, "below 0"),
        ({"format": "draftcert witness 2"}, "format"),
    ],
)
def test_forgeries_are_refused(witnessed, changes, reason):
    text = witnessed(TRAP, "strict_greedy", 2, 5)
    assert verify(sealed(text)).startswith("C = 2.1368e-1 nats")
    with pytest.raises(ValueError, match=reason):
        verify(sealed(text, **changes))


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, '{"seal": "1"}\n', "null\n", '{"a": NaN}', "\ud800"])
def test_what_is_no_witness_file_is_refused(text):
    with pytest.raises(ValueError, match=r".+"):
        verify(text)


def test_another_spelling_is_refused(witnessed):
    text = witnessed(TRAP, "strict_greedy", 2, 5)
    for other in (text.strip(), text.replace(": ", ":"), text.replace('"candidates": 2', '"candidates": 2.0')):
        with pytest.raises(ValueError, match=r"spelled|changed"):
            verify(other)


def test_integers_beyond_what_python_prints_by_default(witnessed):
    little = Fraction(1, 7**6000)
    limit = sys.get_int_max_str_digits()
    assert verify(witnessed([Fraction(1, 2), Fraction(1, 4) + little, Fraction(1, 4) - little], "strict_greedy", 1, 5))
    assert sys.get_int_max_str_digits() == limit < 6000 * math.log10(7)


def test_logarithms_are_enclosed():
    rng = random.Random(1)
    with mpmath.workprec(1000):
        for n in [1, 2, 3, 127, 255, 256, 257, *(rng.getrandbits(rng.randrange(2, 300)) | 1 for _ in range(200))]:
            for bits in (8, 64, 300):
                low, high = enclose([(n, 1)], bits)
                assert low <= mpmath.log(n) * 2**bits <= high
                assert high - low <= (n.bit_length() + 2) * (2 * bits + 20)
                assert enclose([(n, -3)], bits) == (-3 * high, -3 * low)


def test_digits_are_those_of_the_number_however_much_cancels():
    with mpmath.workdps(300):
        for k in range(1, 60):
            for digits in (1, 2, k, 2 * k):
                exact = mpmath.log1p(mpmath.mpf(10) ** -k)
                text = value([(10**k + 1, 1), (10**k, -1)], 1, digits)
                unit = mpmath.mpf(10) ** (int(text.partition("e")[2]) + 1 - digits)
                assert abs(mpmath.mpf(text) - exact) <= unit / 2
                assert len(text.partition("e")[0].replace(".", "")) == digits


def test_signs_of_sums_of_logarithms_are_exact():
    assert is_zero([(12, 1), (2, -2), (3, -1)])
    assert not is_zero([(12, 1), (2, -2), (3, -2)])
    assert sign([(6, 10**40), (2, -(10**40)), (3, -(10**40))]) == 0
    # ln(1 + 10**-200) is told from 0, though not at 256 bits.
    assert sign([(10**200 + 1, 1), (10**200, -1)]) == 1
    assert sign([(10**200 + 1, -1), (10**200, 1)]) == -1


def test_a_rule_of_your_own_that_cannot_be_spelled_is_refused(tmp_path):
    tau = Symbol("tau", nonnegative=True)
    family = RuleFamily(
        "rooted", (Parameter(tau, Interval(0, 1), "scale"),), Ge(PROBABILITY, tau * sqrt(TOP)), "", "", ()
    )
    with pytest.raises(DraftcertError, match="cannot spell 'sqrt"):
        certificate(TRAP, family(1), witness=tmp_path / "witness.json")
    assert not list(tmp_path.iterdir())


def test_the_verifier_is_one_short_file_that_imports_nothing_of_ours(witnessed, tmp_path):
    source = ALONE.read_text()
    assert source.count("\n") <= 250
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert [ast.unparse(node) for node in imports] == ["import json", "import sys", "from fractions import Fraction"]
    file, alone = tmp_path / "w.json", tmp_path / "verify.py"
    file.write_text(witnessed(TRAP, "typical(9/100, 3/10)", 2, 5))
    alone.write_text(source)
    run = [sys.executable, "-I", "-S", str(alone), str(file)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("confirmed: C is infinite of 3 tokens")
    file.write_text(file.read_text().replace("inf", "0.1"))
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "refused: the file was changed\n")


def test_a_large_row(witnessed):
    rng = random.Random(2)
    scores = [math.exp(2 * rng.gauss(0, 2)) for _ in range(49_152)]
    total = math.fsum(scores)
    row = [score / total for score in scores]
    for rule in ("typical(9/100, 3/10)", "top_m(10) & additive(3/5)"):
        assert verify(witnessed(row, rule, 4)).startswith("C = ")
