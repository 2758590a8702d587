"""Answers of a real vLLM server (`recorded/vllm/README.md`): each position is read once or skipped with its reason."""

import json
import math
from pathlib import Path

import pytest

from draftcert.audit.logprobs import audit_logprobs
from draftcert.audit.responses import Skipped, TopLogprobs, read_positions
from draftcert.theory import DraftcertError

RECORDED = Path(__file__).with_name("recorded") / "vllm"
USED_AND_SKIPPED = {
    "chat.json": (16, 0),
    "chat_ids.json": (4, 0),
    "chat_n2.json": (12, 0),
    "chat_stream.sse": (10, 0),
    "chat_stream_n2.sse": (12, 0),
    "completions.json": (12, 0),
    "completions_echo.json": (8, 1),
    "completions_prompt_logprobs.json": (4, 2),
    "completions_prompt_logprobs1.json": (3, 2),
    "responses.json": (6, 0),
}


def read(name):
    positions = read_positions(RECORDED / name)
    return (
        [each for each in positions if isinstance(each, TopLogprobs)],
        [each for each in positions if isinstance(each, Skipped)],
    )


@pytest.mark.parametrize("name", USED_AND_SKIPPED)
def test_every_position_is_read_once_or_skipped(name):
    used, skipped = read(name)
    assert (len(used), len(skipped)) == USED_AND_SKIPPED[name]
    assert all(each.reason == "no list of log-probabilities" for each in skipped)
    places = [each.where for each in (*used, *skipped)]
    assert len(set(places)) == len(places)
    audit = audit_logprobs(RECORDED / name)
    assert (audit.summary()["positions"], sum(audit.summary()["skipped"].values())) == USED_AND_SKIPPED[name]


def test_the_counts_are_those_of_the_server_s_usage():
    usage = json.loads((RECORDED / "completions_echo.json").read_text())["usage"]
    used, skipped = read("completions_echo.json")
    assert len(used) + len(skipped) == usage["total_tokens"]
    assert [each.where.split(", ", 1)[1] for each in skipped] == ["choice 0, prompt position 0"]


def test_the_choices_of_a_stream_are_told_apart_and_counted_on():
    used, _ = read("chat_stream_n2.sse")
    places = [each.where.split(", ", 1)[1] for each in used]
    assert sorted(places) == [f"choice {choice}, position {k}" for choice in (0, 1) for k in range(6)]


def test_ranks_say_what_is_missing_above_the_prompt_s_own_token():
    used, _ = read("completions_prompt_logprobs1.json")
    assert [(each.chosen.token, each.contiguous) for each in used] == [(" upon", 1), (" a", 2), (" zebra", 1)]
    assert [entry.token for entry in used[0].entries] == ["-", " upon"]


def test_keys_in_the_order_of_their_ids_claim_no_more(tmp_path):
    answer = json.loads((RECORDED / "completions_prompt_logprobs.json").read_text())
    file = tmp_path / "sorted.json"
    file.write_text(json.dumps(answer, sort_keys=True))
    rows = [each for each in read_positions(file) if isinstance(each, TopLogprobs)]
    assert [each.entries for each in rows] == [each.entries for each in read("completions_prompt_logprobs.json")[0]]
    assert [each.contiguous for each in rows] == [3, 3, 3, 3]


def test_without_ranks_the_last_entry_may_be_the_prompt_s_own(tmp_path):
    answer = json.loads((RECORDED / "completions_prompt_logprobs.json").read_text())
    for row in answer["choices"][0]["prompt_logprobs"][1:]:
        for entry in row.values():
            del entry["rank"]
    file = tmp_path / "without_ranks.json"
    file.write_text(json.dumps(answer))
    rows = [each for each in read_positions(file) if isinstance(each, TopLogprobs)]
    assert [each.contiguous for each in rows] == [3, 2, 2, 2]
    rows = [each for each in read_positions(file, asked=3) if isinstance(each, TopLogprobs)]
    assert [each.contiguous for each in rows] == [3, 3, 3, 3]


def test_answers_to_one_question_agree():
    """The echoed prompt and `prompt_logprobs` describe the same positions, and so do a completion's first tokens."""
    echo, prompt = read("completions_echo.json")[0], read("completions_prompt_logprobs.json")[0]
    assert [each.entries for each in echo[:4]] == [each.entries for each in prompt]
    first = read("completions.json")[0][0]
    assert [entry.logprob for entry in echo[4].entries] == [entry.logprob for entry in first.entries[:3]]


def test_what_holds_no_list_is_refused_with_the_reason():
    with pytest.raises(DraftcertError, match=r"4 skipped: no list of log-probabilities"):
        read_positions(RECORDED / "chat_top0.json")
    with pytest.raises(DraftcertError, match="answered with an error: Requested sample logprobs of 60000"):
        read_positions(RECORDED / "err.json")


def test_strict_certificates_are_those_of_the_two_likeliest_tokens():
    for name in USED_AND_SKIPPED:
        for row, found in zip(read(name)[0], audit_logprobs(RECORDED / name).positions, strict=True):
            if row.contiguous < 2:
                assert not found.determined
                continue
            first, second = (math.exp(entry.logprob) for entry in row.entries[:2])
            middle = (first + second) / 2
            truth = first * math.log(first / middle) + second * math.log(second / middle)
            assert found.determined
            assert found.lower <= truth <= found.upper
