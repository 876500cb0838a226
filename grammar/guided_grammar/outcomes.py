"""Answers by key: one computation for all that ask together, results kept within bounds, refusals for a while."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from guided_grammar.errors import GrammarError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_REFUSED_SECONDS = 60.0


@dataclass(frozen=True)
class OutcomeStats:
    """Counters since the start; `entries` and `bytes` are what is held now. A joined computation is a hit."""

    hits: int = 0
    misses: int = 0
    evictions: int = 0
    entries: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class _Known(Generic[V]):
    future: Future[V]
    size: int
    until: float


class Outcomes(Generic[K, V]):
    """Thread-safe. Results leave by least recent use past `entries` or `bytes`; refusals also after a minute.

    size: bytes that a result counts for. now: the clock, in seconds.
    """

    def __init__(
        self,
        entries: int,
        bytes: int,
        size: Callable[[V], int],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._entries, self._bytes, self._size, self._now = entries, bytes, size, now
        # a job that `start` crowds out of a full queue settles inside that call
        self._lock = threading.RLock()
        self._known: OrderedDict[K, _Known[V]] = OrderedDict()
        self._running: dict[K, Future[V]] = {}
        self._stats = OutcomeStats()

    @property
    def stats(self) -> OutcomeStats:
        """A snapshot of the counters."""
        with self._lock:
            return self._stats

    def ask(self, key: K, start: Callable[[], Future[V]]) -> Future[V]:
        """The future of the result for `key`; `start` is called, under the lock, when nobody has asked for it yet.

        GrammarErrors are remembered like results; any other failure is forgotten at once.
        """
        with self._lock:
            known = self._recall(key) or self._running.get(key)
            if known is not None:
                self._count(hits=self._stats.hits + 1)
                return known
            future = self._running[key] = start()
            self._count(misses=self._stats.misses + 1)
        future.add_done_callback(lambda done: self._settle(key, done))
        return future

    def _recall(self, key: K) -> Future[V] | None:
        known = self._known.get(key)
        if known is None:
            return None
        if known.until < self._now():
            self._forget(key)
            return None
        self._known.move_to_end(key)
        return known.future

    def _settle(self, key: K, done: Future[V]) -> None:
        error = None if done.cancelled() else done.exception()
        with self._lock:
            self._running.pop(key, None)
            if done.cancelled() or (error is not None and not isinstance(error, GrammarError)):
                return
            size = self._size(done.result()) if error is None else len(str(error))
            until = float("inf") if error is None else self._now() + _REFUSED_SECONDS
            self._known[key] = _Known(done, size, until)
            self._count(bytes=self._stats.bytes + size)
            while len(self._known) > self._entries or self._stats.bytes > self._bytes:
                self._forget(next(iter(self._known)))
                self._count(evictions=self._stats.evictions + 1)

    def _forget(self, key: K) -> None:
        size = self._known.pop(key).size
        self._count(bytes=self._stats.bytes - size)

    def _count(self, **changed: int) -> None:
        self._stats = replace(self._stats, entries=len(self._known), **changed)
