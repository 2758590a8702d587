"""The documented response formats of the servers, one of each."""

import gzip
import json
import math
import random

import pytest

from draftcert.audit.logprobs import audit_logprobs
from draftcert.audit.responses import Skipped, TopLogprobs, read_positions
from draftcert.theory import DraftcertError


def read_lists(*arguments, **options):
    return [each for each in read_positions(*arguments, **options) if isinstance(each, TopLogprobs)]


A, B, C = math.log(0.6), math.log(0.3), math.log(0.05)

OPENAI_CHAT = {
    "object": "chat.completion",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hi"},
            "logprobs": {
                "content": [
                    {
                        "token": "Hi",
                        "logprob": A,
                        "bytes": [72, 105],
                        "top_logprobs": [
                            {"token": "Hi", "logprob": A, "bytes": [72, 105]},
                            {"token": "Yo", "logprob": B, "bytes": None},
                            {"token": "So", "logprob": C, "bytes": None},
                        ],
                    }
                ]
            },
        }
    ],
}
OPENAI_COMPLETION = {
    "object": "text_completion",
    "choices": [
        {
            "text": "Hi",
            "logprobs": {
                "tokens": ["Once", "Hi"],
                "token_logprobs": [None, A],
                "top_logprobs": [None, {"So": C, "Hi": A, "Yo": B}],
                "text_offset": [0, 4],
            },
        }
    ],
}
VLLM_PROMPT = {
    "choices": [],
    "prompt_logprobs": [
        None,
        {
            "11": {"logprob": A, "rank": 1, "decoded_token": "Hi"},
            "12": {"logprob": B, "rank": 2, "decoded_token": "Yo"},
            "13": {"logprob": C, "rank": 3, "decoded_token": "So"},
        },
    ],
}
LLAMA_CPP = {
    "content": "Hi",
    "completion_probabilities": [
        {
            "id": 11,
            "token": "Hi",
            "bytes": [72, 105],
            "logprob": A,
            "top_logprobs": [
                {"id": 11, "token": "Hi", "bytes": [72, 105], "logprob": A},
                {"id": 12, "token": "Yo", "bytes": [], "logprob": B},
                {"id": 13, "token": "So", "bytes": [], "logprob": C},
            ],
        }
    ],
}
LLAMA_CPP_OLD = {
    "completion_probabilities": [
        {
            "content": "Hi",
            "probs": [{"tok_str": "Hi", "prob": 0.6}, {"tok_str": "Yo", "prob": 0.3}, {"tok_str": "So", "prob": 0.05}],
        }
    ]
}
SGLANG = {
    "text": "Hi",
    "meta_info": {
        "output_token_logprobs": [[A, 11, "Hi"]],
        "output_top_logprobs": [[[A, 11, "Hi"], [B, 12, "Yo"], [C, 13, "So"]]],
    },
}
TGI = {
    "generated_text": "Hi",
    "details": {
        "tokens": [{"id": 11, "text": "Hi", "logprob": A, "special": False}],
        "top_tokens": [
            [
                {"id": 11, "text": "Hi", "logprob": A, "special": False},
                {"id": 12, "text": "Yo", "logprob": B, "special": False},
                {"id": 13, "text": "So", "logprob": C, "special": False},
            ]
        ],
    },
}
CHAT_ITEMS = OPENAI_CHAT["choices"][0]["logprobs"]["content"]
RESPONSES = {
    "object": "response",
    "output": [
        {"type": "reasoning", "summary": []},
        {"type": "message", "content": [{"type": "output_text", "text": "Hi", "logprobs": CHAT_ITEMS}]},
    ],
}
BATCH = {"id": "b1", "custom_id": "mine", "response": {"status_code": 200, "body": OPENAI_CHAT}, "error": None}
OLLAMA = {"model": "m", "message": {"role": "assistant", "content": "Hi"}, "done": False, "logprobs": CHAT_ITEMS}
TGI_STREAM = {
    "index": 1,
    "token": TGI["details"]["tokens"][0],
    "top_tokens": TGI["details"]["top_tokens"][0],
    "generated_text": None,
    "details": None,
}
FORMATS = {
    "openai chat": OPENAI_CHAT,
    "openai completion": OPENAI_COMPLETION,
    "vllm prompt": VLLM_PROMPT,
    "llama.cpp": LLAMA_CPP,
    "llama.cpp before 2025": LLAMA_CPP_OLD,
    "sglang": SGLANG,
    "tgi": TGI,
    "tgi, streamed": TGI_STREAM,
    "llama.cpp, several prompts": {"results": [LLAMA_CPP]},
    "responses": RESPONSES,
    "openai batch": BATCH,
    "ollama": OLLAMA,
}


