"""Several demands on undeclared properties at once, with counts: what xgrammar's masks let through, byte by byte."""

from __future__ import annotations

import itertools
import json
from functools import cache
from typing import Any

import jsonschema
import numpy as np
import pytest
from guided_grammar.compiler import compile_spec
from guided_grammar.errors import GrammarError, UnsupportedConstraint
from guided_grammar.session import MaskEngine
from guided_grammar.spec import GrammarSpec, Kind
from guided_grammar.vocabulary import Vocabulary


@cache
def engine() -> MaskEngine:
    return MaskEngine(Vocabulary.of_bytes())


def accepts(schema: Any, *texts: str) -> list[bool]:
    masks = engine().compile(compile_spec(GrammarSpec(Kind.JSON_SCHEMA, {"schema": schema})).text)

    def one(text: str) -> bool:
        session = engine().session(masks)
        return all(map(session.accept, text.encode())) and session.is_complete

    return [one(text) for text in texts]


def some_name(pattern: str) -> dict[str, Any]:
    return {"not": {"propertyNames": {"not": {"pattern": pattern}}}}


def some_value(pattern: str, schema: Any) -> dict[str, Any]:
    return {"not": {"patternProperties": {pattern: {"not": schema}}}}


INTEGER, STRING = {"type": "integer"}, {"type": "string"}
SCHEMAS: list[tuple[str, dict[str, Any]]] = [
    ("two names", {"allOf": [some_name("a"), some_name("b")]}),
    ("two names, one property", {"allOf": [some_name("a"), some_name("b"), {"maxProperties": 1}]}),
    ("three names, two properties", {"allOf": [*map(some_name, "abc"), {"maxProperties": 2}]}),
    ("one name and a count", {"allOf": [some_name("a"), {"minProperties": 2, "maxProperties": 3}]}),
    ("two values", {"allOf": [some_value("a", INTEGER), some_value("b", STRING)]}),
    ("values that exclude each other", {"allOf": [some_value("a", INTEGER), some_value("a", STRING)]}),
    ("one of few names", {"not": {"propertyNames": {"not": {"enum": ["a", "b"]}}}, "minProperties": 2}),
    (
        "few names, two demands",
        {
            "allOf": [{"not": {"propertyNames": {"not": {"enum": names}}}} for names in (["a", "c"], ["b", "c"])],
            "propertyNames": {"pattern": "^[abc]$"},
        },
    ),
    (
        "a declared name meets a demand",
        {"properties": {"ab": INTEGER}, "allOf": [some_name("a"), some_name("b")], "maxProperties": 2},
    ),
    (
        "unevaluated inside of not",
        {"not": {"anyOf": [True, {"properties": {"a": True}}], "unevaluatedProperties": False}},
    ),
]


@pytest.mark.parametrize("schema", [s for _, s in SCHEMAS], ids=[name for name, _ in SCHEMAS])
def test_small_objects_are_taken_where_a_validator_takes_them(schema: dict[str, Any]) -> None:
    schema = {"type": "object", **schema}
    names, values = ("a", "b", "c", "ab", "bc", "x"), (1, "s")
    pairs = [dict(zip(keys, held, strict=True)) for n in range(4) for keys in itertools.combinations(names, n)
             for held in itertools.product(values, repeat=n)]  # fmt: skip
    if "properties" in schema:
        pairs = [{k: p[k] for k in sorted(p, key=lambda k: k not in schema["properties"])} for p in pairs]
    oracle = jsonschema.Draft202012Validator(schema)
    expected = [bool(oracle.is_valid(pair)) for pair in pairs]
    assert accepts(schema, *map(json.dumps, pairs)) == expected
    assert len(set(expected)) == 2


def test_a_name_that_met_a_demand_is_not_written_again() -> None:
    schema = {"type": "object", "allOf": [some_value("a", INTEGER), some_value("b", STRING)]}
    good, twice = '{"a": 1, "b": "s"}', '{"a": 1, "b": "s", "a": "s"}'
    assert accepts(schema, good, twice) == [True, False]


def test_every_beginning_can_be_ended() -> None:
    schema = {
        "type": "object",
        "allOf": [*map(some_name, "abc"), {"maxProperties": 2}],
        "propertyNames": {"pattern": "^..$"},
    }
    masks = engine().compile(compile_spec(GrammarSpec(Kind.JSON_SCHEMA, {"schema": schema})).text)
    bits = np.zeros((1, -(-engine().vocabulary.vocab_size // 32)), np.int32)
    for begun in ('{"xa": 1, "', '{"xa": 1, "b', '{"ab": 1, "', '{"ca": 1, "', '{"cc": {}, "'):
        session = engine().session(masks)
        assert all(map(session.accept, begun.encode()))
        assert session.fill(bits, 0) and bits.any()
    session = engine().session(masks)
    assert not all(map(session.accept, b'{"xx": 1'))


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [some_name(c) for c in "abcdefg"]},
        {"allOf": [some_name("^[a-z]{2}$"), some_name("x")], "maxProperties": 80},
    ],
    ids=["seven demands", "names that could run out"],
)
def test_more_than_that_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedConstraint) as caught:
        accepts({"type": "object", **schema}, "{}")
    assert isinstance(caught.value, GrammarError) and caught.value.keyword == "not"
