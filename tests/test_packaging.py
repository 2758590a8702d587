"""The wheel: one top-level package, complete, and working away from the checkout."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    for name in run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines():
        source = ROOT / name
        if source.is_file():
            target = folder / "source" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    run(sys.executable, "-m", "pip", "wheel", folder / "source", "--no-deps", "--no-build-isolation", "-w", folder)
    (built,) = folder.glob("draftcert-*.whl")
    return built


def test_draftcert_is_the_only_top_level_name(wheel):
    names = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"draftcert"}


def test_every_package_and_data_file_of_the_layers_is_in_the_wheel(wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    layers = ("theory", "proofs_check", "numerics", "runtime", "document", "audit", "cli")
    tracked = run("git", "ls-files", "--cached", "--others", "--exclude-standard", *layers, cwd=ROOT).splitlines()
    hidden = {name for name in tracked if Path(name).name.startswith(".")}
    missing = {name for name in tracked if (ROOT / name).is_file() and f"draftcert/{name}" not in inside} - hidden
    assert not missing


def test_it_works_away_from_the_checkout(wheel, tmp_path):
    site = tmp_path / "site"
    run(sys.executable, "-m", "pip", "install", "--no-deps", "--target", site, wheel)
    environment = os.environ | {"PYTHONPATH": str(site)}
    where = "import draftcert.runtime as r, draftcert.theory as t; print(r.__file__); print(t.__file__)"
    for file in run(sys.executable, "-c", where, cwd=tmp_path, env=environment).split():
        assert Path(file).is_relative_to(site)
    command = (sys.executable, "-m", "draftcert.cli", "certify", "--probs", "0.6,0.4", "--json")
    assert json.loads(run(*command, cwd=tmp_path, env=environment))["certificate"].startswith("0.0201355")
