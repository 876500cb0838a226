"""Grammar text -> masks for one vocabulary, and a proof that they are fast enough for a step.

xgrammar computes all masks of a grammar while compiling it, which cannot be interrupted: a grammar that is not known is
judged in a process that can be killed (`proof`). Masks made when first needed would start sooner, but a new position in
a string then costs a walk over the vocabulary, in the middle of an answer.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import numpy as np
import xgrammar
from numpy.typing import NDArray

from guided_grammar.common_rules import common_rules
from guided_grammar.errors import LimitExceeded

_WALK_TOKENS = 24
_MASK_MS = 100


class MaskCompiler:
    """The compiler of one vocabulary. Thread-safe.

    tokens: bytes by id, b"" for ids that are never text. shared_bytes: for rule masks shared between grammars; those of
    `common_rules` are made here, so that the first documents do not wait for them.
    """

    def __init__(self, tokens: Sequence[bytes], stop_ids: Sequence[int], shared_bytes: int) -> None:
        info = xgrammar.TokenizerInfo(
            list(tokens), xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=list(stop_ids)
        )
        self._compiler = xgrammar.GrammarCompiler(
            info, max_threads=1, cache_enabled=True, cache_limit_bytes=shared_bytes
        )
        self._num_tokens, self._stops = len(tokens), frozenset(stop_ids)
        for text in common_rules():
            self._compiler.compile_grammar(text)

    def build(self, text: str) -> xgrammar.CompiledGrammar:
        """Compile here and now. Raises RuntimeError when xgrammar refuses `text`."""
        return self._compiler.compile_grammar(text)

    def judge(self, text: str) -> xgrammar.CompiledGrammar:
        """Compile, and raise LimitExceeded where a mask along a random answer is slow. Raises what `build` raises."""
        handle = self.build(text)
        if self._slowest(handle) > _MASK_MS:
            raise LimitExceeded("mask milliseconds", _MASK_MS, None)
        return handle

    def _slowest(self, handle: xgrammar.CompiledGrammar) -> float:
        """CPU milliseconds of the slowest mask along a random answer, up to the first one that is too slow."""
        matcher, source, slowest = xgrammar.GrammarMatcher(handle), random.Random(0), 0.0
        bits = np.zeros((1, -(-self._num_tokens // 32)), np.int32)
        for _ in range(_WALK_TOKENS):
            started = time.thread_time()
            matcher.fill_next_token_bitmask(bits, 0)
            slowest = max(slowest, (time.thread_time() - started) * 1e3)
            token_id = _drawn(bits[0], self._num_tokens, source)
            if slowest > _MASK_MS or token_id is None or token_id in self._stops or not matcher.accept_token(token_id):
                break
        return slowest


def _drawn(words: NDArray[np.int32], num_tokens: int, source: random.Random) -> int | None:
    """A random allowed token of a random word that has one; xgrammar leaves bits past the vocabulary set."""
    spare = -num_tokens % 32
    if spare:
        words[-1] &= (1 << (32 - spare)) - 1
    occupied = np.flatnonzero(words)
    if not len(occupied):
        return None
    at = int(occupied[source.randrange(len(occupied))])
    bits = [bit for bit in range(32) if int(words[at]) >> bit & 1]
    return at * 32 + source.choice(bits)
