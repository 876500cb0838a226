"""Answers drawn at random through the masks hold by an independent validator, whatever a corpus thought of asking."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from guided_grammar.compiler import compile_spec
from guided_grammar.conformance.case import Case
from guided_grammar.conformance.rows import cases
from guided_grammar.errors import GrammarError
from guided_grammar.second_opinion import on_answer
from guided_grammar.session import MaskEngine, Session
from guided_grammar.spec import GrammarSpec, Kind
from guided_grammar.vocabulary import Vocabulary

DATA = Path(__file__).parents[3] / "shared" / "data"
SAMPLES = {
    "json_schema_test_suite/draft2020-12.jsonl": 8,
    "json_schema_test_suite/draft4.jsonl": 24,
    "json_schema_test_suite/draft7.jsonl": 24,
    "maskbench/compile_only.jsonl": 24,
    "maskbench/schemas/Github_easy.jsonl": 60,
}
_CLOSING = b'"}],:'
_MOST_BYTES = 500
UNSHARED = "email"
"""The validator bounds the length of an address, the ABNF that the format means does not."""


@cache
def engine() -> MaskEngine:
    return MaskEngine(Vocabulary.of_bytes())


def answer(session: Session, source: random.Random) -> str | None:
    """A text that the masks led through, None where it had not ended in time. Prefers what ends strings and containers."""
    vocabulary = engine().vocabulary
    bits = np.zeros((1, -(-vocabulary.vocab_size // 32)), np.int32)
    text = bytearray()
    while len(text) < _MOST_BYTES:
        legal = range(256)
        if session.fill(bits, 0):
            legal = [i for i in range(256) if bits[0, i // 32] >> (i % 32) & 1]
            if session.is_complete and (not legal or source.random() < 0.5):
                return text.decode()
        assert legal, f"dead end after {bytes(text)!r}"
        closing = [byte for byte in legal if byte in _CLOSING]
        byte = source.choice(closing if closing and source.random() < 0.5 + len(text) / 300 else legal)
        assert session.accept(byte)
        text.append(byte)
    return None


def sampled() -> Iterator[Case]:
    for name, every in SAMPLES.items():
        for at, case in enumerate(cases(DATA / name)):
            if at % every == 2 and UNSHARED not in str(case.spec.value):
                yield case


@pytest.mark.corpus
def test_no_walk_through_the_masks_violates_its_schema() -> None:
    if not DATA.is_dir():
        pytest.skip("corpus not present")
    faults, num_told = [], 0
    for case in sampled():
        try:
            masks = engine().compile(compile_spec(case.spec).text)
        except GrammarError:
            continue
        for seed in range(4):
            text = answer(engine().session(masks), random.Random(seed))
            opinion = None if text is None else on_answer(case.spec, text)
            num_told += opinion is not None and opinion.told
            if opinion is not None and opinion.fault:
                faults.append((case.id, text, opinion.fault))
    assert faults == [] and num_told > 150


SCHEMAS: list[Any] = [
    {"type": "object", "not": {"propertyNames": {"pattern": "^b$"}}},
    {"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}], "minimum": 0, "maximum": 30, "type": "integer"},
    {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 2},
    {"type": "object", "properties": {"a": {"type": "string", "format": "date"}}, "unevaluatedProperties": False},
    {"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]}, "type": "object"},
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_walks_of_small_schemas_hold(schema: Any) -> None:
    spec = GrammarSpec(Kind.JSON_SCHEMA, {"schema": schema})
    masks = engine().compile(compile_spec(spec).text)
    texts = [text for seed in range(20) if (text := answer(engine().session(masks), random.Random(seed))) is not None]
    assert len(set(texts)) > 3
    assert {text: on_answer(spec, text).fault for text in texts} == dict.fromkeys(texts, "")
