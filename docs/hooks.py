"""What the site shows of the program itself: theorems, rules, commands, public names and measurements, as pages.

MkDocs calls the functions `on_...`. The pages are made when the site is built and are in no folder.
"""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from draftcert.cli import COMMON, acts, commands, whole
from draftcert.document import environment, groups, select, shared, title_of
from draftcert.document.explorer import explorer_page
from draftcert.document.figures import FIGURES, draw, inline_svg

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "draftcert.theory",
    "draftcert.proofs_check",
    "draftcert.numerics",
    "draftcert.runtime.rows",
    "draftcert.runtime.models",
    "draftcert.runtime.trees",
    "draftcert.runtime",
    "draftcert.document",
    "draftcert.audit",
    "draftcert",
)
"""The front door last: what it gives is told where it is at home."""

MEASUREMENTS = {
    "decoding": "Decoding, mode by mode",
    "decoding-policies": "Shapes of trees",
    "decoding-modes": "Other drafters and forward passes",
    "decoding-sizes": "Sizes of trees",
    "decoding-competitors": "Beside other programs",
    "decoding-bfloat16": "Beside llama.cpp, in bfloat16",
    "decoding-float32": "Beside llama.cpp, in float32",
    "limits": "Passes beside the limits of the machine",
    "kernels": "Kernels for rows of logits",
}
"""Tables in `benchmarks/results`, with their titles."""


# ---- theorems and rules --------------------------------------------------------------------------------------------


def theory_pages() -> Iterator[tuple[str, str]]:
    """A page for each theorem, for each rule, and one that lists the theorems and their sources."""
    chosen = select()
    theorems = {each.name for each in chosen.theorems}

    def link(name: str) -> str:
        return f"../{name}/" if name in theorems else f"../#{name}"

    templates = environment("HTML", link).get_template("theorem.html.j2")
    context = shared(chosen)
    explorer = context["explorer"]
    context |= {
        "link": link,
        "explorer": lambda point, family=None: f"../../{explorer(point, family)}",
        "svg": {name: inline_svg(draw(figure, "svg")[0], figure.__name__) for name, figure in FIGURES.items()},
    }
    module = templates.make_module(context)
    prose = templates.environment.filters["prose"]
    for theorem in chosen.theorems:
        yield f"theory/{theorem.name}.md", page(f"{theorem.name}. {theorem.title}", module.theorem_body(theorem))
    for family in chosen.families:
        body = str(module.rule_body(family)).replace("../#ref-", "../../theory/#ref-")
        for name in theorems:
            body = body.replace(f'href="../{name}/"', f'href="../../theory/{name}/"')
        yield f"rules/{family.name}.md", page(title_of(family.name), body)
    lines = [
        "Every theorem with what it claims, its proof, worked points and the kinds of evidence that there are for it.",
        "`draftcert derive --out theory` writes them as one page and as LaTeX; `draftcert check` decides each step.",
        "",
    ]
    for title, members in groups(chosen.theorems):
        lines += [f"## {title}", "", "<ul>"]
        lines += [f'<li><a href="{each.name}/">{each.name}. {prose(each.title)}</a></li>' for each in members]
        lines += ["</ul>", ""]
    lines += ["## Sources", "", "<ol>"]
    lines += [
        f'<li id="ref-{each["key"]}">{each["words"]} <a href="{each["url"]}">{each["url"]}</a></li>'
        for each in context["sources"]
    ]
    yield "theory/index.md", page("Theorems", "\n".join([*lines, "</ol>"]))


def page(title: str, body: object) -> str:
    """A page of Markdown around HTML, which Markdown leaves alone while no line of it is empty."""
    text = str(body)
    if "##" not in text:
        text = '<div class="theory">\n' + "\n".join(line for line in text.splitlines() if line.strip()) + "\n</div>"
    return f"# {title}\n\n{text}\n"


# ---- commands ------------------------------------------------------------------------------------------------------


def command_page() -> str:
    """All commands, with their arguments, options and examples."""
    program = whole()
    lines = ["# Commands", "", "Exit status: 0 all holds, 1 a check failed, 2 bad input or something to install.", ""]
    lines += ["Every command has these options, and those that are told of it below:", ""]
    lines += option_table([*COMMON, program.get_help_option(program.make_context("draftcert", ["cite"]))])
    lines += ["`draftcert` itself also has these:", ""]
    lines += option_table([each for each in program.params if each not in COMMON])
    for name, command in commands(program):
        if not acts(command):
            continue
        told = [line.strip() for line in (command.help or "").splitlines()]
        examples = [line.removeprefix("Example: ") for line in told if line.startswith("Example: ")]
        words = "\n".join(line for line in told if not line.startswith("Example: "))
        lines += [f"## {name}", "", words, "", "```console", *(f"$ {example}" for example in examples), "```", ""]
        lines += option_table([each for each in command.params if each not in COMMON])
    return "\n".join(lines)


def option_table(options: list[Any]) -> list[str]:
    """Options and arguments with what they mean."""
    lines = ["| option | meaning | default |", "|---|---|---|"]
    for each in options:
        names = ", ".join((*each.opts, *each.secondary_opts)) if each.param_type_name == "option" else each.name
        default = "" if each.default in (None, False, "") or callable(each.default) else f"`{each.default}`"
        meaning = (getattr(each, "help", None) or "").replace("|", "&#124;")
        lines.append(f"| `{names}` | {meaning} | {default} |")
    return [*lines, ""]


