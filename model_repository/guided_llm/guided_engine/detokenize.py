"""Tokens to text, as they come."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class Detokenizer:
    """The text of one answer, released in whole characters.

    Equal to decoding all bytes at once, except that the bytes of a character that never completed are not shown.
    pieces: bytes of every token id. drop_space: the vocabulary's texts start with a space that is not part of them
    (SentencePiece); it is left out once, at the start.
    """

    def __init__(self, pieces: Sequence[bytes], drop_space: bool = False) -> None:
        self._pieces, self._drop_space = pieces, drop_space
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token_id: int) -> str:
        """The characters that `token_id` completes; "" while it only begins one."""
        piece = self._pieces[token_id]
        if self._drop_space and piece:
            self._drop_space, piece = False, piece.removeprefix(b" ")
        return self._decoder.decode(piece)
