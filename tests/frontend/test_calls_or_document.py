from __future__ import annotations

import json

import pytest
from guided_frontend.calls.pieces import TextPiece
from guided_frontend.calls_or_document import CallsOrDocument
from guided_grammar.formats import HERMES, tool_format
from guided_testing.scripted_backend import Answer

from .conftest import Frontend

CALL = '<tool_call>\n{"name": "f", "arguments": {"n": 2}}\n</tool_call>'
DOCUMENTS = [
    "{}",
    '{"a": "<tool_call><function=f></function></tool_call>"}',
    "[1, 2]",
    "-7",
    '"<tool_call>"',
    "<tool_",
    "",
]


@pytest.mark.parametrize("row", ["hermes", "mistral_v3", "qwen_xml"])
@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_document_comes_through_as_it_is_wherever_it_was_cut(document: str, row: str) -> None:
    for cut in range(len(document) + 1):
        reader = CallsOrDocument(tool_format(row), {})
        pieces = [*reader.feed(document[:cut]), *reader.feed(document[cut:]), *reader.finish()]
        assert "".join(p.text for p in pieces if isinstance(p, TextPiece)) == document
        assert all(isinstance(p, TextPiece) for p in pieces) and reader.num_calls == 0


def test_calls_are_read_wherever_they_were_cut() -> None:
    for cut in range(len(CALL)):
        reader = CallsOrDocument(HERMES, {})
        pieces = [*reader.feed(CALL[:cut]), *reader.feed(CALL[cut:]), *reader.finish()]
        assert reader.num_calls == 1 and not any(isinstance(p, TextPiece) for p in pieces)


@pytest.mark.parametrize(("text", "finish"), [(CALL, "tool_calls"), ('{"n": 2}', "stop")])
def test_the_model_chooses_between_the_document_and_a_call(frontend: Frontend, text: str, finish: str) -> None:
    frontend.answers(Answer(tuple(text)))
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    choice = frontend.ask(
        tools=[{"type": "function", "function": {"name": "f", "parameters": schema}}],
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
        allow_tools_with_response_format=True,
    ).json()["choices"][0]
    assert choice["finish_reason"] == finish
    if finish == "stop":
        assert json.loads(choice["message"]["content"]) == {"n": 2}
    else:
        assert choice["message"]["tool_calls"][0]["function"]["arguments"] == '{"n": 2}'
