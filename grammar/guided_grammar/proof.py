"""Grammar text proven in a process that can be killed, before it is let into the engine's own.

xgrammar can neither be interrupted nor bounded in memory. So every new grammar is compiled, started and walked once in
a worker with a clock and a bound on its address space; what finishes there finishes in the engine too, at that cost.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

from guided_grammar.crew import Crew, PoolBusy, PoolClosed, result_of
from guided_grammar.errors import UnsupportedConstraint
from guided_grammar.limits import Limits
from guided_grammar.losses import Losses
from guided_grammar.outcomes import Outcomes
from guided_grammar.pool import PoolStats
from guided_grammar.vocabulary import Vocabulary
from guided_grammar.worker import Worker, WorkerDied, WorkerTimeout

if TYPE_CHECKING:
    from guided_grammar.session import MaskEngine

_KEPT = 4096
_KEPT_BYTES = 1 << 20
_MOST_WAITING = 64
_JOIN_SECONDS = 2.0
_LOAD_SECONDS = 60.0
_TIRED_SECONDS = 0.9
_Key = tuple[bytes, frozenset[str]]


class Prover:
    """Thread-safe; `prove` blocks its caller. Proofs are remembered, refusals for a minute.

    workers: processes, each with the vocabulary in it. seconds: wall clock of one proof. memory_bytes: address space
    of a worker, its libraries included. wait: seconds for a free worker before PoolBusy; on a busy machine a lost one
    takes half of them to come back.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        limits: Limits,
        workers: int = 1,
        seconds: float = 4.0,
        memory_bytes: int = 3 << 30,
        wait: float = 15.0,
    ) -> None:
        self._seconds, self._memory_bytes, self._wait = seconds, memory_bytes, wait
        self._outcomes: Outcomes[_Key, None] = Outcomes(_KEPT, _KEPT_BYTES, lambda proven: 1)
        self._losses, self._lock, self._spent, self._closed = Losses(), threading.Lock(), 0.0, False
        self._workers = [_Loaded(Worker(memory_bytes), vocabulary, limits) for _ in range(workers)]
        with ThreadPoolExecutor(len(self._workers)) as threads:
            list(threads.map(_Loaded.load, self._workers))
        self._crew = Crew(self._workers, _MOST_WAITING, "grammar-proof", self._mend)

    @property
    def stats(self) -> PoolStats:
        """A snapshot of the counters."""
        return PoolStats(self._outcomes.stats, self._losses.kills, self._crew.num_waiting, self._spent)

    def prove(self, text: str, markers: frozenset[str], client: str = "") -> None:
        """`MaskEngine.judge` in a worker. Raises its GrammarError, LimitExceeded for a proof over `seconds` or
        `memory_bytes`, UnsupportedConstraint for a grammar that crashes it, PoolBusy, PoolClosed.

        client: whose turn the proof takes.
        """
        key = (hashlib.sha256(text.encode()).digest(), markers)
        future = self._outcomes.ask(
            key, lambda: self._crew.submit(client, lambda worker: self._prove(worker, text, markers))
        )
        result_of(future, self._wait)

    def close(self) -> None:
        """Kill the workers, those that are just coming back included."""
        self._closed = True
        self._crew.close()
        for worker in self._workers:
            worker.end()
        self._crew.join(_JOIN_SECONDS)
        # one that was just coming back has started its process
        for worker in self._workers:
            worker.end()

    def _prove(self, worker: _Loaded, text: str, markers: frozenset[str]) -> None:
        started = time.monotonic()
        try:
            self._losses.bounded(
                lambda: self._judged(worker, text, markers), "grammar proof", self._seconds, self._memory_bytes
            )
        finally:
            with self._lock:
                self._spent += time.monotonic() - started

    def _judged(self, worker: _Loaded, text: str, markers: frozenset[str]) -> None:
        if self._closed:
            raise PoolClosed("the prover is closed")
        try:
            worker.load()
        except (WorkerDied, WorkerTimeout):
            # nothing that this grammar has done
            raise PoolBusy("the grammar worker does not start") from None
        worker.judge(text, markers, self._seconds)

    def _mend(self, worker: _Loaded) -> None:
        """A lost worker reads its vocabulary again before anybody waits for it."""
        # one that does not start is tried again by the next proof that takes it
        with contextlib.suppress(WorkerDied, WorkerTimeout, RuntimeError):
            if not self._closed:
                worker.load()


class _Loaded:
    """A worker that has read the vocabulary. Not thread-safe."""

    def __init__(self, worker: Worker, vocabulary: Vocabulary, limits: Limits) -> None:
        self._worker, self._vocabulary, self._limits = worker, vocabulary, limits
        self._is_loaded = self._has_ended = False

    def load(self) -> None:
        """Once more when the process ends over it. Raises WorkerDied, WorkerTimeout; always after `end`."""
        try:
            self._load()
        except WorkerDied:
            self._load()

    def _load(self) -> None:
        if self._has_ended:
            raise WorkerDied("the prover is closed")
        # a process that was killed while it was idle comes back without the vocabulary
        if not (self._is_loaded and self._worker.is_running):
            self._is_loaded = False
            arguments = (self._vocabulary, self._limits)
            self._worker.call("guided_grammar.proof:load", *arguments, seconds=_LOAD_SECONDS, trusted=True)
            self._is_loaded = True

    def judge(self, text: str, markers: frozenset[str], seconds: float) -> None:
        """Must be loaded."""
        started = time.monotonic()
        try:
            self._worker.call("guided_grammar.proof:judge", text, markers, seconds=seconds)
        except (WorkerTimeout, WorkerDied):
            self._is_loaded = False
            raise
        finally:
            # what a large grammar leaves behind would count against the memory bound of the next one
            if time.monotonic() - started > _TIRED_SECONDS:
                self.close()

    def close(self) -> None:
        self._is_loaded = False
        self._worker.close()

    def end(self) -> None:
        """Close, from any thread, and start no process again."""
        self._has_ended = True
        self.close()


def load(vocabulary: Vocabulary, limits: Limits) -> None:
    """In the worker: the mask engine that grammars are proven with."""
    from guided_grammar.session import MaskEngine

    _engines().append(MaskEngine(vocabulary, limits))


def judge(text: str, markers: frozenset[str]) -> None:
    """In the worker: `MaskEngine.judge`; MemoryError, which ends the worker, past its bound."""
    try:
        _engines()[0].judge(text, markers)
    except UnsupportedConstraint as error:
        if "bad_alloc" in error.reason:
            raise MemoryError from None
        raise


@cache
def _engines() -> list[MaskEngine]:
    return []
