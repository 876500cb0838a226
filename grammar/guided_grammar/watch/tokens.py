"""Tokens by their bytes: those that could end one item and begin another, and those on the way to a given text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

_ITEM = rb'\s*("[^"]*"|[^",\s]+[,\]}])'


class Reach(IntEnum):
    """What a token must hold to matter: a whole item behind a comma or opening bracket, anything behind one, one of
    these at all, or any bracket or comma."""

    ITEM = 0
    NEXT = 1
    COMMA = 2
    ANY = 3


_SHAPES = {
    Reach.ITEM: rb"[,\[{]" + _ITEM,
    Reach.NEXT: rb"[,\[{]\s*\S",
    Reach.COMMA: rb"[,\[{]",
    Reach.ANY: rb"[,\[{\]}]",
}


class TokenIndex:
    """The text tokens of one vocabulary. tokens: bytes by id, b"" for ids that are never text.

    Masks are int32 words as of `Session.fill`. outside, quoted: for each reach the tokens that have it when they begin
    outside of strings, and inside of one. enters: those that may open a watched container and fill it with two items.
    wholes: those that may hold a whole string.
    """

    def __init__(self, tokens: Sequence[bytes]) -> None:
        self.tokens = tokens
        pairs = sorted((token, id_) for id_, token in enumerate(tokens) if token)
        self._sorted = [token for token, _ in pairs]
        self._ids = np.array([id_ for _, id_ in pairs], np.int64)
        self._by_text: dict[bytes, list[int]] = {}
        for token, id_ in pairs:
            self._by_text.setdefault(token, []).append(id_)
        self._longest = max(map(len, self._sorted), default=0)
        self.outside = {reach: self._mask(shape) for reach, shape in _SHAPES.items()}
        self.quoted = {reach: self._mask(b'".*?' + shape) for reach, shape in _SHAPES.items()}
        self.enters, self.wholes = self._mask(rb"[\[{].*,"), self._mask(rb'".*"')

    def from_text(self, text: bytes) -> NDArray[np.int64]:
        """Ids of the tokens that begin with `text`."""
        low = bisect_left(self._sorted, text)
        high = bisect_left(self._sorted, text + b"\xff" * (self._longest + 1), low)
        return self._ids[low:high]

    def towards(self, text: bytes) -> list[int]:
        """Ids of the tokens that `text` begins with."""
        found: list[int] = []
        for length in range(1, min(len(text), self._longest) + 1):
            found += self._by_text.get(text[:length], ())
        return found

    def _mask(self, shape: bytes) -> NDArray[np.int32]:
        pattern = re.compile(shape, re.DOTALL)
        words = np.zeros(-(-len(self.tokens) // 32), np.uint32)
        for id_, token in enumerate(self.tokens):
            if pattern.search(token):
                words[id_ // 32] |= np.uint32(1 << (id_ % 32))
        return words.view(np.int32)


def among(ids: NDArray[np.int64], words: NDArray[np.int32]) -> list[int]:
    """Those of `ids` whose bit is set."""
    if not len(ids):
        return []
    found: list[int] = ids[(words[ids >> 5] >> (ids & 31)) & 1 != 0].tolist()
    return found


def set_bits(words: NDArray[np.int32]) -> list[int]:
    """The ids whose bits are set, ascending."""
    occupied = np.flatnonzero(words)
    octets = words[occupied].astype("<i4").view(np.uint8).reshape(len(occupied), 4)
    at, bit = np.nonzero(np.unpackbits(octets, axis=1, bitorder="little"))
    found: list[int] = (occupied[at] * 32 + bit).tolist()
    return found
