import json
import math

import numpy as np
import pytest

from draftcert.audit.logprobs import audit_logprobs
from draftcert.audit.responses import normalizer_error
from draftcert.numerics import certificate
from draftcert.theory import DraftcertError


def chat(*rows):
    """A response with one position a row; the first listed token is the chosen one."""
    content = [
        {
            "token": row[0][0],
            "logprob": row[0][1],
            "top_logprobs": [{"token": token, "logprob": logprob} for token, logprob in row],
        }
        for row in rows
    ]
    return {"choices": [{"logprobs": {"content": content}}]}


@pytest.fixture
def write(tmp_path):
    def write(document):
        file = tmp_path / "response.json"
        file.write_text(json.dumps(document))
        return file

    return write


def row(*probabilities):
    return [(f"t{i}", math.log(p)) for i, p in enumerate(probabilities)]


def test_a_list_that_shows_the_competitor_determines_the_certificate(write):
    (found,) = audit_logprobs(write(chat(row(0.6, 0.4))), vocab_size=2).positions
    assert found.determined
    assert found.lower <= 0.020135513550688866 <= found.upper
    assert found.upper - found.lower < 1e-6


def test_what_the_unseen_tail_decides_is_an_interval_that_holds_every_completion(write):
    listed = [0.5, 0.2, 0.1]
    file = write(chat(row(*listed)))
    (found,) = audit_logprobs(file, "top_m(2)", 2, vocab_size=8).positions
    assert not found.determined
    rng = np.random.default_rng(1)
    for _ in range(20):
        tail = np.minimum(rng.dirichlet(np.ones(5)) * 0.2, 0.1)
        tail = tail / tail.sum() * 0.2
        if tail.max() <= 0.1:
            full = certificate([*listed, *tail.tolist()], "top_m(2)", 2, normalize=True)
            assert found.lower <= float(full) <= found.upper


def test_rounding_widens_and_can_hide_a_tie(write):
    exact, near, rounded, clear = audit_logprobs(
        write(
            chat(
                [("a", math.log(0.5)), ("b", math.log(0.5))],
                [("a", -0.7012345678), ("b", -0.7312345678)],
                [("a", -0.69), ("b", -0.7)],
                [("a", -0.51082), ("b", -0.91629)],
            )
        )
    ).positions
    assert (exact.tie, near.tie, rounded.tie, clear.tie) == ("exact", "near", "within rounding", "")
    assert exact.top == "a"
    assert exact.upper < 1e-6
    assert rounded.lower == 0
    truth = float(certificate(["0.6", "0.4"], "strict_greedy"))
    assert clear.lower < truth < clear.upper


def test_every_distribution_that_rounds_to_the_list_is_within_the_interval(write):
    rng = np.random.default_rng(2)
    for _ in range(15):
        probabilities = np.sort(rng.dirichlet(np.ones(5) * 0.7))[::-1]
        printed = [(f"t{i}", round(math.log(p), 2)) for i, p in enumerate(probabilities)]
        for rule in ("strict_greedy", "additive(0.2)", "multiplicative(0.5)", "absolute(0.3)"):
            (found,) = audit_logprobs(write(chat(printed)), rule).positions
            truth = float(certificate(probabilities.tolist(), rule, normalize=True))
            assert found.lower <= truth <= found.upper, (probabilities, rule)


@pytest.mark.parametrize("listed", [3, 8])
def test_every_distribution_whose_sum_the_server_got_wrong_is_within_the_interval(write, listed):
    """All log-probabilities of a row are off together where the sum of its exponentials is."""
    rng = np.random.default_rng(3)
    rules = ("strict_greedy", "additive(0.2)", "absolute(0.2)", "medusa_typical(0.09, 0.3)", "absolute(0.3) | top_m(2)")
    shifts = [-1, 1, *rng.uniform(-1, 1, 8)]
    for shift in shifts:
        probabilities = np.sort(rng.dirichlet(np.ones(8) * 0.6))[::-1]
        # A rule's threshold lies just beside a token, so that the shift decides what seems to be accepted.
        probabilities[1] = probabilities[0] - 0.2 * (1 + rng.uniform(-0.01, 0.01))
        probabilities = np.sort(np.abs(probabilities))[::-1] / np.abs(probabilities).sum()
        off = shift * normalizer_error()
        entries = [(f"t{i}", float(np.log(p)) + off) for i, p in enumerate(probabilities[:listed])]
        for rule in rules:
            (found,) = audit_logprobs(write(chat(entries)), rule).positions
            truth = float(certificate(probabilities.tolist(), rule, normalize=True))
            assert found.lower <= truth <= found.upper, (probabilities, rule, shift)


def test_the_summary_counts(write):
    found = audit_logprobs(write(chat(row(0.6, 0.4), row(0.5, 0.5), row(0.9, 0.05))))
    summary = found.summary()
    assert summary["positions"] == 3
    assert summary["ties"] == {"exact": 1}
    assert summary["mean_kl_for"]["50 %"] == pytest.approx(float(found.positions[0].lower) / 3, rel=1e-3, abs=1e-6)
    assert json.dumps(found.as_dict()["summary"])


@pytest.mark.parametrize(
    "wrong",
    [
        *({"near": value} for value in (math.nan, -0.1, "0.1", None, True)),
        *({"asked": value} for value in (0, -1, True, 2.0, "2")),
        *({"vocab_size": value} for value in (0, "9", 1.5, 10**400, 2**24 + 1)),
        {"candidates": True},
    ],
)
def test_options_that_mean_nothing_are_refused_by_name(write, wrong):
    with pytest.raises(DraftcertError, match=f"^{next(iter(wrong))} = "):
        audit_logprobs(write(chat(row(0.6, 0.4))), **wrong)


def test_contradictions_are_refused_with_their_place(write):
    with pytest.raises(DraftcertError, match=r"response.json:1, choice 0, position 0: .*vocabulary"):
        audit_logprobs(write(chat(row(0.5, 0.1))), vocab_size=3)
    with pytest.raises(DraftcertError, match="raw logits"):
        audit_logprobs(write(chat(row(0.5, 0.1))), "mars(0.9)")
