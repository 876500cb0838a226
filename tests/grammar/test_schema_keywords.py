"""What each JSON Schema keyword lets through and what it keeps out, on single bytes."""

from __future__ import annotations

from typing import Any

import pytest
from guided_grammar.schema import compile_schema
from guided_testing.ebnf import Matcher

Case = tuple[str, Any, list[str], list[str]]

SCALARS: list[Case] = [
    ("true allows anything", True, ["null", "1", '"a"', "[1, {}]", '{"a": [null]}'], ["", "nul", "[1,2]", "{'a': 1}"]),
    ("type null", {"type": "null"}, ["null"], ["0", '""', "false"]),
    ("type boolean", {"type": "boolean"}, ["true", "false"], ["null", "1", '"true"']),
    ("type integer", {"type": "integer"}, ["0", "-12", "99"], ["1.5", "01", "-0", '"1"', "1e3"]),
    ("several types", {"type": ["string", "null"]}, ['"x"', "null"], ["1", "[]"]),
    ("integer and number", {"type": ["integer", "number"]}, ["1", "1.5"], ["null"]),
    ("enum of scalars", {"enum": ["a", 1, None, True]}, ['"a"', "1", "null", "true"], ["false", "2", '"b"']),
    ("enum of composites", {"enum": [[1, {"b": 2, "a": []}]]}, ['[1, {"b": 2, "a": []}]'], ["[1]", '[1, {"b": 2}]']),
    (
        "an enum is filtered by its siblings",
        {"enum": ["a", 1, "long"], "type": "string", "maxLength": 2},
        ['"a"'],
        ["1", '"long"'],
    ),
    ("const", {"const": {"k": [None]}}, ['{"k": [null]}'], ["{}", '{"k": []}', '{"k": [null], "l": 1}']),
    (
        "const large integer",
        {"const": 12345678901234567890123},
        ["12345678901234567890123"],
        ["12345678901234567890124"],
    ),
    ("const 1.0 is 1", {"const": 1.0}, ["1"], ["1.5", "true"]),
    ("true is not 1", {"enum": [True]}, ["true"], ["1"]),
    ("untyped minimum binds numbers only", {"minimum": 3}, ["3", '"a"', "null", "[0]"], ["2", "2.9", "-3"]),
    ("integer range", {"type": "integer", "minimum": 1, "maximum": 120}, ["1", "120", "99"], ["0", "121", "-1"]),
    ("exclusive range", {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 4}, ["2", "3"], ["1", "4"]),
    (
        "boolean exclusive bounds",
        {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 3},
        ["2", "3"],
        ["1"],
    ),
    ("length", {"type": "string", "minLength": 2, "maxLength": 3}, ['"ab"', '"abc"', '"a\\""'], ['"a"', '"abcd"']),
    ("no raw control characters", {"type": "string"}, ['"\\n"', '"\\u0001"', '"é😀"'], ['"\n"', '"\x01"']),
]

