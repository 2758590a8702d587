"""Values that are made once."""

import json

import pytest

from draftcert.support import cache
from draftcert.support.cache import cache_folder, cached


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "user_cache_path", lambda name: tmp_path / name)


def test_a_value_is_made_once_for_an_identity_and_anew_when_damaged_or_asked(capsys):
    made = []

    def value(model, refresh=False):
        return cached("latency", {"model": model}, int, lambda: made.append(model) or len(made), refresh)

    assert [value("a"), value("a"), value("b"), value("a")] == [1, 1, 2, 1]
    assert value("a", refresh=True) == value("a") == 3
    for damage in ("", "{", "{}", "[]", '{"value": "no number"}'):
        (first,) = (path for path in cache_folder("latency").glob("*.json") if '"model": "a"' in path.read_text())
        first.write_text(damage or first.read_text().replace('"value": ', '"value": 1'))
        assert value("a") == len(made)
        found = json.loads(first.read_text())
        assert (found["identity"], found["value"]) == ({"model": "a"}, len(made))
        assert first.with_name(f"{first.name}.damaged").exists()
        assert "is damaged" in capsys.readouterr().err
    assert made == [*"aba", *"aaaaa"]