# ---- notebooks -----------------------------------------------------------------------------------------------------


def notebook_page(path: Path) -> str:
    """A notebook with what its cells printed."""
    lines = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        lines += ["```python", source, "```"] if cell["cell_type"] == "code" else [source]
        lines += ["", *("```text\n" + "".join(output["text"]) + "```\n" for output in cell.get("outputs", []))]
    name = path.relative_to(ROOT).as_posix()
    lines.append(f"This page is the notebook [{name}](https://github.com/draftcert/draftcert/blob/main/{name}).")
    return "\n".join(lines)


# ---- public names --------------------------------------------------------------------------------------------------


def home(package: str, name: str) -> str:
    """Where a public name is defined: the module of a class or function, the package of anything else."""
    value = getattr(importlib.import_module(package), name)
    module = getattr(value, "__module__", None)
    known = module in sys.modules and getattr(sys.modules[module], name, None) is value
    if known:
        return f"{module}.{name}"
    for candidate in sorted(each for each in sys.modules if each.startswith("draftcert.")):
        if getattr(sys.modules[candidate], name, None) is not value:
            continue
        text = Path(getattr(sys.modules[candidate], "__file__", None) or __file__).read_text(encoding="utf-8")
        if f"\n{name} = " in text or f"\n{name}: " in text:
            return f"{candidate}.{name}"
    return f"{package}.{name}"


def reference_pages() -> Iterator[tuple[str, str]]:
    """A page for each package with its public names; a name of several packages is told where it comes first."""
    told: dict[str, str] = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        lines = [f"# {package}", "", (module.__doc__ or "").strip().partition("\n\n")[0], ""]
        elsewhere = []
        for name in sorted(set(module.__all__) - {"__version__"}):
            place = home(package, name)
            if place in told:
                elsewhere.append(f"[{name}][{place}]")
            else:
                told[place] = package
                lines += [f"::: {place}", ""]
        if elsewhere:
            lines += ["Also here, told with the package they are at home in: " + ", ".join(elsewhere) + ".", ""]
        yield f"reference/{package}.md", "\n".join(lines)


# ---- measurements and files of the repository ----------------------------------------------------------------------


def performance_page() -> str:
    """The committed measurements, with the commands that made them."""
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    for name, title in MEASUREMENTS.items():
        folder = ROOT / "benchmarks" / "results"
        settings = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        text += f"\n## {title}\n\n```console\n$ {command_of(name, settings)}\n```\n\n"
        text += (folder / f"{name}.md").read_text(encoding="utf-8")
    return text


def command_of(name: str, results: dict[str, Any]) -> str:
    """The command that repeats a measurement, from what it kept of its settings."""
    if name == "kernels":
        return f"draftcert bench kernels --threads {results['threads']} --rounds {results['rounds']}"
    settings = results["settings"]
    if name == "limits":
        return f"python benchmarks/limits.py --turns {settings['turns']}"
    words = ["python benchmarks/decoding.py prompts.jsonl"]
    words += [f"--model {settings['model']}"] if settings["model"] != "smollm2" else []
    words += [f"--per-category {settings['per_category']}"] if settings["per_category"] else []
    words += [f'--only "{only}"' for only in settings["only"]] + [f'--skip "{skip}"' for skip in settings["skip"]]
    if settings.get("file"):
        words.append(f"--file {settings['file']}")
        words += [f"--{program.replace('_', '-')} PYTHON" for program in settings["programs"]]
    return " ".join(words)


# ---- what MkDocs calls ---------------------------------------------------------------------------------------------


def generated() -> dict[str, str]:
    """All pages that are made, by their paths in the site."""
    pages = dict([*theory_pages(), *reference_pages()])
    pages["commands.md"] = command_page()
    pages["performance.md"] = performance_page()
    for path in (ROOT / "examples").glob("*.ipynb"):
        pages[f"tutorials/{path.stem}.md"] = notebook_page(path)
    for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY"):
        text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
        pages[f"project/{name.lower()}.md"] = text.replace("](docs/", "](../")
    return pages


def on_config(config: Any) -> Any:
    """Fill the parts of the contents that are made: engines, theorems, rules, packages."""
    docs = Path(config.docs_dir)
    chosen = select()
    filled = {
        "Engines": [f"engines/{path.name}" for path in sorted((docs / "engines").glob("*.md"))],
        "Theorems": [
            "theory/index.md",
            *({title: [f"theory/{each.name}.md" for each in members]} for title, members in groups(chosen.theorems)),
        ],
        "Rules": ["rules.md", *(f"rules/{family.name}.md" for family in chosen.families)],
        "Public names": [f"reference/{package}.md" for package in reversed(PACKAGES)],
    }

    def fill(entries: list[Any]) -> list[Any]:
        found = []
        for entry in entries:
            if isinstance(entry, dict):
                ((title, inner),) = entry.items()
                inner = filled.get(title, fill(inner) if isinstance(inner, list) else inner)
                entry = {title: inner}
                if not inner:
                    continue
            found.append(entry)
        return found

    config.nav = fill(config.nav)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the made pages and the explorer."""
    from mkdocs.structure.files import File

    style = environment("HTML").get_template("theory.css.j2").render()
    made = generated() | {"explorer.html": explorer_page(), "theory.css": style}
    for path, content in made.items():
        if (old := files.get_file_from_path(path)) is not None:
            files.remove(old)
        files.append(File.generated(config, path, content=content))
    return files
