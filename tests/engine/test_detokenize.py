"""Text is released in whole characters and equals decoding everything at once."""

from __future__ import annotations

import pytest
from guided_engine.detokenize import Detokenizer

BYTES = [bytes([b]) for b in range(256)]


@pytest.mark.parametrize(
    ("data", "pushes"),
    [
        (b"ab", ["a", "b"]),
        ("é".encode(), ["", "é"]),
        ("🪨x".encode(), ["", "", "", "🪨", "x"]),
        (b"\xffa", ["\N{REPLACEMENT CHARACTER}", "a"]),
        (b"\xe2\x28", ["", "\N{REPLACEMENT CHARACTER}("]),
        ("a🪨".encode()[:-1], ["a", "", "", ""]),
    ],
)
def test_p23_a_character_appears_when_its_last_byte_does(data: bytes, pushes: list[str]) -> None:
    detokenizer = Detokenizer(BYTES)
    assert [detokenizer.push(b) for b in data] == pushes


@pytest.mark.parametrize(
    ("pieces", "text"), [([b" the", b" cat"], "the cat"), ([b"", b" a"], "a"), ([b"a", b" b"], "a b"), ([b"  a"], " a")]
)
def test_p24_the_one_space_a_sentencepiece_vocabulary_adds_is_dropped(pieces: list[bytes], text: str) -> None:
    detokenizer = Detokenizer(pieces, drop_space=True)
    assert "".join(detokenizer.push(i) for i in range(len(pieces))) == text


def test_p20_without_such_a_vocabulary_the_space_stays() -> None:
    assert Detokenizer([b" the"]).push(0) == " the"
