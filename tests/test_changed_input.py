"""Every reader is given 20,000 changed inputs: each is read, or refused in one line that names it, and that is all.

Some readers are slow and get fewer: chat templates (1,000: jinja compiles each), Parquet with a seal made to fit
(200; without, 20,000), answers and outputs of engines (2,000). The
readers of models are tried in `runtime/models/test_untrusted_models.py`.
"""

import io
import json
import random
import shutil
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from draftcert.audit import check_answers, conformance_vectors
from draftcert.audit.lossless import read_outputs
from draftcert.audit.prompts import Prompt, _parse, read_prompts
from draftcert.audit.records import Audit
from draftcert.audit.run import Configuration, run_audit
from draftcert.cli.explain import _outputs
from draftcert.numerics.row import read_row
from draftcert.runtime.models import load_model, token_ids
from draftcert.runtime.names import read_layers
from draftcert.support import files
from draftcert.support.files import SEAL, is_sealed, json_lines, parse_json, seal
from draftcert.theory import DraftcertError, parse_rule

MANY = 20_000
PIECES = (
    *("0", "9" * 50, "1e999999999", "-", "/", "(", ")", "[", "]", "{", "}", '"', ",", ":", "&", "|", "null", "true"),
    *("NaN", "\\", "\\ud800", "\x00", "\x1b[2J", "\u2028", "\ufeff", "é", "top_m(", "=", ".", "#", "\n", "1e400"),
)


def changes(text: str, count: int = MANY) -> Any:
    """Texts with a few characters changed, taken away, doubled or put in, always the same ones."""
    draw = random.Random(text)
    for _ in range(count):
        changed = text
        for _ in range(draw.choice((1, 1, 2, 5))):
            start = draw.randrange(len(changed) + 1)
            end = min(len(changed), start + draw.choice((0, 1, 1, 3, 20)))
            piece = draw.choice((draw.choice(PIECES), "", changed[start:end] * 2, chr(draw.randrange(32, 127))))
            changed = changed[:start] + piece + changed[end:]
        yield changed


def refused(read: Callable[[], Any]) -> bool:
    """Whether what is read is refused: in one line of bounded length."""
    try:
        read()
    except DraftcertError as error:
        text = str(error)
    else:
        return False
    assert "\n" not in text, text
    assert len(text) < 3000, text
    return True


def test_rules():
    whole = "(top_m(10) | additive(t=3e-1/7))"
    assert 0.5 * MANY < sum(refused(lambda: parse_rule(text)) for text in changes(whole)) < MANY  # noqa: B023


def test_rows():
    whole = "0.5,1/4,2.5e-1"

    def read(text: str) -> None:
        read_row(text.split(","), normalize=True)

    assert 0.2 * MANY < sum(refused(lambda: read(text)) for text in changes(whole)) < MANY  # noqa: B023


def test_json():
    whole = json.dumps({"a": [1, 2.5, None, True, {"b": "text"}], "c": {"d": [[[0]]]}})
    assert 0.5 * MANY < sum(refused(lambda: parse_json(text, "it")) for text in changes(whole)) < MANY  # noqa: B023
    for deep in ("[", '{"a":', "[{"):
        assert refused(lambda: parse_json(deep * 200_000, "it"))  # noqa: B023


