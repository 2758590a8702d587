"""What people expect of any command line, of every command there is."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from draftcert.cli import commands, whole

RUNS = """
import contextlib, io, json, sys
from draftcert.cli import main
found = []
for command in json.load(sys.stdin):
    sys.argv[1:] = command
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main()
        except SystemExit as end:
            code = end.code
    found.append([code, out.getvalue(), err.getvalue(), "torch" in sys.modules])
sys.__stdout__.write(json.dumps(found))
"""


def at_once(commands: list[list[str]], **environment: str) -> list[list]:
    """Run commands one after another in one process: status, output, errors, whether torch was loaded."""
    run = subprocess.run(
        [sys.executable, "-c", RUNS],
        input=json.dumps([list(map(str, command)) for command in commands]),
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=120,
        check=True,
    )
    return json.loads(run.stdout)


EVERY = [(name.split()[1:], command) for name, command in commands(whole())]
"""Every command there is, by what one types for it."""
assert len(EVERY) > 15


def test_every_command_has_help_version_and_quiet_within_40_columns(draftcert, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    for command in ([*path, option] for path, _ in EVERY for option in ("--help", "--version")):
        code, out, err = draftcert(*command)
        assert (code, err) == (0, ""), command
        if command[-1] == "--version":
            assert out == f"draftcert {version('draftcert')}\n"
            continue
        assert all(len(line) <= 40 for line in out.splitlines()), (command, max(out.splitlines(), key=len))
        assert "--quiet" in out
        assert "…" not in out, "no name is cut"


def mistyped() -> Iterator[tuple[list[str], str]]:
    """Command lines with a word that is wrong in one letter, and what was meant."""
    for path, command in EVERY:
        for option in getattr(command, "params", ()):
            name = max(option.opts, key=len)
            if name.startswith("--"):
                yield [*path, f"{name}x", "1"], name
        if path:
            yield [*path[:-1], f"{path[-1]}x"], path[-1]


def test_every_option_and_command_that_is_mistyped_is_suggested(draftcert):
    for command, name in mistyped():
        code, out, err = draftcert(*command)
        assert (code, out) == (2, ""), command
        assert f"{name}" in err.partition("Did you mean")[2], err


RULE_AND_PATH = [
    *(("generate", "--prompt", "x"), ("audit",), ("validate",)),
    *(("audit", "logprobs", __file__), ("certify", "--probs", "1/2,1/2")),
]


def cheap(tmp_path) -> Iterator[tuple[list[str], str]]:
    """Arguments that are wrong whatever model there is, and what the message has to say."""
    under = f"{__file__}/below"
    yield from (([*command, "--rule", "aditive(1/2)"], "did you mean additive?") for command in RULE_AND_PATH)
    for path, command in EVERY:
        arguments = sum(each.nargs == 1 and each.opts[0][0] != "-" for each in command.params)
        need = ["MODEL"] if path == ["doctor"] else [__file__] * arguments
        for option in command.params:
            flag = max(option.opts, key=len)
            if flag in ("--out", "--trace", "--witness"):
                yield [*path, *need, flag, under], f"'{flag}': cannot write {under}"
            if flag in ("--prompts", "--file"):
                yield [*path, *need, flag, under], f"'{flag}': cannot read {under}"
            if flag == "--target":
                yield [*path, *need, flag, "./absent"], "absent"
                yield [*path, *need, flag, "smolm2"], "did you mean smollm2?"
                yield [*path, *need, flag, "nobody/nothing"], "hub of Hugging Face does not answer"
            if flag == "--drafter":
                yield [*path, *need, flag, "layers:9-1"], "cannot read the layers '9-1'"
            if flag == "--dtype":
                yield [*path, *need, flag, "float23"], "did you mean float"
            if flag == "--device":
                yield [*path, *need, flag, "cudo"], "did you mean cuda?"
    yield ["generate", "--prompt", "x", "--drafter", "recyclin+lookup"], "did you mean recycling"
    yield ["generate", "--prompt", "x", "--drafter", "lookup+recycling:prio"], "recycling takes 'prior'"
    yield ["audit", "--drafter", "lookup"], "no drafter is called 'lookup'; there are layers, smollm2"
    yield ["generate", "--prompt", "x", "--choice", "long"], "did you mean longest?"
    yield ["doctor", "nobody/nothing"], "hub of Hugging Face does not answer"
    yield ["verify", under], "cannot read"
    yield ["explain", __file__, str(tmp_path)], "is a folder"
    yield ["recommend", under], "does not exist"
    yield ["certify", "--probs", "1/2,1/2", "--logit-ratio", "x"], "the ratio = 'x' is not a number"
    yield ["bench", "kernels", "--shape", "64"], "64x151936"


def test_what_is_cheap_to_check_is_checked_before_anything_is_loaded(tmp_path):
    cases = list(cheap(tmp_path))
    assert len(cases) > 40
    found = at_once([command for command, _ in cases], HF_HUB_OFFLINE="1")
    for (command, message), (code, out, err, torch) in zip(cases, found, strict=True):
        assert (code, out) == (2, ""), (command, err)
        assert message in err, (command, err)
        assert len(err.splitlines()) == 1, err
        assert not torch, command
    assert not list(tmp_path.iterdir())


def test_a_hub_that_does_not_answer_is_asked_once(tmp_path):
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path), "NO_PROXY": "*"}
    for command in (["doctor", "nobody/nothing"], ["audit", "--drafter", "nobody/nothing"]):
        ((code, _, err, *_),) = at_once([command], **nowhere)
        assert code == 2
        assert err.startswith("error: Invalid value for '")
        assert "there is no folder 'nobody/nothing'" in err
        assert len(err.splitlines()) == 1


MESSAGES: list[tuple[list[str], str]] = [
    (
        ["certify", "--probs", "1/2,1/2", "--candidates", "2"],
        "--candidates 2: give a whole number from 1 to 1, as there are 2 tokens",
    ),
    (["certify", "--probs", "0.5,0.4"], "sum to 9/10, not 1; --normalize divides"),
    (["certify", "--probs", "0.5,0.5,1e-400"], "sum to 1 + 1e-400, not 1"),
    (["certify", "--probs", "0.5,0.5,-1e-400"], "probability 2 is -1e-400"),
    (["certify", "--probs", "0.5,1e400"], "sum to 1e+400, not 1"),
    (["certify", "--probs", "1/2,1/2", "--rule", "mars(0.9)"], "--logit-ratio z_(2)/z_(1)"),
    (["certify", "--probs", "1,0", "--rule", "top_m(1) and top_m(2)"], "write a single & between two rules"),
    (["certify", "--probs", "1,0", "--rule", "strict_greedy OR top_m(2)"], "write a single | between two rules"),
    (["certify", "--probs", "1,0", "--rule", "(top_m(1) && top_m(2))"], "write a single & between two rules"),
    (["certify", "--probs", "1,0", "--rule", "typical(epsilo=0.1, delta=0.2)"], "did you mean epsilon?"),
    (["certify", "--probs", "1,0", "--rule", "medusa_typicl(0.1, 0.2)"], "did you mean medusa_typical?"),
    (["cite", "t5"], "did you mean T5?"),
    (["cite", "certficate"], "did you mean certificate?"),
    (["derive", "--only", "M77"], "did you mean M7?"),
    (["check", "--only", "addtive", "--no-coq"], "no theorem or formula is called 'addtive'"),
    (["validate", "--profile", "quik"], "did you mean quick?"),
    (["validate", "--profile", "soak"], "'soak' needs --hours"),
    (["validate", "--seed", "-1"], "--seed -1: give a whole number, 0 or more"),
    (["audit", "--acceptance", "0"], "--acceptance 0.0: give a share"),
    (["bench", "kernels", "--shape", "\u0661x2"], "write rows x vocabulary"),
    (["audit", "--device", "cuda:\u0661"], "no device is called"),
    (["bench", "kernels", "--shape", "99999999999x99999999999"], "it does not fit into the memory"),
    (["bench", "kernels", "--shape", "10000000x10000000"], "it does not fit into the memory"),
]


@pytest.mark.parametrize(("arguments", "message"), MESSAGES)
def test_messages_are_in_the_words_of_a_command_line(arguments, message, draftcert):
    code, _, err = draftcert(*arguments)
    assert code == 2
    assert message in err
    assert not re.search(r"\b[a-z]+_?[a-z]* = [\dTF]", err), "names of Python's arguments"


def test_a_dash_reads_standard_input(draftcert, tmp_path):
    witness = tmp_path / "witness.json"
    run = draftcert("certify", "--file", "-", "--witness", witness, input="0.5 0.45 0.05")
    assert run.stdout.startswith("certificate  0.0013163976")
    assert draftcert("verify", "-", input=witness.read_text()).stdout.startswith("confirmed")
    answer = {"choices": [{"logprobs": {"content": [{"token": "a", "logprob": -0.1, "top_logprobs": []}]}}]}
    run = draftcert("audit", "logprobs", "-", input=json.dumps(answer))
    assert "standard input holds no top log-probabilities" in run.stderr
    run = draftcert("generate", "--prompts", "-", input='{"prompt": "x"}\n{"prompt": 1}')
    assert "standard input, line 2: no prompt in it" in run.stderr
    run = draftcert("explain", "-", witness, "--prompt", "x", input="x")
    assert "give --target" in run.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["cite"], ["no"]])
def test_a_reader_that_leaves_is_no_error(arguments):
    reading, writing = os.pipe()
    os.close(reading)
    run = subprocess.run(
        [sys.executable, "-m", "draftcert", *arguments], stdout=writing, stderr=subprocess.PIPE, text=True, timeout=100
    )
    os.close(writing)
    if arguments == ["no"]:
        assert run.returncode == 2
    else:
        assert (run.returncode, run.stderr) == (141, "")


def test_a_full_disk_is_one_line():
    command = [sys.executable, "-m", "draftcert", "--help"]
    with open("/dev/full", "w") as full:
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=100)
    assert (run.returncode, run.stderr) == (2, "error: No space left on device\n")


def test_nothing_is_coloured_where_that_is_asked_and_tables_fit(tmp_path):
    own = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}

    def on_terminal(columns: int, **environment: str) -> str:
        shown = tmp_path / "shown"
        run = f"{sys.executable} -m draftcert cite typical_floor T5"
        subprocess.run(
            ["script", "-qec", f"stty cols {columns}; {run}", str(shown)],
            env={**own, "TERM": "xterm-256color", **environment},
            capture_output=True,
            timeout=100,
            check=False,
        )
        return shown.read_text()

    assert "\x1b[1m" in on_terminal(100)
    assert "\x1b[" not in on_terminal(100, NO_COLOR="1")
    plain = on_terminal(30, NO_COLOR="1")
    assert "name: typical_floor" in plain
    assert "evaluate_posterior" in plain, "no word of a cell is broken"


def test_a_shell_completes_commands_options_and_rules(draftcert, monkeypatch):
    def completed(line: str) -> list[str]:
        words = line.split(" ")
        asked = {"_DRAFTCERT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        with monkeypatch.context() as patch:
            for name, value in asked.items():
                patch.setenv(name, value)
            return draftcert().stdout.split()

    assert "certify" in completed("draftcert cert")
    assert completed("draftcert certify --wit") == ["--witness"]
    assert completed("draftcert audit logprobs --qui") == ["--quiet"]
    assert "medusa_typical" in completed("draftcert certify --rule medusa")
    command = ["bash", "-c", '"$@" --show-completion < /dev/null', "bash", sys.executable, "-m", "draftcert"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=100)  # of the shell that asks
    assert "_DRAFTCERT_COMPLETE" in shown.stdout


def test_quiet_is_silent_but_for_results(draftcert, tmp_path):
    file = tmp_path / "p"
    file.write_text("1 0")
    for arguments in (["--quiet", "certify", "--file", file], ["certify", "--file", file, "-q"]):
        run = draftcert(*arguments)
        assert (run.stdout.partition("\n")[0], run.stderr) == ("certificate  0.69314718055994530942 nats", "")
    runs = """
