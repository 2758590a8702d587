"""Text of unknown origin on a real terminal: what it shows is what the program says."""

import json
import shutil
import subprocess
import sys
import time

import pytest

ATTACKS = {
    "clear": "\x1b[2J\x1b[Hverdict: identical",
    "line": "x\nverdict: identical",
    "return": "x\rverdict: identical",
    "title": "\x1b]0;pwned\x07",
    "direction": "\u202eabc\u2066",
    "one-byte": "\x9b2Jverdict: identical",
    "separator": "x\u2028verdict: identical",
    "alternate": "\x1b[?1049h\x1b[31mverdict: identical",
}


def commands(tmp_path):
    """Commands that print text which somebody else has written: ids, file names, rules, server messages."""
    for name, text in ATTACKS.items():
        answer = tmp_path / f"{name}.json"
        answer.write_text(json.dumps({"error": {"message": text}}))
        prompts = tmp_path / f"{name}.jsonl"
        prompts.write_text(json.dumps({"id": text, text: 1}))
        yield ["certify", "--probs", text]
        yield ["certify", "--probs", "0.5,0.5", "--rule", text]
        yield ["certify", "--file", text]
        yield ["certify", f"--{text}", "1"]
        yield ["audit", "logprobs", str(answer)]
        yield ["audit", "--prompts", str(prompts), "--out", str(tmp_path / "out")]
        yield ["audit", "--target", f"./{text}", "--out", str(tmp_path / "out"), "--limit", "1"]
        yield ["cite", text]
        yield ["derive", "--only", text]
        yield [text]


def test_every_command_writes_one_plain_line(draftcert, tmp_path):
    runs = [draftcert(*command) for command in commands(tmp_path)]
    assert {(run.returncode, run.stdout) for run in runs} == {(2, "")}
    for run in runs:
        (first, *others) = run.stderr.splitlines()
        assert first.startswith("error: ")
        for line in (first, *others):
            assert line.isprintable(), repr(line)
        assert all(line.startswith("  ") for line in others), others


RUNS = """
import json, sys
from draftcert.cli import main
from draftcert.cli import app
for command in json.load(open(sys.argv[1])):
    sys.argv[1:] = command
    try:
        main(app)
    except SystemExit as end:
        assert end.code == 2, (command, end.code)
print("done")
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "run.py").write_text(RUNS)
    (tmp_path / "commands.json").write_text(json.dumps(list(commands(tmp_path))))
    return [sys.executable, str(tmp_path / "run.py"), str(tmp_path / "commands.json")]


def test_a_real_terminal_shows_it(program, tmp_path):
    if shutil.which("tmux") is None:
        pytest.skip("no tmux: apt-get install tmux")
    tmux = ["tmux", "-L", f"draftcert-{tmp_path.name}", "-f", "/dev/null"]
    quoted = " ".join(map(repr, program))
    subprocess.run(
        [*tmux, "new-session", "-d", "-x", "200", "-y", "50", "-n", "kept", f"cd {tmp_path}; {quoted}; sleep 60"]
    )
    subprocess.run([*tmux, "set-option", "-g", "history-limit", "5000"])
    try:
        screen, until = "", time.monotonic() + 120
        while "done" not in screen.splitlines() and time.monotonic() < until:
            time.sleep(0.2)
            screen = subprocess.run([*tmux, "capture-pane", "-pJ", "-S", "-"], capture_output=True, text=True).stdout
        titles = subprocess.run(
            [*tmux, "display", "-p", "#{pane_title} #{alternate_on}"], capture_output=True, text=True
        ).stdout
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
    lines = [line for line in screen.splitlines() if line]
    assert lines[-1] == "done"
    assert sum(line.startswith("error: ") for line in lines) == 10 * len(ATTACKS)
    assert not any(line.startswith("verdict") for line in lines)
    assert "pwned" not in titles
    assert titles.split()[-1] == "0"
