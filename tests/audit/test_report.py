import json
import math
import re
import shutil
from pathlib import Path

import pytest

from draftcert.audit.recommendation import Wanted, recommend
from draftcert.audit.records import Audit
from draftcert.audit.report import as_markdown, readable, write_report
from draftcert.audit.run import Configuration, run_audit
from draftcert.audit.tables import Table
from draftcert.theory import DraftcertError


@pytest.fixture(scope="module")
def report(audited):
    return write_report(audited)


def test_the_same_audit_gives_the_same_bytes(report, audited, tmp_path):
    folder = tmp_path / "again"
    shutil.copytree(audited, folder)
    again = write_report(folder)
    for first, second in ((report.html, again.html), (report.markdown, again.markdown), (report.json, again.json)):
        assert first.read_bytes() == second.read_bytes()


def test_markdown_and_json_hold_every_table(report):
    document = json.loads(report.json.read_text())
    markdown = report.markdown.read_text()
    for section in report.sections:
        assert f"## {section.title}" in markdown
        for table in section.tables:
            assert f"### {table.title}" in markdown
            assert table.reading in markdown
            found = document["tables"][table.key]
            assert found["columns"] == list(table.columns)
            assert len(found["rows"]) == len(table.rows) > 0


def test_it_leads_with_the_answer_and_the_evidence_agrees(report, audited):
    page, markdown, document = report.html.read_text(), report.markdown.read_text(), json.loads(report.json.read_text())
    questions = ["What is guaranteed", "What to set", "What it costs", "Is it worth serving"]
    assert [each["question"] for each in document["answers"]] == questions
    for text, evidence in ((page, 'id="settings"'), (markdown, "## Recommended settings")):
        places = [text.index(question) for question in questions]
        assert places == sorted(places)
        assert places[-1] < text.index(evidence)
    rows = [dict(zip(t["columns"], row, strict=True)) for t in [document["tables"]["sweep"]] for row in t["rows"]]
    strict = next(row for row in rows if (row["rule"], row["candidates"]) == ("strict_greedy", 1))
    shares = [float(share) for share in re.findall(r"([\d.]+) %", report.answers[0].short + report.answers[0].text)]
    expected = [100 * strict[name] for name in ("certified", "measured", "guaranteed")]
    assert shares == pytest.approx(expected, abs=0.1)
    assert all(share <= value for share, value in zip(shares, expected, strict=True)), "rounded down"
    best = write_report(audited, Wanted(0.1, "measured")).answers[1:]
    table = json.loads(report.json.read_text())["tables"]["recommendation"]
    risks = {row[0]: row[table["columns"].index("risk")] for row in table["rows"] if row[1] == "yes"}
    least = min(risks.values())
    assert risks[best[0].short.partition(": ")[0]] == least
    assert ("Nothing in quality" in best[1].short) == (least == 0)
    never = write_report(audited, Wanted(1.0, "certified")).answers[1]
    assert never.short == "Nothing reaches 100 % certified acceptance"
    assert "The most without a risk is " in never.text
    write_report(audited)


def test_a_figure_is_told_in_words(report):
    page = report.html.read_text()
    for table in (table for section in report.sections for table in section.tables if table.chart):
        told = re.search(rf'<desc id="{table.key}-told">([^<]*)</desc>', page)
        assert told, table.key
        for line in table.chart.lines:
            values = [row[table.columns.index(line)] for row in table.rows]
            finite = [value for value in values if value is not None and math.isfinite(value)]
            if finite:
                assert f"{line}: {finite[0]:.3g} at" in told[1]
                assert f"{max(finite):.3g}" in told[1].partition(f"{line}: ")[2]


def test_text_of_a_model_cannot_leave_its_place(audited, tmp_path, monkeypatch):
    folder = tmp_path / "hostile"
    shutil.copytree(audited, folder)
    trace = Audit.open(folder).trace()
    assert trace
    trace["steps"][0]["before"] = "</script><script>alert(1)</script>"
    monkeypatch.setattr(Audit, "trace", lambda self: trace)
    asked = json.loads((folder / "audit.json").read_text())
    asked["configuration"]["target"] = "<img src=x onerror=alert(1)>"
    (folder / "audit.json").write_text(json.dumps(asked))
    html = write_report(folder).html.read_text()
    assert "<img src=x" not in html
    assert "alert(1)</script>" not in html


def test_a_target_alone_has_a_report_without_a_drafter_s_pages(tiny_model, prompts, tmp_path):
    run_audit(tmp_path, Configuration(str(tiny_model), None, 6), prompts[:2])
    report = write_report(tmp_path)
    assert report.answers[0].short.startswith("80 % acceptance below a mean KL of ")
    assert report.answers[1].short == "No drafter was audited"
    assert "training" not in [section.key for section in report.sections]
    assert "no mean KL to judge by" in report.markdown.read_text()
    with pytest.raises(DraftcertError, match="--mean-kl"):
        recommend(Audit.open(tmp_path), Wanted())
    assert recommend(Audit.open(tmp_path), Wanted(0.5, mean_kl=0.0))[0].reached


@pytest.mark.parametrize("change", [lambda prompts: [], lambda prompts: [*reversed(prompts)]])
def test_prompts_that_were_not_measured_are_refused(audited, tmp_path, change):
    copied = shutil.copytree(audited, tmp_path / "audit")
    asked = json.loads((copied / "audit.json").read_text())
    assert len(asked["prompts"]) > 1
    (copied / "audit.json").write_text(json.dumps(asked | {"prompts": change(asked["prompts"])}))
    with pytest.raises(DraftcertError, match="names other prompts than were measured"):
        Audit.open(copied)


def test_an_unfinished_audit_is_named(audited, tmp_path):
    with pytest.raises(DraftcertError, match="no audit in"):
        write_report(tmp_path)
    shutil.copy(audited / "audit.json", tmp_path)
    with pytest.raises(DraftcertError, match="is not finished"):
        write_report(tmp_path)


def test_the_documented_reproduction_shows_its_own_numbers():
    docs = Path(__file__).parents[2] / "docs"
    published = json.loads((docs / "reproduction" / "smollm2.json").read_text())["tables"]["beside_published"]
    table = Table("beside_published", "", "", tuple(published["columns"]), published["rows"])
    assert "\n".join(as_markdown(table)) in (docs / "reproduction.md").read_text()


def test_readable_numbers():
    assert [readable(v) for v in (None, 0.0, float("inf"), 0.12345, 1234.5, 7)] == ["–", "0", "∞", "0.123", "1234", "7"]
