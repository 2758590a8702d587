"""Files are whole or not there; logs lose at most the line that was being written."""

import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from draftcert.support import files
from draftcert.support.files import (
    SEAL,
    is_sealed,
    json_lines,
    read_json,
    read_text,
    remove_partial,
    replacing,
    require_same,
    require_writable,
    seal,
    set_aside,
    text_lines,
    writable_folder,
    write_whole,
)
from draftcert.theory import DraftcertError


def test_a_file_is_replaced_when_the_block_ends_well_and_else_stays(tmp_path):
    path = tmp_path / "report"
    write_whole(path, "öld")

    def fails():
        with replacing(path) as partial:
            partial.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert path.read_text("utf-8") == "öld"
    with replacing(path) as partial:
        partial.write_text("new")
        assert path.read_text("utf-8") == "öld"
    assert path.read_text() == "new"
    assert [each.name for each in tmp_path.iterdir()] == ["report"]


def test_a_folder_appears_whole(tmp_path):
    with replacing(tmp_path / "model") as partial:
        (partial / "sub").mkdir(parents=True)
        (partial / "sub" / "weights").write_bytes(b"1")
        assert not (tmp_path / "model").exists()
    assert (tmp_path / "model" / "sub" / "weights").read_bytes() == b"1"

    def fails():
        with replacing(tmp_path / "other") as partial:
            partial.mkdir()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


def test_contents_reach_the_disk_before_the_name(tmp_path, monkeypatch):
    order, rename = [], os.rename
    monkeypatch.setattr(os, "fsync", lambda handle: order.append(os.readlink(f"/proc/self/fd/{handle}")))
    monkeypatch.setattr(os, "replace", lambda source, path: order.append("renamed") or rename(source, path))
    write_whole(tmp_path / "report", "text")
    partial, *rest = order
    assert partial.startswith(str(tmp_path / ".report."))
    assert rest == ["renamed", str(tmp_path)]


@pytest.mark.parametrize("name", ["n" * 255, "é" * 127, "a [x]*?", "new\nline", "\udcff"], ids=range(5))
def test_any_name_that_the_system_takes_is_written(name, tmp_path):
    write_whole(tmp_path / name, "text")
    with json_lines(tmp_path / f"{name[:80]}.jsonl", 1) as (_, add):
        add(2)
    assert (tmp_path / name).read_text() == "text"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "ledger.json")
    write_whole(tmp_path / "link", "{}")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "ledger.json").read_text() == "{}"


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DraftcertError, match=f"cannot write {tmp_path}/file/report: Not a directory"):
        write_whole(tmp_path / "file" / "report", "")
    with pytest.raises(DraftcertError, match=f"cannot write {tmp_path}: Is a directory"):
        write_whole(tmp_path, "")