@pytest.fixture
def write(tmp_path):
    def write(*documents):
        file = tmp_path / "response.jsonl"
        file.write_text("\n".join(d if isinstance(d, str) else json.dumps(d) for d in documents))
        return file

    return write


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_position(name, write):
    (position,) = read_lists(write(FORMATS[name]))
    assert [entry.token for entry in position.entries] == ["Hi", "Yo", "So"]
    assert [math.exp(entry.logprob) for entry in position.entries] == pytest.approx([0.6, 0.3, 0.05])
    assert position.chosen.token == "Hi"
    assert position.contiguous == 3


def test_server_sent_events_and_lines_are_read_and_located(write):
    positions = read_lists(write("data: " + json.dumps(OPENAI_CHAT), "", json.dumps(SGLANG), "data: [DONE]"))
    assert [p.where.rsplit("/", 1)[1] for p in positions] == [
        "response.jsonl:1, choice 0, position 0",
        "response.jsonl:3, output position 0",
    ]


def places(positions):
    return [each.where.split(":", 1)[1] for each in positions]


def test_events_may_hold_comments_other_fields_and_several_lines(write):
    one, other = json.dumps(OPENAI_CHAT), json.dumps(SGLANG, indent=1).replace("\n", "\r\ndata: ")
    text = f": ping\r\nevent: message\r\nid: 7\r\nretry: 10\r\ndata:{one}\r\n\r\ndata: {other}\r\n\r\ndata: [DONE]\r\n"
    assert places(read_lists(write(text))) == ["5, choice 0, position 0", "7, output position 0"]


def test_lines_may_hold_separators_that_are_none_of_json(write):
    chosen = ("a\u2028b\x85c", A)
    raw = json.dumps(chat(chosen, [chosen, ("b", B)]), ensure_ascii=False)
    found = read_lists(write("\ufeff" + raw, "", "  ", raw))
    assert [each.chosen.token for each in found] == [chosen[0]] * 2
    assert places(found) == ["1, choice 0, position 0", "4, choice 0, position 0"]


def test_a_gzipped_file_is_bounded_by_what_it_holds(tmp_path, monkeypatch):
    file = tmp_path / "answer.json.gz"
    file.write_bytes(gzip.compress(b" " * 5000))
    monkeypatch.setattr("draftcert.audit.documents.LARGEST", 4999)
    with pytest.raises(DraftcertError, match="holds more than the 4999 bytes"):
        read_lists(file)


def test_a_gzipped_file_and_a_pretty_printed_one_are_read(tmp_path, write):
    file = tmp_path / "response.json.gz"
    file.write_bytes(gzip.compress(json.dumps(OPENAI_CHAT, indent=2).encode()))
    (position,) = read_lists(file)
    assert position.entries == read_lists(write(OPENAI_CHAT))[0].entries
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(DraftcertError, match="cannot be read"):
        read_lists(file)


def streamed(choice, *values, **more):
    items = [{"token": t, "logprob": v, "top_logprobs": [{"token": t, "logprob": v}]} for t, v in values]
    return {"object": "chat.completion.chunk", "choices": [{"index": choice, "logprobs": {"content": items}}], **more}


def test_positions_of_a_stream_are_counted_for_each_choice(write):
    chunks = [
        streamed(1, ("a", A)),
        streamed(0, ("b", B), ("c", C)),
        streamed(1, ("d", C)),
        {"choices": [], "usage": {}},
    ]
    found = read_positions(write(*("data: " + json.dumps({"id": "x", **chunk}) for chunk in chunks), "data: [DONE]"))
    assert [each.where.split(", ", 1)[1] for each in found] == [
        "choice 1, position 0",
        "choice 0, position 0",
        "choice 0, position 1",
        "choice 1, position 1",
    ]


def test_a_stream_that_repeats_its_lists_counts_each_once(write):
    def so_far(count):
        rows = [[A - k, 11, "Hi"] for k in range(count)]
        return {"meta_info": {"id": "x", "output_token_logprobs": rows, "output_top_logprobs": [[row] for row in rows]}}

    found = read_positions(write(*("data: " + json.dumps(so_far(count)) for count in (1, 2, 4))))
    logprobs = [isinstance(each, TopLogprobs) and each.entries[0].logprob for each in found]
    assert logprobs == [A, A - 1, A - 2, A - 3]


