"""A matcher of the marked grammar, which reads an answer again and tells where its marks stand."""

from __future__ import annotations

from functools import cache

import numpy as np
import xgrammar

from guided_grammar.watch.marks import Watch, watches, written

_WORDS = 9
_FIRST_BYTE = written(Watch.ITEMS)[0]


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

    def marks(self, position: int) -> tuple[list[Watch], bool]:
        """(marks that may stand here, whether anything else may)."""
        self._back_to(position)
        self._bits.fill(0)
        if not self._matcher.fill_next_token_bitmask(self._bits, 0):
            return [], True
        octets = self._bits.view(np.uint8)[0]
        if not octets[_FIRST_BYTE // 8] >> (_FIRST_BYTE % 8) & 1:
            return [], True
        found = [watch for watch in self._kinds if self._is_mark(written(watch))]
        return found, not found or int(np.unpackbits(octets).sum()) > 1

    def _is_mark(self, text: bytes) -> bool:
        """Free text would take the character twice."""
        if not self._matcher.accept_string(text):
            return False
        again = self._matcher.accept_string(text)
        self._matcher.rollback(2 if again else 1)
        return not again

    def _back_to(self, position: int) -> None:
        if self._position > position:
            self._matcher.rollback(self._position - position)
            self._position = position


@cache
def _compiler() -> xgrammar.GrammarCompiler:
    tokens = [*(bytes([byte]) for byte in range(256)), b""]
    info = xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=[256])
    return xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False, enable_dynamic_compilation=True)
