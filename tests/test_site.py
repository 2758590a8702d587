"""The documentation site: what is made of the program is complete, and all of it builds without a warning."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import yaml

from draftcert.cli import acts, commands, whole
from draftcert.theory import RULES
from draftcert.theory.theorems import THEOREMS

ROOT = Path(__file__).parents[1]
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(hooks: ModuleType) -> dict[str, str]:
    return hooks.generated()


def test_every_theorem_and_rule_has_a_page(pages: dict[str, str]):
    for folder, names in (("theory", THEOREMS), ("rules", RULES)):
        for name in names:
            page = pages[f"{folder}/{name}.md"]
            assert page.startswith("# ")
            assert "\n\n" not in page.partition('<div class="theory">')[2], (
                "Markdown would read on behind an empty line"
            )
    for name, theorem in THEOREMS.items():
        assert pages[f"theory/{name}.md"].count('href="../../explorer.html#') == len(theorem.worked_points)
        assert f'href="{name}/"' in pages["theory/index.md"]


def test_links_between_made_pages_lead_somewhere(pages: dict[str, str]):
    for place, page in pages.items():
        if place.startswith(("theory/", "rules/")) and place != "theory/index.md":
            here = Path(place).with_suffix("")
            for link in re.findall(r'href="(\.\./[^"]*)"', page):
                path, _, mark = link.partition("#")
                target = (ROOT / here / path).resolve().relative_to(ROOT).as_posix()
                if target == "explorer.html":
                    continue
                made = pages.get(f"{target}.md") or pages[f"{target}/index.md"]
                assert not mark or f'id="{mark}"' in made, f"{place} links to {link}"


@pytest.mark.parametrize("package", ["draftcert", "draftcert.numerics", "draftcert.audit", "draftcert.runtime.trees"])
def test_every_public_name_is_referred_to(package: str, pages: dict[str, str]):
    page = pages[f"reference/{package}.md"]
    names = set(importlib.import_module(package).__all__) - {"__version__"}
    shown = {
        each.rpartition(".")[2] for each in re.findall(r"^::: (\S+)|\]\[(\S+)\]", page, re.M) for each in each if each
    }
    assert shown == names


def test_a_public_name_is_told_once(pages: dict[str, str]):
    told = [each for page in pages.values() for each in re.findall(r"^::: (\S+)$", page, re.M)]
    assert len(set(told)) == len(told)


def test_every_command_is_on_the_page(hooks: ModuleType, pages: dict[str, str]):
    program = whole()
    names = [name for name, command in commands(program) if acts(command)]
    assert re.findall("^## (.*)$", pages["commands.md"], re.M) == names
    assert pages["commands.md"].count("\n$ draftcert ") >= len(names)
    options = {name for _, command in commands(program) for each in command.params for name in each.opts} | {"-h"}
    assert [name for name in options if not re.search(rf"[` ]{name}[`,]", pages["commands.md"])] == []


def test_every_measurement_is_shown_with_its_command(hooks: ModuleType, pages: dict[str, str]):
    tables = {path.stem for path in (ROOT / "benchmarks" / "results").glob("*.md")}
    assert set(hooks.MEASUREMENTS) == tables
    commands = re.findall(r"^\$ (.*)$", pages["performance.md"], re.M)
    assert len(commands) == len(tables)
    for command in commands:
        program, *words = command.split()
        if program == "python":
            source = (ROOT / words[0]).read_text(encoding="utf-8")
            assert all(f'"{word}"' in source for word in words if word.startswith("--")), command


def test_every_page_is_in_the_contents(hooks: ModuleType, pages: dict[str, str]):
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    config = SimpleNamespace(docs_dir=ROOT / "docs", nav=nav)
    text = str(hooks.on_config(config).nav)
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert written | set(pages) == set(re.findall(r"'([\w/.-]+\.md)'", text))


def test_each_cell_of_the_comparison_has_its_source():
    text = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    cells = [cell.strip() for row in rows[2:] for cell in "|".join(row[1:]).split("|")]
    assert cells
    unsourced = [cell for cell in cells if cell and cell not in ("no",) and not re.match(r"\[.+\]\(\S+\)", cell)]
    assert not unsourced


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_hold_away_from_the_repository(name: str):
    for link in re.findall(r"\]\(([^)\s]+)\)", (ROOT / name).read_text(encoding="utf-8")):
        assert link.startswith("https://"), f"{name}: {link} leads nowhere on PyPI"
        if REPOSITORY.partition("github.com/")[2] in link:
            assert (ROOT / re.split("(?:/blob)?/main/", link, maxsplit=1)[1].partition("#")[0]).exists(), link


def test_issue_forms_ask_for_a_minimal_input():
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    assert len(forms) == 4
    for path in forms:
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        if path.name == "config.yml":
            assert form["blank_issues_enabled"] is False
            assert all(link["url"].startswith(REPOSITORY) for link in form["contact_links"])
            continue
        fields = form["body"]
        asked = " ".join(
            f"{field['attributes']['label']} {field['attributes'].get('description', '')}" for field in fields
        )
        assert re.search("smallest|fewest", asked), path.name
        assert all(field["validations"]["required"] for field in fields), path.name


def test_the_site_builds_strictly(tmp_path: Path):
    for name in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(name)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert (tmp_path / "site" / "explorer.html").is_file()
    page = (tmp_path / "site" / "theory" / "T5" / "index.html").read_text(encoding="utf-8")
    assert "<math" in page
    assert THEOREMS["T5"].sha256[:12] in page