ARRAYS: list[Case] = [
    ("items", {"type": "array", "items": {"type": "integer"}}, ["[]", "[1]", "[1, 2]"], ["[null]", "[1,2]", "[1, ]"]),
    ("untyped items", {"items": {"type": "integer"}}, ["[1]", "{}", "null"], ['["a"]']),
    ("items false", {"type": "array", "items": False}, ["[]"], ["[1]"]),
    ("item counts", {"type": "array", "minItems": 1, "maxItems": 2}, ["[1]", "[1, 2]"], ["[]", "[1, 2, 3]"]),
    (
        "exactly many",
        {"type": "array", "items": {"const": 1}, "minItems": 300, "maxItems": 301},
        ["[" + ", ".join(["1"] * n) + "]" for n in (300, 301)],
        ["[" + ", ".join(["1"] * n) + "]" for n in (299, 302)],
    ),
    (
        "at most many",
        {"type": "array", "items": {"const": 1}, "maxItems": 700},
        ["[" + ", ".join(["1"] * n) + "]" for n in (0, 1, 349, 350, 351, 700)],
        ["[" + ", ".join(["1"] * n) + "]" for n in (701, 702)],
    ),
    (
        "prefixItems",
        {"type": "array", "prefixItems": [{"const": 1}, {"const": 2}]},
        ["[]", "[1]", "[1, 2]", "[1, 2, null]"],
        ["[2]", "[1, 3]"],
    ),
    ("closed tuple", {"type": "array", "prefixItems": [{"const": 1}], "items": False}, ["[]", "[1]"], ["[1, 1]"]),
    (
        "prefix of an impossible item",
        {"type": "array", "prefixItems": [{"const": 1}, False, {}]},
        ["[]", "[1]"],
        ["[1, 1]"],
    ),
    (
        "draft 7 tuple",
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "array",
            "items": [{"const": 1}],
            "additionalItems": {"const": 2},
        },
        ["[1]", "[1, 2, 2]"],
        ["[2]", "[1, 1]"],
    ),
    ("contains", {"type": "array", "contains": {"const": 1}}, ["[1]", "[2, 1]", "[1, 1]"], ["[]", "[2]"]),
    (
        "contains twice at most",
        {"type": "array", "contains": {"const": 1}, "minContains": 0, "maxContains": 2},
        ["[]", "[1, 2, 1]"],
        ["[1, 1, 1]"],
    ),
    (
        "contains with few items",
        {"type": "array", "contains": {"const": 1}, "maxItems": 2},
        ["[2, 1]"],
        ["[2, 2]", "[2, 2, 1]"],
    ),
    ("not contains", {"type": "array", "not": {"contains": {"const": 1}}}, ["[]", "[2]"], ["[1]", "[2, 1]"]),
    (
        "unevaluatedItems",
        {
            "type": "array",
            "anyOf": [{"prefixItems": [{"const": 1}]}, {"prefixItems": [{}, {"const": 2}]}],
            "unevaluatedItems": False,
        },
        ["[1]", "[1, 2]", "[3, 2]", "[1, 3]"][:3],
        ["[1, 2, 3]", "[1, 3]"],
    ),
    (
        "distinct items out of few values",
        {"type": "array", "items": {"enum": ["a", 1, None, True]}, "uniqueItems": True, "minItems": 1},
        ["[1]", '["a", 1, null, true]', '[true, null, "a"]'],
        ["[]", "[1, 1]", '["a", 1, "a"]', "[2]"],
    ),
    ("a tuple of one cannot repeat", {"type": "array", "maxItems": 1, "uniqueItems": True}, ["[]", "[1]"], ["[1, 1]"]),
]

OBJECTS: list[Case] = [
    (
        "declared order, optional ones left out",
        {"type": "object", "properties": {"b": {"const": 1}, "a": {"const": 2}}, "additionalProperties": False},
        ["{}", '{"b": 1}', '{"a": 2}', '{"b": 1, "a": 2}'],
        ['{"a": 2, "b": 1}', '{"b": 2}', '{"c": 1}', '{"b": 1,"a": 2}', '{"b": 1, "b": 1}'],
    ),
    (
        "required",
        {"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}, "required": ["b"]},
        ['{"b": 2}', '{"a": 1, "b": 2}'],
        ["{}", '{"a": 1}'],
    ),
    ("required without properties", {"required": ["x"]}, ['{"x": null}', '{"x": 1, "y": 2}', "[]"], ["{}", '{"y": 1}']),
    (
        "other names stay open",
        {"type": "object", "properties": {"foo": {"type": "integer"}}},
        [
            '{"foo": 1, "bar": "x"}',
            '{"fo": "x"}',
            '{"food": "x"}',
            '{"": "x"}',
            '{"f\\"": "x"}',
            '{"\\n": "x"}',
            '{"é": "x"}',
            '{"Foo": "x"}',
        ],
        ['{"foo": "x"}', '{"bar": 1, "foo": "x"}', '{"\\u0066oo": "x"}', '{"f\\u006fo": "x"}'],
    ),
    (
        "additionalProperties by schema",
        {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "integer"}},
        ['{"a": "x", "b": 1}'],
        ['{"b": "x"}'],
    ),
    (
        "an impossible optional property is left out",
        {"type": "object", "properties": {"a": False, "b": {}}},
        ["{}", '{"b": 1}', '{"aa": 1}'],
        ['{"a": 1}'],
    ),
    (
        "propertyNames by length",
        {"type": "object", "propertyNames": {"maxLength": 2}},
        ["{}", '{"ab": 1}'],
        ['{"abc": 1}'],
    ),
    (
        "propertyNames by enum",
        {"type": "object", "propertyNames": {"enum": ["b", "a"]}, "minProperties": 2},
        ['{"a": 1, "b": 2}'],
        ['{"a": 1}', '{"c": 1}'],
    ),
    (
        "a name outside of propertyNames",
        {"type": "object", "not": {"propertyNames": {"pattern": "^b$"}}},
        ['{"a": 1}', '{"b": 1, "a": 1}', '{"a": 1, "b": 1}', '{"": 1}'],
        ["{}", '{"b": 1}'],
    ),
    (
        "a name inside of propertyNames",
        {"type": "object", "not": {"propertyNames": {"not": {"pattern": "a"}}}},
        ['{"xa": 1}', '{"b": 1, "a": 1}'],
        ["{}", '{"b": 1}'],
    ),
    (
        "a name that only additionalProperties bars",
        {
            "type": "object",
            "not": {"properties": {"a": {}}, "patternProperties": {"^x": {}}, "additionalProperties": False},
        },
        ['{"b": 1}', '{"xy": 1, "b": 1}'],
        ["{}", '{"a": 1}', '{"xy": 1}', '{"a": 1, "x": 2}'],
    ),
    (
        "minProperties",
        {
            "type": "object",
            "properties": {"a": {}, "b": {}, "c": {}},
            "additionalProperties": False,
            "minProperties": 2,
        },
        ['{"a": 1, "c": 1}', '{"a": 1, "b": 1, "c": 1}'],
        ["{}", '{"b": 1}'],
    ),
    (
        "maxProperties",
        {"type": "object", "properties": {"a": {}, "b": {}}, "maxProperties": 1},
        ["{}", '{"b": 1}', '{"z": 1}'],
        ['{"a": 1, "b": 1}', '{"a": 1, "z": 1}', '{"y": 1, "z": 1}'],
    ),
    ("one property of any name", {"type": "object", "minProperties": 1}, ['{"x": 1}'], ["{}"]),
    (
        "dependentRequired",
        {"type": "object", "dependentRequired": {"a": ["b"]}},
        ["{}", '{"b": 1}', '{"a": 1, "b": 1}'],
        ['{"a": 1}'],
    ),
    (
        "dependentSchemas",
        {"type": "object", "properties": {"a": {}}, "dependentSchemas": {"a": {"properties": {"b": {"const": 1}}}}},
        ["{}", '{"b": 2}', '{"a": 1, "b": 1}'],
        ['{"a": 1, "b": 2}'],
    ),
    (
        "dependencies of draft 7",
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "dependencies": {"a": ["b"], "c": {"required": ["d"]}},
        },
        ["{}", '{"a": 1, "b": 1}', '{"c": 1, "d": 1}'],
        ['{"a": 1}', '{"c": 1}'],
    ),
    (
        "unevaluatedProperties sees through allOf",
        {
            "type": "object",
            "allOf": [{"properties": {"a": {}}}],
            "properties": {"b": {}},
            "unevaluatedProperties": False,
        },
        ["{}", '{"a": 1, "b": 1}'],
        ['{"c": 1}'],
    ),
    (
        "unevaluatedProperties sees every branch that holds",
        {
            "type": "object",
            "anyOf": [
                {"properties": {"a": {"const": 1}}, "required": ["a"]},
                {"properties": {"b": {"const": 1}}, "required": ["b"]},
            ],
            "unevaluatedProperties": False,
        },
        ['{"a": 1}', '{"b": 1}', '{"a": 1, "b": 1}'],
        ["{}", '{"a": 1, "b": 2}', '{"a": 1, "c": 1}'],
    ),
]

