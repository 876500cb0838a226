"""Schemas that are not compiled: by what error, with which keyword, at which place."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from guided_grammar.compiler import compile_spec
from guided_grammar.errors import (
    GrammarError,
    InvalidConstraint,
    LimitExceeded,
    UnsatisfiableConstraint,
    UnsupportedConstraint,
)
from guided_grammar.limits import DEFAULT_LIMITS
from guided_grammar.schema import compile_schema
from guided_grammar.spec import GrammarSpec, Kind

Row = tuple[str, Any, type[GrammarError], str, str]

ROWS: list[Row] = [
    ("false", False, UnsatisfiableConstraint, "schema", ""),
    (
        "types that exclude each other",
        {"type": "string", "allOf": [{"type": "null"}]},
        UnsatisfiableConstraint,
        "schema",
        "",
    ),
    (
        "a required impossible property",
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        UnsatisfiableConstraint,
        "schema",
        "",
    ),
    (
        "endless required recursion",
        {"type": "object", "properties": {"n": {"$ref": "#"}}, "required": ["n"]},
        UnsatisfiableConstraint,
        "",
        "",
    ),
    ("an empty enum", {"enum": []}, UnsatisfiableConstraint, "schema", ""),
    ("unknown type", {"properties": {"a/b": {"type": "str"}}}, InvalidConstraint, "type", "/properties/a~1b"),
    ("negative count", {"minItems": -1}, InvalidConstraint, "minItems", ""),
    ("minimum is no number", {"minimum": "1"}, InvalidConstraint, "minimum", ""),
    ("multipleOf zero", {"multipleOf": 0}, InvalidConstraint, "multipleOf", ""),
    ("required is no list", {"required": "a"}, InvalidConstraint, "required", ""),
    ("a schema that is a number", {"items": 3}, InvalidConstraint, "schema", "/items"),
    ("dangling reference", {"$ref": "#/$defs/no"}, InvalidConstraint, "$ref", ""),
    ("unknown anchor", {"properties": {"a": {"$ref": "#no"}}}, InvalidConstraint, "$ref", "/properties/a"),
    ("remote reference", {"items": {"$ref": "http://e.test/x.json"}}, UnsupportedConstraint, "$ref", "/items"),
    ("file reference", {"$ref": "other.json#/a"}, UnsupportedConstraint, "$ref", ""),
    ("a reference to itself", {"$ref": "#"}, InvalidConstraint, "$ref", ""),
    (
        "items of which two must be equal",
        {"items": {"type": "string"}, "not": {"uniqueItems": True}},
        UnsupportedConstraint,
        "uniqueItems",
        "",
    ),
    ("draft 3", {"$schema": "http://json-schema.org/draft-03/schema#"}, UnsupportedConstraint, "$schema", ""),
]


@pytest.mark.parametrize(
    ("schema", "error", "keyword", "path"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_a_refusal_names_its_keyword_and_place(schema: Any, error: type[GrammarError], keyword: str, path: str) -> None:
    with pytest.raises(error) as caught:
        compile_schema(schema)
    assert (caught.value.keyword, caught.value.path) == (keyword, path)


LONG = [str(i) * 500 for i in range(10, 60)]
"""Too large a grammar, whatever the schema around it."""
SMALL = replace(DEFAULT_LIMITS, schema_bytes=10**6, pattern_automaton_bytes=10**9, emitted_bytes=30_000)
TOO_LARGE: list[tuple[str, Any, str, str, str]] = [
    ("a grammar", {"properties": {"a": {"enum": LONG}}}, "emitted grammar bytes", "enum", "/properties/a"),
    (
        "one of many grammars",
        {"properties": {"a": {"enum": ["x" * 9]}, "b": {"items": {"enum": LONG}}}},
        "emitted grammar bytes",
        "enum",
        "/properties/b/items",
    ),
    (
        "forced text",
        {"properties": {"a": {"type": "array", "items": {"const": 1}, "minItems": 10**6}}},
        "forced characters",
        "minItems",
        "/properties/a",
    ),
    (
        "the automata of a conjunction",
        {"items": {"allOf": [{"pattern": f"[ab].{{{n}}}c"} for n in (12, 11, 10)]}},
        "compile steps",
        "pattern",
        "/items/allOf/2",
    ),
]


@pytest.mark.parametrize(
    ("schema", "limit", "keyword", "path"), [row[1:] for row in TOO_LARGE], ids=[row[0] for row in TOO_LARGE]
)
@pytest.mark.parametrize("above", ["", "/tools/0/function/parameters/properties/t"])
def test_what_is_too_large_is_refused_by_keyword_and_place(
    schema: Any, limit: str, keyword: str, path: str, above: str
) -> None:
    spec = GrammarSpec(Kind.JSON_SCHEMA, {"schema": schema})
    if above:
        tool = {"name": "add", "parameters": {"type": "object", "properties": {"t": schema}}}
        spec = GrammarSpec(Kind.TOOLS, {"format": "hermes", "tools": [tool]})
    with pytest.raises(GrammarError) as caught:
        compile_spec(spec, SMALL)
    assert limit in caught.value.reason
    assert (caught.value.keyword, caught.value.path) == (keyword, above + path)
    assert ("tool 'add': " in str(caught.value)) == bool(above)


def nested(depth: int, wrap: Any) -> Any:
    schema: Any = {"type": "null"}
    for _ in range(depth):
        schema = wrap(schema)
    return schema


HOSTILE: list[tuple[str, Any]] = [
    ("deep nesting", nested(3000, lambda s: {"type": "array", "items": s})),
    ("doubling anyOf", nested(20, lambda s: {"anyOf": [{"items": s}, {"properties": {"a": s}}]})),
    (
        "oneOf of overlapping objects",
        {"oneOf": [{"properties": {f"k{i}": {"type": "integer"}, f"l{i}": {"minimum": 1}}} for i in range(40)]},
    ),
    (
        "long chain of references",
        {"$defs": {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(5000)}, "$ref": "#/$defs/d0"},
    ),
    ("counting many optional properties", {"properties": {f"k{i}": {} for i in range(4000)}, "minProperties": 2000}),
    ("counting many matches", {"contains": {"const": 1}, "minContains": 100_000}),
]


@pytest.mark.parametrize("schema", [case[1] for case in HOSTILE], ids=[case[0] for case in HOSTILE])
def test_a_hostile_schema_is_refused_or_compiled_in_bounded_work(schema: Any) -> None:
    started = time.process_time()
    with pytest.raises(GrammarError):
        compile_schema(schema, replace(DEFAULT_LIMITS, steps=200_000))
    assert time.process_time() - started < 5


def test_nesting_past_the_limit_is_a_limit_error() -> None:
    with pytest.raises(LimitExceeded, match="schema depth limit is 4"):
        compile_schema(nested(6, lambda s: {"items": s}), replace(DEFAULT_LIMITS, json_depth=4))
