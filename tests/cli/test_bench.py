"""`draftcert bench`: every competitor is measured, and the documents say what was found."""

import json
import re
from functools import partial
from xml.etree import ElementTree

from draftcert.runtime.rows import benchmark


def table(rows, dtype, **medians):
    quotients = {name: {"median": value, "low": value - 0.1, "high": value + 0.1} for name, value in medians.items()}
    return {"rows": rows, "vocabulary": benchmark.VOCABULARY, "dtype": dtype, "quotients": quotients}


def test_goals_are_judged_by_the_worst_table_that_they_speak_of():
    read, eager, strict = "row_stats / x.sum()", "eager torch / row_stats", "certify strict_greedy / row_stats"
    tables = [
        table(64, "float32", **{read: 1.4, eager: 40.0, strict: 1.05}),
        table(64, "bfloat16", **{read: 1.7, eager: 20.0, strict: 1.15}),
        table(1, "float32", **{read: 2.0, eager: 12.0}),
        table(64, "float32", **{read: 9.0}) | {"vocabulary": 49_152},
    ]
    found = {goal["goal"]: (goal["found"], goal["met"]) for goal in benchmark.goals(tables)}
    assert found == {
        f"{read} at most 1.35 (64 rows, float32)": (1.4, False),
        f"{read} at most 1.8 (64 rows, bfloat16)": (1.7, True),
        f"{eager} at least 30 (64 rows)": (20.0, False),
        f"{eager} at least 12 (1 rows)": (12.0, True),
        f"{strict} at most 1.1 (64 rows)": (1.15, False),
    }


def test_a_quotient_is_of_calls_right_after_one_another():
    seen: list[str] = []
    slow, fast = (partial(seen.append, name) for name in ("slow", "fast"))
    pace = iter([1, 1, 1, 1, *(speed for speed in (1, 5, 2, 4, 3) for _ in range(2))])  # of a machine that is shared

    def timed(call):
        call()
        return next(pace) * {"slow": 3.0, "fast": 2.0}[seen[-1]]

    found = benchmark.quotient(slow, fast, 5, timed)
    assert (found.median, found.low, found.high) == (1.5, 1.5, 1.5)
    assert seen == ["fast", "slow", "slow", "fast"] * 3 + ["fast", "slow"]


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
        assert found["quotients"] == {}  # the goals speak of another vocabulary
    assert {"processor", "instructions", "torch"} <= set(report["machine"])
    text = (tmp_path / "kernels.md").read_text()
    assert len(re.findall(r"\| 2 x 3000 (float32|bfloat16) \|", text)) == 2 * len(names)
    assert ElementTree.parse(tmp_path / "kernels.svg").getroot().tag.endswith("svg")
