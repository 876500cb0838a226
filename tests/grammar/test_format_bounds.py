"""Formats between bounds on their length: what is written is valid, and what is usual can be written."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema_rs
import numpy as np
import pytest
from guided_grammar.compiler import compile_spec
from guided_grammar.session import MaskEngine
from guided_grammar.spec import GrammarSpec, Kind
from guided_grammar.vocabulary import Vocabulary
from guided_grammar.watch.tokens import set_bits

ENGINE = MaskEngine(Vocabulary.of_bytes())
QUOTE, STOP = ord('"'), 256


def schema(name: str, **bounds: Any) -> dict[str, Any]:
    return {"type": "string", "format": name, **bounds}


def written(session: Any, rng: random.Random) -> str:
    """A random answer; for a length drawn at first it does not end while it need not."""
    bits, text, wanted = np.zeros((1, 9), np.int32), bytearray(), rng.choice((2, 20, 60, 400))
    while True:
        bits[:] = -1
        session.fill(bits, 0)
        legal = [i for i in set_bits(bits[0]) if i <= STOP]
        if STOP in legal:
            return text.decode()
        going = [byte for byte in legal if byte != QUOTE]
        signs = [byte for byte in going if not chr(byte).isalnum()]
        wants = going if going and text and len(text) < wanted else legal
        byte = rng.choice(signs if signs and rng.random() < 0.2 else wants)
        assert session.accept(byte)
        text.append(byte)


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("email", {}),
        ("email", {"minLength": 5}),
        ("email", {"minLength": 6, "maxLength": 254}),
        ("email", {"maxLength": 24}),
        ("email", {"maxLength": 100}),
        ("idn-email", {}),
        ("idn-email", {"maxLength": 64}),
        ("hostname", {}),
        ("hostname", {"minLength": 4, "maxLength": 253}),
        ("hostname", {"maxLength": 30}),
        ("uri", {"maxLength": 32}),
        ("uri", {"maxLength": 255}),
        ("uri", {"minLength": 5, "maxLength": 100}),
        ("uri", {"minLength": 12, "maxLength": 32}),
        ("uri", {"pattern": "^https?://", "maxLength": 100}),
        ("uri", {"pattern": "^(https|ftp)://", "minLength": 1, "maxLength": 2083}),
        ("uri", {"pattern": "^https://[a-z]+/", "maxLength": 64}),
        ("uri-reference", {"maxLength": 100}),
        ("uri-reference", {"minLength": 1, "maxLength": 2083}),
        ("iri", {"maxLength": 100}),
        ("iri-reference", {"maxLength": 48}),
    ],
)
def test_what_is_written_between_bounds_is_valid(name: str, bounds: dict[str, Any]) -> None:
    spec = GrammarSpec(Kind.JSON_SCHEMA, {"schema": schema(name, **bounds)})
    compiled, rng = ENGINE.compile(compile_spec(spec).text), random.Random(f"{name} {bounds}")
    is_valid = jsonschema_rs.validator_for(schema(name, **bounds), validate_formats=True).is_valid
    values = [json.loads(written(ENGINE.session(compiled), rng)) for _ in range(60)]
    assert [value for value in values if not is_valid(value)] == []
    assert max(map(len, values)) > 0.6 * min(bounds.get("maxLength", 100), 100)


@pytest.mark.parametrize(
    ("name", "bounds", "values"),
    [
        ("email", {"maxLength": 100}, ["a@b", "jane.m.doe+tag@mail.my-company.com", "x_y@example.org"]),
        ("email", {"minLength": 5, "maxLength": 254}, ["a@b.co", "first.last@sub.example.co.uk"]),
        ("idn-email", {"maxLength": 100}, ["\u00fcser@b\u00fccher.de", "jane@example.com"]),
        ("hostname", {"maxLength": 63}, ["localhost", "db-1.eu-west.example"]),
        ("uri", {"maxLength": 100}, ["https://example.com/" + "p" * 59, "urn:isbn:0451450523", "file:///a/b%20c.txt"]),
        ("uri", {"maxLength": 2083}, ["https://example.com:8080/a/b?c=d&e=f#g", "https://e.com/" + "p" * 1950]),
        ("uri-reference", {"maxLength": 255}, ["", "/a/b?c#d", "a/b", "#top", "?q=1", "http://a/b", "/"]),
        ("uri", {"minLength": 12, "maxLength": 100}, ["http://localhost", "https://example.com/a"]),
        ("uri", {"pattern": "^https?://", "maxLength": 255}, ["http://a.b/c?d", "https://a:1#b"]),
        (
            "uri",
            {"pattern": "^https://github\\.com/", "maxLength": 100},
            ["https://github.com/a/b?c", "https://github.com/"],
        ),
        ("uri-reference", {"minLength": 1, "maxLength": 255}, ["a", "./a:b"]),
        ("iri", {"maxLength": 100}, ["https://ex\u00e4mple.com/\u5bff\u53f8"]),
    ],
)
def test_what_is_usual_between_bounds_can_be_written(name: str, bounds: dict[str, Any], values: list[str]) -> None:
    text = compile_spec(GrammarSpec(Kind.JSON_SCHEMA, {"schema": schema(name, **bounds)})).text
    compiled = ENGINE.compile(text)
    for value in values:
        session = ENGINE.session(compiled)
        letters = json.dumps(value, ensure_ascii=False).encode()
        assert all(session.accept(byte) for byte in letters), value
        assert session.is_complete


@pytest.mark.parametrize(
    ("name", "bounds", "value"),
    [
        ("email", {"maxLength": 100}, "a" * 60 + "@" + "b" * 60),
        ("email", {"minLength": 6}, "a@b"),
        ("hostname", {"maxLength": 30}, "a" * 31),
        ("uri", {"maxLength": 32}, "https://example.com/" + "p" * 13),
        ("uri", {"maxLength": 100}, "https://example.com/a b"),
        ("uri", {"minLength": 12, "maxLength": 100}, "http://abcd"),
        ("uri", {"pattern": "^https?://", "maxLength": 255}, "ftp://a.b"),
        ("uri", {"pattern": "^https://github\\.com/", "maxLength": 100}, "https://github.com"),
        ("uri-reference", {"minLength": 1, "maxLength": 255}, ""),
        ("uri-reference", {"maxLength": 255}, "1a:b"),
    ],
)
def test_what_is_outside_the_bounds_is_not_written(name: str, bounds: dict[str, Any], value: str) -> None:
    text = compile_spec(GrammarSpec(Kind.JSON_SCHEMA, {"schema": schema(name, **bounds)})).text
    session = ENGINE.session(ENGINE.compile(text))
    assert not (all(session.accept(byte) for byte in json.dumps(value).encode()) and session.is_complete)
