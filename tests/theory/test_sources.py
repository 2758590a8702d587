"""Sources: each has an entry that BibTeX can read, and every one is cited."""

import re

import pytest

from draftcert.theory import RULES
from draftcert.theory.presets import PRESETS
from draftcert.theory.sources import SOURCES, Source, cited
from draftcert.theory.theorems import EVERY_FORMULA, THEOREMS

CITATIONS = [record.citation for group in (THEOREMS, EVERY_FORMULA, RULES, PRESETS) for record in group.values()]


@pytest.mark.parametrize("source", SOURCES.values(), ids=list(SOURCES))
def test_an_entry_is_bibtex(source: Source):
    entry = source.bibtex
    assert entry.isascii()
    assert entry.count("{") == entry.count("}")
    assert re.match(rf"@(article|misc)\{{{re.escape(source.key)},\n", entry)
    fields = re.findall(r"^  (\w+) = \{(.+)\},$", entry, re.MULTILINE)
    assert len(fields) == len(entry.splitlines()) - 2
    assert {"author", "title"} <= dict(fields).keys()
    assert source.journal or source.url or source.key == "draftcert"


@pytest.mark.parametrize("source", SOURCES.values(), ids=list(SOURCES))
def test_each_source_is_cited(source: Source):
    assert any(source in cited(citation) for citation in CITATIONS)


def test_keys_are_their_own():
    assert all(SOURCES[key].key == key for key in SOURCES)
    assert len({source.mark for source in SOURCES.values()}) == len(SOURCES)


@pytest.mark.parametrize("citation", sorted(set(CITATIONS)))
def test_every_paper_in_a_citation_is_a_source(citation: str):
    papers = re.findall(r"arXiv [\d.]+\d", citation)
    assert {source.mark for source in cited(citation)} >= set(papers)