COMBINATORS: list[Case] = [
    (
        "allOf meets its siblings",
        {"minimum": 2, "allOf": [{"type": "integer"}, {"maximum": 4}]},
        ["2", "4"],
        ["1", "5", '"a"'],
    ),
    (
        "allOf joins required",
        {"type": "object", "allOf": [{"required": ["a"]}, {"required": ["b"]}]},
        ['{"a": 1, "b": 2}'],
        ['{"a": 1}', '{"b": 1}'],
    ),
    (
        "anyOf keeps siblings",
        {
            "type": "object",
            "properties": {"m": {"const": 1}},
            "additionalProperties": False,
            "anyOf": [{"required": ["m"]}, {"required": ["f"]}],
        },
        ['{"m": 1}'],
        ["{}", '{"f": 1}'],
    ),
    (
        "oneOf is exactly one",
        {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]},
        ["1", "2.5", "-7"],
        ["2", "3", "1.5", '"a"'],
    ),
    (
        "oneOf by required",
        {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        ['{"a": 1}', '{"b": 1}', '{"a": 1, "c": 1}'],
        ["{}", '{"a": 1, "b": 1}'],
    ),
    (
        "oneOf by a tag",
        {
            "oneOf": [
                {"properties": {"k": {"const": 1}, "v": {"type": "null"}}, "required": ["k", "v"], "type": "object"},
                {"properties": {"k": {"const": 2}, "w": {"type": "null"}}, "required": ["k", "w"], "type": "object"},
            ]
        },
        ['{"k": 1, "v": null}', '{"k": 2, "w": null}'],
        ['{"k": 1, "w": null}', '{"k": 3}'],
    ),
    ("not", {"not": {"type": ["integer", "array", "object"]}}, ["1.5", '"a"', "null"], ["1", "[]", "{}"]),
    ("not required", {"type": "object", "not": {"required": ["a"]}}, ["{}", '{"b": 1}'], ['{"a": 1}']),
    (
        "not properties",
        {"type": "object", "not": {"properties": {"a": {"type": "integer"}}}},
        ['{"a": "x"}', '{"a": "x", "b": 1}'],
        ["{}", '{"a": 1}', '{"b": 1}'],
    ),
    (
        "not additionalProperties",
        {"type": "object", "not": {"additionalProperties": {"type": "integer"}}},
        ['{"a": "x"}', '{"a": 1, "b": null}'],
        ["{}", '{"a": 1}'],
    ),
    (
        "not const object",
        {"type": "object", "properties": {"a": {}}, "additionalProperties": False, "not": {"const": {"a": 1}}},
        ["{}", '{"a": 2}'],
        ['{"a": 1}'],
    ),
    ("not not", {"not": {"not": {"const": 3}}}, ["3"], ["4", "null"]),
    (
        "if then else",
        {
            "type": "object",
            "properties": {"k": {"enum": ["a", "b"]}, "x": {}},
            "required": ["k"],
            "additionalProperties": False,
            "if": {"properties": {"k": {"const": "a"}}},
            "then": {"required": ["x"]},
            "else": {"properties": {"x": False}},
        },
        ['{"k": "a", "x": 1}', '{"k": "b"}'],
        ['{"k": "a"}', '{"k": "b", "x": 1}'],
    ),
    ("then without if is nothing", {"then": {"type": "null"}}, ["1", "null"], []),
]

