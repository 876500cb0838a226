"""Schemas as Pydantic and Zod write them: each compiles within the default limits, and is enforced."""

from __future__ import annotations

import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from guided_grammar.schema import compile_schema
from guided_testing.ebnf import Matcher
from pydantic import BaseModel, Field, HttpUrl, TypeAdapter


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str | None = None


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


class Order(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    tags: dict[str, Colour]


URL = "https://shop.example.com:8443/products/a%20b?ref=news&x=1#top"
PYDANTIC: list[tuple[Any, list[Any], list[Any]]] = [
    (HttpUrl, [URL, "http://a.example/" + "x" * 300], ["no url", "http://a b", "http://a/%2", "x:" + "y" * 2082, ""]),
    (UUID, ["12345678-1234-1234-1234-123456789abc"], ["12345678"]),
    (datetime, ["2024-02-29T12:00:00Z"], ["2023-02-29T12:00:00Z"]),
    (date, ["2024-02-29"], ["2024-02-30"]),
    (time, ["12:00:00Z"], ["25:00:00Z"]),
    (timedelta, ["P1DT2H"], ["1 day"]),
    (Decimal, [1.5, "1.50"], [None, []]),
    (Annotated[str, Field(min_length=2, max_length=255)], ["ab", "x" * 255], ["a", "x" * 256]),
    (Annotated[str, Field(pattern="^[a-z]+(-[a-z]+)*$", max_length=63)], ["a-b"], ["a--b", "a" * 64]),
    (Annotated[int, Field(ge=1, lt=100)], [1, 99], [0, 100]),
    (Annotated[float, Field(gt=0, multiple_of=0.5)], [0.5, 2], [0, 0.25]),
    (int | None, [3, None], ["3"]),
    (Colour, ["red"], ["green"]),
    (Literal["a", 1], ["a", 1], ["b", 2]),
    (Annotated[list[int], Field(min_length=1, max_length=3)], [[1], [1, 2, 3]], [[], [1, 2, 3, 4]]),
    (tuple[int, str], [[1, "a"]], [[1], ["a", 1]]),
    (dict[str, Cat], [{"tom": {"kind": "cat", "lives": 9}}], [{"tom": {"kind": "cat"}}]),
    (Tree, [{"value": 1, "children": [{"value": 2}]}], [{"value": 1, "children": [{}]}]),
    (
        Order,
        [{"pet": {"kind": "dog", "name": None}, "tags": {"a": "red"}}],
        [{"pet": {"kind": "dog", "lives": 1.5, "name": 1}, "tags": {}}, {"pet": {"kind": "cow"}, "tags": {}}],
    ),
]
WRITTEN: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({"type": "string", "format": "uri", "maxLength": 100}, [URL], ["https://e.com/" + "a" * 87, "a b"]),
    (
        {"type": "string", "format": "email", "maxLength": 254},
        ["first.last+tag@mail.example.co.uk"],
        ["a@b@c", "a@" + "b" * 253],
    ),
    ({"type": "string", "format": "date-time", "maxLength": 64}, ["2024-01-01T00:00:00.123Z"], ["2024-01-01"]),
    ({"type": "string", "pattern": "foo", "maxLength": 1000}, ["a foo"], ["bar", "foo" + "x" * 998]),
    (
        {"type": "object", "properties": {"id": {"type": "string", "format": "uuid"}}, "additionalProperties": False},
        [{}],
        [{"id": "1"}, {"x": 1}],
    ),
    (
        {"type": "integer", "exclusiveMinimum": 0, "maximum": 9007199254740991},
        [1, 9007199254740991],
        [0, 9007199254740992],
    ),
]
ROWS: list[tuple[str, Any, list[Any], list[Any]]] = [
    *((getattr(kind, "__name__", str(kind)), TypeAdapter(kind).json_schema(), yes, no) for kind, yes, no in PYDANTIC),
    *((json.dumps(schema)[:60], schema, yes, no) for schema, yes, no in WRITTEN),
]


@pytest.mark.parametrize(("schema", "valid", "invalid"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_common_schema_is_enforced(schema: Any, valid: list[Any], invalid: list[Any]) -> None:
    matcher = Matcher(compile_schema(schema))
    verdicts = [matcher.accepts(json.dumps(value, ensure_ascii=False)) for value in [*valid, *invalid]]
    assert verdicts == [True] * len(valid) + [False] * len(invalid)