@pytest.mark.parametrize("finished", [True, False])
def test_a_streamed_response_is_read_once(finished, write):
    delta = {"type": "response.output_text.delta", "logprobs": CHAT_ITEMS}
    events = [delta, {**delta, "type": "response.output_text.done"}]
    events += [{"type": "response.completed", "response": RESPONSES}] if finished else []
    (position,) = read_positions(write(*("data: " + json.dumps(event) for event in events)))
    assert isinstance(position, TopLogprobs)
    assert [entry.token for entry in position.entries] == ["Hi", "Yo", "So"]


NOTHING = [
    ({"choices": [{"text": "Hi", "logprobs": None}]}, "no list"),
    (
        {"choices": [{"index": 0, "logprobs": {"content": [{"token": "a", "logprob": 0.0, "top_logprobs": []}]}}]},
        "no list",
    ),
    ({"choices": [{"logprobs": {"tokens": ["a"], "token_logprobs": [None], "top_logprobs": None}}]}, "no list"),
    ({"choices": [{"logprobs": {"tokens": [], "top_logprobs": [{"a": A}]}}]}, "without its token"),
    ({"choices": [{"logprobs": {"tokens": ["a"], "top_logprobs": [{"a": None}]}}]}, "has no log-probability"),
    ({"prompt_logprobs": [{"11": {"logprob": None, "rank": 1}}]}, "has no log-probability"),
    ({"meta_info": {"output_token_logprobs": [[A, 11, None]], "output_top_logprobs": [None]}}, "no list"),
    ({"meta_info": {"id": "x"}, "text": "Hi"}, "no list"),
    ({"content": "Hi", "stop": True}, "no list"),
    ({"response": "Hi", "done": False}, "no list"),
    ({"message": {"content": "Hi"}, "logprobs": None, "done": False}, "no list"),
    ({"generated_text": "Hi", "details": None}, "no list"),
    ({"details": {"prefill": [{"id": 1, "text": "a", "logprob": None}]}}, "no list"),
    ({"custom_id": "r", "response": None, "error": {"message": "expired"}}, "answered with an error: expired"),
    ({"custom_id": "r", "method": "POST", "url": "/v1/x", "body": {}}, "a request of a batch"),
    ({"custom_id": "r", "response": {"status_code": 500, "body": None}}, "status 500"),
    ({"error": "overloaded", "error_type": "x"}, "answered with an error: overloaded"),
    ({"candidates": [{"logprobsResult": {}}]}, "Gemini: a format that is not read"),
    ({"type": "message", "content": [], "stop_sequence": None}, "Anthropic: a format that is not read"),
    ({"result": "Hi"}, r"no format that is read \(keys: result\)"),
]


@pytest.mark.parametrize(("document", "reason"), NOTHING)
def test_nothing_vanishes(document, reason, write):
    """What holds no list is skipped with its reason beside what does, and refused alone."""
    found = read_positions(write(OPENAI_CHAT, document))
    assert [type(each) for each in found] == [TopLogprobs, Skipped]
    with pytest.raises(DraftcertError, match=f"holds no top log-probabilities.*{reason}"):
        read_positions(write(document))
    audit = audit_logprobs(write(OPENAI_CHAT, document)).as_dict()
    assert len(audit["positions"]) == len(audit["skipped"]) == 1
    assert list(audit["summary"]["skipped"]) == [audit["skipped"][0]["reason"]]


def test_a_null_beside_a_good_list_is_no_matter(write):
    row = {"tokens": ["Hi"] * 2, "token_logprobs": [None] * 2, "top_logprobs": [{"Hi": A, "Yo": B, "So": C}] * 2}
    for position in read_lists(write({"choices": [{"logprobs": row}]})):
        assert (position.chosen, position.contiguous) == (position.entries[0], 3)


@pytest.mark.parametrize("never", [-9999.0, -3.4028234663852886e38, -math.inf, -1e308])
def test_a_stand_in_for_the_logarithm_of_0_widens_nothing(never, write):
    plain, beside = (
        audit_logprobs(write(chat(("a", A), [("a", A), ("b", B), *more]))).positions[0] for more in ([], [("c", never)])
    )
    assert (beside.lower, beside.upper, beside.determined) == (plain.lower, plain.upper, True)


def test_the_end_of_a_stream_is_no_position(write):
    ends = [{"choices": [], "usage": {}}, {"content": "", "stop": True}, {"response": "", "done": True}]
    ends += [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None}]}]
    assert len(read_positions(write(OPENAI_CHAT, *ends))) == 1