REFERENCES: list[Case] = [
    ("a definition", {"$defs": {"x": {"const": 1}}, "$ref": "#/$defs/x"}, ["1"], ["2"]),
    (
        "siblings of $ref bind",
        {"$defs": {"x": {"type": "integer"}}, "$ref": "#/$defs/x", "minimum": 3},
        ["3"],
        ["2", '"a"'],
    ),
    (
        "siblings of $ref are ignored in draft 7",
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"x": {"type": "integer"}},
            "$ref": "#/definitions/x",
            "minimum": 3,
        },
        ["2"],
        ['"a"'],
    ),
    (
        "recursion through the root",
        {"type": "object", "properties": {"n": {"$ref": "#"}}, "additionalProperties": False},
        ["{}", '{"n": {}}', '{"n": {"n": {}}}'],
        ['{"n": 1}', '{"n": {"n": 1}}'],
    ),
    (
        "recursion through a definition",
        {"$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}, "$ref": "#/$defs/t"},
        ["[]", "[[], [[]]]"],
        ["[1]", "[[1]]"],
    ),
    ("escaped pointer", {"$defs": {"a/b~c%d": {"const": 1}}, "$ref": "#/$defs/a~1b~0c%25d"}, ["1"], ["2"]),
    ("$anchor", {"$defs": {"x": {"$anchor": "here", "const": 1}}, "$ref": "#here"}, ["1"], ["2"]),
    (
        "$id inside the document",
        {"$id": "http://e.test/root", "$defs": {"x": {"$id": "item", "const": 1}}, "$ref": "http://e.test/item"},
        ["1"],
        ["2"],
    ),
    (
        "$dynamicRef",
        {
            "$id": "http://e.test/strict",
            "$dynamicAnchor": "node",
            "$ref": "tree",
            "unevaluatedProperties": False,
            "$defs": {
                "tree": {
                    "$id": "tree",
                    "$dynamicAnchor": "node",
                    "type": "object",
                    "properties": {"kids": {"type": "array", "items": {"$dynamicRef": "#node"}}},
                }
            },
        },
        ["{}", '{"kids": [{}]}', '{"kids": [{"kids": []}]}'],
        ['{"x": 1}', '{"kids": [{"x": 1}]}'],
    ),
    ("a metaword in an enum is data", {"enum": [{"$ref": "#/nowhere"}]}, ['{"$ref": "#/nowhere"}'], ["{}"]),
]

CASES = [*SCALARS, *ARRAYS, *OBJECTS, *COMBINATORS, *REFERENCES]


@pytest.mark.parametrize(
    ("schema", "allowed", "refused"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_keyword_means_what_the_specification_says(schema: Any, allowed: list[str], refused: list[str]) -> None:
    grammar = Matcher(compile_schema(schema))
    assert [text for text in allowed if not grammar.accepts(text)] == []
    assert [text for text in refused if grammar.accepts(text)] == []


def test_sorted_order_sorts_declared_names_at_every_level() -> None:
    grammar = Matcher(compile_schema({"const": {"b": {"d": 1, "c": 2}, "a": 3}}, order="sorted"))
    assert grammar.accepts('{"a": 3, "b": {"c": 2, "d": 1}}')
    assert not grammar.accepts('{"b": {"d": 1, "c": 2}, "a": 3}')
