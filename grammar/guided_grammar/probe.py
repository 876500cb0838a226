"""Grammar text -> masks for one vocabulary in bounded time, and a proof that they are fast enough for a step.

xgrammar can compute all masks of a grammar while compiling it (slow for a few shapes, then every mask takes
microseconds), or each one when it is first needed (compiles at once, then a new position takes milliseconds, in some
shapes hundreds at every token). Neither can be interrupted. So both run on threads of their own: where all masks take
longer than `PATIENCE`, an answer may start with masks made when needed, if a trial walk finds them quick enough.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, TimeoutError
from dataclasses import dataclass

import numpy as np
import xgrammar
from numpy.typing import NDArray

from guided_grammar.errors import LimitExceeded

PATIENCE = 0.9
_WALK_TOKENS = 24
_NEW_MASK_MS = 30
_MASK_MS = 100
_MAX_THREADS = 2


@dataclass(frozen=True)
class Judged:
    """A grammar that is quick enough. lazy: its masks are made when needed, because making all of them takes long."""

    handle: xgrammar.CompiledGrammar
    lazy: bool


class MaskCompiler:
    """Compilers of one vocabulary. Thread-safe.

    tokens: bytes by id, b"" for ids that are never text. shared_bytes: for rule masks shared between grammars.
    seconds: wall clock after which a compile is refused; its thread ends when xgrammar lets it.
    """

    def __init__(
        self, tokens: Sequence[bytes], stop_ids: Sequence[int], shared_bytes: int, seconds: float = 20.0
    ) -> None:
        info = xgrammar.TokenizerInfo(
            list(tokens), xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=list(stop_ids)
        )
        options = {"max_threads": 1, "cache_enabled": True, "cache_limit_bytes": shared_bytes // 2}
        self._whole = xgrammar.GrammarCompiler(info, **options)
        self._lazy = xgrammar.GrammarCompiler(info, enable_dynamic_compilation=True, **options)
        self._whole_slots = threading.BoundedSemaphore(_MAX_THREADS)
        self._lazy_slots = threading.BoundedSemaphore(_MAX_THREADS)
        self._num_words, self._stops, self._seconds = -(-len(tokens) // 32), frozenset(stop_ids), seconds

    def build(self, text: str, lazy: bool) -> xgrammar.CompiledGrammar:
        """Compile here and now what `judge` has found quick, elsewhere. Raises RuntimeError when xgrammar refuses."""
        return (self._lazy if lazy else self._whole).compile_grammar(text)

    def judge(self, text: str, better: Callable[[xgrammar.CompiledGrammar], None]) -> Judged:
        """Raises RuntimeError when xgrammar refuses `text`, LimitExceeded when it or its masks take too long.

        better: called later, on another thread, with the same grammar and all of its masks made, where the result
            makes them when needed.
        """
        deadline = time.monotonic() + self._seconds
        whole = self._started(self._whole, self._whole_slots, text, PATIENCE)
        handle = _result(whole, min(PATIENCE, self._seconds))
        if handle is None:
            handle = self._quick_start(text, deadline)
            if handle is not None and whole is not None and not whole.done():
                whole.add_done_callback(lambda done: None if done.exception() else better(done.result()))
                return Judged(handle, True)
            handle = _result(whole, deadline - time.monotonic()) or handle
        if handle is None:
            raise LimitExceeded("mask compile milliseconds", int(self._seconds * 1e3), None)
        if self._slowest(handle, _MASK_MS, again=True) > _MASK_MS:
            raise LimitExceeded("mask milliseconds", _MASK_MS, None)
        return Judged(handle, False)

    def _quick_start(self, text: str, deadline: float) -> xgrammar.CompiledGrammar | None:
        """The grammar with masks made when needed; None when that takes too long, now or later."""
        lazy = self._started(self._lazy, self._lazy_slots, text, deadline - time.monotonic())
        handle = _result(lazy, deadline - time.monotonic())
        if handle is None or self._slowest(handle, _NEW_MASK_MS, again=False) > _NEW_MASK_MS:
            return None
        return handle

    def _started(
        self, compiler: xgrammar.GrammarCompiler, slots: threading.BoundedSemaphore, text: str, wait: float
    ) -> Future[xgrammar.CompiledGrammar] | None:
        """The compile on a thread of its own; None when no slot became free in `wait` seconds."""
        if not slots.acquire(timeout=max(0.0, wait)):
            return None
        future: Future[xgrammar.CompiledGrammar] = Future()

        def work() -> None:
            try:
                handle = compiler.compile_grammar(text)
            except BaseException as error:
                slots.release()
                future.set_exception(error)
            else:
                slots.release()
                future.set_result(handle)

        threading.Thread(target=work, name="mask-compile", daemon=True).start()
        return future

    def _slowest(self, handle: xgrammar.CompiledGrammar, enough: float, *, again: bool) -> float:
        """CPU milliseconds of the slowest mask along a random answer, up to the first one over `enough`.

        again: of masks asked for a second time, which a position that is only new does not slow.
        """
        matcher, source, slowest = xgrammar.GrammarMatcher(handle), random.Random(0), 0.0
        bits = np.zeros((1, self._num_words), np.int32)
        for _ in range(_WALK_TOKENS):
            if again:
                matcher.fill_next_token_bitmask(bits, 0)
            started = time.thread_time()
            matcher.fill_next_token_bitmask(bits, 0)
            slowest = max(slowest, (time.thread_time() - started) * 1e3)
            token_id = _drawn(bits[0], source)
            if slowest > enough or token_id is None or token_id in self._stops or not matcher.accept_token(token_id):
                break
        return slowest


def _result(future: Future[xgrammar.CompiledGrammar] | None, seconds: float) -> xgrammar.CompiledGrammar | None:
    try:
        return None if future is None else future.result(max(0.0, seconds))
    except TimeoutError:
        return None


def _drawn(words: NDArray[np.int32], source: random.Random) -> int | None:
    """A random set bit of a random word that has one."""
    occupied = np.flatnonzero(words)
    if not len(occupied):
        return None
    at = int(occupied[source.randrange(len(occupied))])
    bits = [bit for bit in range(32) if int(words[at]) >> bit & 1]
    return at * 32 + source.choice(bits)