KILLED = """
import sys
from draftcert.support.files import replacing
with replacing(sys.argv[1]) as partial, partial.open("w") as file:
    file.write("half")
    file.flush()
    print(flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_process_left_is_removed(tmp_path):
    path = tmp_path / "weights.bin"
    path.write_text("whole")
    run = subprocess.Popen([sys.executable, "-c", KILLED, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert run.stdout
    assert run.stdout.readline() == b"\n"
    run.kill()
    run.wait()
    assert path.read_text() == "whole"
    assert len(list(tmp_path.iterdir())) == 2
    remove_partial(tmp_path, "another")
    assert len(list(tmp_path.iterdir())) == 2
    remove_partial(tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_json_is_read_or_the_file_is_named(tmp_path):
    path = tmp_path / "audit.json"
    with pytest.raises(DraftcertError, match=r"cannot read .*audit.json: No such file"):
        read_json(path)
    for damage in (b"", b'{"a": 1', b"\xff\xfe\x00", b"[" * 10**6, b"1" * 10**6):
        path.write_bytes(damage)
        with pytest.raises(DraftcertError, match=r"audit.json is damaged"):
            read_json(path)


def test_a_log_goes_on_behind_its_last_whole_line(tmp_path):
    path = tmp_path / "log.jsonl"
    with json_lines(path, ["quick", 1]) as (found, add):
        assert found == []
        add({"a": "line\nend"})
        add(2)
    whole = path.read_bytes()
    for torn in (b"", b"3", b'{"a": ', '"ö'.encode()[:-1]):
        path.write_bytes(whole + torn)
        with json_lines(path, ("quick", 1)) as (found, _):
            assert found == [{"a": "line\nend"}, 2]
        assert path.read_bytes() == whole
    path.write_bytes(whole[:4])  # killed before the head was whole
    with json_lines(path, ["quick", 1]) as (found, add):
        assert found == []
        add(5)
    assert [json.loads(line)["value"] for line in path.read_text().splitlines()] == [["quick", 1], 5]
    assert [each.name for each in tmp_path.iterdir()] == ["log.jsonl"]


def test_a_log_of_another_run_damage_and_a_log_in_use_are_refused(tmp_path):
    path = tmp_path / "log.jsonl"
    with json_lines(path, [1]) as (_, add):
        add(2)
        with (
            pytest.raises(DraftcertError, match=rf"log.jsonl is in use by process {os.getpid()} "),
            json_lines(path, [1]),
        ):
            pass
    before = path.read_bytes()
    with pytest.raises(DraftcertError, match=r"of another run, \[0\] = 1, not 3: "), json_lines(path, [3]):
        pass
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("before", "asked", "difference"),
    [
        ({"profile": "quick", "seed": 1}, {"profile": "quick", "seed": 2}, "seed = 1, not 2"),
        ({"rules": [{"name": "a"}, {"name": "b"}]}, {"rules": [{"name": "a"}]}, 'rules[1] = {"name": "b"}, not null'),
        ({"rules": ({"name": "a"},)}, {"rules": [{"name": "c"}]}, 'rules[0].name = "a", not "c"'),
        ({}, {"seed": 0}, "seed = null, not 0"),
        ({"seed": 0}, {}, "seed = 0, not null"),
        ([1], {"seed": 0}, '[1], not {"seed": 0}'),
        (1, 2, "1, not 2"),
    ],
)
def test_the_first_difference_is_named(before, asked, difference):
    before = json.loads(json.dumps(before))
    with pytest.raises(DraftcertError) as raised:
        require_same("it", before, asked)
    assert str(raised.value) == f"it is of another run, {difference}: give another one"
    require_same("it", before, before)


def test_a_damaged_line_is_moved_out_and_a_damaged_head_is_the_whole_log(tmp_path, capsys):
    path, aside = tmp_path / "log.jsonl", tmp_path / "log.jsonl.damaged"
    with json_lines(path, [1]) as (_, add):
        for number in range(100, 104):
            add({"digits": number})
    before = path.read_bytes()
    path.write_bytes(before.replace(b"101", b"107"))  # it is JSON, and says something else
    with json_lines(path, [1]) as (found, add):
        assert found == [{"digits": number} for number in (100, 102, 103)]
        add({"digits": 101})
    assert b"107" in aside.read_bytes()
    assert aside.read_bytes().count(b"\n") == 1
    assert "1 lines of" in capsys.readouterr().err
    path.write_bytes(b"x" + path.read_bytes())
    with json_lines(path, [2]) as (found, _):
        assert found == []
    assert aside.read_bytes().startswith(b"x{")
    assert "the run begins anew" in capsys.readouterr().err


def test_no_changed_byte_of_a_log_goes_unnoticed(tmp_path):
    path = tmp_path / "log.jsonl"
    with json_lines(path, "head") as (_, add):
        add({"value": 0.1, "text": "ö"})
        add([1, None])
    content = path.read_bytes()
    kept = [["head"], {"value": 0.1, "text": "ö"}, [1, None]]
    lines = content.splitlines(keepends=True)
    for at in range(len(lines[0]), len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with json_lines(path, "head") as (found, _):
            assert len(found) < 2
            assert all(each in kept for each in found)


def test_a_seal_shows_every_change(tmp_path):
    path = tmp_path / "sealed"
    content = f'a text, {{"seal": "{SEAL}"}} and what follows'
    with replacing(path) as partial:
        partial.write_text(content)
        seal(partial)
    assert is_sealed(path)
    whole = path.read_bytes()
    assert len(whole) == len(content)
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        assert not is_sealed(path)
    for other in (b"", whole[:-1], whole + b" ", content.encode(), b"no seal"):
        path.write_bytes(other)
        assert not is_sealed(path)
    assert not is_sealed(tmp_path / "absent")


def test_what_is_damaged_is_set_aside_and_said(tmp_path, capsys):
    folder = tmp_path / "a\nfolder"
    for content in "ab":
        folder.mkdir()
        (folder / "file").write_text(content)
        set_aside(folder, "made again")
    assert [path.name for path in tmp_path.iterdir()] == ["a\nfolder.damaged"]
    assert (tmp_path / "a\nfolder.damaged" / "file").read_text() == "b"
    assert (
        capsys.readouterr().err.splitlines()
        == [f"{tmp_path}/a\\nfolder is damaged: it is kept as a\\nfolder.damaged, and made again"] * 2
    )


@pytest.mark.parametrize("place", ["file", "file/below", "file/below/that", "/proc/nothing", "/dev/null/x"])
def test_a_folder_is_tried_before_the_work_for_it(tmp_path, place):
    (tmp_path / "file").write_text("text")
    with pytest.raises(DraftcertError, match="cannot write"):
        writable_folder(tmp_path / place)
    assert (tmp_path / "file").read_text() == "text"
    assert list(writable_folder(tmp_path / "new" / "folder").iterdir()) == []


def test_text_is_read_by_lines_that_end_with_line_feeds_only(tmp_path, monkeypatch):
    path = tmp_path / "lines"
    path.write_bytes("\ufeffa\u2028b\r\nc\x85d\n\ne".encode())
    assert list(text_lines(path)) == [(1, "a\u2028b\r\n"), (2, "c\x85d\n"), (3, "\n"), (4, "e")]
    path.write_bytes(b"ok\n\xffbad")
    with pytest.raises(DraftcertError, match=r"cannot read .*lines, line 2: 'utf-8' codec"):
        list(text_lines(path))
    for missing in (tmp_path, tmp_path / "absent", tmp_path / "nul\0"):
        with pytest.raises(DraftcertError, match="cannot read"):
            list(text_lines(missing))
        with pytest.raises(DraftcertError, match="cannot read"):
            read_text(missing)
    monkeypatch.setattr(files, "LARGEST", 4)
    path.write_text("abc\nabcd\n")
    with pytest.raises(DraftcertError, match="line 2, is longer than the 4 bytes"):
        list(text_lines(path))
    with pytest.raises(DraftcertError, match="larger than the 4 bytes"):
        files.read_bytes(path, 4)


ADDS = """
import sys
from draftcert.support.files import json_lines
with json_lines(sys.argv[1], "head") as (found, add):
    number = len(found)
    while True:
        add([number] * 50)
        number += 1