def test_prompts(tmp_path):
    whole = "\n".join(
        json.dumps(record)
        for record in (
            {"id": "1", "category": "x", "prompt": "text"},
            {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
            {"turns": ["a", "b"]},
            {"text": "c"},
        )
    )
    path = tmp_path / "prompts.jsonl"

    def check(prompts: Iterable[Prompt]) -> None:
        for prompt in prompts:
            assert isinstance(prompt.text, str)

    def through_a_file(text: str) -> None:
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        check(read_prompts(path))

    lines = [list(enumerate(io.StringIO(text), 1)) for text in changes(whole)]
    assert 0.2 * MANY < sum(refused(lambda: check(_parse(each, "it", True))) for each in lines) < MANY  # noqa: B023
    assert 100 < sum(refused(lambda: through_a_file(text)) for text in changes(whole, 500)) < 500  # noqa: B023


def test_answers_of_engines(tmp_path):
    vectors = conformance_vectors()
    kinds = ("tree_inputs/chain", "greedy/tree/empty.float32", "sampling/match/empty_draft")
    answers = {each["id"]: each["expected"] for each in vectors["cases"] if each["id"] in kinds}
    answers[kinds[2]] = {"counts": [[[0], 5000], [[1], 3125], [[2], 1250], [[3], 625]]}
    head = {"format": vectors["format"], "vectors_sha256": vectors["sha256"], "engine": "x"}
    whole = json.dumps(head | {"suites": ["tree_inputs", "greedy/tree", "sampling/match"], "answers": answers})
    path = tmp_path / "answers.json"

    def read(text: str) -> None:
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        found = check_answers(path)
        assert not found.passed
        assert len(found.answered) > 20

    assert 0.3 * 2000 < sum(refused(lambda: read(text)) for text in changes(whole, 2000)) < 2000  # noqa: B023


def test_outputs_of_engines(tmp_path):
    whole = "\n".join(json.dumps({"id": name, "prompt_tokens": [1, 2], "tokens": [3, 4]}) for name in "ab")
    path = tmp_path / "outputs.jsonl"

    def read(text: str) -> None:
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        assert all(each.prompt for each in read_outputs(path).values())

    assert 0.3 * 2000 < sum(refused(lambda: read(text)) for text in changes(whole, 2000)) < 2000  # noqa: B023


def test_layers():
    assert 0 < sum(refused(lambda: read_layers(text)) for text in changes("0-3,5,7-9")) < MANY  # noqa: B023


def test_outputs_to_explain(tmp_path):
    record = {"id": "1", "prompt_tokens": [1, 2], "tokens": [3, 4, 5]}
    whole = json.dumps({"target": "x", "prompts": [record, record]})
    target: Any = SimpleNamespace(tokenizer=lambda *_, **__: {"input_ids": [1]}, encode=lambda _: SimpleNamespace())

    def read(text: str) -> None:
        try:
            document = json.loads(text)
        except ValueError:
            document = text
        for output in _outputs(document, tmp_path, None, target):
            assert all(isinstance(token, int) for token in output.tokens)

    assert 0.5 * MANY < sum(refused(lambda: read(text)) for text in changes(whole)) < MANY  # noqa: B023


def test_logs(tmp_path):
    path = tmp_path / "log.jsonl"
    with json_lines(path, {"seed": 0}) as (_, add):
        add({"digits": 41.5, "text": "é"})
    whole = path.read_text()
    line = whole.splitlines(keepends=True)[1]
    found = [files._unsealed(text.encode("utf-8", "surrogatepass")) for text in changes(line)]
    assert all(each in (None, ({"digits": 41.5, "text": "é"},)) for each in found)
    for text in changes(whole, 60):
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        with json_lines(path, {"seed": 0}) as (kept, _):
            assert all(each in ({"seed": 0}, {"digits": 41.5, "text": "é"}) for each in kept)


@pytest.fixture(scope="module")
def audit(tmp_path_factory, model):
    folder = tmp_path_factory.mktemp("audit")
    run_audit(folder, Configuration(str(model), None, 4), [Prompt("1", "", "w1 w2")])
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    import tokenizers
    import transformers

    folder = tmp_path_factory.mktemp("model")
    sizes: dict[str, Any] = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=61, **sizes)).save_pretrained(folder)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(61)}, unk_token="w0"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(folder)
    return folder


def test_claims_of_audits(audit, tmp_path, monkeypatch):
    shutil.copytree(audit, tmp_path / "audit")
    file = tmp_path / "audit" / "audit.json"
    whole = file.read_text()
    monkeypatch.setattr("draftcert.audit.records.is_sealed", lambda path: True)

    def read(text: str) -> None:
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        Audit.open(tmp_path / "audit")

    assert 0.2 * MANY < sum(refused(lambda: read(text)) for text in changes(whole)) < MANY  # noqa: B023


def test_parquet(audit, tmp_path):
    path, draw = tmp_path / "small.parquet", random.Random(0)
    pq.write_table(pa.table({"a": [1, 2]}).replace_schema_metadata({"seal": SEAL}), path)
    seal(path)
    assert is_sealed(path)
    whole = path.read_bytes()
    for _ in range(MANY):
        content = bytearray(whole)
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        path.write_bytes(content if draw.randrange(4) else content[: draw.randrange(len(content))])
        assert not is_sealed(path)
    shutil.copytree(audit, tmp_path / "audit")
    path = tmp_path / "audit" / "positions.parquet"
    content = path.read_bytes()
    start = content.rfind(SEAL[:-64].encode())
    plain = content[:start] + SEAL.encode() + content[start + len(SEAL) :]

    def read() -> None:
        opened = Audit.open(tmp_path / "audit")
        for name in ("text", "top_logprobs", "entropy"):
            opened.column(name)

    errors = 0
    for _ in range(200):
        changed = bytearray(plain)
        for at in draw.choices((*range(200), *range(len(plain) * 2 // 3, len(plain))), k=3):
            changed[at] = draw.randrange(256)
        if SEAL.encode() in changed:
            path.write_bytes(changed)
            seal(path)
            errors += refused(read)
    assert errors > 20


def test_chat_templates(model):
    tokenizer = load_model(model).tokenizer
    whole = "{% for m in messages %}{% if m.role == 'user' %}w1 {{ m.content | trim }} {% endif %}{% endfor %}w2"
    errors = 0
    for text in changes(whole, 1_000):
        tokenizer.chat_template = text
        errors += refused(lambda: token_ids(tokenizer, [{"role": "user", "content": "w3"}]))
    assert 300 < errors < 1_000
