"""Random schemas and values against an independent validator, and the canonical spelling against the grammar."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from guided_grammar.errors import GrammarError, LimitExceeded, UnsatisfiableConstraint, UnsupportedConstraint
from guided_grammar.schema import compile_schema
from guided_grammar.schema.canonical import Canonical, write
from guided_testing.ebnf import Matcher
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

KEYS = st.sampled_from(["a", "b", "ab", "c"])
SCALARS = st.none() | st.booleans() | st.integers(-3, 4) | st.sampled_from(["", "a", "ab", "b", "0.5"]) | st.just(0.5)
VALUES = st.recursive(SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(KEYS, v, max_size=3), max_leaves=5)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])


def keyword_maps(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    lists = st.lists(inner, min_size=1, max_size=3)
    options = {
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "const": VALUES,
        "minimum": st.integers(-2, 2),
        "exclusiveMaximum": st.integers(-1, 3),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(0, 2),
        "pattern": st.sampled_from(["a", "^b", "^a*$"]),
        "prefixItems": lists,
        "items": inner,
        "minItems": st.integers(0, 2),
        "maxItems": st.integers(0, 3),
        "contains": inner,
        "minContains": st.integers(0, 2),
        "maxContains": st.integers(1, 2),
        "uniqueItems": st.booleans(),
        "properties": st.dictionaries(KEYS, inner, max_size=3),
        "required": st.lists(KEYS, max_size=2, unique=True),
        "additionalProperties": inner,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=2),
        "propertyNames": st.sampled_from([{"maxLength": 1}, {"enum": ["a", "b"]}, {"pattern": "a"}]),
        "minProperties": st.integers(0, 3),
        "maxProperties": st.integers(0, 2),
        "dependentRequired": st.dictionaries(KEYS, st.lists(KEYS, max_size=1), max_size=1),
        "dependentSchemas": st.dictionaries(KEYS, inner, max_size=1),
        "unevaluatedProperties": inner,
        "unevaluatedItems": inner,
        "allOf": lists,
        "anyOf": lists,
        "oneOf": lists,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
    }
    names = st.lists(st.sampled_from(sorted(options)), min_size=1, max_size=4, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: options[name] for name in chosen}))


SCHEMAS = st.recursive(st.booleans() | st.builds(lambda t: {"type": t}, TYPES), keyword_maps, max_leaves=6)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(schema=SCHEMAS, values=st.lists(VALUES, min_size=4, max_size=8))
def test_a_random_schema_lets_through_exactly_its_values(schema: Any, values: list[Any]) -> None:
    oracle = jsonschema.Draft202012Validator(schema)
    valid = [value for value in values if oracle.is_valid(value)]
    try:
        grammar, canonical = Matcher(compile_schema(schema)), Canonical(schema)
    except UnsatisfiableConstraint:
        assert valid == []
        return
    except (UnsupportedConstraint, LimitExceeded):
        return
    for value in values:
        assert canonical.contains(value) == oracle.is_valid(value), value
        assert grammar.accepts(canonical.text(value)) == oracle.is_valid(value), canonical.text(value)
        assert not grammar.accepts(write(value)) or oracle.is_valid(value), value


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        ({"properties": {"b": {}, "a": {}}}, {"z": 1, "a": 2, "b": 3}, '{"b": 3, "a": 2, "z": 1}'),
        (
            {"$defs": {"x": {"properties": {"k": {}}}}, "items": {"$ref": "#/$defs/x"}},
            [{"j": 1, "k": 2}],
            '[{"k": 2, "j": 1}]',
        ),
        ({"allOf": [{"properties": {"b": {}}}], "properties": {"a": {}}}, {"a": 1, "b": 2}, '{"b": 2, "a": 1}'),
        (
            {
                "anyOf": [
                    {"properties": {"b": {"const": 1}, "a": {}}, "required": ["b"]},
                    {"properties": {"a": {}, "b": {}}},
                ]
            },
            {"a": 1, "b": 2},
            '{"b": 2, "a": 1}',
        ),
        (True, {"x": [1.0, 1e3, -0.0, 1e-3]}, '{"x": [1, 1000, 0, 0.001]}'),
    ],
)
def test_the_canonical_text_has_declared_names_first_and_plain_numbers(schema: Any, value: Any, text: str) -> None:
    assert Canonical(schema).text(value) == text
    assert Matcher(compile_schema(schema)).accepts(text)
    assert json.loads(text) == value


def test_membership_and_refusal_agree_with_the_compiler() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "http://e.test/x"}}}
    with pytest.raises(GrammarError):
        compile_schema(schema)
    with pytest.raises(GrammarError):
        Canonical(schema).contains({"a": 1})