import typer
from draftcert.cli import console, main

console.notes._force_terminal = True
program = typer.Typer()

@program.command()
def work():
    with console.progress() as bar:
        bar.add_task("working")
    with console.status("working"):
        console.out.print("result")

main(program)
"""
    loud, quiet = (
        subprocess.run([sys.executable, "-c", runs, *more], capture_output=True, text=True, timeout=100)
        for more in ([], ["--quiet"])
    )
    assert loud.stdout == quiet.stdout == "result\n"
    assert loud.stderr
    assert quiet.stderr == ""


def processes_of(group: int) -> list[str]:
    """The processes of a group that still run."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = file.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its_group) == group and state != "Z":
            found.append(file.parent.name)
    return found


def test_an_interrupted_validation_ends_at_once_with_all_its_processes():
    run = subprocess.Popen(
        [sys.executable, "-m", "draftcert", "validate", "--profile", "full", "--processes", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background ignore it
    )
    until = time.monotonic() + 100
    while len(processes_of(run.pid)) < 4 and time.monotonic() < until:  # itself, two workers, multiprocessing's own
        time.sleep(0.1)
    try:
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does
        out, err = run.communicate(timeout=60)
        assert (run.returncode, out, err) == (130, "", "interrupted\n")
        while processes_of(run.pid) and time.monotonic() < until:
            time.sleep(0.1)
        assert processes_of(run.pid) == []
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
