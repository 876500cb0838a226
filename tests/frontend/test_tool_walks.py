"""A small sample of `python perf/tool_walks.py`: random models over a real vocabulary and over single bytes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from guided_engine.weights import DEFAULT_MODEL, resolve
from guided_grammar.formats import FORMATS
from tool_calls.cases import Mode, modes
from tool_calls.vocabularies import of_bytes, of_folder
from tool_walks import Family

CALLING = [name for name, row in FORMATS.items() if row.has_calls]
MAX_TOKENS = 600


@cache
def family(name: str) -> Family:
    return Family(FORMATS[name], "bytes", of_bytes(FORMATS[name]), MAX_TOKENS)


@cache
def smollm2() -> Family:
    return Family(FORMATS["hermes"], "smollm2", of_folder(Path(resolve(DEFAULT_MODEL))), MAX_TOKENS)


@pytest.mark.parametrize("name", CALLING)
def test_whatever_a_grammar_lets_through_is_read_back_as_valid_calls(name: str) -> None:
    for mode in modes(FORMATS[name]):
        result = family(name).run(mode, walks=3, seconds=20)
        assert result.faults == []
        assert result.walks == 3 and result.valid > 0, mode.name


@pytest.mark.parametrize("mode", list(modes(FORMATS["hermes"])), ids=lambda mode: mode.name)
def test_a_real_vocabulary_writes_valid_calls(mode: Mode) -> None:
    result = smollm2().run(mode, walks=4, seconds=20)
    assert result.faults == []
    assert result.walks == 4 and result.valid > 0
