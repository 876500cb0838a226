"""One grammar for calls or a document, which the model chooses between."""

from __future__ import annotations

from typing import Any

import pytest
from guided_grammar.compiler import compile_spec
from guided_grammar.errors import InvalidConstraint, UnsupportedConstraint
from guided_grammar.spec import GrammarSpec, Kind
from guided_testing.byte_tokenizer import accepts, compile_bytes

SCHEMA = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": False}
DOCUMENT = {"kind": "json_schema", "value": {"schema": SCHEMA, "order": "declared"}}
CALL = '<tool_call>\n{"name": "f", "arguments": {"n": 2}}\n</tool_call>'


def spec(other: Any) -> GrammarSpec:
    tools = [{"name": "f", "parameters": SCHEMA}]
    return GrammarSpec(Kind.TOOLS, {"format": "hermes", "tools": tools, "choice": "required", "or": other})


def test_the_answer_is_calls_or_the_document_and_never_both() -> None:
    compiled = compile_bytes(compile_spec(spec(DOCUMENT)).text)
    for text in (CALL, f"{CALL}\n{CALL}", '{"n": 1}'):
        assert accepts(compiled, text)
    for text in ("", "Hello", '{"n": 3}', CALL.replace("2", "3"), CALL + '{"n": 1}', '{"n": 1}' + CALL):
        assert not accepts(compiled, text)


@pytest.mark.parametrize(
    ("other", "error"),
    [
        ({"kind": "free", "value": None}, InvalidConstraint),
        ({"kind": "nope"}, InvalidConstraint),
        ({"value": 1}, InvalidConstraint),
        ([], InvalidConstraint),
        ({"kind": "tools", "value": spec(None).value}, InvalidConstraint),
        ({"kind": "json_schema", "value": {"schema": {"pattern": "(?=a)"}}}, UnsupportedConstraint),
    ],
)
def test_a_document_that_cannot_be_enforced_is_refused(other: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        compile_spec(spec(other))
