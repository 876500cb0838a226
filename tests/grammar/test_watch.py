"""Masks of watched containers against every text that may be written.

The reference lists the values of a finite schema, asks an independent validator about each, and spells them: a token is
legal when some listed text begins with what is written and the token.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import jsonschema
import numpy as np
import pytest
from guided_grammar.schema import compile_schema
from guided_grammar.session import MaskEngine, Session
from guided_grammar.vocabulary import Vocabulary

EOS = 256
WORDS = (
    *(
        ', "',
        '", "',
        '"a"',
        '"a", "a"',
        '["a"',
        '""',
        '"", "',
        '"]',
        '"ab"',
        'a", "',
        '"a",',
        "aa",
        "ab",
        '"}, {"',
        '"}',
    ),
    *(
        ", 1",
        "1, 1",
        "1, 2",
        "[1, 1",
        "1]",
        "12",
        "2, ",
        ", 12",
        "11",
        "0, 1",
        ".0",
        "1.0",
        ".5",
        "00",
        "0, 1.0",
        "true, ",
    ),
    *(
        "[[",
        "], [",
        "]]",
        "[], []",
        "[]",
        "]}",
        ", [1], [",
        "[1]",
        '{"a": 1',
        '{"a": ',
        '": 1',
        ', "b": ',
        "1, ",
        "}]",
        "1}",
    ),
    *(
        "1}, ",
        '{"a": 1}',
        '{"a": 1}, ',
        '}, {"',
        "null",
        "null, ",
        "true",
        "tru",
        "e]",
        "{}",
        "{}, {}",
        "{}, ",
        "}, {}",
    ),
)
TOKENS = (*(bytes([byte]) for byte in range(256)), b"", *(word.encode() for word in WORDS))
ENGINE = MaskEngine(Vocabulary(TOKENS, (EOS,)))

Row = tuple[str, Any, list[Any], int]
"""(name, schema of the items, the items that may be meant, most items)"""

LETTERS = ["", "a", "b", "aa", "ab", "ba", "bb"]
SHORT = {"type": "string", "pattern": "^[ab]{0,2}$"}
ONE = {"enum": [1, 12]}
CLOSED = {"type": "object", "properties": {"a": ONE}, "required": ["a"], "additionalProperties": False}
TWO = {"type": "object", "additionalProperties": False}
ANY_ORDER = {
    "anyOf": [
        {**TWO, "properties": {"a": ONE, "b": ONE, "d": {"const": 1}}, "required": ["a", "b"]},
        {**TWO, "properties": {"b": ONE, "a": ONE, "c": {"const": 1}}, "required": ["b", "a"]},
    ]
}
SPELLINGS = [
    *({"a": a, "b": b, **more} for a in (1, 12) for b in (1, 12) for more in ({}, {"d": 1})),
    *({"b": b, "a": a, **more} for a in (1, 12) for b in (1, 12) for more in ({}, {"c": 1})),
]
PAIRS = [[], *([x] for x in LETTERS[1:3]), *([x, y] for x in LETTERS[1:3] for y in LETTERS[1:3])]

ROWS: list[Row] = [
    ("strings of bounded length", SHORT, LETTERS, 3),
    ("whole numbers", {"type": "integer", "minimum": 0, "maximum": 12}, list(range(13)), 3),
    ("words and strings", {"enum": [None, True, False, "", "a", "t", "null"]}, [None, True, False, "", "a", "t", "null"], 4),
    ("strings or numbers", {"anyOf": [SHORT, {"enum": [1, 2, 12]}]}, [*LETTERS, 1, 2, 12], 3),
    ("objects of one name", CLOSED, [{"a": 1}, {"a": 12}], 4),
    ("objects whose names come in two orders", ANY_ORDER, SPELLINGS, 2),
    ("arrays", {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2}, PAIRS, 3),
    ("arrays of which each is distinct", {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2, "uniqueItems": True}, PAIRS, 3),
    ("objects within objects", {"type": "object", "properties": {"a": ANY_ORDER}, "required": ["a"], "additionalProperties": False},
     [{"a": value} for value in SPELLINGS], 2),
    ("objects within arrays", {"type": "array", "items": ANY_ORDER, "minItems": 1, "maxItems": 1}, [[value] for value in SPELLINGS], 2),
    ("objects or strings", {"anyOf": [CLOSED, {"enum": ["a", "1"]}]}, [{"a": 1}, {"a": 12}, "a", "1"], 4),
    ("decimal numbers", {"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.5}, [0, 0.5, 1], 3),
]  # fmt: skip


def texts(schema: Any, items: list[Any], most: int) -> Iterator[str]:
    """Every text of an array that the schema allows. Values that differ in spelling only are listed once for each."""
    oracle = jsonschema.Draft202012Validator(schema)
    for count in range(most + 1):
        for chosen in product(items, repeat=count):
            if oracle.is_valid(list(chosen)):
                yield json.dumps(list(chosen))


def mask(session: Session) -> set[int]:
    bits = np.zeros((1, -(-len(TOKENS) // 32)), np.int32)
    assert session.fill(bits, 0)
    return set(np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little")).tolist())


def legal(begun: bytes, left: list[bytes]) -> set[int]:
    found = {i for i, token in enumerate(TOKENS) if token and any(text.startswith(begun + token) for text in left)}
    return found | ({EOS} if begun in left else set())


def walk(source: random.Random, session: Session, left: list[bytes]) -> int:
    """Compare masks along one random answer; how many were compared."""
    begun, num_compared = b"", 0
    while True:
        left = [text for text in left if text.startswith(begun)]
        expected = legal(begun, left)
        assert mask(session) == expected, begun
        num_compared += 1
        token_id = source.choice(sorted(expected))
        for other in set(source.sample(range(len(TOKENS)), 20)) - expected:
            assert not session.accept(other)
        assert session.accept(token_id)
        if token_id == EOS:
            return num_compared
        begun += TOKENS[token_id]


@pytest.mark.parametrize(("name", "items", "values", "most"), ROWS, ids=[row[0] for row in ROWS])
def test_the_mask_is_what_leads_to_a_text(name: str, items: Any, values: list[Any], most: int) -> None:
    for low in (0, 2):
        schema = {"type": "array", "items": items, "uniqueItems": True, "maxItems": most, "minItems": low}
        left = [text.encode() for text in texts(schema, values, most)]
        assert left
        compiled = ENGINE.compile(compile_schema(schema))
        for seed in range(12):
            walk(random.Random(seed), ENGINE.session(compiled), left)
