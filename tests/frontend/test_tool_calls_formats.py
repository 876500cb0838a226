"""Outputs of real chat formats, from llama.cpp's test suite and from canitoolcall, read in whole and cut."""

from __future__ import annotations

import pytest
from guided_grammar.formats import FORMATS
from tool_calls.fixtures import LLAMA_CPP, Fixture, canitoolcall, llama_cpp

DIFFERENCES = {
    "chat-047": "a Markdown fence around a response of a declared schema, which a constrained answer never has",
    "qwen3-hermes/truncated-second-parallel-call": "the call that was cut off was passed on already",
    "gemma4/truncated-second-parallel-call": "the call that was cut off was passed on already",
    "llama/l4-truncated-missing-close-bracket": "the first call of a list that was cut off is read",
    "kimi/k2i-vllm-noise-between-markers": "text between two markers makes both content",
}
needs_corpus = pytest.mark.skipif(not LLAMA_CPP.is_file(), reason="corpus not present")
ROWS = [name for name, row in FORMATS.items() if row.has_calls]
# `python perf/tool_fixtures.py` cuts at every character.
STEP = 23


def wrong(fixtures: list[Fixture]) -> set[str]:
    return {fixture.id for fixture in fixtures if not fixture.is_as_expected}


@needs_corpus
def test_outputs_of_llama_cpp_are_read_as_expected_but_for_the_listed_differences() -> None:
    fixtures = list(llama_cpp())
    assert len(fixtures) == 136
    assert wrong(fixtures) == {name for name in DIFFERENCES if name.startswith("chat-")}


def test_fixtures_of_canitoolcall_are_read_as_expected_but_for_the_listed_differences() -> None:
    fixtures = list(canitoolcall())
    assert len(fixtures) == 390
    assert wrong(fixtures) == {name for name in DIFFERENCES if not name.startswith("chat-")}


@needs_corpus
@pytest.mark.parametrize("row", ROWS)
def test_d12_what_llama_cpp_wrote_does_not_depend_on_where_it_is_cut(row: str) -> None:
    assert [f.id for f in llama_cpp() if f.row.name == row and f.differs_when_cut()] == []


@pytest.mark.parametrize("row", ROWS)
def test_d12_what_canitoolcall_holds_does_not_depend_on_where_it_is_cut(row: str) -> None:
    assert [f.id for f in canitoolcall() if f.row.name == row and f.differs_when_cut(STEP)] == []