def by_text(*rows):
    tokens, lists = zip(*rows, strict=True)
    values = [top.get(token) for token, top in rows]
    return {"choices": [{"logprobs": {"tokens": tokens, "token_logprobs": values, "top_logprobs": lists}}]}


def test_a_list_keyed_by_text_may_have_lost_a_token_unless_it_is_as_long_as_asked(write):
    """.35 is missing from the only list of the answer: a token that shared its text may have had all of it."""
    lost = by_text(("a", {"a": math.log(0.3), "b": math.log(0.2), "c": math.log(0.15)}))
    assert read_lists(write(lost))[0].contiguous == 0
    assert read_lists(write(lost), asked=3)[0].contiguous == 3
    assert read_lists(write(lost), asked=4)[0].contiguous == 0
    clear = by_text(("a", {"a": math.log(0.6), "b": math.log(0.3), "c": math.log(0.01)}))
    assert read_lists(write(clear))[0].contiguous == 2  # .09 are missing


def test_answers_of_one_id_say_nothing_of_the_length_of_each_others_lists(write):
    """Two lists of one answer tell that two log-probabilities were asked for, and nothing of the other's request."""
    short, long = by_text(*[("a", {"a": A, "b": B})] * 2), by_text(("a", {"a": 3 * A, "b": 3 * B, "c": 3 * C}))
    (alone,) = read_lists(write(long))
    for identity in ({}, {"id": None}, {"id": ""}, {"id": "cmpl-1"}):
        *_, together = read_lists(write(short | identity, long | identity))
        assert together.contiguous == alone.contiguous == 0, identity


def test_a_key_that_stands_twice_in_a_list_loses_nothing(write):
    raw = json.dumps(by_text(("a", {"a": A, "b": B, "X": C}))).replace('"X"', '"a"')
    (position,) = read_lists(write(raw), asked=3)
    assert [entry.logprob for entry in position.entries] == [A, B, C]
    with pytest.raises(DraftcertError, match="a key that stands twice"):
        read_lists(write(json.dumps(OPENAI_CHAT).replace('"bytes": null', '"logprob": -1')))


def test_a_list_given_twice_over_is_one_list(write):
    top = [("a", A), ("b", B)]
    once, twice = (read_lists(write(chat(("a", A), listed)))[0] for listed in (top, top * 2))
    assert (once.entries, once.contiguous) == (twice.entries, twice.contiguous)
    (single,) = read_lists(write(chat(("a", B), [("a", B)] * 2)))
    assert (len(single.entries), single.contiguous) == (1, 1)


def test_one_text_at_one_value_may_be_one_token(write):
    (position,) = read_lists(write(chat(("a", B), [("a", B), ("a", B), ("b", C)])))
    assert position.contiguous == 1
    (position,) = read_lists(write(LLAMA_CPP | {"completion_probabilities": [with_ids(11, 12)]}))
    assert position.contiguous == 2
    (position,) = read_lists(write(LLAMA_CPP | {"completion_probabilities": [with_ids(11, 11)]}))
    assert len(position.entries) == 1


def with_ids(*ids):
    return {
        "id": ids[0],
        "token": "a",
        "logprob": B,
        "top_logprobs": [{"id": i, "token": "a", "logprob": B} for i in ids],
    }


def test_a_chosen_token_that_should_be_listed_and_is_not_is_skipped(write):
    found = read_positions(write(OPENAI_CHAT, chat(("z", B), [("a", A), ("b", C)])))
    assert [type(each) for each in found] == [TopLogprobs, Skipped]


def chat(chosen, top):
    entry = {"token": chosen[0], "logprob": chosen[1], "top_logprobs": [{"token": t, "logprob": v} for t, v in top]}
    return {"choices": [{"logprobs": {"content": [entry]}}]}


@pytest.mark.parametrize(
    "listed", [[("a", A), ("b", B), ("z", -9.0)], [("z", -9.0), ("a", A), ("b", B)], [("a", A), ("b", B)]]
)
def test_a_chosen_token_outside_the_top_k_bounds_nothing_above_it(listed, write):
    (position,) = read_lists(write(chat(("z", -9.0), listed)))
    assert [entry.token for entry in position.entries] == ["a", "b", "z"]
    assert position.contiguous == 2


