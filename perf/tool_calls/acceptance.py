"""Whether the grammar of a fixture's tools lets its output through, token by token."""

from __future__ import annotations

from functools import cached_property

from guided_frontend.reasoning import ReasoningSplitter
from guided_frontend.tool_calls import CallParser
from guided_grammar.compiler import compile_spec
from guided_grammar.formats import ToolFormat
from guided_grammar.session import MaskEngine
from guided_grammar.spec import GrammarSpec, Kind

from tool_calls.fixtures import Fixture
from tool_calls.vocabularies import of_bytes

_SHOWN = 24


class Acceptance:
    """One row over single bytes and its markers as tokens."""

    def __init__(self, row: ToolFormat) -> None:
        self._row, self._tokenizer = row, of_bytes(row)

    @cached_property
    def _engine(self) -> MaskEngine:
        return MaskEngine(self._tokenizer.vocabulary)

    def refused_at(self, fixture: Fixture) -> str | None:
        """The text around the first token that is not allowed, None where the whole answer is. Reasoning is free and
        left out."""
        value = {"format": self._row.name, "tools": list(fixture.tools), "choice": "auto", "parallel": True}
        compiled = compile_spec(GrammarSpec(Kind.TOOLS, value))
        session = self._engine.session(self._engine.compile(compiled.text, compiled.markers))
        pieces = self._tokenizer.pieces(compiled.markers)
        written = b""
        ids = self._tokenizer.encode(_answer(fixture))
        for place, token in enumerate(ids):
            if not session.accept(token):
                rest = b"".join(pieces[i] for i in ids[place : place + _SHOWN])
                return f"{_text(written[-_SHOWN:])} | {_text(rest)}"
            written += pieces[token]
        return None if session.is_complete else f"{_text(written[-_SHOWN:])} | the end"


def _answer(fixture: Fixture) -> str:
    """The output after its block of reasoning."""
    if fixture.row.reasoning is None or not fixture.reads_reasoning:
        return fixture.output
    splitter = ReasoningSplitter(fixture.row.reasoning, fixture.inside, CallParser(fixture.row).triggers)
    return splitter.feed(fixture.output)[1] + splitter.finish()[1]


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
