"""The documented response formats of the servers, one of each."""

import json
import math

import pytest

from draftcert.audit.responses import read_responses
from draftcert.theory import DraftcertError

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
FORMATS = {
    "openai chat": OPENAI_CHAT,
    "openai completion": OPENAI_COMPLETION,
    "vllm prompt": VLLM_PROMPT,
    "llama.cpp": LLAMA_CPP,
    "llama.cpp before 2025": LLAMA_CPP_OLD,
    "sglang": SGLANG,
    "tgi": TGI,
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
    (position,) = read_responses(write(FORMATS[name]))
    assert [entry.token for entry in position.entries] == ["Hi", "Yo", "So"]
    assert [math.exp(entry.logprob) for entry in position.entries] == pytest.approx([0.6, 0.3, 0.05])
    assert position.chosen.token == "Hi"
    assert position.contiguous == 3


def test_server_sent_events_and_lines_are_read_and_located(write):
    positions = read_responses(write("data: " + json.dumps(OPENAI_CHAT), "", json.dumps(SGLANG), "data: [DONE]"))
    assert [p.where.rsplit("/", 1)[1] for p in positions] == [
        "response.jsonl:1, choice 0, position 0",
        "response.jsonl:3, output position 0",
    ]


def chat(chosen, top):
    entry = {"token": chosen[0], "logprob": chosen[1], "top_logprobs": [{"token": t, "logprob": v} for t, v in top]}
    return {"choices": [{"logprobs": {"content": [entry]}}]}


@pytest.mark.parametrize(
    "listed", [[("a", A), ("b", B), ("z", -9.0)], [("z", -9.0), ("a", A), ("b", B)], [("a", A), ("b", B)]]
)
def test_a_chosen_token_outside_the_top_k_bounds_nothing_above_it(listed, write):
    (position,) = read_responses(write(chat(("z", -9.0), listed)))
    assert [entry.token for entry in position.entries] == ["a", "b", "z"]
    assert position.contiguous == 2


def test_two_tokens_of_one_text_stay_two(write):
    (position,) = read_responses(write(chat(("a", B), [("a", B), ("a", B), ("b", C)])))
    assert [entry.token for entry in position.entries] == ["a", "a", "b"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (chat(("a", 0.0), [("a", 0.0), ("b", 0.0)]), "sum to 2, more than 1 .*placeholder"),
        (chat(("a", A), [("a", A), ("b", C), ("c", B)]), "not in descending order: 'b'"),
        (chat(("a", 0.5), [("a", 0.5)]), r"0\.5 is no log-probability"),
        (chat(("a", float("nan")), [("a", A)]), "nan is no log-probability"),
        ({"error": {"message": "no such model"}}, "answered with an error: no such model"),
        ({"choices": [{"text": "no logprobs", "logprobs": None}]}, "holds no top log-probabilities"),
        ("{broken", ":1: not JSON"),
        ("[[1]]", "expected a response object, found list"),
    ],
)
def test_what_no_model_can_have_said_is_refused(document, message, write):
    with pytest.raises(DraftcertError, match=message):
        read_responses(write(document))