def test_two_tokens_of_one_text_stay_two(write):
    (position,) = read_lists(write(chat(("a", B), [("a", B), ("a", B), ("b", C)])))
    assert [entry.token for entry in position.entries] == ["a", "a", "b"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (chat(("a", 0.0), [("a", 0.0), ("b", 0.0)]), "sum to 2, more than 1 .*placeholder"),
        (chat(("a", A), [("a", A), ("b", C), ("c", B)]), "not in descending order: 'b'"),
        (chat(("a", 0.5), [("a", 0.5)]), r"0\.5 is no log-probability"),
        (chat(("a", A), [("a", "-0.5")]), "'-0.5' is no number"),
        (chat(("a", A), [("a", True)]), "True is no number"),
        (chat(("a", A), [("a", [A])]), "is no number"),
        (chat(("a", A), [("a", math.inf)]), "inf is no log-probability"),
        (chat(("a", A), [("a", -(10**400))]), "a number of 401 digits"),
        ({"choices": {"index": 0}}, "'choices' is dict, not of type list"),
        ({"choices": [None, 3]}, "an item of 'choices' is int"),
        ({"choices": [{"logprobs": [1]}]}, "'logprobs' is list"),
        ({"completion_probabilities": [[A]]}, "a position is list"),
        ({"completion_probabilities": [{"top_logprobs": [{"logprob": A}]}]}, "an entry without a token"),
        ({"completion_probabilities": [{"probs": [{"tok_str": "a", "prob": -0.1}]}]}, "-0.1 is no probability"),
        ({"prompt_logprobs": [{"11": {"logprob": A, "rank": 0}}]}, "0 is no rank"),
        ({"prompt_logprobs": [{"11": {"logprob": A, "rank": True}}]}, "True is no rank"),
        ({"prompt_logprobs": [{"1": {"logprob": C, "rank": 1}, "2": {"logprob": A, "rank": 2}}]}, "not in descending"),
        (
            {
                "completion_probabilities": [
                    {
                        **LLAMA_CPP["completion_probabilities"][0],
                        "top_logprobs": [{"id": 1, "token": "a", "logprob": A}, {"id": 1, "token": "a", "logprob": B}],
                    }
                ]
            },
            "is listed at",
        ),
        ("[" * 100_000, "nested too deeply"),
        ('{"results": [' * 450 + "{}" + "]}" * 450, "holds no top|nested too deeply"),
        ('{"choices": ' + "9" * 5000 + "}", ":1: not JSON"),
        ("\xff", ":1: not JSON"),
        (chat(("a", float("nan")), [("a", A)]), "nan is no log-probability"),
        ({"error": {"message": "no such model"}}, "answered with an error: no such model"),
        ({"choices": [{"text": "no logprobs", "logprobs": None}]}, "holds no top log-probabilities"),
        ("{broken", ":1: not JSON"),
        ("[[1]]", "expected a response object, found list"),
    ],
)
def test_what_no_model_can_have_said_is_refused(document, message, write):
    with pytest.raises(DraftcertError, match=message):
        read_lists(write(document))


def test_a_file_that_is_not_text_is_refused(tmp_path):
    file = tmp_path / "response.json"
    file.write_bytes(json.dumps(OPENAI_CHAT).encode("utf-16"))
    with pytest.raises(DraftcertError, match="not UTF-8"):
        read_lists(file)
    with pytest.raises(DraftcertError, match="no file of server responses"):
        read_lists(tmp_path)


def test_whatever_is_changed_in_an_answer_it_is_read_or_refused_in_words(tmp_path):
    """Values of any type anywhere, keys left out or doubled, bytes flipped: no other exception, no bad interval."""
    draw = random.Random(4)
    file = tmp_path / "response.json"
    odd = [None, True, -1, 0, 1e400, -1e400, math.nan, 10**30, "x", "-1", [], {}, [[]], [None], {"a": None}, "\ud800"]

    def changed(value):
        if draw.random() < 0.03:
            return draw.choice(odd)
        if isinstance(value, dict):
            return {key: changed(item) for key, item in value.items() if draw.random() > 0.02}
        if isinstance(value, list):
            return [changed(item) for item in value for _ in range(draw.choice([1] * 30 + [0, 2]))]
        return value

    read, refused = 0, []
    for _ in range(2_000):
        text = json.dumps(changed(draw.choice(list(FORMATS.values()))))
        if draw.random() < 0.2:
            at = draw.randrange(len(text))
            text = (
                text[:at] + draw.choice(["", '"', "}", "[", "\n", "\ndata: ", "1e9"]) + text[at + draw.randrange(3) :]
            )
        file.write_text(text)
        try:
            positions = audit_logprobs(file, "additive(0.1)", vocab_size=50).positions
        except DraftcertError as error:
            refused.append(str(error))
            continue
        read += 1
        assert all(0 <= each.lower <= each.upper for each in positions)
    assert read > 500
    assert refused
    assert not any("\n" in message for message in refused)
