"""A token that ends items and begins others is legal exactly when its bytes are, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from guided_grammar.schema import compile_schema
from guided_grammar.session import MaskEngine, Session
from guided_testing.byte_tokenizer import byte_vocabulary

WORDS = (b"0, 0", b"0, 3", b"true, true", b"true, false", b"0.5", b"0", b"00", b"000", b'"a", "a', b'"a", "c', b"-1")
WORDS += (b"1.0]", b".0]", b".5]", b"1.0, 2", b"1.5, 2")
BYTES, WHOLE = MaskEngine(byte_vocabulary()), MaskEngine(byte_vocabulary(WORDS))
UNIQUE: dict[str, Any] = {"type": "array", "uniqueItems": True}
LETTERS = {"enum": ["a", "b", "c", "d", "e", "f", "g", 1]}


def is_legal(engine: MaskEngine, session: Session, token_id: int) -> bool:
    bits = np.zeros((1, -(-engine.vocabulary.vocab_size // 32)), np.int32)
    return not session.fill(bits, 0) or bool(bits[0, token_id // 32] >> (token_id % 32) & 1)


def by_bytes(session: Session, token: bytes) -> bool:
    return all(is_legal(BYTES, session, byte) and session.accept(byte) for byte in token)


@pytest.mark.parametrize(
    ("schema", "begun", "illegal"),
    [
        ({**UNIQUE, "items": {"type": "number", "multipleOf": 3}, "maxItems": 3}, "[51, ", b"0, 0"),
        ({**UNIQUE, "items": LETTERS}, '["b", ', b'"a", "a'),
        (UNIQUE, '["", ', b"true, true"),
        ({**UNIQUE, "items": {"type": "number", "minimum": 0, "maximum": 0.5}}, "[0, 0.1, 0.5, ", b"0.5"),
        ({**UNIQUE, "items": {"type": "number", "minimum": -1, "maximum": 0}}, "[0, -1, ", b"-1"),
        ({**UNIQUE, "items": {"type": "number"}}, "[1, ", b"1.0]"),
        ({**UNIQUE, "items": {"type": "number"}}, "[1.5, 1", b".5]"),
    ],
    ids=["multiples", "letters", "words", "up to a used number", "down to a used number", "zeros", "a used end"],
)
def test_tokens_over_items_are_legal_as_their_bytes_are(schema: Any, begun: str, illegal: bytes) -> None:
    grammar = compile_schema(schema)
    single, whole = BYTES.compile(grammar), WHOLE.compile(grammar)
    session = WHOLE.session(whole)
    assert all(session.accept(byte) for byte in begun.encode())
    expected, found, taken = [], [], []
    for token_id, word in enumerate(WORDS, WHOLE.vocabulary.vocab_size - len(WORDS)):
        alone = BYTES.session(single)
        assert all(alone.accept(byte) for byte in begun.encode())
        expected += [word] if by_bytes(alone, word) else []
        found += [word] if is_legal(WHOLE, session, token_id) else []
        taken += [word] if session.fork().accept(token_id) else []
    assert illegal not in expected
    assert found == taken == expected
