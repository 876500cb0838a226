"""The keyword grid: for each keyword a fragment, a value that breaks it and one that keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Fragment = dict[str, Any]


@dataclass(frozen=True)
class Keyword:
    """`fragment` holds for a value of `type`; `wrong` breaks it, `right` keeps it. Both are of that type."""

    name: str
    type: str
    fragment: Fragment
    wrong: Any
    right: Any

    def schema(self, typed: bool) -> Fragment:
        """The fragment under the property "value", with its `type` beside it or without."""
        inner = {"type": self.type, **self.fragment} if typed else dict(self.fragment)
        return {
            "type": "object",
            "properties": {"value": inner},
            "required": ["value"],
            "additionalProperties": False,
        }


_INT = {"type": "integer"}
_A1 = {"properties": {"a": _INT}}

# the eighteen of the study: its hard ones, and the specimens D70 to D77
STUDY = (
    Keyword("pattern", "string", {"pattern": "^[A-Z]{3}-[0-9]{4}$"}, "abc", "ABC-1234"),
    Keyword("pattern, unanchored", "string", {"pattern": "[0-9]"}, "abc", "a1"),
    Keyword("minLength", "string", {"minLength": 8}, "short", "long enough"),
    Keyword("maxLength", "string", {"maxLength": 3}, "too long", "ok"),
    Keyword("enum", "string", {"enum": ["red", "blue"]}, "green", "red"),
    Keyword("const", "string", {"const": "yes"}, "no", "yes"),
    Keyword("format: date", "string", {"format": "date"}, "2026-02-30", "2026-02-28"),
    Keyword("minimum", "integer", {"minimum": 100}, 1, 100),
    Keyword("maximum", "integer", {"maximum": 10}, 11, 10),
    Keyword("exclusiveMinimum", "integer", {"exclusiveMinimum": 5}, 5, 6),
    Keyword("exclusiveMaximum", "number", {"exclusiveMaximum": 5}, 5, 4.5),
    Keyword("multipleOf", "integer", {"multipleOf": 5}, 7, 15),
    Keyword("minItems", "array", {"items": _INT, "minItems": 3}, [1], [1, 2, 3]),
    Keyword("maxItems", "array", {"items": _INT, "maxItems": 2}, [1, 2, 3], [1]),
    Keyword("uniqueItems", "array", {"items": {"enum": [1, 2, 3]}, "uniqueItems": True}, [1, 1], [1, 2]),
    Keyword("required", "object", {**_A1, "required": ["a"]}, {}, {"a": 1}),
    Keyword("additionalProperties", "object", {**_A1, "additionalProperties": False}, {"b": 1}, {"a": 1}),
    Keyword("patternProperties", "object", {"patternProperties": {"^n": _INT}}, {"n1": "x"}, {"n1": 1}),
)
# what the study's grid left out
MORE = (
    Keyword("pattern and maxLength", "string", {"pattern": "^a+$", "maxLength": 3}, "aaaa", "aa"),
    Keyword("const and minLength", "string", {"enum": ["a", "abc"], "minLength": 2}, "a", "abc"),
    Keyword("format: email", "string", {"format": "email"}, "nobody", "a@example.com"),
    Keyword("format: date-time", "string", {"format": "date-time"}, "yesterday", "2026-02-28T10:00:00Z"),
    Keyword("format: uuid", "string", {"format": "uuid"}, "1234", "123e4567-e89b-12d3-a456-426614174000"),
    Keyword("format: ipv4", "string", {"format": "ipv4"}, "999.1.1.1", "10.0.0.1"),
    Keyword("format: uri", "string", {"format": "uri"}, "no uri", "https://example.com/a"),
    Keyword("multipleOf, decimal", "number", {"multipleOf": 0.5, "maximum": 99}, 1.3, 1.5),
    Keyword("multipleOf and minimum", "integer", {"multipleOf": 5, "minimum": 10, "maximum": 99}, 13, 15),
    Keyword("uniqueItems, endless", "array", {"items": _INT, "uniqueItems": True, "maxItems": 4}, [7, 7], [1, 2]),
    Keyword("contains", "array", {"items": {"type": ["integer", "string"]}, "contains": _INT}, ["a"], ["a", 1]),
    Keyword(
        "minContains, maxContains",
        "array",
        {"items": {"enum": [1, 2, "a"]}, "contains": _INT, "minContains": 1, "maxContains": 2},
        [1, 2, 1],
        [1, "a"],
    ),
    Keyword("prefixItems", "array", {"prefixItems": [_INT], "items": False}, ["a"], [1]),
    Keyword("minProperties", "object", {**_A1, "additionalProperties": False, "minProperties": 1}, {}, {"a": 1}),
    Keyword(
        "maxProperties", "object", {"properties": {"a": _INT, "b": _INT}, "maxProperties": 1}, {"a": 1, "b": 2}, {}
    ),
    Keyword("propertyNames", "object", {"propertyNames": {"enum": ["a", "b"]}}, {"c": 1}, {"a": 1}),
    Keyword("dependentRequired", "object", {**_A1, "dependentRequired": {"a": ["b"]}}, {"a": 1}, {"a": 1, "b": 2}),
    Keyword(
        "dependentSchemas",
        "object",
        {**_A1, "dependentSchemas": {"a": {"required": ["b"]}}},
        {"a": 1},
        {"a": 1, "b": 2},
    ),
    Keyword(
        "if, then, else",
        "object",
        {
            "properties": {"kind": {"enum": ["a", "b"]}, "n": _INT},
            "required": ["kind"],
            "additionalProperties": False,
            "if": {"properties": {"kind": {"const": "a"}}},
            "then": {"required": ["n"]},
        },
        {"kind": "a"},
        {"kind": "a", "n": 1},
    ),
    Keyword("not", "string", {"not": {"const": "no"}, "maxLength": 5}, "no", "yes"),
    Keyword("allOf", "integer", {"allOf": [{"minimum": 3}, {"maximum": 5}]}, 6, 4),
    Keyword("anyOf and sibling", "integer", {"anyOf": [{"maximum": 2}, {"minimum": 8}], "maximum": 9}, 5, 8),
    Keyword("oneOf", "integer", {"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}], "maximum": 99}, 6, 4),
    Keyword(
        "unevaluatedProperties",
        "object",
        {"allOf": [_A1], "unevaluatedProperties": False},
        {"a": 1, "b": 2},
        {"a": 1},
    ),
)


def grid() -> Iterator[tuple[Keyword, bool]]:
    """Each keyword with its `type` and without."""
    for keyword in (*STUDY, *MORE):
        yield keyword, True
        yield keyword, False
