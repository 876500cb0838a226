"""Tokens by their bytes: those that could end one item and begin another, and those on the way to a given text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from guided_grammar.watch.used import Node, bits_of

_CLOSER = re.compile(rb"[\]}]")
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
    wholes: those that may hold a whole string. zeros: those of nothing but zeros and points.
    longest_closing: bytes of the longest with a closing bracket.
    """

    def __init__(self, tokens: Sequence[bytes]) -> None:
        self.tokens = tokens
        pairs = sorted((token, id_) for id_, token in enumerate(tokens) if token)
        self._sorted = [token for token, _ in pairs]
        self._ids = np.array([id_ for _, id_ in pairs], np.int64)
        self._by_text: dict[bytes, list[int]] = {}
        for token, id_ in pairs:
            self._by_text.setdefault(token, []).append(id_)
        self.longest = max(map(len, self._sorted), default=0)
        self.outside = {reach: self._mask(shape) for reach, shape in _SHAPES.items()}
        self.quoted = {reach: self._mask(b'".*?' + shape) for reach, shape in _SHAPES.items()}
        self.enters, self.wholes = self._mask(rb"[\[{].*,"), self._mask(rb'".*"')
        self.longest_closing = max((len(token) for token in tokens if _CLOSER.search(token)), default=0)
        self.zeros = self._mask(rb"^[.0]+$")

    def through(self, node: Node, lead: bytes = b"") -> NDArray[np.int64]:
        """Ids of the tokens that write `lead` and lead on from `node` to nothing but used items."""
        found: list[NDArray[np.int64]] = []
        spans = [(node, lead, *self._span(lead, 0, len(self._sorted)))]
        while spans:
            at, text, low, high = spans.pop()
            for byte in bits_of(at.kills):
                start, end = self._span(text + bytes((byte,)), low, high)
                if start < end:
                    found.append(self._ids[start:end])
            for byte, child in at.children.items():
                start, end = self._span(text + bytes((byte,)), low, high) if child.live else (0, 0)
                if start < end:
                    spans.append((child, text + bytes((byte,)), start, end))
        return np.concatenate(found) if found else self._ids[:0]

    def _span(self, text: bytes, low: int, high: int) -> tuple[int, int]:
        """Of the sorted tokens between `low` and `high` those that begin with `text`."""
        start = bisect_left(self._sorted, text, low, high)
        if start == high or not self._sorted[start].startswith(text):
            return start, start
        return start, bisect_left(self._sorted, text + b"\xff" * (self.longest + 1), start, high)

    def towards(self, text: bytes) -> list[int]:
        """Ids of the tokens that `text` begins with."""
        found: list[int] = []
        for length in range(1, min(len(text), self.longest) + 1):
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
