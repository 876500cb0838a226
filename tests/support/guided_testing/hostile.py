"""Requests that try to hurt the server: each must be answered with 200 or 400 within ten seconds.

From the measured faults of mask engines: compile hangs, slow fills, stack overflows, memory blow-ups, broken text.
"""

from __future__ import annotations

import json
from typing import Any


def nested(depth: int, key: str, inner: Any) -> Any:
    """A schema that holds itself `depth` times below `key` ("items", "a" for a property, "anyOf")."""
    schema: Any = inner
    for _ in range(depth):
        if key == "items":
            schema = {"type": "array", "items": schema}
        elif key == "anyOf":
            schema = {"anyOf": [schema, {"type": "null"}]}
        else:
            schema = {"type": "object", "properties": {key: schema}, "required": [key]}
    return schema


def doubling(depth: int) -> Any:
    """Two containers at every level: 2**depth paths."""
    schema: Any = {"type": "integer"}
    for _ in range(depth):
        schema = {"anyOf": [{"type": "array", "items": schema}, {"type": "object", "additionalProperties": schema}]}
    return schema


def _regexes() -> dict[str, str]:
    return {
        "exponential_dfa": "(a|b)*a(a|b){17}",
        "nested_stars": "((a*)*)*b",
        "nested_repeats": "((a{1,100}){1,100}){1,100}",
        "huge_repeat": "a{1,10000000}",
        "overflowing_repeat": "a{2147483648}",
        "two_wide_windows": ".{1,500}x.{1,500}y",
        "many_optionals": "(a?b?)" * 600,
        "deep_parentheses": "(" * 2000 + "a" + ")" * 2000,
        "unbalanced": "(" * 4000,
        "null_byte": "a\0b",
        "lone_surrogate": "\ud800",
        "any_thousand": ".{1,1000}",
        "overlapping_words": "(\\w|[a-z]|[0-9a-f])*z",
        "long_literal": "x" * 4096,
        "too_long": "é" * 2049,
    }


def _grammars() -> dict[str, str]:
    return {
        "optional_rule_sixty_times": "root ::= " + "r? " * 60 + "\nr ::= [a-z] [a-z]?",
        "optional_rule_five_hundred_times": "root ::= " + "r? " * 500 + "\nr ::= [a-z] [a-z]?",
        "optional_class_five_hundred_times": "root ::= " + "[a-z]? " * 500,
        "optional_literal_two_thousand_times": "root ::= " + '"a"? ' * 2000,
        "ambiguous_words": "root ::= w*\nw ::= [a-z]+ | [a-y]+ | [b-z ]+",
        "ambiguous_pairs": "root ::= root root | [a-z ]",
        "left_recursion": 'root ::= root "a" | "a"',
        "never_ends": 'root ::= root "a"',
        "only_itself": "root ::= root",
        "empty_loop": 'root ::= ("" | "a"?)*',
        "chain_of_rules": "root ::= r0\n" + "\n".join(f"r{i} ::= r{i + 1}" for i in range(700)) + '\nr700 ::= "x"',
        "deep_groups": "root ::= " + "(" * 3000 + '"a"' + ")" * 3000,
        "doubling": "\n".join(["root ::= r0", *(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(40)), 'r40 ::= "a"']),
        "rule_repeated": "root ::= c{0,1000}\nc ::= [a-z] | [^a-z]",
        "huge_repeat": 'root ::= "a"{1,2000000000}',
        "undefined_rule": "root ::= missing",
        "no_root": 'start ::= "a"',
        "null_byte": 'root ::= "\0"',
        "garbage": "{}[]()|||:::=== \\",
    }


