"""One request's matcher, and the engine that compiles grammar text into masks for one vocabulary."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
import xgrammar
from numpy.typing import NDArray

from guided_grammar.errors import LimitExceeded, UnsatisfiableConstraint, UnsupportedConstraint
from guided_grammar.limits import DEFAULT_LIMITS, Limits
from guided_grammar.markers import with_tokens
from guided_grammar.probe import MaskCompiler
from guided_grammar.vocabulary import Vocabulary
from guided_grammar.watch.guard import Guard
from guided_grammar.watch.marks import watches, without_marks
from guided_grammar.watch.shadow import ShadowGrammar
from guided_grammar.watch.tokens import TokenIndex

_DEFAULT_CACHE_BYTES = 256 << 20
_Key = tuple[bytes, frozenset[str]]


@dataclass(frozen=True)
class CacheStats:
    """Counters since the engine was made; `entries` and `bytes` are what is held now."""

    hits: int = 0
    misses: int = 0
    evictions: int = 0
    entries: int = 0
    bytes: int = 0
    compile_seconds: float = 0.0


@dataclass(frozen=True)
class CompiledMask:
    """A grammar compiled for one vocabulary. `blank`: ids that are never text in it. `watch`: where it has marks."""

    handle: xgrammar.CompiledGrammar
    blank: frozenset[int]
    watch: tuple[TokenIndex, ShadowGrammar] | None = None

    @property
    def bytes(self) -> int:
        """Its memory."""
        return int(self.handle.memory_size_bytes) + (0 if self.watch is None else self.watch[1].bytes)


class Session:
    """The position of one answer inside its grammar. Not thread-safe; owned by the engine's step.

    Legal is what the mask allows: `accept` refuses every other token and leaves the position unchanged.
    """

    def __init__(
        self,
        matcher: xgrammar.GrammarMatcher,
        vocabulary: Vocabulary,
        blank: frozenset[int],
        guard: Guard | None = None,
    ):
        self._matcher, self._vocabulary, self._blank, self._guard = matcher, vocabulary, blank, guard

    def accept(self, token_id: int) -> bool:
        """Advance by one token; False when it is not legal here. A legal stop terminates the session."""
        if not 0 <= token_id < self._vocabulary.vocab_size or token_id in self._blank or self.is_terminated:
            return False
        if not self._matcher.accept_token(token_id):
            return False
        if self._guard is None or self._guard.accept(token_id):
            return True
        self._matcher.rollback(1)
        return False

    @property
    def is_complete(self) -> bool:
        """The text so far is a sentence: a stop token is legal now."""
        return not self.is_terminated and bool(self._matcher.is_completed())

    @property
    def is_terminated(self) -> bool:
        """A stop token was accepted."""
        return bool(self._matcher.is_terminated())

    def forced_tokens(self) -> list[int]:
        """Tokens that write the only possible continuation; [] where the text is not forced. Accept each."""
        return [] if self.is_terminated else list(self._matcher.find_jump_forward_tokens())

    def fork(self) -> Session:
        """An independent session at the same position."""
        matcher = self._matcher.fork()
        guard = None if self._guard is None else self._guard.fork(matcher)
        return Session(matcher, self._vocabulary, self._blank, guard)

    def rollback(self, num_tokens: int) -> None:
        """Take back the last accepted tokens, a stop included; raises ValueError when there are fewer."""
        if num_tokens < 0:
            raise ValueError(f"cannot roll back {num_tokens} tokens")
        try:
            self._matcher.rollback(num_tokens)
        except RuntimeError as error:
            raise ValueError(f"cannot roll back {num_tokens} tokens: {_first_line(error)}") from None
        if self._guard is not None:
            self._guard.rollback(num_tokens)

    def fill(self, bits: NDArray[np.int32], row: int) -> bool:
        """Write the mask of legal tokens into bits[row] (int32 C-contiguous [rows, words], token i = bit i % 32 of
        word i // 32; bits past the vocabulary are 0). False when every token is legal and the row was left as it was.
        Must not be terminated."""
        constrained = bool(self._matcher.fill_next_token_bitmask(bits, row))
        tail = self._vocabulary.vocab_size % 32
        if constrained and tail:
            bits[row, self._vocabulary.vocab_size // 32] &= np.int32((1 << tail) - 1)
        if constrained and self._guard is not None:
            self._guard.narrow(bits[row])
        return constrained


class MaskEngine:
    """Compiles grammar text for one vocabulary, behind a cache bounded in bytes. Thread-safe; one compile per key.

    cache_bytes: half for compiled grammars, least recently used out first, half for the rule masks that xgrammar
        shares between grammars. A grammar larger than its half is compiled but not kept.
    """

    def __init__(
        self, vocabulary: Vocabulary, limits: Limits = DEFAULT_LIMITS, cache_bytes: int = _DEFAULT_CACHE_BYTES
    ):
        self.vocabulary, self.limits = vocabulary, limits
        self._capacity = self._shared = cache_bytes // 2
        self._lock, self._building = threading.Lock(), threading.Lock()
        self._kept: OrderedDict[_Key, CompiledMask] = OrderedDict()
        self._running: dict[_Key, Future[CompiledMask]] = {}
        self._compilers: dict[frozenset[str], tuple[MaskCompiler, frozenset[int]]] = {}
        self._indexes: dict[frozenset[str], TokenIndex] = {}
        self._stats = CacheStats()
        self.prepare()

    def prepare(self, markers: frozenset[str] = frozenset()) -> None:
        """Do now what the first `compile` with these markers would wait for: a second for a large vocabulary."""
        self._compiler(frozenset(markers & self.vocabulary.markup.keys()))

    @property
    def stats(self) -> CacheStats:
        """A snapshot of the counters."""
        with self._lock:
            return self._stats

    def judge(self, text: str, markers: frozenset[str] = frozenset()) -> None:
        """Compile, start and walk without keeping anything. Raises what `compile` and `session` raise, LimitExceeded
        for a grammar whose masks are slow. For a process that may be killed: nothing here can be interrupted."""
        markers = frozenset(markers & self.vocabulary.markup.keys())
        compiler, blank = self._compiler(markers)
        try:
            handle = compiler.judge(self._grammar(text, markers))
        except RuntimeError as error:
            raise _refusal(error) from None
        self.session(CompiledMask(handle, blank))

    def compile(self, text: str, markers: frozenset[str] = frozenset(), *, proven: bool = False) -> CompiledMask:
        """Masks for grammar text of `emit.to_ebnf`. Cannot be interrupted: text of strangers goes to `judge` first.

        proven: `judge` has found this text quick, elsewhere; else it is walked here too.

        markers: added tokens of the vocabulary that the grammar names: rules of a marker write its token
            (`with_tokens`), elsewhere the token reads as its text, in this grammar only.
        Raises UnsupportedConstraint when xgrammar refuses the text, LimitExceeded past limits.emitted_bytes or for a
        grammar whose masks are slow.
        """
        size = len(text.encode())
        if size > self.limits.emitted_bytes:
            raise LimitExceeded("emitted grammar bytes", self.limits.emitted_bytes, size)
        key = (hashlib.sha256(text.encode()).digest(), frozenset(markers & self.vocabulary.markup.keys()))
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                self._count(hits=1)
                return kept
            future, mine = self._running.get(key), False
            if future is None:
                future = self._running[key] = Future()
                mine = True
            self._count(hits=0 if mine else 1, misses=1 if mine else 0)
        if mine:
            self._run(key, text, proven, future)
        return future.result()

    def session(self, compiled: CompiledMask) -> Session:
        """A matcher at the start; raises UnsatisfiableConstraint when no token at all is legal there."""
        matcher = xgrammar.GrammarMatcher(compiled.handle)
        guard = None if compiled.watch is None else Guard.start(matcher, *compiled.watch)
        session = Session(matcher, self.vocabulary, compiled.blank, guard)
        bits = np.zeros((1, -(-self.vocabulary.vocab_size // 32)), dtype=np.int32)
        if session.fill(bits, 0) and not bits.any():
            raise UnsatisfiableConstraint("no token of this model can begin an answer")
        return session

    def _run(self, key: _Key, text: str, proven: bool, future: Future[CompiledMask]) -> None:
        started = time.perf_counter()
        try:
            compiler, blank = self._compiler(key[1])
            grammar, watch = self._grammar(text, key[1]), self._watch(text, key[1])
            handle = compiler.build(grammar) if proven else compiler.judge(grammar)
            compiled = CompiledMask(handle, blank, watch)
        except BaseException as error:
            with self._lock:
                del self._running[key]
            future.set_exception(_refusal(error))
            return
        with self._lock:
            self._keep(key, compiled)
            self._count(compile_seconds=time.perf_counter() - started)
            del self._running[key]
        future.set_result(compiled)

    def _keep(self, key: _Key, compiled: CompiledMask) -> None:
        if compiled.bytes > self._capacity:
            return
        self._kept[key] = compiled
        held, evicted = sum(c.bytes for c in self._kept.values()), 0
        while held > self._capacity:
            held -= self._kept.popitem(last=False)[1].bytes
            evicted += 1
        self._count(evictions=evicted, held=held)

    def _count(
        self, hits: int = 0, misses: int = 0, evictions: int = 0, compile_seconds: float = 0, held: int | None = None
    ) -> None:
        old = self._stats
        self._stats = CacheStats(
            hits=old.hits + hits,
            misses=old.misses + misses,
            evictions=old.evictions + evictions,
            entries=len(self._kept),
            bytes=old.bytes if held is None else held,
            compile_seconds=old.compile_seconds + compile_seconds,
        )

    def _compiler(self, markers: frozenset[str]) -> tuple[MaskCompiler, frozenset[int]]:
        """The compiler that reads `markers` as text and the ids it never does; one per set: formats name few."""
        with self._building:
            if markers not in self._compilers:
                tokens, stops = self.vocabulary.with_markers(markers), self.vocabulary.stop_ids
                blank = frozenset(i for i, token in enumerate(tokens) if not token) - frozenset(stops)
                self._compilers[markers] = (MaskCompiler(tokens, stops, self._shared), blank)
            return self._compilers[markers]

    def _grammar(self, text: str, markers: frozenset[str]) -> str:
        """What masks are made from."""
        return with_tokens(without_marks(text), self.vocabulary.ids_of(markers))

    def _watch(self, text: str, markers: frozenset[str]) -> tuple[TokenIndex, ShadowGrammar] | None:
        """What a `Guard` needs, None where nothing is watched; the first for a large vocabulary takes half a second."""
        if not watches(text):
            return None
        with self._building:
            if markers not in self._indexes:
                self._indexes[markers] = TokenIndex(self.vocabulary.with_markers(markers))
        return self._indexes[markers], ShadowGrammar(text)


def _refusal(error: BaseException) -> BaseException:
    if isinstance(error, RuntimeError):
        return UnsupportedConstraint(f"the mask engine refuses this grammar: {_first_line(error)}")
    return error


def _first_line(error: BaseException) -> str:
    """xgrammar's message without the input that it quotes: the last part of its first line."""
    line = next(iter(str(error).splitlines()), "")
    return line.rsplit(": ", 1)[-1][:200]
