"""A matcher of the marked grammar, which reads an answer again and tells where its marks stand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import xgrammar

from guided_grammar.watch.marks import Watch, watches, written
from guided_grammar.watch.used import bits_of

_WORDS = 9
_FIRST_BYTE = written(Watch.ITEMS)[0]


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark that may stand somewhere, and what it writes there."""

    watch: Watch
    text: bytes


class ShadowGrammar:
    """A grammar with marks, compiled for single bytes. Raises RuntimeError when xgrammar refuses the text."""

    def __init__(self, text: str) -> None:
        self.watches = watches(text)
        self._handle = _compiler().compile_grammar(text)

    @property
    def bytes(self) -> int:
        return int(self._handle.memory_size_bytes)

    def start(self) -> Shadow:
        return Shadow(xgrammar.GrammarMatcher(self._handle), self.watches, 0)


class Shadow:
    """A position in the marked grammar that can be taken back to any earlier one. Not thread-safe."""

    def __init__(self, matcher: xgrammar.GrammarMatcher, kinds: tuple[Watch, ...], position: int) -> None:
        self._matcher, self._kinds, self._position = matcher, kinds, position
        self._bits = np.zeros((1, _WORDS), np.int32)

    def fork(self, position: int) -> Shadow:
        """An independent shadow, at an earlier or the same position."""
        self._back_to(position)
        return Shadow(self._matcher.fork(), self._kinds, position)

    def feed(self, position: int, data: bytes) -> bool:
        """Read `data` at `position`, which makes the position after it the next number; False when it is no text."""
        self._back_to(position)
        if not self._matcher.accept_string(data):
            return False
        self._position += 1
        return True

    def marks(self, position: int) -> tuple[list[Mark], bool]:
        """(marks that may stand here, whether anything else may)."""
        allowed = self.legal(position)
        if not allowed >> _FIRST_BYTE & 1:
            return [], True
        found = [Mark(watch, text) for watch in self._kinds for text in self._sites(written(watch))]
        return found, not found or allowed != 1 << _FIRST_BYTE

    def legal(self, position: int) -> int:
        """The bytes that may stand here, as bits."""
        self._back_to(position)
        self._bits.fill(0)
        self._matcher.fill_next_token_bitmask(self._bits, 0)
        return int.from_bytes(self._bits.tobytes()[:32], "little")

    def _sites(self, kind: bytes) -> list[bytes]:
        """The marks of a kind. Free text would take the first character of one twice."""
        if not self._matcher.accept_string(kind):
            return []
        if self._matcher.accept_string(kind):
            self._matcher.rollback(2)
            return []
        found = self._characters(kind, 3)
        self._matcher.rollback(1)
        return found

    def _characters(self, text: bytes, left: int) -> list[bytes]:
        """`text` with each way to go on by `left` bytes."""
        if not left:
            return [text]
        found = []
        for byte in bits_of(self.legal(self._position)):
            if byte < 256 and self._matcher.accept_string(bytes((byte,))):
                found += self._characters(text + bytes((byte,)), left - 1)
                self._matcher.rollback(1)
        return found

    def _back_to(self, position: int) -> None:
        if self._position > position:
            self._matcher.rollback(self._position - position)
            self._position = position


@cache
def _compiler() -> xgrammar.GrammarCompiler:
    tokens = [*(bytes([byte]) for byte in range(256)), b""]
    info = xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=[256])
    return xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False, enable_dynamic_compilation=True)
