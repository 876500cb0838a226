"""Random walks through the grammar of every format: whatever it lets through, the parser reads back as valid calls."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

import jsonschema
import numpy as np
import pytest
from guided_frontend.calls.pieces import CallArguments, CallEnd, CallStart, TextPiece
from guided_frontend.tool_calls import CallParser
from guided_grammar.compiler import compile_spec
from guided_grammar.formats import FORMATS, ToolFormat
from guided_grammar.session import CompiledMask, MaskEngine, Session
from guided_grammar.spec import GrammarSpec, Kind
from guided_grammar.vocabulary import Vocabulary

STOP = 256
MAX_TOKENS = 1000
CALLING = [name for name, row in FORMATS.items() if row.has_calls]
POINT = {
    "type": "object",
    "properties": {"x": {"type": "number", "minimum": 0, "maximum": 1}, "tag": {"enum": ["a", "<b>", "it's", '"']}},
    "required": ["x"],
    "additionalProperties": False,
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "scalars": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "maxLength": 12},
            "free": {"type": "string"},
            "code": {"type": "string", "pattern": "^[0-9]{2,4}$"},
            "count": {"type": "integer", "minimum": -5, "maximum": 120},
            "flag": {"type": "boolean"},
            "unit": {"enum": ["celsius", "5", 5, None, True]},
        },
        "required": ["text", "count", "unit"],
        "additionalProperties": False,
    },
    "nested": {
        "type": "object",
        "properties": {
            "points": {"type": "array", "items": {"$ref": "#/$defs/point"}, "minItems": 1, "maxItems": 2},
            "when": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
            "mixed": {"type": ["string", "integer", "boolean"], "maxLength": 6},
            "deep": {"type": "object", "properties": {"a": {"$ref": "#/$defs/point"}}, "additionalProperties": False},
        },
        "required": ["points", "mixed"],
        "$defs": {"point": POINT},
    },
    "nothing": {"type": "object", "properties": {}, "additionalProperties": False},
    "few": {
        "type": "object",
        "properties": {key: {"type": "integer", "maximum": 9, "minimum": 0} for key in ("zeta", "alpha", "mid")},
        "minProperties": 1,
        "maxProperties": 2,
        "additionalProperties": False,
    },
}
TOOLS = [{"name": name, "parameters": schema} for name, schema in SCHEMAS.items()]


@cache
def engine() -> MaskEngine:
    """Every byte, every marker of the table as one token, and what ends an argument."""
    markers = sorted(set().union(*(row.markers for row in FORMATS.values())))
    ends = sorted({row.argument_close for row in FORMATS.values() if row.argument_close})
    tokens = [bytes([byte]) for byte in range(256)] + [b""] * (1 + len(markers)) + [end.encode() for end in ends]
    return MaskEngine(Vocabulary(tuple(tokens), (STOP,), {mark: 257 + i for i, mark in enumerate(markers)}))


@cache
def compiled(name: str, choice: str, parallel: bool) -> CompiledMask:
    wanted: Any = choice if choice in ("auto", "required") else {"name": choice}
    spec = GrammarSpec(Kind.TOOLS, {"format": name, "tools": TOOLS, "choice": wanted, "parallel": parallel})
    made = compile_spec(spec)
    return engine().compile(made.text, made.markers)


NAMES = engine().vocabulary.with_markers(engine().vocabulary.markup)
ENDERS = np.array([i >= STOP or chr(i) in '"<>}])|,=' for i in range(len(NAMES))])


def walk(session: Session, rng: random.Random, start: str = "") -> bytes:
    """The bytes of `start`, then random legal tokens up to a stop; those that end things are preferred."""
    written = start.encode()
    assert all(session.accept(byte) for byte in written)
    bits = np.zeros((1, -(-len(NAMES) // 32)), np.int32)
    for _ in range(MAX_TOKENS):
        bits[:] = -1
        session.fill(bits, 0)
        allowed = np.unpackbits(bits.view(np.uint8), bitorder="little")[: len(NAMES)].astype(bool)
        if allowed[STOP] and (rng.random() < 0.5 or not allowed[:STOP].any()):
            return written
        allowed[STOP] = False
        ends = allowed & ENDERS
        token = int(rng.choice(np.flatnonzero(ends if ends.any() and rng.random() < 0.6 else allowed)))
        assert session.accept(token)
        written += NAMES[token]
    raise AssertionError(f"no end after {MAX_TOKENS} tokens: {written[-200:]!r}")


def calls_of(row: ToolFormat, text: str) -> tuple[list[tuple[str, str, bool]], str]:
    parser = CallParser(row, SCHEMAS)
    calls: list[tuple[str, str, bool]] = []
    content = ""
    for piece in [*parser.feed(text), *parser.finish()]:
        if isinstance(piece, CallStart):
            calls.append((piece.name, "", False))
        elif isinstance(piece, CallArguments):
            calls[-1] = (calls[-1][0], calls[-1][1] + piece.text, False)
        elif isinstance(piece, CallEnd):
            calls[-1] = (*calls[-1][:2], True)
        elif isinstance(piece, TextPiece):
            content += piece.text
    return calls, content


def check(calls: list[tuple[str, str, bool]], text: str) -> None:
    for name, arguments, is_complete in calls:
        assert is_complete, text
        jsonschema.validate(json.loads(arguments), SCHEMAS[name])


@pytest.mark.parametrize("parallel", [True, False], ids=["parallel", "single"])
@pytest.mark.parametrize("choice", ["required", "scalars", "nested"])
@pytest.mark.parametrize("name", CALLING)
def test_forced_calls_are_read_back_valid(name: str, choice: str, parallel: bool) -> None:
    row = FORMATS[name]
    for seed in range(3):
        text = walk(engine().session(compiled(name, choice, parallel)), random.Random(f"{name}{choice}{seed}")).decode()
        calls, content = calls_of(row, text)
        check(calls, text)
        assert content.strip() == "", text
        assert calls if choice == "required" and parallel else len(calls) == 1, text
        assert choice == "required" or calls[0][0] == choice


@pytest.mark.parametrize("parallel", [True, False], ids=["parallel", "single"])
@pytest.mark.parametrize("name", CALLING)
def test_what_markup_opens_in_free_text_is_read_back_valid(name: str, parallel: bool) -> None:
    row = FORMATS[name]
    for seed in range(3):
        start = f"Let me see.\n{row.trigger}" if row.trigger else row.lead + row.before_name
        text = walk(engine().session(compiled(name, "auto", parallel)), random.Random(f"{name}{seed}"), start)
        calls, _ = calls_of(row, text.decode("utf-8", "replace"))
        check(calls, repr(text))
        assert calls if parallel else len(calls) == 1, text