"""


def test_kills_at_any_moment_lose_nothing_that_was_added(tmp_path):
    path = tmp_path / "log.jsonl"
    found = []
    for moment in range(4):
        run = subprocess.Popen([sys.executable, "-c", ADDS, path])
        size = path.stat().st_size if path.exists() else 0
        while not path.exists() or path.stat().st_size <= size + 400 + 1000 * moment:  # a line at least
            time.sleep(0.001)
        run.send_signal(signal.SIGKILL)
        run.wait()
        before, found = found, [json.loads(line)["value"] for line in path.read_bytes().split(b"\n")[1:-1]]
        assert found == [[number] * 50 for number in range(len(found))]
        assert len(found) > len(before)


def test_the_last_line_is_cut_only_where_it_is_torn(tmp_path, monkeypatch):
    """The log is never rewritten: a kill while it is opened loses nothing."""
    path = tmp_path / "log.jsonl"
    with json_lines(path, "head") as (_, add):
        add(1)
        add(2)
    whole = path.read_bytes()
    path.write_bytes(whole + b"3")
    monkeypatch.setattr(files, "write_whole", lambda *_: pytest.fail("rewritten"))
    inode = path.stat().st_ino
    with json_lines(path, "head") as (found, _):
        assert found == [1, 2]
    assert path.read_bytes() == whole
    assert path.stat().st_ino == inode


def test_a_place_where_nothing_could_be_written_is_told_and_nothing_is_left(tmp_path):
    (tmp_path / "file").touch()
    for path, folder, message in (
        (tmp_path, False, "it is a folder"),
        (tmp_path / "file", True, "it is no folder"),
        (tmp_path / "absent" / "file", False, "No such file"),
        (tmp_path / "file" / "below", True, "Not a directory"),
        (tmp_path / "\0", False, "null"),
    ):
        with pytest.raises(DraftcertError, match=f"cannot write .*{message}"):
            require_writable(path, folder)
    require_writable(tmp_path / "new")
    require_writable(tmp_path / "file")
    require_writable(tmp_path / "a" / "b", folder=True)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_standard_input_is_a_file_without_a_name(monkeypatch):
    def give(content: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    give(b"a\nb\n")
    assert list(text_lines("-")) == [(1, "a\n"), (2, "b\n")]
    give(b"a\n\xff")
    with pytest.raises(DraftcertError, match="standard input, line 2"):
        list(text_lines("-"))
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(DraftcertError, match="standard input is closed"):
        read_text("-")
