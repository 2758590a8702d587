"""`draftcert explore`."""

import json
import webbrowser

import pytest

from draftcert.cli.explore import explore
from draftcert.document.explorer import explorer_fragment
from draftcert.theory import DraftcertError


@pytest.fixture
def opened(monkeypatch):
    addresses: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: not addresses.append(address))
    return addresses


def test_the_page_is_written_and_opened_at_the_row(opened, tmp_path, capsys):
    file = tmp_path / "explorer.html"
    explore("top_m(2)", logits="2.5, -1 0", candidates=1, output=file, as_json=True)
    address = file.as_uri() + explorer_fragment("top_m(2)", ["2.5", "-1", "0"], 1, kind="logits")
    assert opened == [address]
    assert json.loads(capsys.readouterr().out) == {"file": str(file), "address": address, "opened": True}
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_nothing_is_opened_where_none_is_wanted(opened, tmp_path, capsys):
    explore(output=tmp_path / "explorer.html", browser=False)
    assert opened == []
    assert "#rule=strict_greedy&probabilities=0.5,0.45,0.05" in capsys.readouterr().out


def test_a_row_is_given_once_and_rules_are_read_first(opened, tmp_path):
    file = tmp_path / "explorer.html"
    with pytest.raises(DraftcertError, match="give the row once"):
        explore(probs="1,0", logits="1,0", output=file)
    with pytest.raises(DraftcertError, match="no rule is called"):
        explore("greedy", output=file)
    assert not file.exists()
