"""`uniqueItems` and names that are not declared: accepted and rejected texts, and what the session keeps of them."""

from __future__ import annotations

from typing import Any

import pytest
from guided_grammar.compiler import compile_spec
from guided_grammar.errors import UnsatisfiableConstraint, UnsupportedConstraint
from guided_grammar.schema import compile_schema
from guided_grammar.spec import GrammarSpec, Kind
from guided_testing.byte_tokenizer import EOS, accepts, byte_engine, compile_bytes

UNIQUE = {"type": "array", "uniqueItems": True}
NAMED = {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"], "additionalProperties": False}
ENUM = [f"v{i}" for i in range(20)]
TREE = {"type": "array", "uniqueItems": True, "items": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/n"}]}}
MAP = {"type": "object"}

Row = tuple[str, Any, list[str], list[str]]

ROWS: list[Row] = [
    (
        "strings",
        {**UNIQUE, "items": {"type": "string"}},
        ["[]", '["a"]', '["", "a", "ab"]', '["a\\"", "a"]', '["a, b", "a"]', '["]", "["]'],
        ['["a", "a"]', '["a", "b", "a"]', '["", ""]', '["\\n", "b", "\\n"]', '["]", "]"]', '["é", "é"]'],
    ),
    ("a repetition ends no earlier than its string", {**UNIQUE, "items": {"type": "string"}}, ['["a", "ab"]'], []),
    ("whole numbers", {**UNIQUE, "items": {"type": "integer"}}, ["[1, 2, 12, 21]"], ["[1, 1]", "[12, 1, 12]"]),
    ("numbers", {**UNIQUE, "items": {"type": "number"}}, ["[1, 1.5]"], ["[1, 1]", "[1.5, 1.5]", "[1, 1.0]", "[2.50, 2.5]"]),
    (
        "more values than sets of them can be told apart",
        {**UNIQUE, "items": {"enum": ENUM}, "minItems": 1},
        ['["v1", "v10"]', "[" + ", ".join(f'"{v}"' for v in ENUM) + "]"],
        ["[]", '["v1", "v1"]', "[" + ", ".join(f'"{v}"' for v in [*ENUM, "v1"]) + "]"],
    ),
    (
        "anything",
        UNIQUE,
        ['[1, true, "1", [1], {"a": 1}]', '[{"a": 1, "b": 2}, {"a": 1}]', "[[1], [1, 2]]", "[0, false, null]"],
        ['[{"a": 1, "b": 2}, {"b": 2, "a": 1}]', "[[1], [1]]", "[null, null]", '[{"a": [1]}, {"a": [1]}]', "[{}, {}]"],
    ),
    (
        "objects that differ in one string",
        {**UNIQUE, "items": NAMED},
        ['[{"n": "a"}, {"n": "ab"}]', '[{"n": "}"}, {"n": "{"}]'],
        ['[{"n": "a"}, {"n": "a"}]', '[{"n": "a"}, {"n": "b"}, {"n": "a"}]'],
    ),
    (
        "distinct arrays of distinct strings",
        {**UNIQUE, "items": {**UNIQUE, "items": {"type": "string"}}},
        ['[["a"], ["a", "b"]]', '[[], ["a"]]', '[["a", "b"], ["b", "a"]]'],
        ['[["a"], ["a"]]', '[["a", "a"]]', "[[], []]"],
    ),
    (
        "distinct strings, or any numbers",
        {"anyOf": [{**UNIQUE, "items": {"type": "string"}}, {"type": "array", "items": {"type": "integer"}}]},
        ['["a", "b"]', "[1, 1]", "[]"],
        ['["a", "a"]', '[1, "a"]'],
    ),
    (
        "distinct strings, or any two",
        {"anyOf": [{**UNIQUE, "items": {"type": "string"}}, {"type": "array", "items": {"type": "string"}, "maxItems": 2}]},
        ['["a", "a"]', '["a", "b", "c"]'],
        ['["a", "a", "b"]', '["a", "b", "a"]'],
    ),
    (
        "distinct strings with one of a kind",
        {**UNIQUE, "items": {"type": "string"}, "contains": {"const": "x"}},
        ['["x"]', '["a", "x", "b"]'],
        ['["a"]', '["x", "x"]', '["a", "a", "x"]'],
    ),
    (
        "distinct strings, or else distinct numbers",
        {"oneOf": [{**UNIQUE, "items": {"type": "string"}, "minItems": 1}, {**UNIQUE, "items": {"type": "integer"}}]},
        ["[]", '["a", "b"]', "[1, 2]"],
        ['["a", "a"]', "[1, 1]", '[1, "a"]'],
    ),
    (
        "a tuple whose items are distinct",
        {**UNIQUE, "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": {"type": "string"}, "minItems": 3},
        ['["a", 1, "b"]'],
        ['["a", 1, "a"]', '["a", 1]'],
    ),
    (
        "recursion",
        {"$defs": {"n": TREE}, "$ref": "#/$defs/n"},
        ['["a", ["a", ["a"]], ["a"]]'],
        ["[[], []]", '["a", ["b", "b"]]', '[["a"], ["a"]]'],
    ),
    (
        "within an object, and again in another",
        {"type": "object", "additionalProperties": {**UNIQUE, "items": {"type": "string"}}},
        ['{"a": ["x", "y"], "b": ["x"]}'],
        ['{"a": ["x", "y"], "b": ["x", "x"]}'],
    ),
    (
        "two names of any kind",
        {**MAP, "minProperties": 2},
        ['{"a": 1, "b": 2}', '{"a": {"a": 1}, "b": "a"}'],
        ["{}", '{"a": 1}', '{"a": 1, "a": 2}', '{"a": 1, "b": 2, "a": 3}'],
    ),
    (
        "a declared name and two of any kind",
        {**MAP, "minProperties": 3, "properties": {"x": {"type": "integer"}}},
        ['{"a": 1, "b": 2, "c": 3}', '{"x": 1, "b": 2, "c": {}}'],
        ['{"x": 1, "x": 2, "c": 1}', '{"x": 1, "b": 1}', '{"x": 1, "b": 1, "b": 2}', '{"a": 1, "b": 2, "a": 3}'],
    ),
    (
        "names of a pattern, as many as it has",
        {**MAP, "minProperties": 100, "patternProperties": {"^[a-j]{2}$": {"const": 1}}, "additionalProperties": False},
        ["{" + ", ".join(f'"{a}{b}": 1' for a in "abcdefghij" for b in "abcdefghij") + "}"],
        ["{" + ", ".join(f'"{a}{b}": 1' for a in "abcdefghij" for b in "abcdefghia") + "}"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "accepted", "rejected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_texts(schema: Any, accepted: list[str], rejected: list[str]) -> None:
    grammar = compile_schema(schema)
    assert [text for text in accepted if not accepts(grammar, text)] == []
    assert [text for text in rejected if accepts(grammar, text)] == []


@pytest.mark.parametrize(
    "schema",
    [
        {**UNIQUE, "items": {"type": "string", "pattern": "^[a-c]{1,2}$"}, "minItems": 13},
        {**UNIQUE, "prefixItems": [{"type": "string"}, {"const": "a"}], "minItems": 2},
        {"type": "array", "not": {"uniqueItems": True}},
        {**UNIQUE, "items": {"type": "string"}, "allOf": [{"contains": {"const": "a"}}, {"contains": {"const": "b"}}]},
    ],
    ids=[
        "more items than values",
        "an item that may be taken away",
        "two items must be equal",
        "two items are asked for",
    ],
)
def test_what_might_leave_no_way_on_is_refused(schema: Any) -> None:
    with pytest.raises(UnsupportedConstraint) as caught:
        compile_schema(schema)
    assert caught.value.keyword == "uniqueItems"


def test_more_names_than_a_pattern_has_are_unsatisfiable() -> None:
    schema = {**MAP, "minProperties": 101, "patternProperties": {"^[a-j]{2}$": {}}, "additionalProperties": False}
    with pytest.raises(UnsatisfiableConstraint):
        compile_schema(schema)


TAGS = {"type": "object", "properties": {"tags": {**UNIQUE, "items": {"type": "string"}}}, "required": ["tags"]}


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize(
    ("style", "call"),
    [
        ("hermes", '<tool_call>\n{{"name": "f", "arguments": {{"tags": {}}}}}\n</tool_call>'),
        ("pythonic", "[f(tags={})]"),
    ],
)
def test_arguments_of_calls_are_watched(choice: str, style: str, call: str) -> None:
    tools = [{"name": "f", "parameters": {**TAGS, "additionalProperties": False}, "strict": True}]
    spec = GrammarSpec(Kind.TOOLS, {"format": style, "tools": tools, "choice": choice, "parallel": True})
    grammar = compile_spec(spec).text
    before = 'a ["x", "x"] list\n' if choice == "auto" and style == "hermes" else ""
    assert accepts(grammar, before + call.format('["a", "b"]'))
    assert not accepts(grammar, before + call.format('["a", "a"]'))


def begun(text: str, schema: Any = ROWS[0][1]) -> Any:
    session = byte_engine().session(compile_bytes(compile_schema(schema)))
    for byte in text.encode():
        assert session.accept(byte)
    return session


def test_an_item_that_was_taken_back_may_be_written_again() -> None:
    session = begun('["a", "b", "')
    for _ in range(2):
        assert session.accept(ord("b"))
        assert not session.accept(ord('"'))
        session.rollback(len('", "b'))
        assert session.accept(ord("x"))
        session.rollback(2)
        assert session.accept(ord("b"))
        for byte in b'", "':
            assert session.accept(byte)


def test_a_fork_keeps_its_own_items() -> None:
    session = begun('["a", "')
    branch = session.fork()
    for byte in b'b", "':
        assert branch.accept(byte)
    assert branch.accept(ord("b"))
    assert session.accept(ord("b"))
    assert not branch.accept(ord('"'))
    assert session.accept(ord('"'))
    branch.rollback(len('a", "b", "b') - 1)
    assert branch.accept(ord("b"))
    session.rollback(2)
    assert not session.accept(ord("a")) or not session.accept(ord('"'))


def test_a_stop_is_taken_back_like_any_token() -> None:
    session = begun('["a"]')
    assert session.accept(EOS)
    session.rollback(2)
    assert not session.is_terminated
    for byte in b', "a':
        assert session.accept(byte)
    assert not session.accept(ord('"'))


def test_forced_text_follows_the_items() -> None:
    session = begun('["v1", "v', {**UNIQUE, "items": {"enum": ["v1", "v23", *ENUM[4:]]}, "minItems": 2})
    assert session.accept(ord("2"))
    for byte in session.forced_tokens():
        assert session.accept(byte)
    assert session.accept(ord("]")) and session.is_complete
