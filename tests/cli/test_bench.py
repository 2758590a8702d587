"""`draftcert bench`: every competitor is measured, and the documents say what was found."""

import json
import re
from functools import partial
from xml.etree import ElementTree

import pytest

from draftcert.runtime.rows import benchmark


def table(rows, dtype, **milliseconds):
    times = {name: {"median": value, "low": value, "high": value} for name, value in milliseconds.items()}
    return {"rows": rows, "vocabulary": benchmark.VOCABULARY, "dtype": dtype, "megabytes": 38.9, "milliseconds": times}


def test_goals_are_judged_by_the_worst_table_that_they_speak_of():
    tables = [
        table(64, "float32", **{"x.sum()": 1.0, "row_stats": 1.4, "eager torch": 56.0, "certify strict_greedy": 1.47}),
        table(64, "bfloat16", **{"x.sum()": 1.0, "row_stats": 1.7, "eager torch": 34.0, "certify strict_greedy": 2.0}),
        table(1, "float32", **{"x.sum()": 1.0, "row_stats": 2.0, "eager torch": 24.0}),
    ]
    found = {goal["goal"]: (goal["found"], goal["met"]) for goal in benchmark.goals(tables)}
    assert found["row_stats / x.sum() at most 1.35 (64 rows, float32)"] == (pytest.approx(1.4), False)
    assert found["row_stats / x.sum() at most 1.8 (64 rows, bfloat16)"] == (pytest.approx(1.7), True)
    assert found["eager torch / row_stats at least 30 (64 rows)"] == (pytest.approx(20), False)
    assert found["eager torch / row_stats at least 12 (1 rows)"] == (pytest.approx(12), True)
    assert found["certify strict_greedy / row_stats at most 1.1 (64 rows)"] == (pytest.approx(2 / 1.7), False)
    assert len(found) == 5


def test_every_round_takes_every_competitor_once():
    seen: list[str] = []
    calls = {name: partial(seen.append, name) for name in "abc"}

    def timed(call):
        call()
        return float(len(seen))

    times = benchmark.interleaved(calls, 4, timed)
    rounds = [seen[i : i + 3] for i in range(0, len(seen), 3)]
    assert [sorted(order) for order in rounds] == [["a", "b", "c"]] * 6
    assert len({tuple(order) for order in rounds}) > 1
    assert all(time.low <= time.median <= time.high for time in times.values())


def test_bench_kernels(draftcert, tmp_path):
    options = ("--shape", "2x3000", "--rounds", "2", "--threads", "1", "--no-compile", "--out", tmp_path, "--json")
    run = draftcert("bench", "kernels", *options)
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report == json.loads((tmp_path / "kernels.json").read_text())
    names = ["x.sum()", "copy", "row_stats", "certify strict_greedy", "certify typical", "eager torch"]
    for found in report["tables"]:
        assert list(found["milliseconds"]) == names
        assert all(0 < time["low"] <= time["median"] <= time["high"] for time in found["milliseconds"].values())
    assert {"processor", "instructions", "torch"} <= set(report["machine"])
    text = (tmp_path / "kernels.md").read_text()
    assert len(re.findall(r"\| 2 x 3000 (float32|bfloat16) \|", text)) == 2 * len(names)
    assert ElementTree.parse(tmp_path / "kernels.svg").getroot().tag.endswith("svg")