def _schemas() -> dict[str, Any]:
    many = {f"k{i}": {"type": "integer"} for i in range(400)}
    return {
        "nested_arrays": nested(300, "items", {"type": "integer"}),
        "nested_objects": nested(200, "a", {"type": "integer"}),
        "nested_any_of": nested(200, "anyOf", {"type": "string"}),
        "nested_within_limit": nested(30, "a", nested(30, "items", {"type": "string"})),
        "doubling_containers": doubling(11),
        "four_hundred_optionals_with_minimum": {"type": "object", "properties": many, "minProperties": 200},
        "four_hundred_optionals": {"type": "object", "properties": many},
        "huge_enum": {"enum": [f"value-{i * 7919 % 100003}" for i in range(900)]},
        "huge_const": {"const": "x" * 15_000},
        "long_pattern": {"type": "string", "pattern": "[a-z]{1,5000}"},
        "any_thousand": {"type": "string", "pattern": "^.{1,1000}$"},
        "many_patterns": {"anyOf": [{"type": "string", "pattern": f"^[a-z]{{{i}}}x"} for i in range(1, 200)]},
        "deep_parentheses": {"type": "string", "pattern": "(" * 7000 + "a" + ")" * 7000},
        "circular_all_of": {"allOf": [{"$ref": "#"}]},
        "circular_refs": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        "endless_object": {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        "remote_reference": {"$ref": "http://127.0.0.1:1/schema.json"},
        "not_not_not": {"not": {"not": {"not": {"type": "object", "properties": many}}}},
        "one_of_overlapping": {"oneOf": [{"type": "integer", "multipleOf": i} for i in range(2, 14)]},
        "unsatisfiable": {"type": "integer", "minimum": 5, "maximum": 4},
        "huge_bounds": {"type": "integer", "minimum": -(10**300), "maximum": 10**300},
        "huge_max_items": {"type": "array", "items": {"type": "integer"}, "maxItems": 10**9},
        "huge_max_length": {"type": "string", "minLength": 10**6, "maxLength": 2 * 10**9},
        "nested_bounds": {"type": "array", "maxItems": 200, "items": {"type": "array", "maxItems": 200, "items": {}}},
        "unique_over_anything": {"type": "array", "uniqueItems": True},
        "wrong_types": {"type": 5, "properties": [], "required": "a", "enum": {}},
        "array_as_schema": [1, 2, 3],
        "lone_surrogate_key": {"type": "object", "properties": {"\ud800": {}}},
        "null_byte": {"const": "\0"},
        "tiny_multiple": {"type": "number", "multipleOf": 1e-300},
        "reference_tree": {"$ref": "#/$defs/d0", "$defs": reference_tree(20)},
    }


def reference_tree(depth: int) -> dict[str, Any]:
    """2**depth references through `depth` definitions."""
    pair = {
        f"d{i}": {"type": "array", "prefixItems": [{"$ref": f"#/$defs/d{i + 1}"}] * 2, "items": False}
        for i in range(depth)
    }
    return {**pair, f"d{depth}": {"type": "integer"}}


def hostile_fields() -> dict[str, dict[str, Any]]:
    """Constraint fields of a chat request, by name."""
    cases: dict[str, dict[str, Any]] = {}
    cases |= {f"regex_{k}": {"guided_regex": v} for k, v in _regexes().items()}
    cases |= {f"grammar_{k}": {"guided_grammar": v} for k, v in _grammars().items()}
    cases |= {f"schema_{k}": {"guided_json": v} for k, v in _schemas().items()}
    cases["choice_many"] = {"guided_choice": [f"option {i}" for i in range(4000)]}
    cases["choice_of_nothing"] = {"guided_choice": [""]}
    cases["choice_wrong_types"] = {"guided_choice": [1, None, {}]}
    tools = [{"type": "function", "function": {"name": f"f{i}", "parameters": doubling(4)}} for i in range(100)]
    cases["tools_many"] = {"tools": tools, "tool_choice": "required"}
    return cases


def hostile_bodies() -> dict[str, bytes]:
    """Whole request bodies that are not what they should be, by name."""
    message = {"messages": [{"role": "user", "content": "x"}]}
    return {
        "empty": b"",
        "not_json": b"{'a': 1}",
        "null_bytes": b"\0" * 1000,
        "deep_json": b'{"messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        "ten_megabytes": json.dumps({**message, "user": "x" * 10_000_000}).encode(),
        "invalid_utf8": b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}',
        "lone_surrogate": b'{"messages": [{"role": "user", "content": "\\ud800"}], "max_tokens": 4}',
        "huge_number": b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": 1' + b"0" * 5000 + b"}",
        "not_a_number": b'{"messages": [{"role": "user", "content": "x"}], "temperature": NaN}',
    }
