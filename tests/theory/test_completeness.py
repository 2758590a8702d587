"""A rule that is not registered, tested, documented and in the docs table fails here."""

import ast
import re
from pathlib import Path

import pytest

import draftcert.numerics
from draftcert.document import rules_table
from draftcert.theory import RULES, DraftcertError, parse_rule
from draftcert.theory.deployed import DEPLOYED
from draftcert.theory.order import order_fact
from draftcert.theory.presets import PRESETS, example_rules

ROOT = Path(__file__).parent.parent.parent
FILES = sorted(path.stem for path in (ROOT / "theory" / "rules").glob("*.py") if path.stem != "__init__")


def test_every_file_is_a_registered_rule():
    assert sorted(RULES) == FILES


@pytest.mark.parametrize("name", FILES)
def test_rule_is_documented(name: str):
    family = RULES[name]
    text = ast.get_docstring(ast.parse((ROOT / "theory" / "rules" / f"{name}.py").read_text(encoding="utf-8"))) or ""
    assert family.doc
    assert family.doc.strip() == text.strip()
    assert "accepts(x)  :<=>  " in text, "the formula is missing"
    assert any(word in text for word in ("Deployed", "Proposed", "Published", "Medusa")), "who uses it is missing"
    assert ". " in text.splitlines()[0] + " ", "the first line is a sentence"
    assert family.citation
    assert family.deployed_as
    assert all(parameter.meaning for parameter in family.parameters)


@pytest.mark.parametrize("name", FILES)
def test_rule_is_tested(name: str):
    assert RULES[name].worked_points
    assert {RULES[name](*values) for values in RULES[name].examples} & set(example_rules())
    assert order_fact(RULES[name], RULES["strict_greedy"])
    assert order_fact(RULES["strict_greedy"], RULES[name])


@pytest.mark.parametrize("name", [*FILES, *PRESETS])
def test_rule_is_in_the_docs_table(name: str):
    assert f"`{name}" in (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")


def test_the_docs_table_is_current():
    """`draftcert codegen` renews it."""
    assert (ROOT / "docs" / "rules.md").read_text(encoding="utf-8") == rules_table()


def test_every_preset_is_deployed_somewhere_and_every_deployed_preset_exists():
    named = {each.preset for each in DEPLOYED if each.preset}
    assert named <= set(PRESETS)
    assert set(PRESETS) - named == {"vllm_typical"}, "of an engine that has been removed"


@pytest.mark.parametrize("each", DEPLOYED, ids=lambda each: f"{each.system}, {each.option[:20]}")
def test_a_deployed_method_says_what_is_certified_and_where_it_was_read(each):
    assert each.certified
    assert each.not_certified.endswith(".")
    assert each.source
    functions = re.findall(r"(\w\w+)\(", each.certified)  # but not p(x)
    assert all(hasattr(draftcert.numerics, name) or name in RULES for name in functions)
    if each.preset is None:
        assert functions or "none is needed" in each.certified


def test_functions_of_the_deployed_methods_are_named_where_such_rules_are_refused():
    for name in ("rejection_sampling", "speculative_sampling", "lenience(0.5)", "block_verify", "entropy_verify(1, 1)"):
        with pytest.raises(DraftcertError, match="sampling_acceptance"):
            parse_rule(name)
    with pytest.raises(DraftcertError, match="kl_for_divergence"):
        parse_rule("fuzzy(0.1)")
