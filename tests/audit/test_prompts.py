import json

import pytest

from draftcert.audit import load_prompts, read_prompts
from draftcert.theory import DraftcertError


def test_the_built_in_set_has_forty_distinct_prompts():
    prompts = load_prompts()
    assert len(prompts) == 40
    assert len({p.id for p in prompts}) == 40
    assert len({p.text for p in prompts}) == 40


def test_every_common_shape_is_read(tmp_path):
    records = [
        {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a"}]},
        {"question_id": 81, "category": "writing", "turns": ["b", "later"]},
        {"id": "x", "prompt": "c"},
        {"text": "d"},
    ]
    file = tmp_path / "p.jsonl"
    file.write_text("\n".join(map(json.dumps, records)) + "\n\n")
    prompts = load_prompts(file)
    assert [p.text for p in prompts] == ["a", "b", "c", "d"]
    assert [p.id for p in prompts] == ["1", "81", "x", "4"]
    assert prompts[0].messages is not None
    assert len(prompts[0].messages) == 2
    assert prompts[3].messages is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"prompt": "ok"}\nnot json', "line 2: not JSON"),
        ('{"question": "?"}', "line 1: no prompt in it .* found 'question'"),
        ('{"prompt": "  "}', "line 1: no prompt"),
        ("[1]", "line 1: expected an object, found list"),
        ("\n", "holds no prompt"),
    ],
)
def test_a_bad_line_is_named(tmp_path, content, message):
    file = tmp_path / "p.jsonl"
    file.write_text(content)
    with pytest.raises(DraftcertError, match=message):
        load_prompts(file)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DraftcertError, match=r"no file of prompts at .*absent\.jsonl"):
        load_prompts(tmp_path / "absent.jsonl")


def test_a_conversation_ends_where_the_target_is_to_answer(tmp_path):
    asked, answered = {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}
    records = [
        {"messages": [asked, answered]},
        {"messages": [asked, answered, asked, answered]},
        {"prompt": "first", "prompt_id": "p", "messages": [asked, answered]},
        {"id": "u", "data": ["first", "second"]},
    ]
    file = tmp_path / "p.jsonl"
    file.write_text("\n".join(map(json.dumps, records)))
    one, three, first, data = load_prompts(file)
    assert one.messages == (asked,)
    assert three.messages == (asked, answered, asked)
    assert (first.id, first.text, data.id, data.text) == ("p", "first", "u", "first")
    file.write_text(json.dumps({"messages": [answered]}))
    with pytest.raises(DraftcertError, match="line 1: no prompt"):
        load_prompts(file)


def test_lines_are_read_when_they_are_asked_for(tmp_path):
    file = tmp_path / "p.jsonl"
    # Only a line feed ends a line: JSON may hold other separators as they are.
    file.write_text(json.dumps({"prompt": "a\u2028b"}, ensure_ascii=False) + "\nnot json\n", "utf-8")
    prompts = read_prompts(file)
    assert next(prompts).text == "a\u2028b"
    with pytest.raises(DraftcertError, match="line 2: not JSON"):
        next(prompts)
